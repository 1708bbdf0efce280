//! The trait between the worker and a role. The worker owns the consumer, the producer and the transaction; the role
//! owns its partitions' state and decides what to send. A role must not change state before [`Stage::apply`].

use std::collections::BTreeMap;

use crate::status::PartitionState;

use super::record::{Outgoing, Record};
use super::source::Source;
use super::txn::CommittedTxn;

/// A role's part of the turn.
pub(crate) trait Stage {
    /// A plan for a batch that is not committed yet.
    type Planned;

    /// The partition was assigned to this worker, and is paused.
    fn assigned(&mut self, partition: i32);

    /// The partition was revoked.
    fn revoked(&mut self, partition: i32);

    /// Continues taking partitions over, for a moment. Returns those that are ready, with the offset to start at.
    fn advance(&mut self, source: &Source) -> Vec<(i32, i64)>;

    /// The state of each partition, for readiness and metrics.
    fn standing(&self) -> Vec<(i32, PartitionState)>;

    /// Whether a partition is being taken over.
    fn is_taking_over(&self) -> bool;

    /// Whether there is something to commit even without new records.
    fn has_pending_commit(&self) -> bool {
        false
    }

    /// Fetches what planning these records needs from outside Kafka, such as schemas.
    ///
    /// # Errors
    /// The outside service failed, which says nothing about the records: the worker keeps them and retries later.
    fn gather(&mut self, _: &BTreeMap<i32, Vec<Record>>) -> Result<(), String> {
        Ok(())
    }

    /// Plans the batch. Partitions that cannot continue are left out, and the worker halts them.
    fn plan(&mut self, records: BTreeMap<i32, Vec<Record>>) -> Planning<Self::Planned>;

    /// The records to send for a plan.
    fn outgoing<'a>(&'a self, planned: &'a Self::Planned) -> Vec<Outgoing<'a>>;

    /// Applies a committed plan to the state. Returns the partitions where that failed; the worker halts them.
    fn apply(&mut self, planned: Self::Planned, committed: &CommittedTxn) -> Vec<i32>;

    /// The topic does not hold the offset that some partition reads next. Returns the partitions to halt.
    fn out_of_range(&mut self) -> Vec<i32>;

    /// Periodic work between turns. Returns the partitions to halt.
    fn upkeep(&mut self) -> Vec<i32>;

    /// Flushes and closes the state.
    fn close(&mut self);
}

/// A plan, and the partitions that it leaves out.
pub(crate) struct Planning<P> {
    pub(crate) planned: P,
    /// By partition, the offset to commit.
    pub(crate) next: BTreeMap<i32, i64>,
    /// Partitions that cannot continue.
    pub(crate) halted: Vec<i32>,
}
