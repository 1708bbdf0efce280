//! Taking a partition over in the `match` role: [`Matcher::look_up`] fetches the committed offset, [`Matcher::restore`]
//! advances a restore by one step, and [`Matcher::failed`] decides what becomes of a partition
//! whose store failed. [`crate::kafka::recovery`] decides where to resume. A partition runs only when its store is
//! complete and its position fits the input topic.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;

use crate::config::StartAt;
use crate::kafka::admin::ids::ClusterIds;
use crate::kafka::client::PATIENCE;
use crate::kafka::faults::{FAULTS, Faults, Mutant};
use crate::kafka::recovery::replay::{Followed, RestoreStep, Restoring};
use crate::kafka::recovery::restore::{Cause, RestoreError};
use crate::kafka::recovery::slots::RestoreSlot;
use crate::kafka::recovery::takeover::{Disagreement, Takeover, TakeoverFacts, decide, moved};
use crate::kafka::turn::measure;
use crate::kafka::turn::partitions::{Advanced, Obstacle, Shows, Task};
use crate::kafka::turn::source::RecordSource;
use crate::metrics;
use crate::status::{PartitionState, Sizes};
use samestory_engine::index::{Attestor, Registration, Rocks, StoreError, View, check_room};

use super::Matcher;

/// Pause before a partition looks for a free restore slot again.
const SLOT_RETRY_PAUSE: Duration = Duration::from_millis(20);
/// Pause before a partition looks for room on the disk again.
const ROOM_RETRY_PAUSE: Duration = Duration::from_secs(2);

/// A partition whose store is brought to the high watermark of its changelog.
pub(crate) struct RestoringStore {
    /// The group's committed offset.
    committed: Option<i64>,
    here: ClusterIds,
    restoring: Restoring,
    slot: Option<RestoreSlot>,
}

impl Shows for RestoringStore {
    fn shows(&self) -> PartitionState {
        PartitionState::Restoring(self.restoring.so_far())
    }
}

/// The store of a running partition.
pub(crate) struct OpenStore {
    // Declared before the store, so that it is dropped first: a closed store must have no readers.
    pub(crate) _registration: Registration,
    pub(crate) store: Rocks,
    /// The only one of the store: what is applied to it was committed by a transaction.
    pub(crate) attestor: Attestor,
    /// The topics that its positions belong to.
    pub(crate) here: ClusterIds,
    pub(crate) flushed: Instant,
    /// Sizes at the last flush.
    pub(crate) sizes: Arc<Sizes>,
}

impl Shows for OpenStore {
    fn shows(&self) -> PartitionState {
        PartitionState::Running(Arc::clone(&self.sizes))
    }
}

/// A state of a partition in this role.
pub(super) type MatchTask = Task<RestoringStore, OpenStore>;
/// The result of one step with a partition in this role.
pub(super) type MatchAdvanced = Advanced<RestoringStore, OpenStore>;

fn no_space() -> MatchTask {
    Task::blocked(ROOM_RETRY_PAUSE, Obstacle::NoSpace)
}

impl Matcher {
    /// Looks up the committed offset and begins to restore the store, if there are room and a restore slot for it.
    pub(super) fn look_up(
        &mut self,
        partition: i32,
        obstacle: &Obstacle,
        source: &RecordSource,
    ) -> Result<MatchAdvanced, RestoreError> {
        if let Obstacle::NoSpace = obstacle {
            if let Err(error) = check_room(&self.restorer.directory(partition)) {
                tracing::debug!(%error, partition, "still no space");
                return Ok(no_space().into());
            }
            tracing::info!(partition, "there is space for the state again; resuming");
        }
        let slot = if self.holdings.is_deleting(partition) { None } else { self.slots.take() };
        let Some(slot) = slot else { return Ok(Task::claim_after(SLOT_RETRY_PAUSE).into()) };
        let committed = source.committed(partition)?;
        // After the offset: fetching it waits for a generation-end record that is still in an open transaction.
        if let Some(end) = self.generations.claim(&self.restorer.surveyor)? {
            tracing::error!(partition, "stopped: {}", Disagreement::Ended(Box::new(end)));
            return Ok(Task::Stopped.into());
        }
        let here = self.here()?;
        let mut wiped = self.wiped.lock().unwrap_or_else(PoisonError::into_inner);
        let restoring = self.restorer.begin(partition, &here, wiped.entry(partition).or_default())?;
        Ok(Task::Preparing(RestoringStore { committed, here, restoring, slot: Some(slot) }).into())
    }

