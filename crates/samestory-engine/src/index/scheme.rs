//! Index schemes: which buckets a document is posted in.
//!
//! The engine looks up the same keys that stores post, so both sides use these functions. The keys are a pure
//! function of the fingerprint and of the scheme, which every store records in its header and compares when
//! it is opened.
//!
//! A bucket is identified by a band number and a hash. Each kind has its own range of band numbers:
//!
//! | bands | kind | hash |
//! |-------|------|------|
//! | `0x0000` … | MinHash band | of its rows, 40 bits |
//! | `0x1000` … | SimHash 128 band | its 16 bits |
//! | `0x2000` … | SimHash 64 band | its 16 bits |
//! | `0x3000` | content | the upper 40 bits of the content hash's low half |
//! | `0x4000` | containment sample | the sampled shingle, 32 bits |
//!
//! Forty bits are enough: a stranger in a bucket is compared like any other candidate, and among sixteen million
//! documents one article in five thousand meets one. In return every bucket fits into 48 bits ([`pack`]).

use std::collections::BTreeMap;
use std::fmt;

use crate::fingerprint::{Fingerprint, LANES, LONG_SAMPLE, SAMPLE};
use crate::lsh::{BandKey, Banding, simhash64_keys, simhash128_keys};
use crate::model::Lang;

use super::format::bytes::{ByteReader, ByteWriter, DecodeError};

const SIMHASH128: u16 = 0x1000;
const SIMHASH64: u16 = 0x2000;
const CONTENT: u16 = 0x3000;
const SAMPLED: u16 = 0x4000;

/// Bits of a bucket's hash.
const HASH_BITS: u32 = 40;

/// A bucket as one number of 48 bits, spread evenly: posting lists are sorted and looked up by it. Different buckets have
/// different numbers. `None` for a bucket that no scheme uses.
#[cfg(feature = "rocksdb")]
pub(crate) fn pack(key: BandKey) -> Option<u64> {
    let kind = match key.band {
        band @ 0..0x80 => u64::from(band),
        band @ SIMHASH128..0x1008 => u64::from(band - SIMHASH128) + 0x80,
        band @ SIMHASH64..0x2004 => u64::from(band - SIMHASH64) + 0x88,
        CONTENT => 0x8c,
        SAMPLED => 0x8d,
        _ => return None,
    };
    (key.hash >> HASH_BITS == 0).then(|| spread::spread(kind << HASH_BITS | key.hash))
}

/// The bucket that [`pack`] turned into this number.
#[cfg(feature = "rocksdb")]
pub(crate) fn unpack(packed: u64) -> Option<BandKey> {
    let number = spread::gather(packed);
    let band = match (number >> HASH_BITS) as u16 {
        kind @ 0..0x80 => kind,
        kind @ 0x80..0x88 => SIMHASH128 + (kind - 0x80),
        kind @ 0x88..0x8c => SIMHASH64 + (kind - 0x88),
        0x8c => CONTENT,
        0x8d => SAMPLED,
        _ => return None,
    };
    Some(BandKey { band, hash: number & ((1 << HASH_BITS) - 1) })
}

/// A permutation of the numbers of 48 bits that mixes all of them, and its inverse.
#[cfg(feature = "rocksdb")]
mod spread {
    const MASK: u64 = (1 << 48) - 1;
    const FACTORS: [u64; 2] = [0x7f4a_7c15_9e37_79b9, 0x94d0_49bb_1331_11eb];

    /// The inverse of an odd number modulo 2^64: every step doubles the bits that are right.
    const fn inverse(odd: u64) -> u64 {
        let (mut inverse, mut step) = (odd, 0);
        while step < 5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
            step += 1;
        }
        inverse
    }

    const INVERSES: [u64; 2] = [inverse(FACTORS[1]), inverse(FACTORS[0])];

    pub(super) fn spread(number: u64) -> u64 {
        apply(number, FACTORS)
    }

    pub(super) fn gather(number: u64) -> u64 {
        apply(number, INVERSES)
    }

    /// Shifting by half the width is its own inverse.
    fn apply(number: u64, factors: [u64; 2]) -> u64 {
        let shifted = |number: u64| number ^ number >> 24;
        let mixed = |number: u64, factor| shifted(number).wrapping_mul(factor) & MASK;
        shifted(mixed(mixed(number & MASK, factors[0]), factors[1]))
    }
}

