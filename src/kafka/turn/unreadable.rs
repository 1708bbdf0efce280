//! Batches of the input that cannot be read: a compression bomb, a codec that librdkafka does not know, damaged bytes.
//!
//! librdkafka fetches such a batch again and again and reports an error each time, without the partition. The partition is
//! told from the statistics: it has records to read and does not move. Before a batch is skipped, a consumer of its own
//! reads that partition alone, which proves the fault and finds the end of the batch.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

use crate::kafka::client as clients;

/// An error that has not come again for so long is over: librdkafka tries twice a second.
const OVER: Duration = Duration::from_secs(10);
/// A partition that stands still for so long, while errors come, cannot be read.
const STILL: Duration = Duration::from_secs(3);
/// How long one look at a partition may take.
const LOOK: Duration = Duration::from_secs(10);
/// How long the search for a batch's end may take altogether.
const SEARCH: Duration = Duration::from_secs(60);

/// Whether a batch of records could not be read for what it is.
pub(crate) fn is_read_error(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        error,
        KafkaError::MessageConsumption(
            Code::BadCompression
                | Code::BadMessage
                | Code::NotImplemented
                | Code::InvalidMessage
                | Code::MessageSizeTooLarge
        )
    )
}

/// Where a partition is fetched, and how far it could be, by librdkafka's statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fetching {
    pub(crate) next: i64,
    /// Everything before this was polled, markers and aborted records included.
    pub(crate) polled: i64,
    /// The last stable offset.
    pub(crate) end: i64,
}

/// A partition that cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jam {
    pub(crate) partition: i32,
    /// The first offset that cannot be read.
    pub(crate) offset: i64,
    pub(crate) since: Instant,
}

/// Read errors as they are reported, and the partitions that stand still meanwhile.
#[derive(Debug, Default)]
pub(crate) struct ReadErrors {
    last: Option<(Instant, String)>,
    still: BTreeMap<i32, (i64, Instant)>,
    /// Since when a partition has not delivered a record; a skipped batch is none.
    jammed: BTreeMap<i32, Instant>,
}

impl ReadErrors {
    pub(crate) fn heard(&mut self, error: &KafkaError, now: Instant) {
        self.last = Some((now, error.to_string()));
    }

    /// What was heard last.
    pub(crate) fn why(&self) -> &str {
        self.last.as_ref().map_or("", |(_, why)| why)
    }

    /// A record of the partition was read.
    pub(crate) fn read(&mut self, partition: i32) {
        if self.last.is_some() {
            self.jammed.remove(&partition);
            self.still.remove(&partition);
        }
    }

    /// The partitions that cannot be read on.
    pub(crate) fn jams(&mut self, fetching: &BTreeMap<i32, Fetching>, now: Instant) -> Vec<Jam> {
        let recent = |heard: &Instant| now.duration_since(*heard) < OVER;
        let Some((heard, _)) = self.last.as_ref().filter(|(heard, _)| recent(heard)) else {
            self.still.clear();
            self.jammed.clear();
            return Vec::new();
        };
        let heard = *heard;
        let stuck = |of: &Fetching| of.next >= 0 && of.end > of.next;
        self.still.retain(|partition, (next, _)| {
            fetching.get(partition).is_some_and(|of| stuck(of) && of.next == *next)
        });
        for (&partition, of) in fetching.iter().filter(|(_, of)| stuck(of)) {
            self.still.entry(partition).or_insert((of.next, now));
        }
        let still = self.still.iter().filter(|(_, (_, since))| {
            now.duration_since(*since) >= STILL && heard.duration_since(*since) > Duration::ZERO
        });
        let jams = still.map(|(&partition, &(offset, since))| {
            let since = *self.jammed.entry(partition).or_insert(since);
            Jam { partition, offset, since }
        });
        jams.collect()
    }
}

/// What is found at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Records can be read from here, or the partition ends.
    Readable,
    /// A batch that cannot be read, and the offset of its first record.
    Bad(i64),
}

/// Reads one partition to find out where a batch that cannot be read ends.
pub(crate) struct Probe {
    consumer: BaseConsumer<Heard>,
    topic: String,
    partition: i32,
    deadline: Instant,
}

impl Probe {
    /// `config` must have the limits of the consumer that met the batch.
    pub(crate) fn new(config: &ClientConfig, topic: &str, partition: i32) -> Result<Probe, KafkaError> {
        let consumer = config.create_with_context(Heard::default())?;
        let deadline = Instant::now() + SEARCH;
        Ok(Probe { consumer, topic: topic.to_owned(), partition, deadline })
    }

    /// The first offset behind the batch that holds `from`; nothing where that can be read.
    ///
    /// # Errors
    /// The broker does not answer in time, or librdkafka does not say which batch it cannot read.
    pub(crate) fn end_of_batch(&self, from: i64) -> Result<Option<i64>, KafkaError> {
        let (_, high) = self.consumer.fetch_watermarks(&self.topic, self.partition, clients::PATIENCE)?;
        search(from, high, |offset| self.look(offset))
    }