    /// The current ids of the cluster and its topics.
    pub(crate) fn here(&self) -> Result<ClusterIds, KafkaError> {
        let client = self.restorer.surveyor.client();
        ClusterIds::ask(client, &self.restorer.changelog, self.intake.topic(), PATIENCE)
    }

    /// Restores the store for a moment. Once it is complete, decides where the partition resumes.
    pub(super) fn restore(
        &mut self,
        partition: i32,
        RestoringStore { committed, here, restoring, slot }: RestoringStore,
        source: &RecordSource,
    ) -> Result<MatchAdvanced, RestoreError> {
        let Followed { store, attestor } = match restoring.step()? {
            RestoreStep::More(restoring) => {
                // A restore that waits for an open transaction gives its slot to another partition.
                let slot = slot.filter(|_| !restoring.is_stalled());
                return Ok(Task::Preparing(RestoringStore { committed, here, restoring, slot }).into());
            }
            RestoreStep::Rebanded => return Ok(Task::claim_now().into()),
            RestoreStep::Restored(followed) => *followed,
        };
        if let Some(wiped) = self.wiped.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&partition) {
            // The state is complete now. If it is too old again in a month, that is a new event; a disk that has
            // damaged data is likely to do it again.
            wiped.retain(|&cause| cause == Cause::Damaged);
        }
        let progress = store.progress()?;
        if let Some(refusal) = self.intake.settings().incompatibility(&progress) {
            tracing::error!(partition, "stopped: {refusal}");
            return Ok(Task::Stopped.into());
        }
        let written = progress.bus.as_ref();
        let position = written.map(|written| i64::try_from(written.next).unwrap_or(i64::MAX));
        let (low, high) = self.restorer.surveyor.fetch_watermarks(source.topic(), partition, PATIENCE)?;
        let moved = written
            .filter(|_| !FAULTS.has(Mutant::TopicIdIgnored))
            .and_then(|written| moved(written, source.topic(), &here));
        let truncated = match (position, written.and_then(|written| written.leader_epoch)) {
            (Some(next), Some(epoch)) if moved.is_none() && low < next && next <= high => {
                self.restorer.is_truncated(source.topic(), partition, next, epoch)?
            }
            _ => false,
        };
        let sizes = measure::sizes(&store);
        let stores = &self.stores;
        let opened = || {
            let (_registration, flushed) = (stores.register(partition, &store), Instant::now());
            OpenStore { _registration, store, attestor, here, flushed, sizes }
        };
        let known = TakeoverFacts { partition, committed, position, moved, truncated, low, high };
        let takeover = decide(known, &self.accept.left());
        if !matches!(takeover, Takeover::Stop(_)) {
            self.partitions.agrees(partition);
        }
        Ok(match takeover {
            Takeover::Resume(next) => {
                tracing::info!(partition, next, "resuming");
                if let Some(purge) = &self.purge {
                    // The previous owner may not have purged everything. A purger that has ended is no reason to stop.
                    let _sent = purge.send((partition, next));
                }
                Advanced::resumes(opened(), next)
            }
            Takeover::Begin => {
                // Everything that route has written must be judged, so `input.start` does not apply.
                let from = if self.intake.is_routed() { StartAt::Earliest } else { self.bus.start };
                let start = source.first_offset(partition, from, (low, high))?;
                tracing::info!(partition, start, "starting with empty state");
                match FAULTS.has(Mutant::FirstPositionOff) {
                    true => Advanced::resumes(opened(), start),
                    false => Advanced::begins(opened(), start),
                }
            }
            Takeover::Accepted { from, lost } => {
                tracing::warn!(partition, from, lost, "resuming as the operator decided");
                Advanced::begins(opened(), from)
            }
            Takeover::Stop(disagreement) => self.partitions.disagrees(partition, &disagreement).into(),
        })
    }

    /// Closes the store of a partition that failed, then decides what to do with it.
    pub(crate) fn fail(&mut self, partition: i32, error: StoreError) {
        drop(self.partitions.take(partition));
        let task = self.failed(partition, error.into());
        self.partitions.set(partition, task);
    }

    /// The next state of a partition that failed.
    pub(super) fn failed(&mut self, partition: i32, error: RestoreError) -> MatchTask {
        match error {
            RestoreError::Away(error) => {
                tracing::debug!(%error, partition, "takeover failed, retrying");
                Task::claim_after(self.bus.retry.takeover)
            }
            RestoreError::Store(error) => match error {
                StoreError::InUse { .. } => unusable(1000, &error),
                StoreError::Full { .. } => {
                    tracing::error!(partition, "stopped for now: {error}");
                    no_space()
                }
                StoreError::Stalled { .. } | StoreError::Outdated { .. } => {
                    tracing::error!(partition, "stopped for now: {error}");
                    unusable(5000, &error)
                }
                StoreError::Corrupt { .. } => {
                    tracing::error!(partition, "{error}");
                    if self.stores.is_read(partition) {
                        // A read lease keeps the store open, and an open store writes to its directory when it closes:
                        // a new store must not be there by then.
                        return unusable(1000, &error);
                    }
                    self.quarantine(partition, Cause::Damaged, Obstacle::Unusable(error.to_string()))
                }
                StoreError::Unusable { .. } | StoreError::Failing { .. }
                    if check_room(&self.restorer.directory(partition)).is_err() =>
                {
                    tracing::error!(partition, "stopped for now: {error}");
                    no_space()
                }
                StoreError::Failing { .. } => self.failing(partition, &error),
                error => {
                    tracing::error!(partition, "stopped: {error}");
                    Task::Stopped
                }
            },
            RestoreError::TooOld { .. } => {
                tracing::error!(partition, "{error}");
                self.quarantine(partition, Cause::TooOld, Obstacle::Nothing)
            }
            error => {
                tracing::error!(partition, "stopped: {error}");
                Task::Stopped
            }
        }
    }

    /// Retries after a pause. After too many failures in a row the process exits: a restart gets new file handles and
    /// threads, or another node.
    fn failing(&mut self, partition: i32, error: &StoreError) -> MatchTask {
        metrics::store_failures(1);
        let Some(pause) = self.attempts.failed(partition) else {
            let attempts = self.attempts.times(partition);
            let why = format!("partition {partition} failed {attempts} times in a row: {error}");
            tracing::error!(partition, attempts, "giving up, the process exits: {error}");
            self.board.failed(why);
            return Task::Stopped;
        };
        let (attempt, seconds) = (self.attempts.times(partition), pause.as_secs_f64());
        tracing::error!(partition, attempt, seconds, "stopped for now, trying again: {error}");
        Task::blocked(pause, Obstacle::Unusable(error.to_string()))
    }

    /// Quarantines a store, so that the partition is rebuilt from its changelog.
    fn quarantine(&mut self, partition: i32, cause: Cause, obstacle: Obstacle) -> MatchTask {
        let directory = self.restorer.directory(partition);
        let mut wiped = self.wiped.lock().unwrap_or_else(PoisonError::into_inner);
        match self.restorer.quarantine(partition, &directory, cause, wiped.entry(partition).or_default()) {
            Ok(()) => Task::blocked(Duration::ZERO, obstacle),
            Err(error) => {
                tracing::error!(partition, "stopped: {error}");
                Task::Stopped
            }
        }
    }
}

/// Claims the partition again after a pause; until then it reports that its state cannot be used.
fn unusable(millis: u64, error: &StoreError) -> MatchTask {
    Task::blocked(Duration::from_millis(millis), Obstacle::Unusable(error.to_string()))
}
