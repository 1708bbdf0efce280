//! One thread: its own consumer, its own producer, its own partitions.
//!
//! The turn: collect (nothing is open) → plan (nothing is written) → begin → send → offsets → commit → apply, with the
//! proof of the commit. A transaction never spans a poll, so an assignment never changes under one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::error::KafkaError;

use crate::config::Bus;
use crate::metrics;
use crate::status::{Joining, PartitionState, StatusBoard};
use samestory_engine::index::StoreRegistry;

use super::measure::{self, Lap};
use super::record::{Epochs, Record};
use super::source::{Collected, Happened, Source, SourceError};
use super::stage::Stage;
use super::suspects::Suspects;
use super::txn::{ConnectError, Offsets, TxnError, TxnProducer};
use super::unreadable::{Jam, Probe};
use crate::kafka::admin::limits::Limits;
use crate::kafka::client as clients;
use crate::kafka::client::{Role, WorkerId};
use crate::kafka::recovery::leftovers::Holdings;
use crate::kafka::recovery::restore::Slots;
use crate::kafka::{Progress, RunError};

/// Batches that fail one after the other before the worker begins anew.
const RETRIES: u32 = 20;

/// Says when to end, and how it is going.
#[derive(Clone)]
pub(crate) struct WorkerContext {
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) board: Arc<StatusBoard>,
    pub(crate) shelf: Arc<StoreRegistry>,
    /// What the topics accept, as last read.
    pub(crate) limits: Arc<Mutex<Arc<Limits>>>,
    /// Restores that may run.
    pub(crate) slots: Slots,
    /// The partitions of the process.
    pub(crate) holdings: Holdings,
}

impl WorkerContext {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.limits.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the limits of the topics again. Whether they are others than a worker knows.
    fn limits_changed(&self, bus: &Bus, known: &Limits) -> bool {
        let read = match Limits::read(bus) {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!(%error, "cannot read the limits of the topics again");
                return false;
            }
        };
        let changed = *known != read;
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(read);
        changed
    }

    /// Sleeps, unless it is told to stop.
    fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.stopped() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Why a worker has to begin anew, or cannot.
enum Ended {
    /// Told to.
    Stopped,
    /// The broker does not answer, or does not let us in.
    Away(String),
    /// Drop everything and take the partitions over as a new owner would.
    Lost(String),
    Fatal(RunError),
}

/// Runs a worker until it is told to stop.
///
/// # Errors
/// It cannot go on: what is committed is right, and a restart goes on from there.
pub(crate) fn run<S: Stage>(
    bus: &Bus,
    worker: &WorkerId,
    input: &str,
    reins: &WorkerContext,
    mut make: impl FnMut() -> Result<S, RunError>,
) -> Result<(), RunError> {
    let mut losses = 0_u32;
    let mut said_away = false;
    while !reins.stopped() {
        let began = Instant::now();
        reins.board.begins(&worker.id(bus), worker.role.as_str(), Joining::Connecting);
        let ended = match make() {
            Ok(stage) => Worker::begin(bus, worker, input, stage, reins),
            Err(error) => Err(Ended::Fatal(error)),
        };
        let ended = match ended {
            Ok(mut turns) => {
                said_away = false;
                let ended = turns.go();
                turns.close();
                ended
            }
            Err(ended) => ended,
        };
        match ended {
            Ended::Stopped => break,
            Ended::Away(why) => {
                if !std::mem::replace(&mut said_away, true) {
                    let worker = worker.id(bus);
                    tracing::warn!(worker, "the broker does not answer; it is tried again and again: {why}");
                }
                reins.pause(Duration::from_millis(500));
            }
            Ended::Fatal(error) => return Err(error),
            Ended::Lost(why) => {
                reins.progress.lost();
                metrics::restarted(worker.role.as_str(), 1);
                losses = if began.elapsed() > Duration::from_secs(60) { 1 } else { losses + 1 };
                tracing::warn!(worker = worker.id(bus), losses, "beginning anew: {why}");
                if losses > RETRIES {
                    return Err(RunError::Hopeless { losses, why });
                }
                reins.pause(Duration::from_millis(100 * u64::from(losses.min(20))));
            }
        }
    }
    Ok(())
}

struct Worker<'a, S> {
    bus: &'a Bus,
    role: Role,
    name: String,
    source: Source,
    producer: TxnProducer,
    stage: S,
    reins: &'a WorkerContext,
    failures: u32,
    /// How often it was waited for somebody outside the bus since that last answered, and when that was last said.
    waiting: Option<(u32, Instant)>,
    limits: Arc<Limits>,
    suspects: Suspects,
    /// When the end of an unreadable batch was last looked for in vain.
    probed: Option<Instant>,
}

