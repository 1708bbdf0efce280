//! Blocked Bloom filters in memory, for ids and clusters and for the buckets of a segment. Most lookups of a new
//! article miss, and the filter saves the disk read.
//!
//! [`super::membership`] and [`crate::index::rocksdb::postings`] fill and own them. They may report an absent key as present, but never a
//! present key as absent.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Bits for each key: about one key in two hundred is looked for in vain.
const BITS: usize = 12;
/// Keys that the first segment has room for: most of a megabyte, of which little is touched while there are few keys.
const LEAST: usize = 1 << 19;

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

/// Hash of a packed bucket. Packed buckets are spread evenly, and their highest bits choose the block: those of a batch,
/// which are looked up in order, are found in the order of memory.
pub(crate) fn of_bucket(packed: u64) -> u64 {
    let mut mixed = packed;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    packed >> 16 << 32 | mixed >> 32
}

/// A filter of a fixed size.
pub(crate) struct Blocks(Vec<Block>);

impl Blocks {
    /// A filter for this many keys.
    pub(crate) fn new(keys: usize, bits: usize) -> Blocks {
        Blocks(vec![[0; 8]; (keys * bits).div_ceil(256).max(1)])
    }

    /// A filter of about this many bytes.
    pub(crate) fn of_bytes(bytes: usize) -> Blocks {
        Blocks(vec![[0; 8]; bytes.div_ceil(size_of::<Block>()).max(1)])
    }

    fn block(&self, hash: u64) -> usize {
        // The highest bits choose the block, the lowest forty the bits in it.
        (((hash >> 32) * self.0.len() as u64) >> 32) as usize
    }

    pub(crate) fn insert(&mut self, hash: u64) {
        let at = self.block(hash);
        self.0[at].iter_mut().zip(mask(hash)).for_each(|(lane, bit)| *lane |= bit);
    }

    pub(crate) fn contains(&self, hash: u64) -> bool {
        let block = &self.0[self.block(hash)];
        block.iter().zip(mask(hash)).fold(0, |missing, (lane, bit)| missing | !lane & bit) == 0
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        self.0.iter().flatten().flat_map(|lane| lane.to_le_bytes()).collect()
    }

    /// The filter of these bytes, if they are whole blocks.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Blocks> {
        let (blocks, rest) = bytes.as_chunks::<32>();
        let block = |bytes: &[u8; 32]| {
            let (lanes, _) = bytes.as_chunks::<4>();
            std::array::from_fn(|lane| u32::from_le_bytes(lanes[lane]))
        };
        (rest.is_empty() && !blocks.is_empty()).then(|| Blocks(blocks.iter().map(block).collect()))
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len() * 32
    }
}

struct FilterPart {
    blocks: Blocks,
    room: usize,
}

impl FilterPart {
    fn new(room: usize) -> FilterPart {
        FilterPart { blocks: Blocks::new(room, BITS), room }
    }

    fn insert(&mut self, hash: u64) {
        self.blocks.insert(hash);
        self.room = self.room.saturating_sub(1);
    }
}

/// What may exist. It grows by segments. Each adds its own errors, so each is three times as large as all
/// before it and they stay few.
pub(crate) struct Filter {
    segments: Vec<FilterPart>,
    keys: usize,
}

impl Filter {
    /// With room for so many keys.
    pub(crate) fn new(room: usize) -> Filter {
        Filter { segments: vec![FilterPart::new(room.max(LEAST))], keys: 0 }
    }

    pub(crate) fn insert(&mut self, hash: u64) {
        self.keys += 1;
        match self.segments.last_mut() {
            Some(last) if last.room > 0 => last.insert(hash),
            _ => {
                let mut next = FilterPart::new(3 * self.keys);
                next.insert(hash);
                self.segments.push(next);
            }
        }
    }

    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.segments.iter().rev().any(|segment| segment.blocks.contains(hash))
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

    /// Of a bucket as they are, spread over 48 bits.
    fn key(n: u64) -> u64 {
        of_bucket(xxh3_64(&n.to_le_bytes()) >> 16)
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
        let mut blocks = Blocks::new(100, 10);
        (0..100).for_each(|n| blocks.insert(key(n)));
        let again = Blocks::decode(&blocks.encode()).unwrap();
        assert!((0..100).all(|n| again.contains(key(n))));
        assert!(Blocks::decode(&blocks.encode()[1..]).is_none() && Blocks::decode(&[]).is_none());
        let wrong = (2 * count..3 * count).filter(|&n| filter.contains(key(n))).count();
        assert!(wrong as u64 * 100 < count, "{wrong} of {count}");
    }
}
