//! Inputs that cannot be judged, and why.

use serde::Serialize;

use super::Position;

/// An input that cannot be judged. Its bytes go out again untouched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Where it was read.
    pub position: Position,
    /// Why: one word from a closed list, for metrics and filters.
    pub reason: Reason,
    /// Why: a sentence for people, with the value that was wrong, cut short.
    pub message: String,
}

listed! {
/// Why an input is a dead letter. A closed list: it labels metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The bytes are not what the format says.
    Undecodable,
    /// There is no id, or one that cannot be used.
    NoId,
    /// There is no body.
    NoBody,
    /// A field has a type it cannot have.
    WrongType,
    /// The article is over the limit.
    TooLarge,
    /// Objects and lists lie deeper inside each other than consumers can read.
    TooDeep,
    /// A number has more digits than consumers can read.
    LongNumber,
    /// The registry does not know the schema it was written with, or it is none that can be read.
    UnknownSchema,
    /// Its source does not own the id that it writes about.
    NotOwner,
    /// A parser panicked on it.
    ParserPanicked,
    /// The broker refuses a record that would go out for it.
    Undeliverable,
    /// A batch of the topic that cannot be decompressed or parsed; it was skipped.
    Unreadable,
}
}

impl Reason {
    /// As written in headers and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Undecodable => "undecodable",
            Reason::NoId => "no-id",
            Reason::NoBody => "no-body",
            Reason::WrongType => "wrong-type",
            Reason::TooLarge => "too-large",
            Reason::TooDeep => "too-deep",
            Reason::LongNumber => "long-number",
            Reason::UnknownSchema => "unknown-schema",
            Reason::NotOwner => "not-owner",
            Reason::ParserPanicked => "parser-panicked",
            Reason::Undeliverable => "undeliverable",
            Reason::Unreadable => "unreadable",
        }
    }
}
