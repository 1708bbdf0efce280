//! Lists the dead letters, and sends them to the raw topic again, for `samestory dead-letters`. A letter keeps the original
//! bytes, key and headers, so it can be replayed once its cause is gone: a fixed decoder, a raised limit, a registered
//! schema.

use rdkafka::message::{Header, OwnedHeaders};

use crate::config::Config;
use crate::kafka::turn::record::Record;
use samestory_engine::model::EventTime;

use super::produce::Sender;
use super::scan::{ScanError, Scanner, broker_error, header, source};

const PREFIX: &str = "__samestory.errors.";
/// On a raw record that was replayed: the dead letter that it comes from.
const REPLAYED: &str = "samestory-replayed";

/// Which dead letters.
#[derive(Clone, Debug, Default)]
pub struct DeadLetterFilter {
    /// Only with one of these reasons; any if empty.
    pub reasons: Vec<String>,
    /// Only at these partitions and offsets of the dead-letter topic; any if empty.
    pub at: Vec<(i32, i64)>,
    /// Only with this timestamp or a later one.
    pub since: Option<EventTime>,
    /// Only with this key.
    pub key: Option<String>,
}

/// A dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDeadLetter {
    /// Its partition in the dead-letter topic.
    pub partition: i32,
    /// Its offset in the dead-letter topic.
    pub offset: i64,
    /// Its timestamp: the raw record's.
    pub time: Option<EventTime>,
    /// The original key, as text.
    pub key: Option<String>,
    /// Bytes of the original value; `None` for a tombstone, or if it was too large to be copied.
    pub bytes: Option<usize>,
    /// The reason, for example `no-body`.
    pub reason: String,
    /// The step that failed.
    pub stage: String,
    /// The explanation.
    pub message: String,
    /// Topic, partition and offset of the record that it copies.
    pub from: Option<(String, i32, i64)>,
    /// Whether value, key or headers were too large to be copied, so that it cannot be replayed.
    pub is_incomplete: bool,
}

impl StoredDeadLetter {
    fn from_record(partition: i32, record: &Record) -> StoredDeadLetter {
        let text = |suffix: &str| header(record, &format!("{PREFIX}{suffix}")).unwrap_or_default().to_owned();
        let has = |suffix: &str| header(record, &format!("{PREFIX}{suffix}")).is_some();
        StoredDeadLetter {
            partition,
            offset: record.offset,
            time: record.time,
            key: record.key.as_deref().map(|key| String::from_utf8_lossy(key).into_owned()),
            bytes: record.value.as_ref().map(Vec::len),
            reason: text("exception.class.name"),
            stage: text("stage"),
            message: text("exception.message"),
            from: source(record, PREFIX),
            is_incomplete: has("value.dropped.bytes") || has("headers.dropped"),
        }
    }
}

impl DeadLetterFilter {
    fn takes(&self, letter: &StoredDeadLetter) -> bool {
        (self.reasons.is_empty() || self.reasons.contains(&letter.reason))
            && (self.at.is_empty() || self.at.contains(&(letter.partition, letter.offset)))
            && self.since.is_none_or(|since| letter.time.is_some_and(|time| time >= since))
            && self.key.as_ref().is_none_or(|key| letter.key.as_ref() == Some(key))
    }
}

/// Passes the committed dead letters that the filter takes to `visit`, in order within a partition.
///
/// # Errors
/// The topic cannot be read.
pub fn list(
    config: &Config,
    filter: &DeadLetterFilter,
    mut visit: impl FnMut(&StoredDeadLetter),
) -> Result<(), ScanError> {
    let scanner = Scanner::new(&config.bus, "samestory-dead-letters")?;
    scanner.read_all(&config.bus.topics.dead_letter, |partition, record| {
        let letter = StoredDeadLetter::from_record(partition, &record);
        if filter.takes(&letter) {
            visit(&letter);
        }
        Ok(())
    })
}

/// What a replay did, or would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Letters sent to the raw topic.
    pub sent: u64,
    /// Letters whose bytes were too large to be copied: only their source has them.
    pub incomplete: u64,
    /// Letters that do not come from the raw topic: a routed batch that could not be read.
    pub from_elsewhere: u64,
}

/// Sends dead letters to the raw topic again: the same bytes, key, headers, timestamp and partition, with a header that
/// names the letter.
///
/// # Errors
/// The topic cannot be read, or a record cannot be written.
pub fn replay(
    config: &Config,
    filter: &DeadLetterFilter,
    dry_run: bool,
    mut visit: impl FnMut(&StoredDeadLetter, bool),
) -> Result<Replayed, ScanError> {
    let (bus, mut done) = (&config.bus, Replayed::default());
    let scanner = Scanner::new(bus, "samestory-dead-letters")?;
    let broker = |error| broker_error(bus, error);
    let sender = Sender::new(bus, &bus.topics.raw).map_err(broker)?;
    scanner.read_all(&bus.topics.dead_letter, |partition, record| {
        let letter = StoredDeadLetter::from_record(partition, &record);
        if !filter.takes(&letter) {
            return Ok(());
        }
        let home = letter.from.as_ref().filter(|(topic, _, _)| *topic == bus.topics.raw);
        let (counter, sends) = match home {
            None => (&mut done.from_elsewhere, false),
            Some(_) if letter.is_incomplete => (&mut done.incomplete, false),
            Some(_) => (&mut done.sent, true),
        };
        *counter += 1;
        visit(&letter, sends);
        let Some(&(_, home, _)) = home.filter(|_| sends && !dry_run) else { return Ok(()) };
        let mut headers = OwnedHeaders::new_with_capacity(record.headers.len() + 1);
        for (key, value) in record.headers.iter().filter(|(name, _)| !name.starts_with(PREFIX)) {
            headers = headers.insert(Header { key, value: value.as_deref() });
        }
        let from = format!("{}/{partition}/{}", bus.topics.dead_letter, record.offset);
        headers = headers.insert(Header { key: REPLAYED, value: Some(&from) });
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        sender.send_to(Some(home), key, value, record.time, Some(headers)).map_err(broker)
    })?;
    sender.finish().map_err(broker)?;
    Ok(done)
}
