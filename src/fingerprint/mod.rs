//! A text's fingerprint: all that is kept of it, about 730 bytes for a typical article.
//!
//! | offset | bytes | field |
//! |-------:|------:|-------|
//! | 0 | 1 | layout version, 2 |
//! | 1 | 1 | [`Scheme`] |
//! | 2 | 4 | config hash: the settings the text was prepared with |
//! | 6 | 16 | content hash, XXH3-128 of the normalised text |
//! | 22 | 16 | SimHash 128 (its low half is SimHash 64) |
//! | 38 | 4 | tokens |
//! | 42 | 4 | distinct shingles |
//! | 46 | 2 | distinct shingles of the opening |
//! | 48 | 2 | distinct numbers, at most 65535 |
//! | 50 | 2 | distinct names, at most 65535 |
//! | 52 | 2 | s, shingles in the sample: 64, and up to 256 for long texts |
//! | 54 | 1 | o, shingles in the sample of the opening, at most 16 |
//! | 55 | 1 | n, numbers kept, at most 32 |
//! | 56 | 1 | p, names kept, at most 32 |
//! | 57 | 1 | t, words of the headline, at most 24 |
//! | 58 | 256 | MinHash, 16 bits of each of 128 lanes |
//! | 314 | 4·s | sample, ascending |
//! | … | 4·o | sample of the opening, ascending |
//! | … | 4·n | numbers, ascending |
//! | … | 2·p | names, ascending |
//! | … | 2·t | words of the headline, ascending |
//!
//! Numbers are little-endian. Equal texts under equal headlines have equal bytes.

mod distinct;
pub mod minhash;
mod sample;
pub mod simhash;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::text::language::{self, LANGUAGES, Language, Segment, TABLE_VERSION};
use crate::text::shingle::{Shingles, shingles};
use crate::text::{self, Options, Text};

pub use minhash::{LANES, Signature};
pub use sample::Sample;

/// How fingerprints are made. Numbers are never used twice; fingerprints of different schemes are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// XXH3 words, 16 bits of 128 lanes of multiply-add MinHash, SimHash, the least shingles of the text and of its
    /// opening, numbers, names, words of the headline.
    V2 = 2,
}

impl Scheme {
    /// The scheme that new fingerprints are made with.
    pub const CURRENT: Scheme = Scheme::V2;

    /// The number inside the bytes.
    pub const fn number(self) -> u8 {
        self as u8
    }

    fn from_number(number: u8) -> Option<Scheme> {
        (number == Scheme::V2.number()).then_some(Scheme::V2)
    }
}

/// Shingles kept of a typical text, to tell subsets: a text and a part of it keep the same ones of what they share.
pub const SAMPLE: usize = 64;
/// Shingles kept of a long text, so that an extract of it has some of them.
pub const LONG_SAMPLE: usize = 256;
/// One shingle in so many is kept of a long text.
const SAMPLED: usize = 16;
/// Shingles kept of the opening.
pub const OPENING: usize = 16;
/// Numbers kept.
pub const NUMBERS: usize = 32;
/// Names kept.
pub const NAMES: usize = 32;
/// Words kept of the headline.
pub const TITLE: usize = 24;

const LAYOUT: u8 = 2;
const FIXED: usize = 58 + 2 * LANES;
/// The longest encoded fingerprint.
pub const MAX_BYTES: usize = FIXED + 4 * (LONG_SAMPLE + OPENING + NUMBERS) + 2 * (NAMES + TITLE);

/// All that is kept of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// How it was made.
    pub scheme: Scheme,
    /// Hash of the settings the text was prepared with.
    pub config: u32,
    /// XXH3-128 of the normalised text.
    pub content: u128,
    /// Majority vote of the words' hashes.
    pub simhash: u128,
    /// Words, or characters where the script has no spaces.
    pub tokens: u32,
    /// Distinct shingles.
    pub shingles: u32,
    /// Sixteen bits of the least values of 128 hash functions.
    pub minhash: Box<Signature>,
    /// The least shingles.
    pub sample: Sample<LONG_SAMPLE>,
    /// The least shingles of the opening.
    pub opening: Sample<OPENING>,
    /// The numbers in the text, in digits or in words, and the mark of a page notice.
    pub numerals: Sample<NUMBERS>,
    /// The capitalised words inside sentences.
    pub names: Sample<NAMES>,
    /// The words of the headline. Evidence beside the text; none where there is no headline.
    pub title: Sample<TITLE>,
}

