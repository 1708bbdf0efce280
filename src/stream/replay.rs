//! What one undisturbed process would have said about a partition's records, for tests to compare with. Record by
//! record, on a store in memory: no batches, no broker, no RocksDB.

use std::collections::BTreeMap;

use crate::config::{Config, Mode};
use crate::detect::Engine;
use crate::model::EventTime;
use crate::store::{Ahead, Committed, Memory, Row, Store, View};

use super::intake::Intake;
use super::outgoing::{Original, Wire, Writer};
use super::record::Record;

/// A record of the input, as a bystander read it.
#[derive(Clone, Debug, Default)]
pub struct Read {
    /// Its offset.
    pub offset: i64,
    /// Its time.
    pub time: Option<i64>,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value.
    pub value: Option<Vec<u8>>,
    /// Its headers.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

/// A record that should have gone out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sent {
    /// Where to.
    pub topic: String,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value.
    pub value: Option<Vec<u8>>,
    /// Its headers.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

/// What should have gone out, the changelog apart, and what the state should be.
///
/// # Errors
/// The records cannot be read.
pub fn replay(
    config: &Config,
    partition: i32,
    partitions: i32,
    records: Vec<Read>,
) -> Result<(Vec<Sent>, Vec<Row>), String> {
    let intake = match config.bus.mode {
        Mode::Direct => Intake::raw(config, None),
        Mode::Routed => Intake::routed(config, partitions),
    };
    let engine = Engine::new(config.engine.clone());
    let writer = Writer { topics: config.bus.topics.clone(), form: config.bus.value, wire: Wire::Json };
    let mut store = Memory::new(config.postings.clone(), Ahead::Changelog { partition });
    let mut sent = Vec::new();
    for read in records {
        let Read { offset, time, key, value, headers } = read;
        let record = Record { offset, time: time.map(EventTime::from_millis), key, value, headers };
        let mut records = [record];
        let (batch, places) =
            intake.batch(partition, &mut records, offset + 1).map_err(|error| error.to_string())?;
        let plan = engine.plan(&store, batch).map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        for (decided, (_, placed)) in plan.decided.iter().zip(places) {
            writer.decided(decided, Original { record: &records[0], placed }, &mut out);
        }
        sent.extend(out.into_iter().map(|out| Sent {
            topic: out.topic.to_owned(),
            key: out.key,
            value: out.value,
            headers: out.headers,
        }));
        let proof = Committed::attest(BTreeMap::from([(partition, 0)]));
        store.apply(&plan.changes, &proof).map_err(|error| error.to_string())?;
    }
    let dump = store.dump().map_err(|error| error.to_string())?;
    Ok((sent, dump))
}
