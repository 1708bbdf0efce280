//! Reading: from what is kept in memory where that knows, else from disk, many keys at a time and in their order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rocksdb::{DBRawIterator, ReadOptions};

use super::crowded::Crowded;
use super::{RocksReader, recent};
use crate::lsh::BandKey;
use crate::model::{ArticleId, DocumentNumber, Lang};
use crate::store::StoreError;
use crate::store::key::{self, BUCKET, Family};
use crate::store::postings::Postings;
use crate::store::record::Document;
use crate::store::rows::{Order, Page, Pages, Rows, Span, Visit, decode_own};

impl Rows for RocksReader {
    fn place(&self) -> &str {
        &self.0.place
    }

    fn version(&self) -> u64 {
        self.0.version.load(Ordering::Relaxed)
    }

    fn postings(&self) -> &Postings {
        &self.0.postings
    }

    fn languages(&self) -> Vec<Lang> {
        self.0.languages()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        // Most documents are alone, and a cluster of one has no row.
        if family == Family::Clusters && key::is_cluster(key) && !self.0.sieve.may_cluster(key) {
            return Ok(None);
        }
        let Some(family) = self.0.family(family) else { return Ok(None) };
        self.0.db.get_cf(&family, key).map_err(|error| self.0.failure(&error))
    }

    fn scan(
        &self,
        family: Family,
        span: &Span,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let Some(handle) = self.0.family(family) else { return Ok(()) };
        let mut options = ReadOptions::default();
        // Inside one bucket the filters help; anywhere else they would hide rows.
        if in_one_bucket(family, span) && order == Order::Ascending {
            options.set_prefix_same_as_start(true);
        } else {
            options.set_total_order_seek(true);
        }
        options.set_iterate_lower_bound(span.from.clone());
        if let Some(to) = &span.to {
            options.set_iterate_upper_bound(to.clone());
        }
        let mut rows = self.0.db.raw_iterator_cf_opt(&handle, options);
        match order {
            Order::Ascending => rows.seek(&span.from),
            Order::Descending => rows.seek_to_last(),
        }
        while let Some((key, value)) = rows.item() {
            if visit(key, value).is_break() {
                return Ok(());
            }
            match order {
                Order::Ascending => rows.next(),
                Order::Descending => rows.prev(),
            }
        }
        // An iterator that ends may have failed: then what was seen is not all.
        rows.status().map_err(|error| self.0.failure(&error))
    }

    fn get_many(&self, family: Family, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let (Some(handle), [_, _, ..]) = (self.0.family(family), keys) else {
            return keys.iter().map(|key| self.get(family, key)).collect();
        };
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by_key(|&at| &keys[at]);
        let sorted = order.iter().map(|&at| &keys[at]);
        let found = self.0.db.batched_multi_get_cf(&handle, sorted, true);
        let mut values = vec![None; keys.len()];
        for (at, value) in order.into_iter().zip(found) {
            values[at] = value.map_err(|error| self.0.failure(&error))?.map(|value| value.to_vec());
        }
        Ok(values)
    }

    fn may_know(&self, id: &ArticleId) -> bool {
        self.0.sieve.may_know(id)
    }

