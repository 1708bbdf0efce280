//! Changelog → store. Opening never wipes; a partition is rebuilt from zero for four causes only, each said aloud.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

use crate::health::Restore;
use crate::metrics;
use crate::model::EventTime;
use crate::store::{Ahead, Change, Committed, Rocks, RocksOptions, Store, StoreError, View};

use super::clients::{PATIENCE, Quiet, left_until, offset_at};
use super::finish::Finishing;
use super::generations::LookError;
use super::ids::Here;
use super::{faults, ids};

/// Records that are applied together.
const CHUNK: usize = 2000;
/// How long one step may take: the other partitions wait for it.
const STEP: Duration = Duration::from_millis(50);
/// From so many records on, a store that holds nothing is filled without postings, which are made at the end, all at
/// once: that is quicker.
const MANY: u64 = 10_000;

/// Restores that run at once in a process. Each has up to 32 MB of records waiting to be applied, and more in write buffers.
const AT_ONCE: usize = 2;
/// Without progress for so long, a restore says what it waits for.
const STALL: Duration = Duration::from_secs(10);
/// How often it says so.
const SAY_AGAIN: Duration = Duration::from_secs(30);

/// What restores have to share, in the whole process.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots(Arc<AtomicUsize>);

/// The right to restore a partition. Given back when it is dropped.
#[derive(Debug)]
#[must_use = "the slot is given back when this is dropped"]
pub(super) struct Slot(Arc<AtomicUsize>);

impl Slots {
    /// A slot, if one is free.
    pub(super) fn take(&self) -> Option<Slot> {
        let more = |taken: usize| (taken < AT_ONCE).then_some(taken + 1);
        let taken = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.is_ok().then(|| Slot(Arc::clone(&self.0)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What every restore of a worker needs.
pub(super) struct Restorer {
    /// For the consumers that read the changelog.
    pub(super) config: rdkafka::ClientConfig,
    /// Sees what is not decided yet.
    pub(super) surveyor: BaseConsumer<Quiet>,
    pub(super) changelog: String,
    /// How long the log keeps tombstones.
    pub(super) tombstones: Duration,
    pub(super) state: PathBuf,
    pub(super) options: RocksOptions,
}

/// Why a partition cannot be restored now.
#[derive(Debug, thiserror::Error)]
pub(super) enum RestoreError {
    /// The broker did not answer: try again.
    #[error("the broker does not answer: {0}")]
    Away(#[from] KafkaError),
    /// It is not known which generations have ended.
    #[error(transparent)]
    Generations(LookError),
    /// See [`StoreError`].
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log holds what this program does not write: stop.
    #[error(
        "changelog partition {partition} offset {offset}: {error}; it was written by another version or for other settings: start that version, or a new generation"
    )]
    Foreign { partition: i32, offset: i64, error: crate::store::DecodeError },
    /// Records remain to be replayed, and tombstones before them may be gone: quarantine the store and rebuild it.
    #[error(
        "the state ends at changelog offset {known}, and records from {first} on remain to be replayed that are older than the changelog keeps tombstones"
    )]
    TooOld { known: i64, first: i64 },
    /// The old directory cannot be set aside: stop.
    #[error("state {} cannot be set aside: {error}", path.display())]
    Aside { path: PathBuf, error: std::io::Error },
}

impl From<LookError> for RestoreError {
    fn from(error: LookError) -> RestoreError {
        match error {
            LookError::Away(error) => RestoreError::Away(error),
            error => RestoreError::Generations(error),
        }
    }
}

listed! {
/// Why a store is made from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// What it holds cannot be trusted.
    Damaged,
    /// It has come to a place that the log does not have.
    OutsideTheLog,
    /// Tombstones that it has not seen may be gone from the log.
    TooOld,
    /// It was made from another topic of the same name, or in another cluster.
    OtherTopic,
}
}

