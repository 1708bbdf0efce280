//! Reading from the RocksDB store: from the caches if they know the answer, otherwise from disk, many keys at
//! a time and in key order.
//!
//! This file implements [`View`] for [`RocksReader`]; [`super::snapshot`] reuses its scans. Caches and the
//! membership filter only save reads, so the answers are the same without them.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rocksdb::{BoundColumnFamily, ReadOptions};

use super::{Opened, RocksReader, StoreOperation};
use crate::index::StoreError;
use crate::index::format::key;
use crate::index::format::key::Family;
use crate::index::read::rows::{Order, PostingLists, Span, Visit, canonical, decode_own};
use crate::index::read::view::View;
use crate::index::record::{Document, DocumentSummary};
use crate::index::scheme::IndexSchemes;
use crate::lsh::BandKey;
use crate::model::{ArticleId, DocumentNumber, Lang};

impl View for RocksReader {
    fn place(&self) -> &str {
        &self.0.place
    }

    fn version(&self) -> u64 {
        self.0.version.load(Ordering::Relaxed)
    }

    fn postings(&self) -> &IndexSchemes {
        &self.0.postings
    }

    fn languages(&self) -> Vec<Lang> {
        self.0.languages()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        if let Family::Bands(language) = family {
            return Ok(self.0.is_posted(language, key)?.then(Vec::new));
        }
        // Most documents are alone in their cluster, and such a cluster has no row.
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
        match family {
            Family::Bands(language) => {
                let table = self.0.posting_tables.of(language);
                self.0.scan_postings(table.as_deref(), language, span, order, visit)
            }
            _ => self.0.scan_rows(ReadOptions::default(), family, span, order, visit),
        }
    }

    fn get_many(&self, family: Family, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let (Some(handle), [_, _, ..]) = (self.0.family(family), keys) else {
            return keys.iter().map(|key| self.get(family, key)).collect();
        };
        self.get_many_by(&ReadOptions::default(), &handle, keys)
    }

    fn may_know(&self, id: &ArticleId) -> bool {
        self.0.sieve.may_know(id)
    }

    fn shared_documents(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<Arc<Document>>>, StoreError> {
        let (mut found, version) = self.0.document_cache.get(language, numbers);
        let missing: Vec<usize> = (0..numbers.len()).filter(|&at| found[at].is_none()).collect();
        if missing.is_empty() {
            return Ok(found);
        }
        let absent: Vec<DocumentNumber> = missing.iter().map(|&at| numbers[at]).collect();
        let read = self.0.timed(StoreOperation::Read, || self.read_documents(language, &absent))?;
        for (&at, document) in missing.iter().zip(read) {
            found[at] = document;
        }
        let read = missing.iter().filter_map(|&at| found[at].clone());
        self.0.document_cache.keep(language, read.map(|document| (document.number, document)), version);
        Ok(found)
    }

    fn summaries(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<DocumentSummary>>, StoreError> {
        let (mut summaries, version) = self.0.summary_cache.get(language, numbers);
        let unknown: Vec<usize> = (0..numbers.len()).filter(|&at| summaries[at].is_none()).collect();
        if unknown.is_empty() {
            return Ok(summaries);
        }
        let absent: Vec<DocumentNumber> = unknown.iter().map(|&at| numbers[at]).collect();
        let mut read = Vec::with_capacity(unknown.len());
        for (&at, document) in unknown.iter().zip(self.shared_documents(language, &absent)?) {
            summaries[at] = document.map(|document| document.summary());
            read.extend(summaries[at].map(|summary| (numbers[at], summary)));
        }
        self.0.summary_cache.keep(language, read.into_iter(), version);
        Ok(summaries)
    }

    fn canonicals(
        &self,
        language: Lang,
        founders: &[DocumentNumber],
    ) -> Result<Vec<Option<DocumentNumber>>, StoreError> {
        let (known, version) = self.0.canonical_cache.get(language, founders);
        let mut read = Vec::new();
        let canonical = |(known, &founder): (Option<Option<DocumentNumber>>, &DocumentNumber)| match known {
            Some(known) => Ok(known),
            None => canonical(self, language, founder).inspect(|&canonical| read.push((founder, canonical))),
        };
        let canonicals: Result<Vec<_>, _> = known.into_iter().zip(founders).map(canonical).collect();
        self.0.canonical_cache.keep(language, read.into_iter(), version);
        canonicals
    }

    fn posting_lists(
        &self,
        language: Lang,
        keys: &[BandKey],
        cap: usize,
    ) -> Result<PostingLists, StoreError> {
        match self.0.posting_tables.of(language) {
            Some(table) => {
                let lists = || table.posting_lists(&self.0, language, keys, cap);
                self.0.timed(StoreOperation::Read, lists)
            }
            None => Ok(PostingLists::empty(keys.len())),
        }
    }

    fn read_ahead(&self, language: Lang, mut numbers: Vec<DocumentNumber>) -> Result<(), StoreError> {
        numbers.sort_unstable();
        numbers.dedup();
        // More documents than the cache holds would evict each other.
        numbers.truncate(self.0.document_cache.room());
        let version = self.0.document_cache.missing(language, &mut numbers);
        if numbers.is_empty() {
            return Ok(());
        }
        let read = || both_halves(&numbers, READ, |numbers| self.read_documents(language, numbers));
        let read = self.0.timed(StoreOperation::Read, read)?;
        let read = read.into_iter().flatten();
        self.0.document_cache.keep(language, read.map(|document| (document.number, document)), version);
        Ok(())
    }
}

/// From this many keys on, a second thread speeds up the reads, which mostly decompress.
const READ: usize = 64;

/// Processes keys in order, both halves in parallel if there are many.
fn both_halves<K: Sync, R: Send>(
    keys: &[K],
    many: usize,
    work: impl Fn(&[K]) -> Result<Vec<R>, StoreError> + Sync,
) -> Result<Vec<R>, StoreError> {
    if keys.len() < many {
        return work(keys);
    }
    let (left, right) = keys.split_at(keys.len() / 2);
    std::thread::scope(|scope| {
        let work = &work;
        let started = std::thread::Builder::new().spawn_scoped(scope, move || work(right));
        let mut all = work(left)?;
        let more = match started.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(more)) => more?,
            // If there is no thread, or it panicked, do the work on this one.
            _ => work(right)?,
        };
        all.extend(more);
        Ok(all)
    })
}

