//! Reading from the RocksDB store: from the caches if they know the answer, otherwise from disk, many keys at
//! a time and in key order.
//!
//! This file implements `Rows` for [`RocksReader`]; [`super::snapshot`] reuses its scans. Caches and the
//! membership filter only save reads, so the answers are the same without them.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rocksdb::{BoundColumnFamily, DBRawIterator, ReadOptions};

use super::RocksReader;
use super::cache::documents::DOCUMENTS;
use super::cache::hot_buckets::HotBucketCache;
use crate::index::StoreError;
use crate::index::format::key;
use crate::index::format::key::{BUCKET, Family};
use crate::index::read::rows::{Order, PostingList, PostingLists, Rows, Span, Visit, canonical, decode_own};
use crate::index::record::Document;
use crate::index::scheme::IndexSchemes;
use crate::index::write_set::staged_postings::Spread;
use crate::lsh::BandKey;
use crate::model::{ArticleId, DocumentNumber, Lang};

/// One in this many of the single-document buckets is read first. A copy shares forty with its original.
const PROBED: usize = 12;

/// A bucket that may exist, according to the membership filter.
#[derive(Clone, Copy)]
struct PossibleBucket {
    /// The index of its key among the requested ones.
    at: usize,
    /// Whether it holds at most one document.
    single: bool,
}

/// Single-document buckets, each with its index. Never iterated without sorting.
type SingleBuckets = HashMap<BandKey, usize, BuildHasherDefault<Spread>>;

impl Rows for RocksReader {
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
        self.scan_by(ReadOptions::default(), family, span, order, visit)
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
        for (&at, document) in missing.iter().zip(self.read_documents(language, &absent)?) {
            found[at] = document;
        }
        let read = missing.iter().filter_map(|&at| found[at].clone());
        self.0.document_cache.keep(language, read.map(|document| (document.number, document)), version);
        Ok(found)
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
        let mut lists = PostingLists::empty(keys.len());
        if self.0.family(Family::Bands(language)).is_none() {
            return Ok(lists);
        }
        let singles = both_halves(keys, FILTERED, |keys| Ok(self.0.sieve.singles(language, keys)))?;
        let possible =
            |(at, single): (usize, Option<bool>)| single.map(|single| PossibleBucket { at, single });
        let mut order: Vec<PossibleBucket> = singles.into_iter().enumerate().filter_map(possible).collect();
        if order.is_empty() {
            return Ok(lists);
        }
        // In key order one iterator visits each block once, and each bucket is looked up once.
        order.sort_unstable_by_key(|possible| (keys[possible.at], possible.at));
        let mut first = order.clone();
        first.dedup_by_key(|possible| keys[possible.at]);
        let places: Vec<usize> = first.iter().map(|possible| possible.at).collect();
        let (known, version) = self.0.hot_bucket_cache.pages(language, keys, &places, cap);
        let unknown = first.iter().zip(&known).filter(|(_, known)| known.is_none());
        let unknown: Vec<PossibleBucket> = unknown.map(|(&possible, _)| possible).collect();
        let mut read = self.read_uncached(language, keys, &unknown, cap)?.into_iter();
        let mut hot = Vec::new();
        let mut order = order.into_iter().peekable();
        for (at, known) in places.into_iter().zip(known) {
            let list = known.unwrap_or_else(|| {
                let list = read.next().unwrap_or_default();
                if HotBucketCache::is_crowd(&list) {
                    hot.push((keys[at], list.clone()));
                }
                list
            });
            let slot = lists.add(list);
            while let Some(same) = order.next_if(|other| keys[other.at] == keys[at]) {
                lists.set(same.at, slot);
            }
        }
        self.0.hot_bucket_cache.keep(language, hot, cap, version);
        Ok(lists)
    }

    fn read_ahead(&self, language: Lang, mut numbers: Vec<DocumentNumber>) -> Result<(), StoreError> {
        numbers.sort_unstable();
        numbers.dedup();
        // More documents than the cache holds would evict each other.
        numbers.truncate(DOCUMENTS);
        let version = self.0.document_cache.missing(language, &mut numbers);
        let read = both_halves(&numbers, READ, |numbers| self.read_documents(language, numbers))?;
        let read = read.into_iter().flatten();
        self.0.document_cache.keep(language, read.map(|document| (document.number, document)), version);
        Ok(())
    }
}

