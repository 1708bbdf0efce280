//! Restores a partition's store from its changelog, in short steps between the worker's turns; `finish` builds posting
//! lists in the background. Opening a store never wipes it: a store is quarantined and rebuilt from zero for four
//! [causes](Cause) only, and each is logged as an error.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

use crate::metrics;
use crate::status::Restore;
use samestory_engine::index::{
    Attestor, Change, Durability, Rocks, RocksOptions, Rows, Store, StoreError, View,
};
use samestory_engine::model::EventTime;

use super::finish::Finishing;
use super::generations::LookError;
use crate::kafka::admin::ids;
use crate::kafka::admin::ids::ClusterIds;
use crate::kafka::client::{PATIENCE, Quiet, left_until, offset_at};
use crate::kafka::faults::{Constant, FAULTS, Faults, Mutant, Point};

/// Records that are applied together.
const CHUNK: usize = 2000;
/// Time limit of one step: the other partitions of the worker wait for it.
const STEP: Duration = Duration::from_millis(50);
/// An empty store with at least this many records to replay is filled without posting lists, which are then built all
/// at once: that is faster.
const MANY: u64 = 10_000;

/// Restores that run at once in a process. Each has up to 32 MB of records waiting to be applied, and more in
/// memtables.
const AT_ONCE: usize = 2;
/// After this time without progress, a restore logs what it waits for.
const STALL: Duration = Duration::from_secs(10);
/// Time between two such warnings.
const WARN_INTERVAL: Duration = Duration::from_secs(30);

/// Bounds the restores that run at once in the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots(Arc<AtomicUsize>);

/// The right to restore a partition. Dropping it frees the slot.
#[derive(Debug)]
#[must_use = "dropping it frees the slot"]
pub(crate) struct Slot(Arc<AtomicUsize>);

impl Slots {
    /// A slot, if one is free.
    pub(crate) fn take(&self) -> Option<Slot> {
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

/// Restores the partitions of a worker.
pub(crate) struct Restorer {
    /// Configuration of the consumers that read the changelog.
    pub(crate) config: rdkafka::ClientConfig,
    /// Reads uncommitted, so that it sees the high watermark.
    pub(crate) surveyor: BaseConsumer<Quiet>,
    pub(crate) changelog: String,
    /// How long the changelog keeps tombstones.
    pub(crate) tombstones: Duration,
    pub(crate) state: PathBuf,
    pub(crate) options: RocksOptions,
}

/// Why a partition cannot be restored now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    /// The broker did not answer: retry.
    #[error("broker unreachable: {0}")]
    Away(#[from] KafkaError),
    /// The generation-end records cannot be read.
    #[error(transparent)]
    Generations(LookError),
    /// See [`StoreError`].
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The changelog holds a record that this version does not write: stop.
    #[error(
        "changelog partition {partition} offset {offset}: {error}; it was written by another version or with other settings: start that version, or a new generation"
    )]
    Foreign { partition: i32, offset: i64, error: samestory_engine::index::DecodeError },
    /// Records remain to be replayed, and tombstones among them may be gone: quarantine the store and rebuild it.
    #[error(
        "the state ends at changelog offset {known}, and records from {first} on remain to be replayed that are older than the changelog keeps tombstones"
    )]
    TooOld { known: i64, first: i64 },
    /// The old directory cannot be renamed: stop.
    #[error("state {} cannot be quarantined: {error}; check the permissions of stage.state", path.display())]
    Quarantine { path: PathBuf, error: std::io::Error },
}

impl From<LookError> for RestoreError {
    fn from(error: LookError) -> RestoreError {
        match error {
            LookError::Away(error) => RestoreError::Away(error),
            error => RestoreError::Generations(error),
        }
    }
}

samestory_engine::listed! {
/// Why a store is quarantined and rebuilt from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// A checksum or an invariant failed.
    Damaged,
    /// It ends at an offset that the changelog does not have.
    OutsideTheLog,
    /// Tombstones that it has not seen may be gone from the changelog.
    TooOld,
    /// It was built from another topic of the same name, or in another cluster.
    OtherTopic,
}
}

