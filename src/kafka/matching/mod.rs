//! The `match` role: judges articles and keeps the state of its partitions. [`intake`] reads routed records (raw ones
//! in direct mode), the engine plans, [`outgoing`] turns decisions into Kafka records, and `tasks` takes a partition
//! from claim to running. A store changes only after the transaction that holds the same changes in the changelog has
//! committed.

mod attempts;
pub(crate) mod intake;
pub(crate) mod outgoing;
#[cfg(test)]
mod relocation_tests;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::config::Bus;
use crate::metrics;
use crate::status::{PartitionState, StatusBoard};
use samestory_engine::engine::{Decided, Engine, Plan};
use samestory_engine::index::{
    BusPosition, Change, Rows, Store, StoreError, StoreRegistry, TopicName, View, WriteSet,
};
use samestory_engine::model::Lang;

use super::recovery::generations::{Admitted, FOLLOW_INTERVAL, Generations};
use super::recovery::leftovers::Holdings;
use super::recovery::restore::{Cause, Restorer, Slots};
use super::recovery::takeover::{Decisions, Disagreed};
use super::route::payload::ArticleSlice;
use super::turn::record::{Outgoing, Record};
use super::turn::source::Source;
use super::turn::stage::{Planning, Stage};
use super::turn::txn::CommittedTxn;
use super::turn::{faults, measure};
use intake::{BatchReader, ItemOrigins, ReadBatch, Unreadable};
use outgoing::{Original, Writer};

pub(crate) use attempts::Attempts;
use tasks::Task;

/// How often memtables are flushed, so that a restart after a crash replays minutes of changelog and not hours.
pub(crate) const FLUSH: Duration = Duration::from_secs(60);

/// How often topic ids are checked while partitions run. librdkafka keeps reading from the same offset in a recreated
/// topic if that topic is long enough (2.12 has a FIXME there).
const TOPIC_ID_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The `match` role as a [`Stage`].
pub(crate) struct Matcher {
    pub(crate) bus: Bus,
    pub(crate) engine: Engine,
    pub(crate) intake: BatchReader,
    pub(crate) restorer: Restorer,
    pub(crate) writer: Writer,
    pub(crate) accept: Decisions,
    pub(crate) disagreed: Disagreed,
    /// Consecutive store failures, by partition.
    pub(crate) attempts: Attempts,
    /// Limits how many restores run at once.
    pub(crate) slots: Slots,
    /// The partitions that this process holds on disk.
    pub(crate) holdings: Holdings,
    /// Receives the report of a store that keeps failing.
    pub(crate) board: Arc<StatusBoard>,
    pub(crate) generations: Generations,
    pub(crate) tasks: BTreeMap<i32, Task>,
    /// By partition, why its state was rebuilt from nothing while this process has been running.
    pub(crate) wiped: Arc<Mutex<BTreeMap<i32, Vec<Cause>>>>,
    /// Partitions whose state could not be opened at the last attempt, and why.
    pub(crate) unusable: BTreeMap<i32, String>,
    /// How often memtables are flushed.
    pub(crate) flush: Duration,
    /// Tells the purger, by partition, the offset below which input may be deleted.
    pub(crate) purge: Option<std::sync::mpsc::Sender<(i32, i64)>>,
    /// Makes running stores available to the query API.
    pub(crate) shelf: Arc<StoreRegistry>,
    /// When the topic ids were last checked.
    pub(crate) compared: Instant,
}

/// The plan of one turn: a plan for each partition.
pub(crate) struct MatchPlan {
    partitions: Vec<PartitionPlan>,
}

struct PartitionPlan {
    partition: i32,
    plan: Plan,
    /// The plan's changes as rows, computed against the store as it is now.
    write_set: WriteSet,
    origins: ItemOrigins,
    records: Vec<Record>,
    /// Number of articles and deletes that were skipped because they had been judged before.
    repeated: u64,
    /// Nothing is published for records below this offset.
    suppress_below: i64,
    /// If the partition must wait for the previous generation: the offset where it resumes.
    waits: Option<i64>,
}

