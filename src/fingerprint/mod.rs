//! A text's fingerprint: all that is kept of it, in at most a kilobyte.
//!
//! | offset | bytes | field |
//! |-------:|------:|-------|
//! | 0 | 1 | layout version, 1 |
//! | 1 | 1 | [`Scheme`] |
//! | 2 | 4 | config hash: the settings the text was prepared with |
//! | 6 | 16 | content hash, XXH3-128 of the canonical text |
//! | 22 | 16 | SimHash 128 (its low half is SimHash 64) |
//! | 38 | 4 | tokens |
//! | 42 | 4 | distinct shingles |
//! | 46 | 2 | distinct numerals, at most 65535 |
//! | 48 | 1 | s, shingles in the sample, at most 64 |
//! | 49 | 1 | n, numerals kept, at most 32 |
//! | 50 | 512 | MinHash, 128 lanes |
//! | 562 | 4·s | sample, ascending |
//! | 562 + 4·s | 4·n | numerals, ascending |
//!
//! Numbers are little-endian. Equal texts have equal bytes.

mod distinct;
pub mod minhash;
mod sample;
pub mod simhash;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::text::language::{self, LANGUAGES, Language, Segment};
use crate::text::shingle::{Shingles, shingles};
use crate::text::{Options, Text};

pub use minhash::{LANES, Signature};
pub use sample::Sample;

/// How fingerprints are made. Numbers are never used twice; fingerprints of different schemes are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// XXH3 words, 128 lanes of multiply-add MinHash, SimHash over distinct words, the least 64 shingles.
    V1 = 1,
}

impl Scheme {
    /// The scheme that new fingerprints are made with.
    pub const CURRENT: Scheme = Scheme::V1;

    /// The number inside the bytes.
    pub const fn number(self) -> u8 {
        self as u8
    }

    fn from_number(number: u8) -> Option<Scheme> {
        (number == Scheme::V1.number()).then_some(Scheme::V1)
    }
}

/// Shingles kept as they are, to tell subsets: a text and a part of it keep the same ones of what they share.
pub const SAMPLE: usize = 64;
/// Numerals kept as they are.
pub const NUMERALS: usize = 32;

const LAYOUT: u8 = 1;
const FIXED: usize = 562;
/// The longest encoded fingerprint.
pub const MAX_BYTES: usize = FIXED + 4 * SAMPLE + 4 * NUMERALS;

/// All that is kept of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// How it was made.
    pub scheme: Scheme,
    /// Hash of the settings the text was prepared with.
    pub config: u32,
    /// XXH3-128 of the canonical text.
    pub content: u128,
    /// Majority vote of the words' hashes.
    pub simhash: u128,
    /// Words, or characters where the script has no spaces.
    pub tokens: u32,
    /// Distinct shingles.
    pub shingles: u32,
    /// Least values of 128 hash functions.
    pub minhash: Box<Signature>,
    /// The least shingles.
    pub sample: Sample<SAMPLE>,
    /// The numbers that stand in the text.
    pub numerals: Sample<NUMERALS>,
}

/// A hash of everything that leads from an article to its fingerprint and can differ between installations or
/// versions: equal hashes, comparable fingerprints.
pub fn config_hash(options: &Options) -> u32 {
    let mut description = format!("scheme {}, skeleton {}", Scheme::CURRENT.number(), options.skeleton);
    for language in LANGUAGES {
        let cut = match language.segment {
            Segment::Words => "words",
            Segment::Characters => "characters",
        };
        description.push_str(&format!(", {} {} {cut}", language.lang, language.shingle));
    }
    xxh3_64(description.as_bytes()) as u32
}

/// Fingerprints a prepared text. `config` is the [`config_hash`] of the options it was prepared with.
pub fn of_text(text: &Text, config: u32) -> Fingerprint {
    fingerprint(&text.canonical, language::row(text.language.lang), config)
}

/// Fingerprints canonical text. `config` is the hash of the settings that led from the article to this text.
pub fn fingerprint(canonical: &str, language: &Language, config: u32) -> Fingerprint {
    sketch(xxh3_128(canonical.as_bytes()), &shingles(canonical, language), config)
}