impl Cause {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Cause::Damaged => "damaged",
            Cause::OutsideTheLog => "outside-the-log",
            Cause::TooOld => "too-old",
            Cause::OtherTopic => "other-topic",
        }
    }
}

/// A restore in progress.
pub(crate) enum Restoring {
    /// The settings ask for other bands than the store has, so they are rebuilt before the changelog is read.
    Rebanding(Box<Finishing>),
    /// The changelog is being replayed.
    Replaying(Box<Replay>),
    /// Everything is replayed, and the posting lists are being built.
    Finishing(Box<Finishing>),
}

/// An open store, or the rebuild of its bands that must come first.
enum Opening {
    Open(Box<Rocks>),
    Rebanding(Finishing),
}

/// Replays a changelog partition into a store.
pub(crate) struct Replay {
    changelog: String,
    partition: i32,
    followed: Followed,
    /// Set if the store is filled without posting lists: its directory and options, to build them afterwards.
    unposted: Option<(PathBuf, RocksOptions)>,
    log: BaseConsumer<Quiet>,
    /// The store is older than the changelog keeps tombstones: a single record to replay proves it too old.
    stale: bool,
    next: i64,
    first: i64,
    /// The high watermark at the start. Open transactions of previous owners are below it, and are waited for.
    target: i64,
    began: Instant,
    /// When progress was last logged.
    logged: Instant,
    /// When it last made progress.
    advanced: Instant,
    /// When it last warned that it makes none.
    warned: Option<Instant>,
    records: u64,
    bytes: u64,
}

/// A store that follows the changelog, with the only attestor of its commits.
pub(crate) struct Followed {
    pub(crate) store: Rocks,
    pub(crate) attestor: Attestor,
}

impl Followed {
    /// Takes the attestor of a store that was just opened.
    ///
    /// # Errors
    /// The store does not follow a changelog, or somebody else holds its attestor.
    fn new(mut store: Rocks) -> Result<Followed, StoreError> {
        let place = store.place().to_owned();
        let attestor = store
            .attestor()
            .ok_or_else(|| StoreError::Unproven { place, log: "the changelog".to_owned() })?;
        Ok(Followed { store, attestor })
    }
}

/// The result of one step of a restore.
pub(crate) enum RestoreStep {
    /// There is more to do.
    More(Restoring),
    /// The bands are rebuilt and the store is closed: claim the partition again.
    Rebanded,
    /// The store matches the changelog.
    Restored(Box<Followed>),
}

impl Restorer {
    /// The directory of a partition's store.
    pub(crate) fn directory(&self, partition: i32) -> PathBuf {
        self.state.join(format!("{}-{partition}", self.changelog))
    }

