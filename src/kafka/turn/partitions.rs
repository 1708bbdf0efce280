//! The life of an assigned partition, the same for every role: claimed, prepared, running, and stopped if it cannot
//! continue. [`AssignedPartitions`] holds a worker's partitions; a role says in [`StageRole`](super::stage::StageRole) what claiming and
//! preparing mean to it. A partition is planned only while it runs, and it is read only from the offset that its claim
//! returned, or that its first transaction has committed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::kafka::recovery::takeover::{CLAIM_AGAIN_AFTER, Disagreed, Disagreement};
use crate::status::PartitionState;

use crate::kafka::faults::{Constant, FAULTS, Faults};

/// How often topic ids are checked while partitions run. librdkafka keeps reading from the same offset in a recreated
/// topic if that topic is long enough (2.12 has a FIXME there).
const TOPIC_ID_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The states of an assigned partition. `P` is what a role keeps while it prepares the partition's state, `R` what it
/// keeps while the partition runs.
pub(crate) enum Task<P, R> {
    /// The committed offset is looked up, at this time or later. This comes first: the previous owner commits nothing
    /// after it.
    Claiming { not_before: Instant, obstacle: Obstacle },
    /// The state is being prepared.
    Preparing(P),
    /// Records are planned and committed.
    Running(Box<Running<R>>),
    /// An operator has to decide.
    Stopped,
}

/// Why the last claim of a partition failed.
pub(crate) enum Obstacle {
    /// It did not, or the broker was unreachable.
    Nothing,
    /// The disk has no room for the state.
    NoSpace,
    /// The state cannot be opened, for this reason.
    Unusable(String),
}

/// A running partition.
pub(crate) struct Running<R> {
    /// The role's own data for the partition.
    pub(crate) state: R,
    /// A position to commit even if no record follows: nobody could find out later where the partition began.
    pub(crate) unpublished_position: Option<i64>,
    flow: Flow,
}

/// True if a running partition is read.
enum Flow {
    /// It is read.
    Flowing,
    /// It is read once its unpublished position is committed.
    FirstCommit,
    /// It waits for the previous generation and resumes at `next`.
    Held { until: Instant, next: i64 },
}

/// The result of one step with a partition.
pub(crate) struct Advanced<P, R> {
    pub(crate) task: Task<P, R>,
    /// The offset to read from, if the partition can be read now.
    pub(crate) start_at: Option<i64>,
}

impl<P, R> From<Task<P, R>> for Advanced<P, R> {
    fn from(task: Task<P, R>) -> Advanced<P, R> {
        Advanced { task, start_at: None }
    }
}

impl<P, R> Task<P, R> {
    /// Claims the partition as soon as possible.
    pub(crate) fn claim_now() -> Task<P, R> {
        Task::claim_after(Duration::ZERO)
    }

    pub(crate) fn claim_after(pause: Duration) -> Task<P, R> {
        Task::blocked(pause, Obstacle::Nothing)
    }

    /// Claims the partition again after a pause; until then it reports the obstacle.
    pub(crate) fn blocked(pause: Duration, obstacle: Obstacle) -> Task<P, R> {
        Task::Claiming { not_before: Instant::now() + pause, obstacle }
    }
}

impl<P, R> Advanced<P, R> {
    /// The partition runs and is read from `next`.
    pub(crate) fn resumes(state: R, next: i64) -> Advanced<P, R> {
        Advanced::runs(state, None, Flow::Flowing, Some(next))
    }

    /// The partition runs and is read from `next`. Its first transaction commits a position, even without records.
    pub(crate) fn begins(state: R, next: i64) -> Advanced<P, R> {
        Advanced::runs(state, Some(next), Flow::Flowing, Some(next))
    }

    /// The partition runs and commits `next`. It is read only after that.
    pub(crate) fn commits_first(state: R, next: i64) -> Advanced<P, R> {
        Advanced::runs(state, Some(next), Flow::FirstCommit, None)
    }

    fn runs(
        state: R,
        unpublished_position: Option<i64>,
        flow: Flow,
        start_at: Option<i64>,
    ) -> Advanced<P, R> {
        Advanced { task: Task::Running(Box::new(Running { state, unpublished_position, flow })), start_at }
    }
}

impl<R> Running<R> {
    /// Notes that the partition's position was committed. Returns whether it was unpublished before.
    pub(crate) fn committed(&mut self) -> bool {
        let Some(next) = self.unpublished_position.take() else { return false };
        if matches!(self.flow, Flow::FirstCommit) {
            self.flow = Flow::Held { until: Instant::now(), next };
        }
        true
    }

    fn hold(&mut self, pause: Duration, next: i64) {
        self.flow = Flow::Held { until: Instant::now() + pause, next };
    }