impl Cause {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Cause::Damaged => "damaged",
            Cause::OutsideTheLog => "outside-the-log",
            Cause::TooOld => "too-old",
            Cause::OtherTopic => "other-topic",
        }
    }
}

/// A partition's state on the way to the end of its log.
pub(super) enum Restoring {
    /// The settings ask for other postings than the store has. They are made before the log is read.
    Rebanding(Box<Finishing>),
    /// The log is being read.
    Reading(Box<Reading>),
    /// Everything is read.
    Finishing(Box<Finishing>),
}

/// A store, or what has to be done before it can be opened.
enum Opening {
    Open(Box<Rocks>),
    Rebanding(Finishing),
}

pub(super) struct Reading {
    changelog: String,
    partition: i32,
    store: Rocks,
    /// Where its postings are still to be made, and how; nothing where it has them.
    unposted: Option<(PathBuf, RocksOptions)>,
    log: BaseConsumer<Quiet>,
    /// The store is older than the log keeps tombstones: a single record to replay proves it too old.
    stale: bool,
    next: i64,
    first: i64,
    /// Everything before this was decided, or will be, by those who wrote before us.
    target: i64,
    began: Instant,
    said: Instant,
    /// When it last came further.
    advanced: Instant,
    /// When it last said that it does not.
    warned: Option<Instant>,
    records: u64,
    bytes: u64,
}

/// Where a step led to.
pub(super) enum Step {
    /// There is more to read.
    More(Restoring),
    /// The store has the postings that the settings ask for, and is closed: claim it again.
    Rebanded,
    /// The store is what the log says.
    Restored(Box<Rocks>),
}

impl Restorer {
    /// The directory of a partition's state.
    pub(super) fn directory(&self, partition: i32) -> PathBuf {
        self.state.join(format!("{}-{partition}", self.changelog))
    }