impl PartitionPlan {
    /// The decisions whose outputs are published, each with the origin of its item.
    fn published(&self, intake: &BatchReader) -> impl Iterator<Item = (&Decided, (usize, ArticleSlice))> {
        let decided = self.plan.decided.iter().zip(self.origins.iter().copied());
        decided.filter(|(_, (at, _))| {
            let record = self.records.get(*at);
            !record.is_some_and(|record| record.offset < self.suppress_below || intake.is_silent(record))
        })
    }
}

/// Why a partition could not be planned.
enum PlanFailure {
    Store(StoreError),
    /// Waiting does not help: the partition stops.
    Stop(Unreadable),
}

impl From<StoreError> for PlanFailure {
    fn from(error: StoreError) -> PlanFailure {
        PlanFailure::Store(error)
    }
}

impl From<Unreadable> for PlanFailure {
    fn from(unreadable: Unreadable) -> PlanFailure {
        PlanFailure::Stop(unreadable)
    }
}

impl Matcher {
    fn plan_one(
        &mut self,
        partition: i32,
        mut records: Vec<Record>,
        next: i64,
    ) -> Result<PartitionPlan, PlanFailure> {
        let Some(Task::Running(running)) = self.tasks.get_mut(&partition) else {
            return Err(Unreadable::new("it is not running").into());
        };
        let progress = running.store.progress()?;
        let leader_epoch = records.last().and_then(|record| record.leader_epoch);
        let ReadBatch { mut batch, origins, repeated } =
            self.intake.batch(partition, &mut records, &progress)?;
        batch.bus = Some(BusPosition {
            application: TopicName::new(&self.bus.app),
            cluster: running.here.cluster.clone(),
            changelog: running.here.changelog,
            topic: TopicName::new(self.intake.topic()),
            topic_id: running.here.input,
            partition,
            next: u64::try_from(next).unwrap_or(0),
            leader_epoch,
        });
        if faults::mutant("wall-clock") {
            batch.items.iter_mut().for_each(|item| item.time = Some(crate::kafka::recovery::restore::now()));
        }
        self.writer.fit_all(&mut batch, &origins, &mut records);
        let (plan, write_set) = self.engine.plan(&running.store, batch)?;
        // Create column families before anything is committed: this may fail, and after the commit it must not.
        let languages: BTreeSet<Lang> = plan.changes.iter().filter_map(Change::language).collect();
        for language in languages {
            let new = !running.store.languages().contains(&language);
            running.store.ensure_language(language)?;
            if new {
                faults::point("create-family");
            }
        }
        Ok(PartitionPlan {
            partition,
            plan,
            write_set,
            origins,
            records,
            repeated,
            suppress_below: i64::MIN,
            waits: None,
        })
    }
}

impl Matcher {
    /// Partitions whose topics have been recreated since their positions were written. They are claimed again, and the
    /// takeover stops them with a message that names the topic.
    fn recreated(&mut self) -> Vec<i32> {
        let often = faults::number("SAMESTORY_COMPARE_MS", TOPIC_ID_CHECK_INTERVAL.as_millis() as u64);
        let idle = !self.tasks.values().any(|task| matches!(task, Task::Running(_)));
        if idle || self.compared.elapsed() < Duration::from_millis(often) {
            return Vec::new();
        }
        self.compared = Instant::now();
        let now = match self.here() {
            Ok(now) => now,
            Err(error) => {
                tracing::debug!(%error, "topic ids unavailable, retrying");
                return Vec::new();
            }
        };
        let other = |task: &Task| matches!(task, Task::Running(running) if running.here.differs(&now));
        let recreated: Vec<i32> =
            self.tasks.iter().filter(|(_, task)| other(task)).map(|(&partition, _)| partition).collect();
        for &partition in &recreated {
            tracing::error!(partition, "a topic was deleted and created again; claiming the partition again");
            self.revoked(partition);
            self.assigned(partition);
        }
        recreated
    }
}

impl Stage for Matcher {
    type Planned = MatchPlan;

    fn assigned(&mut self, partition: i32) {
        self.holdings.assigned(partition);
        self.tasks.insert(partition, Task::Claiming { not_before: Instant::now() });
    }

