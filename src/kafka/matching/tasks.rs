//! How a partition comes to be worked on, and what becomes of it when it cannot be: claimed, restored, running, stopped.

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

/// How long a partition waits before it looks for a free slot again.
const SLOT: Duration = Duration::from_millis(20);

/// One partition's life.
pub(crate) enum Task {
    /// Its offset is asked for. First of all: what is committed after this is not our predecessor's.
    Claiming { not_before: Instant },
    /// There is no space for its state. It is claimed again once there is.
    NoSpace { look_again: Instant },
    /// Its state is brought to the end of its log.
    Restoring { committed: Option<i64>, here: ClusterIds, restoring: Restoring, slot: Option<Slot> },
    /// Only now can it be planned with and applied to.
    Running(Box<Running>),
    /// Somebody has to decide.
    Stopped,
}

impl Task {
    fn no_space() -> Task {
        Task::NoSpace { look_again: Instant::now() + Duration::from_secs(2) }
    }
}

/// A partition that is worked on.
pub(crate) struct Running {
    // Dropped first: nobody reads a store that is closed.
    pub(crate) _shown: Registration,
    pub(crate) store: Rocks,
    /// The only one of the store: what is applied to it was committed by a transaction.
    pub(crate) attestor: Attestor,
    /// The topics that its positions belong to.
    pub(crate) here: ClusterIds,
    /// A position that the log does not know yet.
    pub(crate) unpublished_position: Option<i64>,
    pub(crate) flushed: Instant,
    /// It waits for the generation before until then, and goes on from here.
    pub(crate) held: Option<(Instant, i64)>,
    /// As they were when it was last flushed.
    pub(crate) sizes: Arc<Sizes>,
}

impl Matcher {
    /// One step of one partition. Nothing, or where to read from.
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
            return Ok((Task::Claiming { not_before: Instant::now() + SLOT }, None));
        };
        let committed = source.committed(partition)?;
        // After the offset: an end that is being written is waited for there.
        if let Some(end) = self.generations.claim(&self.restorer.surveyor)? {
            tracing::error!(partition, "stopped: {}", Disagreement::Ended(Box::new(end)));
            return Ok((Task::Stopped, None));
        }
        let here = self.here()?;
        let mut wiped = self.wiped.lock().unwrap_or_else(PoisonError::into_inner);
        let restoring = self.restorer.begin(partition, &here, wiped.entry(partition).or_default())?;
        Ok((Task::Restoring { committed, here, restoring, slot: Some(slot) }, None))
    }

    /// The topics as they are now.
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
                // One that waits for an open transaction does not keep the others waiting.
                let slot = slot.filter(|_| !restoring.is_stalled());
                return Ok((Task::Restoring { committed, here, restoring, slot }, None));
            }
            RestoreStep::Rebanded => return Ok((Task::Claiming { not_before: Instant::now() }, None)),
            RestoreStep::Restored(followed) => *followed,
        };
        if let Some(wiped) = self.wiped.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&partition) {
            // It is at the end of its log. If it is too old again in a month, that is another matter; a disk that
            // damages what is written to it stays one.
            wiped.retain(|&cause| cause == Cause::Damaged);
        }
        let progress = store.progress()?;
        if let Some(refusal) = self.intake.misfit(&progress) {
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
            let (_shown, flushed) = (shelf.register(partition, &store), Instant::now());
            Task::Running(Box::new(Running {
                _shown,
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
                tracing::info!(partition, next, "going on");
                if let Some(purge) = &self.purge {
                    // Whatever an earlier owner could not delete. A purge that has ended is no reason to stop.
                    let _sent = purge.send((partition, next));
                }
                (running(None), Some(next))
            }
            Takeover::Begin => {
                // What route has written is all to be judged.
                let from = if self.intake.is_routed() { StartAt::Earliest } else { self.bus.start };
                let start = source.first_offset(partition, from, (low, high))?;
                tracing::info!(partition, start, "beginning");
                let unpublished_position = (!faults::mutant("first-position-off")).then_some(start);
                (running(unpublished_position), Some(start))
            }
            Takeover::Accepted { from, lost } => {
                tracing::warn!(partition, from, lost, "going on as the operator has said");
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

    /// Closes a partition that cannot go on before it is looked at again.
    pub(crate) fn fail(&mut self, partition: i32, error: StoreError) {
        self.tasks.remove(&partition);
        let task = self.failed(partition, error.into());
        self.tasks.insert(partition, task);
    }

    /// What to do with a partition that cannot go on.
    fn failed(&mut self, partition: i32, error: RestoreError) -> Task {
        match &error {
            RestoreError::Store(error) => self.unusable.insert(partition, error.to_string()),
            _ => self.unusable.remove(&partition),
        };
        let again = |after: u64| Task::Claiming { not_before: Instant::now() + Duration::from_millis(after) };
        match error {
            RestoreError::Away(error) => {
                tracing::debug!(%error, partition, "taking over; it is tried again");
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
                        // A store that is still open writes to its path when it is closed at last: nothing else may
                        // be there by then.
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

    /// Tries again after a while. After too many failures in a row the process exits: a restart gets new file handles and
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

    /// Moves a store out of the way, so that the partition is rebuilt from its log.
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