    fn shared_documents(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<Arc<Document>>>, StoreError> {
        let (mut found, version) = self.0.recent.get(language, numbers);
        let missing: Vec<usize> = (0..numbers.len()).filter(|&at| found[at].is_none()).collect();
        if missing.is_empty() {
            return Ok(found);
        }
        let absent: Vec<DocumentNumber> = missing.iter().map(|&at| numbers[at]).collect();
        for (&at, document) in missing.iter().zip(self.read_documents(language, &absent)?) {
            found[at] = document;
        }
        let read = missing.iter().filter_map(|&at| found[at].as_ref());
        self.0.recent.keep(language, read, version);
        Ok(found)
    }

    fn pages(&self, language: Lang, keys: &[BandKey], cap: usize) -> Result<Pages, StoreError> {
        let mut pages = Pages::empty(keys.len());
        if self.0.family(Family::Bands(language)).is_none() {
            return Ok(pages);
        }
        let mut order = self.0.sieve.perhaps(language, keys);
        if order.is_empty() {
            return Ok(pages);
        }
        // In key order one iterator meets each block once, and each bucket is asked for once.
        order.sort_unstable_by_key(|&at| keys[at]);
        let mut first = order.clone();
        first.dedup_by_key(|at| keys[*at]);
        let (known, version) = self.0.crowded.pages(language, keys, &first, cap);
        let unknown = first.iter().zip(&known).filter(|(_, known)| known.is_none());
        let unknown: Vec<BandKey> = unknown.map(|(&at, _)| keys[at]).collect();
        let mut read = both_halves(&unknown, |keys| self.read_pages(language, keys, cap))?.into_iter();
        let mut crowds = Vec::new();
        let mut order = order.into_iter().peekable();
        for (at, known) in first.into_iter().zip(known) {
            let page = known.unwrap_or_else(|| {
                let page = read.next().unwrap_or_default();
                if Crowded::is_crowd(&page) {
                    crowds.push((keys[at], page.clone()));
                }
                page
            });
            let place = pages.add(page);
            while let Some(same) = order.next_if(|&other| keys[other] == keys[at]) {
                pages.set(same, place);
            }
        }
        self.0.crowded.keep(language, crowds, version);
        Ok(pages)
    }

    fn read_ahead(&self, language: Lang, mut numbers: Vec<DocumentNumber>) -> Result<(), StoreError> {
        numbers.sort_unstable();
        numbers.dedup();
        // More than are kept would drive each other out.
        numbers.truncate(recent::GENERATION);
        let version = self.0.recent.missing(language, &mut numbers);
        let read = both_halves(&numbers, |numbers| self.read_documents(language, numbers))?;
        self.0.recent.keep(language, read.iter().flatten(), version);
        Ok(())
    }
}

/// Work on ordered keys, the halves at the same time where there are many: reading is mostly unpacking.
fn both_halves<K: Sync, R: Send>(
    keys: &[K],
    work: impl Fn(&[K]) -> Result<Vec<R>, StoreError> + Sync,
) -> Result<Vec<R>, StoreError> {
    /// Fewer are read before a thread has begun.
    const MANY: usize = 64;
    if keys.len() < MANY {
        return work(keys);
    }
    let (left, right) = keys.split_at(keys.len() / 2);
    std::thread::scope(|scope| {
        let work = &work;
        let started = std::thread::Builder::new().spawn_scoped(scope, move || work(right));
        let mut all = work(left)?;
        let more = match started.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(more)) => more?,
            // Without a thread, or with one that panicked, there is still this one.
            _ => work(right)?,
        };
        all.extend(more);
        Ok(all)
    })
}

impl RocksReader {
    /// Reads buckets that are in order.
    fn read_pages(&self, language: Lang, keys: &[BandKey], cap: usize) -> Result<Vec<Page>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let family = self.0.existing(Family::Bands(language))?;
        let mut options = ReadOptions::default();
        options.set_prefix_same_as_start(true);
        let mut rows = self.0.db.raw_iterator_cf_opt(&family, options);
        keys.iter().map(|&key| self.page(language, key, cap, &mut rows)).collect()
    }

    fn read_documents(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<Arc<Document>>>, StoreError> {
        let keys: Vec<Vec<u8>> = numbers.iter().map(|&number| key::number(number).to_vec()).collect();
        let values = self.get_many(Family::Documents(language), &keys)?;
        let own = |(value, &number): (Option<Vec<u8>>, &DocumentNumber)| {
            value.map(|value| decode_own(&self.0.place, language, number, &value)).transpose()
        };
        values.into_iter().zip(numbers).map(own).collect()
    }

    /// Reads one bucket.
    fn page(
        &self,
        language: Lang,
        key: BandKey,
        cap: usize,
        rows: &mut DBRawIterator<'_>,
    ) -> Result<Page, StoreError> {
        let bucket = key::bucket(key);
        let mut page = Page::default();
        rows.seek(bucket);
        while let Some(key) = rows.key().filter(|key| key.starts_with(&bucket)) {
            if page.numbers.len() == cap {
                page.more = true;
                break;
            }
            let (_, number) = key::decode_posting(key).map_err(|error| {
                StoreError::damaged(&self.0.place, &Family::Bands(language).name(), &error)
            })?;
            page.numbers.push(number);
            rows.next();
        }
        rows.status().map_err(|error| self.0.failure(&error))?;
        Ok(page)
    }
}

fn in_one_bucket(family: Family, span: &Span) -> bool {
    let bucket = matches!(family, Family::Bands(_)).then(|| span.from.get(..BUCKET)).flatten();
    bucket.is_some_and(|bucket| Span::prefix(bucket).to == span.to)
}
