//! Reads ranges of topics for the operator's tools: `reconcile`, `dead-letters`, `clusters` and `erase`. It joins no group
//! and commits nothing. A range ends at the high watermark, so a scan waits for open transactions instead of missing
//! the committed records behind them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Offset, TopicPartitionList};

use crate::config::Bus;
use crate::kafka::client as clients;
use crate::kafka::client::{Quiet, Role};
use crate::kafka::recovery::generations::backlog;
use crate::kafka::turn::record::Record;
use crate::kafka::turn::source::owned;
use samestory_engine::model::EventTime;

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// A scan that makes no progress for this long ends: longer than `stage.transaction_timeout` and the broker's sweep.
const STALL: Duration = Duration::from_secs(60);

/// Offsets by partition.
pub(crate) type PartitionOffsets = BTreeMap<i32, i64>;

/// Why a topic could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The topic does not exist.
    #[error("topic {0} does not exist on this broker, or this user may not see it")]
    NoTopic(String),
    /// The broker is unreachable or refuses access.
    #[error("brokers at {address}: {error}")]
    Broker {
        /// The brokers that were asked.
        address: String,
        /// The error of the client.
        error: KafkaError,
    },
    /// The range cannot be read to its end.
    #[error(
        "{topic} partition {partition}: nothing more to read before offset {end}, the end that the broker reports: a transaction is open, or a batch cannot be read; retry later"
    )]
    Stalled {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// Where the range ends.
        end: i64,
    },
    /// The role with state has not judged everything yet.
    #[error(
        "group {group} has not processed {topic} up to its end: {left}; start the stage, or repeat the command later with a longer --wait"
    )]
    Behind {
        /// The consumer group.
        group: String,
        /// Its topic.
        topic: String,
        /// Which partitions, and how far.
        left: String,
    },
}

/// Reads committed records of topics.
pub(crate) struct Scanner {
    bus: Bus,
    consumer: BaseConsumer<Quiet>,
    /// Reads uncommitted, so that it is told the high watermark.
    surveyor: BaseConsumer<Quiet>,
}

impl Scanner {
    pub(crate) fn new(bus: &Bus, name: &str) -> Result<Scanner, ScanError> {
        let mut config = clients::surveyor(bus, name);
        // librdkafka requires a group id; nothing is ever committed under it.
        config
            .set("group.id", format!("{}.{name}", bus.app))
            .set("isolation.level", "read_committed")
            .set("enable.auto.offset.store", "false")
            .set("enable.partition.eof", "true")
            .set("auto.offset.reset", "error")
            .set("fetch.wait.max.ms", "20");
        let broker = |error| broker_error(bus, error);
        Ok(Scanner {
            consumer: config.create_with_context(Quiet).map_err(broker)?,
            surveyor: clients::surveyor(bus, &format!("{name}-survey"))
                .create_with_context(Quiet)
                .map_err(broker)?,
            bus: bus.clone(),
        })
    }

    fn broker(&self, error: KafkaError) -> ScanError {
        broker_error(&self.bus, error)
    }

    /// The first offset that each partition holds, and its high watermark.
    pub(crate) fn ranges(&self, topic: &str) -> Result<(PartitionOffsets, PartitionOffsets), ScanError> {
        let metadata =
            self.surveyor.fetch_metadata(Some(topic), PATIENCE).map_err(|error| self.broker(error))?;
        let found = metadata.topics().iter().find(|found| found.name() == topic && found.error().is_none());
        let Some(found) = found.filter(|found| !found.partitions().is_empty()) else {
            return Err(ScanError::NoTopic(topic.to_owned()));
        };
        let (mut low, mut high) = (PartitionOffsets::new(), PartitionOffsets::new());
        for partition in found.partitions().iter().map(|partition| partition.id()) {
            let watermarks = self.surveyor.fetch_watermarks(topic, partition, PATIENCE);
            let (first, end) = watermarks.map_err(|error| self.broker(error))?;
            low.insert(partition, first);
            high.insert(partition, end);
        }
        Ok((low, high))
    }

    /// By partition, the offset of the first record at or after a time; the high watermark if there is none.
    pub(crate) fn offsets_at(&self, topic: &str, time: EventTime) -> Result<PartitionOffsets, ScanError> {
        let (_, mut offsets) = self.ranges(topic)?;
        for (&partition, offset) in &mut offsets {
            let mut list = TopicPartitionList::new();
            let added = list.add_partition_offset(topic, partition, Offset::Offset(time.millis()));
            let found = added.and_then(|()| self.surveyor.offsets_for_times(list, PATIENCE));
            let found = found.and_then(|found| clients::offset_in(&found, topic, partition));
            if let Some(found) = found.map_err(|error| self.broker(error))? {
                *offset = found;
            }
        }
        Ok(offsets)
    }

