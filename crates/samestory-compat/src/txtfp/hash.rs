//! The two hash families that txtfp's fingerprints are built on.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The default seed of every fingerprint.
pub const DEFAULT_SEED: u64 = 0x00C0_FFEE_5EED;

/// The hash function that turns a token into 128 bits.
///
/// Signatures of different families cannot be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum HashFamily {
    /// XXH3, 128 bits. The default since txtfp 0.2.
    #[default]
    #[serde(rename = "xxh3-64")]
    Xxh3,
    /// MurmurHash3 x64 128, with a 64-bit seed for both halves.
    #[serde(rename = "mmh3-x64-128")]
    Murmur3,
}

impl HashFamily {
    /// The name in [`config_hash_classical`](super::config_hash_classical); txtfp names XXH3 after the width
    /// of a lane.
    pub const fn as_str(self) -> &'static str {
        match self {
            HashFamily::Xxh3 => "xxh3-64",
            HashFamily::Murmur3 => "mmh3-x64-128",
        }
    }

    /// The low and the high half of a token's hash.
    ///
    /// ```
    /// use samestory_compat::txtfp::HashFamily;
    ///
    /// assert_eq!(HashFamily::Murmur3.hash(b"hello", 0), (0xcbd8a7b341bd9b02, 0x5b1e906a48ae1d19));
    /// ```
    pub fn hash(self, token: &[u8], seed: u64) -> (u64, u64) {
        match self {
            HashFamily::Xxh3 => {
                let hash = xxh3_128_with_seed(token, seed);
                (hash as u64, (hash >> 64) as u64)
            }
            HashFamily::Murmur3 => murmur3(token, seed),
        }
    }
}

/// MurmurHash3 x64 128. Not the crate `murmur3`: its seed has 32 bits, and txtfp's has 64.
fn murmur3(bytes: &[u8], seed: u64) -> (u64, u64) {
    const FIRST: u64 = 0x87c3_7b91_1142_53d5;
    const SECOND: u64 = 0x4cf5_ad43_2745_937f;
    let mix_low = |lane: u64| lane.wrapping_mul(FIRST).rotate_left(31).wrapping_mul(SECOND);
    let mix_high = |lane: u64| lane.wrapping_mul(SECOND).rotate_left(33).wrapping_mul(FIRST);

    let (mut low, mut high) = (seed, seed);
    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        let [one, two] = halves(block);
        low ^= mix_low(one);
        low = low.rotate_left(27).wrapping_add(high).wrapping_mul(5).wrapping_add(0x52dc_e729);
        high ^= mix_high(two);
        high = high.rotate_left(31).wrapping_add(low).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    // The tail is padded with zeros, which leave both halves unchanged.
    let mut block = [0; 16];
    block[..tail.len()].copy_from_slice(tail);
    let [one, two] = halves(&block);
    low ^= mix_low(one);
    high ^= mix_high(two);

    low ^= bytes.len() as u64;
    high ^= bytes.len() as u64;
    low = low.wrapping_add(high);
    high = high.wrapping_add(low);
    (low, high) = (finish(low), finish(high));
    low = low.wrapping_add(high);
    (low, high.wrapping_add(low))
}

fn halves(block: &[u8; 16]) -> [u64; 2] {
    let block = u128::from_le_bytes(*block);
    [block as u64, (block >> 64) as u64]
}

/// Spreads every bit over the whole word.
fn finish(mut word: u64) -> u64 {
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        word = (word ^ (word >> 33)).wrapping_mul(factor);
    }
    word ^ (word >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the reference implementation, SMHasher.
    #[test]
    fn hashes_match_the_published_murmur_vectors() {
        assert_eq!(murmur3(b"", 0), (0, 0));
        assert_eq!(
            murmur3(b"The quick brown fox jumps over the lazy dog", 0),
            (0xe34b_bc7b_bc07_1b6c, 0x7a43_3ca9_c49a_9347)
        );
    }
}
