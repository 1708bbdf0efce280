//! A blocked Bloom filter in memory for buckets, ids and clusters. Most lookups of a new article miss, and
//! the filter saves the disk read.
//!
//! [`super::membership`] fills and owns it. It may report an absent key as present, but never a present key
//! as absent.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::lsh::BandKey;
use crate::model::Lang;

/// Bits for each key: about one key in two hundred is looked for in vain.
const BITS: usize = 12;
/// Keys that the first segment has room for: six megabytes, of which few are touched while there are few keys.
const LEAST: usize = 1 << 22;

/// A block is one half of a cache line; each of its eight lanes has one bit of a key.
type Block = [u32; 8];

/// One bit for each lane: five bits of the hash say which. The block is chosen by its highest bits.
fn mask(hash: u64) -> Block {
    std::array::from_fn(|lane| 1u32.wrapping_shl((hash >> (5 * lane)) as u32))
}

/// Hash of an id, whatever its language.
pub(crate) fn of_id(id: &[u8]) -> u64 {
    xxh3_64(id)
}

/// Hash of the key of a cluster's row.
pub(crate) fn of_cluster(key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, 1)
}

/// Hash of a bucket of a language. Some bands have small numbers for hashes, so all bits are mixed.
pub(crate) fn of_bucket(language: Lang, key: BandKey) -> u64 {
    let code = language.code().bytes().fold(u64::from(key.band), |code, byte| code << 8 | u64::from(byte));
    let mut hash = key.hash ^ code.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

struct Segment {
    blocks: Vec<Block>,
    room: usize,
}

impl Segment {
    fn new(room: usize) -> Segment {
        Segment { blocks: vec![[0; 8]; (room * BITS).div_ceil(256)], room }
    }

    fn block(&self, hash: u64) -> usize {
        // The highest bits choose the block, the lowest forty the bits in it.
        (((hash >> 32) * self.blocks.len() as u64) >> 32) as usize
    }

    fn insert(&mut self, hash: u64) {
        let at = self.block(hash);
        self.blocks[at].iter_mut().zip(mask(hash)).for_each(|(lane, bit)| *lane |= bit);
        self.room = self.room.saturating_sub(1);
    }

    fn contains(&self, hash: u64) -> bool {
        let block = &self.blocks[self.block(hash)];
        block.iter().zip(mask(hash)).fold(0, |missing, (lane, bit)| missing | !lane & bit) == 0
    }
}

/// What may exist. It grows by segments. Each adds its own errors, so each is three times as large as all
/// before it and they stay few.
pub(crate) struct Filter {
    segments: Vec<Segment>,
    keys: usize,
}

impl Filter {
    /// With room for so many keys.
    pub(crate) fn new(room: usize) -> Filter {
        Filter { segments: vec![Segment::new(room.max(LEAST))], keys: 0 }
    }

    pub(crate) fn insert(&mut self, hash: u64) {
        self.keys += 1;
        match self.segments.last_mut() {
            Some(last) if last.room > 0 => last.insert(hash),
            _ => {
                let mut next = Segment::new(3 * self.keys);
                next.insert(hash);
                self.segments.push(next);
            }
        }
    }

    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.segments.iter().rev().any(|segment| segment.contains(hash))
    }

    /// The same of many. Most of what is asked for lies in memory that was not touched lately: nothing here waits for
    /// one answer before it asks for the next.
    pub(crate) fn contains_each(&self, hashes: &[u64]) -> Vec<bool> {
        let mut found = vec![false; hashes.len()];
        for segment in &self.segments {
            found.iter_mut().zip(hashes).for_each(|(found, &hash)| *found |= segment.contains(hash));
        }
        found
    }

    /// How many keys were put in, those that have gone since among them.
    pub(crate) fn keys(&self) -> usize {
        self.keys
    }

    /// All that is in either.
    pub(crate) fn join(&mut self, mut other: Filter) {
        self.keys += other.keys;
        // The last segment is the one with room.
        other.segments.append(&mut self.segments);
        self.segments = other.segments;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> u64 {
        of_bucket(Lang::UND, BandKey { band: (n % 40) as u16, hash: n })
    }

    #[test]
    fn it_never_denies_what_is_there_and_seldom_affirms_what_is_not() {
        let mut filter = Filter::new(0);
        let count = LEAST as u64 * 3 / 2;
        let mut other = Filter::new(0);
        (0..count).for_each(|n| filter.insert(key(n)));
        other.insert(key(count));
        filter.join(other);
        assert_eq!(filter.keys() as u64, count + 1);
        assert!((0..=count).all(|n| filter.contains(key(n))));
        let some: Vec<u64> = (0..3 * count).step_by(count as usize / 1000).map(key).collect();
        let one_by_one: Vec<bool> = some.iter().map(|&hash| filter.contains(hash)).collect();
        assert_eq!(filter.contains_each(&some), one_by_one);
        let wrong = (2 * count..3 * count).filter(|&n| filter.contains(key(n))).count();
        assert!(wrong as u64 * 100 < count, "{wrong} of {count}");
    }
}