    /// Opens the partition's store and determines which part of the changelog to replay.
    ///
    /// `wiped` holds the causes for which this partition was rebuilt before. Until a restore has completed, the same
    /// cause does not rebuild it again.
    pub(crate) fn begin(
        &self,
        partition: i32,
        here: &ClusterIds,
        wiped: &mut Vec<Cause>,
    ) -> Result<Restoring, RestoreError> {
        // Read the high watermark first. Only the partition's owner writes here, so nothing is appended after that.
        let (low, high) = self.surveyor.fetch_watermarks(&self.changelog, partition, PATIENCE)?;
        let target = if FAULTS.has(Mutant::RestoreToLso) {
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
            self.quarantine(partition, &directory, cause, wiped)?;
            store = Rocks::open(&directory, &self.options(partition, here))?;
            next = low;
        }
        let mut unposted = None;
        let is_empty = known.is_none() || cause.is_some();
        if is_empty && target - next >= FAULTS.value(Constant::ManyRecords, MANY).cast_signed() {
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
        Ok(Restoring::Replaying(Box::new(Replay {
            changelog: self.changelog.clone(),
            partition,
            followed: Followed::new(store)?,
            unposted,
            log,
            stale,
            next,
            first: next,
            target,
            began: now,
            logged: now,
            advanced: now,
            warned: None,
            records: 0,
            bytes: 0,
        })))
    }

    fn options(&self, partition: i32, here: &ClusterIds) -> RocksOptions {
        let changelog = (!FAULTS.has(Mutant::TopicIdIgnored)).then(|| here.changelog());
        RocksOptions { ahead: Durability::Changelog { partition }, changelog, ..self.options.clone() }
    }

    fn open(
        &self,
        partition: i32,
        here: &ClusterIds,
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
                    "the settings ask for other bands, or the store has none yet; rebuilding the bands"
                );
                // On a separate thread: this one polls Kafka for all partitions of the worker.
                let not_yet = Restore { of: 1, ..Restore::default() };
                let rebanding = Finishing::start(partition, directory.to_owned(), options, not_yet)?;
                return Ok(Opening::Rebanding(rebanding));
            }
            Err(StoreError::Corrupt { detail, .. }) => {
                tracing::error!(partition, detail, "state damaged");
                self.quarantine(partition, directory, Cause::Damaged, wiped)?;
                Rocks::open(directory, &options)?
            }
            Err(error @ StoreError::OtherChangelog { .. }) => {
                tracing::error!(partition, "{error}");
                self.quarantine(partition, directory, Cause::OtherTopic, wiped)?;
                Rocks::open(directory, &options)?
            }
            other => other?,
        };
        Ok(Opening::Open(Box::new(store)))
    }

    /// Quarantines a partition's store by renaming its directory, once per cause.
    pub(crate) fn quarantine(
        &self,
        partition: i32,
        directory: &Path,
        cause: Cause,
        wiped: &mut Vec<Cause>,
    ) -> Result<(), RestoreError> {
        if wiped.contains(&cause) {
            let place = directory.display().to_string();
            let detail = format!("it was rebuilt once because it was {}, and it is again", cause.as_str());
            return Err(StoreError::Unusable { place, detail }.into());
        }
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut copies =
            (1..).map(|number| directory.with_file_name(format!("{name}.{}.{number}", cause.as_str())));
        let Some(copy) = copies.find(|path| !path.exists()) else { return Ok(()) };
        std::fs::rename(directory, &copy)
            .map_err(|error| RestoreError::Quarantine { path: directory.to_owned(), error })?;
        wiped.push(cause);
        metrics::quarantined(cause.as_str(), 1);
        tracing::error!(partition, cause = cause.as_str(), quarantine = %copy.display(), "state quarantined; rebuilding it from the changelog");
        Ok(())
    }

    /// Whether the store ends before every record that is younger than the changelog keeps tombstones.
    ///
    /// Such a store is too old only if a record remains to be replayed. Offsets alone cannot show that, because at
    /// least a commit marker follows the last record. If no record remains, no tombstone was missed: every transaction
    /// ends with the position record, and compaction keeps the newest one, so anything committed since would leave that
    /// record.
    fn is_stale(&self, partition: i32, known: i64, high: i64) -> Result<bool, KafkaError> {
        if FAULTS.has(Mutant::TooOldOff) {
            return Ok(false);
        }
        // A safety margin: compaction and clocks are not exact.
        let safe = self.tombstones.mul_f64(0.9);
        let since = now().millis().saturating_sub(i64::try_from(safe.as_millis()).unwrap_or(i64::MAX));
        let since = EventTime::from_millis(since.max(0));
        // If no record is that young, all of them are older.
        let young = offset_at(&self.surveyor, &self.changelog, partition, since)?.unwrap_or(high);
        Ok(known < young)
    }

    /// Whether the log was truncated before `next` and written again since the record before it was read under `epoch`.
    ///
    /// On a seek with an epoch, librdkafka asks the broker where that epoch ended (KIP-320) and refuses to read from an
    /// offset beyond that end.
    pub(crate) fn is_truncated(
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
                // A seek fails until the partition's leader is known.
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

/// Wall-clock time, for the age of changelog records. Verdicts never depend on it.
#[allow(clippy::disallowed_methods, reason = "the age of a store does not influence verdicts")]
pub(crate) fn now() -> EventTime {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let ahead = i64::try_from(FAULTS.value(Constant::ClockAhead, 0)).unwrap_or(i64::MAX);
    EventTime::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX).saturating_add(ahead))
}

