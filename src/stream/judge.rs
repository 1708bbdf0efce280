//! The stage with state: look-up → verdict → state. Reads routed articles, or raw ones where they come by language.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer;

use crate::config::{Bus, StartAt};
use crate::detect::{Engine, Plan};
use crate::health::{Sizes, Standing};
use crate::model::Lang;
use crate::store::{Change, Committed, Laid, Rocks, Rows, Store, StoreError, View};

use super::clients::PATIENCE;
use super::intake::{Intake, Places, Unreadable};
use super::outgoing::{Original, Writer};
use super::predecessor::{Admitted, Predecessor};
use super::record::{Outgoing, Record};
use super::restore::{Cause, RestoreError, Restorer, Restoring, Step};
use super::route::HELD;
use super::source::Source;
use super::stage::{Planning, Stage};
use super::takeover::{Accept, Known, Takeover, decide};
use super::{faults, measure};

/// How often what was applied is written down, so that a crash replays minutes and not hours.
pub(super) const FLUSH: Duration = Duration::from_secs(60);

/// The stage with state.
pub(super) struct Judge {
    pub(super) bus: Bus,
    pub(super) engine: Engine,
    pub(super) intake: Intake,
    pub(super) restorer: Restorer,
    pub(super) writer: Writer,
    pub(super) accept: Accept,
    /// Where raw articles are judged, the generation before this one.
    pub(super) predecessor: Option<Predecessor>,
    pub(super) tasks: BTreeMap<i32, Task>,
    /// Causes for which partitions were made from zero in the life of this process.
    pub(super) wiped: Arc<Mutex<BTreeMap<i32, Vec<Cause>>>>,
    /// How often what was applied is written down.
    pub(super) flush: Duration,
    /// Where purging may go up to, by partition.
    pub(super) purge: Option<std::sync::mpsc::Sender<(i32, i64)>>,
}

/// One partition's life.
pub(super) enum Task {
    /// Its offset is asked for. First of all: what is committed after this is not our predecessor's.
    Claiming { not_before: Instant },
    /// Its state is brought to the end of its log.
    Restoring { committed: Option<i64>, restoring: Box<Restoring> },
    /// Only now can it be planned with and applied to.
    Running(Box<Running>),
    /// Somebody has to decide.
    Stopped,
}

/// A partition that is worked on.
pub(super) struct Running {
    store: Rocks,
    /// A position that the log does not know yet.
    unsaid: Option<i64>,
    flushed: Instant,
    /// It waits for the generation before until then, and goes on from here.
    held: Option<(Instant, i64)>,
    /// As they were when it was last flushed.
    sizes: Arc<Sizes>,
}

/// A decision about all partitions of a batch.
pub(super) struct Judged {
    partitions: Vec<Part>,
}

struct Part {
    partition: i32,
    plan: Plan,
    /// The changes, worked out for the store as it is.
    laid: Laid,
    places: Places,
    records: Vec<Record>,
    /// Below this offset nothing is said.
    silent_below: i64,
    /// Where it goes on after it has waited for the generation before.
    waits: Option<i64>,
}

/// Why a partition stops.
enum Trouble {
    Store(StoreError),
    /// Nothing that waiting would change.
    Stop(Unreadable),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Trouble {
        Trouble::Store(error)
    }
}

impl From<Unreadable> for Trouble {
    fn from(unreadable: Unreadable) -> Trouble {
        Trouble::Stop(unreadable)
    }
}

impl Judge {
    /// One step of one partition. Nothing, or where to read from.
    fn advance_one(&mut self, partition: i32, task: Task, source: &Source) -> (Task, Option<i64>) {
        let result = match task {
            Task::Claiming { not_before } if not_before > Instant::now() => {
                return (Task::Claiming { not_before }, None);
            }
            Task::Claiming { .. } => self.claim(partition, source),
            Task::Restoring { committed, restoring } => {
                self.restore(partition, committed, *restoring, source)
            }
            Task::Running(mut running) => {
                let from = running.held.take_if(|(until, _)| *until <= Instant::now());
                return (Task::Running(running), from.map(|(_, from)| from));
            }
            Task::Stopped => return (Task::Stopped, None),
        };
        result.unwrap_or_else(|error| (self.failed(partition, error), None))
    }

