//! The `match` role: judges articles and keeps the state of its partitions. [`intake`] reads routed records (raw ones
//! in direct mode), the engine plans, [`outgoing`] turns decisions into Kafka records, and `tasks` takes a partition
//! from claim to running. A store changes only after the transaction that holds the same changes in the changelog has
//! committed.

mod attempts;
pub(crate) mod compatibility;
pub(crate) mod intake;
mod mutants;
pub(crate) mod outgoing;
#[cfg(test)]
mod relocation_tests;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::config::Bus;
use crate::kafka::clock;
use crate::kafka::faults::{FAULTS, Faults, Point};
use crate::metrics;
use crate::status::StatusBoard;
use samestory_engine::engine::{Decided, Engine, Output, Plan};
use samestory_engine::index::{
    BusPosition, Change, Store, StoreError, StoreRegistry, TopicName, View, WriteSet,
};
use samestory_engine::model::{EventTime, Lang};

use super::recovery::generations::{Admitted, FOLLOW_INTERVAL, Generations};
use super::recovery::leftovers::Holdings;
use super::recovery::restore::{Cause, Restorer};
use super::recovery::slots::RestoreSlots;
use super::recovery::takeover::Decisions;
use super::turn::measure;
use super::turn::partitions::{AssignedPartitions, Obstacle, Task};
use super::turn::record::{Outgoing, Record};
use super::turn::source::RecordSource;
use super::turn::stage::{Planning, StageRole};
use super::turn::txn::CommittedTxn;
use intake::{BatchReader, ItemOrigin, ItemOrigins, Unreadable};
use outgoing::{Original, Writer};

pub(crate) use attempts::Attempts;
use tasks::{MatchAdvanced, OpenStore, RestoringStore};

/// How often memtables are flushed, so that a restart after a crash replays minutes of changelog and not hours.
pub(crate) const FLUSH: Duration = Duration::from_secs(60);

/// The `match` role as a [`StageRole`].
pub(crate) struct Matcher {
    pub(crate) bus: Bus,
    pub(crate) engine: Engine,
    pub(crate) intake: BatchReader,
    pub(crate) restorer: Restorer,
    pub(crate) writer: Writer,
    pub(crate) accept: Decisions,
    /// Consecutive store failures, by partition.
    pub(crate) attempts: Attempts,
    /// Limits how many restores run at once.
    pub(crate) slots: RestoreSlots,
    /// The partitions that this process holds on disk.
    pub(crate) holdings: Holdings,
    /// Receives the report of a store that keeps failing.
    pub(crate) board: Arc<StatusBoard>,
    pub(crate) generations: Generations,
    pub(crate) partitions: AssignedPartitions<RestoringStore, OpenStore>,
    /// By partition, why its state was rebuilt from nothing while this process has been running.
    pub(crate) wiped: Arc<Mutex<BTreeMap<i32, Vec<Cause>>>>,
    /// How often memtables are flushed.
    pub(crate) flush: Duration,
    /// Tells the purger, by partition, the offset below which input may be deleted.
    pub(crate) purge: Option<std::sync::mpsc::Sender<(i32, i64)>>,
    /// Makes running stores available to the query API.
    pub(crate) stores: Arc<StoreRegistry>,
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
    fn published(&self, intake: &BatchReader) -> impl Iterator<Item = (&Decided, ItemOrigin)> {
        self.origins.of_decisions(&self.plan).filter(|(_, origin)| {
            let record = self.records.get(origin.record);
            !record.is_some_and(|record| record.offset < self.suppress_below || intake.is_silent(record))
        })
    }

