//! The fingerprint of a text: everything the index keeps of it for comparison, about 730 bytes for a typical
//! article. `prepare` computes it from normalised text; the comparison and the index read it; routed records,
//! the changelog and the store carry these bytes:
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
//! | 57 | 1 | t, words of the headline, at most 24, and 128 if the headline is foreign to the text |
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

use crate::text::language::{self, LANGUAGES, Language, Segmentation, TABLE_VERSION};
use crate::text::shingle::{Shingles, shingles};
use crate::text::{self, Options, Text};

pub use minhash::{LANES, Signature};
pub use sample::Sample;

/// How fingerprints are computed. Numbers are never reused, and fingerprints of different schemes are never
/// compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// XXH3 words, 16 bits of 128 lanes of multiply-add MinHash, SimHash, the smallest shingles of the text
    /// and of its opening, numbers, names, words of the headline.
    V2 = 2,
}

impl Scheme {
    /// The scheme of new fingerprints.
    pub const CURRENT: Scheme = Scheme::V2;

    /// The number in the encoded bytes.
    pub const fn number(self) -> u8 {
        self as u8
    }

    fn from_number(number: u8) -> Option<Scheme> {
        (number == Scheme::V2.number()).then_some(Scheme::V2)
    }
}

/// Shingles sampled from a typical text, to detect subsets: a text and a part of it sample the same ones of
/// what they share.
pub const SAMPLE: usize = 64;
/// Shingles sampled from a long text, so that the sample of a short extract still overlaps it.
pub const LONG_SAMPLE: usize = 256;
/// A long text keeps one shingle in this many.
const SAMPLING_INTERVAL: usize = 16;
/// Shingles sampled from the opening.
pub const OPENING: usize = 16;
/// Numbers sampled.
pub const NUMBERS: usize = 32;
/// Names sampled.
pub const NAMES: usize = 32;
/// Words sampled from the headline.
pub const TITLE: usize = 24;

const LAYOUT: u8 = 2;
/// Beside the number of the headline's words: the headline is foreign to the text.
const FOREIGN: u8 = 128;
const FIXED: usize = 58 + 2 * LANES;
/// The longest encoded fingerprint.
pub const MAX_BYTES: usize = FIXED + 4 * (LONG_SAMPLE + OPENING + NUMBERS) + 2 * (NAMES + TITLE);

/// Everything the index keeps of a text for comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// How it was computed.
    pub scheme: Scheme,
    /// Hash of the settings the text was prepared with.
    pub config: u32,
    /// XXH3-128 of the normalised text.
    pub content: u128,
    /// Majority vote of the words' hashes.
    pub simhash: u128,
    /// Words, or characters where the script has no spaces.
    pub tokens: u32,
    /// Number of distinct shingles.
    pub shingles: u32,
    /// Sixteen bits of the smallest value of each of 128 hash functions.
    pub minhash: Box<Signature>,
    /// The smallest shingle hashes.
    pub sample: Sample<LONG_SAMPLE>,
    /// The smallest shingle hashes of the opening.
    pub opening: Sample<OPENING>,
    /// The numbers in the text, in digits or in words, and the mark of a page notice.
    pub numerals: Sample<NUMBERS>,
    /// The capitalised words inside sentences.
    pub names: Sample<NAMES>,
    /// The words of the headline: evidence beside the text. Empty without a headline.
    pub title: Sample<TITLE>,
    /// True if the text is short and contains nothing of its headline, as a stub in place of an article does.
    pub foreign_headline: bool,
}

/// A hash of everything between an article and its fingerprint that can differ between installations or
/// versions. Fingerprints are comparable if their config hashes are equal.
pub fn config_hash(options: &Options) -> u32 {
    let Options {
        skeleton,
        fold_accents,
        fold_serbian,
        fold_han,
        trust,
        shinglings,
        max_raw_bytes: _,
        max_bytes: _,
    } = options;
    let mut description = format!(
        "scheme {}, skeleton {skeleton}, accents {fold_accents}, serbian {fold_serbian}, han {fold_han}",
        Scheme::CURRENT.number()
    );
    // The home of an article decides what it is compared with, so the language settings count too.
    description.push_str(&format!(", languages {TABLE_VERSION}, trust {}", trust.as_str()));
    for language in LANGUAGES {
        let cut = match language.segment {
            Segmentation::Words => "words",
            Segmentation::Characters => "characters",
        };
        description.push_str(&format!(", {} {} {cut}", language.lang, language.shingle));
    }
    description.push_str(&shinglings.to_string());
    xxh3_64(description.as_bytes()) as u32
}

