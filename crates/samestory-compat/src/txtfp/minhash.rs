//! txtfp's MinHash.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | schema 1, `u16` little-endian |
//! | 2..8 | zero |
//! | 8..8 + 8·H | H lanes, `u64` little-endian |

use serde::{Deserialize, Serialize};

use super::metadata::{FingerprintMetadata, config_hash_classical};
use super::{DEFAULT_SEED, Error, Fingerprinter, HashFamily, Streaming, Tokenizer, canonicalize};

/// The schema of the stored bytes.
pub const SCHEMA: u16 = 1;

const HEADER: usize = 8;
const LANE: usize = size_of::<u64>();

/// A MinHash signature of `H` lanes: 520 bytes with 64, 1032 with 128, 2056 with 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "Stored<H>", try_from = "Stored<H>")]
pub struct MinHashSig<const H: usize>([u64; H]);

/// A signature in serde's data model. Formats without field names store the same bytes as txtfp.
#[derive(Serialize, Deserialize)]
#[serde(rename = "MinHashSig")]
struct Stored<const H: usize> {
    schema: u16,
    #[serde(with = "lanes")]
    hashes: [u64; H],
}

/// Serde supports arrays of up to 32 items only.
mod lanes {
    use std::fmt;

    use serde::de::{Error, SeqAccess, Visitor};
    use serde::ser::SerializeTuple;
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer, const H: usize>(
        lanes: &[u64; H],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(H)?;
        lanes.iter().try_for_each(|lane| tuple.serialize_element(lane))?;
        tuple.end()
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, const H: usize>(
        deserializer: D,
    ) -> Result<[u64; H], D::Error> {
        struct Lanes<const H: usize>;

        impl<'de, const H: usize> Visitor<'de> for Lanes<H> {
            type Value = [u64; H];

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{H} lanes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<[u64; H], A::Error> {
                let mut lanes = [0; H];
                for (n, lane) in lanes.iter_mut().enumerate() {
                    *lane = items.next_element()?.ok_or_else(|| A::Error::invalid_length(n, &self))?;
                }
                Ok(lanes)
            }
        }

        deserializer.deserialize_tuple(H, Lanes)
    }
}

impl<const H: usize> From<MinHashSig<H>> for Stored<H> {
    fn from(signature: MinHashSig<H>) -> Stored<H> {
        Stored { schema: SCHEMA, hashes: signature.0 }
    }
}

impl<const H: usize> TryFrom<Stored<H>> for MinHashSig<H> {
    type Error = Error;

    fn try_from(stored: Stored<H>) -> Result<MinHashSig<H>, Error> {
        match stored.schema {
            SCHEMA => Ok(MinHashSig(stored.hashes)),
            actual => Err(Error::Schema { expected: SCHEMA, actual }),
        }
    }
}

impl<const H: usize> MinHashSig<H> {
    /// Bytes in a stored signature.
    pub const BYTES: usize = HEADER + H * LANE;

    /// A signature with these lanes.
    pub const fn from_lanes(lanes: [u64; H]) -> MinHashSig<H> {
        MinHashSig(lanes)
    }

    /// The lanes.
    pub const fn lanes(&self) -> &[u64; H] {
        &self.0
    }

    /// The estimated Jaccard similarity: the fraction of lanes that agree.
    pub fn similarity(&self, other: &MinHashSig<H>) -> f64 {
        equal_lanes(self, other) as f64 / H as f64
    }

    /// The bytes that txtfp stores.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend(SCHEMA.to_le_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(self.0.iter().flat_map(|lane| lane.to_le_bytes()));
        bytes
    }

    /// Parses the bytes that txtfp stores; like txtfp, it ignores the six bytes of padding.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] or [`Error::Schema`]; hash the text again.
    pub fn from_bytes(bytes: &[u8]) -> Result<MinHashSig<H>, Error> {
        if bytes.len() != Self::BYTES {
            return Err(Error::Length { name: "MinHashSig", expected: Self::BYTES, got: bytes.len() });
        }
        let actual = u16::from_le_bytes([bytes[0], bytes[1]]);
        if actual != SCHEMA {
            return Err(Error::Schema { expected: SCHEMA, actual });
        }
        let mut signature = MinHashSig([0; H]);
        for (lane, bytes) in signature.0.iter_mut().zip(bytes[HEADER..].as_chunks::<LANE>().0) {
            *lane = u64::from_le_bytes(*bytes);
        }
        Ok(signature)
    }
}

fn equal_lanes<const H: usize>(a: &MinHashSig<H>, b: &MinHashSig<H>) -> usize {
    a.0.iter().zip(&b.0).filter(|(a, b)| a == b).count()
}

/// The estimated Jaccard similarity in txtfp's precision. Compare only signatures with the same
/// [`config_hash`](FingerprintMetadata::config_hash).
///
/// ```
/// use samestory_compat::txtfp::{MinHashFingerprinter, WordTokenizer, jaccard};
///
/// let words = MinHashFingerprinter::<_, 256>::new(WordTokenizer);
/// let (a, b) = (words.fingerprint("red green blue")?, words.fingerprint("blue, green, RED")?);
/// assert_eq!(jaccard(&a, &b), 1.0);
/// # Ok::<(), samestory_compat::txtfp::Error>(())
/// ```
pub fn jaccard<const H: usize>(a: &MinHashSig<H>, b: &MinHashSig<H>) -> f32 {
    equal_lanes(a, b) as f32 / H as f32
}

