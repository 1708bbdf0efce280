//! The postings of a store: which documents are in a bucket.
//!
//! The postings of a document follow from its fingerprint. Those of the newest documents are in memory, in sorted runs
//! ([`run`]); the others lie in segments on disk ([`segment`]), each of which covers a range of document numbers and never
//! changes. A removed document is skipped ([`removed`]). [`upkeep`] freezes memory into segments and merges them, and fills
//! the memory again when the store is opened.
//!
//! A [`Table`] never changes either: every write makes a new one. The list of segments is written in the batch that
//! follows their ingestion, so after a crash the segments and the documents are those of one point in time. No answer
//! depends on which postings are in memory and which are frozen.

pub(crate) mod removed;
pub(crate) mod run;
pub(crate) mod segment;
pub(crate) mod upkeep;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::index::StoreError;
use crate::index::format::key;
use crate::index::format::key::POSTING;
use crate::index::format::segment::{Posting, coverage_key, encode_coverage, removed_key};
use crate::index::read::rows::{PostingList, PostingLists, Span, Visit};
use crate::index::scheme::{IndexSchemes, pack, unpack};
use crate::index::write_set::pending::Pending;
use crate::lsh::BandKey;
use crate::model::{DocumentNumber, Lang};

use super::Opened;
use super::budget::Budget;
use super::cache::bloom::of_bucket;
use removed::Removed;
use run::Run;
use segment::Segment;

/// The postings of each language.
pub(crate) type Tables = BTreeMap<Lang, Arc<Table>>;

/// Represents, among a language's damaged segments, documents that could not be read.
const DOCUMENTS: u32 = u32::MAX;

/// The postings of an open store.
pub(crate) struct PostingTables {
    tables: RwLock<Tables>,
    /// Postings in memory.
    in_memory: AtomicUsize,
    budget: Budget,
    /// Bytes of the filters of its segments.
    filters: AtomicUsize,
    next_segment: AtomicU32,
    /// Segments that turned out to be damaged.
    damaged: Mutex<BTreeMap<(Lang, u32), String>>,
}

impl Drop for PostingTables {
    fn drop(&mut self) {
        self.budget.postings.fetch_sub(self.in_memory.load(Ordering::Relaxed), Ordering::Relaxed);
        self.budget.filters_changed(self.filters.load(Ordering::Relaxed), 0);
        self.budget.close_store();
    }
}

impl PostingTables {
    /// The tables of a store that is being opened.
    pub(crate) fn new(budget: Budget) -> PostingTables {
        budget.open_store();
        let (tables, in_memory, filters, next_segment, damaged) = Default::default();
        PostingTables { tables, in_memory, budget, filters, next_segment, damaged }
    }

    pub(crate) fn all(&self) -> Tables {
        self.tables.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn of(&self, language: Lang) -> Option<Arc<Table>> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner).get(&language).cloned()
    }

    pub(crate) fn replace(&self, tables: Tables) {
        let mut all = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        all.extend(tables);
        let now = all.values().map(|table| table.in_memory()).sum();
        let before = self.in_memory.swap(now, Ordering::Relaxed);
        self.budget.postings.fetch_add(now, Ordering::Relaxed);
        self.budget.postings.fetch_sub(before, Ordering::Relaxed);
        let now = all.values().map(|table| table.filter_bytes()).sum();
        self.budget.filters_changed(self.filters.swap(now, Ordering::Relaxed), now);
    }

    fn next_segment(&self) -> u32 {
        self.next_segment.fetch_add(1, Ordering::Relaxed)
    }

    /// Fails if a segment of a language up to this number is damaged.
    fn check(&self, opened: &Opened, language: Lang, last: u32) -> Result<(), StoreError> {
        let damaged = self.damaged();
        let Some(((_, id), detail)) = damaged.range((language, 0)..=(language, last)).next() else {
            return Ok(());
        };
        let what = if *id == DOCUMENTS { "documents".into() } else { format!("segment {id}") };
        let detail = format!("bands:{language} {what}: {detail}");
        Err(StoreError::Corrupt { place: opened.place.clone(), detail })
    }

    fn note_damage(&self, language: Lang, id: u32, detail: &str) {
        let mut damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        damaged.insert((language, id), detail.to_owned());
    }

    fn damaged(&self) -> BTreeMap<(Lang, u32), String> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The postings of one language at one point in time.