    /// How old each published verdict is at this time, counted from the timestamp of its raw record. A timestamp in the
    /// future counts as now, and a record without one is left out.
    fn verdict_ages(&self, intake: &BatchReader, now: EventTime) -> impl Iterator<Item = Duration> {
        self.published(intake).filter_map(move |(decided, origin)| {
            decided.outputs.iter().find(|output| matches!(output, Output::Tagged(_)))?;
            let arrived = self.records.get(origin.record)?.time?;
            let age = now.millis().saturating_sub(arrived.millis());
            Some(Duration::from_millis(u64::try_from(age).unwrap_or(0)))
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
        Admitted { suppress_below, waits }: Admitted,
    ) -> Result<PartitionPlan, PlanFailure> {
        let Some(running) = self.partitions.running_mut(partition) else {
            return Err(Unreadable::new("it is not running").into());
        };
        let OpenStore { store, here, .. } = &mut running.state;
        let progress = store.progress()?;
        let leader_epoch = records.last().and_then(|record| record.leader_epoch);
        let mut read = self.intake.batch(partition, &mut records, &progress)?;
        self.writer.fit_all(&mut read.items, &mut records);
        let repeated = read.repeated;
        let (mut batch, origins) = read.into_batch(BusPosition {
            application: TopicName::new(&self.bus.app),
            cluster: here.cluster.clone(),
            changelog: here.changelog,
            topic: TopicName::new(self.intake.topic()),
            topic_id: here.input,
            partition,
            next: u64::try_from(next).unwrap_or(0),
            leader_epoch,
        });
        mutants::wall_clock(&mut batch);
        let (plan, write_set) = self.engine.plan(&*store, batch)?;
        // Create column families before anything is committed: this may fail, and after the commit it must not.
        let languages: BTreeSet<Lang> = plan.changes.iter().filter_map(Change::language).collect();
        for language in languages {
            let new = !store.languages().contains(&language);
            store.ensure_language(language)?;
            if new {
                FAULTS.reach(Point::CreateFamily);
            }
        }
        Ok(PartitionPlan { partition, plan, write_set, origins, records, repeated, suppress_below, waits })
    }
}

impl Matcher {
    /// Partitions whose topics have been recreated since their positions were written. They are claimed again, and the
    /// takeover stops them with a message that names the topic.
    fn recreated(&mut self) -> Vec<i32> {
        if !self.partitions.is_topic_check_due() {
            return Vec::new();
        }
        let now = match self.here() {
            Ok(now) => now,
            Err(error) => {
                tracing::debug!(%error, "topic ids unavailable, retrying");
                return Vec::new();
            }
        };
        let differing = self.partitions.running().filter(|(_, running)| running.state.here.differs(&now));
        let recreated: Vec<i32> = differing.map(|(partition, _)| partition).collect();
        for &partition in &recreated {
            tracing::error!(partition, "a topic was deleted and created again; claiming the partition again");
            self.revoked(partition);
            self.assigned(partition);
        }
        recreated
    }
}

impl StageRole for Matcher {
    type Preparing = RestoringStore;
    type Running = OpenStore;
    type Planned = MatchPlan;

    fn partitions(&self) -> &AssignedPartitions<RestoringStore, OpenStore> {
        &self.partitions
    }

    fn partitions_mut(&mut self) -> &mut AssignedPartitions<RestoringStore, OpenStore> {
        &mut self.partitions
    }

    fn assigned(&mut self, partition: i32) {
        self.holdings.assigned(partition);
        self.partitions.assigned(partition);
    }

    fn revoked(&mut self, partition: i32) {
        self.attempts.forget(partition);
        if let Some(mut open) = self.partitions.revoked(partition)
            && let Err(error) = open.store.flush()
        {
            tracing::warn!(partition, %error, "flush failed while closing; nothing is lost, the changelog holds every change");
        }
        self.holdings.revoked(partition);
    }

    fn claim(&mut self, partition: i32, obstacle: Obstacle, source: &RecordSource) -> MatchAdvanced {
        let claimed = self.look_up(partition, &obstacle, source);
        claimed.unwrap_or_else(|error| self.failed(partition, error).into())
    }

    fn prepare(&mut self, partition: i32, restoring: RestoringStore, source: &RecordSource) -> MatchAdvanced {
        let restored = self.restore(partition, restoring, source);
        restored.unwrap_or_else(|error| self.failed(partition, error).into())
    }

    fn gather(&mut self, records: &BTreeMap<i32, Vec<Record>>) -> Result<(), String> {
        self.intake.load_schemas(records.values().flatten())
    }

    fn decode_ahead(&self, waiting: &BTreeMap<i32, Vec<Record>>) {
        self.intake.decode_ahead(waiting);
    }

    fn plan(&mut self, mut records: BTreeMap<i32, Vec<Record>>) -> Planning<MatchPlan> {
        let unpublished: BTreeMap<i32, i64> = self.partitions.unpublished_positions().collect();
        for &partition in unpublished.keys() {
            records.entry(partition).or_default();
        }
        let mut planning = Planning {
            planned: MatchPlan { partitions: Vec::new() },
            next: BTreeMap::new(),
            halted: Vec::new(),
        };
        for (partition, mut records) in records {
            let surveyor = &self.restorer.surveyor;
            let admitted = self.generations.admit(partition, &mut records, surveyor);
            if let (true, Some(from)) = (records.is_empty(), admitted.waits) {
                self.partitions.hold(partition, FOLLOW_INTERVAL, from);
                planning.halted.push(partition);
                continue;
            }
            let last = records.last().map(|record| record.offset + 1);
            let Some(next) = last.or_else(|| unpublished.get(&partition).copied()) else { continue };
            match self.plan_one(partition, records, next, admitted) {
                Ok(plan) => {
                    planning.next.insert(partition, next);
                    planning.planned.partitions.push(plan);
                }
                Err(failure) => {
                    match failure {
                        PlanFailure::Store(error) => self.fail(partition, error),
                        PlanFailure::Stop(why) => {
                            tracing::error!(partition, "stopped: {why}");
                            self.partitions.set(partition, Task::Stopped);
                        }
                    }
                    planning.halted.push(partition);
                }
            }
        }
        self.intake.evict_schemas();
        self.apply_early(&planning.planned);
        planning
    }

    fn outgoing<'a>(&'a self, plan: &'a MatchPlan) -> Vec<Outgoing<'a>> {
        /// The origin of decisions without a record.
        static NOTHING: Record = Record::NOTHING;
        let records = |part: &PartitionPlan| part.plan.decided.len() + part.plan.changes.len();
        let mut out = Vec::with_capacity(plan.partitions.iter().map(records).sum());
        for part in &plan.partitions {
            for (decided, ItemOrigin { record, slice }) in part.published(&self.intake) {
                let record = part.records.get(record).unwrap_or(&NOTHING);
                self.writer.decided(decided, Original { record, slice }, &mut out);
            }
            out.extend(
                part.plan
                    .changes
                    .iter()
                    .map(|change| self.writer.change(change, &part.write_set, part.partition)),
            );
        }
        out
    }

    fn apply(&mut self, plan: MatchPlan, committed: &CommittedTxn) -> Vec<i32> {
        let mut halted = Vec::new();
        for part in plan.partitions {
            let partition = part.partition;
            let Some(running) = self.partitions.running_mut(partition) else { continue };
            if running.committed() {
                self.accept.spend(partition);
            }
            let outputs = part.published(&self.intake).flat_map(|(decided, _)| &decided.outputs);
            measure::plan(&part.plan.stats, outputs);
            metrics::verdict_ages(part.verdict_ages(&self.intake, clock::now()));
            metrics::repeated("match", part.repeated);
            if part.plan.stats.stream_times_set > 0 {
                let times = part.plan.stats.stream_times_set;
                tracing::warn!(partition, times, "stream time set by control record");
            }
            if mutants::applied_early() {
                continue;
            }
            let open = &mut running.state;
            let unproven = || StoreError::Unproven {
                place: open.store.place().to_owned(),
                log: format!("changelog partition {partition}"),
            };
            let proof = committed.proof(partition, &open.attestor).ok_or_else(unproven);
            match proof.and_then(|proof| open.store.apply(part.write_set, &proof)) {
                Ok(()) => {
                    let next = part.records.last().map(|record| record.offset + 1);
                    if let (Some(purge), Some(next)) = (&self.purge, next) {
                        // The purger may have ended; that is no reason to stop.
                        let _sent = purge.send((partition, next));
                    }
                    if let Some(from) = part.waits {
                        self.partitions.hold(partition, FOLLOW_INTERVAL, from);
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
        FAULTS.reach(Point::Apply);
        halted
    }

    fn upkeep(&mut self) -> Vec<i32> {
        let mut failed = Vec::new();
        let running: Vec<i32> = self.partitions.running().map(|(partition, _)| partition).collect();
        for partition in running {
            let Some(running) = self.partitions.running_mut(partition) else { continue };
            let open = &mut running.state;
            if open.flushed.elapsed() > self.flush {
                open.flushed = Instant::now();
                FAULTS.reach(Point::StoreFlush);
                match open.store.flush() {
                    Ok(()) => self.attempts.forget(partition),
                    Err(error) => failed.push((partition, error)),
                }
                open.sizes = measure::sizes(&open.store);
            }
        }
        let mut halted = self.recreated();
        for (partition, error) in failed {
            self.fail(partition, error);
            halted.push(partition);
        }
        halted
    }
}
