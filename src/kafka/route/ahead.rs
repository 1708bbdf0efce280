//! Decodes the records of the next batch while the transaction of this one commits.
//!
//! [`super::decode`] asks it before it decodes. It is only a cache: decoding is a pure function of a record, so a record that
//! was not decoded ahead, or that differs from the copy that was, is decoded when its batch is planned.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};

use rayon::ThreadPool;
use rayon::prelude::*;

use super::decode::{Decoded, RECORDS_PER_THREAD};
use crate::kafka::turn::record::Record;
use samestory_engine::model::Position;

/// A record, where it was read, and what it was decoded to.
type DecodedRecord = (Record, Position, Decoded);

/// Records that were decoded ahead, or are being decoded.
#[derive(Debug, Default)]
pub(crate) struct DecodedAhead(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    running: Option<Receiver<Vec<DecodedRecord>>>,
    /// By partition and offset.
    ready: HashMap<(i32, i64), DecodedRecord>,
}

/// A copy of a decoder begins with nothing decoded.
impl Clone for DecodedAhead {
    fn clone(&self) -> DecodedAhead {
        DecodedAhead::default()
    }
}

fn place(position: &Position) -> Option<(i32, i64)> {
    match position {
        Position::Topic { partition, offset, .. } => Some((*partition, *offset)),
        _ => None,
    }
}

impl DecodedAhead {
    /// Starts to decode copies of records, and forgets those that were decoded earlier.
    pub(crate) fn start(
        &self,
        pool: &ThreadPool,
        records: Vec<(Record, Position)>,
        decode: impl Fn(&Record, &Position) -> Decoded + Send + Sync + 'static,
    ) {
        let (done, running) = sync_channel(1);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            State { running: Some(running), ready: HashMap::new() };
        pool.spawn(move || {
            let decode = |(record, position): (Record, Position)| {
                let decoded = decode(&record, &position);
                (record, position, decoded)
            };
            let decoded = records.into_par_iter().with_min_len(RECORDS_PER_THREAD).map(decode).collect();
            // Nobody waits any more: the worker has dropped its decoder.
            let _sent = done.send(decoded);
        });
    }

    /// What these records were decoded to, for those that were. Waits for what is being decoded.
    pub(crate) fn take(
        &self,
        records: &[Record],
        position: impl Fn(&Record) -> Position,
    ) -> Vec<Option<Decoded>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A thread that panicked has sent nothing.
        let decoded = state.running.take().and_then(|running| running.recv().ok()).unwrap_or_default();
        let by_place = |record: DecodedRecord| Some((place(&record.1)?, record));
        state.ready.extend(decoded.into_iter().filter_map(by_place));
        if state.ready.is_empty() {
            return records.iter().map(|_| None).collect();
        }
        let decoded = |record: &Record| {
            let position = position(record);
            let (copy, copied_from, decoded) = state.ready.remove(&place(&position)?)?;
            (copy == *record && copied_from == position).then_some(decoded)
        };
        records.iter().map(decoded).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::ThreadPoolBuilder;
    use samestory_engine::engine::Incoming;
    use samestory_engine::model::{ArticleId, BoundedStr};

    fn position(topic: &str) -> impl Fn(&Record) -> Position + '_ {
        move |record| Position::Topic { topic: BoundedStr::new(topic), partition: 0, offset: record.offset }
    }

    fn record(offset: i64, value: &str) -> Record {
        Record { offset, value: Some(value.into()), ..Record::default() }
    }

    fn ahead(records: &[Record]) -> DecodedAhead {
        let (pool, ahead) =
            (ThreadPoolBuilder::new().num_threads(2).build().unwrap(), DecodedAhead::default());
        let copies = records.iter().map(|record| (record.clone(), position("raw")(record))).collect();
        ahead.start(&pool, copies, |record, _| {
            let id = record.value.clone().map(|value| String::from_utf8(value).unwrap()).unwrap();
            (Incoming::Delete(ArticleId::new(&id).unwrap()), None)
        });
        ahead
    }

    fn found(decoded: Vec<Option<Decoded>>) -> Vec<Option<String>> {
        let id = |(incoming, _): Decoded| match incoming {
            Incoming::Delete(id) => id.as_str().to_owned(),
            other => panic!("{other:?}"),
        };
        decoded.into_iter().map(|decoded| decoded.map(id)).collect()
    }

    #[test]
    fn a_record_is_found_once_by_its_place() {
        let all = [record(7, "a"), record(8, "b"), record(9, "c")];
        let ahead = ahead(&all);
        let some = |id: &str| Some(id.to_owned());
        assert_eq!(found(ahead.take(&[record(9, "c"), record(3, "x")], position("raw"))), [some("c"), None]);
        assert_eq!(found(ahead.take(&all, position("raw"))), [some("a"), some("b"), None]);
    }

    // The same offset holds something else: the topic was created again, or an unclean leader lost the record.
    #[test]
    fn a_record_that_differs_from_its_copy_is_not_found() {
        assert_eq!(found(ahead(&[record(7, "a")]).take(&[record(7, "other")], position("raw"))), [None]);
        assert_eq!(found(ahead(&[record(7, "a")]).take(&[record(7, "a")], position("elsewhere"))), [None]);
        let mut condemned = record(7, "a");
        condemned.time = Some(samestory_engine::EventTime::from_millis(5));
        assert_eq!(found(ahead(&[record(7, "a")]).take(&[condemned], position("raw"))), [None]);
    }
}