/// A hash of everything that leads from an article to its fingerprint and can differ between installations or
/// versions: equal hashes, comparable fingerprints.
pub fn config_hash(options: &Options) -> u32 {
    let Options { skeleton, fold_accents, fold_serbian, fold_han, trust, max_raw_bytes: _, max_bytes: _ } =
        options;
    let mut description = format!(
        "scheme {}, skeleton {skeleton}, accents {fold_accents}, serbian {fold_serbian}, han {fold_han}",
        Scheme::CURRENT.number()
    );
    // Where an article lives decides what it is compared with.
    description.push_str(&format!(", languages {TABLE_VERSION}, trust {}", trust.as_str()));
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
    let mut fingerprint = fingerprint(&text.canonical, language::row(text.language.home), config);
    fingerprint.names = Sample::of(text.names.iter().map(|&name| u32::from(name)).collect());
    fingerprint
}

/// Fingerprints normalised text, which has no names. `config` is the hash of the settings that led from the article to
/// this text.
pub fn fingerprint(canonical: &str, language: &Language, config: u32) -> Fingerprint {
    sketch(xxh3_128(canonical.as_bytes()), &shingles(canonical, language), config)
}

/// Fingerprints a text by its content hash and its shingles.
pub fn sketch(content: u128, cut: &Shingles, config: u32) -> Fingerprint {
    let kept = (cut.shingles.len() / SAMPLED).clamp(SAMPLE, LONG_SAMPLE);
    let (shingles, least) = distinct::count_and_least(&cut.shingles, kept);
    let shingles = u32::try_from(shingles).unwrap_or(u32::MAX);
    let opening = &cut.shingles[..opening(cut.shingles.len())];
    Fingerprint {
        scheme: Scheme::CURRENT,
        config,
        content,
        simhash: simhash::simhash(&cut.words),
        tokens: cut.tokens,
        shingles,
        // The least value of a set is that of the list, whatever is repeated in it.
        minhash: Box::new(minhash::signature(&cut.shingles)),
        sample: Sample::new(least, shingles),
        opening: Sample::of(opening.iter().map(|&hash| distinct::high(hash)).collect()),
        numerals: Sample::of(cut.numerals.clone()),
        names: Sample::of(Vec::new()),
        title: Sample::of(Vec::new()),
    }
}

/// How many of a text's shingles are its opening: a third, between 24 and 96.
fn opening(shingles: usize) -> usize {
    (shingles / 3).clamp(24, 96).min(shingles)
}

impl Fingerprint {
    /// Estimated Jaccard similarity of the shingle sets: the share of lanes that agree.
    pub fn similarity(&self, other: &Fingerprint) -> f64 {
        f64::from(minhash::equal_lanes(&self.minhash, &other.minhash)) / LANES as f64
    }

    /// The exact figures among the numbers, ascending.
    pub fn figures(&self) -> Vec<u32> {
        self.numerals.values().iter().copied().filter(|&number| text::is_figure(number)).collect()
    }

    /// Whether the text is a page notice rather than an article: a consent text, a robot check, a paywall.
    pub fn is_notice(&self) -> bool {
        self.numerals.values().binary_search(&text::notice_mark()).is_ok()
    }

    /// The low half of the SimHash.
    pub fn simhash64(&self) -> u64 {
        self.simhash as u64
    }

    /// The same fingerprint under a headline, whose words are hashed by [`text::title_words`](crate::text::title_words).
    #[must_use]
    pub fn with_title(self, words: Vec<u16>) -> Fingerprint {
        Fingerprint { title: Sample::of(words.into_iter().map(u32::from).collect()), ..self }
    }

