//! A bottom-K sketch: the K smallest hashes of a set, from which the comparison estimates containment. A fingerprint samples
//! 64 to 256 shingles, by the length of the text ([`SAMPLE`](super::SAMPLE), [`LONG_SAMPLE`](super::LONG_SAMPLE)); the index
//! posts the 16 smallest of them, or more of a long text.
//!
//! A member of both sets that lies below both bounds is in both samples. The fraction of one sample that
//! occurs in the other, below the lower bound, therefore estimates how much of one set is contained in the
//! other. MinHash lanes cannot do that: once the whole is much larger, they cannot tell a part from an
//! unrelated text.

/// The `K` smallest hashes of a set, ascending, and the size of the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample<const K: usize> {
    values: Vec<u32>,
    distinct: u32,
}

impl<const K: usize> Sample<K> {
    /// `least` must be ascending and distinct: the smallest of a set of `distinct` hashes.
    pub(super) fn new(least: Vec<u32>, distinct: u32) -> Sample<K> {
        Sample { values: least, distinct }
    }

    /// Samples a list of hashes, which may repeat.
    pub(super) fn from_hashes(mut hashes: Vec<u32>) -> Sample<K> {
        hashes.sort_unstable();
        hashes.dedup();
        // The count is encoded in two bytes.
        let distinct = u32::from(u16::try_from(hashes.len()).unwrap_or(u16::MAX));
        hashes.truncate(K);
        Sample { values: hashes, distinct }
    }

    /// Validates a decoded sample; `None` if no set has it.
    pub(super) fn checked(values: Vec<u32>, distinct: u32) -> Option<Sample<K>> {
        let ascending = values.is_sorted_by(|a, b| a < b);
        (ascending && values.len() <= K && values.len() <= distinct as usize)
            .then_some(Sample { values, distinct })
    }

    /// The hashes, ascending.
    pub fn values(&self) -> &[u32] {
        &self.values
    }

    /// Size of the whole set.
    pub fn distinct(&self) -> u32 {
        self.distinct
    }

    /// The sample contains every member of the set up to this hash.
    pub fn bound(&self) -> u32 {
        if self.distinct as usize <= self.values.len() {
            u32::MAX
        } else {
            self.values.last().copied().unwrap_or(u32::MAX)
        }
    }

    /// Counts our hashes that lie below both bounds, and those of them that occur in `whole`.
    pub fn found_in<const N: usize>(&self, whole: &Sample<N>) -> SampleOverlap {
        let bound = self.bound().min(whole.bound());
        let comparable = &self.values[..self.values.partition_point(|&value| value <= bound)];
        let mut rest = whole.values.iter().peekable();
        let found = comparable
            .iter()
            .filter(|&value| {
                while rest.next_if(|&other| other < value).is_some() {}
                rest.next_if(|&other| other == value).is_some()
            })
            .count();
        SampleOverlap { found: found as u32, of: comparable.len() as u32 }
    }
}

/// The result of [`Sample::found_in`]: `found` of `of` comparable hashes occur in the other sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleOverlap {
    /// Hashes that occur in the other sample.
    pub found: u32,
    /// Hashes that could be compared.
    pub of: u32,
}

impl SampleOverlap {
    /// The estimated containment; `None` if no hash could be compared.
    pub fn share(self) -> Option<f64> {
        (self.of > 0).then(|| f64::from(self.found) / f64::from(self.of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_part_is_fully_contained_in_the_whole() {
        let whole: Vec<u32> = (0..400).map(|n: u32| n.wrapping_mul(0x9e37_79b9)).collect();
        let (part, whole) =
            (Sample::<64>::from_hashes(whole[100..200].to_vec()), Sample::<64>::from_hashes(whole));
        let found = part.found_in(&whole);
        assert_eq!(found.found, found.of);
        assert!(found.of >= 8, "{found:?}");
        let share = whole.found_in(&part).share().unwrap();
        assert!((0.1..0.4).contains(&share), "a quarter of the whole is the part, not {share}");
    }

    #[test]
    fn an_empty_sample_has_no_containment() {
        let empty = Sample::<8>::from_hashes(vec![]);
        assert_eq!(empty.found_in(&empty).share(), None);
        assert_eq!(Sample::<8>::from_hashes(vec![1]).found_in(&empty).share(), Some(0.0));
    }

    proptest! {
        #[test]
        fn subsets_are_always_fully_contained(hashes in proptest::collection::vec(any::<u32>(), 1..200), take in 1usize..200) {
            let part = Sample::<16>::from_hashes(hashes[..take.min(hashes.len())].to_vec());
            let found = part.found_in(&Sample::<16>::from_hashes(hashes));
            prop_assert_eq!(found.found, found.of);
        }
    }
}