    fn claim(&mut self, partition: i32, source: &Source) -> Result<(Task, Option<i64>), RestoreError> {
        let committed = source.committed(partition)?;
        let mut wiped = self.wiped.lock().unwrap_or_else(PoisonError::into_inner);
        let restoring = self.restorer.begin(partition, wiped.entry(partition).or_default())?;
        Ok((Task::Restoring { committed, restoring: Box::new(restoring) }, None))
    }

    fn restore(
        &mut self,
        partition: i32,
        committed: Option<i64>,
        restoring: Restoring,
        source: &Source,
    ) -> Result<(Task, Option<i64>), RestoreError> {
        let store = match restoring.step()? {
            Step::More(restoring) => return Ok((Task::Restoring { committed, restoring }, None)),
            Step::Restored(store) => *store,
        };
        let progress = store.progress()?;
        if let Some(refusal) =
            self.intake.other_map(&progress).or_else(|| self.intake.other_fingerprints(&progress))
        {
            tracing::error!(partition, "{refusal}");
            return Ok((Task::Stopped, None));
        }
        let position = progress.inputs.get(&self.intake.name(partition));
        let position = position.map(|input| i64::try_from(input.next).unwrap_or(i64::MAX));
        let (low, high) = self.restorer.surveyor.fetch_watermarks(source.topic(), partition, PATIENCE)?;
        let sizes = measure::sizes(&store);
        let running = |unsaid| {
            Task::Running(Box::new(Running { store, unsaid, flushed: Instant::now(), held: None, sizes }))
        };
        Ok(match decide(Known { committed, position, low, high }, self.accept) {
            Takeover::Resume(next) => {
                tracing::info!(partition, next, "going on");
                (running(None), Some(next))
            }
            Takeover::Begin => {
                // What route has written is all to be judged.
                let from = if self.intake.is_routed() { StartAt::Earliest } else { self.bus.start };
                let start = source.first_offset(partition, from, (low, high))?;
                tracing::info!(partition, start, "beginning");
                (running(Some(start)), Some(start))
            }
            Takeover::Accepted { from, lost } => {
                tracing::warn!(partition, from, lost, "going on as the operator has said");
                (running(Some(from)), Some(from))
            }
            Takeover::Stop(disagreement) => {
                tracing::error!(partition, "stopped: {disagreement}");
                (Task::Stopped, None)
            }
        })
    }

    /// Closes a partition that cannot go on before it is looked at again.
    fn fail(&mut self, partition: i32, error: StoreError) {
        self.tasks.remove(&partition);
        let task = self.failed(partition, error.into());
        self.tasks.insert(partition, task);
    }

    /// What to do with a partition that cannot go on.
    fn failed(&mut self, partition: i32, error: RestoreError) -> Task {
        let again = |after: u64| Task::Claiming { not_before: Instant::now() + Duration::from_millis(after) };
        match error {
            RestoreError::Away(error) => {
                tracing::debug!(%error, partition, "taking over; it is tried again");
                again(200)
            }
            RestoreError::Store(error) => match error {
                StoreError::InUse { .. } => again(1000),
                StoreError::Full { .. } | StoreError::Outdated { .. } => {
                    tracing::error!(partition, "stopped for now: {error}");
                    again(5000)
                }
                StoreError::Corrupt { .. } => {
                    tracing::error!(partition, "{error}");
                    let directory = self.restorer.directory(partition);
                    let mut wiped = self.wiped.lock().unwrap_or_else(PoisonError::into_inner);
                    let wiped = wiped.entry(partition).or_default();
                    match self.restorer.set_aside(partition, &directory, Cause::Damaged, wiped) {
                        Ok(()) => again(0),
                        Err(error) => {
                            tracing::error!(partition, "stopped: {error}");
                            Task::Stopped
                        }
                    }
                }
                StoreError::Unusable { .. } if self.has_no_space(partition) => {
                    tracing::error!(partition, "stopped for now: {error}");
                    again(5000)
                }
                error => {
                    tracing::error!(partition, "stopped: {error}");
                    Task::Stopped
                }
            },
            error => {
                tracing::error!(partition, "stopped: {error}");
                Task::Stopped
            }
        }
    }

