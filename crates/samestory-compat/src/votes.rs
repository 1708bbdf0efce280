//! Charikar's vote: each hash votes on each of 64 bits, and a bit is set only by a clear majority.

/// Votes for and against each bit. Sums saturate, so that no weights can overflow and reverse a majority.
pub(super) struct Votes([i64; 64]);

impl Votes {
    pub(super) const fn new() -> Votes {
        Votes([0; 64])
    }

    pub(super) fn cast(&mut self, hash: u64, weight: i64) {
        for (bit, sum) in self.0.iter_mut().enumerate() {
            *sum = if hash >> bit & 1 == 1 { sum.saturating_add(weight) } else { sum.saturating_sub(weight) };
        }
    }

    /// A tie is a zero. Both definitions that we follow say so, and it makes "no votes" zero.
    pub(super) fn outcome(&self) -> u64 {
        let majority = |bits, (bit, sum): (usize, &i64)| bits | u64::from(*sum > 0) << bit;
        self.0.iter().enumerate().fold(0, majority)
    }
}

impl FromIterator<u64> for Votes {
    fn from_iter<I: IntoIterator<Item = u64>>(hashes: I) -> Votes {
        let mut votes = Votes::new();
        hashes.into_iter().for_each(|hash| votes.cast(hash, 1));
        votes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(hashes: &[u64]) -> u64 {
        hashes.iter().copied().collect::<Votes>().outcome()
    }

    #[test]
    fn one_vote_is_its_own_outcome() {
        assert_eq!(outcome(&[0xa430_d846_80aa_bd0b]), 0xa430_d846_80aa_bd0b);
    }

    #[test]
    fn a_tie_is_a_zero() {
        assert_eq!(outcome(&[]), 0);
        assert_eq!(outcome(&[0b1100, 0b1010]), 0b1000);
    }

    #[test]
    fn the_majority_wins_each_bit_alone() {
        assert_eq!(outcome(&[0b110, 0b101, 0b011]), 0b111);
    }

    #[test]
    fn huge_weights_saturate() {
        let mut votes = Votes::new();
        votes.cast(0b01, i64::MAX);
        votes.cast(0b01, i64::MAX);
        votes.cast(0b10, 1);
        assert_eq!(votes.outcome(), 0b01);
    }
}
