//! The worker: one thread with its own consumer, producer and partitions, and the loop that runs its turns.
//!
//! The turn: collect (no transaction is open) → plan (nothing is written) → begin → send → offsets → commit → apply,
//! with the proof of the commit. A transaction never spans a poll, so the assignment never changes during one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::error::KafkaError;

use crate::config::Bus;
use crate::kafka::faults::{FAULTS, Faults, Point};
use crate::metrics;
use crate::status::{Joining, PartitionState, StatusBoard};
use crate::stop::Stop;
use samestory_engine::index::StoreRegistry;

use super::measure::{self, Lap};
use super::record::{Epochs, Record};
use super::source::{AssignmentChange, Collected, RecordSource, RecordSourceError};
use super::stage::StageRole;
use super::suspects::Suspects;
use super::txn::{ConnectError, Offsets, TxnError, TxnProducer};
use super::unreadable::{Jam, Probe};
use crate::kafka::admin::limits::Limits;
use crate::kafka::admin::notes::PausedRoles;
use crate::kafka::client as clients;
use crate::kafka::client::{Role, WorkerId};
use crate::kafka::recovery::leftovers::Holdings;
use crate::kafka::recovery::slots::RestoreSlots;
use crate::kafka::{RunCounters, RunError};

/// Shared by the workers of a process: the request to stop, the status board, the store registry and the limits.
#[derive(Clone)]
pub(crate) struct WorkerContext {
    pub(crate) stop: Stop,
    pub(crate) counters: Arc<RunCounters>,
    pub(crate) board: Arc<StatusBoard>,
    pub(crate) stores: Arc<StoreRegistry>,
    /// Limits of the topics, as last read.
    pub(crate) limits: Arc<Mutex<Arc<Limits>>>,
    /// Bounds the restores that run at once.
    pub(crate) slots: RestoreSlots,
    /// The partitions assigned to the process.
    pub(crate) holdings: Holdings,
    /// The roles that an operator has paused.
    pub(crate) pauses: PausedRoles,
}

impl WorkerContext {
    fn stopped(&self) -> bool {
        self.stop.is_requested()
    }

    pub(crate) fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.limits.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the limits of the topics again, and returns whether they differ from `known`.
    fn limits_changed(&self, bus: &Bus, known: &Limits) -> bool {
        let read = match Limits::read(bus) {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!(%error, "cannot read the topic limits again; keeping the old ones");
                return false;
            }
        };
        let changed = *known != read;
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(read);
        changed
    }

    /// Waits, but wakes up when the process is to stop.
    fn pause(&self, time: Duration) {
        self.stop.wait(time);
    }
}

/// Why the loop of turns ended.
enum WorkerExit {
    /// The process is to stop.
    Stopped,
    /// The broker is unreachable or rejects the login.
    Away(String),
    /// Drop everything, join again, and take the partitions over as a new owner would.
    Restart(String),
    Fatal(RunError),
}

/// Runs a worker until the process is to stop, and restarts it after errors that a restart can cure.
///
/// # Errors
/// The process must exit. Everything committed is correct, and the next start resumes from there.
pub(crate) fn run<S: StageRole>(
    bus: &Bus,
    worker: &WorkerId,
    input: &str,
    context: &WorkerContext,
    mut make: impl FnMut() -> Result<S, RunError>,
) -> Result<(), RunError> {
    let (mut restarts, mut unanswered) = (0_u32, 0_u32);
    while !context.stopped() {
        let began = Instant::now();
        context.board.begins(&worker.id(bus), worker.role.as_str(), Joining::Connecting);
        let started = match make() {
            Ok(stage) => Worker::start(bus, worker, input, stage, context),
            Err(error) => Err(WorkerExit::Fatal(error)),
        };
        let exit = match started {
            Ok(mut running) => {
                unanswered = 0;
                let exit = running.run();
                running.close();
                exit
            }
            Err(exit) => exit,
        };
        match exit {
            WorkerExit::Stopped => break,
            WorkerExit::Away(why) => {
                if unanswered == 0 {
                    tracing::warn!(worker = worker.id(bus), "broker unreachable, retrying: {why}");
                }
                unanswered = unanswered.saturating_add(1);
                context.pause(bus.retry.broker.pause(unanswered));
            }
            WorkerExit::Fatal(error) => return Err(error),
            WorkerExit::Restart(why) => {
                context.counters.restarted();
                metrics::restarted(worker.role.as_str(), 1);
                restarts = if began.elapsed() > Duration::from_secs(60) { 1 } else { restarts + 1 };
                tracing::warn!(worker = worker.id(bus), restarts, "restarting the worker: {why}");
                let Some(pause) = bus.retry.after_restart(restarts) else {
                    return Err(RunError::TooManyRestarts { restarts, why });
                };
                context.pause(pause);
            }
        }
    }
    Ok(())
}