    /// The bytes of the table above.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED + 4 * self.sample.values().len() + 256);
        let two_bytes = |count: u32| u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes();
        bytes.extend([LAYOUT, self.scheme.number()]);
        bytes.extend(self.config.to_le_bytes());
        bytes.extend(self.content.to_le_bytes());
        bytes.extend(self.simhash.to_le_bytes());
        bytes.extend(self.tokens.to_le_bytes());
        bytes.extend(self.shingles.to_le_bytes());
        for distinct in [self.opening.distinct(), self.numerals.distinct(), self.names.distinct()] {
            bytes.extend(two_bytes(distinct));
        }
        bytes.extend(two_bytes(self.sample.values().len() as u32));
        let lists = [self.opening.values(), self.numerals.values(), self.names.values(), self.title.values()];
        bytes.extend(lists.map(|list| list.len() as u8));
        self.minhash.iter().for_each(|lane| bytes.extend_from_slice(&lane.to_le_bytes()));
        for list in [self.sample.values(), self.opening.values(), self.numerals.values()] {
            list.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        }
        for list in [self.names.values(), self.title.values()] {
            list.iter().for_each(|&value| bytes.extend_from_slice(&(value as u16).to_le_bytes()));
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
        let [layout, number] = read.array()?;
        // Layout 1 held scheme 1 and nothing else: the scheme's name says more.
        let scheme = Scheme::from_number(number).ok_or(DecodeError::Scheme(number))?;
        if layout != LAYOUT {
            return Err(DecodeError::Layout(layout));
        }
        let config = u32::from_le_bytes(read.array()?);
        let content = u128::from_le_bytes(read.array()?);
        let simhash = u128::from_le_bytes(read.array()?);
        let tokens = u32::from_le_bytes(read.array()?);
        let shingles = u32::from_le_bytes(read.array()?);
        let opening = u32::from(u16::from_le_bytes(read.array()?));
        let numerals = u32::from(u16::from_le_bytes(read.array()?));
        let names = u32::from(u16::from_le_bytes(read.array()?));
        let sampled = usize::from(u16::from_le_bytes(read.array()?));
        let [opens, numbered, named, titled] = read.array::<4>()?.map(usize::from);
        let mut minhash = Box::new([0; LANES]);
        let lanes: [u8; 2 * LANES] = read.array()?;
        for (lane, &bytes) in minhash.iter_mut().zip(lanes.as_chunks().0) {
            *lane = u16::from_le_bytes(bytes);
        }
        let order = DecodeError::Order;
        let sample = Sample::checked(read.four_bytes(sampled)?, shingles).ok_or(order)?;
        let opening = Sample::checked(read.four_bytes(opens)?, opening).ok_or(order)?;
        let numerals = Sample::checked(read.four_bytes(numbered)?, numerals).ok_or(order)?;
        let names = Sample::checked(read.two_bytes(named)?, names).ok_or(order)?;
        let title = Sample::checked(read.two_bytes(titled)?, titled as u32).ok_or(order)?;
        if !read.rest.is_empty() {
            return Err(DecodeError::Length(read.len));
        }
        Ok(Fingerprint {
            scheme,
            config,
            content,
            simhash,
            tokens,
            shingles,
            minhash,
            sample,
            opening,
            numerals,
            names,
            title,
        })
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

    fn take(&mut self, bytes: usize) -> Result<&[u8], DecodeError> {
        let short = DecodeError::Length(self.len);
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn four_bytes(&mut self, count: usize) -> Result<Vec<u32>, DecodeError> {
        Ok(self.take(4 * count)?.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect())
    }

    fn two_bytes(&mut self, count: usize) -> Result<Vec<u32>, DecodeError> {
        let values = self.take(2 * count)?.as_chunks().0.iter();
        Ok(values.map(|&bytes| u32::from(u16::from_le_bytes(bytes))).collect())
    }
}
