//! Opens a partition's store and begins to restore it to the high watermark of its changelog, which it reads before anything
//! else; `replay` continues. Opening a store never wipes it: a store is quarantined and rebuilt from zero for four
//! [causes](Cause) only, and each is logged as an error.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Offset, TopicPartitionList};

use crate::metrics;
use crate::status::Restore;
use samestory_engine::index::{Durability, Rocks, RocksOptions, StoreError, View};
use samestory_engine::model::EventTime;

use super::finish::Finishing;
use super::generations::LookError;
use super::replay::{ChangelogReplay, Followed, Restoring};
use crate::kafka::admin::ids;
use crate::kafka::admin::ids::ClusterIds;
use crate::kafka::client::{PATIENCE, Quiet, left_until, offset_at};
use crate::kafka::clock;
use crate::kafka::faults::{Constant, FAULTS, Faults, Mutant};

/// An empty store with at least this many records to replay is filled without posting lists, which are then built all
/// at once: that is faster.
const MANY: u64 = 10_000;
/// Damaged segments with the postings of more documents than this are built again on a separate thread: this one polls Kafka
/// for all partitions of the worker.
const MOST_REBUILT_AT_OPEN: u64 = 100_000;

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

/// An open store, or the rebuild of its bands that must come first.
enum OpenOrRebuild {
    Open(Box<Rocks>),
    Rebanding(Finishing),
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
            OpenOrRebuild::Open(store) => *store,
            OpenOrRebuild::Rebanding(rebanding) => return Ok(Restoring::Rebanding(Box::new(rebanding))),
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
        Ok(Restoring::Replaying(Box::new(ChangelogReplay {
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
        RocksOptions {
            durability: Durability::Changelog { partition },
            changelog,
            most_rebuilt_at_open: MOST_REBUILT_AT_OPEN,
            ..self.options.clone()
        }
    }

    fn open(
        &self,
        partition: i32,
        here: &ClusterIds,
        directory: &Path,
        wiped: &mut Vec<Cause>,
    ) -> Result<OpenOrRebuild, RestoreError> {
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
                return Ok(OpenOrRebuild::Rebanding(rebanding));
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
        Ok(OpenOrRebuild::Open(Box::new(store)))
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

    /// True if the store ends before every record that is younger than the changelog keeps tombstones.
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
        let since = clock::now().millis().saturating_sub(i64::try_from(safe.as_millis()).unwrap_or(i64::MAX));
        let since = EventTime::from_millis(since.max(0));
        // If no record is that young, all of them are older.
        let young = offset_at(&self.surveyor, &self.changelog, partition, since)?.unwrap_or(high);
        Ok(known < young)
    }

    /// True if the log was truncated before `next` and written again since the record before it was read under `epoch`.
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

#[cfg(test)]
mod tests {
    use super::super::replay::RestoreStep;
    use super::*;
    use crate::config::{Config, Settings};
    use crate::kafka::client as clients;
    use samestory_engine::index::{Budget, IndexSchemes};

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
        assert!(matches!(first, OpenOrRebuild::Open(_)));
        drop(first);
        let restorer = restorer(after);
        let OpenOrRebuild::Rebanding(rebanding) = open(&restorer) else {
            panic!("the bands were built inline")
        };
        let mut restoring = Restoring::Rebanding(Box::new(rebanding));
        assert_eq!(restoring.so_far().share(), 0.0);
        loop {
            restoring = match restoring.step().unwrap() {
                RestoreStep::More(restoring) => restoring,
                RestoreStep::Rebanded => break,
                RestoreStep::Restored(_) => panic!("nothing was replayed"),
            };
        }
        assert!(matches!(open(&restorer), OpenOrRebuild::Open(_)));
        std::fs::remove_dir_all(state).unwrap();
    }
}