impl Restoring {
    /// Does a short piece of the work.
    pub(crate) fn step(self) -> Result<RestoreStep, RestoreError> {
        match self {
            Restoring::Replaying(replay) => replay.step(),
            Restoring::Rebanding(mut rebanding) => Ok(match rebanding.poll()? {
                None => RestoreStep::More(Restoring::Rebanding(rebanding)),
                Some(store) => {
                    drop(store);
                    tracing::info!(partition = rebanding.partition(), "bands rebuilt");
                    RestoreStep::Rebanded
                }
            }),
            Restoring::Finishing(mut finishing) => Ok(match finishing.poll()? {
                None => RestoreStep::More(Restoring::Finishing(finishing)),
                Some(store) => {
                    log_restored(finishing.partition(), finishing.so_far());
                    RestoreStep::Restored(Box::new(Followed::new(store)?))
                }
            }),
        }
    }

    /// Progress, for readiness and metrics.
    pub(crate) fn so_far(&self) -> Restore {
        match self {
            Restoring::Replaying(replay) => replay.so_far(),
            Restoring::Rebanding(finishing) | Restoring::Finishing(finishing) => finishing.so_far(),
        }
    }

    /// Whether it waits for the broker and could yield its slot: it needs no memory meanwhile.
    pub(crate) fn is_stalled(&self) -> bool {
        matches!(self, Restoring::Replaying(replay) if replay.is_stalled())
    }
}

/// Why the changelog delivers no records.
fn stall_cause(next: i64, stable: Option<i64>, high: i64) -> &'static str {
    match stable {
        None => "the broker does not answer",
        Some(stable) if stable < high && next >= stable => {
            "a transaction is open at the last stable offset, and readers wait for it; the broker aborts it after the \
             transaction.timeout.ms of its producer (kafka-transactions.sh find-hanging names one that stays)"
        }
        Some(_) => "the broker has committed records and does not send them; look at the broker's log",
    }
}

fn log_restored(partition: i32, so_far: Restore) {
    let Restore { records, bytes, seconds, .. } = so_far;
    tracing::info!(partition, records, bytes, seconds, "restored");
}

