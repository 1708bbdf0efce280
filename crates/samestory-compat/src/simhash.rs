//! SimHash of words as 16 hex digits, and what its distances mean.
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

use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
use icu_properties::{CodePointMapData, CodePointMapDataBorrowed};

use super::fnv::fnv1a_64;
use super::votes::Votes;

/// The largest distance at which two hashes still count as near-duplicates, unless the caller says otherwise.
pub const MAX_DISTANCE: u32 = 3;

const DIGITS: usize = 16;
const BITS: u32 = 64;

/// A hash that is not exactly sixteen hex digits, of either case. Compute it again from the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Hashes must be 16-character hex strings")]
pub struct InvalidHash;

/// What a Hamming distance says about two texts.
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

/// The SimHash of a text's words, as sixteen lower-case hex digits; without words, sixteen zeros.
///
/// The text is lower-cased. A word is then a longest run of alphabetic characters and combining marks with at
/// least two alphabetic ones among them; everything else, digits and apostrophes too, stands between words.
/// Marks belong to the word because viramas, nuktas and decomposed accents are not alphabetic, and without
/// them Hindi would fall into pieces. Each occurrence of a word votes with the FNV-1a hash of its UTF-8
/// bytes.
pub fn compute_simhash(text: &str) -> String {
    format!(
        "{:016x}",
        words(&text.to_lowercase()).map(|word| fnv1a_64(word.as_bytes())).collect::<Votes>().outcome()
    )
}

fn words(lower: &str) -> impl Iterator<Item = &str> {
    lower
        .split(|c: char| !c.is_alphabetic() && !is_mark(c))
        .filter(|run| run.chars().filter(|c| c.is_alphabetic()).nth(1).is_some())
}

fn is_mark(c: char) -> bool {
    const CATEGORY: CodePointMapDataBorrowed<'static, GeneralCategory> = CodePointMapData::new();
    !c.is_ascii() && GeneralCategoryGroup::Mark.contains(CATEGORY.get(c))
}

/// How many bits differ, 0 to 64.
///
/// # Errors
///
/// [`InvalidHash`] if either is not sixteen hex digits: treat that article as never seen, or hash its text
/// again.
pub fn hamming_distance(a: &str, b: &str) -> Result<u32, InvalidHash> {
    Ok((parse(a)? ^ parse(b)?).count_ones())
}

/// How many bits differ, for hashes already known to be valid.
///
/// Compares digit by digit as far as both go and takes what is not a hex digit as 0, so bad input gives a
/// meaningless number and never a panic.
pub fn hamming_distance_unchecked(a: &str, b: &str) -> u32 {
    let value = |c: char| c.to_digit(16).unwrap_or(0);
    a.chars().zip(b.chars()).take(DIGITS).map(|(a, b)| (value(a) ^ value(b)).count_ones()).sum()
}

pub(super) fn parse(hash: &str) -> Result<u64, InvalidHash> {
    // `from_str_radix` alone would take a leading plus sign.
    let valid = hash.len() == DIGITS && hash.bytes().all(|b| b.is_ascii_hexdigit());
    if valid { u64::from_str_radix(hash, 16).map_err(|_| InvalidHash) } else { Err(InvalidHash) }
}

/// 1 − distance / 64; distances past 64 do not exist and count as 64.
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

/// Whether two hashes are at most [`MAX_DISTANCE`] apart.
///
/// # Errors
///
/// [`InvalidHash`], as for [`hamming_distance`].
pub fn is_near_duplicate(a: &str, b: &str) -> Result<bool, InvalidHash> {
    is_near_duplicate_within(a, b, MAX_DISTANCE)
}

/// Whether two hashes are at most `max_distance` apart.
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
        for text in ["", " \n\t", "2024 – 17:30 !", "a b c", "\u{301}\u{301}", "\u{200b}\u{202e}"] {
            assert_eq!(compute_simhash(text), "0000000000000000", "{text:?}");
        }
    }

    #[test]
    fn case_digits_punctuation_and_single_letters_change_nothing() {
        for text in ["Hello", "HELLO!", "«hello»", "a hello 1", "hello hello", "hello2", "x-hello_y"] {
            assert_eq!(compute_simhash(text), HELLO, "{text:?}");
        }
    }

    #[test]
    fn a_bit_is_set_only_where_more_than_half_of_the_words_have_it() {
        let hash = |word: &str| fnv1a_64(word.as_bytes());
        let (a, b, c) = (hash("aa"), hash("bb"), hash("cc"));
        assert_eq!(compute_simhash("aa bb"), format!("{:016x}", a & b));
        assert_eq!(compute_simhash("cc aa bb"), format!("{:016x}", a & b | a & c | b & c));
    }

    #[test]
    fn marks_stay_inside_their_word() {
        assert_eq!(words("क्या हिन्दी").collect::<Vec<_>>(), ["क्या", "हिन्दी"]);
        assert_eq!(words("cafe\u{301}s").collect::<Vec<_>>(), ["cafe\u{301}s"]);
        assert_eq!(words("أَهْلًا").count(), 1);
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
    fn what_is_not_sixteen_hex_digits_is_refused() {
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
    fn near_means_three_bits_unless_told_otherwise() {
        assert_eq!(is_near_duplicate("0000000000000000", "0000000000000007"), Ok(true));
        assert_eq!(is_near_duplicate("0000000000000000", "000000000000000f"), Ok(false));
        assert_eq!(is_near_duplicate_within("0000000000000000", "000000000000000f", 4), Ok(true));
        assert_eq!(is_near_duplicate("0000000000000000", "f"), Err(InvalidHash));
    }
}
