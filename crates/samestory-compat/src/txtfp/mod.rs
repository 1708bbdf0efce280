//! The crate `txtfp` 0.3 with its default normalisation, byte for byte.
//!
//! An archive of txtfp signatures can be compared with signatures computed here. The crate itself is only a
//! dev-dependency: `tests/compat/txtfp.rs` compares both on every code point, on random strings and on real
//! articles. This is written from its behaviour, on ICU4X tables.
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
mod error;
mod hash;
mod lsh;
mod metadata;
mod minhash;
mod simhash;
mod stream;
mod token;

pub use canonical::canonicalize;
pub use error::Error;
pub use hash::{DEFAULT_SEED, HashFamily};
pub use lsh::{LshIndex, LshIndexBuilder};
pub use metadata::{FingerprintMetadata, config_hash, config_hash_classical};
pub use minhash::{MinHashFingerprinter, MinHashSig, SCHEMA, jaccard};
pub use simhash::{IdfTable, SimHash64, SimHashFingerprinter, Weighting, cosine_estimate, hamming};
pub use stream::{DEFAULT_MAX_BYTES, Fingerprinter, Streaming};
#[cfg(feature = "jieba")]
pub use token::CjkTokenizer;
pub use token::{
    GraphemeTokenizer, ShingleTokenizer, Shingles, Tokenizer, UnknownTokenizer, WordTokenizer, graphemes,
    tokenizer, words,
};

/// Words per shingle under [`minhash`]. txtfp leaves the choice to its caller; 3 is what its examples and our
/// benchmarks use. For another number, or for graphemes, see [`MinHashFingerprinter`].
pub const SHINGLE_WORDS: usize = 3;

/// The MinHash of a text's word shingles, with 128 lanes; `None` if the text has no words.
pub fn minhash(text: &str) -> Option<MinHashSig<128>> {
    let tokenizer = ShingleTokenizer { k: SHINGLE_WORDS, inner: WordTokenizer };
    MinHashFingerprinter::new(tokenizer).fingerprint(text).ok()
}

/// The SimHash of a text's words, each counted as often as it occurs; `None` if the text has no words.
pub fn simhash(text: &str) -> Option<SimHash64> {
    SimHashFingerprinter::new(WordTokenizer).fingerprint(text).ok()
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_128_with_seed;

    use super::*;

    const FOX: &str = "The quick brown fox jumps over the lazy dog";

    /// Taken from txtfp 0.3.2, so that updating that crate cannot change both sides at once.
    #[test]
    fn the_signatures_of_a_known_text_are_fixed() {
        assert_eq!(simhash(FOX), Some(SimHash64(0xce0e_315a_6cc6_f940)));
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
        let (low, high) = HashFamily::Xxh3.hash(b"fox", DEFAULT_SEED);
        assert_eq!(simhash("Fox"), Some(SimHash64(low)));
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
