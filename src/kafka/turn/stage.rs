//! What a role does with its partitions; the worker around it is the same for all.

use std::collections::BTreeMap;

use crate::status::PartitionState;

use super::record::{Outgoing, Record};
use super::source::Source;
use super::txn::CommittedTxn;

/// What a role does with its partitions.
pub(crate) trait Stage {
    /// A decision about a batch, not carried out yet.
    type Planned;

    /// The partition is ours, and stands still.
    fn assigned(&mut self, partition: i32);

    /// The partition is ours no longer.
    fn revoked(&mut self, partition: i32);

    /// Works for a moment on partitions that are being taken over. Those that are ready are started at an offset.
    fn advance(&mut self, source: &Source) -> Vec<(i32, i64)>;

    /// How its partitions stand.
    fn standing(&self) -> Vec<(i32, PartitionState)>;

    /// Whether a partition is being taken over.
    fn is_taking_over(&self) -> bool;

    /// Whether something is to be committed even if no record comes.
    fn has_pending_commit(&self) -> bool {
        false
    }

    /// Asks for what deciding these records needs from outside the bus.
    ///
    /// # Errors
    /// Somebody is in trouble, which says nothing about the records: the worker keeps them, waits, and asks again.
    fn gather(&mut self, _: &BTreeMap<i32, Vec<Record>>) -> Result<(), String> {
        Ok(())
    }

    /// Decides. Partitions that cannot go on are left out; the worker halts them.
    fn plan(&mut self, records: BTreeMap<i32, Vec<Record>>) -> Planning<Self::Planned>;

    /// What is to be sent.
    fn outgoing<'a>(&'a self, planned: &'a Self::Planned) -> Vec<Outgoing<'a>>;

    /// It is committed: let state follow. Returns the partitions whose state could not; the worker halts them.
    fn apply(&mut self, planned: Self::Planned, committed: &CommittedTxn) -> Vec<i32>;

    /// The topic's log does not hold what a partition wants to read. Returns the partitions that are to be halted.
    fn out_of_range(&mut self) -> Vec<i32>;

    /// What is done now and then. Returns the partitions that are to be halted.
    fn upkeep(&mut self) -> Vec<i32>;

    /// Makes everything safe and closes it.
    fn close(&mut self);
}

/// A decision, and what it leaves out.
pub(crate) struct Planning<P> {
    /// The decision.
    pub(crate) planned: P,
    /// By partition, what to read next.
    pub(crate) next: BTreeMap<i32, i64>,
    /// Partitions that cannot go on.
    pub(crate) halted: Vec<i32>,
}