    fn revoked(&mut self, partition: i32) {
        self.disagreed.forget(partition);
        self.attempts.forget(partition);
        if let Some(Task::Running(mut running)) = self.tasks.remove(&partition)
            && let Err(error) = running.store.flush()
        {
            tracing::warn!(partition, %error, "flush failed while closing; nothing is lost, the changelog holds every change");
        }
        self.holdings.revoked(partition);
    }

    fn advance(&mut self, source: &Source) -> Vec<(i32, i64)> {
        let partitions: Vec<i32> = self.tasks.keys().copied().collect();
        let mut ready = Vec::new();
        for partition in partitions {
            let Some(task) = self.tasks.remove(&partition) else { continue };
            let (task, from) = self.advance_one(partition, task, source);
            self.tasks.insert(partition, task);
            ready.extend(from.map(|from| (partition, from)));
        }
        ready
    }

    fn standing(&self) -> Vec<(i32, PartitionState)> {
        let standing = |partition: i32, task: &Task| match task {
            Task::Claiming { .. } => match self.unusable.get(&partition) {
                Some(why) => PartitionState::StateUnusable { why: why.clone() },
                None => PartitionState::TakingOver,
            },
            Task::NoSpace { .. } => PartitionState::NoSpace,
            Task::Restoring { restoring, .. } => PartitionState::Restoring(restoring.so_far()),
            Task::Running(running) => PartitionState::Running(Arc::clone(&running.sizes)),
            Task::Stopped => PartitionState::Stopped,
        };
        self.tasks.iter().map(|(&partition, task)| (partition, standing(partition, task))).collect()
    }

    fn is_taking_over(&self) -> bool {
        self.tasks.values().any(|task| match task {
            Task::Claiming { not_before } => *not_before <= Instant::now(),
            Task::Restoring { .. } => true,
            Task::Running(_) | Task::NoSpace { .. } | Task::Stopped => false,
        })
    }

    fn has_pending_commit(&self) -> bool {
        self.tasks
            .values()
            .any(|task| matches!(task, Task::Running(running) if running.unpublished_position.is_some()))
    }

    fn gather(&mut self, records: &BTreeMap<i32, Vec<Record>>) -> Result<(), String> {
        self.intake.load_schemas(records.values().flatten())
    }

    fn plan(&mut self, mut records: BTreeMap<i32, Vec<Record>>) -> Planning<MatchPlan> {
        for (&partition, task) in &self.tasks {
            if matches!(task, Task::Running(running) if running.unpublished_position.is_some()) {
                records.entry(partition).or_default();
            }
        }
        let mut planning = Planning {
            planned: MatchPlan { partitions: Vec::new() },
            next: BTreeMap::new(),
            halted: Vec::new(),
        };
        for (partition, mut records) in records {
            let surveyor = &self.restorer.surveyor;
            let Admitted { suppress_below, waits } =
                self.generations.admit(partition, &mut records, surveyor);
            if let (true, Some(from)) = (records.is_empty(), waits) {
                if let Some(Task::Running(running)) = self.tasks.get_mut(&partition) {
                    running.held = Some((Instant::now() + FOLLOW_INTERVAL, from));
                }
                planning.halted.push(partition);
                continue;
            }
            let unpublished_position = match self.tasks.get(&partition) {
                Some(Task::Running(running)) => running.unpublished_position,
                _ => None,
            };
            let Some(next) = records.last().map(|record| record.offset + 1).or(unpublished_position) else {
                continue;
            };
            match self.plan_one(partition, records, next) {
                Ok(part) => {
                    planning.next.insert(partition, next);
                    planning.planned.partitions.push(PartitionPlan { suppress_below, waits, ..part });
                }
                Err(failure) => {
                    match failure {
                        PlanFailure::Store(error) => self.fail(partition, error),
                        PlanFailure::Stop(why) => {
                            tracing::error!(partition, "stopped: {why}");
                            self.tasks.insert(partition, Task::Stopped);
                        }
                    }
                    planning.halted.push(partition);
                }
            }
        }
        self.intake.evict_schemas();
        if faults::mutant("state-before-commit") {
            for part in &planning.planned.partitions {
                if let Some(Task::Running(running)) = self.tasks.get_mut(&part.partition) {
                    let end = running.store.changelog_next().ok().flatten().unwrap_or(0);
                    let proof = running.attestor.attest(end);
                    let _applied = running.store.apply_changes(&part.plan.changes, &proof);
                }
            }
        }
        planning
    }