/// Fingerprints a text by its content hash and its shingles. Only their sets count.
pub fn sketch(content: u128, cut: &Shingles, config: u32) -> Fingerprint {
    let (shingles, least) = distinct::count_and_least(&cut.shingles, SAMPLE);
    let shingles = u32::try_from(shingles).unwrap_or(u32::MAX);
    Fingerprint {
        scheme: Scheme::CURRENT,
        config,
        content,
        simhash: simhash::simhash(&distinct::one_of_each(&cut.words)),
        tokens: cut.tokens,
        shingles,
        // The least value of a set is that of the list, whatever is repeated in it.
        minhash: Box::new(minhash::signature(&cut.shingles)),
        sample: Sample::new(least, shingles),
        numerals: Sample::of(cut.numerals.clone()),
    }
}

impl Fingerprint {
    /// Estimated Jaccard similarity of the shingle sets: the share of lanes that agree.
    pub fn similarity(&self, other: &Fingerprint) -> f64 {
        f64::from(minhash::equal_lanes(&self.minhash, &other.minhash)) / LANES as f64
    }

    /// The low half of the SimHash.
    pub fn simhash64(&self) -> u64 {
        self.simhash as u64
    }

    /// The bytes of the table above.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(MAX_BYTES);
        bytes.extend([LAYOUT, self.scheme.number()]);
        bytes.extend(self.config.to_le_bytes());
        bytes.extend(self.content.to_le_bytes());
        bytes.extend(self.simhash.to_le_bytes());
        bytes.extend(self.tokens.to_le_bytes());
        bytes.extend(self.shingles.to_le_bytes());
        bytes.extend(u16::try_from(self.numerals.distinct()).unwrap_or(u16::MAX).to_le_bytes());
        bytes.extend([self.sample.values().len() as u8, self.numerals.values().len() as u8]);
        for list in [&self.minhash[..], self.sample.values(), self.numerals.values()] {
            list.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        }
        bytes
    }

    /// Reads the bytes of the table above.
    ///
    /// # Errors
    /// The bytes are not a fingerprint this program can compare; treat what held them as damaged, or made by
    /// another version.
    pub fn decode(bytes: &[u8]) -> Result<Fingerprint, DecodeError> {
        let mut read = Reader { rest: bytes, len: bytes.len() };
        match read.array::<1>()? {
            [LAYOUT] => {}
            [other] => return Err(DecodeError::Layout(other)),
        }
        let [number] = read.array()?;
        let scheme = Scheme::from_number(number).ok_or(DecodeError::Scheme(number))?;
        let config = u32::from_le_bytes(read.array()?);
        let content = u128::from_le_bytes(read.array()?);
        let simhash = u128::from_le_bytes(read.array()?);
        let tokens = u32::from_le_bytes(read.array()?);
        let shingles = u32::from_le_bytes(read.array()?);
        let distinct_numerals = u32::from(u16::from_le_bytes(read.array()?));
        let [sampled, numerals] = read.array()?;
        let mut minhash = Box::new([0; LANES]);
        let lanes: [u8; 4 * LANES] = read.array()?;
        for (lane, &bytes) in minhash.iter_mut().zip(lanes.as_chunks().0) {
            *lane = u32::from_le_bytes(bytes);
        }
        let sample = Sample::checked(read.numbers(sampled)?, shingles).ok_or(DecodeError::Order)?;
        let numerals =
            Sample::checked(read.numbers(numerals)?, distinct_numerals).ok_or(DecodeError::Order)?;
        if !read.rest.is_empty() {
            return Err(DecodeError::Length(read.len));
        }
        Ok(Fingerprint { scheme, config, content, simhash, tokens, shingles, minhash, sample, numerals })
    }
}

/// Why bytes are not a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Written by another version.
    #[error("fingerprint layout {0} is not known here; this program writes layout {LAYOUT}")]
    Layout(u8),
    /// Made in another way.
    #[error("fingerprint scheme {0} is not known here; this program makes scheme {current}", current = Scheme::CURRENT.number())]
    Scheme(u8),
    /// Too short or too long.
    #[error("a fingerprint of {0} bytes is cut short or has bytes left over")]
    Length(usize),
    /// The lists are not ascending, or longer than they may be.
    #[error("the fingerprint's sample is out of order")]
    Order,
}

struct Reader<'a> {
    rest: &'a [u8],
    /// Of all the bytes, for the error.
    len: usize,
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Length(self.len))?;
        self.rest = rest;
        Ok(*array)
    }

    fn numbers(&mut self, count: u8) -> Result<Vec<u32>, DecodeError> {
        let short = DecodeError::Length(self.len);
        let (numbers, rest) = self.rest.split_at_checked(4 * usize::from(count)).ok_or(short)?;
        self.rest = rest;
        Ok(numbers.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect())
    }
}
