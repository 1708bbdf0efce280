//! The trait between the worker and a role. The worker owns the consumer, the producer and the transaction; the role
//! owns its partitions' state and decides what to send. A role must not change state before [`StageRole::apply`].

use std::collections::BTreeMap;

use super::partitions::{Advanced, AssignedPartitions, Obstacle, Shows, Task};
use super::record::{Outgoing, Record};
use super::source::RecordSource;
use super::txn::CommittedTxn;

/// A role's part of the turn.
pub(crate) trait StageRole {
    /// The role's data for a partition whose state is being prepared.
    type Preparing: Shows;
    /// The role's data for a running partition.
    type Running: Shows;
    /// A plan for a batch that is not committed yet.
    type Planned;

    /// The partitions that are assigned to this worker.
    fn partitions(&self) -> &AssignedPartitions<Self::Preparing, Self::Running>;

    fn partitions_mut(&mut self) -> &mut AssignedPartitions<Self::Preparing, Self::Running>;

    /// The partition was assigned to this worker, and is paused.
    fn assigned(&mut self, partition: i32) {
        self.partitions_mut().assigned(partition);
    }

    /// The partition was revoked.
    fn revoked(&mut self, partition: i32);

    /// Decides where a partition resumes, and begins to prepare its state.
    fn claim(
        &mut self,
        partition: i32,
        obstacle: Obstacle,
        source: &RecordSource,
    ) -> Advanced<Self::Preparing, Self::Running>;

    /// Continues to prepare a partition's state, for a moment.
    fn prepare(
        &mut self,
        partition: i32,
        preparing: Self::Preparing,
        source: &RecordSource,
    ) -> Advanced<Self::Preparing, Self::Running>;

    /// Continues taking partitions over, for a moment. Returns those that are ready, with the offset to start at.
    fn advance(&mut self, source: &RecordSource) -> Vec<(i32, i64)> {
        let mut ready = self.partitions_mut().released();
        for partition in self.partitions().due() {
            let Some(task) = self.partitions_mut().take(partition) else { continue };
            let advanced = match task {
                Task::Claiming { obstacle, .. } => self.claim(partition, obstacle, source),
                Task::Preparing(preparing) => self.prepare(partition, preparing, source),
                task @ (Task::Running(_) | Task::Stopped) => task.into(),
            };
            self.partitions_mut().set(partition, advanced.task);
            ready.extend(advanced.start_at.map(|offset| (partition, offset)));
        }
        ready
    }

    /// Fetches what planning these records needs from outside Kafka, such as schemas.
    ///
    /// # Errors
    /// The outside service failed, which says nothing about the records: the worker keeps them and retries later.
    fn gather(&mut self, _: &BTreeMap<i32, Vec<Record>>) -> Result<(), String> {
        Ok(())
    }

    /// May decode records of the next batch on other threads. Called once a batch is planned: its transaction mostly waits.
    fn decode_ahead(&self, _: &BTreeMap<i32, Vec<Record>>) {}

    /// Plans the batch. Partitions that cannot continue are left out, and the worker halts them.
    fn plan(&mut self, records: BTreeMap<i32, Vec<Record>>) -> Planning<Self::Planned>;

    /// The records to send for a plan.
    fn outgoing<'a>(&'a self, planned: &'a Self::Planned) -> Vec<Outgoing<'a>>;

    /// Applies a committed plan to the state. Returns the partitions where that failed; the worker halts them.
    fn apply(&mut self, planned: Self::Planned, committed: &CommittedTxn) -> Vec<i32>;

    /// The topic does not hold the offset that some partition reads next. All running partitions are claimed again: the
    /// takeover compares their positions with the log. Returns the partitions to halt.
    fn out_of_range(&mut self) -> Vec<i32> {
        let running: Vec<i32> = self.partitions().running().map(|(partition, _)| partition).collect();
        for &partition in &running {
            drop(self.partitions_mut().take(partition));
            self.assigned(partition);
        }
        running
    }

    /// Periodic work between turns. Returns the partitions to halt.
    fn upkeep(&mut self) -> Vec<i32>;

    /// Flushes and closes the state.
    fn close(&mut self) {
        for partition in self.partitions().all() {
            self.revoked(partition);
        }
    }
}

/// A plan, and the partitions that it leaves out.
pub(crate) struct Planning<P> {
    pub(crate) planned: P,
    /// By partition, the offset to commit.
    pub(crate) next: BTreeMap<i32, i64>,
    /// Partitions that cannot continue.
    pub(crate) halted: Vec<i32>,
}
