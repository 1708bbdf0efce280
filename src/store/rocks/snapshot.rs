//! A store at one moment. Whatever is asked of it sees the same whole number of batches, whatever is written meanwhile:
//! a bucket never names a document that is not there. Nothing it reads takes the place of what the worker keeps ready.

use std::sync::atomic::{AtomicBool, Ordering};

use rocksdb::{DB, ReadOptions, SnapshotWithThreadMode};

use super::RocksReader;
use super::read::in_one_bucket;
use crate::lsh::BandKey;
use crate::model::{ArticleId, Lang};
use crate::store::StoreError;
use crate::store::key::{self, Family};
use crate::store::postings::Postings;
use crate::store::rows::{Order, Page, Pages, Rows, Span, Visit};

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

    fn damaged(&self, language: Lang, error: &crate::store::DecodeError) -> StoreError {
        StoreError::damaged(self.place(), &Family::Bands(language).name(), error)
    }
}

impl Rows for Snapshot<'_> {
    fn place(&self) -> &str {
        self.reader.place()
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn postings(&self) -> &Postings {
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
        self.readable()?;
        let Some(handle) = self.reader.0.family(family) else { return Ok(()) };
        let mut options = self.options();
        if in_one_bucket(family, span) && order == Order::Ascending {
            options.set_prefix_same_as_start(true);
        } else {
            options.set_total_order_seek(true);
        }
        options.set_iterate_lower_bound(span.from.clone());
        if let Some(to) = &span.to {
            options.set_iterate_upper_bound(to.clone());
        }
        let mut rows = self.reader.0.db.raw_iterator_cf_opt(&handle, options);
        match order {
            Order::Ascending => rows.seek(&span.from),
            Order::Descending => rows.seek_to_last(),
        }
        while let Some((key, value)) = rows.item() {
            if visit(key, value).is_break() {
                return Ok(());
            }
            self.readable()?;
            match order {
                Order::Ascending => rows.next(),
                Order::Descending => rows.prev(),
            }
        }
        rows.status().map_err(|error| self.reader.0.failure(&error))
    }

    fn get_many(&self, family: Family, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.readable()?;
        let Some(handle) = self.reader.0.family(family) else { return Ok(vec![None; keys.len()]) };
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by_key(|&at| &keys[at]);
        let mut options = self.options();
        // Who asks now and then must not drive out what the worker reads all the time.
        options.fill_cache(false);
        let sorted = order.iter().map(|&at| &keys[at]);
        let found = self.reader.0.db.batched_multi_get_cf_opt(&handle, sorted, true, &options);
        let mut values = vec![None; keys.len()];
        for (at, value) in order.into_iter().zip(found) {
            let value = value.map_err(|error| self.reader.0.failure(&error))?;
            values[at] = value.map(|value| value.to_vec());
        }
        Ok(values)
    }

    // The filters hold what there is now, which is all that is still there of this moment.
    fn may_know(&self, id: &ArticleId) -> bool {
        self.reader.may_know(id)
    }

    fn pages(&self, language: Lang, keys: &[BandKey], cap: usize) -> Result<Pages, StoreError> {
        self.readable()?;
        let mut pages = Pages::empty(keys.len());
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
                    let bucket = key::bucket(key);
                    let mut page = Page::default();
                    rows.seek(bucket);
                    while let Some(found) = rows.key().filter(|found| found.starts_with(&bucket)) {
                        if page.numbers.len() == cap {
                            page.more = true;
                            break;
                        }
                        let (_, number) =
                            key::decode_posting(found).map_err(|error| self.damaged(language, &error))?;
                        page.numbers.push(number);
                        rows.next();
                    }
                    rows.status().map_err(|error| self.reader.0.failure(&error))?;
                    pages.add(page)
                }
            };
            last = Some((key, place));
            pages.set(at, place);
        }
        Ok(pages)
    }
}