/// How the documents of one language are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexScheme {
    /// Bands of the MinHash signature, if it is posted.
    pub minhash: Option<Banding>,
    /// Bands of a SimHash, if one is posted.
    pub simhash: SimHashBands,
    /// How many of the smallest sampled shingles are posted; a text and a part of it share some of them.
    pub samples: u8,
    /// Texts with fewer tokens are posted only by content.
    pub shortest: u32,
}

/// Which SimHash is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimHashBands {
    /// No SimHash.
    None,
    /// Eight bands of the 128-bit SimHash.
    Of128,
    /// Four bands of the 64-bit SimHash.
    Of64,
}

/// The property that two documents in the same bucket share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostingKind {
    /// All rows of a MinHash band.
    MinHash,
    /// Sixteen bits of a SimHash.
    SimHash,
    /// Half of the content hash.
    Content,
    /// A sampled shingle.
    Sample,
}

impl IndexScheme {
    /// The distinct buckets of a document, ascending. A text without tokens has none.
    pub fn keys(&self, fingerprint: &Fingerprint) -> Vec<BandKey> {
        if fingerprint.tokens == 0 {
            return Vec::new();
        }
        let mut keys = Vec::with_capacity(LANES / 2 + usize::from(self.samples));
        let shifted = |by: u16| move |key: BandKey| BandKey { band: key.band + by, ..key };
        if fingerprint.tokens >= self.shortest {
            if let Some(banding) = self.minhash {
                let bands = banding.keys(&fingerprint.minhash);
                keys.extend(bands.map(|key| BandKey { hash: key.hash >> (64 - HASH_BITS), ..key }));
            }
            match self.simhash {
                SimHashBands::None => {}
                SimHashBands::Of128 => {
                    keys.extend(simhash128_keys(fingerprint.simhash).map(shifted(SIMHASH128)));
                }
                SimHashBands::Of64 => {
                    keys.extend(simhash64_keys(fingerprint.simhash64()).map(shifted(SIMHASH64)));
                }
            }
        }
        keys.push(IndexScheme::content(fingerprint));
        if fingerprint.tokens >= self.shortest {
            let sampled = fingerprint.sample.values().iter().take(self.samples_of(fingerprint));
            keys.extend(sampled.map(|&value| IndexScheme::sample(value)));
        }
        keys
    }

    /// How many sampled shingles of a text are posted: more for a long text, so that excerpts of it share
    /// some.
    pub fn samples_of(&self, fingerprint: &Fingerprint) -> usize {
        usize::from(self.samples) * fingerprint.sample.values().len().max(SAMPLE) / SAMPLE
    }

    /// The bucket of all texts with this content.
    pub fn content(fingerprint: &Fingerprint) -> BandKey {
        BandKey { band: CONTENT, hash: fingerprint.content as u64 >> (64 - HASH_BITS) }
    }

    /// The bucket of all texts that posted this shingle.
    pub fn sample(value: u32) -> BandKey {
        BandKey { band: SAMPLED, hash: u64::from(value) }
    }

    /// The kind of a bucket.
    pub fn kind(key: BandKey) -> PostingKind {
        match key.band {
            ..SIMHASH128 => PostingKind::MinHash,
            SIMHASH128..CONTENT => PostingKind::SimHash,
            CONTENT..SAMPLED => PostingKind::Content,
            SAMPLED.. => PostingKind::Sample,
        }
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.optional(self.minhash, |bytes, banding| {
            bytes.extend(banding.bands().to_le_bytes());
            bytes.extend(banding.rows().to_le_bytes());
        });
        bytes.push(self.simhash as u8);
        bytes.push(self.samples);
        bytes.extend(self.shortest.to_le_bytes());
    }

