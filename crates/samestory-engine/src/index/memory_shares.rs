//! How the memory budget of the stores is divided: plain numbers, for the stores and for `samestory plan`.

/// How a budget is divided. `samestory plan` computes with the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShares {
    /// Memtables.
    pub write_buffers: usize,
    /// Postings of the newest documents, of all languages.
    pub postings: usize,
    /// Decoded documents, their summaries, and canonicals.
    pub documents: usize,
    /// RocksDB's block cache.
    pub blocks: usize,
    /// Segments of postings: their filters and fences, and a cache of their rows.
    pub segments: usize,
    /// The cache of rows never gets smaller than this, however large the filters are.
    pub least_rows: usize,
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

/// Postings of a row, and bytes of its entry in the fences.
const ROW: u64 = 256;
const FENCE: u64 = 16;

/// Bytes of the filters and fences of all segments of a language with so many postings: never less with more postings.
pub const fn all_filter_bytes(postings: u64) -> u64 {
    let small = filter_bytes(if postings < LARGE { postings } else { LARGE });
    let large = filter_bytes(postings);
    let fences = postings.div_ceil(ROW).saturating_mul(FENCE);
    fences.saturating_add(if large < small { small } else { large })
}

impl MemoryShares {
    /// The shares of a budget of this many bytes.
    pub const fn of_budget(memory: usize) -> MemoryShares {
        let part = memory / 8;
        MemoryShares {
            write_buffers: part,
            postings: part,
            documents: part,
            blocks: part,
            segments: memory - 4 * part,
            least_rows: part / 2,
        }
    }

    /// Postings of one language in memory.
    pub const fn postings_of_a_language(&self) -> usize {
        self.postings / BYTES_OF_A_POSTING
    }

    /// Bytes of the cache of rows beside this many bytes of filters and fences.
    pub const fn row_cache(&self, filters: usize) -> usize {
        let left = self.segments.saturating_sub(filters);
        if left < self.least_rows { self.least_rows } else { left }
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
    fn the_shares_are_the_whole_and_filters_take_from_rows() {
        for memory in [64 << 20, 512 << 20, 8 << 30] {
            let shares = MemoryShares::of_budget(memory);
            let MemoryShares { write_buffers, postings, documents, blocks, segments, least_rows } = shares;
            assert_eq!(write_buffers + postings + documents + blocks + segments, memory);
            assert_eq!(shares.row_cache(0), segments);
            assert_eq!(shares.row_cache(memory / 4) + memory / 4, segments);
            assert_eq!(shares.row_cache(memory), least_rows);
        }
        assert_eq!(MemoryShares::of_budget(512 << 20).postings_of_a_language(), 2 << 20);
    }
}
