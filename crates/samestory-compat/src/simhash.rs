//! SimHash of words as 16 hex digits, and the meaning of distances.
//!
//! ```
//! use samestory_compat::simhash::{compute_simhash, hamming_distance, match_type, MatchType};
//!
//! let hash = compute_simhash("Hello");
//! assert_eq!(hash, "a430d84680aabd0b");
//! assert_eq!(match_type(hamming_distance(&hash, "a430d84680aabd0a")?), MatchType::Near);
//! # Ok::<(), samestory_compat::simhash::InvalidHash>(())
//! ```

use std::fmt;

use super::fnv::fnv1a_64;
use super::votes::Votes;
use super::words::{ascii_words, unicode_words};

/// The default for the largest distance at which two hashes count as near-duplicates.
pub const MAX_DISTANCE: u32 = 3;

const DIGITS: usize = 16;
const BITS: u32 = 64;

/// A hash that is not exactly sixteen hex digits, in either case. Compute it again from the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Hashes must be 16-character hex strings")]
pub struct InvalidHash;

/// The meaning of a Hamming distance between two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchType {
    /// Distance 0.
    Exact,
    /// Distance 1 to 3.
    Near,
    /// Distance 4 to 10.
    Similar,
    /// Distance 11 and more.
    Different,
}

impl fmt::Display for MatchType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            MatchType::Exact => "exact",
            MatchType::Near => "near",
            MatchType::Similar => "similar",
            MatchType::Different => "different",
        })
    }
}

/// The SimHash of a text's ASCII words, as sixteen lower-case hex digits; sixteen zeros if it has none.
///
/// Equal to the original on any text. It lower-cases the text, replaces everything outside `[A-Za-z0-9_]` and
/// white space by a space, and lets each occurrence of a word of two characters or more vote with its FNV-1a
/// hash. Letters of other scripts are therefore lost: a Russian article hashes by its numbers and Latin names
/// alone. [`compute_simhash_unicode`] keeps them.
///
/// ```
/// use samestory_compat::simhash::compute_simhash;
///
/// assert_eq!(compute_simhash("hello2"), "a9bcb8cca21f87db");
/// assert_eq!(compute_simhash("2024 – 17:30"), "07ff1e07b48006d1");
/// assert_eq!(compute_simhash(""), "0000000000000000");
/// ```
pub fn compute_simhash(text: &str) -> String {
    simhash(ascii_words(&text.to_lowercase()))
}

/// [`compute_simhash`] with the words of every script. The two agree on ASCII text.
///
/// Words consist of letters, marks, decimal digits, joiners and connector punctuation, and are hashed as
/// UTF-8. Scripts without spaces between words make one word of each run between punctuation.
///
/// ```
/// use samestory_compat::simhash::{compute_simhash, compute_simhash_unicode};
///
/// assert_eq!(compute_simhash("Новости дня"), "0000000000000000");
/// assert_ne!(compute_simhash_unicode("Новости дня"), "0000000000000000");
/// assert_eq!(compute_simhash_unicode("News at 17:30"), compute_simhash("News at 17:30"));
/// ```
pub fn compute_simhash_unicode(text: &str) -> String {
    simhash(unicode_words(&text.to_lowercase()))
}

fn simhash<'a>(words: impl Iterator<Item = &'a str>) -> String {
    format!("{:016x}", words.map(|word| fnv1a_64(word.as_bytes())).collect::<Votes>().outcome())
}

/// Number of differing bits, 0 to 64.
///
/// # Errors
///
/// [`InvalidHash`] if either is not sixteen hex digits: treat that article as never seen, or hash its text
/// again.
pub fn hamming_distance(a: &str, b: &str) -> Result<u32, InvalidHash> {
    Ok((parse(a)? ^ parse(b)?).count_ones())
}

/// Number of differing bits, for hashes already known to be valid.
///
/// Compares digit by digit up to the length of the shorter hash and treats anything but a hex digit as 0, so
/// bad input gives a meaningless number but never a panic.
pub fn hamming_distance_unchecked(a: &str, b: &str) -> u32 {
    let value = |c: char| c.to_digit(16).unwrap_or(0);
    a.chars().zip(b.chars()).take(DIGITS).map(|(a, b)| (value(a) ^ value(b)).count_ones()).sum()
}

pub(super) fn parse(hash: &str) -> Result<u64, InvalidHash> {
    // `from_str_radix` alone would accept a leading plus sign.
    let valid = hash.len() == DIGITS && hash.bytes().all(|b| b.is_ascii_hexdigit());
    if valid { u64::from_str_radix(hash, 16).map_err(|_| InvalidHash) } else { Err(InvalidHash) }
}

/// 1 − distance / 64; larger distances count as 64.
pub fn similarity(distance: u32) -> f64 {
    1.0 - f64::from(distance.min(BITS)) / f64::from(BITS)
}

/// Names a distance: 0 exact, 1–3 near, 4–10 similar, 11 and more different.
pub const fn match_type(distance: u32) -> MatchType {
    match distance {
        0 => MatchType::Exact,
        1..=3 => MatchType::Near,
        4..=10 => MatchType::Similar,
        _ => MatchType::Different,
    }
}

