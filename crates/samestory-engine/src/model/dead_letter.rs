//! Inputs that cannot be judged, and why. Bad data is never an error: the stream continues.
//!
//! An input becomes a dead letter where it is decoded and prepared (`kafka/route/decode` in the stage, `files/stage`
//! for files), where an update without a text is refused ([`crate::engine`]), or where its record could not be
//! delivered (`kafka/matching/outgoing`, `kafka/turn/suspects`). The stage copies the record byte for byte to the
//! dead-letter topic.

use serde::Serialize;

use super::Position;

/// An input that cannot be judged. The record itself is copied unchanged to the dead-letter topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Where the input was read.
    pub position: Position,
    /// For metrics and filters.
    pub reason: DeadLetterReason,
    /// For people: names the offending value, truncated.
    pub message: String,
}

listed! {
/// Why an input is a dead letter. The list is closed because it labels metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeadLetterReason {
    /// The bytes do not decode in the configured format.
    Undecodable,
    /// The id is missing or unusable.
    NoId,
    /// The body is missing.
    NoBody,
    /// A field has the wrong type.
    WrongType,
    /// The article exceeds a size limit.
    TooLarge,
    /// Objects and lists are nested deeper than consumers can parse.
    TooDeep,
    /// A number has more digits than consumers can parse.
    LongNumber,
    /// The schema registry does not know the writer schema, or it cannot be parsed.
    UnknownSchema,
    /// The record's source does not own the id it writes to.
    NotOwner,
    /// A parser panicked on the input.
    ParserPanicked,
    /// The broker rejects a record that the input would produce.
    Undeliverable,
    /// A record batch that cannot be decompressed or parsed; it was skipped.
    Unreadable,
}
}

impl DeadLetterReason {
    /// As written in headers and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            DeadLetterReason::Undecodable => "undecodable",
            DeadLetterReason::NoId => "no-id",
            DeadLetterReason::NoBody => "no-body",
            DeadLetterReason::WrongType => "wrong-type",
            DeadLetterReason::TooLarge => "too-large",
            DeadLetterReason::TooDeep => "too-deep",
            DeadLetterReason::LongNumber => "long-number",
            DeadLetterReason::UnknownSchema => "unknown-schema",
            DeadLetterReason::NotOwner => "not-owner",
            DeadLetterReason::ParserPanicked => "parser-panicked",
            DeadLetterReason::Undeliverable => "undeliverable",
            DeadLetterReason::Unreadable => "unreadable",
        }
    }
}
