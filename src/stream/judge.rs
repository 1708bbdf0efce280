//! The stage with state: look-up → verdict → state. Reads routed articles, or raw ones where they come by language.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::config::{Bus, StartAt};
use crate::detect::{Batch, Engine, Incoming, Item, Plan};
use crate::model::{Cut, Lang};
use crate::store::{Change, Committed, Input, InputName, Rocks, Store, StoreError, View};

use super::decode::Decoder;
use super::faults;
use super::outgoing::{Original, Writer};
use super::record::{Outgoing, Record};
use super::restore::{Cause, RestoreError, Restorer, Restoring, Step};
use super::routed::{self, Routed};
use super::source::Source;
use super::stage::{Planning, Stage};
use super::takeover::{Accept, Known, Takeover, decide};

/// How often what was applied is written down, so that a crash replays minutes and not hours.
const FLUSH: Duration = Duration::from_secs(60);

/// Where articles come from.
pub(super) enum Intake {
    /// Raw, by language.
    Raw(Decoder),
    /// From route. A language that does not live in its partition is a disagreement about the map.
    Routed { partitions: i32, fingerprints: u32 },
}

/// The stage with state.
pub(super) struct Judge {
    pub(super) bus: Bus,
    pub(super) engine: Engine,
    pub(super) intake: Intake,
    pub(super) restorer: Restorer,
    pub(super) writer: Writer,
    pub(super) accept: Accept,
    pub(super) input: String,
    pub(super) tasks: BTreeMap<i32, Task>,
    /// Causes for which partitions were made from zero in the life of this process.
    pub(super) wiped: Arc<Mutex<BTreeMap<i32, Vec<Cause>>>>,
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
}

/// A decision about all partitions of a batch.
pub(super) struct Judged {
    partitions: Vec<Part>,
}

struct Part {
    partition: i32,
    plan: Plan,
    /// For each decided item, its record and where the article begins in it.
    items: Vec<(usize, usize)>,
    records: Vec<Record>,
}

/// Why a partition stops.
enum Trouble {
    Store(StoreError),
    /// Nothing that waiting would change.
    Stop(String),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Trouble {
        Trouble::Store(error)
    }
}

