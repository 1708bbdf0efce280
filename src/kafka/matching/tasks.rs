//! The life of a partition in the `match` role: claimed, restored, running, and stopped if it cannot continue. Each
//! step advances by [`Matcher::advance_one`]; [`crate::kafka::recovery`] decides where to resume and restores the
//! store. A partition runs only when its store is at the high watermark of its changelog and its position fits the
//! input topic.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;

use crate::config::StartAt;
use crate::kafka::admin::ids::ClusterIds;
use crate::kafka::client::PATIENCE;
use crate::kafka::recovery::restore::{Cause, Followed, RestoreError, RestoreStep, Restoring, Slot};
use crate::kafka::recovery::takeover::{
    CLAIM_AGAIN_AFTER, Disagreement, Takeover, TakeoverFacts, decide, moved,
};
use crate::kafka::turn::source::Source;
use crate::kafka::turn::{faults, measure};
use crate::metrics;
use crate::status::Sizes;
use samestory_engine::index::{Attestor, Registration, Rocks, StoreError, View, check_room};

use super::Matcher;

/// Pause before a partition looks for a free restore slot again.
const SLOT_RETRY_PAUSE: Duration = Duration::from_millis(20);

/// The states of an assigned partition.
pub(crate) enum Task {
    /// The committed offset is being looked up. This comes first: the previous owner commits nothing after it.
    Claiming { not_before: Instant },
    /// The disk has no room for the state. The partition is claimed again once it has.
    NoSpace { look_again: Instant },
    /// The store is being brought to the high watermark of its changelog.
    Restoring { committed: Option<i64>, here: ClusterIds, restoring: Restoring, slot: Option<Slot> },
    /// Articles are judged. Plans are made and applied only in this state.
    Running(Box<Running>),
    /// An operator has to decide.
    Stopped,
}

impl Task {
    fn no_space() -> Task {
        Task::NoSpace { look_again: Instant::now() + Duration::from_secs(2) }
    }
}

/// A running partition.
pub(crate) struct Running {
    // Declared before the store, so that it is dropped first: a closed store must have no readers.
    pub(crate) _registration: Registration,
    pub(crate) store: Rocks,
    /// The only one of the store: what is applied to it was committed by a transaction.
    pub(crate) attestor: Attestor,
    /// The topics that its positions belong to.
    pub(crate) here: ClusterIds,
    /// A position that is not in the changelog yet.
    pub(crate) unpublished_position: Option<i64>,
    pub(crate) flushed: Instant,
    /// While it waits for the previous generation: when to look again, and the offset where it resumes.
    pub(crate) held: Option<(Instant, i64)>,
    /// Sizes at the last flush.
    pub(crate) sizes: Arc<Sizes>,
}

impl Matcher {
    /// Takes one step with one partition. Returns the offset to read from once it is running.
    pub(crate) fn advance_one(&mut self, partition: i32, task: Task, source: &Source) -> (Task, Option<i64>) {
        let result = match task {
            Task::Claiming { not_before } if not_before > Instant::now() => {
                return (Task::Claiming { not_before }, None);
            }
            Task::Claiming { .. } => self.claim(partition, source),
            Task::NoSpace { look_again } if look_again > Instant::now() => {
                return (Task::NoSpace { look_again }, None);
            }
            Task::NoSpace { .. } => {
                let Err(error) = check_room(&self.restorer.directory(partition)) else {
                    tracing::info!(partition, "there is space for the state again; resuming");
                    return (Task::Claiming { not_before: Instant::now() }, None);
                };
                tracing::debug!(%error, partition, "still no space");
                return (Task::no_space(), None);
            }
            Task::Restoring { committed, here, restoring, slot } => {
                self.restore(partition, (committed, here), (restoring, slot), source)
            }
            Task::Running(mut running) => {
                let from = running.held.take_if(|(until, _)| *until <= Instant::now());
                return (Task::Running(running), from.map(|(_, from)| from));
            }
            Task::Stopped => return (Task::Stopped, None),
        };
        match result {
            Ok(advanced) => {
                self.unusable.remove(&partition);
                advanced
            }
            Err(error) => (self.failed(partition, error), None),
        }
    }