/// Fingerprints a prepared text. `config` is the [`config_hash`] of the options it was prepared with.
pub fn of_text(text: &Text, config: u32) -> Fingerprint {
    let (normalized, language) = (&text.normalized, language::row(text.language.home));
    let mut fingerprint = match &text.shingling {
        None => fingerprint(normalized, language, config),
        Some(own) => sketch(xxh3_128(normalized.as_bytes()), &own.cut(normalized, language), config),
    };
    fingerprint.names = Sample::from_hashes(text.names.iter().map(|&name| u32::from(name)).collect());
    fingerprint
}

/// Fingerprints normalised text, without names. `config` is the hash of the settings that the text was
/// prepared with.
pub fn fingerprint(normalized: &str, language: &Language, config: u32) -> Fingerprint {
    sketch(xxh3_128(normalized.as_bytes()), &shingles(normalized, language), config)
}

/// Fingerprints a text by its content hash and its shingles.
pub fn sketch(content: u128, cut: &Shingles, config: u32) -> Fingerprint {
    let sample_size = (cut.shingles.len() / SAMPLING_INTERVAL).clamp(SAMPLE, LONG_SAMPLE);
    let (shingles, least) = distinct::count_and_least(&cut.shingles, sample_size);
    let shingles = u32::try_from(shingles).unwrap_or(u32::MAX);
    let opening = &cut.shingles[..opening(cut.shingles.len())];
    Fingerprint {
        scheme: Scheme::CURRENT,
        config,
        content,
        simhash: simhash::simhash(&cut.words),
        tokens: cut.tokens,
        shingles,
        // Repeats do not change a minimum, so the list with repeats serves as well as the set.
        minhash: Box::new(minhash::signature(&cut.shingles)),
        sample: Sample::new(least, shingles),
        opening: Sample::from_hashes(opening.iter().map(|&hash| distinct::high(hash)).collect()),
        numerals: Sample::from_hashes(cut.numerals.clone()),
        names: Sample::from_hashes(Vec::new()),
        title: Sample::from_hashes(Vec::new()),
        foreign_headline: false,
    }
}

/// Number of shingles in the opening: a third of them, between 24 and 96.
fn opening(shingles: usize) -> usize {
    (shingles / 3).clamp(24, 96).min(shingles)
}

impl Fingerprint {
    /// Estimated Jaccard similarity of the shingle sets: the fraction of lanes that agree.
    pub fn similarity(&self, other: &Fingerprint) -> f64 {
        f64::from(minhash::equal_lanes(&self.minhash, &other.minhash)) / LANES as f64
    }

    /// The exact figures among the numbers, ascending.
    pub fn figures(&self) -> impl Iterator<Item = u32> {
        self.numerals.values().iter().copied().filter(|&number| text::is_figure(number))
    }

    /// True if the text is a page notice rather than an article: a consent text, a robot check, a paywall.
    pub fn is_notice(&self) -> bool {
        self.numerals.values().binary_search(&text::notice_mark()).is_ok()
    }

    /// The low half of the SimHash.
    pub fn simhash64(&self) -> u64 {
        self.simhash as u64
    }

    /// Adds a headline, given as the hashes of [`text::title_words`].
    #[must_use]
    pub fn with_title(self, words: Vec<u16>) -> Fingerprint {
        Fingerprint { title: Sample::from_hashes(words.into_iter().map(u32::from).collect()), ..self }
    }