impl Judge {
    fn input_name(&self, partition: i32) -> InputName {
        InputName::new(&format!("{}/{partition}", self.input))
    }

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
            task => return (task, None),
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
        if let Some(refusal) = self.other_map(&progress) {
            tracing::error!(partition, "{refusal}");
            return Ok((Task::Stopped, None));
        }
        let position = progress.inputs.get(&self.input_name(partition));
        let position = position.map(|input| i64::try_from(input.next).unwrap_or(i64::MAX));
        let (low, high) = self.restorer.surveyor_watermarks(&self.input, partition)?;
        let running = |unsaid| Task::Running(Box::new(Running { store, unsaid, flushed: Instant::now() }));
        Ok(match decide(Known { committed, position, low, high }, self.accept) {
            Takeover::Resume(next) => {
                tracing::info!(partition, next, "going on");
                (running(None), Some(next))
            }
            Takeover::Begin => {
                let start = match (&self.intake, self.bus.start) {
                    (Intake::Routed { .. }, _) | (_, StartAt::Earliest) => low,
                    (_, StartAt::Latest) => high,
                    (_, StartAt::Time(time)) => source.offset_at(partition, time)?.unwrap_or(high),
                };
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

    /// What to do with a partition that cannot go on.
    fn failed(&mut self, partition: i32, error: RestoreError) -> Task {
        let again = |after: u64| Task::Claiming { not_before: Instant::now() + Duration::from_secs(after) };
        match error {
            RestoreError::Away(error) => {
                tracing::debug!(%error, partition, "taking over; it is tried again");
                again(0)
            }
            RestoreError::Store(error) => match error {
                StoreError::InUse { .. } => again(1),
                StoreError::Full { .. } | StoreError::Outdated { .. } => {
                    tracing::error!(partition, "stopped for now: {error}");
                    again(5)
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
                    again(5)
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

    /// Whether state was made with another map of languages to partitions than ours appends to.
    fn other_map(&self, progress: &crate::store::Progress) -> Option<String> {
        let Intake::Routed { partitions, .. } = self.intake else { return None };
        let written = progress.inputs.get(&map_name())?;
        let ours = map_note(&self.bus.languages);
        let theirs = written.note.as_ref().map_or("", |note| note.as_str());
        if written.next == partitions as u64 && ours.starts_with(theirs) {
            return None;
        }
        Some(format!(
            "stopped: this state was made with the languages \"{theirs}\" on {} partitions, the settings say \"{ours}\" on {partitions}; put stage.languages back (appending is safe), or make the state anew with `samestory state rebuild`",
            written.next
        ))
    }

    /// Items of one partition's records.
    fn batch(&self, partition: i32, records: &[Record]) -> Result<(Batch, Vec<(usize, usize)>), Trouble> {
        let mut batch = Batch::default();
        let mut items = Vec::with_capacity(records.len());
        for (at, record) in records.iter().enumerate() {
            match &self.intake {
                Intake::Raw(decoder) => {
                    let position = record.position(&self.input, partition);
                    let incoming = decoder.decode(record, &position);
                    batch.items.push(Item { position, time: record.time, incoming });
                    items.push((at, 0));
                }
                Intake::Routed { partitions, fingerprints } => {
                    let stop = |why: String| {
                        Trouble::Stop(format!(
                            "{} partition {partition} offset {}: {why}",
                            self.input, record.offset
                        ))
                    };
                    let read = routed::decode(record.value.as_deref().unwrap_or_default());
                    match read.map_err(|error| stop(error.to_string()))? {
                        Routed::Article { prepared, from, time, value } => {
                            let home = home(&self.bus.languages, prepared.language, *partitions);
                            if home != partition {
                                let language = prepared.language;
                                return Err(stop(format!(
                                    "an article in {language}, which lives in partition {home}: route has other settings in stage.languages, or another number of partitions"
                                )));
                            }
                            if prepared.fingerprint.config != *fingerprints {
                                return Err(stop("a fingerprint made with other settings in [text]; give route and match the same, or begin a new generation".into()));
                            }
                            batch.items.push(Item {
                                position: from,
                                time,
                                incoming: Incoming::Article(prepared),
                            });
                            items.push((at, value));
                        }
                        Routed::Delete { id, from, time } => {
                            batch.items.push(Item { position: from, time, incoming: Incoming::Delete(id) });
                            items.push((at, 0));
                        }
                        Routed::Forget { ids, time } => {
                            for (id, from) in ids {
                                batch.items.push(Item {
                                    position: from,
                                    time,
                                    incoming: Incoming::Forget(vec![id]),
                                });
                                items.push((at, 0));
                            }
                        }
                    }
                }
            }
        }
        if let Intake::Routed { partitions, .. } = self.intake {
            let note = Some(Cut::new(&map_note(&self.bus.languages)));
            batch.inputs.insert(map_name(), Input { next: partitions as u64, note });
        }
        Ok((batch, items))
    }

    fn plan_one(&mut self, partition: i32, records: Vec<Record>, next: i64) -> Result<Part, Trouble> {
        let (mut batch, items) = self.batch(partition, &records)?;
        batch
            .inputs
            .insert(self.input_name(partition), Input { next: u64::try_from(next).unwrap_or(0), note: None });
        let Some(Task::Running(running)) = self.tasks.get_mut(&partition) else {
            return Err(Trouble::Stop("it is not running".into()));
        };
        let plan = self.engine.plan(&running.store, batch)?;
        // Before anything is committed: room that cannot be made is found out now.
        let languages: BTreeSet<Lang> = plan.changes.iter().filter_map(Change::language).collect();
        for language in languages {
            running.store.ensure_language(language)?;
        }
        Ok(Part { partition, plan, items, records })
    }
}

/// Where a language lives.
pub(super) fn home(languages: &[Lang], language: Lang, partitions: i32) -> i32 {
    let index = languages.iter().position(|&known| known == language).unwrap_or(0);
    i32::try_from(index).unwrap_or(0) % partitions.max(1)
}

fn map_name() -> InputName {
    InputName::new("stage.languages")
}

fn map_note(languages: &[Lang]) -> String {
    languages.iter().map(|lang| lang.code()).collect::<Vec<_>>().join(" ")
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
        for (partition, records) in records {
            let unsaid = match self.tasks.get(&partition) {
                Some(Task::Running(running)) => running.unsaid,
                _ => None,
            };
            let Some(next) = records.last().map(|record| record.offset + 1).or(unsaid) else { continue };
            match self.plan_one(partition, records, next) {
                Ok(part) => {
                    planning.next.insert(partition, next);
                    planning.planned.partitions.push(part);
                }
                Err(trouble) => {
                    let task = match trouble {
                        Trouble::Store(error) => {
                            // Closed before it is looked at again.
                            self.tasks.remove(&partition);
                            self.failed(partition, error.into())
                        }
                        Trouble::Stop(why) => {
                            tracing::error!(partition, "stopped: {why}");
                            Task::Stopped
                        }
                    };
                    self.tasks.insert(partition, task);
                    planning.halted.push(partition);
                }
            }
        }
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
            for (decided, &(at, from)) in part.plan.decided.iter().zip(&part.items) {
                let record = part.records.get(at).unwrap_or(&nothing);
                self.writer.decided(decided, Original { record, from }, &mut out);
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
            match running.store.apply(&part.plan.changes, proof) {
                Ok(()) => {
                    let next = part.records.last().map(|record| record.offset + 1);
                    if let (Some(purge), Some(next)) = (&self.purge, next) {
                        // Whoever purges may have ended; that is no reason to stop.
                        let _sent = purge.send((partition, next));
                    }
                }
                // It is behind its log now: close it, open it again, replay.
                Err(error) => {
                    tracing::error!(partition, "state could not follow what was committed: {error}");
                    self.tasks.remove(&partition);
                    let task = self.failed(partition, error.into());
                    self.tasks.insert(partition, task);
                    halted.push(partition);
                }
            }
        }
        faults::point("apply");
        halted
    }

    fn out_of_range(&mut self, source: &Source) -> Vec<i32> {
        let running = self.tasks.iter().filter(|(_, task)| matches!(task, Task::Running(_)));
        let running: Vec<i32> = running.map(|(&partition, _)| partition).collect();
        // Taken over again: that compares positions with the log, and stops those that do not fit.
        for &partition in &running {
            self.tasks.remove(&partition);
            self.assigned(partition);
        }
        let _ = source;
        running
    }

    fn upkeep(&mut self) -> Vec<i32> {
        let mut failed = Vec::new();
        for (&partition, task) in &mut self.tasks {
            if let Task::Running(running) = task
                && running.flushed.elapsed() > FLUSH
            {
                running.flushed = Instant::now();
                faults::point("store-flush");
                if let Err(error) = running.store.flush() {
                    failed.push((partition, error));
                }
            }
        }
        let mut halted = Vec::new();
        for (partition, error) in failed {
            self.tasks.remove(&partition);
            let task = self.failed(partition, error.into());
            self.tasks.insert(partition, task);
            halted.push(partition);
        }
        halted
    }

    fn close(&mut self) {
        let partitions: Vec<i32> = self.tasks.keys().copied().collect();
        partitions.into_iter().for_each(|partition| self.revoked(partition));
    }
}

impl Restorer {
    /// First offset and end of an input partition.
    pub(super) fn surveyor_watermarks(
        &self,
        topic: &str,
        partition: i32,
    ) -> Result<(i64, i64), RestoreError> {
        use rdkafka::consumer::Consumer;
        Ok(self.surveyor.fetch_watermarks(topic, partition, super::clients::PATIENCE)?)
    }
}