    /// Opens what is there and finds out how much of the log it has not seen.
    ///
    /// `wiped` are the causes for which this partition was made from zero before; none of them counts twice until it has
    /// been restored to the end.
    pub(super) fn begin(
        &self,
        partition: i32,
        here: &Here,
        wiped: &mut Vec<Cause>,
    ) -> Result<Restoring, RestoreError> {
        // First the end: what is written after this is by nobody, since only the owner of the partition writes here.
        let (low, high) = self.surveyor.fetch_watermarks(&self.changelog, partition, PATIENCE)?;
        let target = if faults::mutant("restore-to-lso") {
            let committed: BaseConsumer<Quiet> = self.config.create_with_context(Quiet)?;
            committed.fetch_watermarks(&self.changelog, partition, PATIENCE)?.1
        } else {
            high
        };
        let directory = self.directory(partition);
        let mut store = match self.open(partition, here, &directory, wiped)? {
            Opening::Open(store) => *store,
            Opening::Rebanding(rebanding) => return Ok(Restoring::Rebanding(Box::new(rebanding))),
        };
        let known = store.changelog_next()?.map(|next| i64::try_from(next).unwrap_or(i64::MAX));
        let mut next = known.unwrap_or(low);
        let cause = match known {
            None => None,
            Some(known) if known < low || known > high => Some(Cause::OutsideTheLog),
            Some(_) => None,
        };
        let stale = match known {
            Some(known) if cause.is_none() && known < high => self.is_stale(partition, known, high)?,
            _ => false,
        };
        if let Some(cause) = cause {
            drop(store);
            self.set_aside(partition, &directory, cause, wiped)?;
            store = Rocks::open(&directory, &self.options(partition, here))?;
            next = low;
        }
        let mut unposted = None;
        let from_nothing = known.is_none() || cause.is_some();
        if from_nothing && target - next >= faults::number("SAMESTORY_MANY", MANY).cast_signed() {
            drop(store);
            store = Rocks::refill(&directory, &self.options(partition, here))?;
            unposted = Some((directory, self.options(partition, here)));
        }
        let log: BaseConsumer<Quiet> = self.config.create_with_context(Quiet)?;
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.changelog, partition, Offset::Offset(next))?;
        log.assign(&list)?;
        let now = Instant::now();
        if next < target {
            metrics::restores(1);
            tracing::info!(partition, from = next, to = target, "restoring");
        }
        Ok(Restoring::Reading(Box::new(Reading {
            changelog: self.changelog.clone(),
            partition,
            store,
            unposted,
            log,
            stale,
            next,
            first: next,
            target,
            began: now,
            said: now,
            advanced: now,
            warned: None,
            records: 0,
            bytes: 0,
        })))
    }

    fn options(&self, partition: i32, here: &Here) -> RocksOptions {
        let changelog = (!faults::mutant("topic-id-ignored")).then(|| here.changelog());
        RocksOptions { ahead: Ahead::Changelog { partition }, changelog, ..self.options.clone() }
    }

    fn open(
        &self,
        partition: i32,
        here: &Here,
        directory: &Path,
        wiped: &mut Vec<Cause>,
    ) -> Result<Opening, RestoreError> {
        let options = self.options(partition, here);
        let store = match Rocks::open(directory, &options) {
            Err(StoreError::OtherBands { found, expected, .. }) => {
                tracing::info!(
                    partition,
                    found,
                    expected,
                    "the settings ask for other bands, or there are none yet; making them anew"
                );
                // On a thread of its own: this one polls Kafka for all partitions of the worker.
                let not_yet = Restore { of: 1, ..Restore::default() };
                let rebanding = Finishing::start(partition, directory.to_owned(), options, not_yet)?;
                return Ok(Opening::Rebanding(rebanding));
            }
            Err(StoreError::Corrupt { detail, .. }) => {
                tracing::error!(partition, detail, "the state is damaged");
                self.set_aside(partition, directory, Cause::Damaged, wiped)?;
                Rocks::open(directory, &options)?
            }
            Err(error @ StoreError::OtherChangelog { .. }) => {
                tracing::error!(partition, "{error}");
                self.set_aside(partition, directory, Cause::OtherTopic, wiped)?;
                Rocks::open(directory, &options)?
            }
            other => other?,
        };
        Ok(Opening::Open(Box::new(store)))
    }

    /// Moves a partition's state out of the way, once per cause.
    pub(super) fn set_aside(
        &self,
        partition: i32,
        directory: &Path,
        cause: Cause,
        wiped: &mut Vec<Cause>,
    ) -> Result<(), RestoreError> {
        if wiped.contains(&cause) {
            let place = directory.display().to_string();
            let detail = format!("it was made anew once because it was {} and is so again", cause.as_str());
            return Err(StoreError::Unusable { place, detail }.into());
        }
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let aside =
            (1..).map(|number| directory.with_file_name(format!("{name}.{}.{number}", cause.as_str())));
        let Some(aside) = aside.into_iter().find(|path| !path.exists()) else { return Ok(()) };
        std::fs::rename(directory, &aside)
            .map_err(|error| RestoreError::Aside { path: directory.to_owned(), error })?;
        wiped.push(cause);
        metrics::set_aside(cause.as_str(), 1);
        tracing::error!(partition, cause = cause.as_str(), aside = %aside.display(), "state set aside; it is made from zero");
        Ok(())
    }

    /// Whether the store ends before all records that are younger than the log keeps tombstones.
    ///
    /// Such a store is too old only if a record remains to be replayed. Offsets alone do not tell: behind the last record
    /// there is at least the marker of its commit. Nothing can be missed where no record remains: every transaction ends
    /// with the position record, compaction keeps the newest one, so if anything was committed since, that one is found.
    fn is_stale(&self, partition: i32, known: i64, high: i64) -> Result<bool, KafkaError> {
        if faults::mutant("too-old-off") {
            return Ok(false);
        }
        // A margin: compaction and clocks are not exact.
        let safe = self.tombstones.mul_f64(0.9);
        let since = now().millis().saturating_sub(i64::try_from(safe.as_millis()).unwrap_or(i64::MAX));
        let since = EventTime::from_millis(since.max(0));
        // Where no record is as young as that, all of them are older.
        let young = offset_at(&self.surveyor, &self.changelog, partition, since)?.unwrap_or(high);
        Ok(known < young)
    }

    /// Whether the log was cut before `next` and written again since the record before it was read under `epoch`.
    ///
    /// librdkafka asks the broker where that epoch ended when it seeks with an epoch (KIP-320), and refuses to read on
    /// from a place that lies behind.
    pub(super) fn is_truncated(
        &self,
        topic: &str,
        partition: i32,
        next: i64,
        epoch: i32,
    ) -> Result<bool, KafkaError> {
        let newest = ids::epoch_at_the_end(&self.surveyor, topic, partition, PATIENCE)?;
        if newest.is_none_or(|newest| newest == epoch) {
            return Ok(false);
        }
        let mut config = self.config.clone();
        config.set("fetch.wait.max.ms", "10");
        let reader: BaseConsumer<Quiet> = config.create_with_context(Quiet)?;
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(next))?;
        reader.assign(&list)?;
        ids::set_leader_epoch(&mut list, topic, partition, epoch);
        let deadline = Instant::now() + PATIENCE;
        let mut sought = false;
        while !left_until(deadline).is_zero() {
            if !sought {
                // Until the partition's leader is known there is nothing to seek in.
                let done = reader.seek_partitions(list.clone(), left_until(deadline))?;
                sought = done.elements().iter().all(|element| element.error().is_ok());
            }
            match reader.poll(Duration::from_millis(10)) {
                Some(Ok(_) | Err(KafkaError::PartitionEOF(_))) if sought => return Ok(false),
                Some(Err(KafkaError::MessageConsumption(
                    RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange,
                ))) if sought => return Ok(true),
                Some(Err(error)) => tracing::debug!(%error, partition, "validating the position"),
                Some(Ok(_)) | None => {}
            }
        }
        Err(KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut))
    }
}

