//! Unreadable batches of the input: a compression bomb, a codec that librdkafka does not support, damaged bytes.
//!
//! librdkafka fetches such a batch repeatedly and reports an error each time, without naming the partition.
//! [`ReadErrors`] finds the partition from the statistics: it has records to read and makes no progress. Before the
//! worker skips a batch, a [`Probe`] reads that partition alone, which confirms the error and finds the end of the
//! batch.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

use crate::kafka::client as clients;

/// Read errors are over if none was reported for this long; librdkafka retries twice a second.
const OVER: Duration = Duration::from_secs(10);
/// A partition that makes no progress for this long while errors are reported is jammed.
const STILL: Duration = Duration::from_secs(3);
/// Time limit for reading at one offset.
const ONE_OFFSET: Duration = Duration::from_secs(10);
/// Time limit for the whole search for the end of a batch.
const SEARCH: Duration = Duration::from_secs(60);

/// True if the error is about the content of a batch.
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

/// The fetch progress of a partition, from librdkafka's statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fetching {
    /// The offset to fetch next.
    pub(crate) next: i64,
    /// Everything before this offset was polled, including markers and aborted records.
    pub(crate) polled: i64,
    /// The last stable offset.
    pub(crate) end: i64,
}

/// A partition that is stuck at an unreadable batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jam {
    pub(crate) partition: i32,
    /// The first offset that cannot be read.
    pub(crate) offset: i64,
    pub(crate) since: Instant,
}

/// Tracks reported read errors, and the partitions that make no progress meanwhile.
#[derive(Debug, Default)]
pub(crate) struct ReadErrors {
    last: Option<(Instant, String)>,
    /// By partition, the offset where it is stuck, and since when.
    still: BTreeMap<i32, (i64, Instant)>,
    /// Since when a jammed partition has delivered no record. Skipping a batch does not reset it.
    jammed: BTreeMap<i32, Instant>,
}

impl ReadErrors {
    /// librdkafka reported a read error.
    pub(crate) fn reported(&mut self, error: &KafkaError, now: Instant) {
        self.last = Some((now, error.to_string()));
    }

    /// The last reported error.
    pub(crate) fn last_error(&self) -> &str {
        self.last.as_ref().map_or("", |(_, why)| why)
    }

    /// A record of the partition was read, so it is not jammed.
    pub(crate) fn read(&mut self, partition: i32) {
        if self.last.is_some() {
            self.jammed.remove(&partition);
            self.still.remove(&partition);
        }
    }

    /// The partitions that are jammed now.
    pub(crate) fn jams(&mut self, fetching: &BTreeMap<i32, Fetching>, now: Instant) -> Vec<Jam> {
        let recent = |reported: &Instant| now.duration_since(*reported) < OVER;
        let Some((reported, _)) = self.last.as_ref().filter(|(reported, _)| recent(reported)) else {
            self.still.clear();
            self.jammed.clear();
            return Vec::new();
        };
        let reported = *reported;
        let has_more = |at: &Fetching| at.next >= 0 && at.end > at.next;
        self.still.retain(|partition, (next, _)| {
            fetching.get(partition).is_some_and(|at| has_more(at) && at.next == *next)
        });
        for (&partition, at) in fetching.iter().filter(|(_, at)| has_more(at)) {
            self.still.entry(partition).or_insert((at.next, now));
        }
        let still = self.still.iter().filter(|(_, (_, since))| {
            now.duration_since(*since) >= STILL && reported.duration_since(*since) > Duration::ZERO
        });
        let jams = still.map(|(&partition, &(offset, since))| {
            let since = *self.jammed.entry(partition).or_insert(since);
            Jam { partition, offset, since }
        });
        jams.collect()
    }
}

/// The result of reading at one offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbeResult {
    /// A record was read, or the partition ends here.
    Readable,
    /// The offset lies in an unreadable batch, which begins at this offset.
    Bad(i64),
}

/// A consumer of one partition that finds the end of an unreadable batch.
pub(crate) struct Probe {
    consumer: BaseConsumer<ErrorReason>,
    topic: String,
    partition: i32,
    deadline: Instant,
}

impl Probe {
    /// `config` must have the same limits as the consumer that failed.
    pub(crate) fn new(config: &ClientConfig, topic: &str, partition: i32) -> Result<Probe, KafkaError> {
        let consumer = config.create_with_context(ErrorReason::default())?;
        let deadline = Instant::now() + SEARCH;
        Ok(Probe { consumer, topic: topic.to_owned(), partition, deadline })
    }

    /// The first offset after the unreadable batch that holds `from`, or `None` if that offset can be read after all.
    ///
    /// # Errors
    /// The broker does not answer in time, or librdkafka does not say which batch it cannot read.
    pub(crate) fn end_of_batch(&self, from: i64) -> Result<Option<i64>, KafkaError> {
        let (_, high) = self.consumer.fetch_watermarks(&self.topic, self.partition, clients::PATIENCE)?;
        search(from, high, |offset| self.read_at(offset))
    }