impl Replay {
    /// Replays one chunk of the changelog.
    fn step(mut self: Box<Self>) -> Result<RestoreStep, RestoreError> {
        let deadline = Instant::now() + STEP;
        let mut changes = Vec::new();
        let chunk = FAULTS.value(Constant::RestoreChunk, CHUNK as u64) as usize;
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
                // The last record may be followed by transaction markers and aborted records.
                Some(Err(KafkaError::PartitionEOF(_))) => self.next = self.next.max(self.position()?),
                Some(Err(error)) => {
                    tracing::debug!(%error, partition = self.partition, "consumer error while restoring");
                }
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
            let Followed { store, attestor } = &mut self.followed;
            store.apply_changes(&changes, &attestor.attest(end))?;
            FAULTS.reach(Point::Restore);
        }
        let pause = FAULTS.value(Constant::RestorePause, 0);
        if pause > 0 {
            std::thread::sleep(Duration::from_millis(pause));
        }
        if self.next > before {
            self.advanced = Instant::now();
        } else {
            self.warn_if_stalled();
        }
        self.log_progress();
        if self.next < self.target {
            return Ok(RestoreStep::More(Restoring::Replaying(self)));
        }
        let so_far = self.so_far();
        if let Some((directory, options)) = self.unposted {
            drop(self.followed);
            let finishing = Finishing::start(self.partition, directory, options, so_far)?;
            return Ok(RestoreStep::More(Restoring::Finishing(Box::new(finishing))));
        }
        if self.records > 0 {
            log_restored(self.partition, so_far);
        }
        Ok(RestoreStep::Restored(Box::new(self.followed)))
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
        let stall = FAULTS.value(Constant::RestoreStall, STALL.as_millis() as u64);
        self.next < self.target && self.advanced.elapsed() >= Duration::from_millis(stall)
    }

    /// Logs what a stalled restore waits for.
    fn warn_if_stalled(&mut self) {
        if !self.is_stalled() || self.warned.is_some_and(|warned| warned.elapsed() < WARN_INTERVAL) {
            return;
        }
        self.warned = Some(Instant::now());
        // A read_committed client gets the last stable offset instead of the high watermark.
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
            stall_cause(self.next, stable, self.target)
        );
    }

    fn log_progress(&mut self) {
        if self.logged.elapsed() < Duration::from_secs(2) {
            return;
        }
        self.logged = Instant::now();
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
    use crate::kafka::client as clients;
    use samestory_engine::index::{Budget, IndexSchemes};

    #[test]
    fn a_process_restores_two_partitions_at_a_time() {
        let slots = Slots::default();
        let workers = [slots.clone(), slots.clone(), slots];
        let mut taken: Vec<Slot> = workers.iter().filter_map(Slots::take).collect();
        assert_eq!(taken.len(), 2);
        taken.pop();
        assert!(workers[2].take().is_some(), "the next one starts when a slot is free");
    }

    #[test]
    fn a_stalled_restore_names_the_cause() {
        assert!(stall_cause(7, None, 9).contains("does not answer"));
        assert!(stall_cause(7, Some(7), 9).contains("a transaction is open"));
        assert!(stall_cause(5, Some(7), 9).contains("does not send them"));
        assert!(stall_cause(7, Some(9), 9).contains("does not send them"));
    }

    fn postings(settings: &str) -> (Config, IndexSchemes) {
        let config = Config::try_from(toml::from_str::<Settings>(settings).unwrap()).unwrap();
        let postings = config.postings.clone();
        (config, postings)
    }

    // The thread that polls Kafka used to rebuild the bands. Meanwhile its consumer was removed from the group, and the
    // other partitions made no progress.
    #[test]
    fn a_separate_thread_rebuilds_the_bands() {
        let state = crate::temporary::temporary("rebanding");
        let (config, before) = postings("[lsh]\nbands = 8\nrows = 8");
        let (_, after) = postings("[lsh]\nbands = 16\nrows = 4");
        assert_ne!(before, after);
        let worker = clients::WorkerId { role: clients::Role::Match, number: 0 };
        let restorer = |postings: IndexSchemes| Restorer {
            config: clients::restorer(&config.bus, &worker),
            surveyor: clients::surveyor(&config.bus, "survey").create_with_context(Quiet).unwrap(),
            changelog: "changelog".to_owned(),
            tombstones: Duration::from_secs(1),
            state: state.clone(),
            options: RocksOptions::new(postings, Durability::Changelog { partition: 0 }, Budget::default()),
        };
        let here = ClusterIds { cluster: None, changelog: None, input: None };
        let open =
            |restorer: &Restorer| restorer.open(0, &here, &restorer.directory(0), &mut Vec::new()).unwrap();
        let first = open(&restorer(before));
        assert!(matches!(first, Opening::Open(_)));
        drop(first);
        let restorer = restorer(after);
        let Opening::Rebanding(rebanding) = open(&restorer) else { panic!("the bands were built inline") };
        let mut restoring = Restoring::Rebanding(Box::new(rebanding));
        assert_eq!(restoring.so_far().share(), 0.0);
        loop {
            restoring = match restoring.step().unwrap() {
                RestoreStep::More(restoring) => restoring,
                RestoreStep::Rebanded => break,
                RestoreStep::Restored(_) => panic!("nothing was replayed"),
            };
        }
        assert!(matches!(open(&restorer), Opening::Open(_)));
        std::fs::remove_dir_all(state).unwrap();
    }
}
