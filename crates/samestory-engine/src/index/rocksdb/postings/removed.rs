//! Documents whose postings no longer count. Segments never change, so a removed document stays in them until they are
//! rewritten; readers skip it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::index::DecodeError;
use crate::index::format::segment::{Bits, CHUNK, decode_removed, encode_removed};

/// The removed documents of a language, and the chunks that changed since the last write.
#[derive(Clone, Default)]
pub(crate) struct Removed {
    chunks: BTreeMap<u64, Arc<Bits>>,
    /// Removed from segments, but posted in memory: a document that came after its number was frozen.
    posted: BTreeSet<u64>,
}

fn place(number: u64) -> (u64, usize, u64) {
    (number / CHUNK, (number % CHUNK / 64) as usize, 1 << (number % 64))
}

impl Removed {
    pub(crate) fn load(&mut self, chunk: u64, bytes: &[u8]) -> Result<(), DecodeError> {
        let (bits, posted) = decode_removed(chunk, bytes)?;
        self.chunks.insert(chunk, Arc::new(bits));
        self.posted.extend(posted);
        Ok(())
    }

    /// The row of a chunk; `None` if nothing in it is removed.
    pub(crate) fn row(&self, chunk: u64) -> Option<Vec<u8>> {
        let from = chunk.saturating_mul(CHUNK);
        let posted = self.posted.range(from..=from.saturating_add(CHUNK - 1)).copied();
        let bits = self.chunks.get(&chunk).filter(|bits| bits.iter().any(|&word| word != 0))?;
        Some(encode_removed(bits, posted))
    }

    /// Forgets the documents below a number, up to whole chunks, because they have no postings left. Returns the chunks.
    pub(crate) fn forget_below(&mut self, number: u64) -> Vec<u64> {
        let kept = self.chunks.split_off(&(number / CHUNK));
        std::mem::replace(&mut self.chunks, kept).into_keys().collect()
    }

    /// True if a document's postings in segments do not count.
    pub(crate) fn void_in_segments(&self, number: u64) -> bool {
        if self.chunks.is_empty() {
            return false;
        }
        let (chunk, word, bit) = place(number);
        self.chunks.get(&chunk).is_some_and(|bits| bits[word] & bit != 0)
    }

    /// True if a document's postings in memory do not count.
    pub(crate) fn void_in_memory(&self, number: u64) -> bool {
        self.void_in_segments(number) && !self.posted.contains(&number)
    }

    /// The documents that are removed from segments and posted in memory.
    pub(crate) fn posted(&self) -> &BTreeSet<u64> {
        &self.posted
    }

    pub(crate) fn set(&mut self, number: u64, removed: bool, posted: bool) {
        let (chunk, word, bit) = place(number);
        if removed || self.chunks.contains_key(&chunk) {
            let bits =
                Arc::make_mut(self.chunks.entry(chunk).or_insert_with(|| Arc::new([0; CHUNK as usize / 64])));
            if removed { bits[word] |= bit } else { bits[word] &= !bit }
        }
        if posted {
            self.posted.insert(number)
        } else {
            self.posted.remove(&number)
        };
    }

    /// The removed documents, ascending.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let words = |(&chunk, bits): (&u64, &'_ Arc<Bits>)| {
            let word = move |(at, word): (usize, u64)| {
                let first = chunk * CHUNK + at as u64 * 64;
                (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
            };
            bits.iter().copied().enumerate().flat_map(word).collect::<Vec<u64>>()
        };
        self.chunks.iter().flat_map(words)
    }

    /// How many of a range are removed.
    pub(crate) fn count(&self, from: u64, to: u64) -> u64 {
        let chunks = self.chunks.range(from / CHUNK..=to / CHUNK);
        let inside = |&(number, word): &(u64, u64)| -> u64 {
            (0..64).filter(|&at| word >> at & 1 == 1 && (from..to).contains(&(number + at))).count() as u64
        };
        let words = |(&chunk, bits): (&u64, &Arc<Bits>)| {
            let first = chunk * CHUNK;
            if from <= first && first + CHUNK <= to {
                return bits.iter().map(|word| u64::from(word.count_ones())).sum();
            }
            let words: Vec<(u64, u64)> =
                bits.iter().enumerate().map(|(at, &word)| (first + at as u64 * 64, word)).collect();
            words.iter().map(inside).sum::<u64>()
        };
        chunks.map(words).sum()
    }
}