/// The time, for the age of records in the changelog; verdicts have nothing to do with it.
#[allow(clippy::disallowed_methods, reason = "how old a store is has nothing to do with verdicts")]
pub(super) fn now() -> EventTime {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let ahead = i64::try_from(faults::number("SAMESTORY_CLOCK_AHEAD_MS", 0)).unwrap_or(i64::MAX);
    EventTime::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX).saturating_add(ahead))
}

impl Restoring {
    /// Does some of the work.
    pub(super) fn step(self) -> Result<Step, RestoreError> {
        match self {
            Restoring::Reading(reading) => reading.step(),
            Restoring::Rebanding(mut rebanding) => Ok(match rebanding.look()? {
                None => Step::More(Restoring::Rebanding(rebanding)),
                Some(store) => {
                    drop(store);
                    tracing::info!(partition = rebanding.partition(), "bands are made anew");
                    Step::Rebanded
                }
            }),
            Restoring::Finishing(mut finishing) => Ok(match finishing.look()? {
                None => Step::More(Restoring::Finishing(finishing)),
                Some(store) => {
                    restored(finishing.partition(), finishing.so_far());
                    Step::Restored(Box::new(store))
                }
            }),
        }
    }

    /// How far it has come.
    pub(super) fn so_far(&self) -> Restore {
        match self {
            Restoring::Reading(reading) => reading.so_far(),
            Restoring::Rebanding(finishing) | Restoring::Finishing(finishing) => finishing.so_far(),
        }
    }

    /// Whether it waits for something outside, and needs no memory meanwhile.
    pub(super) fn is_stalled(&self) -> bool {
        matches!(self, Restoring::Reading(reading) if reading.is_stalled())
    }
}

/// Why nothing comes from the log.
fn waits_for(next: i64, stable: Option<i64>, high: i64) -> &'static str {
    match stable {
        None => "the broker does not answer",
        Some(stable) if stable < high && next >= stable => {
            "a transaction is open at the last stable offset, and readers wait for it; the broker aborts it after the \
             transaction.timeout.ms of its producer (kafka-transactions.sh find-hanging names one that stays)"
        }
        Some(_) => "the broker has committed records and does not send them; look at the broker's log",
    }
}

