//! TLSH digests (128 buckets, one checksum byte), computed by `tlsh2`.

use std::fmt;

use tlsh2::{Tlsh128_1, TlshBuilder128_1};

use super::txtfp::canonicalize;

/// TLSH is not defined below this many bytes.
pub const MIN_BYTES: usize = 50;

/// Why there is no digest or no distance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlshError {
    /// The input is too short; compare such texts word for word instead.
    #[error("TLSH needs at least {MIN_BYTES} bytes, got {0}")]
    TooShort(usize),
    /// The bytes repeat too much for a meaningful digest; compare them word for word instead.
    #[error("TLSH needs more variety than these {0} bytes have")]
    TooUniform(usize),
    /// Not a digest: `T1` and 70 hex digits.
    #[error("not a TLSH digest: {0:?}")]
    NotADigest(String),
}

/// The digest of `bytes`: `T1` and 70 upper-case hex digits.
///
/// The bytes are hashed as they are; [`digest_text`] normalises first.
///
/// # Errors
///
/// [`TlshError::TooShort`] or [`TlshError::TooUniform`]: this input has no digest and never will.
pub fn digest(bytes: &[u8]) -> Result<String, TlshError> {
    if bytes.len() < MIN_BYTES {
        return Err(TlshError::TooShort(bytes.len()));
    }
    let tlsh = TlshBuilder128_1::build_from(bytes).ok_or(TlshError::TooUniform(bytes.len()))?;
    Ok(tlsh.hash().map(char::from).iter().collect())
}

/// The digest of a text after txtfp's normalisation: case, width and invisible characters make no difference.
///
/// # Errors
///
/// As for [`digest`], by the length of the normalised text.
///
/// ```
/// use samestory_compat::tlsh::{Band, digest_text, distance};
///
/// let text = "The ferry was late again on Tuesday, by 12 minutes, and nobody minded very much.";
/// let apart = distance(&digest_text(text)?, &digest_text(&text.to_uppercase())?)?;
/// assert_eq!(Band::for_distance(apart), Band::Identical);
/// # Ok::<(), samestory_compat::tlsh::TlshError>(())
/// ```
pub fn digest_text(text: &str) -> Result<String, TlshError> {
    digest(canonicalize(text).as_bytes())
}

/// The meaning of a distance between two texts, on the scale of the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Band {
    /// Distance 0.
    Identical,
    /// Distance 1 to 50.
    VerySimilar,
    /// Distance 51 to 100.
    Similar,
    /// Distance 101 to 200.
    SomewhatSimilar,
    /// Distance 201 and more.
    Different,
}

impl Band {
    /// The band of a distance.
    pub const fn for_distance(distance: u32) -> Band {
        match distance {
            0 => Band::Identical,
            1..=50 => Band::VerySimilar,
            51..=100 => Band::Similar,
            101..=200 => Band::SomewhatSimilar,
            _ => Band::Different,
        }
    }

    /// The distances in this band.
    pub const fn range(self) -> &'static str {
        match self {
            Band::Identical => "0",
            Band::VerySimilar => "1–50",
            Band::Similar => "51–100",
            Band::SomewhatSimilar => "101–200",
            Band::Different => "200+",
        }
    }
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Band::Identical => "identical",
            Band::VerySimilar => "very similar",
            Band::Similar => "similar",
            Band::SomewhatSimilar => "somewhat similar",
            Band::Different => "different",
        })
    }
}

/// The distance of two digests, lengths included: 0 for equal ones, without an upper bound.
///
/// # Errors
///
/// [`TlshError::NotADigest`], with the offending one.
pub fn distance(a: &str, b: &str) -> Result<u32, TlshError> {
    let parse = |digest: &str| digest.parse::<Tlsh128_1>().map_err(|_| TlshError::NotADigest(digest.into()));
    Ok(parse(a)?.diff(&parse(b)?, true).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOREM: &[u8] = b"Lorem ipsum dolor sit amet, consectetur adipiscing elit";

    #[test]
    fn a_known_text_has_its_known_digest() {
        let lorem = digest(LOREM).unwrap();
        assert_eq!(lorem, "T12D900249414E0BD59A46503F3ADA802AE50825242B2590561CF690599112214C051556");
        let duis = digest(
            b"Duis aute irure dolor in reprehenderit in voluptate velit esse cillum dolore eu fugiat nulla \
              pariatur. Excepteur sint occaecat cupidatat non proident, sunt in culpa qui officia",
        );
        assert_eq!(distance(&lorem, &lorem), Ok(0));
        assert_eq!(distance(&lorem, &duis.unwrap()), Ok(280));
    }

    #[test]
    fn fifty_bytes_are_enough_and_forty_nine_are_not() {
        assert!(digest(&LOREM[..50]).is_ok());
        assert_eq!(digest(&LOREM[..49]), Err(TlshError::TooShort(49)));
        assert_eq!(TlshError::TooShort(49).to_string(), "TLSH needs at least 50 bytes, got 49");
    }

    #[test]
    fn every_distance_has_its_band() {
        let bands = [0, 1, 50, 51, 100, 101, 200, 201].map(|distance| Band::for_distance(distance).range());
        assert_eq!(bands, ["0", "1–50", "1–50", "51–100", "51–100", "101–200", "101–200", "200+"]);
        assert_eq!(Band::for_distance(50).to_string(), "very similar");
    }

    #[test]
    fn one_letter_repeated_has_no_digest() {
        assert_eq!(digest(&[b'a'; 500]), Err(TlshError::TooUniform(500)));
    }

    #[test]
    fn anything_but_a_digest_has_no_distance() {
        let lorem = digest(LOREM).unwrap();
        for bad in ["", "T1", &lorem[2..], &lorem.replace('9', "é")] {
            assert_eq!(distance(&lorem, bad), Err(TlshError::NotADigest(bad.into())));
        }
    }
}
