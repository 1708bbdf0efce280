//! What comes in and what goes out, apart from how it is written in bytes.

#[cfg(feature = "avro")]
pub mod avro;
pub mod fields;
mod generation;
mod isolate;
pub mod json;
mod owner;
pub mod time;

pub use generation::GenerationEnd;
pub use isolate::isolate;
#[cfg(feature = "faults")]
pub use isolate::{PANIC_MARKER, leave_unguarded};
pub use owner::Owner;

use fields::Refusal;

use crate::model::{
    ArticleId, ClusterId, EventTime, Lang, LanguageSource, LanguageTag, MatchType, Position, Share, Verdict,
};

/// An article as its crawler sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Article {
    /// Its name.
    pub id: ArticleId,
    /// Its text, with whatever markup it has.
    pub body: String,
    /// For display.
    pub title: Option<String>,
    /// Where it was found.
    pub url: Option<String>,
    /// The site it was found on; told from the URL where it is not given.
    pub host: Option<String>,
    /// The language it claims, unchecked.
    pub language: Option<String>,
    /// The content type it claims, unchecked.
    pub content_type: Option<String>,
    /// Ranks canonicals.
    pub published_at: Option<EventTime>,
    /// Its event time.
    pub fetched_at: Option<EventTime>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An article was fetched, for the first time or again.
    Article(Box<Article>),
    /// An article without a body: an update of one whose text is known, or else refused for this.
    Bodiless(Box<Article>, Refusal),
    /// An article is to be forgotten, in whatever language it is held.
    Delete(ArticleId),
}

impl Event {
    /// The article that it is about.
    pub fn id(&self) -> &ArticleId {
        match self {
            Event::Article(article) | Event::Bodiless(article, _) => &article.id,
            Event::Delete(id) => id,
        }
    }
}

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// An article with its verdict: all that is said, without the article itself.
#[derive(Clone, Debug, PartialEq)]
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
    pub similarity: Share,
    /// Share of the article that lies in the best match.
    pub containment: Share,
    /// Probability that a person would agree.
    pub confidence: Share,
    /// Its cluster.
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
    pub evidence: Vec<Contribution>,
    /// What else is to be known.
    pub flags: Vec<Flag>,
    /// Hash of the settings it was judged under.
    pub config: u32,
    /// Where it was read.
    pub input: Position,
}

/// What one measure says about the match, or about the closest text that did not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contribution {
    /// What was measured.
    pub measure: &'static str,
    /// What came out.
    pub share: Share,
    /// What it adds to the log-odds, in thousandths.
    pub weight: i32,
}

impl Contribution {
    /// What it adds to the log-odds.
    pub fn log_odds(self) -> f64 {
        f64::from(self.weight) / 1000.0
    }
}

/// An article that another has to do with without being a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// The earlier article.
    pub id: ArticleId,
    /// What the later one is to it.
    pub relation: RelationKind,
    /// How similar they are.
    pub similarity: Share,
}

/// What a unique article is to one it has to do with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// A cluster as its readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRecord {
    /// Its name.
    pub id: ClusterId,
    /// The article that stands for it.
    pub canonical: ArticleId,
    /// How many members it has.
    pub size: u64,
    /// Earliest event time of a member.
    pub first_seen: EventTime,
    /// Latest event time of a member.
    pub last_seen: EventTime,
    /// Where members were found.
    pub hosts: Vec<String>,
    /// The newest members.
    pub members: Vec<Member>,
    /// Who stood for it before.
    pub canonical_changed_from: Option<ArticleId>,
    /// The cluster of the member its founder resembled.
    pub split_from: Option<ClusterId>,
}

/// A member as a reader shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The article.
    pub id: ArticleId,
    /// For display.
    pub title: Option<String>,
    /// For display.
    pub host: Option<String>,
    /// For display.
    pub url: Option<String>,
    /// When it was published.
    pub published_at: Option<EventTime>,
    /// How it was matched; none for a founder.
    pub match_type: Option<MatchType>,
}