fn restored(partition: i32, so_far: Restore) {
    let Restore { records, bytes, seconds, .. } = so_far;
    tracing::info!(partition, records, bytes, seconds, "restored");
}

impl Reading {
    /// Replays some of the log.
    fn step(mut self: Box<Self>) -> Result<Step, RestoreError> {
        let deadline = Instant::now() + STEP;
        let mut changes = Vec::new();
        let chunk = faults::number("SAMESTORY_CHUNK", CHUNK as u64) as usize;
        let before = self.next;
        while self.next < self.target && changes.len() < chunk {
            let left = left_until(deadline);
            match self.log.poll(left) {
                Some(Ok(message)) if self.stale => {
                    return Err(RestoreError::TooOld { known: self.first, first: message.offset() });
                }
                Some(Ok(message)) => {
                    let key = message.key().unwrap_or_default();
                    let change = Change::decode(key, message.payload()).map_err(|error| {
                        let (partition, offset) = (self.partition, message.offset());
                        RestoreError::Foreign { partition, offset, error }
                    })?;
                    self.bytes += (key.len() + message.payload_len()) as u64;
                    self.next = message.offset() + 1;
                    changes.push(change);
                }
                // Behind the last record there may be marks of transactions, and records that were aborted.
                Some(Err(KafkaError::PartitionEOF(_))) => self.next = self.next.max(self.position()?),
                Some(Err(error)) => tracing::debug!(%error, partition = self.partition, "restoring"),
                None => {}
            }
            if left.is_zero() {
                break;
            }
        }
        self.records += changes.len() as u64;
        metrics::restored(changes.len() as u64);
        if !changes.is_empty() || self.next > self.first {
            let end = u64::try_from(self.next).unwrap_or(0);
            self.store.apply(&changes, &Committed::attest(BTreeMap::from([(self.partition, end)])))?;
            faults::point("restore");
        }
        let pause = faults::number("SAMESTORY_RESTORE_PAUSE_MS", 0);
        if pause > 0 {
            std::thread::sleep(Duration::from_millis(pause));
        }
        if self.next > before {
            self.advanced = Instant::now();
        } else {
            self.warn();
        }
        self.report();
        if self.next < self.target {
            return Ok(Step::More(Restoring::Reading(self)));
        }
        let so_far = self.so_far();
        if let Some((directory, options)) = self.unposted {
            drop(self.store);
            let finishing = Finishing::start(self.partition, directory, options, so_far)?;
            return Ok(Step::More(Restoring::Finishing(Box::new(finishing))));
        }
        if self.records > 0 {
            restored(self.partition, so_far);
        }
        Ok(Step::Restored(Box::new(self.store)))
    }

    fn so_far(&self) -> Restore {
        let offsets = |to: i64| u64::try_from(to - self.first).unwrap_or(0);
        Restore {
            records: self.records,
            bytes: self.bytes,
            done: offsets(self.next),
            of: offsets(self.target),
            seconds: self.began.elapsed().as_secs_f64(),
        }
    }

    fn position(&self) -> Result<i64, KafkaError> {
        let positions = self.log.position()?;
        let offset = positions.elements().first().map(|element| element.offset());
        Ok(if let Some(Offset::Offset(offset)) = offset { offset } else { 0 })
    }

    fn is_stalled(&self) -> bool {
        let stall = faults::number("SAMESTORY_STALL_MS", STALL.as_millis() as u64);
        self.next < self.target && self.advanced.elapsed() >= Duration::from_millis(stall)
    }