/// From this many keys on, a second thread speeds up the filter lookups.
const FILTERED: usize = 2048;
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
    /// Reads buckets, which are in key order.
    fn read_buckets(
        &self,
        language: Lang,
        keys: &[BandKey],
        cap: usize,
    ) -> Result<Vec<PostingList>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let family = self.0.existing(Family::Bands(language))?;
        let mut options = ReadOptions::default();
        options.set_prefix_same_as_start(true);
        let mut rows = self.0.db.raw_iterator_cf_opt(&family, options);
        keys.iter().map(|&key| self.read_bucket(language, key, cap, &mut rows)).collect()
    }

    /// Reads buckets that are in key order and not cached.
    ///
    /// A copy shares dozens of buckets with its original, which is alone in most of them. So only some of the
    /// single-document buckets are read at first: if the document found there is also posted in another such
    /// bucket, that bucket holds nothing else and need not be read.
    fn read_uncached(
        &self,
        language: Lang,
        keys: &[BandKey],
        unknown: &[PossibleBucket],
        cap: usize,
    ) -> Result<Vec<PostingList>, StoreError> {
        let mut lists: Vec<Option<PostingList>> = vec![None; unknown.len()];
        let mut singles: Vec<usize> =
            (0..unknown.len()).filter(|&at| unknown[at].single && cap > 0).collect();
        // In request order, because the buckets of one article are adjacent.
        singles.sort_unstable_by_key(|&at| unknown[at].at);
        let left_out: Vec<usize> =
            singles.iter().copied().enumerate().filter(|(n, _)| n % PROBED != 0).map(|(_, at)| at).collect();
        let mut open: SingleBuckets = left_out.into_iter().map(|at| (keys[unknown[at].at], at)).collect();
        let read = |lists: &mut Vec<Option<PostingList>>, places: Vec<usize>| {
            let keys: Vec<BandKey> = places.iter().map(|&at| keys[unknown[at].at]).collect();
            let read = both_halves(&keys, READ, |keys| self.read_buckets(language, keys, cap))?;
            places.iter().zip(read).for_each(|(&at, list)| lists[at] = Some(list));
            Ok::<_, StoreError>(places)
        };
        let places = (0..unknown.len()).filter(|&at| !open.contains_key(&keys[unknown[at].at])).collect();
        let places = read(&mut lists, places)?;
        if !open.is_empty() {
            let probed = places.into_iter().filter(|&at| unknown[at].single);
            let probed = probed.filter_map(|at| lists[at].as_ref()?.numbers.first().copied());
            let mut found: Vec<DocumentNumber> = probed.collect();
            found.sort_unstable();
            found.dedup();
            let posting = self.0.postings.for_language(language);
            for document in self.shared_documents(language, &found)?.iter().flatten() {
                for key in posting.keys(&document.fingerprint) {
                    if let Some(at) = open.remove(&key) {
                        lists[at] = Some(PostingList { numbers: vec![document.number], more: false });
                    }
                }
            }
            let mut places: Vec<usize> = open.into_values().collect();
            places.sort_unstable();
            read(&mut lists, places)?;
        }
        Ok(lists.into_iter().map(Option::unwrap_or_default).collect())
    }

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

    /// Visits the rows of a range with these read options.
    pub(super) fn scan_by(
        &self,
        mut options: ReadOptions,
        family: Family,
        span: &Span,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let Some(handle) = self.0.family(family) else { return Ok(()) };
        // Within one bucket the prefix filters help; elsewhere they would hide rows.
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
        // An iterator may end because of an error; then the rows seen are incomplete.
        rows.status().map_err(|error| self.0.failure(&error))
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

    /// Reads one bucket.
    pub(super) fn read_bucket(
        &self,
        language: Lang,
        key: BandKey,
        cap: usize,
        rows: &mut DBRawIterator<'_>,
    ) -> Result<PostingList, StoreError> {
        let bucket = key::bucket(key);
        let mut list = PostingList::default();
        rows.seek(bucket);
        while let Some(key) = rows.key().filter(|key| key.starts_with(&bucket)) {
            if list.numbers.len() == cap {
                list.more = true;
                break;
            }
            let (_, number) = key::decode_posting(key).map_err(|error| {
                StoreError::damaged(&self.0.place, &Family::Bands(language).name(), &error)
            })?;
            list.numbers.push(number);
            rows.next();
        }
        rows.status().map_err(|error| self.0.failure(&error))?;
        Ok(list)
    }
}

fn in_one_bucket(family: Family, span: &Span) -> bool {
    let bucket = matches!(family, Family::Bands(_)).then(|| span.from.get(..BUCKET)).flatten();
    bucket.is_some_and(|bucket| Span::prefix(bucket).to == span.to)
}
