//! What the crate `txtfp` 0.3 computes with its defaults, byte for byte.
//!
//! An archive of txtfp signatures can be compared with signatures made here. The crate itself is only a
//! dev-dependency: `tests/it/txtfp.rs` holds both side by side on every code point, on random strings and on
//! real articles. Written from its behaviour, on ICU4X tables.
//!
//! ```
//! use samestory_compat::txtfp;
//!
//! let a = txtfp::minhash("The quick brown fox jumps over the lazy dog").unwrap();
//! let b = txtfp::minhash("the QUICK brown fox jumps over the lazy dog!").unwrap();
//! assert_eq!(a.similarity(&b), 1.0);
//! assert_eq!(a.to_bytes().len(), 1032);
//! ```

mod canonical;
mod minhash;
mod token;

use xxhash_rust::xxh3::xxh3_128_with_seed;

pub use canonical::canonicalize;
pub use minhash::{LANES, LayoutError, MinHash, SIGNATURE_BYTES};
pub use token::{Shingles, graphemes, words};

use super::votes::Votes;

/// Words per shingle under [`minhash`]. txtfp leaves the choice to its caller; 3 is what its examples and our
/// benchmarks use. For another number, or for graphemes, see [`MinHash::of`].
pub const SHINGLE_WORDS: usize = 3;

/// The MinHash of a text's word shingles; `None` where the text has no words, which txtfp calls an empty
/// document.
pub fn minhash(text: &str) -> Option<MinHash> {
    let canonical = canonicalize(text);
    MinHash::of(Shingles::new(words(&canonical), SHINGLE_WORDS).iter())
}

/// The 64-bit SimHash of a text's words, each counted as often as it occurs; `None` where there are none.
///
/// txtfp stores it as these eight bytes, little-endian.
pub fn simhash(text: &str) -> Option<u64> {
    let canonical = canonicalize(text);
    let mut hashes = words(&canonical).map(|word| hash_token(word).0).peekable();
    hashes.peek()?;
    Some(hashes.collect::<Votes>().outcome())
}

/// The low and high half of a token's XXH3-128, under the seed txtfp uses throughout.
fn hash_token(token: &str) -> (u64, u64) {
    const SEED: u64 = 0x00C0_FFEE_5EED;
    let hash = xxh3_128_with_seed(token.as_bytes(), SEED);
    (hash as u64, (hash >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOX: &str = "The quick brown fox jumps over the lazy dog";

    /// Taken from txtfp 0.3.2, so that an update of that crate cannot move both sides at once.
    #[test]
    fn the_signatures_of_a_known_text_are_fixed() {
        assert_eq!(simhash(FOX), Some(0xce0e_315a_6cc6_f940));
        assert_eq!(minhash(FOX).unwrap().lanes()[..2], [0x7356_d04b_affd_6060, 0x26e4_1fc9_08ac_7c47]);
        let bytes = minhash(FOX).unwrap().to_bytes();
        assert_eq!(xxh3_128_with_seed(&bytes, 0), 0xb0c4_0422_b5b0_b7c8_d4df_7bcd_f404_fcc1);
    }

    #[test]
    fn a_text_without_words_has_no_signature() {
        for text in ["", " \n", "…!?", "\u{200b}\u{202e}", "\u{301}"] {
            assert_eq!(minhash(text), None, "{text:?}");
            assert_eq!(simhash(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_single_word_hashes_to_itself() {
        let (low, high) = hash_token("fox");
        assert_eq!(simhash("Fox"), Some(low));
        let lanes = *minhash("Fox").unwrap().lanes();
        assert_eq!(lanes[..2], [low, low.wrapping_add(high)]);
        assert_eq!(lanes[127], low.wrapping_add(high.wrapping_mul(127)));
    }

    #[test]
    fn repeats_count_for_simhash_and_not_for_minhash() {
        let twice = format!("{FOX} {FOX} {FOX}");
        let more = format!("{twice} {FOX}");
        assert_eq!(minhash(&twice), minhash(&more));
        assert_ne!(simhash("fox dog"), simhash("fox dog dog"));
    }
}
