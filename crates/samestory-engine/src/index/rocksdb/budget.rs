//! One memory budget for all stores of a process, and how it is divided.
//!
//! Every [`Opened`](super::Opened) store takes its parts from the [`Budget`] in its options. The filters of segments grow with
//! the articles, and what they take, the cache of their rows gives up. RocksDB's own index blocks and the filter of ids come on top:
//! `samestory plan` says how much they take.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rocksdb::{Cache, LruCacheOptions, WriteBufferManager};

use crate::index::MemoryShares;

/// The memory budget that all stores of a process share.
#[derive(Clone)]
pub struct Budget {
    pub(super) cache: Cache,
    pub(super) write_buffers: WriteBufferManager,
    pub(super) shares: MemoryShares,
    /// Postings in memory, of all stores.
    pub(super) postings: Arc<AtomicUsize>,
    /// Bytes of the filters and fences of all segments.
    filters: Arc<AtomicUsize>,
    /// Open stores.
    stores: Arc<AtomicUsize>,
}

impl Budget {
    /// A budget of this many bytes.
    pub fn new(memory: usize) -> Budget {
        let shares = MemoryShares::of_budget(memory);
        let mut options = LruCacheOptions::default();
        // RocksDB charges memtables to the cache.
        options.set_capacity(shares.write_buffers + shares.blocks);
        // Few shards, because an entry larger than a shard is never cached.
        options.set_num_shard_bits(3);
        let cache = Cache::new_lru_cache_opts(&options);
        // Never stall writes here: with many column families a stalled writer can wait for a flush that waits
        // for it.
        let write_buffers = WriteBufferManager::new_write_buffer_manager_with_cache(
            shares.write_buffers,
            false,
            cache.clone(),
        );
        let (postings, filters, stores) = Default::default();
        Budget { cache, write_buffers, shares, postings, filters, stores }
    }

    /// Takes note that the filters of a store have changed.
    pub(super) fn filters_changed(&self, before: usize, now: usize) {
        self.filters.fetch_add(now, Ordering::Relaxed);
        self.filters.fetch_sub(before, Ordering::Relaxed);
    }

    /// A store has been opened.
    pub(super) fn open_store(&self) {
        self.stores.fetch_add(1, Ordering::Relaxed);
    }

    /// A store has been closed.
    pub(super) fn close_store(&self) {
        self.stores.fetch_sub(1, Ordering::Relaxed);
    }

    /// Room for decoded documents of this size: three quarters of the share.
    pub(super) fn room_for(&self, bytes: usize) -> Room {
        self.room(self.shares.documents / 4 * 3, bytes)
    }

    /// Room for summaries of documents: the rest of that share.
    pub(super) fn room_for_summaries(&self) -> Room {
        /// Key and value, in a table that is half full.
        const SUMMARY: usize = 64;
        self.room(self.shares.documents / 4, SUMMARY)
    }

    fn room(&self, share: usize, bytes: usize) -> Room {
        // Caches have two generations.
        Room { entries: share / 2 / bytes, stores: Arc::clone(&self.stores) }
    }
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(crate::index::BUDGET_BYTES)
    }
}

impl Budget {
    /// How many rows of segments, with entries of this size, each generation of a store's cache may have.
    pub(super) fn cached_rows(&self, bytes: usize) -> usize {
        let rows = self.shares.row_cache(self.filters.load(Ordering::Relaxed)) / 2 / bytes;
        (rows / self.stores.load(Ordering::Relaxed).max(1)).max(LEAST)
    }
}

/// Entries that the caches of all stores may have together.
pub(super) struct Room {
    entries: usize,
    stores: Arc<AtomicUsize>,
}

/// A cache has at least this many entries.
const LEAST: usize = 64;

impl Room {
    #[cfg(test)]
    pub(super) fn of_one(entries: usize) -> Room {
        Room { entries: entries.max(LEAST), stores: Arc::new(AtomicUsize::new(1)) }
    }

    /// Entries for one store.
    pub(super) fn each(&self) -> usize {
        (self.entries / self.stores.load(Ordering::Relaxed).max(1)).max(LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_share_the_room_for_documents() {
        let budget = Budget::new(64 << 20);
        let room = budget.room_for(1 << 10);
        budget.open_store();
        assert_eq!(room.each(), 3 << 10);
        (0..3).for_each(|_| budget.open_store());
        assert_eq!(room.each(), 3 << 8);
        (0..1000).for_each(|_| budget.open_store());
        assert_eq!(room.each(), LEAST);
        (0..1003).for_each(|_| budget.close_store());
        assert_eq!(room.each(), 3 << 10);
    }
}
