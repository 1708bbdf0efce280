//! txtfp's 64-bit SimHash with three kinds of weight.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::metadata::{FingerprintMetadata, config_hash_classical};
use super::{DEFAULT_SEED, Error, Fingerprinter, HashFamily, Streaming, Tokenizer, canonicalize};
use crate::votes::Votes;

const SCHEMA: u16 = 1;

/// A SimHash of 64 bits, stored as eight bytes, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SimHash64(pub u64);

impl SimHash64 {
    /// Bytes in a stored hash.
    pub const BYTES: usize = size_of::<u64>();

    /// The bits.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The bytes that txtfp stores.
    pub const fn to_bytes(self) -> [u8; Self::BYTES] {
        self.0.to_le_bytes()
    }

    /// Parses the bytes that txtfp stores.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] unless there are eight bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<SimHash64, Error> {
        let length = |_| Error::Length { name: "SimHash64", expected: Self::BYTES, got: bytes.len() };
        Ok(SimHash64(u64::from_le_bytes(bytes.try_into().map_err(length)?)))
    }
}

impl fmt::Display for SimHash64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimHash64({:016x})", self.0)
    }
}

/// Number of differing bits, 0 to 64.
pub const fn hamming(a: SimHash64, b: SimHash64) -> u32 {
    (a.0 ^ b.0).count_ones()
}

/// The cosine similarity that a Hamming distance corresponds to: cos(π · distance / 64), from 1 down to −1.
///
/// ```
/// use samestory_compat::txtfp::{SimHash64, cosine_estimate};
///
/// assert_eq!(cosine_estimate(SimHash64(7), SimHash64(7)), 1.0);
/// assert_eq!(cosine_estimate(SimHash64(0), SimHash64(u64::MAX)), -1.0);
/// ```
pub fn cosine_estimate(a: SimHash64, b: SimHash64) -> f32 {
    (hamming(a, b) as f32 / 64.0 * std::f32::consts::PI).cos()
}

/// The weight of a token's vote.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Weighting {
    /// Its number of occurrences.
    #[default]
    Tf,
    /// One, however often it occurs.
    Uniform,
    /// Its number of occurrences times its inverse document frequency, truncated to an integer.
    IdfWeighted(IdfTable),
}

impl Weighting {
    /// The name in the config hash, which does not include the values of a table.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Weighting::Tf => "tf",
            Weighting::Uniform => "uniform",
            Weighting::IdfWeighted(_) => "idf-weighted",
        }
    }

    fn weight(&self, token: &str, count: u32) -> i64 {
        /// Larger weights are clamped to this, so that nine thousand of them do not yet saturate a sum.
        const HEAVIEST: f64 = 1e15;
        match self {
            Weighting::Tf => i64::from(count),
            Weighting::Uniform => 1,
            Weighting::IdfWeighted(table) => {
                let weight = f64::from(count) * f64::from(table.get(token));
                if weight.is_finite() { weight.clamp(-HEAVIEST, HEAVIEST) as i64 } else { 1 }
            }
        }
    }
}

/// Inverse document frequencies of tokens, from your own corpus. Clones share the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IdfTable(Arc<BTreeMap<String, f32>>);

impl IdfTable {
    /// From pairs of token and frequency; the last value of a token counts.
    pub fn from_pairs<S: Into<String>>(pairs: impl IntoIterator<Item = (S, f32)>) -> IdfTable {
        IdfTable(Arc::new(pairs.into_iter().map(|(token, idf)| (token.into(), idf)).collect()))
    }

    /// The value of a token; 1 if it is not in the table.
    pub fn get(&self, token: &str) -> f32 {
        self.0.get(token).copied().unwrap_or(1.0)
    }

    /// Number of tokens in the table.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if the table is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for IdfTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for IdfTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<IdfTable, D::Error> {
        Ok(IdfTable(Arc::new(BTreeMap::deserialize(deserializer)?)))
    }
}

/// Computes [`SimHash64`]s: every token votes with the low half of its hash.
///
/// ```
/// use samestory_compat::txtfp::{IdfTable, SimHashFingerprinter, Weighting, WordTokenizer};
///
/// let table = IdfTable::from_pairs([("the", 0.0), ("ferry", 5.0)]);
/// let rare = SimHashFingerprinter::new(WordTokenizer).with_weighting(Weighting::IdfWeighted(table));
/// assert_eq!(rare.fingerprint("The ferry")?, rare.fingerprint("ferry")?);
/// # Ok::<(), samestory_compat::txtfp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SimHashFingerprinter<T> {
    tokenizer: T,
    hasher: HashFamily,
    seed: u64,
    weighting: Weighting,
}