    fn claim(&mut self, partition: i32, source: &Source) -> Result<(Task, Option<i64>), RestoreError> {
        let slot = if self.holdings.is_deleting(partition) { None } else { self.slots.take() };
        let Some(slot) = slot else {
            return Ok((Task::Claiming { not_before: Instant::now() + SLOT_RETRY_PAUSE }, None));
        };
        let committed = source.committed(partition)?;
        // After the offset: fetching it waits for a generation-end record that is still in an open transaction.
        if let Some(end) = self.generations.claim(&self.restorer.surveyor)? {
            tracing::error!(partition, "stopped: {}", Disagreement::Ended(Box::new(end)));
            return Ok((Task::Stopped, None));
        }
        let here = self.here()?;
        let mut wiped = self.wiped.lock().unwrap_or_else(PoisonError::into_inner);
        let restoring = self.restorer.begin(partition, &here, wiped.entry(partition).or_default())?;
        Ok((Task::Restoring { committed, here, restoring, slot: Some(slot) }, None))
    }

    /// The current ids of the cluster and its topics.
    pub(crate) fn here(&self) -> Result<ClusterIds, KafkaError> {
        let client = self.restorer.surveyor.client();
        ClusterIds::ask(client, &self.restorer.changelog, self.intake.topic(), PATIENCE)
    }

