//! The least K members of a set of hashes: small enough to keep, and true to subsets.
//!
//! Of two sets, every member below both bounds is in both samples if it is in both sets. So the share of one
//! sample found in the other, below the lower bound, estimates how much of one set lies in the other; Jaccard
//! lanes cannot tell a part from a stranger once the whole is much larger.

/// The least `K` hashes of a set, ascending, and how many the set has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample<const K: usize> {
    values: Vec<u32>,
    distinct: u32,
}

impl<const K: usize> Sample<K> {
    /// `least` must be ascending and without repeats: the least of a set of `distinct` hashes.
    pub(super) fn new(least: Vec<u32>, distinct: u32) -> Sample<K> {
        Sample { values: least, distinct }
    }

    /// Samples a list of hashes with repeats.
    pub(super) fn of(mut hashes: Vec<u32>) -> Sample<K> {
        hashes.sort_unstable();
        hashes.dedup();
        // The count is kept in two bytes.
        let distinct = u32::from(u16::try_from(hashes.len()).unwrap_or(u16::MAX));
        hashes.truncate(K);
        Sample { values: hashes, distinct }
    }

    /// As read from bytes: refused if it could not have been made here.
    pub(super) fn checked(values: Vec<u32>, distinct: u32) -> Option<Sample<K>> {
        let ascending = values.is_sorted_by(|a, b| a < b);
        (ascending && values.len() <= K && values.len() <= distinct as usize)
            .then_some(Sample { values, distinct })
    }

    /// The hashes, ascending.
    pub fn values(&self) -> &[u32] {
        &self.values
    }

    /// How many distinct hashes the whole set has.
    pub fn distinct(&self) -> u32 {
        self.distinct
    }

    /// Up to which hash this sample holds the whole set.
    pub fn bound(&self) -> u32 {
        if self.distinct as usize <= self.values.len() {
            u32::MAX
        } else {
            self.values.last().copied().unwrap_or(u32::MAX)
        }
    }

    /// How many of our hashes can be looked for in `whole`, and how many of those are there.
    pub fn found_in<const N: usize>(&self, whole: &Sample<N>) -> Found {
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
        Found { found: found as u32, of: comparable.len() as u32 }
    }
}

/// `found` of `of` sampled hashes are in the other set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// How many were found.
    pub found: u32,
    /// How many were looked for.
    pub of: u32,
}

impl Found {
    /// The share that was found; none where nothing could be looked for.
    pub fn share(self) -> Option<f64> {
        (self.of > 0).then(|| f64::from(self.found) / f64::from(self.of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_part_is_found_whole_in_the_whole() {
        let whole: Vec<u32> = (0..400).map(|n: u32| n.wrapping_mul(0x9e37_79b9)).collect();
        let (part, whole) = (Sample::<64>::of(whole[100..200].to_vec()), Sample::<64>::of(whole));
        let found = part.found_in(&whole);
        assert_eq!(found.found, found.of);
        assert!(found.of >= 8, "{found:?}");
        let share = whole.found_in(&part).share().unwrap();
        assert!((0.1..0.4).contains(&share), "a quarter of the whole is the part, not {share}");
    }

    #[test]
    fn nothing_can_be_found_in_nothing() {
        let empty = Sample::<8>::of(vec![]);
        assert_eq!(empty.found_in(&empty).share(), None);
        assert_eq!(Sample::<8>::of(vec![1]).found_in(&empty).share(), Some(0.0));
    }

    proptest! {
        #[test]
        fn subsets_are_always_found_whole(hashes in proptest::collection::vec(any::<u32>(), 1..200), take in 1usize..200) {
            let part = Sample::<16>::of(hashes[..take.min(hashes.len())].to_vec());
            let found = part.found_in(&Sample::<16>::of(hashes));
            prop_assert_eq!(found.found, found.of);
        }
    }
}
