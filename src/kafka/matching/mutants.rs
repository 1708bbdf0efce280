//! Mutants of the `match` role that do something in place of a guard. The turn calls them at its seams; without the
//! feature `faults` they do nothing.

use samestory_engine::engine::Batch;
use samestory_engine::index::{Store, View};

use super::{MatchPlan, Matcher};
use crate::kafka::faults::{FAULTS, Faults, Mutant};

/// Takes event times from this machine's clock instead of from the records.
pub(super) fn wall_clock(batch: &mut Batch) {
    if FAULTS.has(Mutant::WallClock) {
        batch.items.iter_mut().for_each(|item| item.time = Some(crate::kafka::clock::now()));
    }
}

impl Matcher {
    /// Applies a plan before it is committed.
    pub(super) fn apply_early(&mut self, plan: &MatchPlan) {
        if !FAULTS.has(Mutant::StateBeforeCommit) {
            return;
        }
        for part in &plan.partitions {
            let Some(running) = self.partitions.running_mut(part.partition) else { continue };
            let open = &mut running.state;
            let end = open.store.changelog_next().ok().flatten().unwrap_or(0);
            let proof = open.attestor.attest(end);
            let _applied = open.store.apply_changes(&part.plan.changes, &proof);
        }
    }
}

/// True if plans were applied early.
pub(super) fn applied_early() -> bool {
    FAULTS.has(Mutant::StateBeforeCommit)
}
