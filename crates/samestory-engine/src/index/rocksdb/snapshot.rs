//! A consistent snapshot of a store for query threads.
//!
//! [`super::registry`] hands out snapshots; they read through [`RocksReader`]. All reads of a snapshot see
//! the same whole number of batches, so a bucket never names a document that does not exist, and no read
//! evicts what the worker has cached.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use rocksdb::{DB, ReadOptions, SnapshotWithThreadMode};

use super::RocksReader;
use crate::index::StoreError;
use crate::index::format::key::Family;
use crate::index::read::rows::{Order, PostingLists, Rows, Span, Visit};
use crate::index::scheme::IndexSchemes;
use crate::lsh::BandKey;
use crate::model::{ArticleId, Lang};

/// A store at one point in time, read from another thread than the one that writes it.
pub struct Snapshot<'r> {
    reader: &'r RocksReader,
    rows: SnapshotWithThreadMode<'r, DB>,
    version: u64,
    /// Set when the owner wants to close the store.
    withdrawn: &'r AtomicBool,
}

impl RocksReader {
    /// A snapshot of the store as it is now. Every read fails once `withdrawn` is set, so that closing the
    /// store need not wait long.
    pub(super) fn snapshot<'r>(&'r self, withdrawn: &'r AtomicBool) -> Snapshot<'r> {
        Snapshot { reader: self, rows: self.0.db.snapshot(), version: self.version(), withdrawn }
    }
}

impl Snapshot<'_> {
    fn readable(&self) -> Result<(), StoreError> {
        if self.withdrawn.load(Ordering::Relaxed) {
            let (place, detail) = (self.place().to_owned(), "it is being closed".to_owned());
            return Err(StoreError::Unusable { place, detail });
        }
        Ok(())
    }

    fn options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.set_snapshot(&self.rows);
        options
    }
}

impl Rows for Snapshot<'_> {
    fn place(&self) -> &str {
        self.reader.place()
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn postings(&self) -> &IndexSchemes {
        self.reader.postings()
    }

    fn languages(&self) -> Vec<Lang> {
        self.reader.languages()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.readable()?;
        let Some(family) = self.reader.0.family(family) else { return Ok(None) };
        let found = self.reader.0.db.get_cf_opt(&family, key, &self.options());
        found.map_err(|error| self.reader.0.failure(&error))
    }

    fn scan(
        &self,
        family: Family,
        span: &Span,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let mut readable = self.readable();
        if readable.is_ok() {
            self.reader.scan_by(self.options(), family, span, order, &mut |key, value| {
                visit(key, value)?;
                readable = self.readable();
                if readable.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        readable
    }

    fn get_many(&self, family: Family, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.readable()?;
        let Some(handle) = self.reader.0.family(family) else { return Ok(vec![None; keys.len()]) };
        let mut options = self.options();
        // Occasional queries must not evict what the worker reads all the time.
        options.fill_cache(false);
        self.reader.get_many_by(&options, &handle, keys)
    }

    // The filter describes the store as it is now. After a rebuild it may lack ids that were removed since the
    // snapshot.
    fn may_know(&self, id: &ArticleId) -> bool {
        self.reader.may_know(id)
    }

    fn posting_lists(
        &self,
        language: Lang,
        keys: &[BandKey],
        cap: usize,
    ) -> Result<PostingLists, StoreError> {
        self.readable()?;
        let mut lists = PostingLists::empty(keys.len());
        let Some(family) = self.reader.0.family(Family::Bands(language)) else { return Ok(lists) };
        let there = self.reader.0.sieve.singles(language, keys);
        let mut order: Vec<usize> = (0..keys.len()).filter(|&at| there[at].is_some()).collect();
        order.sort_unstable_by_key(|&at| (keys[at], at));
        let mut options = self.options();
        options.set_prefix_same_as_start(true);
        let mut rows = self.reader.0.db.raw_iterator_cf_opt(&family, options);
        let mut last: Option<(BandKey, u32)> = None;
        for at in order {
            let key = keys[at];
            let slot = match last {
                Some((same, slot)) if same == key => slot,
                _ => {
                    self.readable()?;
                    lists.add(self.reader.read_bucket(language, key, cap, &mut rows)?)
                }
            };
            last = Some((key, slot));
            lists.set(at, slot);
        }
        Ok(lists)
    }
}