/// True if two hashes are at most [`MAX_DISTANCE`] apart.
///
/// # Errors
///
/// [`InvalidHash`], as for [`hamming_distance`].
pub fn is_near_duplicate(a: &str, b: &str) -> Result<bool, InvalidHash> {
    is_near_duplicate_within(a, b, MAX_DISTANCE)
}

/// True if two hashes are at most `max_distance` apart.
///
/// # Errors
///
/// [`InvalidHash`], as for [`hamming_distance`].
pub fn is_near_duplicate_within(a: &str, b: &str, max_distance: u32) -> Result<bool, InvalidHash> {
    Ok(hamming_distance(a, b)? <= max_distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &str = "a430d84680aabd0b";

    #[test]
    fn one_word_hashes_to_its_own_fnv() {
        assert_eq!(compute_simhash("hello"), HELLO);
        assert_eq!(u64::from_str_radix(HELLO, 16), Ok(11831194018420276491));
    }

    #[test]
    fn text_without_words_is_sixteen_zeros() {
        for text in ["", " \n\t", "–!?", "a b 1", "\u{301}\u{301}", "\u{200b}\u{202e}", "новости"] {
            assert_eq!(compute_simhash(text), "0000000000000000", "{text:?}");
        }
        for text in ["", " \n\t", "–!?", "a я 我", "\u{202e}"] {
            assert_eq!(compute_simhash_unicode(text), "0000000000000000", "{text:?}");
        }
    }

    #[test]
    fn case_punctuation_and_single_characters_change_nothing() {
        for text in ["Hello", "HELLO!", "«hello»", "a hello 1", "hello hello", "x-hello-y", "hello—"] {
            assert_eq!(compute_simhash(text), HELLO, "{text:?}");
            assert_eq!(compute_simhash_unicode(text), HELLO, "{text:?}");
        }
    }

    #[test]
    fn digits_and_underscores_belong_to_words() {
        assert_eq!(compute_simhash("hello2"), "a9bcb8cca21f87db");
        assert_eq!(compute_simhash("2024 – 17:30"), "07ff1e07b48006d1");
        assert_ne!(compute_simhash("hello_"), HELLO);
    }

    #[test]
    fn letters_that_lower_case_to_ascii_count() {
        // The Kelvin sign becomes k; İ becomes i and a mark, which ends the word.
        assert_eq!(compute_simhash("\u{212a}m"), compute_simhash("km"));
        assert_eq!(compute_simhash("aİstanbul"), compute_simhash("ai stanbul"));
    }

    #[test]
    fn a_bit_is_set_only_where_more_than_half_of_the_words_have_it() {
        let hash = |word: &str| fnv1a_64(word.as_bytes());
        let (a, b, c) = (hash("aa"), hash("bb"), hash("cc"));
        assert_eq!(compute_simhash("aa bb"), format!("{:016x}", a & b));
        assert_eq!(compute_simhash("cc aa bb"), format!("{:016x}", a & b | a & c | b & c));
    }

    #[test]
    fn distances_are_those_of_the_published_vectors() {
        let pairs = [
            ("a1b2c3d4e5f6a7b8", "a1b2c3d4e5f6a7b9", 1),
            ("aaaaaaaaaaaaaaaa", "AAAAAAAAAAAAAAAA", 0),
            ("0000000000000000", "ffffffffffffffff", 64),
        ];
        for (a, b, distance) in pairs {
            assert_eq!(hamming_distance(a, b), Ok(distance));
            assert_eq!(hamming_distance_unchecked(a, b), distance);
        }
    }

    #[test]
    fn anything_but_sixteen_hex_digits_is_refused() {
        let bad = [
            "",
            "short",
            "a1b2c3d4e5f6a7b",
            "a1b2c3d4e5f6a7b88",
            "g1b2c3d4e5f6a7b8",
            "+1b2c3d4e5f6a7b8",
            "éééééééé",
        ];
        for hash in bad {
            assert_eq!(hamming_distance(hash, HELLO), Err(InvalidHash), "{hash:?}");
            assert_eq!(hamming_distance(HELLO, hash), Err(InvalidHash), "{hash:?}");
            assert!(hamming_distance_unchecked(hash, HELLO) <= 64, "{hash:?}");
        }
        assert_eq!(InvalidHash.to_string(), "Hashes must be 16-character hex strings");
    }

    #[test]
    fn every_distance_has_its_name_and_similarity() {
        let names: Vec<String> = [0, 1, 3, 4, 10, 11, 64].map(|d| match_type(d).to_string()).into();
        assert_eq!(names, ["exact", "near", "near", "similar", "similar", "different", "different"]);
        assert_eq!([0, 3, 32, 64, 65].map(similarity), [1.0, 0.953125, 0.5, 0.0, 0.0]);
    }

    #[test]
    fn near_means_three_bits_by_default() {
        assert_eq!(is_near_duplicate("0000000000000000", "0000000000000007"), Ok(true));
        assert_eq!(is_near_duplicate("0000000000000000", "000000000000000f"), Ok(false));
        assert_eq!(is_near_duplicate_within("0000000000000000", "000000000000000f", 4), Ok(true));
        assert_eq!(is_near_duplicate("0000000000000000", "f"), Err(InvalidHash));
    }
}
