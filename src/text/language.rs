//! The LANGUAGES table, and choosing a language for an article.

use crate::model::Lang;

/// How a language's text is cut into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// UAX #29 words, for scripts that put spaces between them.
    Words,
    /// Letters and digits one by one, for scripts that do not.
    Characters,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// The language.
    pub lang: Lang,
    /// How its text is cut.
    pub segment: Segment,
    /// Tokens per shingle.
    pub shingle: usize,
}

/// Every language samestory tells apart.
pub const LANGUAGES: &[Language] = &[
    Language { lang: Lang::UND, segment: Segment::Words, shingle: 3 },
    Language { lang: Lang::from_table("en"), segment: Segment::Words, shingle: 3 },
    Language { lang: Lang::from_table("hi"), segment: Segment::Words, shingle: 3 },
    Language { lang: Lang::from_table("ja"), segment: Segment::Characters, shingle: 5 },
];
