//! A record as it was read, and one as it is to be sent: plain values, apart from the client library.

use std::collections::BTreeMap;

use samestory_engine::engine::Incoming;
use samestory_engine::model::{BoundedStr, EventTime, Position};
use samestory_engine::model::{DeadLetter, DeadLetterReason};

/// Headers in their order; a name may come twice.
pub(crate) type Headers = Vec<(String, Option<Vec<u8>>)>;

/// About what a header takes beside its name and value.
const HEADER: usize = 10;

/// A record as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) offset: i64,
    /// The leader epoch under which it was written, where the broker says.
    pub(crate) leader_epoch: Option<i32>,
    /// Absent only where a producer of long ago wrote none.
    pub(crate) time: Option<EventTime>,
    /// When the broker appended it, where the topic has `message.timestamp.type=LogAppendTime`.
    pub(crate) log_time: Option<EventTime>,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Headers,
    /// Bytes of headers that came in and do not go out: with them the record would be too large.
    pub(crate) headers_dropped: usize,
    /// The record is a dead letter whatever it says.
    pub(crate) fate: Option<Fate>,
}

/// Why a record is a dead letter before anybody looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The broker refuses what would go out for it.
    Undeliverable { why: String, copy: Copied },
    /// It stands for a batch of the topic that cannot be read and is skipped: offsets from this one to the record's own.
    Unreadable { first: i64, why: String },
    /// Its value is so large that it was not even copied.
    Oversized { bytes: usize, most: usize },
}

/// How much of a record its dead letter repeats. Each step is tried when the broker refuses the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Copied {
    /// As much as fits.
    Whole,
    WithoutValue,
    /// Neither value nor key nor the headers that came in.
    Nothing,
}

impl Copied {
    /// The next smaller copy; nothing where there is none.
    pub(crate) fn smaller(self) -> Option<Copied> {
        match self {
            Copied::Whole => Some(Copied::WithoutValue),
            Copied::WithoutValue => Some(Copied::Nothing),
            Copied::Nothing => None,
        }
    }
}

impl Record {
    pub(crate) fn bytes(&self) -> usize {
        length(&self.key) + length(&self.value) + weight(&self.headers)
    }

    pub(crate) fn position(&self, topic: &str, partition: i32) -> Position {
        Position::Topic { topic: BoundedStr::new(topic), partition, offset: self.offset }
    }

    /// The headers that came in do not go out.
    pub(crate) fn drop_headers(&mut self) {
        self.headers_dropped += weight(&self.headers);
        self.headers.clear();
    }

    /// The dead letter that this record is by its fate, read at this position.
    pub(crate) fn dead_letter(&self, position: &Position) -> Option<DeadLetter> {
        let mut position = position.clone();
        let (reason, message) = match self.fate.as_ref()? {
            Fate::Undeliverable { why, .. } => (DeadLetterReason::Undeliverable, why.clone()),
            Fate::Unreadable { first, why } => {
                if let Position::Topic { offset, .. } = &mut position {
                    *offset = *first;
                }
                let message =
                    format!("a batch that cannot be read, offsets {first} to {}: {why}", self.offset);
                (DeadLetterReason::Unreadable, message)
            }
            Fate::Oversized { bytes, most } => {
                (DeadLetterReason::TooLarge, format!("a value of {bytes} bytes; at most {most} are read"))
            }
        };
        Some(DeadLetter { position, reason, message })
    }

    /// What the record says, unless its fate says otherwise. Forgets always count: they are not the record's own.
    pub(crate) fn unless_dead(&self, incoming: Incoming, position: &Position) -> Incoming {
        match (self.dead_letter(position), incoming) {
            (Some(letter), Incoming::Article(article)) => {
                Incoming::Undelivered { id: article.id, language: article.language, letter }
            }
            (Some(letter), Incoming::Delete(_)) => Incoming::DeadLetter(letter),
            (_, incoming) => incoming,
        }
    }

    pub(crate) fn copied(&self) -> Copied {
        match &self.fate {
            Some(Fate::Undeliverable { copy, .. }) => *copy,
            Some(Fate::Unreadable { .. } | Fate::Oversized { .. }) | None => Copied::Whole,
        }
    }

    /// Bytes of the value that were not copied when the record was read.
    pub(crate) fn not_copied(&self) -> usize {
        match self.fate {
            Some(Fate::Oversized { bytes, .. }) => bytes,
            _ => 0,
        }
    }
}

/// By partition, the offsets of a batch at which a leader epoch begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Epochs(BTreeMap<i32, Vec<(i64, i32)>>);

impl Epochs {
    pub(crate) fn of(records: &BTreeMap<i32, Vec<Record>>) -> Epochs {
        let of_one = |records: &Vec<Record>| {
            let mut begins: Vec<(i64, i32)> =
                records.iter().filter_map(|record| Some((record.offset, record.leader_epoch?))).collect();
            begins.dedup_by_key(|(_, epoch)| *epoch);
            begins
        };
        Epochs(records.iter().map(|(&partition, records)| (partition, of_one(records))).collect())
    }

    /// The leader epoch of the last record before `next`. It is committed with that offset, so that a log that was cut
    /// and written again can be told from the one that was read (KIP-320).
    pub(crate) fn before(&self, partition: i32, next: i64) -> Option<i32> {
        let begins = self.0.get(&partition)?;
        begins.iter().rev().find(|(offset, _)| *offset < next).map(|(_, epoch)| *epoch)
    }
}

/// A record to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outgoing<'a> {
    pub(crate) topic: &'a str,
    /// Chosen by the key where it is not given.
    pub(crate) partition: Option<i32>,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Headers,
    /// When it is sent, where nothing is given.
    pub(crate) time: Option<EventTime>,
}

impl Outgoing<'_> {
    /// At least what the record takes of the limit that brokers and topics set: a batch of one record is 61 bytes, the
    /// record's own lengths up to 36.
    pub(crate) fn bytes(&self) -> usize {
        const FRAME: usize = 128;
        FRAME + length(&self.key) + length(&self.value) + weight(&self.headers)
    }
}

/// What headers take, with their lengths.
pub(crate) fn weight(headers: &Headers) -> usize {
    headers.iter().map(|(name, value)| HEADER + name.len() + length(value)).sum()
}

fn length(bytes: &Option<Vec<u8>>) -> usize {
    bytes.as_ref().map_or(0, Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epoch_of_a_position_is_that_of_the_record_before_it() {
        let record = |(offset, epoch)| Record { offset, leader_epoch: Some(epoch), ..Record::default() };
        let records = [(3, 1), (4, 1), (7, 2), (9, 5)].map(record).to_vec();
        let epochs = Epochs::of(&BTreeMap::from([(2, records)]));
        let before = |next| epochs.before(2, next);
        assert_eq!(
            [3, 4, 5, 7, 8, 9, 10].map(before),
            [None, Some(1), Some(1), Some(1), Some(2), Some(2), Some(5)]
        );
        assert_eq!(epochs.before(1, 10), None);
    }
}