    fn outgoing<'a>(&'a self, plan: &'a MatchPlan) -> Vec<Outgoing<'a>> {
        let mut out = Vec::new();
        let nothing = Record::default();
        for part in &plan.partitions {
            for (decided, (at, slice)) in part.published(&self.intake) {
                let record = part.records.get(at).unwrap_or(&nothing);
                self.writer.decided(decided, Original { record, slice }, &mut out);
            }
            out.extend(part.plan.changes.iter().map(|change| self.writer.change(change, part.partition)));
        }
        out
    }

    fn apply(&mut self, plan: MatchPlan, committed: &CommittedTxn) -> Vec<i32> {
        let mut halted = Vec::new();
        for part in plan.partitions {
            let partition = part.partition;
            let Some(Task::Running(running)) = self.tasks.get_mut(&partition) else { continue };
            if running.unpublished_position.take().is_some() {
                self.accept.spend(partition);
            }
            let outputs = part.published(&self.intake).flat_map(|(decided, _)| &decided.outputs);
            measure::plan(&part.plan.stats, outputs);
            metrics::repeated("match", part.repeated);
            if part.plan.stats.stream_times_set > 0 {
                let times = part.plan.stats.stream_times_set;
                tracing::warn!(partition, times, "stream time set by control record");
            }
            if faults::mutant("state-before-commit") {
                continue;
            }
            let unproven = || StoreError::Unproven {
                place: running.store.place().to_owned(),
                log: format!("changelog partition {partition}"),
            };
            let proof = committed.proof(partition, &running.attestor).ok_or_else(unproven);
            match proof.and_then(|proof| running.store.apply(part.write_set, &proof)) {
                Ok(()) => {
                    let next = part.records.last().map(|record| record.offset + 1);
                    if let (Some(purge), Some(next)) = (&self.purge, next) {
                        // The purger may have ended; that is no reason to stop.
                        let _sent = purge.send((partition, next));
                    }
                    if let Some(from) = part.waits {
                        running.held = Some((Instant::now() + FOLLOW_INTERVAL, from));
                        halted.push(partition);
                    }
                }
                // The store is now behind its changelog: close it, open it again, replay.
                Err(error) => {
                    tracing::error!(
                        partition,
                        "committed changes could not be applied; reopening and replaying: {error}"
                    );
                    self.fail(partition, error);
                    halted.push(partition);
                }
            }
        }
        faults::point("apply");
        halted
    }

    fn out_of_range(&mut self) -> Vec<i32> {
        let running = self.tasks.iter().filter(|(_, task)| matches!(task, Task::Running(_)));
        let running: Vec<i32> = running.map(|(&partition, _)| partition).collect();
        // The takeover compares positions with the log, and stops partitions whose position is not in it.
        for &partition in &running {
            self.tasks.remove(&partition);
            self.assigned(partition);
        }
        running
    }

    fn upkeep(&mut self) -> Vec<i32> {
        let mut failed = Vec::new();
        for (&partition, task) in &mut self.tasks {
            if let Task::Running(running) = task
                && running.flushed.elapsed() > self.flush
            {
                running.flushed = Instant::now();
                faults::point("store-flush");
                match running.store.flush() {
                    Ok(()) => self.attempts.forget(partition),
                    Err(error) => failed.push((partition, error)),
                }
                running.sizes = measure::sizes(&running.store);
            }
        }
        let mut halted = self.recreated();
        for (partition, error) in failed {
            self.fail(partition, error);
            halted.push(partition);
        }
        halted
    }

    fn close(&mut self) {
        let partitions: Vec<i32> = self.tasks.keys().copied().collect();
        partitions.into_iter().for_each(|partition| self.revoked(partition));
    }
}