    /// Reads the committed records from the first offsets up to the last, which are exclusive. The order holds within
    /// a partition.
    pub(crate) fn read(
        &self,
        topic: &str,
        (from, to): (&PartitionOffsets, &PartitionOffsets),
        mut each: impl FnMut(i32, Record) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        let broker = |error| self.broker(error);
        let mut list = TopicPartitionList::new();
        let mut left = PartitionOffsets::new();
        for (&partition, &end) in to {
            let from = from.get(&partition).copied().unwrap_or(0);
            if from < end {
                list.add_partition_offset(topic, partition, Offset::Offset(from)).map_err(broker)?;
                left.insert(partition, end);
            }
        }
        self.consumer.assign(&list).map_err(broker)?;
        let mut progress = Instant::now();
        while let Some((&partition, &end)) = left.iter().next() {
            match self.consumer.poll(Duration::from_millis(50)) {
                Some(Ok(message)) => {
                    progress = Instant::now();
                    let (partition, record) = owned(&message, usize::MAX);
                    let Some(&end) = left.get(&partition) else { continue };
                    let next = record.offset + 1;
                    if record.offset < end {
                        each(partition, record)?;
                    }
                    if next >= end {
                        left.remove(&partition);
                    }
                }
                // Transaction markers follow the last records: only the position shows that the end is reached.
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    let position = self.consumer.position().map_err(broker)?;
                    let at = clients::offset_in(&position, topic, partition).map_err(broker)?.unwrap_or(0);
                    left.retain(|&other, &mut end| other != partition || at < end);
                }
                Some(Err(KafkaError::MessageConsumption(
                    code @ (RDKafkaErrorCode::TopicAuthorizationFailed
                    | RDKafkaErrorCode::GroupAuthorizationFailed
                    | RDKafkaErrorCode::AllBrokersDown),
                ))) => return Err(self.broker(KafkaError::MessageConsumption(code))),
                Some(Err(error)) => tracing::debug!(%error, topic, "consumer error during a scan"),
                None => {}
            }
            if progress.elapsed() > STALL {
                return Err(ScanError::Stalled { topic: topic.to_owned(), partition, end });
            }
        }
        self.consumer.assign(&TopicPartitionList::new()).map_err(broker)
    }

    /// Reads all committed records that a topic holds now.
    pub(crate) fn read_all(
        &self,
        topic: &str,
        each: impl FnMut(i32, Record) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        let (low, high) = self.ranges(topic)?;
        self.read(topic, (&low, &high), each)
    }

    /// The committed offsets of a role's group; partitions without one are left out. It waits for offsets in open
    /// transactions.
    pub(crate) fn committed(&self, role: Role, topic: &str) -> Result<PartitionOffsets, ScanError> {
        let group = self.group(role)?;
        let (low, _) = self.ranges(topic)?;
        let mut list = TopicPartitionList::new();
        for &partition in low.keys() {
            list.add_partition(topic, partition);
        }
        let deadline = Instant::now() + STALL;
        let committed = loop {
            match group.committed_offsets(list.clone(), PATIENCE) {
                Ok(committed) => break committed,
                // A transaction is open, or the coordinator is moving.
                Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(200)),
                Err(error) => return Err(self.broker(error)),
            }
        };
        let mut offsets = PartitionOffsets::new();
        for &partition in low.keys() {
            let at = clients::offset_in(&committed, topic, partition).map_err(|error| self.broker(error))?;
            offsets.extend(at.map(|at| (partition, at)));
        }
        Ok(offsets)
    }

    /// Waits until a role has committed everything below these offsets of its input topic.
    pub(crate) fn await_processed(
        &self,
        role: Role,
        topic: &str,
        ends: &PartitionOffsets,
        wait: Duration,
    ) -> Result<(), ScanError> {
        let group = self.group(role)?;
        let deadline = Instant::now() + wait;
        loop {
            let judged = backlog::judged(&group, &self.surveyor, topic, ends);
            let done = judged.and_then(|judged| {
                let empty = backlog::is_empty(&group, topic, &judged, ends)?;
                Ok((empty, judged))
            });
            let left = match done {
                Ok((true, _)) => return Ok(()),
                Ok((false, judged)) => {
                    let behind = ends.iter().filter_map(|(partition, end)| {
                        let at = judged.get(partition).copied().unwrap_or(0);
                        (at < *end).then(|| format!("partition {partition} at {at} of {end}"))
                    });
                    behind.collect::<Vec<_>>().join(", ")
                }
                Err(error) => error.to_string(),
            };
            if Instant::now() > deadline {
                let group = clients::group(&self.bus, role);
                return Err(ScanError::Behind { group, topic: topic.to_owned(), left });
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// A client that asks for the committed offsets of a role's group without joining it.
    fn group(&self, role: Role) -> Result<BaseConsumer<Quiet>, ScanError> {
        let mut config = clients::surveyor(&self.bus, "samestory-scan-group");
        config
            .set("group.id", clients::group(&self.bus, role))
            .set("isolation.level", "read_committed")
            .set("auto.offset.reset", "error")
            .set("fetch.wait.max.ms", "10")
            .set("enable.partition.eof", "true");
        config.create_with_context(Quiet).map_err(|error| self.broker(error))
    }
}

/// A broker error with the address that was asked.
pub fn broker_error(bus: &Bus, error: KafkaError) -> ScanError {
    ScanError::Broker { address: clients::address(bus), error }
}

/// The first value of a header as text.
pub(crate) fn header<'r>(record: &'r Record, name: &str) -> Option<&'r str> {
    let (_, value) = record.headers.iter().find(|(found, _)| found == name)?;
    str::from_utf8(value.as_deref()?).ok()
}

/// The raw record that an output record or dead letter answers: topic, partition and offset from its headers.
pub(crate) fn source(record: &Record, prefix: &str) -> Option<(String, i32, i64)> {
    let named = |suffix: &str| header(record, &format!("{prefix}{suffix}"));
    Some((named("topic")?.to_owned(), named("partition")?.parse().ok()?, named("offset")?.parse().ok()?))
}
