//! How the memory budget of the stores is divided: plain numbers, for the stores and for `samestory plan`.

/// How a budget is divided. `samestory plan` computes with the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShares {
    /// Memtables.
    pub write_buffers: usize,
    /// Postings of the newest documents, of all languages.
    pub postings: usize,
    /// Decoded documents and canonicals.
    pub documents: usize,
    /// Block cache and filters of segments.
    pub blocks: usize,
    /// The block cache never gets smaller than this, however large the filters are.
    pub least_blocks: usize,
}

/// Bits of a segment's filter for each posting: one look-up in a hundred reads a row in vain.
const FILTER_BITS: u64 = 10;
/// The same for the postings of a segment that has more than [`LARGE`]: one in twelve. There are few such segments, and their
/// filters are most of all filters.
const LARGE_FILTER_BITS: u64 = 6;
/// Postings of about a million documents.
const LARGE: u64 = 1 << 25;

/// Bytes of the filter of a segment with so many postings.
pub(super) const fn filter_bytes(postings: u64) -> u64 {
    match postings > LARGE {
        true => postings / 8 * LARGE_FILTER_BITS,
        false => postings.saturating_mul(FILTER_BITS) / 8,
    }
}

/// A posting in memory takes at most 13 bytes. Twice as many as one language may have are allowed in all, and they are there
/// twice while runs are merged.
const BYTES_OF_A_POSTING: usize = 32;

/// Bytes of the filters of all segments of a language with so many postings: never less with more postings.
pub const fn all_filter_bytes(postings: u64) -> u64 {
    let small = filter_bytes(if postings < LARGE { postings } else { LARGE });
    let large = filter_bytes(postings);
    if large < small { small } else { large }
}

impl MemoryShares {
    /// The shares of a budget of this many bytes.
    pub const fn of_budget(memory: usize) -> MemoryShares {
        let part = memory / 8;
        MemoryShares {
            write_buffers: part,
            postings: part,
            documents: part,
            blocks: memory - 3 * part,
            least_blocks: part,
        }
    }

    /// Postings of one language in memory.
    pub const fn postings_of_a_language(&self) -> usize {
        self.postings / BYTES_OF_A_POSTING
    }

    /// Bytes of the block cache beside this many bytes of filters.
    pub const fn block_cache(&self, filters: usize) -> usize {
        let left = self.blocks.saturating_sub(filters);
        if left < self.least_blocks { self.least_blocks } else { left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_large_segments_are_smaller() {
        assert_eq!(filter_bytes(0), 0);
        assert_eq!(filter_bytes(LARGE), LARGE / 8 * 10);
        assert_eq!(filter_bytes(2 * LARGE), LARGE / 8 * 12);
        assert!(filter_bytes(u64::MAX) > filter_bytes(u64::MAX - 80));
    }

    #[test]
    fn the_shares_are_the_whole_and_filters_take_from_blocks() {
        for memory in [64 << 20, 512 << 20, 8 << 30] {
            let shares = MemoryShares::of_budget(memory);
            let MemoryShares { write_buffers, postings, documents, blocks, least_blocks } = shares;
            assert_eq!(write_buffers + postings + documents + blocks, memory);
            assert_eq!(shares.block_cache(0), blocks);
            assert_eq!(shares.block_cache(memory / 4) + memory / 4, blocks);
            assert_eq!(shares.block_cache(memory), least_blocks);
        }
        assert_eq!(MemoryShares::of_budget(512 << 20).postings_of_a_language(), 2 << 20);
    }
}