    fn decode(read: &mut ByteReader<'_>) -> Result<IndexScheme, DecodeError> {
        Ok(IndexScheme {
            minhash: read.optional(|read| {
                Banding::new(read.u16()?, read.u16()?, LANES).map_err(|_| DecodeError::Value("a banding"))
            })?,
            simhash: match read.byte()? {
                0 => SimHashBands::None,
                1 => SimHashBands::Of128,
                2 => SimHashBands::Of64,
                _ => return Err(DecodeError::Value("a choice of SimHash bands")),
            },
            samples: read.byte()?,
            shortest: read.u32()?,
        })
    }
}

impl fmt::Display for IndexScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.minhash {
            Some(banding) => write!(f, "minhash {}×{}", banding.bands(), banding.rows())?,
            None => f.write_str("no minhash")?,
        }
        f.write_str(match self.simhash {
            SimHashBands::None => "",
            SimHashBands::Of128 => ", simhash128 8×16",
            SimHashBands::Of64 => ", simhash64 4×16",
        })?;
        write!(f, ", {} samples, from {} tokens on", self.samples, self.shortest)
    }
}

/// The index scheme of every language. A store is created with one set of schemes and refuses any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSchemes {
    default: IndexScheme,
    languages: BTreeMap<Lang, IndexScheme>,
}

impl IndexSchemes {
    /// The same scheme for every language.
    pub fn new(default: IndexScheme) -> IndexSchemes {
        IndexSchemes { default, languages: BTreeMap::new() }
    }

    /// Sets the scheme of one language.
    #[must_use]
    pub fn with(mut self, language: Lang, posting: IndexScheme) -> IndexSchemes {
        if posting == self.default {
            self.languages.remove(&language);
        } else {
            self.languages.insert(language, posting);
        }
        self
    }

    /// The scheme of a language.
    pub fn for_language(&self, language: Lang) -> &IndexScheme {
        self.languages.get(&language).unwrap_or(&self.default)
    }

    /// The largest number of buckets that one document can have.
    pub fn most_keys(&self) -> usize {
        let keys = |posting: &IndexScheme| {
            let simhash = match posting.simhash {
                SimHashBands::None => 0,
                SimHashBands::Of128 => 8,
                SimHashBands::Of64 => 4,
            };
            let minhash = posting.minhash.map_or(0, |banding| usize::from(banding.bands()));
            minhash + simhash + 1 + usize::from(posting.samples).min(SAMPLE) * LONG_SAMPLE / SAMPLE
        };
        self.languages.values().chain([&self.default]).map(keys).max().unwrap_or(0)
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) {
        self.default.encode(bytes);
        bytes.extend((self.languages.len() as u16).to_le_bytes());
        for (&language, posting) in &self.languages {
            bytes.language(language);
            posting.encode(bytes);
        }
    }

    pub(super) fn decode(read: &mut ByteReader<'_>) -> Result<IndexSchemes, DecodeError> {
        let mut postings = IndexSchemes::new(IndexScheme::decode(read)?);
        for _ in 0..read.u16()? {
            let language = read.language()?;
            postings.languages.insert(language, IndexScheme::decode(read)?);
        }
        Ok(postings)
    }
}

impl fmt::Display for IndexSchemes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.default.fmt(f)?;
        self.languages.iter().try_for_each(|(language, posting)| write!(f, "; {language}: {posting}"))
    }
}

#[cfg(all(test, feature = "rocksdb"))]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_has_a_number_of_its_own() {
        let bands = (0..128)
            .chain(SIMHASH128..SIMHASH128 + 8)
            .chain(SIMHASH64..SIMHASH64 + 4)
            .chain([CONTENT, SAMPLED]);
        for band in bands {
            for hash in [0, 1, 7, 0xffff, u64::from(u32::MAX), (1 << HASH_BITS) - 1] {
                let key = BandKey { band, hash };
                let packed = pack(key).unwrap();
                assert!(packed < 1 << 48);
                assert_eq!(unpack(packed), Some(key));
            }
        }
        for (band, hash) in [(0, 1 << HASH_BITS), (128, 0), (SIMHASH64 + 4, 0), (u16::MAX, 0)] {
            assert_eq!(pack(BandKey { band, hash }), None);
        }
    }
}