    /// RocksDB reports a full disk in other words once its background work has failed: a file written there tells.
    fn has_no_space(&self, partition: i32) -> bool {
        let directory = self.restorer.directory(partition);
        let probe = directory.with_extension("probe");
        let written = std::fs::write(&probe, [0; 64 << 10]);
        let _removed = std::fs::remove_file(&probe);
        written.is_err()
    }

    /// Leaves the records that are taken now. Below which offset nothing is said, and where it goes on if it has to wait.
    fn admit(&mut self, partition: i32, records: &mut Vec<Record>) -> (i64, Option<i64>) {
        let Some(predecessor) = self.predecessor.as_mut().filter(|_| !records.is_empty()) else {
            return (i64::MIN, None);
        };
        let admitted = predecessor.admit(partition, records).unwrap_or_else(|error| {
            tracing::debug!(%error, partition, "asking the generation before; it is tried again");
            Admitted { silent_below: i64::MIN, count: 0 }
        });
        let waits = records.get(admitted.count).map(|record| record.offset);
        records.truncate(admitted.count);
        (admitted.silent_below, waits)
    }

    fn plan_one(&mut self, partition: i32, mut records: Vec<Record>, next: i64) -> Result<Part, Trouble> {
        let (mut batch, places) = self.intake.batch(partition, &mut records, next)?;
        if faults::mutant("wall-clock") {
            batch.items.iter_mut().for_each(|item| item.time = Some(super::restore::now()));
        }
        let Some(Task::Running(running)) = self.tasks.get_mut(&partition) else {
            return Err(Unreadable::new("it is not running").into());
        };
        let (plan, laid) = self.engine.plan_laid(&running.store, batch)?;
        // Before anything is committed: room that cannot be made is found out now.
        let languages: BTreeSet<Lang> = plan.changes.iter().filter_map(Change::language).collect();
        for language in languages {
            let new = !running.store.languages().contains(&language);
            running.store.ensure_language(language)?;
            if new {
                faults::point("create-family");
            }
        }
        Ok(Part { partition, plan, laid, places, records, silent_below: i64::MIN, waits: None })
    }
}

impl Stage for Judge {
    type Planned = Judged;

    fn assigned(&mut self, partition: i32) {
        self.tasks.insert(partition, Task::Claiming { not_before: Instant::now() });
    }