struct Worker<'a, S> {
    bus: &'a Bus,
    role: Role,
    name: String,
    source: RecordSource,
    producer: TxnProducer,
    stage: S,
    context: &'a WorkerContext,
    failures: u32,
    /// While an outside service fails: the attempts so far, and when that was last logged.
    waiting: Option<(u32, Instant)>,
    limits: Arc<Limits>,
    suspects: Suspects,
    /// When the last search for the end of an unreadable batch failed.
    probed: Option<Instant>,
}

impl<'a, S: StageRole> Worker<'a, S> {
    fn start(
        bus: &'a Bus,
        worker: &WorkerId,
        input: &str,
        stage: S,
        context: &'a WorkerContext,
    ) -> Result<Worker<'a, S>, WorkerExit> {
        let limits = context.limits();
        let mut config = clients::producer(bus, worker);
        // The broker compares a whole batch with the topic's max.message.bytes.
        let batch_size = config.get("batch.size").and_then(|size| size.parse().ok()).unwrap_or(usize::MAX);
        config.set("batch.size", batch_size.min(limits.smallest()).to_string());
        let producer = match TxnProducer::connect(&config, &bus.topics.changelog, bus.transaction_timeout) {
            Ok(producer) => producer,
            Err(ConnectError::Away(why)) => return Err(WorkerExit::Away(why)),
            Err(ConnectError::Failed(
                TxnError::OutcomeUnknown(error) | TxnError::Retry(error) | TxnError::Refused(error),
            )) => {
                return Err(WorkerExit::Restart(error.to_string()));
            }
            Err(ConnectError::Failed(TxnError::Fenced(error) | TxnError::Fatal(error))) => {
                return Err(WorkerExit::Fatal(RunError::Client(error)));
            }
        };
        // Route writes nothing too large to the routed topic, and every record there must be read in full.
        let longest =
            if worker.role == Role::Match { usize::MAX } else { bus.topics.max_message_bytes as usize };
        let source = RecordSource::join(&clients::consumer(bus, worker), input, bus.batch, longest);
        let source = source.map_err(|error| WorkerExit::Fatal(RunError::Client(error)))?;
        let (role, name) = (worker.role, worker.id(bus));
        context.board.begins(&name, role.as_str(), Joining::Waiting);
        Ok(Worker {
            bus,
            role,
            name,
            source,
            producer,
            stage,
            context,
            failures: 0,
            waiting: None,
            limits,
            suspects: Suspects::default(),
            probed: None,
        })
    }

    fn run(&mut self) -> WorkerExit {
        // On a panic this guard fails the stage before the worker's clients are closed, which may take long.
        let _guard = self.context.board.guard(&self.name);
        loop {
            if self.context.stopped() {
                return WorkerExit::Stopped;
            }
            if let Err(exit) = self.once() {
                return exit;
            }
        }
    }

    fn once(&mut self) -> Result<(), WorkerExit> {
        let busy = self.stage.partitions().is_taking_over() || self.has_pending_commit();
        // Taking a partition over waits by itself, in `advance`.
        let patience = if busy { Duration::ZERO } else { Duration::from_millis(100) };
        let changes = self.source.collect(patience);
        for change in changes.map_err(|error: RecordSourceError| WorkerExit::Restart(error.to_string()))? {
            match change {
                AssignmentChange::Assigned(partitions) => {
                    if !partitions.is_empty() {
                        tracing::info!(topic = self.source.topic(), ?partitions, "assigned");
                    }
                    partitions.into_iter().for_each(|partition| self.stage.assigned(partition));
                    self.context.board.assigned(&self.name);
                }
                AssignmentChange::Revoked(partitions) => {
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
                // The consumer does not fetch the partition yet. Claim it again; by then it does.
                tracing::debug!(%error, partition, "cannot start the partition yet");
                self.stage.revoked(partition);
                self.stage.assigned(partition);
            }
        }
        let jams = self.source.jams();
        metrics::read_errors(self.role.as_str(), self.source.take_error_count());
        let (lags, away) = (self.source.lags(), self.source.is_away());
        let states = self.stage.partitions().states().into_iter().map(|(partition, state)| {
            let jam = jams.iter().find(|jam| jam.partition == partition);
            let unreadable = |jam: &Jam| PartitionState::Unreadable {
                offset: jam.offset,
                why: self.source.last_read_error().to_owned(),
            };
            (partition, jam.map_or(state, unreadable))
        });
        self.context.board.reports(&self.name, states, lags, away);
        if let Some(jam) = jams.into_iter().find(|jam| self.may_skip(jam)) {
            self.skip(jam);
        }
        let held = self.context.pauses.holds(self.role);
        self.source.hold(held).map_err(|error| {
            WorkerExit::Restart(format!("cannot pause or resume the partitions: {error}"))
        })?;
        let taken = if held { None } else { self.source.take() };
        let batch = match taken {
            Some(batch) => self.narrowed(batch),
            None if self.has_pending_commit() => {
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

    /// True if there is something to commit even without new records.
    fn has_pending_commit(&self) -> bool {
        self.stage.partitions().unpublished_positions().next().is_some()
    }

    fn turn(&mut self, batch: Collected) -> Result<(), WorkerExit> {
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
        let epochs = Epochs::in_records(&records);
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
        FAULTS.reach(Point::Plan);
        self.stage.decode_ahead(self.source.waiting());
        let membership = self.source.membership_for_commit(membership);
        self.context.counters.opened(&self.name);
        let committed = (|| {
            let mut outgoing = self.stage.outgoing(&planning.planned);
            let now = crate::kafka::clock::now();
            outgoing.iter_mut().for_each(|record| self.limits.admit_time(record, now));
            let mut txn = self.producer.begin()?;
            for record in &outgoing {
                txn.send(record)?;
            }
            lap.done("send");
            let (topic, next) = (self.source.topic(), &planning.next);
            txn.commit(&Offsets { topic, next, epochs: &epochs, membership: &membership })
        })();
        self.context.counters.closed(&self.name);
        match committed {
            Ok(proof) => {
                self.failures = 0;
                self.source.committed_to(&planning.next);
                if self.suspects.committed(&planning.next) {
                    self.context.board.refuses(&self.name, None);
                }
                self.context.counters.committed(count);
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

    /// True if it is time to skip an unreadable batch. Only batches of the raw topic are skipped: what route has
    /// written to the routed topic must not be lost.
    fn may_skip(&self, jam: &Jam) -> bool {
        let patience = self.bus.unreadable_after.filter(|_| self.role != Role::Match);
        let probed_lately = self.probed.is_some_and(|at| at.elapsed() < Duration::from_secs(30));
        patience.is_some_and(|patience| jam.since.elapsed() >= patience) && !probed_lately
    }

    /// Finds the end of an unreadable batch and resumes after it. A dead letter names the skipped offsets.
    fn skip(&mut self, jam: Jam) {
        let (topic, Jam { partition, offset, .. }) = (self.source.topic().to_owned(), jam);
        let probe = Probe::new(&clients::probe(self.bus, &self.name), &topic, partition);
        let skipped = probe.and_then(|probe| match probe.end_of_batch(offset)? {
            Some(next) => self.source.skip(jam, next).map(|()| Some(next)),
            None => Ok(None),
        });
        // After a skip the next unreadable batch is probed at once, after a failure in 30 seconds.
        self.probed = (!matches!(skipped, Ok(Some(_)))).then(Instant::now);
        match skipped {
            Ok(Some(next)) => tracing::error!(
                topic,
                partition,
                first = offset,
                last = next - 1,
                "unreadable batch skipped; a dead letter names its offsets"
            ),
            Ok(None) => {
                tracing::info!(topic, partition, offset, "a new consumer can read the batch; not skipped")
            }
            Err(error) => {
                tracing::warn!(%error, topic, partition, offset, "cannot find the end of an unreadable batch, retrying")
            }
        }
    }

    /// During the search for a refused record, narrows the batch to a part that may hold it and puts the rest back.
    /// Also marks the records that have become dead letters.
    fn narrowed(&mut self, mut batch: Collected) -> Option<Collected> {
        let rest = self.suspects.narrow(&mut batch.records);
        self.source.put_back(rest);
        if batch.records.is_empty() {
            // The suspected partition has not been fetched again yet.
            self.context.pause(Duration::from_millis(20));
            return None;
        }
        Some(batch)
    }

    /// The broker refuses a record of this batch, and would refuse it again. The batch is halved until the record is
    /// found and becomes a dead letter. Nothing of the batch is visible yet, so its neighbours are judged as if it were
    /// absent.
    fn refused(
        &mut self,
        error: &KafkaError,
        lasts: BTreeMap<i32, i64>,
        count: usize,
        rewind: &BTreeMap<i32, i64>,
    ) -> Result<(), WorkerExit> {
        self.context.counters.aborted();
        if !std::mem::replace(&mut self.suspects.limits_read, true)
            && self.context.limits_changed(self.bus, &self.limits)
        {
            return Err(WorkerExit::Restart(format!("the limits of a topic have changed: {error}")));
        }
        self.source.refresh_membership();
        self.source
            .rewind(rewind)
            .map_err(|error| WorkerExit::Restart(format!("cannot seek back after an abort: {error}")))?;
        let single = rewind.first_key_value().filter(|_| count == 1);
        match single {
            None if count > 1 => {
                tracing::warn!(%error, records = count, "a record was refused by the broker; halving the batch to find it");
                self.suspects.refused(lasts, count);
            }
            Some((&partition, &offset)) => {
                let topic = self.source.topic();
                match self.suspects.condemn(partition, offset, error) {
                    Some(copy) => tracing::warn!(
                        %error, topic, partition, offset, ?copy, "record refused by the broker; sending a dead letter instead"
                    ),
                    None => return self.refuses_all(error),
                }
            }
            None => return self.refuses_all(error),
        }
        Ok(())
    }

    /// The broker refuses even the smallest dead letter, or a position record: the operator has to change a topic. The
    /// worker keeps its partitions and retries every five seconds.
    fn refuses_all(&mut self, error: &KafkaError) -> Result<(), WorkerExit> {
        let why = format!("a topic refuses records that cannot be made smaller: {error}");
        tracing::error!(
            worker = self.name,
            "{why}; raise max.message.bytes of the dead-letter topic and the changelog"
        );
        self.context.board.refuses(&self.name, Some(why));
        (self.suspects.limits_read, self.suspects.blocked) = (false, true);
        self.context.pause(Duration::from_secs(5));
        Ok(())
    }

    /// The batch cannot be planned because an outside service fails. No transaction is open. The batch is read again
    /// after a pause, and polling continues meanwhile, so that the worker keeps its partitions.
    fn wait(&mut self, why: String, rewind: &BTreeMap<i32, i64>) -> Result<(), WorkerExit> {
        const LOG_INTERVAL: Duration = Duration::from_secs(60);
        if self.waiting.is_none_or(|(_, logged)| logged.elapsed() > LOG_INTERVAL) {
            tracing::warn!(worker = self.name, "batch delayed, retrying; nothing is lost: {why}");
            self.waiting = Some((self.waiting.map_or(0, |(times, _)| times), Instant::now()));
        }
        let times = self.waiting.as_mut().map_or(0, |(times, _)| {
            *times += 1;
            *times
        });
        self.context.board.waits(&self.name, Some(why));
        let no_seek = |error| WorkerExit::Restart(format!("cannot seek back to a delayed batch: {error}"));
        self.source.rewind(rewind).map_err(no_seek)?;
        self.context.pause(self.bus.retry.registry.pause(times));
        Ok(())
    }

    fn waited(&mut self) {
        if self.waiting.take().is_some() {
            tracing::info!(worker = self.name, "resuming the delayed batch");
            self.context.board.waits(&self.name, None);
        }
    }

    /// Reacts to a transaction that did not commit. State has not changed, so it is enough to seek back or restart.
    fn recover(&mut self, error: TxnError, rewind: &BTreeMap<i32, i64>) -> Result<(), WorkerExit> {
        match error {
            TxnError::Retry(error) if self.producer.is_usable() => {
                self.context.counters.aborted();
                self.failures += 1;
                tracing::warn!(%error, attempt = self.failures, "a transaction was aborted; retrying the batch");
                let Some(pause) = self.bus.retry.after_abort(self.failures) else {
                    return Err(WorkerExit::Restart(format!(
                        "{} aborts in a row, the last: {error}",
                        self.failures
                    )));
                };
                self.source.refresh_membership();
                self.source.rewind(rewind).map_err(|error| {
                    WorkerExit::Restart(format!("cannot seek back after an abort: {error}"))
                })?;
                self.context.pause(pause);
                Ok(())
            }
            TxnError::Retry(error) | TxnError::Refused(error) | TxnError::OutcomeUnknown(error) => {
                Err(WorkerExit::Restart(error.to_string()))
            }
            TxnError::Fenced(_) => {
                Err(WorkerExit::Fatal(RunError::Fenced { instance: self.bus.instance.clone() }))
            }
            TxnError::Fatal(error) => Err(WorkerExit::Fatal(RunError::Client(error))),
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
