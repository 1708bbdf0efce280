//! MinHash with 128 seeded FNV-1a functions of 32 bits: 512 bytes, little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0..512 | 128 lanes, `u32` little-endian |
//!
//! FNV-1a mixes its last bytes poorly, so the lanes are not independent. The effect on the variance of the
//! estimate has not been measured yet.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::fnv::fnv1a_32_seeded;
use super::txtfp::Shingles;
use super::words::ascii_words;

/// Lanes in a signature.
pub const LANES: usize = 128;

/// Bytes in a stored signature.
pub const SIGNATURE_BYTES: usize = LANES * LANE;

/// Words in a shingle.
pub const SHINGLE_WORDS: usize = 3;

const LANE: usize = size_of::<u32>();

/// The seeds: xorshift32 from a fixed state. Stored signatures depend on every bit of them.
static SEEDS: LazyLock<[u32; LANES]> = LazyLock::new(|| {
    let mut state: u32 = 0x1234_5678;
    std::array::from_fn(|_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    })
});

/// A signature of 128 lanes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FnvMinHash([u32; LANES]);

/// Bytes of the wrong length: a signature has 512.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a signature has {SIGNATURE_BYTES} bytes, got {0}")]
pub struct InvalidSignature(pub usize);

/// The shingles that [`compute_minhash`] hashes, without repeats.
pub fn shingles(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    Shingles::new(ascii_words(&lower), SHINGLE_WORDS).iter().map(str::to_owned).collect()
}

/// The signature of a text's ASCII words in shingles of three; `None` if it has no words.
///
/// Words are those of [`compute_simhash`](super::simhash::compute_simhash). Fewer than three make one shingle
/// together.
///
/// ```
/// use samestory_compat::fnv_minhash::compute_minhash;
///
/// let monday = compute_minhash("The ferry was late again on Monday").unwrap();
/// let tuesday = compute_minhash("The ferry was late again on Tuesday").unwrap();
/// assert_eq!(monday.to_bytes().len(), 512);
/// assert!(monday.similarity(&tuesday) > 0.4);
/// assert_eq!(compute_minhash("–"), None);
/// ```
pub fn compute_minhash(text: &str) -> Option<FnvMinHash> {
    let lower = text.to_lowercase();
    FnvMinHash::of(Shingles::new(ascii_words(&lower), SHINGLE_WORDS).iter())
}

impl FnvMinHash {
    /// The signature of a set of ASCII shingles, in any order; `None` without shingles.
    pub fn of<'a>(shingles: impl IntoIterator<Item = &'a str>) -> Option<FnvMinHash> {
        let mut shingles = shingles.into_iter().peekable();
        shingles.peek()?;
        let mut lanes = [u32::MAX; LANES];
        for shingle in shingles {
            for (lane, seed) in lanes.iter_mut().zip(&*SEEDS) {
                *lane = fnv1a_32_seeded(shingle.as_bytes(), *seed).min(*lane);
            }
        }
        Some(FnvMinHash(lanes))
    }

    /// The lanes.
    pub const fn lanes(&self) -> &[u32; LANES] {
        &self.0
    }

    /// The estimated Jaccard similarity: the fraction of lanes that agree.
    pub fn similarity(&self, other: &FnvMinHash) -> f64 {
        let equal = self.0.iter().zip(&other.0).filter(|(a, b)| a == b).count();
        equal as f64 / LANES as f64
    }

    /// The bytes that the original stores.
    pub fn to_bytes(&self) -> [u8; SIGNATURE_BYTES] {
        let mut bytes = [0; SIGNATURE_BYTES];
        for (bytes, lane) in bytes.as_chunks_mut::<LANE>().0.iter_mut().zip(&self.0) {
            *bytes = lane.to_le_bytes();
        }
        bytes
    }

    /// Parses the bytes that the original stores.
    ///
    /// # Errors
    ///
    /// [`InvalidSignature`] unless there are 512 bytes; hash the text again.
    pub fn from_bytes(bytes: &[u8]) -> Result<FnvMinHash, InvalidSignature> {
        let bytes: &[u8; SIGNATURE_BYTES] = bytes.try_into().map_err(|_| InvalidSignature(bytes.len()))?;
        let mut hash = FnvMinHash([0; LANES]);
        for (lane, bytes) in hash.0.iter_mut().zip(bytes.as_chunks::<LANE>().0) {
            *lane = u32::from_le_bytes(*bytes);
        }
        Ok(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FERRY: &str = "The ferry was late again on Tuesday, by 12 minutes";

    #[test]
    fn stored_bytes_read_back() {
        let hash = compute_minhash(FERRY).unwrap();
        let bytes = hash.to_bytes();
        assert_eq!(bytes[..4], hash.lanes()[0].to_le_bytes());
        assert_eq!(FnvMinHash::from_bytes(&bytes), Ok(hash));
        assert_eq!(FnvMinHash::from_bytes(&bytes[1..]), Err(InvalidSignature(511)));
    }

    #[test]
    fn order_and_repeats_of_shingles_change_nothing() {
        assert_eq!(FnvMinHash::of(["a b c", "b c d"]), FnvMinHash::of(["b c d", "a b c", "b c d"]));
    }

    #[test]
    fn fewer_than_three_words_make_one_shingle() {
        assert_eq!(compute_minhash("Late ferry"), FnvMinHash::of(["late ferry"]));
        assert_eq!(compute_minhash("a b c"), None);
    }
}
