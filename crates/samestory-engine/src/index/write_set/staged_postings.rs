//! Pending postings, found by their bucket. Written down they are in order; until then they need not be.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::lsh::BandKey;
use crate::model::DocumentNumber;

use crate::index::format::key;
use crate::index::format::key::POSTING;
use crate::index::read::rows::PostingList;

/// Hashes of bands are spread already, but some bands have small numbers for hashes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        // The table goes by the highest bits and the lowest.
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

/// No entry.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: BandKey,
    number: DocumentNumber,
    there: bool,
    /// The entry of the same bucket that was made before this.
    before: u32,
}

/// Postings that have come or gone. What was said last of one counts.
#[derive(Debug, Default)]
pub(crate) struct Bands {
    /// The latest entry of each bucket. Only ever asked for one bucket, so its order never shows.
    latest: HashMap<BandKey, u32, BuildHasherDefault<Spread>>,
    entries: Vec<Entry>,
}

impl Bands {
    /// Notes that a document is in a bucket now, or is not.
    pub(crate) fn note(&mut self, key: BandKey, number: DocumentNumber, there: bool) {
        // A batch has thousands of entries; the overlay's size is bounded long before this.
        let at = u32::try_from(self.entries.len()).unwrap_or(NONE);
        let before = self.latest.insert(key, at).unwrap_or(NONE);
        self.entries.push(Entry { key, number, there, before });
    }

    fn chain(&self, key: BandKey) -> impl Iterator<Item = &Entry> {
        let entry = |at: u32| self.entries.get(at as usize);
        std::iter::successors(self.latest.get(&key).copied().and_then(entry), move |last| entry(last.before))
    }

    /// A bucket of the base with what is pending laid over it; nothing where only reading on can tell.
    pub(crate) fn over(&self, key: BandKey, base: &PostingList, cap: usize) -> Over {
        let mut numbers = Vec::new();
        for entry in self.chain(key) {
            if !entry.there {
                // What takes the place of one that is gone may lie beyond the page.
                return Over::Unknown;
            }
            numbers.push(entry.number);
        }
        if numbers.is_empty() {
            return Over::Base;
        }
        numbers.extend(&base.numbers);
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.dedup();
        let more = base.more || numbers.len() > cap;
        numbers.truncate(cap);
        Over::PostingList(PostingList { numbers, more })
    }

    /// Whether a posting has come or gone.
    pub(crate) fn get(&self, key: BandKey, number: DocumentNumber) -> Option<bool> {
        self.chain(key).find(|entry| entry.number == number).map(|entry| entry.there)
    }

    /// The postings of one bucket, as [`Bands::sorted`].
    pub(crate) fn sorted_bucket(&self, key: BandKey) -> Vec<([u8; POSTING], bool)> {
        let mut entries: Vec<&Entry> = self.chain(key).collect();
        entries.reverse();
        sorted(entries.into_iter())
    }

    /// Every posting once, in the order of its bytes, and whether it is there now.
    pub(crate) fn sorted(&self) -> Vec<([u8; POSTING], bool)> {
        sorted(self.entries.iter())
    }

    /// The buckets that postings were put in; some may have gone again.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn buckets(&self) -> impl Iterator<Item = BandKey> {
        self.entries.iter().filter(|entry| entry.there).map(|entry| entry.key)
    }

    /// All that was noted, in that order.
    pub(crate) fn noted(&self) -> impl Iterator<Item = (BandKey, DocumentNumber, bool)> {
        self.entries.iter().map(|entry| (entry.key, entry.number, entry.there))
    }
}

/// What a bucket holds once pending postings are laid over it.
pub(crate) enum Over {
    /// Nothing is pending.
    Base,
    /// This.
    PostingList(PostingList),
    /// It has to be read row by row.
    Unknown,
}

fn sorted<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<([u8; POSTING], bool)> {
    // The order of their bytes: newer documents come first. Of equals the last was said last.
    let order = |(at, entry): (usize, &'a Entry)| (entry.key, !entry.number.0, at, entry.there);
    let mut rows: Vec<(BandKey, u64, usize, bool)> = entries.enumerate().map(order).collect();
    rows.sort_unstable();
    let mut kept: Vec<([u8; POSTING], bool)> = Vec::with_capacity(rows.len());
    let last = |same: &[(BandKey, u64, usize, bool)]| {
        let &(key, number, _, there) = same.last()?;
        Some((key::posting(key, DocumentNumber(!number)), there))
    };
    kept.extend(rows.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).filter_map(last));
    kept
}
