//! Reads match's position records from the changelog, for route, which has no state of its own. Route checks them
//! before it writes anything that match could not use, and finds its offset in them if a partition has no committed
//! offset.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

use crate::config::{Bus, Config};
use crate::stop::{Poll, Polled, Stop};
use samestory_engine::index::{Change, Progress};
use samestory_engine::model::TopicId;

use super::survey;
use crate::kafka::RunError;
use crate::kafka::client as clients;
use crate::kafka::client::{PATIENCE, Quiet, Role, WorkerId};
use crate::kafka::matching::intake::BatchReader;

/// Offsets before the end that are read first. Every transaction ends with a position record, so these nearly always
/// suffice.
const NEAR_THE_END: i64 = 100;
/// Time limit for reading one partition.
const READ: Duration = Duration::from_secs(30);
/// How long raw offsets are cached: many partitions are claimed one after the other.
const FRESH: Duration = Duration::from_secs(5);

/// The raw offsets that match knows, from the last position record of each of its partitions.
pub(crate) struct Preflight {
    bus: Bus,
    worker: WorkerId,
    /// Number of changelog partitions.
    partitions: i32,
    read: Option<(Instant, RawOffsets)>,
}

/// By raw topic and partition, the highest raw offset that any match partition has judged.
type RawOffsets = BTreeMap<(TopicId, i32), i64>;

impl Preflight {
    pub(crate) fn new(bus: &Bus, worker: &WorkerId, partitions: i32) -> Preflight {
        Preflight { bus: bus.clone(), worker: worker.clone(), partitions, read: None }
    }

    /// The raw topics whose articles were judged. A cached answer is good enough: match itself refuses another topic.
    pub(crate) fn topics(&mut self) -> Result<BTreeSet<TopicId>, KafkaError> {
        Ok(self.offsets(Duration::MAX)?.keys().map(|&(topic, _)| topic).collect())
    }

    /// By raw partition, the highest raw offset that match knows.
    ///
    /// The maximum over match partitions is correct although each of them progresses at its own pace. Route commits the
    /// records of a raw partition in raw order, and a transaction reaches all routed partitions or none. So if one
    /// match partition has read raw offset m, everything below m is on the routed topic too, judged or waiting. Nothing
    /// at or below m needs to be routed again, and everything above m may be: match ignores repeats.
    pub(crate) fn raw_offsets(&mut self, topic: TopicId) -> Result<BTreeMap<i32, i64>, KafkaError> {
        let mut highest = BTreeMap::new();
        for (&(known, partition), &offset) in self.offsets(FRESH)? {
            if !known.differs_from(topic) {
                let held = highest.entry(partition).or_insert(offset);
                *held = offset.max(*held);
            }
        }
        Ok(highest)
    }

    fn offsets(&mut self, fresh: Duration) -> Result<&RawOffsets, KafkaError> {
        let read = match self.read.take().filter(|(when, _)| when.elapsed() < fresh) {
            Some(read) => read,
            None => (Instant::now(), self.read()?),
        };
        Ok(&self.read.insert(read).1)
    }

    fn read(&self) -> Result<RawOffsets, KafkaError> {
        let mut offsets = RawOffsets::new();
        each_progress(&self.bus, &self.worker, self.partitions, |progress| {
            for (&raw_partition, &offset) in &progress.raw {
                let highest = offsets.entry(raw_partition).or_insert(offset);
                *highest = offset.max(*highest);
            }
            None::<()>
        })?;
        Ok(offsets)
    }
}

/// Compares the settings with those that every partition's state was built with. Waits while the broker is unreachable.
///
/// # Errors
/// The state was built with incompatible settings.
pub(crate) fn wait_for_compatible_state(
    config: &Config,
    partitions: i32,
    stop: &Stop,
) -> Result<(), RunError> {
    let mut logged = false;
    let poll = Poll::until_stopped(stop, config.bus.retry.broker);
    let compatible = poll.ask(|| match incompatibility(config, partitions) {
        Ok(None) => Ok(Polled::Final(())),
        Ok(Some(why)) => Err(RunError::IncompatibleState(why)),
        Err(error) if survey::is_transient(&error) => {
            if !std::mem::replace(&mut logged, true) {
                tracing::warn!(%error, "broker unreachable, cannot read the changelog, retrying");
            }
            Ok(Polled::NotYet)
        }
        Err(error) => Err(RunError::Client(error)),
    });
    compatible.map(|_known_or_stopped| ())
}

fn incompatibility(config: &Config, partitions: i32) -> Result<Option<String>, KafkaError> {
    let (bus, intake) = (&config.bus, BatchReader::routed(config, partitions));
    let worker = WorkerId { role: Role::Route, number: 0 };
    each_progress(bus, &worker, partitions, |progress| intake.settings().incompatibility(progress))
}

/// Passes the last position record of each changelog partition to `ask`, until one gives an answer.
fn each_progress<T>(
    bus: &Bus,
    worker: &WorkerId,
    partitions: i32,
    mut ask: impl FnMut(&Progress) -> Option<T>,
) -> Result<Option<T>, KafkaError> {
    let surveyor: BaseConsumer<Quiet> =
        clients::surveyor(bus, &format!("{}-survey", worker.id(bus))).create_with_context(Quiet)?;
    let log: BaseConsumer<Quiet> = clients::restorer(bus, worker).create_with_context(Quiet)?;
    for partition in 0..partitions {
        let watermarks = surveyor.fetch_watermarks(&bus.topics.changelog, partition, PATIENCE)?;
        if let Some(progress) = last_progress(&log, &bus.topics.changelog, partition, watermarks)?
            && let Some(answer) = ask(&progress)
        {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

/// The newest position record in a changelog partition. `None` if there is none, or none that this version can read:
/// match reports that itself.
pub(crate) fn last_progress(
    log: &BaseConsumer<Quiet>,
    topic: &str,
    partition: i32,
    (low, high): (i64, i64),
) -> Result<Option<Progress>, KafkaError> {
    let mut reach = NEAR_THE_END;
    loop {
        let from = low.max(high.saturating_sub(reach));
        let found = newest(log, topic, partition, (from, high))?;
        if found.is_some() || from == low {
            return Ok(found);
        }
        reach = reach.saturating_mul(20);
    }
}

fn newest(
    log: &BaseConsumer<Quiet>,
    topic: &str,
    partition: i32,
    (from, to): (i64, i64),
) -> Result<Option<Progress>, KafkaError> {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, partition, Offset::Offset(from))?;
    log.assign(&list)?;
    let (mut found, mut next, deadline) = (None, from, Instant::now() + READ);
    while next < to {
        match log.poll(Duration::from_millis(200)) {
            Some(Ok(message)) => {
                next = message.offset() + 1;
                let change = Change::decode(message.key().unwrap_or_default(), message.payload());
                if let Ok(Change::Progress(progress)) = change {
                    found = Some(progress);
                }
            }
            // Only open transactions, aborted records and markers are left. The event of another partition is a late
            // one from the previous assignment.
            Some(Err(KafkaError::PartitionEOF(at))) if at == partition => break,
            Some(Err(KafkaError::PartitionEOF(_))) => {}
            // Includes authorization errors for the group id, although the client joins no group.
            Some(Err(error)) => {
                tracing::debug!(%error, partition, "consumer error while reading position records")
            }
            None => {}
        }
        if next < to && Instant::now() > deadline {
            return Err(KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut));
        }
    }
    Ok(found)
}
