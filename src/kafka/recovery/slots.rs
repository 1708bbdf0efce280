//! Bounds the restores that run at once in a process: all workers share the slots, and a partition restores only while it
//! holds one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Restores that run at once in a process. Each has up to 32 MB of records waiting to be applied, and more in
/// memtables.
const AT_ONCE: usize = 2;

/// Bounds the restores that run at once in the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct RestoreSlots(Arc<AtomicUsize>);

/// The right to restore a partition. Dropping it frees the slot.
#[derive(Debug)]
#[must_use = "dropping it frees the slot"]
pub(crate) struct RestoreSlot(Arc<AtomicUsize>);

impl RestoreSlots {
    /// A slot, if one is free.
    pub(crate) fn take(&self) -> Option<RestoreSlot> {
        let more = |taken: usize| (taken < AT_ONCE).then_some(taken + 1);
        let taken = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.is_ok().then(|| RestoreSlot(Arc::clone(&self.0)))
    }
}

impl Drop for RestoreSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_restores_two_partitions_at_a_time() {
        let slots = RestoreSlots::default();
        let workers = [slots.clone(), slots.clone(), slots];
        let mut taken: Vec<RestoreSlot> = workers.iter().filter_map(RestoreSlots::take).collect();
        assert_eq!(taken.len(), 2);
        taken.pop();
        assert!(workers[2].take().is_some(), "the next one starts when a slot is free");
    }
}
