//! Control records: commands of an operator to the role with state. They go through that role's input, so that a replay
//! of the log gives the same state.
//!
//! In routed mode a control record is written to the routed topic, in the partition of its language. In direct mode it
//! is written to every partition of the raw topic, because the producers' keys decide where articles of a language are.
//! Its header `samestory-control: set-stream-time en 2026-03-02T06:10:00Z` is the whole command; the value repeats it
//! for people, and because a tombstone would mean a delete to other readers of the topic.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{DeliveryResult, Header, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};

use crate::config::{Config, Mode, home};
use crate::formats::time;
use samestory_engine::engine::Incoming;
use samestory_engine::model::{EventTime, Lang};
use samestory_engine::text::language;

use crate::kafka::client as clients;
use crate::kafka::client::{PATIENCE, Quiet};
use crate::kafka::route::routed;
use crate::kafka::turn::record::Record;

const HEADER: &str = "samestory-control";
const SET_STREAM_TIME: &str = "set-stream-time";

/// Where a control record was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The input topic of the role with state.
    pub topic: String,
    /// The partition that it was written to.
    pub partition: i32,
    /// The offset of the record.
    pub offset: i64,
}

/// Why a control record could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The input topic does not exist.
    #[error("topic {0} does not exist on this broker; `samestory topics --create` creates it")]
    NoTopic(String),
    /// The broker refused the record or did not answer.
    #[error("the control record was not written: {0}; repeating the command is safe")]
    Broker(#[from] KafkaError),
}

/// Writes the control record that sets the stream time of a language. It takes effect when the role with state reads
/// it.
///
/// # Errors
/// See [`ControlError`].
pub fn set_stream_time(config: &Config, language: Lang, at: EventTime) -> Result<Vec<Written>, ControlError> {
    let (bus, direct) = (&config.bus, config.bus.mode == Mode::Direct);
    let topic = if direct { &bus.topics.raw } else { &bus.topics.routed };
    let surveyor: BaseConsumer<Quiet> =
        clients::surveyor(bus, "samestory-control").create_with_context(Quiet)?;
    let metadata = surveyor.fetch_metadata(Some(topic), PATIENCE)?;
    let found = metadata.topics().first().filter(|found| found.error().is_none());
    let partitions = found.map_or(0, |found| i32::try_from(found.partitions().len()).unwrap_or(i32::MAX));
    if partitions == 0 {
        return Err(ControlError::NoTopic(topic.clone()));
    }
    let (value, headers, partitions) = match bus.mode {
        Mode::Routed => {
            let home = home(&bus.languages, language, partitions);
            (routed::encode_set_stream_time(language, at), OwnedHeaders::new(), home..home + 1)
        }
        Mode::Direct => {
            let word = format!("{SET_STREAM_TIME} {language} {at}");
            let header = Header { key: HEADER, value: Some(&word) };
            (word.clone().into_bytes(), OwnedHeaders::new().insert(header), 0..partitions)
        }
    };
    let mut client = clients::base(bus, "samestory-control");
    client.set("enable.idempotence", "true").set("message.timeout.ms", "30000");
    let producer: BaseProducer<Delivered> = client.create_with_context(Delivered::default())?;
    for partition in partitions {
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic);
        record.key = Some(HEADER.as_bytes());
        record.payload = Some(&value);
        record.partition = Some(partition);
        record.headers = Some(headers.clone());
        producer.send(record).map_err(|(error, _)| error)?;
    }
    producer.flush(Duration::from_secs(60))?;
    let delivered = std::mem::take(&mut *producer.context().0.lock().unwrap_or_else(PoisonError::into_inner));
    delivered
        .into_iter()
        .map(|delivery| {
            let (partition, offset) = delivery?;
            Ok(Written { topic: topic.clone(), partition, offset })
        })
        .collect()
}

/// Decodes a raw record in direct mode as a control record, if it is one.
pub(crate) fn read(record: &Record) -> Option<Incoming> {
    let (_, value) = record.headers.iter().find(|(name, _)| name == HEADER)?;
    let word = str::from_utf8(value.as_deref()?).ok()?;
    let (language, at) = word.strip_prefix(SET_STREAM_TIME)?.trim().split_once(' ')?;
    Some(Incoming::SetStreamTime { language: language::find(language)?.home(), at: time::parse(at)? })
}

/// Collects the delivery reports.
#[derive(Default)]
struct Delivered(Mutex<Vec<Result<(i32, i64), KafkaError>>>);

impl ClientContext for Delivered {
    fn log(&self, level: rdkafka::config::RDKafkaLogLevel, facility: &str, message: &str) {
        clients::log(level, facility, message);
    }
}

impl ProducerContext for Delivered {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        let delivery = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.clone()),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(delivery);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_alone_makes_a_control_record() {
        let with = |word: &str| Record {
            headers: vec![(HEADER.to_owned(), Some(word.into()))],
            value: Some(b"set-stream-time en 2026-03-02".to_vec()),
            ..Record::default()
        };
        let set = read(&with("set-stream-time en 2026-03-02T06:10:00Z"));
        let Some(Incoming::SetStreamTime { language, at }) = set else { panic!("{set:?}") };
        assert_eq!((language.code(), at.millis()), ("en", 1_772_431_800_000));
        for other in ["set-stream-time", "set-stream-time en", "set-stream-time xx 2026-03-02", "stop", ""] {
            assert!(read(&with(other)).is_none(), "{other}");
        }
        assert!(read(&Record { headers: Vec::new(), ..with("") }).is_none());
    }
}
