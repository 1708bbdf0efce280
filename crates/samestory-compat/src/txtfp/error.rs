//! What can go wrong, in txtfp's words.

/// Why there is no fingerprint, no signature or no index. The messages follow txtfp's.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text has no tokens. Such documents have no fingerprint; leave them out.
    #[error("invalid input: empty document")]
    EmptyDocument,
    /// A stream is longer than its limit. Raise it with [`with_max_bytes`](super::Streaming::with_max_bytes).
    #[error("invalid input: streaming buffer exceeded cap")]
    StreamTooLong,
    /// A stream has bytes that no UTF-8 text has.
    #[error("invalid input: invalid UTF-8 in stream")]
    InvalidUtf8,
    /// A stream ends inside a character.
    #[error("invalid input: trailing incomplete UTF-8")]
    IncompleteUtf8,
    /// Bytes of another length than the signature's. Make the signature again from the text.
    #[error("invalid input: {name} is {expected} bytes, got {got}")]
    Length {
        /// The signature.
        name: &'static str,
        /// Its length.
        expected: usize,
        /// The length of the bytes.
        got: usize,
    },
    /// Another schema's lanes mean something else, even where the length agrees.
    #[error("schema version mismatch: expected {expected}, got {actual}")]
    Schema {
        /// The schema of this version.
        expected: u16,
        /// The schema that the bytes name.
        actual: u16,
    },
    /// Bands × rows must be the number of lanes.
    #[error("config error: bands * rows ({bands} * {rows} = {}) must equal H = {lanes}", bands.saturating_mul(*rows))]
    Banding {
        /// As asked.
        bands: usize,
        /// As asked.
        rows: usize,
        /// Lanes in a signature.
        lanes: usize,
    },
    /// A threshold lies between 0 and 1, both excluded.
    #[error("config error: threshold must be in (0.0, 1.0); got {0}")]
    Threshold(f32),
    /// A signature without lanes cannot be cut into bands.
    #[error("config error: H cannot be zero")]
    NoLanes,
}
