//! Staged postings, grouped by bucket.
//!
//! [`super::pending`] holds one [`Bands`] per language; [`super::overlay`] reads through it and stores write
//! it out. Entries stay in order of arrival and are sorted only when they are written or scanned.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::lsh::BandKey;
use crate::model::DocumentNumber;

use crate::index::format::key;
use crate::index::format::key::POSTING;
use crate::index::read::rows::PostingList;

/// A cheap hasher: most band hashes are uniform already, but some bands have small numbers as hashes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        // The hash table uses both the highest and the lowest bits.
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u16(&mut self, band: u16) {
        self.0 ^= u64::from(band) << 48;
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = (self.0 ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Marks the end of a chain.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: BandKey,
    number: DocumentNumber,
    present: bool,
    /// The previous entry of the same bucket.
    before: u32,
}

/// Added and removed postings. The last entry for a posting wins.
#[derive(Debug, Default)]
pub(crate) struct Bands {
    /// The latest entry of each bucket. It is only looked up, never iterated, so its order does not matter.
    latest: HashMap<BandKey, u32, BuildHasherDefault<Spread>>,
    entries: Vec<Entry>,
}

impl Bands {
    /// Stages that a document is added to a bucket or removed from it.
    pub(crate) fn note(&mut self, key: BandKey, number: DocumentNumber, present: bool) {
        // A batch has thousands of entries; the overlay's size limit applies long before this one.
        let at = u32::try_from(self.entries.len()).unwrap_or(NONE);
        let before = self.latest.insert(key, at).unwrap_or(NONE);
        self.entries.push(Entry { key, number, present, before });
    }

    fn chain(&self, key: BandKey) -> impl Iterator<Item = &Entry> {
        let entry = |at: u32| self.entries.get(at as usize);
        std::iter::successors(self.latest.get(&key).copied().and_then(entry), move |last| entry(last.before))
    }

    /// Combines a bucket of the base store with the staged postings.
    pub(crate) fn combine(&self, key: BandKey, base: &PostingList, cap: usize) -> CombinedBucket {
        let mut numbers = Vec::new();
        for entry in self.chain(key) {
            if !entry.present {
                // The document that moves up into the gap may lie beyond the posting list that was read.
                return CombinedBucket::Unknown;
            }
            numbers.push(entry.number);
        }
        if numbers.is_empty() {
            return CombinedBucket::Base;
        }
        numbers.extend(&base.numbers);
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.dedup();
        let more = base.more || numbers.len() > cap;
        numbers.truncate(cap);
        CombinedBucket::PostingList(PostingList { numbers, more })
    }

    /// True if a posting was added or removed; `None` if it is not staged.
    pub(crate) fn get(&self, key: BandKey, number: DocumentNumber) -> Option<bool> {
        self.chain(key).find(|entry| entry.number == number).map(|entry| entry.present)
    }

    /// The staged postings of one bucket, as [`Bands::sorted`].
    pub(crate) fn sorted_bucket(&self, key: BandKey) -> Vec<([u8; POSTING], bool)> {
        let mut entries: Vec<&Entry> = self.chain(key).collect();
        entries.reverse();
        sorted(entries.into_iter())
    }

    /// Every staged posting once, in byte order, and whether it was added.
    pub(crate) fn sorted(&self) -> Vec<([u8; POSTING], bool)> {
        sorted(self.entries.iter())
    }

    /// The documents that any posting was staged for, some of them several times.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn numbers(&self) -> impl Iterator<Item = DocumentNumber> {
        self.entries.chunk_by(|a, b| a.number == b.number).map(|same| same[0].number)
    }

    /// All entries in the order in which they were staged.
    pub(crate) fn entries_in_order(&self) -> impl Iterator<Item = (BandKey, DocumentNumber, bool)> {
        self.entries.iter().map(|entry| (entry.key, entry.number, entry.present))
    }
}

/// A bucket combined with its staged postings.
pub(crate) enum CombinedBucket {
    /// Nothing is staged: the base list holds.
    Base,
    /// The combined list.
    PostingList(PostingList),
    /// The bucket has to be read row by row.
    Unknown,
}

fn sorted<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<([u8; POSTING], bool)> {
    // Byte order puts newer documents first. Among equal postings the last entry wins.
    let order = |(at, entry): (usize, &'a Entry)| (entry.key, !entry.number.0, at, entry.present);
    let mut rows: Vec<(BandKey, u64, usize, bool)> = entries.enumerate().map(order).collect();
    rows.sort_unstable();
    let mut kept: Vec<([u8; POSTING], bool)> = Vec::with_capacity(rows.len());
    let last = |same: &[(BandKey, u64, usize, bool)]| {
        let &(key, number, _, present) = same.last()?;
        Some((key::posting(key, DocumentNumber(!number)), present))
    };
    kept.extend(rows.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).filter_map(last));
    kept
}
