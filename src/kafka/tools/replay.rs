//! The reference that tests compare match with: what one undisturbed process publishes for a partition's records. It
//! works record by record on a store in memory, without batches, broker or RocksDB. `route_model` is the reference for
//! route.

use std::borrow::Cow;
use std::sync::Arc;

use crate::config::{Config, Mode};
use crate::formats::registry::Registry;
use samestory_engine::Deduplicator;
use samestory_engine::index::{BusPosition, Memory, Row, Store, TopicName, View};
use samestory_engine::model::EventTime;

use crate::kafka::admin::limits::Limits;
use crate::kafka::admin::values;
use crate::kafka::matching::intake::{BatchReader, ItemOrigin};
use crate::kafka::matching::outgoing::{Original, OutputEncoding, Writer};
use crate::kafka::turn::record::{Copied, Fate, OutgoingHeader, Record};

/// In the message of a dead letter whose article was routed, but does not fit into its output.
pub const TOO_LARGE_FOR_OUTPUT: &str = crate::kafka::matching::outgoing::TOO_LARGE_FOR_OUTPUT;

/// A record of the input topic, as an ordinary consumer read it.
#[derive(Clone, Debug, Default)]
pub struct Read {
    /// Offset in the input topic.
    pub offset: i64,
    /// Record time in milliseconds since 1970.
    pub time: Option<i64>,
    /// The record's key.
    pub key: Option<Vec<u8>>,
    /// The record's value; `None` for a tombstone.
    pub value: Option<Vec<u8>>,
    /// Headers in order.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// True if a topic refused the output of this record, so that it became a dead letter.
    pub refused: bool,
}

impl From<Read> for Record {
    fn from(read: Read) -> Record {
        let Read { offset, time, key, value, headers, refused } = read;
        let fate = refused.then(|| Fate::Undeliverable { why: String::new(), copy: Copied::Whole });
        let time = time.map(EventTime::from_millis);
        Record { offset, time, key, value, headers, fate, ..Record::default() }
    }
}

/// A record that the stage must publish.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sent {
    /// The destination topic.
    pub topic: String,
    /// The partition of a relocation notice; other records are partitioned by key.
    pub partition: Option<i32>,
    /// The record's key.
    pub key: Option<Vec<u8>>,
    /// The record's value; `None` for a tombstone.
    pub value: Option<Vec<u8>>,
    /// Headers in order.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// Record time in milliseconds since 1970; `None` if it is the time of sending.
    pub time: Option<i64>,
}

/// Replays the records of a partition. Returns everything that must be published, except the changelog, and the final
/// state.
///
/// # Errors
/// A record cannot be read.
pub fn replay(
    config: &Config,
    partition: i32,
    partitions: i32,
    records: Vec<Read>,
) -> Result<(Vec<Sent>, Vec<Row>), String> {
    let registry = values::registry(config).map_err(|error| error.to_string())?;
    let mut replay = Replay::reading(config, partition, partitions, registry.as_ref());
    let mut sent = Vec::new();
    for read in records {
        sent.extend(replay.take(read)?);
    }
    Ok((sent, replay.state()?))
}

fn owned_header((name, value): OutgoingHeader<'_>) -> (String, Option<Vec<u8>>) {
    (name.into_owned(), value.map(Cow::into_owned))
}

/// One undisturbed process with one partition, fed record by record.
pub struct Replay {
    application: String,
    partition: i32,
    intake: BatchReader,
    dedup: Deduplicator,
    writer: Writer,
}

impl Replay {
    /// Starts with an empty state, without a schema registry.
    pub fn new(config: &Config, partition: i32, partitions: i32) -> Replay {
        Replay::reading(config, partition, partitions, None)
    }

    fn reading(config: &Config, partition: i32, partitions: i32, registry: Option<&Arc<Registry>>) -> Replay {
        let intake = match config.bus.mode {
            Mode::Direct => BatchReader::raw(config, partitions, registry),
            Mode::Routed => BatchReader::routed(config, partitions),
        };
        let writer = Writer {
            topics: config.bus.topics.clone(),
            form: config.bus.value,
            wire: OutputEncoding::Json,
            limits: Arc::new(Limits::of_settings(&config.bus.topics)),
        };
        let dedup = Deduplicator::in_memory(config.options());
        Replay { application: config.bus.app.clone(), partition, intake, dedup, writer }
    }

    /// Judges the next record. Returns the records that must be published for it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn take(&mut self, read: Read) -> Result<Vec<Sent>, String> {
        let (next, partition) = (u64::try_from(read.offset + 1).unwrap_or(0), self.partition);
        self.take_record(read.into(), next, partition)
    }

    fn take_record(&mut self, record: Record, next: u64, partition: i32) -> Result<Vec<Sent>, String> {
        let mut records = [record];
        let silent = self.intake.is_silent(&records[0]);
        let progress = self.dedup.store().progress().map_err(|error| error.to_string())?;
        self.intake.load_schemas(records.iter())?;
        let read = self.intake.batch(partition, &mut records, &progress);
        self.intake.evict_schemas();
        let mut read = read.map_err(|error| error.to_string())?;
        self.writer.fit_all(&mut read.items, &mut records);
        // Topic ids and leader epochs come from a broker, which a replay does not have.
        let (batch, origins) = read.into_batch(BusPosition {
            application: TopicName::new(&self.application),
            cluster: None,
            changelog: None,
            topic: TopicName::new(self.intake.topic()),
            topic_id: None,
            partition,
            next,
            leader_epoch: None,
        });
        let plan = self.dedup.plan(batch).map_err(|error| error.to_string())?.0;
        let mut out = Vec::new();
        for (decided, ItemOrigin { slice, .. }) in origins.of_decisions(&plan).filter(|_| !silent) {
            self.writer.decided(decided, Original { record: &records[0], slice }, &mut out);
        }
        let sent = out.into_iter().map(|out| Sent {
            topic: out.topic.to_owned(),
            partition: out.partition,
            key: out.key.map(Cow::into_owned),
            value: out.value.map(Cow::into_owned),
            headers: out.headers.into_iter().map(owned_header).collect(),
            time: out.time.map(EventTime::millis),
        });
        let sent = sent.collect();
        // Applied change by change, as a restore applies the changelog.
        let store = self.dedup.store_mut();
        store.apply_own_changes(&plan.changes).map_err(|error| error.to_string())?;
        Ok(sent)
    }

    /// The current state.
    pub fn store(&self) -> &Memory {
        self.dedup.store()
    }

    /// All rows of the current state.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn state(&self) -> Result<Vec<Row>, String> {
        self.dedup.store().dump().map_err(|error| error.to_string())
    }
}