impl RocksReader {
    fn read_documents(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<Arc<Document>>>, StoreError> {
        let Some(family) = self.0.family(Family::Documents(language)) else {
            return Ok(vec![None; numbers.len()]);
        };
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        order.sort_unstable_by_key(|&at| numbers[at]);
        let keys: Vec<[u8; 8]> = order.iter().map(|&at| key::number(numbers[at])).collect();
        let mut options = ReadOptions::default();
        // Documents are cached decoded; their blocks would evict those of the buckets.
        options.fill_cache(false);
        let values = self.0.db.batched_multi_get_cf_opt(&family, &keys, true, &options);
        let mut documents = vec![None; numbers.len()];
        for (at, value) in order.into_iter().zip(values) {
            if let Some(value) = value.map_err(|error| self.0.failure(&error))? {
                documents[at] = Some(decode_own(&self.0.place, language, numbers[at], &value)?);
            }
        }
        Ok(documents)
    }

    /// The values of several keys with these read options.
    pub(super) fn get_many_by(
        &self,
        options: &ReadOptions,
        family: &Arc<BoundColumnFamily<'_>>,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by_key(|&at| &keys[at]);
        let sorted = order.iter().map(|&at| &keys[at]);
        let found = self.0.db.batched_multi_get_cf_opt(family, sorted, true, options);
        let mut values = vec![None; keys.len()];
        for (at, value) in order.into_iter().zip(found) {
            values[at] = value.map_err(|error| self.0.failure(&error))?.map(|value| value.to_vec());
        }
        Ok(values)
    }
}

impl Opened {
    /// Visits the rows of a range with these read options.
    pub(crate) fn scan_rows(
        &self,
        mut options: ReadOptions,
        family: Family,
        span: &Span,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let Some(handle) = self.family(family) else { return Ok(()) };
        options.set_iterate_lower_bound(span.from.clone());
        if let Some(to) = &span.to {
            options.set_iterate_upper_bound(to.clone());
        }
        let mut rows = self.db.raw_iterator_cf_opt(&handle, options);
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
        // An iterator may end because of an error; then the rows seen are incomplete.
        rows.status().map_err(|error| self.failure(&error))
    }

    /// Visits postings as rows.
    pub(super) fn scan_postings(
        &self,
        table: Option<&super::postings::Table>,
        language: Lang,
        span: &Span,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let Some(table) = table else { return Ok(()) };
        if order == Order::Ascending {
            return table.scan(self, language, span, visit);
        }
        let mut keys = Vec::new();
        table.scan(self, language, span, &mut |key, _| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        })?;
        // The visitor may stop; nothing follows in either case.
        let _stopped = keys.iter().rev().try_for_each(|key| visit(key, &[]));
        Ok(())
    }
}
