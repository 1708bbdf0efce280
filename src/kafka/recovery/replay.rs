//! A restore in progress: replays a partition's changelog into its store, chunk by chunk, between the worker's turns.
//! `restore` opens the store and begins it; `finish` builds posting lists in the background. A restored store is at the
//! high watermark that its changelog had when the restore began.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rdkafka::Offset;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;

use crate::metrics;
use crate::status::Restore;
use samestory_engine::index::{Attestor, Change, Rocks, RocksOptions, Store, StoreError, View};

use super::finish::Finishing;
use super::restore::RestoreError;
use crate::kafka::client::{PATIENCE, Quiet, left_until};
use crate::kafka::faults::{Constant, FAULTS, Faults, Point};

/// Records that are applied together.
const CHUNK: usize = 2000;
/// Time limit of one step: the other partitions of the worker wait for it.
const STEP: Duration = Duration::from_millis(50);
/// After this time without progress, a restore logs what it waits for.
const STALL: Duration = Duration::from_secs(10);
/// Time between two such warnings.
const WARN_INTERVAL: Duration = Duration::from_secs(30);

/// A restore in progress.
pub(crate) enum Restoring {
    /// The settings ask for other bands than the store has, so they are rebuilt before the changelog is read.
    Rebanding(Box<Finishing>),
    /// The changelog is being replayed.
    Replaying(Box<ChangelogReplay>),
    /// Everything is replayed, and the posting lists are being built.
    Finishing(Box<Finishing>),
}

/// Replays a changelog partition into a store.
pub(crate) struct ChangelogReplay {
    pub(super) changelog: String,
    pub(super) partition: i32,
    pub(super) followed: Followed,
    /// Set if the store is filled without posting lists: its directory and options, to build them afterwards.
    pub(super) unposted: Option<(PathBuf, RocksOptions)>,
    pub(super) log: BaseConsumer<Quiet>,
    /// The store is older than the changelog keeps tombstones: a single record to replay proves it too old.
    pub(super) stale: bool,
    pub(super) next: i64,
    pub(super) first: i64,
    /// The high watermark at the start. Open transactions of previous owners are below it, and are waited for.
    pub(super) target: i64,
    pub(super) began: Instant,
    /// When progress was last logged.
    pub(super) logged: Instant,
    /// When it last made progress.
    pub(super) advanced: Instant,
    /// When it last warned that it makes none.
    pub(super) warned: Option<Instant>,
    pub(super) records: u64,
    pub(super) bytes: u64,
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
    pub(super) fn new(mut store: Rocks) -> Result<Followed, StoreError> {
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

    /// True if it waits for the broker and could yield its slot: it needs no memory meanwhile.
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

impl ChangelogReplay {
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

    #[test]
    fn a_stalled_restore_names_the_cause() {
        assert!(stall_cause(7, None, 9).contains("does not answer"));
        assert!(stall_cause(7, Some(7), 9).contains("a transaction is open"));
        assert!(stall_cause(5, Some(7), 9).contains("does not send them"));
        assert!(stall_cause(7, Some(9), 9).contains("does not send them"));
    }
}
