//! Changelog → store. Opening never wipes; a partition is rebuilt from zero for four causes only, each said aloud.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
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

impl Cause {
    pub(super) const ALL: [Cause; 4] =
        [Cause::Damaged, Cause::OutsideTheLog, Cause::TooOld, Cause::OtherTopic];

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
    /// The log is being read.
    Reading(Box<Reading>),
    /// Everything is read.
    Finishing(Box<Finishing>),
}

pub(super) struct Reading {
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
    records: u64,
    bytes: u64,
}

/// Where a step led to.
pub(super) enum Step {
    /// There is more to read.
    More(Restoring),
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
        let mut store = self.open(partition, here, &directory, wiped)?;
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
            store = self.open(partition, here, &directory, wiped)?;
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
    ) -> Result<Rocks, RestoreError> {
        let options = self.options(partition, here);
        match Rocks::open(directory, &options) {
            Err(StoreError::OtherBands { found, expected, .. }) => {
                tracing::info!(
                    partition,
                    found,
                    expected,
                    "the settings ask for other bands, or there are none yet; making them anew"
                );
                let mut said = Instant::now();
                Ok(Rocks::reband(directory, &options, &mut |done| {
                    if said.elapsed() > Duration::from_secs(2) {
                        said = Instant::now();
                        let (language, documents, of) = (done.language, done.documents, done.of);
                        tracing::info!(partition, %language, documents, of, "making bands anew");
                    }
                    ControlFlow::Continue(())
                })?)
            }
            Err(StoreError::Corrupt { detail, .. }) => {
                tracing::error!(partition, detail, "the state is damaged");
                self.set_aside(partition, directory, Cause::Damaged, wiped)?;
                Ok(Rocks::open(directory, &options)?)
            }
            Err(error @ StoreError::OtherChangelog { .. }) => {
                tracing::error!(partition, "{error}");
                self.set_aside(partition, directory, Cause::OtherTopic, wiped)?;
                Ok(Rocks::open(directory, &options)?)
            }
            other => Ok(other?),
        }
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
    EventTime::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl Restoring {
    /// Does some of the work.
    pub(super) fn step(self) -> Result<Step, RestoreError> {
        match self {
            Restoring::Reading(reading) => reading.step(),
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
            Restoring::Finishing(finishing) => finishing.so_far(),
        }
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
