//! Records as read ([`Record`]) and as sent ([`Outgoing`]): plain values without librdkafka types, so that roles plan
//! without a client. A record that is already known to be a dead letter carries that as its [`Fate`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use samestory_engine::engine::Incoming;
use samestory_engine::model::{BoundedStr, EventTime, Position};
use samestory_engine::model::{DeadLetter, DeadLetterReason};

/// Headers as read, in order; a name may occur twice.
pub(crate) type Headers = Vec<(String, Option<Vec<u8>>)>;

/// A header to send. An output has about twelve, and most names and values exist already: they are borrowed.
pub(crate) type OutgoingHeader<'a> = (Cow<'a, str>, Option<Cow<'a, [u8]>>);

/// Approximate encoding overhead of a header, beside its name and value.
const HEADER: usize = 10;

/// A record as read from a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) offset: i64,
    /// The leader epoch under which it was written, if the broker reports it.
    pub(crate) leader_epoch: Option<i32>,
    /// The record's timestamp. Absent only in message formats older than timestamps.
    pub(crate) time: Option<EventTime>,
    /// When the broker appended it, if the topic has `message.timestamp.type=LogAppendTime`.
    pub(crate) log_time: Option<EventTime>,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Headers,
    /// Bytes of incoming headers that are not copied to the output, because they would make it too large.
    pub(crate) headers_dropped: usize,
    /// Set if the record becomes a dead letter whatever its content.
    pub(crate) fate: Option<Fate>,
}

/// Why a record becomes a dead letter before it is decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The broker refuses the output that it leads to.
    Undeliverable { why: String, copy: Copied },
    /// It stands in for a skipped batch that cannot be read, from offset `first` to the record's own.
    Unreadable { first: i64, why: String },
    /// Its value is so large that it was not copied out of librdkafka's buffer.
    Oversized { bytes: usize, most: usize },
}

/// How much of a record its dead letter copies. A smaller copy is tried when the broker refuses the larger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Copied {
    /// As much as fits.
    Whole,
    WithoutValue,
    /// No value, no key and no incoming headers.
    Nothing,
}

impl Copied {
    /// The next smaller copy, if there is one.
    pub(crate) fn smaller(self) -> Option<Copied> {
        match self {
            Copied::Whole => Some(Copied::WithoutValue),
            Copied::WithoutValue => Some(Copied::Nothing),
            Copied::Nothing => None,
        }
    }
}

impl Record {
    /// A record without any content.
    pub(crate) const NOTHING: Record = Record {
        offset: 0,
        leader_epoch: None,
        time: None,
        log_time: None,
        key: None,
        value: None,
        headers: Vec::new(),
        headers_dropped: 0,
        fate: None,
    };

    pub(crate) fn bytes(&self) -> usize {
        length(&self.key) + length(&self.value) + weight(&self.headers)
    }

    pub(crate) fn position(&self, topic: &str, partition: i32) -> Position {
        Position::Topic { topic: BoundedStr::new(topic), partition, offset: self.offset }
    }

    /// Drops the incoming headers, so that they are not copied to the output.
    pub(crate) fn drop_headers(&mut self) {
        self.headers_dropped += weight(&self.headers);
        self.headers.clear();
    }

    /// The dead letter that the record's fate requires.
    pub(crate) fn dead_letter(&self, position: &Position) -> Option<DeadLetter> {
        let mut position = position.clone();
        let (reason, message) = match self.fate.as_ref()? {
            Fate::Undeliverable { why, .. } => (DeadLetterReason::Undeliverable, why.clone()),
            Fate::Unreadable { first, why } => {
                if let Position::Topic { offset, .. } = &mut position {
                    *offset = *first;
                }
                let message = format!("batch cannot be read, offsets {first} to {}: {why}", self.offset);
                (DeadLetterReason::Unreadable, message)
            }
            Fate::Oversized { bytes, most } => {
                (DeadLetterReason::TooLarge, format!("the value has {bytes} bytes; at most {most} are read"))
            }
        };
        Some(DeadLetter { position, reason, message })
    }

    /// The decoded content, or a dead letter if the fate requires one. Forgets are kept in any case: route attached
    /// them to this record, but they concern other ids.
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

    /// Size of a value that was too large to copy, otherwise 0.
    pub(crate) fn not_copied(&self) -> usize {
        match self.fate {
            Some(Fate::Oversized { bytes, .. }) => bytes,
            _ => 0,
        }
    }
}

/// The leader epochs of a batch: by partition, the offsets at which each begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Epochs(BTreeMap<i32, Vec<(i64, i32)>>);

impl Epochs {
    pub(crate) fn in_records(records: &BTreeMap<i32, Vec<Record>>) -> Epochs {
        let of_one = |records: &Vec<Record>| {
            let mut begins: Vec<(i64, i32)> =
                records.iter().filter_map(|record| Some((record.offset, record.leader_epoch?))).collect();
            begins.dedup_by_key(|(_, epoch)| *epoch);
            begins
        };
        Epochs(records.iter().map(|(&partition, records)| (partition, of_one(records))).collect())
    }

    /// The leader epoch of the last record before `next`. It is committed with that offset, so that a log which was
    /// truncated and written again can be recognised (KIP-320).
    pub(crate) fn before(&self, partition: i32, next: i64) -> Option<i32> {
        let begins = self.0.get(&partition)?;
        begins.iter().rev().find(|(offset, _)| *offset < next).map(|(_, epoch)| *epoch)
    }
}

/// A record to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outgoing<'a> {
    pub(crate) topic: &'a str,
    /// Chosen by the partitioner from the key if absent.
    pub(crate) partition: Option<i32>,
    pub(crate) key: Option<Cow<'a, [u8]>>,
    pub(crate) value: Option<Cow<'a, [u8]>>,
    pub(crate) headers: Vec<OutgoingHeader<'a>>,
    /// The time of sending if absent.
    pub(crate) time: Option<EventTime>,
}

impl Outgoing<'_> {
    /// An upper bound of the bytes that count against `max.message.bytes`: the frame of a batch with one record is 61
    /// bytes, the record's own length fields up to 36.
    pub(crate) fn bytes(&self) -> usize {
        const FRAME: usize = 128;
        FRAME + length(&self.key) + length(&self.value) + weight(&self.headers)
    }
}

/// Encoded size of headers.
pub(crate) fn weight<N: AsRef<str>, V: AsRef<[u8]>>(headers: &[(N, Option<V>)]) -> usize {
    headers.iter().map(weight_of_one).sum()
}

/// Encoded size of a header.
pub(crate) fn weight_of_one<N: AsRef<str>, V: AsRef<[u8]>>((name, value): &(N, Option<V>)) -> usize {
    HEADER + name.as_ref().len() + length(value)
}

fn length(bytes: &Option<impl AsRef<[u8]>>) -> usize {
    bytes.as_ref().map_or(0, |bytes| bytes.as_ref().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epoch_of_a_position_is_that_of_the_record_before_it() {
        let record = |(offset, epoch)| Record { offset, leader_epoch: Some(epoch), ..Record::default() };
        let records = [(3, 1), (4, 1), (7, 2), (9, 5)].map(record).to_vec();
        let epochs = Epochs::in_records(&BTreeMap::from([(2, records)]));
        let before = |next| epochs.before(2, next);
        assert_eq!(
            [3, 4, 5, 7, 8, 9, 10].map(before),
            [None, Some(1), Some(1), Some(1), Some(2), Some(2), Some(5)]
        );
        assert_eq!(epochs.before(1, 10), None);
    }
}
