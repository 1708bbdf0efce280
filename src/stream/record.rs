//! A record as it was read, and one as it is to be sent: plain values, apart from the client library.

use std::collections::BTreeMap;

use crate::model::{Cut, EventTime, Position};

/// Headers in their order; a name may come twice.
pub(super) type Headers = Vec<(String, Option<Vec<u8>>)>;

/// A record as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) offset: i64,
    /// The leader epoch under which it was written, where the broker says.
    pub(super) leader_epoch: Option<i32>,
    /// Absent only where a producer of long ago wrote none.
    pub(super) time: Option<EventTime>,
    /// When the broker appended it, where the topic has `message.timestamp.type=LogAppendTime`.
    pub(super) log_time: Option<EventTime>,
    pub(super) key: Option<Vec<u8>>,
    pub(super) value: Option<Vec<u8>>,
    pub(super) headers: Headers,
}

impl Record {
    pub(super) fn bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + length(value)).sum();
        length(&self.key) + length(&self.value) + headers
    }

    pub(super) fn position(&self, topic: &str, partition: i32) -> Position {
        Position::Topic { topic: Cut::new(topic), partition, offset: self.offset }
    }
}

/// By partition, the offsets of a batch at which a leader epoch begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Epochs(BTreeMap<i32, Vec<(i64, i32)>>);

impl Epochs {
    pub(super) fn of(records: &BTreeMap<i32, Vec<Record>>) -> Epochs {
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
    pub(super) fn before(&self, partition: i32, next: i64) -> Option<i32> {
        let begins = self.0.get(&partition)?;
        begins.iter().rev().find(|(offset, _)| *offset < next).map(|(_, epoch)| *epoch)
    }
}

/// A record to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outgoing<'a> {
    pub(super) topic: &'a str,
    /// Chosen by the key where it is not given.
    pub(super) partition: Option<i32>,
    pub(super) key: Option<Vec<u8>>,
    pub(super) value: Option<Vec<u8>>,
    pub(super) headers: Headers,
    /// When it is sent, where nothing is given.
    pub(super) time: Option<EventTime>,
}

impl Outgoing<'_> {
    /// About what the record takes of the limit that brokers and topics set.
    pub(super) fn bytes(&self) -> usize {
        const FRAME: usize = 128;
        const HEADER: usize = 10;
        let headers = self.headers.iter().map(|(name, value)| HEADER + name.len() + length(value));
        FRAME + length(&self.key) + length(&self.value) + headers.sum::<usize>()
    }
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