    /// Says what a restore waits for that does not come further.
    fn warn(&mut self) {
        if !self.is_stalled() || self.warned.is_some_and(|warned| warned.elapsed() < SAY_AGAIN) {
            return;
        }
        self.warned = Some(Instant::now());
        // A client that reads what is committed is told the last stable offset.
        let answer = self.log.fetch_watermarks(&self.changelog, self.partition, PATIENCE);
        let stable = answer.ok().map(|(_, stable)| stable);
        tracing::warn!(
            topic = self.changelog,
            partition = self.partition,
            next = self.next,
            last_stable_offset = stable,
            high_watermark = self.target,
            seconds = self.advanced.elapsed().as_secs(),
            "the restore makes no progress: {}",
            waits_for(self.next, stable, self.target)
        );
    }

    fn report(&mut self) {
        if self.said.elapsed() < Duration::from_secs(2) {
            return;
        }
        self.said = Instant::now();
        let so_far = self.so_far();
        let (partition, records, bytes) = (self.partition, self.records, self.bytes);
        tracing::info!(
            partition,
            records,
            bytes,
            percent = (so_far.share() * 100.0).round(),
            seconds_left = so_far.seconds_left(),
            "restoring"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Settings};
    use crate::store::{Budget, Postings};
    use crate::stream::clients;

    #[test]
    fn a_process_restores_two_partitions_at_a_time() {
        let slots = Slots::default();
        let workers = [slots.clone(), slots.clone(), slots];
        let mut taken: Vec<Slot> = workers.iter().filter_map(Slots::take).collect();
        assert_eq!(taken.len(), 2);
        taken.pop();
        assert!(workers[2].take().is_some(), "the next one begins when one is done");
    }

    #[test]
    fn a_restore_that_waits_names_the_cause() {
        assert!(waits_for(7, None, 9).contains("does not answer"));
        assert!(waits_for(7, Some(7), 9).contains("a transaction is open"));
        assert!(waits_for(5, Some(7), 9).contains("does not send them"));
        assert!(waits_for(7, Some(9), 9).contains("does not send them"));
    }

    fn postings(settings: &str) -> (Config, Postings) {
        let config = Config::try_from(toml::from_str::<Settings>(settings).unwrap()).unwrap();
        let postings = config.postings.clone();
        (config, postings)
    }

    // Bands were made anew by the thread that polls Kafka: it left the group, and the other partitions stood still.
    #[test]
    fn other_bands_are_made_on_a_thread_of_their_own() {
        let state = crate::temporary::temporary("rebanding");
        let (config, before) = postings("[lsh]\nbands = 8\nrows = 8");
        let (_, after) = postings("[lsh]\nbands = 16\nrows = 4");
        assert_ne!(before, after);
        let worker = clients::Worker { role: clients::Role::Match, number: 0 };
        let restorer = |postings: Postings| Restorer {
            config: clients::restorer(&config.bus, &worker),
            surveyor: clients::surveyor(&config.bus, "survey").create_with_context(Quiet).unwrap(),
            changelog: "changelog".to_owned(),
            tombstones: Duration::from_secs(1),
            state: state.clone(),
            options: RocksOptions::new(postings, Ahead::Changelog { partition: 0 }, Budget::default()),
        };
        let here = Here { cluster: None, changelog: None, input: None };
        let open =
            |restorer: &Restorer| restorer.open(0, &here, &restorer.directory(0), &mut Vec::new()).unwrap();
        let first = open(&restorer(before));
        assert!(matches!(first, Opening::Open(_)));
        drop(first);
        let restorer = restorer(after);
        let Opening::Rebanding(rebanding) = open(&restorer) else { panic!("the bands were made at once") };
        let mut restoring = Restoring::Rebanding(Box::new(rebanding));
        assert_eq!(restoring.so_far().share(), 0.0);
        loop {
            restoring = match restoring.step().unwrap() {
                Step::More(restoring) => restoring,
                Step::Rebanded => break,
                Step::Restored(_) => panic!("nothing was read"),
            };
        }
        assert!(matches!(open(&restorer), Opening::Open(_)));
        std::fs::remove_dir_all(state).unwrap();
    }
}
