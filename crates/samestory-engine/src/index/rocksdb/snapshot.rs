//! A store at one moment. Whatever is asked of it sees the same whole number of batches, whatever is written meanwhile:
//! a bucket never names a document that is not there. Nothing it reads takes the place of what the worker keeps ready.

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

/// A store at one moment, read from another thread than that which works on it.
pub struct Snapshot<'r> {
    reader: &'r RocksReader,
    rows: SnapshotWithThreadMode<'r, DB>,
    version: u64,
    /// Its owner wants to close the store.
    withdrawn: &'r AtomicBool,
}

impl RocksReader {
    /// The store as it is now. Every read fails from the moment on that `withdrawn` is set, so that who closes the
    /// store need not wait for long.
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
        // Who asks now and then must not drive out what the worker reads all the time.
        options.fill_cache(false);
        self.reader.get_many_by(&options, &handle, keys)
    }

    // The filters hold what there is now, which is all that is still there of this moment.
    fn may_know(&self, id: &ArticleId) -> bool {
        self.reader.may_know(id)
    }

    fn pages(&self, language: Lang, keys: &[BandKey], cap: usize) -> Result<PostingLists, StoreError> {
        self.readable()?;
        let mut pages = PostingLists::empty(keys.len());
        let Some(family) = self.reader.0.family(Family::Bands(language)) else { return Ok(pages) };
        let there = self.reader.0.sieve.singles(language, keys);
        let mut order: Vec<usize> = (0..keys.len()).filter(|&at| there[at].is_some()).collect();
        order.sort_unstable_by_key(|&at| (keys[at], at));
        let mut options = self.options();
        options.set_prefix_same_as_start(true);
        let mut rows = self.reader.0.db.raw_iterator_cf_opt(&family, options);
        let mut last: Option<(BandKey, u32)> = None;
        for at in order {
            let key = keys[at];
            let place = match last {
                Some((same, place)) if same == key => place,
                _ => {
                    self.readable()?;
                    pages.add(self.reader.page(language, key, cap, &mut rows)?)
                }
            };
            last = Some((key, place));
            pages.set(at, place);
        }
        Ok(pages)
    }
}
