//! The context of the worker's consumer: what librdkafka tells it from inside `poll` and from its own threads. It only
//! records rebalances, statistics and errors; `source` takes them after the poll, when no transaction is open.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, RebalanceProtocol};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientContext, Offset, Statistics, TopicPartitionList, statistics};

use super::unreadable::Fetching;
use crate::kafka::client as clients;
use crate::kafka::client::PATIENCE;
use crate::kafka::faults::{FAULTS, Faults, Point};

/// A change of the assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AssignmentChange {
    /// These partitions were assigned, and are paused.
    Assigned(Vec<i32>),
    Revoked(Vec<i32>),
}

/// The consumer's context. Its rebalance callback runs inside `poll`, where no transaction is open, so it has nothing
/// to undo and only records the change.
#[derive(Default)]
pub(crate) struct Watcher {
    changes: Mutex<Vec<AssignmentChange>>,
    logged: Mutex<BTreeMap<String, Instant>>,
    statistics: Mutex<LatestStatistics>,
}

/// The part of librdkafka's last statistics that is used.
#[derive(Default)]
pub(super) struct LatestStatistics {
    pub(super) fetching: BTreeMap<i32, Fetching>,
    pub(super) away: bool,
}

impl Watcher {
    pub(super) fn changes(&self) -> std::sync::MutexGuard<'_, Vec<AssignmentChange>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn statistics(&self) -> std::sync::MutexGuard<'_, LatestStatistics> {
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs an error once in five minutes: an unreachable broker reports one every second.
    pub(super) fn log_once(&self, error: &KafkaError) {
        const INTERVAL: Duration = Duration::from_secs(300);
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        logged.retain(|_, when| when.elapsed() < INTERVAL);
        if logged.insert(error.to_string(), Instant::now()).is_none() {
            tracing::warn!(%error, "consumer error, retrying");
        }
    }
}

impl ClientContext for Watcher {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        clients::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, _reason: &str) {
        self.log_once(&error);
    }

    fn stats(&self, statistics: Statistics) {
        let mut latest = self.statistics();
        latest.away = !statistics.brokers.values().any(|broker| broker.state == "UP");
        let partitions = statistics.topics.values().flat_map(|topic| topic.partitions.values());
        // A read_committed consumer reads up to the last stable offset. Negative offsets are not known yet.
        let fetching = |partition: &statistics::Partition| Fetching {
            next: partition.next_offset,
            polled: partition.app_offset,
            end: partition.ls_offset,
        };
        latest.fetching = partitions.map(|partition| (partition.partition, fetching(partition))).collect();
    }
}

impl ConsumerContext for Watcher {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, event: RDKafkaRespErr, list: &mut TopicPartitionList) {
        let cooperative = matches!(consumer.rebalance_protocol(), RebalanceProtocol::Cooperative);
        let partitions: Vec<i32> = list.elements().iter().map(|element| element.partition()).collect();
        let (change, result) = match event {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => {
                // The partition is assigned at the low watermark and paused; the role seeks when it knows the offset.
                // The offset must be a number. librdkafka resolves a logical offset such as "end" with a request, and
                // if the partition is paused meanwhile, it repeats the request half a second later and so overrides
                // a seek that has happened by then.
                let mut away = false;
                let result = partitions.iter().try_for_each(|&partition| {
                    let topic = topic_name(list, partition);
                    let watermarks = (!away).then(|| consumer.fetch_watermarks(&topic, partition, PATIENCE));
                    let low = watermarks.and_then(Result::ok).map(|(low, _)| low);
                    away |= low.is_none();
                    list.set_partition_offset(&topic, partition, Offset::Offset(low.unwrap_or(0)))
                });
                let result = result.and_then(|()| match cooperative {
                    true => consumer.incremental_assign(list),
                    false => consumer.assign(list),
                });
                (AssignmentChange::Assigned(partitions), result.and_then(|()| consumer.pause(list)))
            }
            _ => {
                FAULTS.reach(Point::Revoke);
                let result = match cooperative {
                    true => consumer.incremental_unassign(list),
                    false => consumer.unassign(),
                };
                (AssignmentChange::Revoked(partitions), result)
            }
        };
        if let Err(error) = result {
            tracing::error!(%error, ?change, "the assignment change failed in librdkafka");
        }
        self.changes().push(change);
    }
}

fn topic_name(list: &TopicPartitionList, partition: i32) -> String {
    let elements = list.elements();
    let element = elements.iter().find(|element| element.partition() == partition);
    element.map(|element| element.topic().to_owned()).unwrap_or_default()
}