/// Computes [`MinHashSig`]s. Lane i holds the smallest `low + i·high` of all tokens, where low and high are
/// the halves of a token's hash.
///
/// ```
/// use samestory_compat::txtfp::{HashFamily, MinHashFingerprinter, ShingleTokenizer, WordTokenizer};
///
/// let shingles = ShingleTokenizer { k: 5, inner: WordTokenizer };
/// let fingerprinter = MinHashFingerprinter::<_, 64>::new(shingles).with_hasher(HashFamily::Murmur3);
/// let signature = fingerprinter.fingerprint("The quick brown fox jumps over the lazy dog")?;
/// assert_eq!(signature.to_bytes().len(), 520);
/// assert_eq!(fingerprinter.metadata().algorithm, "minhash-h64");
/// # Ok::<(), samestory_compat::txtfp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MinHashFingerprinter<T, const H: usize> {
    tokenizer: T,
    hasher: HashFamily,
    seed: u64,
}

impl<T: Tokenizer, const H: usize> MinHashFingerprinter<T, H> {
    /// Uses XXH3 and the default seed.
    pub fn new(tokenizer: T) -> Self {
        MinHashFingerprinter { tokenizer, hasher: HashFamily::default(), seed: DEFAULT_SEED }
    }

    /// Uses another seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        MinHashFingerprinter { seed, ..self }
    }

    /// Uses another hash family.
    #[must_use]
    pub fn with_hasher(self, hasher: HashFamily) -> Self {
        MinHashFingerprinter { hasher, ..self }
    }

    /// The signature of a text.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyDocument`] if it has no tokens.
    pub fn fingerprint(&self, text: &str) -> Result<MinHashSig<H>, Error> {
        let mut lanes = None;
        self.tokenizer.for_each_token(&canonicalize(text), &mut |token| {
            let (mut value, step) = self.hasher.hash(token.as_bytes(), self.seed);
            for lane in lanes.get_or_insert([u64::MAX; H]) {
                *lane = value.min(*lane);
                value = value.wrapping_add(step);
            }
        });
        lanes.map(MinHashSig).ok_or(Error::EmptyDocument)
    }

    /// A hash of everything that determines the signatures. Signatures with different ones cannot be
    /// compared.
    pub fn config_hash(&self) -> u64 {
        config_hash_classical(&self.tokenizer.name(), &algorithm::<H>(), self.hasher, self.seed)
    }

    /// How the signatures are computed.
    pub fn metadata(&self) -> FingerprintMetadata {
        FingerprintMetadata {
            algorithm: algorithm::<H>(),
            config_hash: self.config_hash(),
            model_id: None,
            schema_version: SCHEMA,
            byte_size: MinHashSig::<H>::BYTES,
        }
    }

    /// Fingerprints a text that arrives in pieces.
    pub fn into_streaming(self) -> Streaming<Self> {
        Streaming::new(self)
    }
}

fn algorithm<const H: usize>() -> String {
    format!("minhash-h{H}")
}

impl<T: Tokenizer, const H: usize> Fingerprinter for MinHashFingerprinter<T, H> {
    type Output = MinHashSig<H>;

    fn fingerprint(&self, text: &str) -> Result<MinHashSig<H>, Error> {
        self.fingerprint(text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ShingleTokenizer, WordTokenizer};
    use super::*;

    fn fox<const H: usize>() -> MinHashSig<H> {
        let tokenizer = ShingleTokenizer { k: 3, inner: WordTokenizer };
        MinHashFingerprinter::<_, H>::new(tokenizer).fingerprint("the quick brown fox").unwrap()
    }

    #[test]
    fn the_stored_bytes_begin_with_the_schema_and_read_back() {
        let bytes = fox::<128>().to_bytes();
        assert_eq!(
            [fox::<64>().to_bytes().len(), bytes.len(), fox::<256>().to_bytes().len()],
            [520, 1032, 2056]
        );
        assert_eq!(bytes[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[8..16], fox::<128>().lanes()[0].to_le_bytes());
        assert_eq!(MinHashSig::from_bytes(&bytes), Ok(fox::<128>()));
        assert_eq!(
            fox::<64>().lanes(),
            &fox::<256>().lanes()[..64],
            "a shorter signature is the beginning of a longer"
        );
    }

    #[test]
    fn foreign_bytes_are_refused() {
        let mut bytes = fox::<128>().to_bytes();
        let length = |got| Err(Error::Length { name: "MinHashSig", expected: 1032, got });
        assert_eq!(MinHashSig::<128>::from_bytes(&bytes[1..]), length(1031));
        assert_eq!(MinHashSig::<128>::from_bytes(&[]), length(0));
        bytes[0] = 2;
        assert_eq!(MinHashSig::<128>::from_bytes(&bytes), Err(Error::Schema { expected: 1, actual: 2 }));
        let json = serde_json::to_string(&fox::<64>()).unwrap();
        assert!(serde_json::from_str::<MinHashSig<128>>(&json).is_err());
        let other_schema = json.replace(r#""schema":1"#, r#""schema":2"#);
        assert!(serde_json::from_str::<MinHashSig<64>>(&other_schema).is_err());
    }

    #[test]
    fn similarity_is_the_fraction_of_equal_lanes() {
        let mut half = fox::<128>();
        half.0[..64].fill(0);
        assert_eq!(fox().similarity(&half), 0.5);
        assert_eq!(jaccard(&fox(), &half), 0.5);
    }
}