#[derive(Clone, Default)]
pub(crate) struct Table {
    /// The newest documents, oldest run first.
    runs: Vec<Arc<Run>>,
    /// How many of the runs are being frozen: they are not merged with later ones.
    freezing: usize,
    /// By document numbers, ascending.
    segments: Vec<Arc<Segment>>,
    removed: Removed,
}

/// The effect of a write on the postings of a language.
pub(crate) struct Staged {
    /// Removed documents, ascending.
    removed: Vec<u64>,
    /// Posted documents, ascending: new ones, and those whose postings have changed.
    posted: Vec<u64>,
    /// Their postings.
    runs: Vec<Run>,
}

/// Rows of `meta` that a write has to change.
pub(crate) type MetaRows = Vec<(Vec<u8>, Option<Vec<u8>>)>;

impl Staged {
    /// The effect of the staged rows on the postings of each language.
    pub(crate) fn new(pending: &Pending, schemes: &IndexSchemes) -> BTreeMap<Lang, Staged> {
        let of = |(&language, bands): (&Lang, &crate::index::write_set::staged_postings::Bands)| {
            let scheme = schemes.for_language(language);
            let touched: BTreeSet<DocumentNumber> = bands.numbers().collect();
            let documents = pending.documents.get(&language);
            let (mut removed, mut posted, mut postings) = (Vec::new(), Vec::new(), Vec::new());
            for number in touched {
                match documents.and_then(|documents| documents.get(&number)) {
                    Some(Some(staged)) => {
                        posted.push(number.0);
                        let buckets = scheme.keys(&staged.document.fingerprint);
                        postings.extend(buckets_of(&buckets, number));
                    }
                    Some(None) => removed.push(number.0),
                    // Its postings were staged and then removed again.
                    None => {}
                }
            }
            (language, Staged { removed, posted, runs: Run::of(postings) })
        };
        pending.bands.iter().map(of).collect()
    }
}

/// The postings of a document with these buckets.
pub(crate) fn buckets_of(buckets: &[BandKey], number: DocumentNumber) -> impl Iterator<Item = Posting> + '_ {
    buckets.iter().filter_map(move |&key| Some(Posting { bucket: pack(key)?, number: number.0 }))
}

impl Table {
    /// The number after the last that a segment covers.
    fn covered(&self) -> u64 {
        self.segments.last().map_or(0, |last| last.coverage.to)
    }

    /// Postings in memory.
    fn in_memory(&self) -> usize {
        self.runs.iter().map(|run| run.len()).sum()
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.runs.iter().map(|run| run.bytes()).sum::<usize>() + self.filter_bytes()
    }

