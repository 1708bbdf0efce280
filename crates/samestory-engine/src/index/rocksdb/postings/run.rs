//! Postings in memory: a sorted run of them that never changes, with a directory by the highest bits of the bucket.
//!
//! Every write adds a run, and runs of similar size are merged, so there are few. A reader that holds a run is not disturbed
//! by later writes.

use crate::index::format::segment::Posting;

/// Postings for each entry of the directory.
const SLOT: usize = 4;

/// Twelve bytes, ordered as [`Posting::order`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// The upper 32 of the bucket's 48 bits.
    high: u32,
    low: u16,
    /// The lower half of the number, inverted.
    inverted: u32,
}

/// Sorted postings whose numbers have the same upper half.
pub(crate) struct Run {
    /// The upper half of all numbers.
    base: u64,
    entries: Vec<Entry>,
    /// Where the postings with these highest bits of the bucket begin.
    starts: Vec<u32>,
    bits: u32,
    /// The lowest and the highest number.
    pub(crate) numbers: (u64, u64),
}

fn upper(number: u64) -> u64 {
    number >> 32 << 32
}

impl Run {
    /// Runs of these postings, in any order; usually one.
    pub(crate) fn of(mut postings: Vec<Posting>) -> Vec<Run> {
        let key = |posting: &Posting| (upper(posting.number), posting.order());
        postings.sort_unstable_by_key(key);
        postings.dedup();
        postings.chunk_by(|a, b| upper(a.number) == upper(b.number)).map(Run::sorted).collect()
    }

    fn sorted(postings: &[Posting]) -> Run {
        let entry = |posting: &Posting| Entry {
            high: (posting.bucket >> 16) as u32,
            low: posting.bucket as u16,
            inverted: !(posting.number as u32),
        };
        Run::new(
            upper(postings.first().map_or(0, |first| first.number)),
            postings.iter().map(entry).collect(),
        )
    }

    fn new(base: u64, entries: Vec<Entry>) -> Run {
        let bits = (entries.len() / SLOT).max(1).ilog2();
        let mut starts = vec![0u32; (1 << bits) + 1];
        let (mut low, mut high) = (u32::MAX, 0);
        for entry in &entries {
            starts[slot(entry.high, bits) + 1] += 1;
            (low, high) = (low.min(!entry.inverted), high.max(!entry.inverted));
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        Run { base, entries, starts, bits, numbers: (base | u64::from(low), base | u64::from(high)) }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.starts.capacity() * size_of::<u32>()
    }

    fn posting(&self, entry: Entry) -> Posting {
        let bucket = u64::from(entry.high) << 16 | u64::from(entry.low);
        Posting { bucket, number: self.base | u64::from(!entry.inverted) }
    }

    /// The document numbers of a bucket, newest first.
    pub(crate) fn bucket(&self, bucket: u64) -> impl Iterator<Item = u64> + '_ {
        let (high, low) = ((bucket >> 16) as u32, bucket as u16);
        let slot = slot(high, self.bits);
        let (from, to) = (self.starts[slot] as usize, self.starts[slot + 1] as usize);
        let entries = &self.entries[from..to];
        let first = entries.partition_point(|entry| (entry.high, entry.low) < (high, low));
        let same = move |entry: &&Entry| (entry.high, entry.low) == (high, low);
        entries[first..].iter().take_while(same).map(|&entry| self.posting(entry).number)
    }

    /// All postings in order.
    pub(crate) fn postings(&self) -> impl Iterator<Item = Posting> + '_ {
        self.entries.iter().map(|&entry| self.posting(entry))
    }

    /// True if both could be one run.
    pub(crate) fn fits(&self, other: &Run) -> bool {
        self.base == other.base && self.len() + other.len() < u32::MAX as usize
    }

    /// The postings of both. They must fit.
    pub(crate) fn merge(&self, other: &Run) -> Run {
        let mut entries = Vec::with_capacity(self.len() + other.len());
        let (mut left, mut right) = (&self.entries[..], &other.entries[..]);
        while let ([a, rest_left @ ..], [b, rest_right @ ..]) = (left, right) {
            if a <= b {
                entries.push(*a);
                left = rest_left;
            } else {
                entries.push(*b);
                right = rest_right;
            }
        }
        entries.extend(left);
        entries.extend(right);
        Run::new(self.base, entries)
    }

    /// The run without the postings of some documents.
    pub(crate) fn without(&self, gone: impl Fn(u64) -> bool) -> Run {
        let kept = self.entries.iter().filter(|&&entry| !gone(self.posting(entry).number));
        Run::new(self.base, kept.copied().collect())
    }
}

fn slot(high: u32, bits: u32) -> usize {
    (u64::from(high) << bits >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posting(n: u64) -> Posting {
        Posting { bucket: n % 97 * 0xffff_1234_5677 % (1 << 48), number: n % 1000 + (n % 2) * (5 << 32) }
    }

    #[test]
    fn a_run_finds_what_was_put_in_newest_first() {
        let all: Vec<Posting> = (0..5000).map(posting).collect();
        let [low, high] = <[Run; 2]>::try_from(Run::of(all.clone())).ok().unwrap();
        assert!(!low.fits(&high));
        let (some, others) = all.split_at(1234);
        let halves = [some, others].map(|some| Run::of(some.to_vec()).remove(0));
        assert!(halves[0].fits(&halves[1]));
        let merged = halves[0].merge(&halves[1]);
        for bucket in (0..97).map(|n| posting(n).bucket).chain([1, (1 << 48) - 1]) {
            let mut expected: Vec<u64> = all
                .iter()
                .filter(|one| one.bucket == bucket && one.number < 1 << 32)
                .map(|one| one.number)
                .collect();
            expected.sort_unstable_by(|a, b| b.cmp(a));
            let mut merged: Vec<u64> = merged.bucket(bucket).collect();
            merged.dedup();
            expected.dedup();
            assert_eq!(low.bucket(bucket).collect::<Vec<_>>(), expected);
            assert_eq!(merged, expected);
            let even = low.without(|number| number % 4 == 0);
            assert!(even.bucket(bucket).eq(expected.iter().copied().filter(|number| number % 4 != 0)));
        }
        assert_eq!(low.numbers, (0, 998));
        assert!(high.postings().all(|posting| posting.number > 5 << 32));
    }
}
