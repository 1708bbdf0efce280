//! A verdict with everything that is published about it: the content of a record on the verdict topic. The
//! engine builds it and the formats encode it as JSON or Avro. Field and variant names are part of the public
//! contract.

use serde::{Deserialize, Serialize, Serializer};

use super::{
    ArticleId, ClusterId, ContentKind, EventTime, Fraction, Lang, LanguageSource, LanguageTag, MatchType,
    Position, VerdictKind,
};

/// The verdict on one article and everything published with it, except the article itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The judged article.
    pub id: ArticleId,
    /// Unique, near or exact duplicate.
    #[serde(rename = "verdict")]
    pub kind: VerdictKind,
    /// How a duplicate matches; `None` if the article is unique.
    pub match_type: Option<MatchType>,
    /// The best match; `None` if the article is unique.
    pub duplicate_of: Option<ArticleId>,
    /// Similarity to the best match, or to the best candidate that did not match.
    pub similarity: Fraction,
    /// Containment: the fraction of the article that also occurs in the best match.
    pub containment: Fraction,
    /// Probability that a person would agree that it is a duplicate.
    pub confidence: Fraction,
    /// The cluster it belongs to.
    #[serde(rename = "cluster_id")]
    pub cluster: ClusterId,
    /// The article that represents the cluster now.
    pub canonical_id: ArticleId,
    /// How often its content has changed.
    pub revision: u32,
    /// The language it was judged in.
    pub language: Lang,
    /// How the language was determined.
    pub language_source: LanguageSource,
    /// The language it declares, verbatim.
    pub declared_language: Option<LanguageTag>,
    /// What kind of content it is.
    pub content_kind: ContentKind,
    /// Articles that it is related to without being a copy of them.
    pub related: Vec<Related>,
    /// Evidence for and against the match; empty unless `output.evidence` is set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Contribution>,
    /// Anything else a consumer should know.
    pub flags: Vec<Flag>,
    /// Hash of the settings it was judged under.
    #[serde(serialize_with = "as_hex")]
    pub config: u32,
    /// Where the article was read.
    pub input: Position,
    /// When it was received, by the clock in the log: the stamp that its record got when it was routed, else the record's
    /// time. A replay of the log gives the same value. `None` for files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_at: Option<EventTime>,
}

/// One measure's evidence on the match, or on the closest candidate that did not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Contribution {
    /// Name of the measure.
    pub measure: &'static str,
    /// Its value.
    pub share: Fraction,
    /// Contribution to the log-odds, in thousandths.
    #[serde(rename = "log_odds", serialize_with = "from_thousandths")]
    pub weight: i32,
}

fn as_hex<S: Serializer>(config: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{config:08x}"))
}

fn from_thousandths<S: Serializer>(weight: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(f64::from(*weight) / 1000.0)
}

impl Contribution {
    /// Contribution to the log-odds.
    pub fn log_odds(self) -> f64 {
        f64::from(self.weight) / 1000.0
    }
}

/// An earlier article that a unique one is related to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Related {
    /// The earlier article.
    pub id: ArticleId,
    /// How the later article relates to the earlier one.
    pub relation: RelationKind,
    /// Similarity of the two.
    pub similarity: Fraction,
}

/// How a unique article relates to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelationKind {
    /// It contains the earlier one and adds more than it repeats.
    Extends,
    /// The same form with different facts.
    SameTemplate,
    /// Different news of the same running story.
    FollowUp,
    /// Only boilerplate in common.
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
/// Remarks on a verdict. The list is closed and its order is persisted: a flag's index is its bit in state
/// and routed records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Flag {
    /// Too short to be compared other than word for word.
    ShortText,
    /// The text is empty, so it never matches.
    NoText,
    /// The declared language is not in the table.
    UnknownLanguage,
    /// The declared language differs from the language of the text.
    LanguageMismatch,
    /// A time lay too far in the future or before 1970 and was clamped.
    ClampedTime,
    /// A hot bucket held more documents than are examined, so a match may have been missed.
    Capped,
    /// Its retention was over when it arrived: judged, not stored.
    Expired,
    /// The confidence lies in the review band.
    Review,
    /// Its time is so far ahead of stream time that accepting it would expire everything else. It was judged
    /// and stored.
    AheadOfStream,
    /// It contains several earlier articles: a digest is a copy of none of them.
    Digest,
    /// Its record is keyed by a language other than that of its text, so its copies may live in another
    /// partition.
    Stray,
    /// An update without a text: the stored text stays.
    KeptText,
}
}

impl Flag {
    /// Its bit in state and routed records.
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