    /// Records whether the headline is [foreign](text::is_foreign) to the text.
    #[must_use]
    pub fn with_foreign_headline(self, foreign_headline: bool) -> Fingerprint {
        Fingerprint { foreign_headline, ..self }
    }

    /// Encodes the bytes of the table above.
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
        let [opening, numerals, names, title] = lists.map(|list| list.len() as u8);
        bytes.extend([opening, numerals, names, title | if self.foreign_headline { FOREIGN } else { 0 }]);
        self.minhash.iter().for_each(|lane| bytes.extend_from_slice(&lane.to_le_bytes()));
        for list in [self.sample.values(), self.opening.values(), self.numerals.values()] {
            list.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        }
        for list in [self.names.values(), self.title.values()] {
            list.iter().for_each(|&value| bytes.extend_from_slice(&(value as u16).to_le_bytes()));
        }
        bytes
    }

    /// Decodes the bytes of the table above.
    ///
    /// # Errors
    /// The bytes are not a fingerprint this version can compare: their container is damaged or from another version.
    pub fn decode(bytes: &[u8]) -> Result<Fingerprint, FingerprintError> {
        let mut read = Reader { rest: bytes, len: bytes.len() };
        let [layout, number] = read.array()?;
        // Checked before the layout: layout 1 only ever held scheme 1, and the scheme is the clearer message.
        let scheme = Scheme::from_number(number).ok_or(FingerprintError::Scheme(number))?;
        if layout != LAYOUT {
            return Err(FingerprintError::Layout(layout));
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
        let [opens, numbered, named, titled] = read.array::<4>()?;
        let foreign_headline = titled & FOREIGN != 0;
        let [opens, numbered, named, titled] = [opens, numbered, named, titled & !FOREIGN].map(usize::from);
        let mut minhash = Box::new([0; LANES]);
        let lanes: [u8; 2 * LANES] = read.array()?;
        for (lane, &bytes) in minhash.iter_mut().zip(lanes.as_chunks().0) {
            *lane = u16::from_le_bytes(bytes);
        }
        let order = FingerprintError::Order;
        let sample = Sample::checked(read.four_bytes(sampled)?, shingles).ok_or(order)?;
        let opening = Sample::checked(read.four_bytes(opens)?, opening).ok_or(order)?;
        let numerals = Sample::checked(read.four_bytes(numbered)?, numerals).ok_or(order)?;
        let names = Sample::checked(read.two_bytes(named)?, names).ok_or(order)?;
        let title = Sample::checked(read.two_bytes(titled)?, titled as u32).ok_or(order)?;
        if !read.rest.is_empty() {
            return Err(FingerprintError::Length(read.len));
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
            foreign_headline,
        })
    }
}

/// Why bytes are not a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FingerprintError {
    /// An unknown byte layout.
    #[error("unknown fingerprint layout {0}; this version writes layout {LAYOUT}")]
    Layout(u8),
    /// An unknown scheme.
    #[error("unknown fingerprint scheme {0}; this version writes scheme {current}", current = Scheme::CURRENT.number())]
    Scheme(u8),
    /// Too short or too long.
    #[error("fingerprint of {0} bytes is truncated or has trailing bytes")]
    Length(usize),
    /// A list is not ascending, or is too long.
    #[error("a sample of the fingerprint is not ascending or is too long")]
    Order,
}

struct Reader<'a> {
    rest: &'a [u8],
    /// Length of the input, for the error.
    len: usize,
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], FingerprintError> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or(FingerprintError::Length(self.len))?;
        self.rest = rest;
        Ok(*array)
    }

    fn take(&mut self, bytes: usize) -> Result<&[u8], FingerprintError> {
        let short = FingerprintError::Length(self.len);
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn four_bytes(&mut self, count: usize) -> Result<Vec<u32>, FingerprintError> {
        Ok(self.take(4 * count)?.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect())
    }

    fn two_bytes(&mut self, count: usize) -> Result<Vec<u32>, FingerprintError> {
        let values = self.take(2 * count)?.as_chunks().0.iter();
        Ok(values.map(|&bytes| u32::from(u16::from_le_bytes(bytes))).collect())
    }
}
