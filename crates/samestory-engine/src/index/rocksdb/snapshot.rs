//! A consistent snapshot of a store for query threads.
//!
//! [`super::registry`] hands out snapshots; they read through [`RocksReader`]. All reads of a snapshot see
//! the same whole number of batches, so a bucket never names a document that does not exist, and no read
//! evicts what the worker has cached.

use std::ops::ControlFlow;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use rocksdb::{DB, ReadOptions, SnapshotWithThreadMode};

use super::RocksReader;
use super::postings::Tables;
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
    tables: Tables,
    version: u64,
    /// Set when the owner wants to close the store.
    withdrawn: &'r AtomicBool,
}

impl RocksReader {
    /// A snapshot of the store as it is now. Every read fails once `withdrawn` is set, so that closing the
    /// store need not wait long.
    pub(super) fn snapshot<'r>(&'r self, withdrawn: &'r AtomicBool) -> Snapshot<'r> {
        let applying = self.0.applying.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, tables) = (self.0.db.snapshot(), self.0.posting_tables.all());
        drop(applying);
        Snapshot { reader: self, rows, tables, version: self.version(), withdrawn }
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
            let mut visit = |key: &[u8], value: &[u8]| {
                visit(key, value)?;
                readable = self.readable();
                if readable.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            let opened = &self.reader.0;
            match family {
                Family::Bands(language) => {
                    let table = self.tables.get(&language).map(|table| &**table);
                    opened.scan_postings(table, language, span, order, &mut visit)?;
                }
                _ => opened.scan_rows(self.options(), family, span, order, &mut visit)?,
            }
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

    fn may_reside(&self, id: &ArticleId) -> bool {
        self.reader.may_reside(id)
    }

    fn posting_lists(
        &self,
        language: Lang,
        keys: &[BandKey],
        cap: usize,
    ) -> Result<PostingLists, StoreError> {
        self.readable()?;
        match self.tables.get(&language) {
            Some(table) => table.posting_lists(&self.reader.0, language, keys, cap),
            None => Ok(PostingLists::empty(keys.len())),
        }
    }
}
