//! Records how a fingerprint was computed, so that only like is compared with like.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::HashFamily;

/// The name of [`canonicalize`](super::canonicalize) in config hashes.
const CANONICAL: &str = "nfkc-cf-simple-bidi-fmt";

/// How a fingerprint was computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FingerprintMetadata {
    /// `minhash-h128`, `simhash-b64` and so on.
    pub algorithm: String,
    /// A hash of normalisation, tokeniser, algorithm, hash family and seed; 0 if it was not computed.
    /// Fingerprints with different ones cannot be compared.
    pub config_hash: u64,
    /// The model of an embedding; these fingerprints have none.
    pub model_id: Option<String>,
    /// The schema of the stored bytes.
    pub schema_version: u16,
    /// Bytes in a stored fingerprint.
    pub byte_size: usize,
}

/// The config hash of an algorithm without hash family and seed.
pub fn config_hash(tokenizer: &str, algorithm: &str) -> u64 {
    xxh3_64(format!("{CANONICAL}|{tokenizer}|{algorithm}").as_bytes())
}

/// The config hash of MinHash and SimHash.
pub fn config_hash_classical(tokenizer: &str, algorithm: &str, hasher: HashFamily, seed: u64) -> u64 {
    let configuration = format!("{CANONICAL}|{tokenizer}|{algorithm}|{}|{seed:016x}", hasher.as_str());
    xxh3_64(configuration.as_bytes())
}
