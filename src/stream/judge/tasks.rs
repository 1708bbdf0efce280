//! How a partition comes to be worked on, and what becomes of it when it cannot be: claimed, restored, running, stopped.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;

use crate::config::StartAt;
use crate::health::Sizes;
use crate::store::{Rocks, Shown, StoreError, View, check_room};
use crate::stream::clients::PATIENCE;
use crate::stream::ids::Here;
use crate::stream::restore::{Cause, RestoreError, Restoring, Step};
use crate::stream::source::Source;
use crate::stream::takeover::{Disagreement, Known, Takeover, decide, moved};
use crate::stream::{faults, measure};

use super::Judge;

/// One partition's life.
pub(in crate::stream) enum Task {
    /// Its offset is asked for. First of all: what is committed after this is not our predecessor's.
    Claiming { not_before: Instant },
    /// There is no space for its state. It is claimed again once there is.
    NoSpace { look_again: Instant },
    /// Its state is brought to the end of its log.
    Restoring { committed: Option<i64>, here: Here, restoring: Restoring },
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
pub(in crate::stream) struct Running {
    // Dropped first: nobody reads a store that is closed.
    pub(super) _shown: Shown,
    pub(super) store: Rocks,
    /// The topics that its positions belong to.
    pub(super) here: Here,
    /// A position that the log does not know yet.
    pub(super) unsaid: Option<i64>,
    pub(super) flushed: Instant,
    /// It waits for the generation before until then, and goes on from here.
    pub(super) held: Option<(Instant, i64)>,
    /// As they were when it was last flushed.
    pub(super) sizes: Arc<Sizes>,
}

impl Judge {
    /// One step of one partition. Nothing, or where to read from.
    pub(super) fn advance_one(&mut self, partition: i32, task: Task, source: &Source) -> (Task, Option<i64>) {
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
            Task::Restoring { committed, here, restoring } => {
                self.restore(partition, (committed, here), restoring, source)
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
        // After the offset: an end that is being written is waited for there.
        if let Some(end) = self.generations.claim(&self.restorer.surveyor)? {
            tracing::error!(partition, "stopped: {}", Disagreement::Ended(Box::new(end)));
            return Ok((Task::Stopped, None));
        }
        let here = self.here()?;
        let mut wiped = self.wiped.lock().unwrap_or_else(PoisonError::into_inner);
        let restoring = self.restorer.begin(partition, &here, wiped.entry(partition).or_default())?;
        Ok((Task::Restoring { committed, here, restoring }, None))
    }

    /// The topics as they are now.
    pub(super) fn here(&self) -> Result<Here, KafkaError> {
        let client = self.restorer.surveyor.client();
        Here::ask(client, &self.restorer.changelog, self.intake.topic(), PATIENCE)
    }

    fn restore(
        &mut self,
        partition: i32,
        (committed, here): (Option<i64>, Here),
        restoring: Restoring,
        source: &Source,
    ) -> Result<(Task, Option<i64>), RestoreError> {
        let store = match restoring.step()? {
            Step::More(restoring) => return Ok((Task::Restoring { committed, here, restoring }, None)),
            Step::Restored(store) => *store,
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
        let running = |unsaid| {
            let (_shown, flushed) = (shelf.show(partition, &store), Instant::now());
            Task::Running(Box::new(Running { _shown, store, here, unsaid, flushed, held: None, sizes }))
        };
        let known = Known { committed, position, moved, truncated, low, high };
        Ok(match decide(known, self.accept) {
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
    pub(super) fn fail(&mut self, partition: i32, error: StoreError) {
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
                StoreError::Unusable { .. } if check_room(&self.restorer.directory(partition)).is_err() => {
                    tracing::error!(partition, "stopped for now: {error}");
                    Task::no_space()
                }
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

    /// Moves a store out of the way, so that the partition is rebuilt from its log.
    fn quarantine(&mut self, partition: i32, cause: Cause) -> Task {
        let directory = self.restorer.directory(partition);
        let mut wiped = self.wiped.lock().unwrap_or_else(PoisonError::into_inner);
        match self.restorer.set_aside(partition, &directory, cause, wiped.entry(partition).or_default()) {
            Ok(()) => Task::Claiming { not_before: Instant::now() },
            Err(error) => {
                tracing::error!(partition, "stopped: {error}");
                Task::Stopped
            }
        }
    }
}