    fn look(&self, offset: i64) -> Result<Found, KafkaError> {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.topic, self.partition, Offset::Offset(offset))?;
        self.consumer.assign(&list)?;
        let deadline = (Instant::now() + LOOK).min(self.deadline);
        while Instant::now() < deadline {
            match self.consumer.poll(Duration::from_millis(100)) {
                Some(Ok(message)) if message.offset() >= offset => return Ok(Found::Readable),
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(Found::Readable),
                Some(Err(error)) if is_read_error(&error) => {
                    let reason = self.consumer.context().take();
                    return offset_in(&reason).map(Found::Bad).ok_or(error);
                }
                Some(Ok(_) | Err(_)) | None => {}
            }
        }
        Err(KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut))
    }
}

/// Finds the end of the batch at `from` by looking at offsets up to `high`. Whether an offset belongs to this batch is told
/// from the batch's first offset, so that a readable batch between two bad ones is never skipped.
fn search<E>(from: i64, high: i64, mut look: impl FnMut(i64) -> Result<Found, E>) -> Result<Option<i64>, E> {
    let found = look(from)?;
    if found == Found::Readable {
        return Ok(None);
    }
    let (mut inside, mut outside, mut step) = (from, high.max(from + 1), 1);
    while inside + step < outside {
        match look(inside + step)? == found {
            true => (inside, step) = (inside + step, step * 2),
            false => outside = inside + step,
        }
    }
    while outside - inside > 1 {
        let middle = inside + (outside - inside) / 2;
        match look(middle)? == found {
            true => inside = middle,
            false => outside = middle,
        }
    }
    Ok(Some(outside))
}

/// The offset that a reason of librdkafka's names: "Decompression (codec 0x4) of message at 17 of 3000 bytes failed".
fn offset_in(reason: &str) -> Option<i64> {
    let (_, after) = reason.split_once(" at ")?;
    let after = after.strip_prefix("offset ").unwrap_or(after);
    let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    after.get(..digits)?.parse().ok()
}

/// Hears what librdkafka says about errors.
#[derive(Default)]
pub(crate) struct Heard(Mutex<String>);

impl Heard {
    fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientContext for Heard {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        clients::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "probing");
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reason.to_owned();
    }
}

impl ConsumerContext for Heard {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches as ranges of offsets, each readable or not.
    fn end(batches: &[(i64, i64, bool)], from: i64) -> (Option<i64>, usize) {
        let mut looks = 0;
        let high = batches.last().map_or(0, |(_, last, _)| last + 1);
        let look = |offset: i64| {
            looks += 1;
            let batch = batches.iter().find(|(first, last, _)| (*first..=*last).contains(&offset));
            Ok::<_, ()>(match batch {
                Some(&(first, _, false)) => Found::Bad(first),
                _ => Found::Readable,
            })
        };
        (search(from, high, look).unwrap(), looks)
    }

    #[test]
    fn exactly_one_batch_is_skipped_whatever_follows_it() {
        assert_eq!(end(&[(0, 9, true)], 3).0, None);
        assert_eq!(end(&[(0, 0, false)], 0).0, Some(1));
        assert_eq!(end(&[(0, 9, false), (10, 12, true), (13, 20, false), (21, 90, true)], 0).0, Some(10));
        assert_eq!(end(&[(0, 9, false), (10, 20, false)], 4).0, Some(10));
        let (found, looks) = end(&[(0, 999_999, false), (1_000_000, 1_000_000, true)], 17);
        assert_eq!(found, Some(1_000_000));
        assert!(looks < 50, "{looks}");
    }

    #[test]
    fn the_batch_is_named_in_the_reason() {
        let said =
            "Decompression (codec 0x4) of message at 17 of 3000 bytes failed: Local: Invalid compressed data";
        assert_eq!(offset_in(said), Some(17));
        assert_eq!(offset_in("Unsupported Message(Set) MagicByte 9 at offset 1234"), Some(1234));
        assert_eq!(offset_in("something at all"), None);
        assert_eq!(offset_in(""), None);
    }

    #[test]
    fn a_partition_is_jammed_when_it_stands_still_while_errors_come() {
        let began = Instant::now();
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        let error = KafkaError::MessageConsumption(RDKafkaErrorCode::BadCompression);
        let mut errors = ReadErrors::default();
        let stuck = Fetching { next: 7, polled: 7, end: 20 };
        let fetching = |moving: i64| {
            BTreeMap::from([
                (0, stuck),
                (1, Fetching { next: moving, polled: 0, end: 5000 }),
                (2, Fetching { next: 9, polled: 9, end: 9 }),
            ])
        };
        assert_eq!(errors.jams(&fetching(0), at(0)), [], "nothing was heard");
        errors.heard(&error, at(1));
        assert_eq!(errors.jams(&fetching(1), at(1)), []);
        errors.heard(&error, at(5));
        let jam = Jam { partition: 0, offset: 7, since: at(1) };
        assert_eq!(errors.jams(&fetching(2), at(5)), [jam]);
        // Skipped, and the next batch is no better: the wait does not begin again.
        let next = BTreeMap::from([(0, Fetching { next: 12, ..stuck })]);
        assert_eq!(errors.jams(&next, at(6)), []);
        errors.heard(&error, at(10));
        assert_eq!(errors.jams(&next, at(10)), [Jam { partition: 0, offset: 12, since: at(1) }]);
        errors.read(0);
        assert_eq!(errors.jams(&next, at(11)), [], "a record was read meanwhile");
        assert_eq!(errors.jams(&next, at(30)), [], "errors have ceased");
    }
}