impl<T: Tokenizer> SimHashFingerprinter<T> {
    /// Uses XXH3, the default seed, and the number of occurrences as weight.
    pub fn new(tokenizer: T) -> Self {
        SimHashFingerprinter {
            tokenizer,
            hasher: HashFamily::default(),
            seed: DEFAULT_SEED,
            weighting: Weighting::default(),
        }
    }

    /// Uses another seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        SimHashFingerprinter { seed, ..self }
    }

    /// Uses another hash family.
    #[must_use]
    pub fn with_hasher(self, hasher: HashFamily) -> Self {
        SimHashFingerprinter { hasher, ..self }
    }

    /// Uses another weighting.
    #[must_use]
    pub fn with_weighting(self, weighting: Weighting) -> Self {
        SimHashFingerprinter { weighting, ..self }
    }

    /// The hash of a text.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyDocument`] if it has no tokens.
    pub fn fingerprint(&self, text: &str) -> Result<SimHash64, Error> {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        self.tokenizer.for_each_token(&canonicalize(text), &mut |token| match counts.get_mut(token) {
            Some(count) => *count = count.saturating_add(1),
            None => drop(counts.insert(token.to_owned(), 1)),
        });
        if counts.is_empty() {
            return Err(Error::EmptyDocument);
        }
        let mut votes = Votes::new();
        for (token, count) in counts {
            let (low, _) = self.hasher.hash(token.as_bytes(), self.seed);
            votes.cast(low, self.weighting.weight(&token, count));
        }
        Ok(SimHash64(votes.outcome()))
    }

    /// A hash of everything that determines the hashes, except the values of an IDF table.
    pub fn config_hash(&self) -> u64 {
        let algorithm = format!("{ALGORITHM}-{}", self.weighting.as_str());
        config_hash_classical(&self.tokenizer.name(), &algorithm, self.hasher, self.seed)
    }

    /// How the hashes are computed.
    pub fn metadata(&self) -> FingerprintMetadata {
        FingerprintMetadata {
            algorithm: ALGORITHM.to_owned(),
            config_hash: self.config_hash(),
            model_id: None,
            schema_version: SCHEMA,
            byte_size: SimHash64::BYTES,
        }
    }

    /// Fingerprints a text that arrives in pieces.
    pub fn into_streaming(self) -> Streaming<Self> {
        Streaming::new(self)
    }
}

const ALGORITHM: &str = "simhash-b64";

impl<T: Tokenizer> Fingerprinter for SimHashFingerprinter<T> {
    type Output = SimHash64;

    fn fingerprint(&self, text: &str) -> Result<SimHash64, Error> {
        self.fingerprint(text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::WordTokenizer;
    use super::*;

    fn weighted(weighting: Weighting, text: &str) -> SimHash64 {
        SimHashFingerprinter::new(WordTokenizer).with_weighting(weighting).fingerprint(text).unwrap()
    }

    #[test]
    fn repeats_count_unless_weights_are_uniform() {
        assert_ne!(weighted(Weighting::Tf, "fox dog"), weighted(Weighting::Tf, "fox dog dog"));
        assert_eq!(weighted(Weighting::Uniform, "fox dog"), weighted(Weighting::Uniform, "fox dog dog"));
    }

    #[test]
    fn a_weight_that_is_no_number_counts_as_one() {
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let table = IdfTable::from_pairs([("fox", odd), ("dog", 1.0)]);
            assert_eq!(
                weighted(Weighting::IdfWeighted(table), "fox dog"),
                weighted(Weighting::Uniform, "fox dog")
            );
        }
    }

    #[test]
    fn everything_survives_json() {
        let table = IdfTable::from_pairs([("fox", 2.5)]);
        for weighting in [Weighting::Tf, Weighting::Uniform, Weighting::IdfWeighted(table)] {
            let json = serde_json::to_string(&weighting).unwrap();
            assert_eq!(serde_json::from_str::<Weighting>(&json).unwrap(), weighting, "{json}");
        }
        assert_eq!(serde_json::to_string(&Weighting::Tf).unwrap(), r#""tf""#);
        let metadata = SimHashFingerprinter::new(WordTokenizer).metadata();
        let json = serde_json::to_string(&metadata).unwrap();
        assert_eq!(serde_json::from_str::<FingerprintMetadata>(&json).unwrap(), metadata);
    }

    #[test]
    fn stored_bytes_read_back() {
        let hash = SimHash64(0x0102_0304_0506_0708);
        assert_eq!(hash.to_bytes(), [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(SimHash64::from_bytes(&hash.to_bytes()), Ok(hash));
        let length = Error::Length { name: "SimHash64", expected: 8, got: 1 };
        assert_eq!(SimHash64::from_bytes(&[0]), Err(length));
    }
}
