//! Errors, worded as in txtfp.

/// Why there is no fingerprint, no signature or no index. The messages follow txtfp's.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text has no tokens, so it has no fingerprint; leave it out.
    #[error("invalid input: empty document")]
    EmptyDocument,
    /// A stream is longer than its limit. Raise it with [`with_max_bytes`](super::Streaming::with_max_bytes).
    #[error("invalid input: streaming buffer exceeded cap")]
    StreamTooLong,
    /// A stream contains bytes that are not UTF-8.
    #[error("invalid input: invalid UTF-8 in stream")]
    InvalidUtf8,
    /// A stream ends inside a character.
    #[error("invalid input: trailing incomplete UTF-8")]
    IncompleteUtf8,
    /// Bytes of the wrong length. Compute the signature again from the text.
    #[error("invalid input: {name} is {expected} bytes, got {got}")]
    Length {
        /// Name of the type.
        name: &'static str,
        /// Its length.
        expected: usize,
        /// The length of the bytes.
        got: usize,
    },
    /// Lanes of another schema mean something else, even if the length agrees.
    #[error("schema version mismatch: expected {expected}, got {actual}")]
    Schema {
        /// The schema of this version.
        expected: u16,
        /// The schema in the bytes.
        actual: u16,
    },
    /// Bands × rows must equal the number of lanes.
    #[error("config error: bands * rows ({bands} * {rows} = {}) must equal H = {lanes}", bands.saturating_mul(*rows))]
    Banding {
        /// Requested bands.
        bands: usize,
        /// Requested rows.
        rows: usize,
        /// Lanes in a signature.
        lanes: usize,
    },
    /// A threshold must lie between 0 and 1, both excluded.
    #[error("config error: threshold must be in (0.0, 1.0); got {0}")]
    Threshold(f32),
    /// A signature without lanes cannot be cut into bands.
    #[error("config error: H cannot be zero")]
    NoLanes,
}
