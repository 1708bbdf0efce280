//! A verdict with everything that is published about it.

use serde::{Serialize, Serializer};

use super::{
    ArticleId, ClusterId, Fraction, Lang, LanguageSource, LanguageTag, MatchType, Position, Verdict,
};

/// An article with its verdict: all that is said, without the article itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tagged {
    /// The article.
    pub id: ArticleId,
    /// What it is.
    pub verdict: Verdict,
    /// How a duplicate was told.
    pub match_type: Option<MatchType>,
    /// The best match.
    pub duplicate_of: Option<ArticleId>,
    /// Similarity to the best match, or to the best candidate that did not match.
    pub similarity: Fraction,
    /// Share of the article that lies in the best match.
    pub containment: Fraction,
    /// Probability that a person would agree.
    pub confidence: Fraction,
    /// Its cluster.
    #[serde(rename = "cluster_id")]
    pub cluster: ClusterId,
    /// The article that stands for the cluster now.
    pub canonical_id: ArticleId,
    /// How often its content has changed.
    pub revision: u32,
    /// Its language.
    pub language: Lang,
    /// How that became known.
    pub language_source: LanguageSource,
    /// The language it declares.
    pub declared_language: Option<LanguageTag>,
    /// Articles it has to do with that it is no copy of.
    pub related: Vec<Related>,
    /// What speaks for and against the match; empty unless `output.evidence` asks for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Contribution>,
    /// What else is to be known.
    pub flags: Vec<Flag>,
    /// Hash of the settings it was judged under.
    #[serde(serialize_with = "hexadecimal")]
    pub config: u32,
    /// Where it was read.
    pub input: Position,
}

/// What one measure says about the match, or about the closest text that did not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Contribution {
    /// What was measured.
    pub measure: &'static str,
    /// What came out.
    pub share: Fraction,
    /// What it adds to the log-odds, in thousandths.
    #[serde(rename = "log_odds", serialize_with = "thousandths")]
    pub weight: i32,
}

fn hexadecimal<S: Serializer>(config: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{config:08x}"))
}

fn thousandths<S: Serializer>(weight: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(f64::from(*weight) / 1000.0)
}

impl Contribution {
    /// What it adds to the log-odds.
    pub fn log_odds(self) -> f64 {
        f64::from(self.weight) / 1000.0
    }
}

/// An article that another has to do with without being a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Related {
    /// The earlier article.
    pub id: ArticleId,
    /// What the later one is to it.
    pub relation: RelationKind,
    /// How similar they are.
    pub similarity: Fraction,
}

/// What a unique article is to one it has to do with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelationKind {
    /// It contains the earlier one and adds more than it repeats.
    Extends,
    /// The same form with other facts.
    SameTemplate,
    /// The same running story, other news.
    FollowUp,
    /// Only page furniture in common.
    SameFurniture,
}

impl RelationKind {
    /// As written in tagged articles.
    pub const fn as_str(self) -> &'static str {
        match self {
            RelationKind::Extends => "extends",
            RelationKind::SameTemplate => "same-template",
            RelationKind::FollowUp => "follow-up",
            RelationKind::SameFurniture => "same-furniture",
        }
    }
}

listed! {
/// What else is to be known of a verdict. A closed list; a flag's place in it is its bit in state and routed records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// Too short to be compared other than word for word.
    ShortText,
    /// There is no text: never matched with anything.
    NoText,
    /// The language it claims is not known here.
    UnknownLanguage,
    /// The language it declares is not that of its text.
    LanguageMismatch,
    /// A time lay too far ahead or before 1970 and was clamped.
    ClampedTime,
    /// A bucket held more documents than are examined: a match may have been missed.
    Capped,
    /// It came when its retention was already over: judged, not stored.
    Expired,
    /// The confidence lies in the band that people review.
    Review,
    /// Its time is so far ahead of stream time that believing it would expire everything else. It was judged and stored.
    AheadOfStream,
    /// It holds several earlier articles: a digest, which is a copy of none of them.
    Digest,
    /// Its record is keyed by another language than that of its text: its copies may live in another partition.
    Stray,
    /// An update without a text: the text that is known stays.
    KeptText,
}
}

impl Flag {
    /// Its bit in what a document keeps.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// As written in tagged articles and headers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Flag::ShortText => "short-text",
            Flag::NoText => "no-text",
            Flag::UnknownLanguage => "unknown-language",
            Flag::LanguageMismatch => "language-mismatch",
            Flag::ClampedTime => "clamped-time",
            Flag::Capped => "capped",
            Flag::Expired => "expired",
            Flag::Review => "review",
            Flag::AheadOfStream => "ahead-of-stream",
            Flag::Digest => "digest",
            Flag::Stray => "stray",
            Flag::KeptText => "kept-text",
        }
    }
}