    /// The offset to read from, once a held partition has waited long enough.
    fn released(&mut self) -> Option<i64> {
        match self.flow {
            Flow::Held { until, next } if until <= Instant::now() => {
                self.flow = Flow::Flowing;
                Some(next)
            }
            Flow::Held { .. } | Flow::Flowing | Flow::FirstCommit => None,
        }
    }
}

/// Describes a role's partition for readiness and metrics.
pub(crate) trait Shows {
    fn shows(&self) -> PartitionState;
}

/// A role without state prepares nothing.
impl Shows for Infallible {
    fn shows(&self) -> PartitionState {
        match *self {}
    }
}

impl Shows for () {
    fn shows(&self) -> PartitionState {
        PartitionState::Running(Arc::default())
    }
}

/// The partitions that are assigned to a worker.
pub(crate) struct AssignedPartitions<P, R> {
    tasks: BTreeMap<i32, Task<P, R>>,
    disagreed: Disagreed,
    /// When the topic ids were last checked.
    checked: Instant,
}

impl<P: Shows, R: Shows> AssignedPartitions<P, R> {
    pub(crate) fn new() -> AssignedPartitions<P, R> {
        AssignedPartitions {
            tasks: BTreeMap::new(),
            disagreed: Disagreed::default(),
            checked: Instant::now(),
        }
    }

    /// The partition was assigned: it is claimed.
    pub(crate) fn assigned(&mut self, partition: i32) {
        self.tasks.insert(partition, Task::claim_now());
    }

    /// The partition was revoked. Returns what the role kept for it while it ran.
    pub(crate) fn revoked(&mut self, partition: i32) -> Option<R> {
        self.disagreed.forget(partition);
        match self.tasks.remove(&partition) {
            Some(Task::Running(running)) => Some(running.state),
            Some(Task::Claiming { .. } | Task::Preparing(_) | Task::Stopped) | None => None,
        }
    }

    /// All assigned partitions.
    pub(crate) fn all(&self) -> Vec<i32> {
        self.tasks.keys().copied().collect()
    }

    /// Takes a partition's task out, to replace it with [`AssignedPartitions::set`].
    pub(crate) fn take(&mut self, partition: i32) -> Option<Task<P, R>> {
        self.tasks.remove(&partition)
    }

    pub(crate) fn set(&mut self, partition: i32, task: Task<P, R>) {
        self.tasks.insert(partition, task);
    }

    /// The partitions that run.
    pub(crate) fn running(&self) -> impl Iterator<Item = (i32, &Running<R>)> {
        self.tasks.iter().filter_map(|(&partition, task)| match task {
            Task::Running(running) => Some((partition, &**running)),
            Task::Claiming { .. } | Task::Preparing(_) | Task::Stopped => None,
        })
    }

    /// A partition, if it runs.
    pub(crate) fn running_mut(&mut self, partition: i32) -> Option<&mut Running<R>> {
        match self.tasks.get_mut(&partition)? {
            Task::Running(running) => Some(running),
            Task::Claiming { .. } | Task::Preparing(_) | Task::Stopped => None,
        }
    }

    /// The positions to commit even without records, by partition.
    pub(crate) fn unpublished_positions(&self) -> impl Iterator<Item = (i32, i64)> {
        self.running().filter_map(|(partition, running)| Some((partition, running.unpublished_position?)))
    }

    /// Stops reading a running partition for a while; it resumes at `next`. The worker must halt it.
    pub(crate) fn hold(&mut self, partition: i32, pause: Duration, next: i64) {
        if let Some(running) = self.running_mut(partition) {
            running.hold(pause, next);
        }
    }

    /// Releases the partitions that have waited long enough, with the offset to read from.
    pub(crate) fn released(&mut self) -> Vec<(i32, i64)> {
        let released = |(&partition, task): (&i32, &mut Task<P, R>)| match task {
            Task::Running(running) => Some((partition, running.released()?)),
            Task::Claiming { .. } | Task::Preparing(_) | Task::Stopped => None,
        };
        self.tasks.iter_mut().filter_map(released).collect()
    }

    /// The partitions with something to do before they run.
    pub(crate) fn due(&self) -> Vec<i32> {
        self.tasks.iter().filter(|(_, task)| is_due(task)).map(|(&partition, _)| partition).collect()
    }

    /// True if a partition is being taken over.
    pub(crate) fn is_taking_over(&self) -> bool {
        self.tasks.values().any(is_due)
    }

