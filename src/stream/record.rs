//! A record as it was read, and one as it is to be sent: plain values, apart from the client library.

use crate::model::{Cut, EventTime, Position};

/// Headers in their order; a name may come twice.
pub(super) type Headers = Vec<(String, Option<Vec<u8>>)>;

/// A record as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) offset: i64,
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
