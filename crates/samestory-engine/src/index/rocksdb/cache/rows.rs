//! A cache of the rows of segments, as their bytes.
//!
//! [`crate::index::rocksdb::postings::segment`] reads through it. Rows never change, and the number of a segment is never
//! used again while a store is open, so no entry is ever outdated.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::generations::Generations;
use crate::index::rocksdb::budget::Budget;

/// A row of 256 postings with its entry: five bytes of a bucket and three of a number are usual.
pub(crate) const ENTRY_BYTES: usize = 2200;

/// The bytes of a row.
pub(crate) type RowBytes = Arc<[u8]>;

/// A row: its segment, and how many rows of that come before it.
pub(crate) type RowId = (u32, u32);

/// The rows of all segments of a store.
pub(crate) struct RowCache {
    rows: Mutex<Generations<u64, RowBytes>>,
    budget: Budget,
    hits: AtomicU64,
    misses: AtomicU64,
}

fn key((segment, row): RowId) -> u64 {
    u64::from(segment) << 32 | u64::from(row)
}

impl RowCache {
    pub(in crate::index::rocksdb) fn new(budget: Budget) -> RowCache {
        let (rows, hits, misses) = Default::default();
        RowCache { rows, budget, hits, misses }
    }

    /// The cached ones of these rows.
    pub(crate) fn get(&self, ids: impl Iterator<Item = RowId>) -> Vec<Option<RowBytes>> {
        let capacity = self.budget.cached_rows(ENTRY_BYTES);
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let found: Vec<Option<RowBytes>> = ids.map(|id| rows.get(key(id), capacity)).collect();
        drop(rows);
        let hits = found.iter().flatten().count();
        self.hits.fetch_add(hits as u64, Ordering::Relaxed);
        self.misses.fetch_add((found.len() - hits) as u64, Ordering::Relaxed);
        found
    }

    /// Caches rows that were read.
    pub(crate) fn keep(&self, read: impl Iterator<Item = (RowId, RowBytes)>) {
        let capacity = self.budget.cached_rows(ENTRY_BYTES);
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        read.for_each(|(id, row)| rows.insert(key(id), row, capacity));
    }

    #[cfg(test)]
    pub(crate) fn clear(&self) {
        *self.rows.lock().unwrap_or_else(PoisonError::into_inner) = Generations::default();
    }

    /// Rows found and rows not found, since the last call.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.hits.swap(0, Ordering::Relaxed), self.misses.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_different_segments_are_kept_apart_and_counted() {
        let cache = RowCache::new(Budget::new(64 << 20));
        let row = |byte: u8| RowBytes::from([byte]);
        cache.keep([((1, 0), row(1)), ((2, 0), row(2)), ((1, 1), row(3))].into_iter());
        let found = cache.get([(2, 0), (1, 0), (2, 1), (1, 1)].into_iter());
        assert_eq!(found, [Some(row(2)), Some(row(1)), None, Some(row(3))]);
        assert_eq!(cache.counts(), (3, 1));
        assert_eq!(cache.counts(), (0, 0));
    }

    #[test]
    fn rows_are_evicted_beyond_the_budget() {
        let budget = Budget::new(1 << 20);
        let capacity = budget.cached_rows(ENTRY_BYTES) as u32;
        let cache = RowCache::new(budget);
        cache.keep((0..10 * capacity).map(|row| ((1, row), RowBytes::from([0]))));
        let held = cache.get((0..10 * capacity).map(|row| (1, row))).into_iter().flatten().count();
        assert!(held as u32 <= 2 * capacity, "{held} rows, capacity {capacity}");
        assert!(held > 0);
    }
}
