//! Cache of hot buckets: the newest documents of buckets that hold several, such as common phrases and
//! boilerplate, which article after article looks up. On disk they are spread over all levels, and reading
//! one takes as long as judging an article.
//!
//! An entry equals the newest documents of its bucket in the store. A write adds a document to its bucket
//! here too; a bucket that loses a document is dropped, and posting lists that were read before a write are
//! not cached after it. An entry never holds more documents than were once requested, and all entries
//! together stay within [`BUDGET`], so the cost of an article does not depend on how many copies of it there
//! are.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::index::read::rows::PostingList;
use crate::index::write_set::pending::Pending;
use crate::index::write_set::staged_postings::Spread;
use crate::lsh::BandKey;
use crate::model::{DocumentNumber, Lang};

/// Bytes for the hot buckets of one store, of all its languages. A bucket takes half a kilobyte by default.
const BUDGET: usize = 16 << 20;
/// Bytes of an entry without its numbers.
const ENTRY: usize = mem::size_of::<(Lang, BandKey, Hot)>() + 16;
/// Buckets with fewer documents are read quickly, and seldom twice.
const SEVERAL: usize = 4;

/// The size of the cache of hot buckets, and the work done on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HotBuckets {
    /// Bytes held.
    pub bytes: usize,
    /// Document numbers copied or shifted since the store was opened.
    pub moved: u64,
}

/// The newest documents of a bucket, at most `cap` of them.
struct Hot {
    page: PostingList,
    cap: usize,
}

impl Hot {
    fn bytes(&self) -> usize {
        ENTRY + self.page.numbers.capacity() * mem::size_of::<DocumentNumber>()
    }

    /// Adds a document. Returns how many numbers that moved.
    fn add(&mut self, number: DocumentNumber) -> usize {
        let PostingList { numbers, more } = &mut self.page;
        let known = numbers.len();
        match numbers.binary_search_by(|other| number.cmp(other)) {
            Ok(_) => 0,
            // Older than all that are known: whether it is the next of them is not known.
            Err(at) if at == known && *more => 0,
            Err(at) => {
                numbers.insert(at, number);
                if numbers.len() > self.cap {
                    numbers.truncate(self.cap);
                    *more = true;
                }
                1 + known - at
            }
        }
    }
}

#[derive(Default)]
struct Generation {
    buckets: HashMap<(Lang, BandKey), Hot, BuildHasherDefault<Spread>>,
    bytes: usize,
}

impl Generation {
    fn insert(&mut self, key: (Lang, BandKey), hot: Hot) {
        self.remove(key);
        self.bytes += hot.bytes();
        self.buckets.insert(key, hot);
    }

    fn remove(&mut self, key: (Lang, BandKey)) -> Option<Hot> {
        let hot = self.buckets.remove(&key)?;
        self.bytes -= hot.bytes();
        Some(hot)
    }

    /// Adds a document to a bucket, if that is known. Returns how many numbers that moved.
    fn add(&mut self, key: (Lang, BandKey), number: DocumentNumber) -> usize {
        let Some(hot) = self.buckets.get_mut(&key) else { return 0 };
        let before = hot.bytes();
        let moved = hot.add(number);
        self.bytes = self.bytes - before + hot.bytes();
        moved
    }
}

#[derive(Default)]
pub(crate) struct HotBucketCache(Mutex<State>);

#[derive(Default)]
struct State {
    /// Asked for since the generations changed last.
    young: Generation,
    /// Asked for before that; dropped at the next change.
    old: Generation,
    /// How often the store was written to.
    version: u64,
    moved: u64,
}

impl State {
    fn insert(&mut self, key: (Lang, BandKey), hot: Hot) {
        self.old.remove(key);
        self.young.insert(key, hot);
        self.trim();
    }

    /// Keeps the budget.
    fn trim(&mut self) {
        if self.young.bytes > BUDGET / 2 {
            self.old = mem::take(&mut self.young);
        }
        if self.young.bytes + self.old.bytes > BUDGET {
            self.old = Generation::default();
        }
    }

    /// The newest `cap` documents of a bucket, if they are known.
    fn page(&mut self, key: (Lang, BandKey), cap: usize) -> Option<PostingList> {
        if !self.young.buckets.contains_key(&key) {
            let hot = self.old.remove(key)?;
            self.insert(key, hot);
        }
        let hot = self.young.buckets.get(&key).or_else(|| self.old.buckets.get(&key))?;
        let (numbers, more) = (&hot.page.numbers, hot.page.more);
        let all = numbers.len();
        if all < cap && more {
            return None;
        }
        let page = PostingList { numbers: numbers[..all.min(cap)].to_vec(), more: more || all > cap };
        self.moved += page.numbers.len() as u64;
        Some(page)
    }

    /// Takes note of a posting that was added or removed.
    fn note(&mut self, key: (Lang, BandKey), number: DocumentNumber, there: bool) {
        for generation in [&mut self.young, &mut self.old] {
            if there {
                self.moved += generation.add(key, number) as u64;
            } else {
                generation.remove(key);
            }
        }
        self.trim();
    }
}

impl HotBucketCache {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pages that are known of these keys, by their place; and the version to give back with the others.
    pub(crate) fn pages(
        &self,
        language: Lang,
        keys: &[BandKey],
        places: &[usize],
        cap: usize,
    ) -> (Vec<Option<PostingList>>, u64) {
        let mut state = self.state();
        let version = state.version;
        (places.iter().map(|&at| state.page((language, keys[at]), cap)).collect(), version)
    }