impl<'a, S: Stage> Worker<'a, S> {
    fn begin(
        bus: &'a Bus,
        worker: &WorkerId,
        input: &str,
        stage: S,
        reins: &'a WorkerContext,
    ) -> Result<Worker<'a, S>, Ended> {
        let limits = reins.limits();
        let mut config = clients::producer(bus, worker);
        // Records that are sent together are one batch to the broker, which compares it with the topic's limit.
        let together = config.get("batch.size").and_then(|size| size.parse().ok()).unwrap_or(usize::MAX);
        config.set("batch.size", together.min(limits.smallest()).to_string());
        let producer = match TxnProducer::connect(&config, &bus.topics.changelog, bus.transaction_timeout) {
            Ok(producer) => producer,
            Err(ConnectError::Away(why)) => return Err(Ended::Away(why)),
            Err(ConnectError::Failed(
                TxnError::Lost(error) | TxnError::Retry(error) | TxnError::Refused(error),
            )) => {
                return Err(Ended::Lost(error.to_string()));
            }
            Err(ConnectError::Failed(TxnError::Fenced(error) | TxnError::Fatal(error))) => {
                return Err(Ended::Fatal(RunError::Client(error)));
            }
        };
        // Our own topic holds nothing too large, and what it holds must be read whole.
        let longest =
            if worker.role == Role::Match { usize::MAX } else { bus.topics.max_message_bytes as usize };
        let source = Source::join(&clients::consumer(bus, worker), input, bus.batch, longest);
        let source = source.map_err(|error| Ended::Fatal(RunError::Client(error)))?;
        let (role, name) = (worker.role, worker.id(bus));
        reins.board.begins(&name, role.as_str(), Joining::Waiting);
        Ok(Worker {
            bus,
            role,
            name,
            source,
            producer,
            stage,
            reins,
            failures: 0,
            waiting: None,
            limits,
            suspects: Suspects::default(),
            probed: None,
        })
    }

    fn go(&mut self) -> Ended {
        // Fails the stage before the clients of a panicking worker are closed, which may take long.
        let _guard = self.reins.board.guard(&self.name);
        loop {
            if self.reins.stopped() {
                return Ended::Stopped;
            }
            if let Err(ended) = self.once() {
                return ended;
            }
        }
    }

    fn once(&mut self) -> Result<(), Ended> {
        let busy = self.stage.is_taking_over() || self.stage.has_pending_commit();
        // A partition that is being taken over does its own waiting.
        let patience = if busy { Duration::ZERO } else { Duration::from_millis(100) };
        let happened = self.source.collect(patience);
        for event in happened.map_err(|error: SourceError| Ended::Lost(error.to_string()))? {
            match event {
                Happened::Assigned(partitions) => {
                    if !partitions.is_empty() {
                        tracing::info!(topic = self.source.topic(), ?partitions, "assigned");
                    }
                    partitions.into_iter().for_each(|partition| self.stage.assigned(partition));
                    self.reins.board.assigned(&self.name);
                }
                Happened::Revoked(partitions) => {
                    self.suspects = Suspects::default();
                    if !partitions.is_empty() {
                        tracing::info!(topic = self.source.topic(), ?partitions, "revoked");
                    }
                    partitions.into_iter().for_each(|partition| self.stage.revoked(partition));
                }
            }
        }
        if std::mem::take(&mut self.source.out_of_range) {
            let halted = self.stage.out_of_range();
            self.halt(halted);
        }
        for (partition, offset) in self.stage.advance(&self.source) {
            if let Err(error) = self.source.start(partition, offset) {
                // Not fetching yet: the partition is taken over again, and by then it is.
                tracing::debug!(%error, partition, "starting");
                self.stage.revoked(partition);
                self.stage.assigned(partition);
            }
        }
        let jams = self.source.jams();
        metrics::read_errors(self.role.as_str(), self.source.take_errors_heard());
        let (lags, away) = (self.source.lags(), self.source.is_away());
        let standing = self.stage.standing().into_iter().map(|(partition, standing)| {
            let jam = jams.iter().find(|jam| jam.partition == partition);
            let unreadable = |jam: &Jam| PartitionState::Unreadable {
                offset: jam.offset,
                why: self.source.why_unread().to_owned(),
            };
            (partition, jam.map_or(standing, unreadable))
        });
        self.reins.board.reports(&self.name, standing, lags, away);
        if let Some(jam) = jams.into_iter().find(|jam| self.may_skip(jam)) {
            self.skip(jam);
        }
        let batch = match self.source.take() {
            Some(batch) => self.narrowed(batch),
            None if self.stage.has_pending_commit() => {
                self.source.membership().map(|membership| Collected { records: BTreeMap::new(), membership })
            }
            None => None,
        };
        if let Some(batch) = batch {
            self.turn(batch)?;
        }
        let halted = self.stage.upkeep();
        self.halt(halted);
        Ok(())
    }

    fn turn(&mut self, batch: Collected) -> Result<(), Ended> {
        let mut lap = Lap::start(self.role);
        let Collected { records, membership } = batch;
        let first = |records: &Vec<Record>| records.first().map(|record| record.offset);
        let mut rewind: BTreeMap<i32, i64> = records
            .iter()
            .filter_map(|(&partition, records)| first(records).map(|offset| (partition, offset)))
            .collect();
        let lasts: BTreeMap<i32, i64> = records
            .iter()
            .filter_map(|(&partition, records)| records.last().map(|record| (partition, record.offset)))
            .collect();
        let count: usize = records.values().map(Vec::len).sum();
        let epochs = Epochs::of(&records);
        if let Err(why) = self.stage.gather(&records) {
            return self.wait(why, &rewind);
        }
        self.waited();
        let planning = self.stage.plan(records);
        lap.done("plan");
        for partition in &planning.halted {
            rewind.remove(partition);
        }
        self.halt(planning.halted);
        if planning.next.is_empty() {
            return Ok(());
        }
        super::faults::point("plan");
        let membership = match super::faults::mutant("late-membership") {
            true => self.source.membership().unwrap_or(membership),
            false => membership,
        };
        self.reins.progress.opened(&self.name);
        let committed = (|| {
            let mut outgoing = self.stage.outgoing(&planning.planned);
            let now = crate::kafka::recovery::restore::now();
            outgoing.iter_mut().for_each(|record| self.limits.admit_time(record, now));
            let mut txn = self.producer.begin()?;
            for record in &outgoing {
                txn.send(record)?;
            }
            lap.done("send");
            let (topic, next) = (self.source.topic(), &planning.next);
            txn.commit(&Offsets { topic, next, epochs: &epochs, membership: &membership })
        })();
        self.reins.progress.closed(&self.name);
        match committed {
            Ok(proof) => {
                self.failures = 0;
                self.source.committed_to(&planning.next);
                if self.suspects.committed(&planning.next) {
                    self.reins.board.refuses(&self.name, None);
                }
                self.reins.progress.committed(count);
                lap.done("commit");
                lap.committed(count);
                let halted = self.stage.apply(planning.planned, &proof);
                lap.done("apply");
                self.halt(halted);
                Ok(())
            }
            Err(error) => {
                measure::failed(self.role, &error);
                match error {
                    TxnError::Refused(error) if self.producer.is_usable() => {
                        self.refused(&error, lasts, count, &rewind)
                    }
                    error => self.recover(error, &rewind),
                }
            }
        }
    }

    /// Whether a batch that cannot be read is to be skipped. Only of the crawlers' topic: what route has written to its own
    /// is not lost on purpose.
    fn may_skip(&self, jam: &Jam) -> bool {
        let patience = self.bus.unreadable_after.filter(|_| self.role != Role::Match);
        let looked = self.probed.is_some_and(|at| at.elapsed() < Duration::from_secs(30));
        patience.is_some_and(|patience| jam.since.elapsed() >= patience) && !looked
    }

    /// Finds the end of a batch that cannot be read, and reads on behind it. A dead letter names its offsets.
    fn skip(&mut self, jam: Jam) {
        let (topic, Jam { partition, offset, .. }) = (self.source.topic().to_owned(), jam);
        let probe = Probe::new(&clients::probe(self.bus, &self.name), &topic, partition);
        let skipped = probe.and_then(|probe| match probe.end_of_batch(offset)? {
            Some(next) => self.source.skip(jam, next).map(|()| Some(next)),
            None => Ok(None),
        });
        // After a skip the next batch is looked at at once; else after a while.
        self.probed = (!matches!(skipped, Ok(Some(_)))).then(Instant::now);
        match skipped {
            Ok(Some(next)) => tracing::error!(
                topic,
                partition,
                first = offset,
                last = next - 1,
                "a batch cannot be read; skipping it, a dead letter names its offsets"
            ),
            Ok(None) => tracing::info!(topic, partition, offset, "another consumer can read the batch"),
            Err(error) => {
                tracing::warn!(%error, topic, partition, offset, "cannot find the end of a batch that cannot be read")
            }
        }
    }

    /// While a refused record is looked for, a part of the batch that may hold it; the rest is given back. Records that are
    /// dead letters by now are marked.
    fn narrowed(&mut self, mut batch: Collected) -> Option<Collected> {
        let rest = self.suspects.narrow(&mut batch.records);
        self.source.put_back(rest);
        if batch.records.is_empty() {
            // The suspected partition has not been fetched again yet.
            self.reins.pause(Duration::from_millis(20));
            return None;
        }
        Some(batch)
    }

    /// The broker refuses a record of this batch, and will again. The batch is halved until the record is found, and that
    /// becomes a dead letter; nothing of the batch is visible yet, so its neighbours are judged as if it had never been.
    fn refused(
        &mut self,
        error: &KafkaError,
        lasts: BTreeMap<i32, i64>,
        count: usize,
        rewind: &BTreeMap<i32, i64>,
    ) -> Result<(), Ended> {
        self.reins.progress.aborted();
        if !std::mem::replace(&mut self.suspects.limits_read, true)
            && self.reins.limits_changed(self.bus, &self.limits)
        {
            return Err(Ended::Lost(format!("the limits of a topic have changed: {error}")));
        }
        self.source.refresh_membership();
        self.source
            .rewind(rewind)
            .map_err(|error| Ended::Lost(format!("cannot seek back after an abort: {error}")))?;
        let single = rewind.first_key_value().filter(|_| count == 1);
        match single {
            None if count > 1 => {
                tracing::warn!(%error, records = count, "a record is refused; halving the batch to find it");
                self.suspects.refused(lasts, count);
            }
            Some((&partition, &offset)) => {
                let topic = self.source.topic();
                match self.suspects.condemn(partition, offset, error) {
                    Some(copy) => tracing::warn!(
                        %error, topic, partition, offset, ?copy, "undeliverable; sending a dead letter instead"
                    ),
                    None => return self.refuses_all(error),
                }
            }
            None => return self.refuses_all(error),
        }
        Ok(())
    }

    /// The broker refuses even a dead letter without the record, or a position: somebody has to change a topic. The
    /// partitions stay ours, and it is tried again now and then.
    fn refuses_all(&mut self, error: &KafkaError) -> Result<(), Ended> {
        let why = format!("a topic refuses records that cannot be made smaller: {error}");
        tracing::error!(
            worker = self.name,
            "{why}; raise max.message.bytes of the dead-letter topic and the changelog"
        );
        self.reins.board.refuses(&self.name, Some(why));
        (self.suspects.limits_read, self.suspects.blocked) = (false, true);
        self.reins.pause(Duration::from_secs(5));
        Ok(())
    }

    /// Somebody outside the bus is in trouble, and the batch cannot be decided without them. Nothing is open: it is given
    /// back and read again after a while, and polling goes on, so that the partitions stay ours.
    fn wait(&mut self, why: String, rewind: &BTreeMap<i32, i64>) -> Result<(), Ended> {
        const AGAIN: Duration = Duration::from_secs(60);
        if self.waiting.is_none_or(|(_, said)| said.elapsed() > AGAIN) {
            tracing::warn!(worker = self.name, "waiting, nothing is lost: {why}");
            self.waiting = Some((self.waiting.map_or(0, |(times, _)| times), Instant::now()));
        }
        let times = self.waiting.as_mut().map_or(0, |(times, _)| {
            *times += 1;
            *times
        });
        self.reins.board.waits(&self.name, Some(why));
        let away = |error| Ended::Lost(format!("cannot seek back while waiting: {error}"));
        self.source.rewind(rewind).map_err(away)?;
        self.reins.pause(Duration::from_millis(100 << times.min(6)).min(Duration::from_secs(5)));
        Ok(())
    }

    fn waited(&mut self) {
        if self.waiting.take().is_some() {
            tracing::info!(worker = self.name, "going on after waiting");
            self.reins.board.waits(&self.name, None);
        }
    }

    /// After a transaction that did not commit: nothing of it is visible, and nothing of it stays.
    fn recover(&mut self, error: TxnError, rewind: &BTreeMap<i32, i64>) -> Result<(), Ended> {
        match error {
            TxnError::Retry(error) if self.producer.is_usable() => {
                self.reins.progress.aborted();
                self.failures += 1;
                tracing::warn!(%error, attempt = self.failures, "a transaction was aborted; the batch is done again");
                if self.failures > RETRIES {
                    return Err(Ended::Lost(format!("{} aborts in a row, the last: {error}", self.failures)));
                }
                self.source.refresh_membership();
                self.source
                    .rewind(rewind)
                    .map_err(|error| Ended::Lost(format!("cannot seek back after an abort: {error}")))?;
                self.reins
                    .pause(Duration::from_millis(u64::from(5 * self.failures * self.failures).min(2000)));
                Ok(())
            }
            TxnError::Retry(error) | TxnError::Refused(error) | TxnError::Lost(error) => {
                Err(Ended::Lost(error.to_string()))
            }
            TxnError::Fenced(_) => {
                Err(Ended::Fatal(RunError::Fenced { instance: self.bus.instance.clone() }))
            }
            TxnError::Fatal(error) => Err(Ended::Fatal(RunError::Client(error))),
        }
    }

    fn halt(&mut self, partitions: Vec<i32>) {
        for partition in partitions {
            self.source.halt(partition);
        }
    }

    fn close(&mut self) {
        self.stage.close();
        self.source.leave(Instant::now() + self.bus.shutdown / 2);
    }
}
