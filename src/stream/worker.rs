//! One thread: its own consumer, its own producer, its own partitions.
//!
//! The turn: collect (nothing is open) → plan (nothing is written) → begin → send → offsets → commit → apply, with the
//! proof of the commit. A transaction never spans a poll, so an assignment never changes under one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::config::Bus;
use crate::health::{Board, Joining};
use crate::metrics;
use crate::store::Shelf;

use super::clients::{self, Role, Worker};
use super::measure::{self, Lap};
use super::record::{Epochs, Record};
use super::source::{Collected, Happened, Source, SourceError};
use super::stage::Stage;
use super::txn::{ConnectError, Offsets, TxnError, TxnProducer};
use super::{Progress, RunError};

/// Batches that fail one after the other before the worker begins anew.
const RETRIES: u32 = 20;

/// Says when to end, and how it is going.
#[derive(Clone)]
pub(super) struct Reins {
    pub(super) stop: Arc<AtomicBool>,
    pub(super) progress: Arc<Progress>,
    pub(super) board: Arc<Board>,
    pub(super) shelf: Arc<Shelf>,
}

impl Reins {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
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
pub(super) fn run<S: Stage>(
    bus: &Bus,
    worker: &Worker,
    input: &str,
    reins: &Reins,
    mut make: impl FnMut() -> Result<S, RunError>,
) -> Result<(), RunError> {
    let mut losses = 0_u32;
    let mut said_away = false;
    while !reins.stopped() {
        let began = Instant::now();
        reins.board.begins(&worker.id(bus), worker.role.as_str(), Joining::Connecting);
        let ended = match make() {
            Ok(stage) => Turns::begin(bus, worker, input, stage, reins),
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

struct Turns<'a, S> {
    bus: &'a Bus,
    role: Role,
    name: String,
    source: Source,
    producer: TxnProducer,
    stage: S,
    reins: &'a Reins,
    failures: u32,
    /// How often it was waited for somebody outside the bus since that last answered, and when that was last said.
    waiting: Option<(u32, Instant)>,
}

impl<'a, S: Stage> Turns<'a, S> {
    fn begin(
        bus: &'a Bus,
        worker: &Worker,
        input: &str,
        stage: S,
        reins: &'a Reins,
    ) -> Result<Turns<'a, S>, Ended> {
        let config = clients::producer(bus, worker);
        let producer = match TxnProducer::connect(&config, &bus.topics.changelog, bus.transaction_timeout) {
            Ok(producer) => producer,
            Err(ConnectError::Away(why)) => return Err(Ended::Away(why)),
            Err(ConnectError::Failed(TxnError::Lost(error) | TxnError::Retry(error))) => {
                return Err(Ended::Lost(error.to_string()));
            }
            Err(ConnectError::Failed(TxnError::Usurped(error) | TxnError::Fatal(error))) => {
                return Err(Ended::Fatal(RunError::Client(error)));
            }
        };
        let source = Source::join(&clients::consumer(bus, worker), input, bus.batch);
        let source = source.map_err(|error| Ended::Fatal(RunError::Client(error)))?;
        let (role, name) = (worker.role, worker.id(bus));
        reins.board.begins(&name, role.as_str(), Joining::Waiting);
        Ok(Turns { bus, role, name, source, producer, stage, reins, failures: 0, waiting: None })
    }

    fn go(&mut self) -> Ended {
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
        let busy = self.stage.is_taking_over() || self.stage.has_to_say();
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
                    self.reins.board.given(&self.name);
                }
                Happened::Revoked(partitions) => {
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
        let (lags, away) = (self.source.lags(), self.source.is_away());
        self.reins.board.reports(&self.name, self.stage.standing(), lags, away);
        let batch = self.source.take();
        let batch = match batch {
            Some(batch) => Some(batch),
            None if self.stage.has_to_say() => {
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
            let outgoing = self.stage.outgoing(&planning.planned);
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
                self.recover(error, &rewind)
            }
        }
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
            TxnError::Retry(error) | TxnError::Lost(error) => Err(Ended::Lost(error.to_string())),
            TxnError::Usurped(_) => {
                Err(Ended::Fatal(RunError::Usurped { instance: self.bus.instance.clone() }))
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
