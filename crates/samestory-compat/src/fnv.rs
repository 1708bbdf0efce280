//! FNV-1a, 64 bits: the word hash under [`compute_simhash`](super::simhash::compute_simhash).

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// The FNV-1a hash of some bytes; text is hashed as UTF-8.
///
/// ```
/// assert_eq!(samestory_compat::fnv::fnv1a_64(b"hello"), 11831194018420276491);
/// ```
pub const fn fnv1a_64(bytes: &[u8]) -> u64 {
    let mut hash = OFFSET_BASIS;
    let mut rest = bytes;
    // A `for` loop cannot run in a `const fn`.
    while let [byte, tail @ ..] = rest {
        hash = (hash ^ *byte as u64).wrapping_mul(PRIME);
        rest = tail;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vectors_come_out() {
        assert_eq!(fnv1a_64(b"hello"), 11831194018420276491);
        assert_eq!(fnv1a_64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a_64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a_64(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
