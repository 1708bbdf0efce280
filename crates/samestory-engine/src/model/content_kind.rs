//! The kind of content of an article: running text, too little of it, a list or a table. It is read off the text alone, so it
//! is the same wherever the text is judged; no verdict depends on it.

use serde::{Deserialize, Serialize};

use super::Lang;
use crate::text::language::{self, Segmentation};

listed! {
/// The kind of content of an article. Its names are part of the public contract, its bits of the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ContentKind {
    /// Running text.
    #[default]
    Ordinary,
    /// Fewer than fifty words, or a hundred characters in a script without spaces, in whatever form.
    Short,
    /// Mostly items: marked lines, or short ones that end no sentence.
    ListLike,
    /// Mostly rows of cells or of numbers.
    TableLike,
}
}

/// In state and routed records, where [`Flag`](super::Flag) has the lower bits. Routed records and states without them hold
/// running text.
const LIST: u32 = 1 << 30;
const TABLE: u32 = 1 << 31;

impl ContentKind {
    /// As written in tagged articles.
    pub const fn as_str(self) -> &'static str {
        match self {
            ContentKind::Ordinary => "ordinary",
            ContentKind::Short => "short",
            ContentKind::ListLike => "list-like",
            ContentKind::TableLike => "table-like",
        }
    }

    /// This kind, unless a text of so many tokens of its home is short.
    #[must_use]
    pub fn of_length(self, tokens: u32, home: Lang) -> ContentKind {
        let enough = match language::row(home).segment {
            Segmentation::Words => 50,
            Segmentation::Characters => 100,
        };
        if tokens < enough { ContentKind::Short } else { self }
    }

    /// Its bits in state and routed records. A short text has none: its length is in the fingerprint.
    pub const fn bits(self) -> u32 {
        match self {
            ContentKind::Ordinary | ContentKind::Short => 0,
            ContentKind::ListLike => LIST,
            ContentKind::TableLike => TABLE,
        }
    }

    /// The kind with these bits, if the text is [long enough](ContentKind::of_length).
    pub const fn from_bits(bits: u32) -> ContentKind {
        match bits & (LIST | TABLE) {
            LIST => ContentKind::ListLike,
            TABLE => ContentKind::TableLike,
            _ => ContentKind::Ordinary,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Flag;

    #[test]
    fn a_kind_survives_its_bits_and_they_are_no_flag() {
        let flags = Flag::ALL.into_iter().fold(0, |all, flag| all | flag.bit());
        for kind in ContentKind::ALL {
            assert_eq!(kind.bits() & flags, 0);
            let tokens = if kind == ContentKind::Short { 49 } else { 50 };
            assert_eq!(ContentKind::from_bits(kind.bits() | flags).of_length(tokens, Lang::UND), kind);
        }
    }

    #[test]
    fn a_script_without_spaces_is_short_below_a_hundred_characters() {
        let japanese = language::find("ja").unwrap().lang;
        assert_eq!(ContentKind::TableLike.of_length(99, japanese), ContentKind::Short);
        assert_eq!(ContentKind::TableLike.of_length(100, japanese), ContentKind::TableLike);
    }
}