    fn filter_bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.bytes()).sum()
    }

    /// Segments, and the postings in them and in memory, removed ones included.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let frozen = self.segments.iter().map(|segment| segment.coverage.postings).sum::<u64>();
        (self.segments.len() as u64, frozen + self.in_memory() as u64)
    }

    /// Documents in memory that must leave it before they are posted again.
    fn purged(&self, staged: &Staged) -> BTreeSet<u64> {
        let highest = self.runs.iter().map(|run| run.numbers.1).max();
        let perhaps = staged.posted.iter().copied().filter(|&number| Some(number) <= highest);
        perhaps.collect()
    }

    /// Applies a write. Returns the chunks of removed documents that changed.
    fn apply(&mut self, staged: Staged) -> BTreeSet<u64> {
        let mut changed = BTreeSet::new();
        let purged = self.purged(&staged);
        if !purged.is_empty() {
            for run in &mut self.runs {
                let (low, high) = run.numbers;
                if purged.range(low..=high).next().is_some() {
                    *run = Arc::new(run.without(|number| purged.contains(&number)));
                }
            }
        }
        for number in staged.removed {
            self.mark(number, true, false, &mut changed);
        }
        let covered = self.covered();
        for number in staged.posted {
            // A number that a segment covers stays in memory: its postings in the segment are void.
            let late = number < covered;
            if late || self.removed.void_in_segments(number) {
                self.mark(number, late, late, &mut changed);
            }
        }
        self.runs.extend(staged.runs.into_iter().map(Arc::new));
        self.merge_runs();
        changed
    }

    fn mark(&mut self, number: u64, removed: bool, posted: bool, changed: &mut BTreeSet<u64>) {
        self.removed.set(number, removed, posted);
        changed.insert(number / crate::index::format::segment::CHUNK);
    }

    /// Merges runs of similar size, so that their number grows with the logarithm of the postings.
    fn merge_runs(&mut self) {
        while let [.., before, last] = &self.runs[self.freezing.min(self.runs.len())..] {
            if before.len() > 2 * last.len() || !before.fits(last) {
                break;
            }
            let merged = Arc::new(before.merge(last));
            self.runs.truncate(self.runs.len() - 2);
            self.runs.push(merged);
        }
    }

    /// The newest documents below a number of each bucket, one more than `cap`. Buckets are distinct and ascending.
    fn newest(
        &self,
        opened: &Opened,
        language: Lang,
        buckets: &[u64],
        below: u64,
        cap: usize,
    ) -> Result<Vec<Vec<u64>>, StoreError> {
        opened.posting_tables.check(opened, language, DOCUMENTS)?;
        let enough = cap.saturating_add(1);
        let mut found: Vec<Vec<u64>> = vec![Vec::new(); buckets.len()];
        for run in &self.runs {
            for (found, &bucket) in found.iter_mut().zip(buckets) {
                let live = |&number: &u64| number < below && !self.removed.void_in_memory(number);
                found.extend(run.bucket(bucket).filter(live).take(enough));
            }
        }
        let order = |found: &mut Vec<u64>| {
            found.sort_unstable_by(|a, b| b.cmp(a));
            found.truncate(enough);
        };
        found.iter_mut().for_each(order);
        // Documents that came after their number was frozen are in memory, but not the newest.
        let mixed = !self.removed.posted().is_empty();
        for segment in self.segments.iter().rev().filter(|segment| segment.coverage.from < below) {
            // A bucket of which so many documents have been found needs no more.
            let most = |found: &Vec<u64>| if mixed { found.len() + enough } else { enough };
            let open = buckets.iter().zip(&found).enumerate().filter(|(_, (bucket, found))| {
                found.len() < most(found) && segment.may_contain(of_bucket(**bucket))
            });
            let wanted: Vec<((usize, usize), u64)> =
                open.map(|(at, (&bucket, found))| ((at, most(found)), bucket)).collect();
            segment.buckets(opened, language, below, &wanted, |(at, most), number| {
                if !self.removed.void_in_segments(number) {
                    found[at].push(number);
                }
                found[at].len() < most
            })?;
        }
        if mixed {
            found.iter_mut().for_each(order);
        }
        Ok(found)
    }

    /// The posting lists of several buckets.
    pub(crate) fn posting_lists(
        &self,
        opened: &Opened,
        language: Lang,
        keys: &[BandKey],
        cap: usize,
    ) -> Result<PostingLists, StoreError> {
        let mut lists = PostingLists::empty(keys.len());
        let mut order: Vec<(u64, usize)> =
            keys.iter().enumerate().filter_map(|(at, &key)| Some((pack(key)?, at))).collect();
        order.sort_unstable();
        let mut buckets: Vec<u64> = order.iter().map(|&(bucket, _)| bucket).collect();
        buckets.dedup();
        let found = self.newest(opened, language, &buckets, u64::MAX, cap)?;
        let mut order = order.into_iter().peekable();
        for (bucket, numbers) in buckets.into_iter().zip(found) {
            let slot = (!numbers.is_empty()).then(|| lists.add(capped(numbers, cap)));
            while let Some((_, at)) = order.next_if(|&(other, _)| other == bucket) {
                if let Some(slot) = slot {
                    lists.set(at, slot);
                }
            }
        }
        Ok(lists)
    }

    /// Visits the postings of a range as rows: those of one bucket in order, others in no particular order.
    pub(crate) fn scan(
        &self,
        opened: &Opened,
        language: Lang,
        span: &Span,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        if let Some(key) = key::bucket_in(span) {
            let Some(bucket) = pack(key) else { return Ok(()) };
            // Numbers descend along the keys.
            let below = match key::decode_posting(&span.from) {
                Ok((_, DocumentNumber(newest))) => newest.saturating_add(1),
                Err(_) => u64::MAX,
            };
            let (mut below, mut cap) = (below, 64);
            loop {
                let found = self.newest(opened, language, &[bucket], below, cap)?.pop().unwrap_or_default();
                for &number in found.iter().take(cap) {
                    if visit(&key::posting(key, DocumentNumber(number)), &[]).is_break() {
                        return Ok(());
                    }
                }
                match found.get(cap) {
                    None => return Ok(()),
                    Some(next) => below = next + 1,
                }
                cap *= 4;
            }
        }
        let mut row = |posting: Posting| {
            let key = unpack(posting.bucket).map(|key| key::posting(key, DocumentNumber(posting.number)));
            // A bucket that no scheme has would be damage; it shows as a row that nobody expects.
            let key = key.unwrap_or([u8::MAX; POSTING]);
            if span.holds(&key) { visit(&key, &[]) } else { ControlFlow::Continue(()) }
        };
        opened.posting_tables.check(opened, language, DOCUMENTS - 1)?;
        for segment in &self.segments {
            for posting in segment.postings(opened, language)? {
                let posting = posting?;
                if !self.removed.void_in_segments(posting.number) && row(posting).is_break() {
                    return Ok(());
                }
            }
        }
        for posting in self.runs.iter().flat_map(|run| run.postings()) {
            if !self.removed.void_in_memory(posting.number) && row(posting).is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The rows that describe the changed chunks of removed documents.
    fn removed_rows(&self, language: Lang, changed: &BTreeSet<u64>) -> MetaRows {
        let row = |&chunk: &u64| (removed_key(language, chunk), self.removed.row(chunk));
        changed.iter().map(row).collect()
    }
}

fn capped(mut numbers: Vec<u64>, cap: usize) -> PostingList {
    let more = numbers.len() > cap;
    numbers.truncate(cap);
    PostingList { numbers: numbers.into_iter().map(DocumentNumber).collect(), more }
}

/// The row that describes a segment.
fn coverage_row(language: Lang, segment: &Segment) -> (Vec<u8>, Option<Vec<u8>>) {
    (coverage_key(language, segment.id), Some(encode_coverage(&segment.coverage)))
}

impl Opened {
    /// Remembers that a segment is damaged, and returns the error.
    pub(crate) fn damaged_segment(
        &self,
        language: Lang,
        id: u32,
        detail: &str,
        error: StoreError,
    ) -> StoreError {
        if matches!(error, StoreError::Corrupt { .. }) {
            self.posting_tables.note_damage(language, id, detail);
        }
        error
    }

    /// True if a posting of this key exists.
    pub(crate) fn is_posted(&self, language: Lang, bytes: &[u8]) -> Result<bool, StoreError> {
        let (Ok((key, number)), Some(table)) = (key::decode_posting(bytes), self.posting_tables.of(language))
        else {
            return Ok(false);
        };
        let mut found = false;
        let span = Span { from: bytes.to_vec(), ..Span::prefix(&key::bucket(key)) };
        table.scan(self, language, &span, &mut |other, _| {
            found = key::decode_posting(other).is_ok_and(|(_, other)| other == number);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