    fn read_at(&self, offset: i64) -> Result<ProbeResult, KafkaError> {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.topic, self.partition, Offset::Offset(offset))?;
        self.consumer.assign(&list)?;
        let deadline = (Instant::now() + ONE_OFFSET).min(self.deadline);
        while Instant::now() < deadline {
            match self.consumer.poll(Duration::from_millis(100)) {
                Some(Ok(message)) if message.offset() >= offset => return Ok(ProbeResult::Readable),
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(ProbeResult::Readable),
                Some(Err(error)) if is_read_error(&error) => {
                    let reason = self.consumer.context().take();
                    return offset_in(&reason).map(ProbeResult::Bad).ok_or(error);
                }
                Some(Ok(_) | Err(_)) | None => {}
            }
        }
        Err(KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut))
    }
}

/// Finds the end of the unreadable batch at `from` by a galloping, then a binary search up to `high`. An offset belongs
/// to the batch if it reports the same first offset, so a readable batch between two bad ones is never skipped.
fn search<E>(
    from: i64,
    high: i64,
    mut read_at: impl FnMut(i64) -> Result<ProbeResult, E>,
) -> Result<Option<i64>, E> {
    let this_batch = read_at(from)?;
    if this_batch == ProbeResult::Readable {
        return Ok(None);
    }
    let (mut inside, mut outside, mut step) = (from, high.max(from + 1), 1);
    while inside + step < outside {
        match read_at(inside + step)? == this_batch {
            true => (inside, step) = (inside + step, step * 2),
            false => outside = inside + step,
        }
    }
    while outside - inside > 1 {
        let middle = inside + (outside - inside) / 2;
        match read_at(middle)? == this_batch {
            true => inside = middle,
            false => outside = middle,
        }
    }
    Ok(Some(outside))
}

/// The offset that librdkafka names in a reason such as "Decompression (codec 0x4) of message at 17 of 3000 bytes
/// failed".
fn offset_in(reason: &str) -> Option<i64> {
    let (_, after) = reason.split_once(" at ")?;
    let after = after.strip_prefix("offset ").unwrap_or(after);
    let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    after.get(..digits)?.parse().ok()
}

/// A consumer context that keeps the reason of the last error: the error itself has no offset.
#[derive(Default)]
pub(crate) struct ErrorReason(Mutex<String>);

impl ErrorReason {
    fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientContext for ErrorReason {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        clients::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "probing an unreadable batch");
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reason.to_owned();
    }
}

impl ConsumerContext for ErrorReason {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of the batch at `from`, and the number of reads. A batch is its first offset, its last, and whether it
    /// is readable.
    fn end(batches: &[(i64, i64, bool)], from: i64) -> (Option<i64>, usize) {
        let mut reads = 0;
        let high = batches.last().map_or(0, |(_, last, _)| last + 1);
        let read_at = |offset: i64| {
            reads += 1;
            let batch = batches.iter().find(|(first, last, _)| (*first..=*last).contains(&offset));
            Ok::<_, ()>(match batch {
                Some(&(first, _, false)) => ProbeResult::Bad(first),
                _ => ProbeResult::Readable,
            })
        };
        (search(from, high, read_at).unwrap(), reads)
    }

    #[test]
    fn exactly_one_batch_is_skipped_whatever_follows_it() {
        assert_eq!(end(&[(0, 9, true)], 3).0, None);
        assert_eq!(end(&[(0, 0, false)], 0).0, Some(1));
        assert_eq!(end(&[(0, 9, false), (10, 12, true), (13, 20, false), (21, 90, true)], 0).0, Some(10));
        assert_eq!(end(&[(0, 9, false), (10, 20, false)], 4).0, Some(10));
        let (next, reads) = end(&[(0, 999_999, false), (1_000_000, 1_000_000, true)], 17);
        assert_eq!(next, Some(1_000_000));
        assert!(reads < 50, "{reads}");
    }

    #[test]
    fn librdkafka_names_the_offset_in_the_reason() {
        let reason =
            "Decompression (codec 0x4) of message at 17 of 3000 bytes failed: Local: Invalid compressed data";
        assert_eq!(offset_in(reason), Some(17));
        assert_eq!(offset_in("Unsupported Message(Set) MagicByte 9 at offset 1234"), Some(1234));
        assert_eq!(offset_in("something at all"), None);
        assert_eq!(offset_in(""), None);
    }

    #[test]
    fn a_partition_is_jammed_if_it_makes_no_progress_while_errors_are_reported() {
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
        assert_eq!(errors.jams(&fetching(0), at(0)), [], "no error was reported");
        errors.reported(&error, at(1));
        assert_eq!(errors.jams(&fetching(1), at(1)), []);
        errors.reported(&error, at(5));
        let jam = Jam { partition: 0, offset: 7, since: at(1) };
        assert_eq!(errors.jams(&fetching(2), at(5)), [jam]);
        // After a skip the next batch is unreadable too: it counts as the same jam, so the wait does not start over.
        let next = BTreeMap::from([(0, Fetching { next: 12, ..stuck })]);
        assert_eq!(errors.jams(&next, at(6)), []);
        errors.reported(&error, at(10));
        assert_eq!(errors.jams(&next, at(10)), [Jam { partition: 0, offset: 12, since: at(1) }]);
        errors.read(0);
        assert_eq!(errors.jams(&next, at(11)), [], "a record was read meanwhile");
        assert_eq!(errors.jams(&next, at(30)), [], "no error for a while");
    }
}
