//! FNV-1a: 64 bits under [`compute_simhash`](super::simhash::compute_simhash), 32 seeded bits under
//! [`compute_minhash`](super::fnv_minhash::compute_minhash).

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;
const OFFSET_BASIS_32: u32 = 0x811c_9dc5;
const PRIME_32: u32 = 0x0100_0193;

/// The 64-bit FNV-1a hash of `bytes`.
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

/// The FNV-1a hash of a text as the original computes it: over the low byte of each UTF-16 code unit.
///
/// On ASCII it equals [`fnv1a_64`]. Elsewhere, texts that differ only in the high bytes collide, so use it to
/// match existing hashes and not for new ones.
///
/// ```
/// use samestory_compat::fnv::{fnv1a_64, fnv1a_64_utf16};
///
/// assert_eq!(fnv1a_64_utf16("hello"), fnv1a_64(b"hello"));
/// assert_eq!(fnv1a_64_utf16("д"), fnv1a_64(&[0x34])); // U+0434
/// ```
pub fn fnv1a_64_utf16(text: &str) -> u64 {
    text.encode_utf16().fold(OFFSET_BASIS, |hash, unit| (hash ^ u64::from(unit & 0xff)).wrapping_mul(PRIME))
}

/// The 32-bit FNV-1a hash of `bytes`, with a seed XORed into the offset basis.
///
/// ```
/// assert_eq!(samestory_compat::fnv::fnv1a_32_seeded(b"foobar", 0), 0xbf9cf968);
/// ```
pub fn fnv1a_32_seeded(bytes: &[u8], seed: u32) -> u32 {
    bytes.iter().fold(OFFSET_BASIS_32 ^ seed, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(PRIME_32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_match_the_published_vectors() {
        assert_eq!(fnv1a_64(b"hello"), 11831194018420276491);
        assert_eq!(fnv1a_64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a_64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a_64(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
