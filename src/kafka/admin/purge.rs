//! Deletes routed records that match has committed, as Kafka Streams does with its repartition topics. The topic itself
//! keeps everything forever, so no unjudged record is lost; but a failing purge must not go unnoticed, or the brokers'
//! disks fill. A delete that fails for a partition is retried, logged, and counted in `samestory_unpurged_records`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::KafkaError;
use rdkafka::{Offset, TopicPartitionList};

use crate::config::Bus;
use crate::status::StatusBoard;

use super::topics;
use crate::kafka::client as clients;
use crate::kafka::client::WorkerId;
use crate::kafka::faults::{Constant, FAULTS, Faults};
use crate::stop::Stop;

/// Time between two deletes.
const EVERY: Duration = Duration::from_secs(30);
/// Time between two warnings about the same cause.
const QUIET: Duration = Duration::from_secs(600);
/// How long the broker may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

type Admin = AdminClient<DefaultClientContext>;

/// Starts the purge thread. Send it committed offsets by partition, and it deletes the records below them.
pub(crate) fn start(bus: &Bus, worker: &WorkerId, stop: Stop, board: Arc<StatusBoard>) -> Sender<(i32, i64)> {
    let (send, receive) = channel();
    let worker = worker.id(bus);
    let config = clients::base(bus, &format!("{worker}-purge"));
    let purge = Purge {
        topic: bus.topics.routed.clone(),
        worker,
        board,
        committed: BTreeMap::new(),
        low: BTreeMap::new(),
        warned: BTreeMap::new(),
        failing: false,
    };
    let guard = purge.board.guard("purge");
    std::thread::spawn(move || {
        let _guard = guard;
        run(purge, &config, &receive, &stop)
    });
    send
}

fn run(mut purge: Purge, config: &ClientConfig, receive: &Receiver<(i32, i64)>, stop: &Stop) {
    let every = Duration::from_millis(FAULTS.value(Constant::PurgeInterval, EVERY.as_millis() as u64));
    let mut admin: Option<Admin> = None;
    let mut last = Instant::now();
    loop {
        match receive.recv_timeout(every.min(Duration::from_millis(200))) {
            Ok((partition, next)) => {
                purge.committed.insert(partition, next);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if stop.is_requested() {
            return;
        }
        if last.elapsed() < every || purge.pending().is_empty() {
            continue;
        }
        last = Instant::now();
        if admin.is_none() {
            match config.create::<Admin>() {
                Ok(client) => admin = Some(client),
                Err(error) => purge.warn(&error.to_string(), purge.pending().len()),
            }
        }
        if let Some(admin) = &admin {
            purge.purge(admin);
        }
    }
}

struct Purge {
    topic: String,
    worker: String,
    board: Arc<StatusBoard>,
    /// By partition, the offset that match has committed.
    committed: BTreeMap<i32, i64>,
    /// By partition, the low watermark, as far as it is known.
    low: BTreeMap<i32, i64>,
    /// When each cause was last logged.
    warned: BTreeMap<String, Instant>,
    failing: bool,
}

impl Purge {
    /// Partitions with records to delete, including those where it failed before.
    fn pending(&self) -> BTreeMap<i32, i64> {
        let pending = self
            .committed
            .iter()
            .filter(|(partition, next)| self.low.get(partition).is_none_or(|low| low < next));
        pending.map(|(&partition, &next)| (partition, next)).collect()
    }

    fn purge(&mut self, admin: &Admin) {
        let pending = self.pending();
        let failures = match self.delete(admin, &pending) {
            Ok(failures) => failures,
            Err(error) => pending.keys().map(|&partition| (partition, error.to_string())).collect(),
        };
        let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
        for (partition, cause) in &failures {
            *causes.entry(cause).or_default() += 1;
            // A failed delete returns no low watermark, so the broker is asked for it.
            if let Ok((low, _)) = admin.inner().fetch_watermarks(&self.topic, *partition, PATIENCE) {
                self.low.insert(*partition, low);
            }
        }
        for (cause, partitions) in causes {
            self.warn(cause, partitions);
        }
        if failures.is_empty() {
            self.warned.clear();
            if std::mem::take(&mut self.failing) {
                tracing::info!(topic = self.topic, "routed records are deleted again");
            }
        }
        self.board.unpurged(&self.worker, self.unpurged());
    }

    /// Sends the delete request, and returns the partitions where it failed, with the cause.
    fn delete(
        &mut self,
        admin: &Admin,
        pending: &BTreeMap<i32, i64>,
    ) -> Result<Vec<(i32, String)>, KafkaError> {
        let mut list = TopicPartitionList::new();
        for (&partition, &next) in pending {
            list.add_partition_offset(&self.topic, partition, Offset::Offset(next))?;
        }
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE)).request_timeout(Some(PATIENCE));
        let answers = topics::block_on(admin.delete_records(&list, &options))?;
        let mut failures = Vec::new();
        for answer in answers.elements() {
            match (answer.error(), answer.offset()) {
                (Ok(()), Offset::Offset(low)) => {
                    self.low.insert(answer.partition(), low);
                }
                (Ok(()), offset) => {
                    failures.push((answer.partition(), format!("unexpected low watermark {offset:?}")));
                }
                (Err(error), _) => failures.push((answer.partition(), error.to_string())),
            }
        }
        tracing::debug!(?pending, ?failures, "purged routed records");
        Ok(failures)
    }

    /// By partition, the records below the committed offset that are not deleted yet, as far as it is known.
    fn unpurged(&self) -> BTreeMap<i32, u64> {
        let left = |partition: &i32, next: i64| {
            self.low.get(partition).map_or(0, |low| u64::try_from(next - low).unwrap_or(0))
        };
        self.committed.iter().map(|(partition, &next)| (*partition, left(partition, next))).collect()
    }

    fn warn(&mut self, cause: &str, partitions: usize) {
        self.failing = true;
        if self.warned.get(cause).is_some_and(|last| last.elapsed() < QUIET) {
            return;
        }
        self.warned.insert(cause.to_owned(), Instant::now());
        let records: u64 = self.unpurged().values().sum();
        tracing::warn!(
            topic = self.topic,
            partitions,
            records,
            cause,
            "committed routed records cannot be deleted, so the brokers' disks fill; retrying \
             (docs/runbook.md#samestorypurgefailing)"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purge() -> Purge {
        Purge {
            topic: "routed".into(),
            worker: "w".into(),
            board: Arc::new(StatusBoard::new(Default::default())),
            committed: BTreeMap::new(),
            low: BTreeMap::new(),
            warned: BTreeMap::new(),
            failing: false,
        }
    }

    #[test]
    fn a_partition_is_pending_until_the_broker_confirms_the_delete() {
        let mut purge = purge();
        purge.committed.extend([(0, 100), (1, 50)]);
        assert_eq!(purge.pending().len(), 2);
        purge.low.extend([(0, 100), (1, 20)]);
        assert_eq!(purge.pending(), BTreeMap::from([(1, 50)]));
        assert_eq!(purge.unpurged(), BTreeMap::from([(0, 0), (1, 30)]));
        purge.committed.insert(0, 140);
        assert_eq!(purge.pending(), BTreeMap::from([(0, 140), (1, 50)]));
    }

    #[test]
    fn a_cause_is_logged_once_per_interval() {
        let mut purge = purge();
        purge.warn("no right", 2);
        let first = purge.warned["no right"];
        purge.warn("no right", 2);
        assert_eq!((purge.warned["no right"], purge.failing), (first, true));
        purge.warn("no topic", 1);
        assert_eq!(purge.warned.len(), 2);
    }
}
