//! Reads output topics as they are written, for `samestory follow`. It is an ordinary `read_committed` consumer that
//! joins no group and commits nothing.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{Offset, TopicPartitionList};

use crate::config::Bus;

use crate::kafka::client as clients;
use crate::kafka::client::Quiet;
use crate::kafka::turn::source::owned;

/// One record of an output topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedRecord {
    /// The topic it was read from.
    pub topic: String,
    /// The record's key: an article id or a cluster id.
    pub key: String,
    /// True if the record has no value and retracts an earlier one.
    pub is_tombstone: bool,
    headers: Vec<(String, String)>,
}

impl FollowedRecord {
    /// The value of a dead letter's header, named without its `__samestory.errors.` prefix.
    pub fn error_header(&self, name: &str) -> Option<&str> {
        let ours = |(key, _): &&(String, String)| key.strip_prefix("__samestory.errors.") == Some(name);
        self.headers.iter().find(ours).map(|(_, value)| value.as_str())
    }

    /// The value of a header, named without its `samestory-` prefix.
    pub fn header(&self, name: &str) -> Option<&str> {
        let ours = |(key, _): &&(String, String)| key.strip_prefix("samestory-") == Some(name);
        self.headers.iter().find(ours).map(|(_, value)| value.as_str())
    }
}

/// Passes each record of these topics to `visit` until it returns false or no record arrives for `idle`.
///
/// # Errors
/// The broker is unreachable or refuses access.
pub fn follow(
    bus: &Bus,
    topics: &[&str],
    from_beginning: bool,
    idle: Option<Duration>,
    visit: &mut dyn FnMut(FollowedRecord) -> bool,
) -> Result<(), KafkaError> {
    let mut config = clients::surveyor(bus, "samestory-follow");
    // librdkafka requires a group id; nothing is ever committed under it.
    config
        .set("group.id", format!("{}.follow", bus.app))
        .set("isolation.level", "read_committed")
        .set("enable.auto.offset.store", "false")
        .set("auto.offset.reset", "earliest")
        .set("fetch.wait.max.ms", "100");
    let consumer: BaseConsumer<Quiet> = config.create_with_context(Quiet)?;
    let mut list = TopicPartitionList::new();
    let start = if from_beginning { Offset::Beginning } else { Offset::End };
    for topic in topics {
        let metadata = consumer.fetch_metadata(Some(topic), Duration::from_secs(10))?;
        for described in metadata.topics() {
            for partition in described.partitions() {
                list.add_partition_offset(topic, partition.id(), start)?;
            }
        }
    }
    consumer.assign(&list)?;
    let mut last_record = Instant::now();
    while idle.is_none_or(|idle| last_record.elapsed() < idle) {
        let Some(Ok(message)) = consumer.poll(Duration::from_millis(200)) else { continue };
        last_record = Instant::now();
        let (_, record) = owned(&message, usize::MAX);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let record = FollowedRecord {
            topic: rdkafka::Message::topic(&message).to_owned(),
            key: record.key.as_deref().map(text).unwrap_or_default(),
            is_tombstone: record.value.is_none(),
            headers: record
                .headers
                .into_iter()
                .map(|(name, value)| (name, text(&value.unwrap_or_default())))
                .collect(),
        };
        if !visit(record) {
            break;
        }
    }
    Ok(())
}