    /// The state of each partition.
    pub(crate) fn states(&self) -> Vec<(i32, PartitionState)> {
        let state = |task: &Task<P, R>| match task {
            Task::Claiming { obstacle, .. } => match obstacle {
                Obstacle::Nothing => PartitionState::TakingOver,
                Obstacle::NoSpace => PartitionState::NoSpace,
                Obstacle::Unusable(why) => PartitionState::StateUnusable { why: why.clone() },
            },
            Task::Preparing(preparing) => preparing.shows(),
            Task::Running(running) => match running.flow {
                Flow::FirstCommit => PartitionState::TakingOver,
                Flow::Flowing | Flow::Held { .. } => running.state.shows(),
            },
            Task::Stopped => PartitionState::Stopped,
        };
        self.tasks.iter().map(|(&partition, task)| (partition, state(task))).collect()
    }

    /// The partition's offset and state agree: an earlier disagreement does not count any more.
    pub(crate) fn agrees(&mut self, partition: i32) {
        self.disagreed.forget(partition);
    }

    /// The partition's offset and state disagree. The claim is repeated a few times before the partition stops: an
    /// offset may still be in flight.
    pub(crate) fn disagrees(&mut self, partition: i32, disagreement: &Disagreement) -> Task<P, R> {
        if self.disagreed.is_final(partition) {
            tracing::error!(partition, "stopped: {disagreement}");
            return Task::Stopped;
        }
        tracing::warn!(partition, "claiming again: {disagreement}");
        Task::claim_after(CLAIM_AGAIN_AFTER)
    }

    /// True if it is time to check that the topics are still those that the running partitions belong to.
    pub(crate) fn is_topic_check_due(&mut self) -> bool {
        let interval =
            FAULTS.value(Constant::TopicIdCheckInterval, TOPIC_ID_CHECK_INTERVAL.as_millis() as u64);
        if self.checked.elapsed() < Duration::from_millis(interval) || self.running().next().is_none() {
            return false;
        }
        self.checked = Instant::now();
        true
    }
}

fn is_due<P, R>(task: &Task<P, R>) -> bool {
    match task {
        Task::Claiming { not_before, .. } => *not_before <= Instant::now(),
        Task::Preparing(_) => true,
        Task::Running(_) | Task::Stopped => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Stateless = AssignedPartitions<Infallible, ()>;

    fn running(next: i64) -> Stateless {
        let mut partitions = Stateless::new();
        partitions.set(3, Advanced::commits_first((), next).task);
        partitions
    }

    #[test]
    fn a_partition_that_commits_first_is_read_only_after_that() {
        let mut partitions = running(17);
        assert_eq!(partitions.states(), [(3, PartitionState::TakingOver)]);
        assert_eq!(partitions.unpublished_positions().collect::<Vec<_>>(), [(3, 17)]);
        assert_eq!(partitions.released(), [], "nothing is committed yet");
        assert!(partitions.running_mut(3).unwrap().committed());
        assert_eq!(partitions.unpublished_positions().count(), 0);
        assert_eq!(partitions.released(), [(3, 17)]);
        assert_eq!(partitions.released(), [], "it is read now");
        assert!(!partitions.running_mut(3).unwrap().committed(), "the position is published");
    }

    #[test]
    fn a_held_partition_resumes_where_it_stopped() {
        let mut partitions = running(17);
        partitions.hold(3, Duration::from_secs(60), 21);
        assert_eq!(partitions.released(), [], "it has to wait");
        partitions.hold(3, Duration::ZERO, 21);
        assert_eq!(partitions.released(), [(3, 21)]);
    }

    #[test]
    fn a_disagreement_stops_a_partition_after_three_more_claims() {
        let mut partitions = Stateless::new();
        let disagreement = Disagreement::Gap { partition: 3, next: 7, low: 10 };
        let mut stops = || matches!(partitions.disagrees(3, &disagreement), Task::Stopped);
        assert_eq!([stops(), stops(), stops(), stops()], [false, false, false, true]);
        partitions.agrees(3);
        assert!(!matches!(partitions.disagrees(3, &disagreement), Task::Stopped));
    }

    #[test]
    fn a_claim_waits_for_its_time_and_reports_its_obstacle() {
        let mut partitions = Stateless::new();
        partitions.assigned(1);
        assert!(partitions.is_taking_over() && partitions.due() == [1]);
        partitions.set(1, Task::blocked(Duration::from_secs(60), Obstacle::NoSpace));
        assert!(!partitions.is_taking_over() && partitions.due().is_empty());
        assert_eq!(partitions.states(), [(1, PartitionState::NoSpace)]);
        partitions.set(1, Task::Stopped);
        assert_eq!(partitions.states(), [(1, PartitionState::Stopped)]);
        assert!(!partitions.is_topic_check_due(), "nothing runs");
    }
}