    fn restore(
        &mut self,
        partition: i32,
        (committed, here): (Option<i64>, ClusterIds),
        (restoring, slot): (Restoring, Option<Slot>),
        source: &Source,
    ) -> Result<(Task, Option<i64>), RestoreError> {
        let Followed { store, attestor } = match restoring.step()? {
            RestoreStep::More(restoring) => {
                // A restore that waits for an open transaction gives its slot to another partition.
                let slot = slot.filter(|_| !restoring.is_stalled());
                return Ok((Task::Restoring { committed, here, restoring, slot }, None));
            }
            RestoreStep::Rebanded => return Ok((Task::Claiming { not_before: Instant::now() }, None)),
            RestoreStep::Restored(followed) => *followed,
        };
        if let Some(wiped) = self.wiped.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&partition) {
            // The state is complete now. If it is too old again in a month, that is a new event; a disk that has
            // damaged data is likely to do it again.
            wiped.retain(|&cause| cause == Cause::Damaged);
        }
        let progress = store.progress()?;
        if let Some(refusal) = self.intake.incompatibility(&progress) {
            tracing::error!(partition, "stopped: {refusal}");
            return Ok((Task::Stopped, None));
        }
        let written = progress.bus.as_ref();
        let position = written.map(|written| i64::try_from(written.next).unwrap_or(i64::MAX));
        let (low, high) = self.restorer.surveyor.fetch_watermarks(source.topic(), partition, PATIENCE)?;
        let moved = written
            .filter(|_| !faults::mutant("topic-id-ignored"))
            .and_then(|written| moved(written, source.topic(), &here));
        let truncated = match (position, written.and_then(|written| written.leader_epoch)) {
            (Some(next), Some(epoch)) if moved.is_none() && low < next && next <= high => {
                self.restorer.is_truncated(source.topic(), partition, next, epoch)?
            }
            _ => false,
        };
        let sizes = measure::sizes(&store);
        let shelf = &self.shelf;
        let running = |unpublished_position| {
            let (_registration, flushed) = (shelf.register(partition, &store), Instant::now());
            Task::Running(Box::new(Running {
                _registration,
                store,
                attestor,
                here,
                unpublished_position,
                flushed,
                held: None,
                sizes,
            }))
        };
        let known = TakeoverFacts { partition, committed, position, moved, truncated, low, high };
        let takeover = decide(known, &self.accept.left());
        if !matches!(takeover, Takeover::Stop(_)) {
            self.disagreed.forget(partition);
        }
        Ok(match takeover {
            Takeover::Resume(next) => {
                tracing::info!(partition, next, "resuming");
                if let Some(purge) = &self.purge {
                    // The previous owner may not have purged everything. A purger that has ended is no reason to stop.
                    let _sent = purge.send((partition, next));
                }
                (running(None), Some(next))
            }
            Takeover::Begin => {
                // Everything that route has written must be judged, so `input.start` does not apply.
                let from = if self.intake.is_routed() { StartAt::Earliest } else { self.bus.start };
                let start = source.first_offset(partition, from, (low, high))?;
                tracing::info!(partition, start, "starting with empty state");
                let unpublished_position = (!faults::mutant("first-position-off")).then_some(start);
                (running(unpublished_position), Some(start))
            }
            Takeover::Accepted { from, lost } => {
                tracing::warn!(partition, from, lost, "resuming as the operator decided");
                (running(Some(from)), Some(from))
            }
            Takeover::Stop(disagreement) if self.disagreed.is_final(partition) => {
                tracing::error!(partition, "stopped: {disagreement}");
                (Task::Stopped, None)
            }
            Takeover::Stop(disagreement) => {
                tracing::warn!(partition, "claiming again: {disagreement}");
                (Task::Claiming { not_before: Instant::now() + CLAIM_AGAIN_AFTER }, None)
            }
        })
    }

    /// Closes the store of a partition that failed, then decides what to do with it.
    pub(crate) fn fail(&mut self, partition: i32, error: StoreError) {
        self.tasks.remove(&partition);
        let task = self.failed(partition, error.into());
        self.tasks.insert(partition, task);
    }

    /// The next state of a partition that failed.
    fn failed(&mut self, partition: i32, error: RestoreError) -> Task {
        match &error {
            RestoreError::Store(error) => self.unusable.insert(partition, error.to_string()),
            _ => self.unusable.remove(&partition),
        };
        let again = |after: u64| Task::Claiming { not_before: Instant::now() + Duration::from_millis(after) };
        match error {
            RestoreError::Away(error) => {
                tracing::debug!(%error, partition, "takeover failed, retrying");
                again(200)
            }
            RestoreError::Store(error) => match error {
                StoreError::InUse { .. } => again(1000),
                StoreError::Full { .. } => {
                    tracing::error!(partition, "stopped for now: {error}");
                    Task::no_space()
                }
                StoreError::Stalled { .. } | StoreError::Outdated { .. } => {
                    tracing::error!(partition, "stopped for now: {error}");
                    again(5000)
                }
                StoreError::Corrupt { .. } => {
                    tracing::error!(partition, "{error}");
                    if self.shelf.is_read(partition) {
                        // A read lease keeps the store open, and an open store writes to its directory when it closes:
                        // a new store must not be there by then.
                        return again(1000);
                    }
                    self.quarantine(partition, Cause::Damaged)
                }
                StoreError::Unusable { .. } | StoreError::Failing { .. }
                    if check_room(&self.restorer.directory(partition)).is_err() =>
                {
                    tracing::error!(partition, "stopped for now: {error}");
                    Task::no_space()
                }
                StoreError::Failing { .. } => self.failing(partition, &error),
                error => {
                    tracing::error!(partition, "stopped: {error}");
                    Task::Stopped
                }
            },
            RestoreError::TooOld { .. } => {
                tracing::error!(partition, "{error}");
                self.quarantine(partition, Cause::TooOld)
            }
            error => {
                tracing::error!(partition, "stopped: {error}");
                Task::Stopped
            }
        }
    }

    /// Retries after a pause. After too many failures in a row the process exits: a restart gets new file handles and
    /// threads, or another node.
    fn failing(&mut self, partition: i32, error: &StoreError) -> Task {
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
        Task::Claiming { not_before: Instant::now() + pause }
    }

    /// Quarantines a store, so that the partition is rebuilt from its changelog.
    fn quarantine(&mut self, partition: i32, cause: Cause) -> Task {
        let directory = self.restorer.directory(partition);
        let mut wiped = self.wiped.lock().unwrap_or_else(PoisonError::into_inner);
        match self.restorer.quarantine(partition, &directory, cause, wiped.entry(partition).or_default()) {
            Ok(()) => Task::Claiming { not_before: Instant::now() },
            Err(error) => {
                tracing::error!(partition, "stopped: {error}");
                Task::Stopped
            }
        }
    }
}