    /// Keeps pages of at most `cap` documents that were read from the store, unless it has been written to since.
    pub(crate) fn keep(&self, language: Lang, pages: Vec<(BandKey, PostingList)>, cap: usize, version: u64) {
        let mut state = self.state();
        if state.version == version {
            pages.into_iter().for_each(|(key, page)| state.insert((language, key), Hot { page, cap }));
        }
    }

    /// Whether a page is worth keeping.
    pub(crate) fn is_crowd(page: &PostingList) -> bool {
        page.numbers.len() >= SEVERAL
    }

    /// Takes note of a write.
    pub(crate) fn written(&self, pending: &Pending) {
        let mut state = self.state();
        state.version += 1;
        for (&language, bands) in &pending.bands {
            let entries = bands.entries_in_order();
            entries.for_each(|(key, number, present)| state.note((language, key), number, present));
        }
    }

    /// Its size, and the work done on it.
    pub(crate) fn load(&self) -> HotBuckets {
        let state = self.state();
        HotBuckets { bytes: state.young.bytes + state.old.bytes, moved: state.moved }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAP: usize = 65;

    fn keys(article: u64, buckets: u64) -> Vec<BandKey> {
        (0..buckets).map(|band| BandKey { band: band as u16, hash: article }).collect()
    }

    /// Postings of documents in these buckets.
    fn posted(keys: &[BandKey], numbers: std::ops::Range<u64>) -> Pending {
        let mut pending = Pending::default();
        let bands = pending.bands.entry(Lang::UND).or_default();
        for number in numbers {
            keys.iter().for_each(|&key| bands.note(key, DocumentNumber(number), true));
        }
        pending
    }

    /// Looks buckets up as a store does: those that are not known are read, here from a list of all documents.
    fn look_up(
        crowded: &HotBucketCache,
        keys: &[BandKey],
        documents: u64,
        cap: usize,
    ) -> (Vec<PostingList>, usize) {
        let places: Vec<usize> = (0..keys.len()).collect();
        let (known, version) = crowded.pages(Lang::UND, keys, &places, cap);
        let read = PostingList {
            numbers: (0..documents).rev().take(cap).map(DocumentNumber).collect(),
            more: documents > cap as u64,
        };
        let missing: Vec<usize> = places.into_iter().filter(|&at| known[at].is_none()).collect();
        let kept =
            missing.iter().filter(|_| HotBucketCache::is_crowd(&read)).map(|&at| (keys[at], read.clone()));
        crowded.keep(Lang::UND, kept.collect(), cap, version);
        (known.into_iter().map(|page| page.unwrap_or_else(|| read.clone())).collect(), missing.len())
    }

    // A boilerplate of which all copies were known when its buckets were first read was kept whole and grew with every copy:
    // 0.76 ms an article and 80 MB at 100,000 copies.
    #[test]
    fn a_copy_of_a_boilerplate_costs_the_same_however_many_there_are() {
        const BATCH: u64 = 50;
        let per_copy = |copies: u64| {
            let crowded = HotBucketCache::default();
            let keys = keys(7, 8);
            let mut read = 0;
            for from in (0..copies).step_by(BATCH as usize) {
                let (pages, missing) = look_up(&crowded, &keys, from, CAP);
                read += missing;
                let expected: Vec<u64> = (0..from).rev().take(CAP).collect();
                for page in pages {
                    assert_eq!(page.numbers.iter().map(|number| number.0).collect::<Vec<_>>(), expected);
                    assert_eq!(page.more, from > CAP as u64);
                }
                crowded.written(&posted(&keys, from..from + BATCH));
            }
            let HotBuckets { bytes, moved } = crowded.load();
            assert!(read <= 2 * keys.len(), "{read} buckets were read again");
            assert!(bytes <= keys.len() * (ENTRY + 2 * CAP * 8), "{bytes} bytes at {copies} copies");
            moved / copies
        };
        let costs = [2_000, 10_000, 50_000].map(per_copy);
        let most = (keys(7, 8).len() * (CAP + 2)) as u64 * 3 / 2;
        assert!(costs.iter().all(|&cost| cost <= most), "{costs:?} numbers moved per copy; at most {most}");
        assert!(costs[2] <= costs[0] + costs[0] / 10, "{costs:?} numbers moved per copy");
    }

    // The cache was bounded in buckets per language; a wide `lsh.max_bucket` or many languages made it any size.
    #[test]
    fn all_hot_buckets_together_keep_the_budget() {
        let crowded = HotBucketCache::default();
        let mut most = 0;
        for article in 0..400 {
            let keys = keys(article, 40);
            look_up(&crowded, &keys, 300, 300);
            crowded.written(&posted(&keys, 300..310));
            most = most.max(crowded.load().bytes);
        }
        assert!(most > BUDGET / 2 && most <= BUDGET, "{most} bytes");
        // The latest are still known, with their newest documents.
        let (pages, missing) = look_up(&crowded, &keys(399, 40), 310, 300);
        assert_eq!((missing, pages[0].numbers.len(), pages[0].more), (0, 300, true));
        assert_eq!(pages[0].numbers[0], DocumentNumber(309));
    }

    #[test]
    fn a_wider_page_than_is_known_is_read() {
        let crowded = HotBucketCache::default();
        let keys = keys(1, 1);
        look_up(&crowded, &keys, 10, 5);
        let (pages, missing) = look_up(&crowded, &keys, 10, 8);
        assert_eq!((missing, pages[0].numbers.len(), pages[0].more), (1, 8, true));
        let (pages, missing) = look_up(&crowded, &keys, 10, 5);
        assert_eq!((missing, pages[0].numbers.len(), pages[0].more), (0, 5, true));
    }
}