    fn revoked(&mut self, partition: i32) {
        if let Some(Task::Running(mut running)) = self.tasks.remove(&partition)
            && let Err(error) = running.store.flush()
        {
            tracing::warn!(partition, "closing: {error}; the changelog has it all");
        }
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

    fn standing(&self) -> Vec<(i32, Standing)> {
        let standing = |task: &Task| match task {
            Task::Claiming { .. } => Standing::TakingOver,
            Task::Restoring { restoring, .. } => Standing::Restoring(restoring.so_far()),
            Task::Running(running) => Standing::Running(Arc::clone(&running.sizes)),
            Task::Stopped => Standing::Stopped,
        };
        self.tasks.iter().map(|(&partition, task)| (partition, standing(task))).collect()
    }

    fn is_taking_over(&self) -> bool {
        self.tasks.values().any(|task| match task {
            Task::Claiming { not_before } => *not_before <= Instant::now(),
            Task::Restoring { .. } => true,
            Task::Running(_) | Task::Stopped => false,
        })
    }

    fn has_to_say(&self) -> bool {
        self.tasks.values().any(|task| matches!(task, Task::Running(running) if running.unsaid.is_some()))
    }

    fn gather(&mut self, records: &BTreeMap<i32, Vec<Record>>) -> Result<(), String> {
        self.intake.gather(records.values().flatten())
    }

    fn plan(&mut self, mut records: BTreeMap<i32, Vec<Record>>) -> Planning<Judged> {
        for (&partition, task) in &self.tasks {
            if matches!(task, Task::Running(running) if running.unsaid.is_some()) {
                records.entry(partition).or_default();
            }
        }
        let mut planning = Planning {
            planned: Judged { partitions: Vec::new() },
            next: BTreeMap::new(),
            halted: Vec::new(),
        };
        for (partition, mut records) in records {
            let (silent_below, waits) = self.admit(partition, &mut records);
            if let (true, Some(from)) = (records.is_empty(), waits) {
                if let Some(Task::Running(running)) = self.tasks.get_mut(&partition) {
                    running.held = Some((Instant::now() + HELD, from));
                }
                planning.halted.push(partition);
                continue;
            }
            let unsaid = match self.tasks.get(&partition) {
                Some(Task::Running(running)) => running.unsaid,
                _ => None,
            };
            let Some(next) = records.last().map(|record| record.offset + 1).or(unsaid) else { continue };
            match self.plan_one(partition, records, next) {
                Ok(part) => {
                    planning.next.insert(partition, next);
                    planning.planned.partitions.push(Part { silent_below, waits, ..part });
                }
                Err(trouble) => {
                    match trouble {
                        Trouble::Store(error) => self.fail(partition, error),
                        Trouble::Stop(why) => {
                            tracing::error!(partition, "stopped: {why}");
                            self.tasks.insert(partition, Task::Stopped);
                        }
                    }
                    planning.halted.push(partition);
                }
            }
        }
        self.intake.settle();
        if faults::mutant("state-before-commit") {
            for part in &planning.planned.partitions {
                if let Some(Task::Running(running)) = self.tasks.get_mut(&part.partition) {
                    let end = running.store.changelog_next().ok().flatten().unwrap_or(0);
                    let proof = Committed::attest(BTreeMap::from([(part.partition, end)]));
                    let _applied = running.store.apply(&part.plan.changes, &proof);
                }
            }
        }
        planning
    }

    fn outgoing<'a>(&'a self, judged: &'a Judged) -> Vec<Outgoing<'a>> {
        let mut out = Vec::new();
        let nothing = Record::default();
        for part in &judged.partitions {
            for (decided, &(at, placed)) in part.plan.decided.iter().zip(&part.places) {
                let record = part.records.get(at).unwrap_or(&nothing);
                if record.offset < part.silent_below || self.intake.is_silent(record) {
                    continue;
                }
                self.writer.decided(decided, Original { record, placed }, &mut out);
            }
            out.extend(part.plan.changes.iter().map(|change| self.writer.change(change, part.partition)));
        }
        out
    }

    fn apply(&mut self, judged: Judged, proof: &Committed) -> Vec<i32> {
        let mut halted = Vec::new();
        for part in judged.partitions {
            let partition = part.partition;
            let Some(Task::Running(running)) = self.tasks.get_mut(&partition) else { continue };
            running.unsaid = None;
            measure::plan(&part.plan);
            if faults::mutant("state-before-commit") {
                continue;
            }
            match running.store.apply_laid(part.laid, proof) {
                Ok(()) => {
                    let next = part.records.last().map(|record| record.offset + 1);
                    if let (Some(purge), Some(next)) = (&self.purge, next) {
                        // Whoever purges may have ended; that is no reason to stop.
                        let _sent = purge.send((partition, next));
                    }
                    if let Some(from) = part.waits {
                        running.held = Some((Instant::now() + HELD, from));
                        halted.push(partition);
                    }
                }
                // It is behind its log now: close it, open it again, replay.
                Err(error) => {
                    tracing::error!(partition, "state could not follow what was committed: {error}");
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
        // Taken over again: that compares positions with the log, and stops those that do not fit.
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
                if let Err(error) = running.store.flush() {
                    failed.push((partition, error));
                }
                running.sizes = measure::sizes(&running.store);
            }
        }
        let mut halted = Vec::new();
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
