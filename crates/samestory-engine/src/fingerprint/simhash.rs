//! SimHash: 128 bits, each the majority vote of the words' hashes.
//!
//! Texts that share most of their words differ in few bits. The 64-bit SimHash is the low half: the bits are voted on
//! independently, so half of them are a SimHash too. The tests keep the fast version equal to [`plain`].

/// The specification: counts the votes of every bit.
pub fn plain(words: &[u64]) -> u128 {
    let mut votes = [0i64; 128];
    for &word in words {
        let ballot = ballot(word);
        for (bit, votes) in votes.iter_mut().enumerate() {
            *votes += if ballot >> bit & 1 == 1 { 1 } else { -1 };
        }
    }
    votes.iter().enumerate().fold(0, |hash, (bit, &votes)| hash | u128::from(votes > 0) << bit)
}

/// 128 votes from a word's 64-bit hash.
#[inline(always)]
fn ballot(word: u64) -> u128 {
    let high = (word ^ 0xa076_1d64_78bd_642f).wrapping_mul(0xe703_7ed1_a0b4_28db);
    u128::from(word) | u128::from(high ^ (high >> 29)) << 64
}

/// Ballots that are summed before their count is carried.
const TOGETHER: usize = 8;

/// The hash of [`plain`], with the counters of all 128 bits side by side: each `u128` holds one binary digit
/// of every count.
pub fn simhash(words: &[u64]) -> u128 {
    // 32 digits count more words than a text can have.
    let mut digits = [0u128; 32];
    // No count has more digits than the number of words, so no carry goes further than this.
    let highest = (usize::BITS - words.len().leading_zeros()).clamp(4, 32) as usize;
    let (blocks, rest) = words.as_chunks::<TOGETHER>();
    for block in blocks {
        // A tree of full adders: eight ballots become one carry into the eights.
        let [a, b, c, d, e, f, g, h] = block.map(ballot);
        let (ones, twos_a) = add(digits[0], a, b);
        let (ones, twos_b) = add(ones, c, d);
        let (twos, fours_a) = add(digits[1], twos_a, twos_b);
        let (ones, twos_a) = add(ones, e, f);
        let (ones, twos_b) = add(ones, g, h);
        let (twos, fours_b) = add(twos, twos_a, twos_b);
        let (fours, eights) = add(digits[2], fours_a, fours_b);
        (digits[0], digits[1], digits[2]) = (ones, twos, fours);
        carry(&mut digits[3..highest], eights);
    }
    for &word in rest {
        carry(&mut digits[..highest], ballot(word));
    }
    greater_than(&digits, words.len() as u64 / 2)
}

/// A full adder per bit: returns sum and carry.
#[inline]
fn add(a: u128, b: u128, c: u128) -> (u128, u128) {
    let half = a ^ b;
    (half ^ c, (a & b) | (half & c))
}

#[inline]
fn carry(digits: &mut [u128], mut carry: u128) {
    for digit in digits {
        (*digit, carry) = (*digit ^ carry, *digit & carry);
    }
}

/// The bits whose count exceeds `bound`, compared digit by digit from the highest.
fn greater_than(digits: &[u128; 32], bound: u64) -> u128 {
    let (mut greater, mut equal) = (0u128, u128::MAX);
    for (position, &digit) in digits.iter().enumerate().rev() {
        let bound = if bound >> position & 1 == 1 { u128::MAX } else { 0 };
        greater |= equal & digit & !bound;
        equal &= !(digit ^ bound);
    }
    greater
}

/// Hamming distance: the number of bits in which two hashes differ.
pub fn distance(a: u128, b: u128) -> u32 {
    (a ^ b).count_ones()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_words_no_bits() {
        assert_eq!(simhash(&[]), 0);
    }

    #[test]
    fn one_word_is_its_own_ballot() {
        assert_eq!(simhash(&[42]), ballot(42));
    }

    proptest! {
        #[test]
        fn the_fast_count_equals_the_plain_one(words in proptest::collection::vec(any::<u64>(), 0..300)) {
            prop_assert_eq!(simhash(&words), plain(&words));
        }
    }
}
