//! Generations of state: which have ended, and how far each has published.
//!
//! A change of the fingerprints needs a new generation with its own groups, internal topics and state. `samestory
//! generation end` ([`end`]) writes one generation-end record per generation to the topic `samestory.generations`. Only
//! that record ends a generation: a group without members proves nothing. Every claim of a partition reads the topic. A
//! process of an ended generation refuses the partition, and the next generation publishes from the final offsets in
//! the record.

pub(crate) mod backlog;
pub mod end;
mod silence;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

use crate::config::Bus;
use crate::formats::GenerationEnd;

use crate::kafka::client as clients;
use crate::kafka::client::{PATIENCE, Quiet, Role, WorkerId};
use crate::kafka::turn::record::Record;
use crate::status::StatusBoard;

use silence::Earlier;
pub(crate) use silence::{Admitted, FOLLOW_INTERVAL};

/// Why the generation-end records cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookError {
    /// The broker failed: retry later.
    #[error(transparent)]
    Away(#[from] KafkaError),
    /// Another program wrote the record, or a newer version.
    #[error("{topic} offset {offset}: {error}; a newer version wrote it, or another program")]
    Foreign { topic: String, offset: i64, error: String },
}

/// Reads the topic of generation-end records. It has one partition with one record per generation, so it is read in
/// full.
pub(crate) struct EndLog {
    topic: String,
    app: String,
    config: ClientConfig,
    /// Created when the topic first holds a record; most applications never have a second generation.
    log: Option<BaseConsumer<Quiet>>,
    /// The watermarks of the topic when it was last read.
    read: Option<(i64, i64)>,
    ends: BTreeMap<u32, GenerationEnd>,
}

impl EndLog {
    pub(crate) fn new(bus: &Bus, worker: &WorkerId) -> EndLog {
        let mut config = clients::restorer(bus, worker);
        // Reading finishes with the end of the partition, which the broker reports in an empty response.
        config.set("fetch.wait.max.ms", "10").set("client.id", format!("{}-generations", worker.id(bus)));
        let (topic, app) = (bus.topics.generations.clone(), bus.app.clone());
        EndLog { topic, app, config, log: None, read: None, ends: BTreeMap::new() }
    }

    /// The generation-end records of this application, by generation.
    ///
    /// The surveyor reads uncommitted, so this waits for a record in an open transaction. A worker that is assigned a
    /// partition after the record was written is therefore sure to see it.
    pub(crate) fn look(
        &mut self,
        surveyor: &BaseConsumer<Quiet>,
    ) -> Result<&BTreeMap<u32, GenerationEnd>, LookError> {
        let (low, high) = surveyor.fetch_watermarks(&self.topic, 0, PATIENCE)?;
        if self.read != Some((low, high)) {
            self.ends = if low == high { BTreeMap::new() } else { self.read_all(low, high)? };
            self.read = Some((low, high));
        }
        Ok(&self.ends)
    }

    fn read_all(&mut self, low: i64, high: i64) -> Result<BTreeMap<u32, GenerationEnd>, LookError> {
        let log = match self.log.take() {
            Some(log) => log,
            None => self.config.create_with_context(Quiet)?,
        };
        let log = self.log.insert(log);
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.topic, 0, Offset::Offset(low))?;
        log.assign(&list)?;
        let (mut ends, mut next, deadline) = (BTreeMap::new(), low, Instant::now() + PATIENCE * 2);
        while next < high {
            match log.poll(Duration::from_millis(20)) {
                Some(Ok(message)) => {
                    next = message.offset() + 1;
                    let key = String::from_utf8_lossy(message.key().unwrap_or_default());
                    let Some((app, generation)) = key.rsplit_once('/') else { continue };
                    let Ok(generation) = generation.parse::<u32>() else { continue };
                    if app != self.app {
                        continue;
                    }
                    let end = message.payload().map(GenerationEnd::decode).transpose();
                    let foreign = |error| {
                        let (topic, offset) = (self.topic.clone(), message.offset());
                        LookError::Foreign { topic, offset, error }
                    };
                    match end.map_err(foreign)? {
                        Some(end) => ends.insert(generation, end),
                        None => ends.remove(&generation),
                    };
                }
                // Transaction markers follow the last records.
                Some(Err(KafkaError::PartitionEOF(_))) => next = next.max(position(log, &self.topic, 0)?),
                Some(Err(error)) => {
                    tracing::debug!(%error, topic = self.topic, "consumer error while reading generation-end records");
                }
                None => {}
            }
            if next < high && Instant::now() > deadline {
                return Err(timed_out().into());
            }
        }
        Ok(ends)
    }
}

/// The next offset that a consumer reads in a partition.
fn position(consumer: &BaseConsumer<Quiet>, topic: &str, partition: i32) -> Result<i64, KafkaError> {
    Ok(clients::offset_in(&consumer.position()?, topic, partition)?.unwrap_or(0))
}

fn timed_out() -> KafkaError {
    KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut)
}

/// A client that asks for the committed offsets of a group without joining it. Requests wait for offsets in open
/// transactions.
fn offsets_of(bus: &Bus, role: Role, name: &str) -> Result<BaseConsumer<Quiet>, KafkaError> {
    let mut config = clients::surveyor(bus, name);
    config
        .set("group.id", clients::group(bus, role))
        .set("isolation.level", "read_committed")
        .set("auto.offset.reset", "error")
        .set("fetch.wait.max.ms", "10")
        .set("enable.partition.eof", "true");
    config.create_with_context(Quiet)
}

/// A worker's view of its own generation and the one before.
pub(crate) struct Generations {
    own: u32,
    ends: EndLog,
    /// The generation before, for a worker that reads the raw topic. Routed records are marked if they are silent.
    earlier: Option<Earlier>,
}

impl Generations {
    /// `board` is told how far a new generation has followed the one before.
    pub(crate) fn new(
        bus: &Bus,
        worker: &WorkerId,
        board: &Arc<StatusBoard>,
    ) -> Result<Generations, KafkaError> {
        let earlier = match (worker.role, bus.generation) {
            (Role::Match, _) | (_, 0 | 1) => None,
            (_, own) => Some(Earlier::new(&bus.of_generation(own - 1), &worker.id(bus), board)?),
        };
        Ok(Generations { own: bus.generation, ends: EndLog::new(bus, worker), earlier })
    }

    /// Returns the generation-end record of this generation, if it has ended; then the partition must not be read. To
    /// be called at every claim of a partition, after reading its committed offset.
    pub(crate) fn claim(
        &mut self,
        surveyor: &BaseConsumer<Quiet>,
    ) -> Result<Option<GenerationEnd>, LookError> {
        let ends = self.ends.look(surveyor)?;
        if let Some(earlier) = &mut self.earlier {
            earlier.claim(ends, surveyor)?;
        }
        Ok(ends.get(&self.own).cloned())
    }

    /// Keeps the records that may be processed now. A batch is either silent as a whole or not at all.
    pub(crate) fn admit(
        &mut self,
        partition: i32,
        records: &mut Vec<Record>,
        surveyor: &BaseConsumer<Quiet>,
    ) -> Admitted {
        match &mut self.earlier {
            Some(earlier) => earlier.admit(partition, records, &mut self.ends, surveyor),
            None => Admitted::ALL,
        }
    }
}
