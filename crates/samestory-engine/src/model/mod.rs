//! The domain's vocabulary: ids, times, positions, verdicts and the records that are published. Every other
//! module depends on these types and they depend on none but the language table. They are plain values:
//! constructors bound what the crawl may bring, and nothing else can fail.

mod article;
mod cluster;
mod content_kind;
mod dead_letter;
mod tagged;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::SignedDuration;
use jiff::civil::DateTime;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use article::{RawArticle, site};
pub use cluster::{ClusterRecord, Member};
pub use content_kind::ContentKind;
pub use dead_letter::{DeadLetter, DeadLetterReason};
pub use tagged::{Contribution, Flag, Related, RelationKind, Verdict};

/// A language from the closed table in `text::language`.
///
/// Articles declare all kinds of invented language tags; a `Lang` is always a row of the table, or
/// [`Lang::UND`]. That bounds column families, metric labels and partitions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lang(&'static str);

impl Lang {
    /// Undetermined: no known language was declared or detected.
    pub const UND: Lang = Lang("und");

    /// Only the table calls this, so that no other code can exist.
    pub(crate) const fn from_table(code: &'static str) -> Lang {
        Lang(code)
    }

    /// The code as written in the table, for example `hi`.
    pub const fn code(self) -> &'static str {
        self.0
    }
}

impl fmt::Debug for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl Serialize for Lang {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Lang {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lang, D::Error> {
        let code = String::deserialize(deserializer)?;
        let known = crate::text::language::find(&code).map(|row| row.lang);
        known
            .or((code == Lang::UND.code()).then_some(Lang::UND))
            .ok_or_else(|| D::Error::custom("an unknown language"))
    }
}

/// How an article's language was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LanguageSource {
    /// Recognised from the text.
    Text,
    /// Declared by the article, under `language.trust = "declared"`.
    Declared,
    /// Unknown: the language is `und`.
    None,
}

impl LanguageSource {
    /// As written in the tagged article.
    pub const fn as_str(self) -> &'static str {
        match self {
            LanguageSource::Text => "text",
            LanguageSource::Declared => "declared",
            LanguageSource::None => "none",
        }
    }
}

/// A text kept for display, truncated to at most `MAX` bytes at a character boundary.
///
/// Every text of an article is bounded before it is stored; `MAX` fits in a two-byte length.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoundedStr<const MAX: u16>(Box<str>);

impl<const MAX: u16> BoundedStr<MAX> {
    /// Truncates `text` if it is too long.
    pub fn new(text: &str) -> BoundedStr<MAX> {
        let mut end = text.len().min(usize::from(MAX));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        BoundedStr(text[..end].into())
    }

    /// The text, possibly truncated.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const MAX: u16> fmt::Debug for BoundedStr<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<const MAX: u16> fmt::Display for BoundedStr<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<const MAX: u16> Serialize for BoundedStr<MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// A headline.
pub type Title = BoundedStr<512>;
/// The site an article was fetched from.
pub type Host = BoundedStr<255>;
/// The address an article was fetched from.
pub type Url = BoundedStr<2048>;
/// The language that an article declares, verbatim (RFC 5646 asks for room for 35 bytes).
pub type LanguageTag = BoundedStr<64>;

/// The id that the broker assigns when a topic is created. A topic that is deleted and recreated under the same
/// name has a different one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId([u8; 16]);

impl TopicId {
    /// From big-endian bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> TopicId {
        TopicId(bytes)
    }

    /// From the two halves that Kafka clients report.
    pub fn from_halves(most: i64, least: i64) -> TopicId {
        let number = u128::from(most.cast_unsigned()) << 64 | u128::from(least.cast_unsigned());
        TopicId(number.to_be_bytes())
    }

    /// The id as big-endian bytes.
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }
}

/// As `kafka-topics --describe` prints it: URL-safe base64 without padding.
impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The id that the crawler gave an article. A language holds at most one document per id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArticleId(Box<str>);

/// An article id of an invalid length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id of {bytes} bytes; it must have 1 to {max}", max = ArticleId::MAX)]
#[non_exhaustive]
pub struct IdError {
    /// The rejected id's length.
    pub bytes: usize,
}

impl ArticleId {
    /// The longest id, in bytes.
    pub const MAX: usize = 512;

    /// Checks the length; the content is free.
    ///
    /// # Errors
    /// The id is empty or too long, which makes the article a dead letter.
    pub fn new(id: &str) -> Result<ArticleId, IdError> {
        if (1..=ArticleId::MAX).contains(&id.len()) {
            Ok(ArticleId(id.into()))
        } else {
            Err(IdError { bytes: id.len() })
        }
    }

    /// The id, verbatim.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ArticleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for ArticleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for ArticleId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ArticleId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ArticleId, D::Error> {
        ArticleId::new(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A time from an article or its record, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventTime(i64);

impl EventTime {
    /// From milliseconds since the Unix epoch.
    pub const fn from_millis(millis: i64) -> EventTime {
        EventTime(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn millis(self) -> i64 {
        self.0
    }
}

/// `2026-03-02T06:10:00Z`, with milliseconds unless they are zero. A time outside the years -9999 to 9999 has no such
/// form and is written as milliseconds since the Unix epoch.
impl fmt::Display for EventTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since_1970 = SignedDuration::from_millis(self.0);
        match DateTime::constant(1970, 1, 1, 0, 0, 0, 0).checked_add(since_1970) {
            Ok(at) if self.0 % 1000 == 0 => write!(f, "{at:.0}Z"),
            Ok(at) => write!(f, "{at:.3}Z"),
            Err(_) => self.0.fmt(f),
        }
    }
}

impl Serialize for EventTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A document's rank within its language: a counter, so a larger number is a newer document.
///
/// A number belongs to one article forever and is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentNumber(pub u64);

impl fmt::Display for DocumentNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A cluster's id, written `language:partition:number`. Numbers are never reused, so neither is an id, and it
/// contains nothing of an article that might have to be erased.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId {
    /// The founder's language, which all members share.
    pub language: Lang,
    /// The partition whose state holds it, because each partition numbers its own documents. 0 for files.
    pub partition: i32,
    /// The founder's document number.
    pub number: DocumentNumber,
}

impl Serialize for ClusterId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.language, self.partition, self.number)
    }
}

impl TopicId {
    /// An id that the broker did not report; it never [differs](TopicId::differs_from) from
    /// another.
    pub const UNKNOWN: TopicId = TopicId([0; 16]);

    /// True if both ids are known and they differ.
    pub fn differs_from(self, other: TopicId) -> bool {
        self != other && self != TopicId::UNKNOWN && other != TopicId::UNKNOWN
    }
}

/// Where an article was read, so that its text can be fetched from there again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(untagged)]
pub enum Position {
    /// In a Kafka topic.
    Topic {
        /// Kafka allows names of 249 bytes.
        topic: BoundedStr<249>,
        /// Partition of the topic.
        partition: i32,
        /// Offset of the record.
        offset: i64,
    },
    /// In a file.
    File {
        /// The path as given on the command line.
        file: BoundedStr<1024>,
        /// Line number, starting at 1.
        line: u64,
    },
}

/// The decision about one article.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// No earlier article has this text.
    Unique,
    /// The text resembles an earlier one.
    NearDuplicate,
    /// The normalised text equals an earlier one.
    ExactDuplicate,
}

impl VerdictKind {
    /// As written in headers and tagged articles.
    pub const fn as_str(self) -> &'static str {
        match self {
            VerdictKind::Unique => "unique",
            VerdictKind::NearDuplicate => "near-duplicate",
            VerdictKind::ExactDuplicate => "exact-duplicate",
        }
    }
}

/// How a duplicate matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MatchType {
    /// The same article again, unchanged.
    SameArticle,
    /// Another article with the same content.
    Exact,
    /// Mostly the same wording.
    Near,
    /// The same item in other words.
    Rewritten,
    /// One is mostly contained in the other.
    Partial,
    /// An editor decided.
    Reviewed,
}

impl MatchType {
    /// As written in headers and tagged articles.
    pub const fn as_str(self) -> &'static str {
        match self {
            MatchType::SameArticle => "same-article",
            MatchType::Exact => "exact",
            MatchType::Near => "near",
            MatchType::Rewritten => "rewritten",
            MatchType::Partial => "partial",
            MatchType::Reviewed => "reviewed",
        }
    }
}

/// A number between 0 and 1 in steps of 1/10,000, so that equality is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fraction(u16);

impl Fraction {
    /// 1.0 in steps.
    pub const WHOLE: u16 = 10_000;

    /// Rounds to the nearest step and clamps to 0..=1; NaN becomes 0.
    pub fn new(share: f64) -> Fraction {
        Fraction((share.clamp(0.0, 1.0) * f64::from(Fraction::WHOLE)).round() as u16)
    }

    /// `None` above [`Fraction::WHOLE`].
    pub const fn from_steps(steps: u16) -> Option<Fraction> {
        if steps <= Fraction::WHOLE { Some(Fraction(steps)) } else { None }
    }

    /// The value in steps of 1/10,000.
    pub const fn steps(self) -> u16 {
        self.0
    }

    /// The value between 0 and 1.
    pub fn get(self) -> f64 {
        f64::from(self.0) / f64::from(Fraction::WHOLE)
    }
}

impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.get())
    }
}

impl<'de> Deserialize<'de> for Fraction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fraction, D::Error> {
        f64::deserialize(deserializer).map(Fraction::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_truncated_at_a_character_boundary() {
        assert_eq!(BoundedStr::<4>::new("नम").as_str(), "न");
        assert_eq!(BoundedStr::<4>::new("news").as_str(), "news");
    }

    #[test]
    fn an_id_has_1_to_512_bytes() {
        assert_eq!(ArticleId::new(""), Err(IdError { bytes: 0 }));
        assert!(ArticleId::new(&"x".repeat(ArticleId::MAX)).is_ok());
        assert_eq!(
            ArticleId::new(&"x".repeat(513)).unwrap_err().to_string(),
            "an id of 513 bytes; it must have 1 to 512"
        );
    }

    #[test]
    fn a_fraction_is_between_0_and_1_whatever_it_is_made_from() {
        assert_eq!(Fraction::new(0.83).get(), 0.83);
        assert_eq!(
            [Fraction::new(f64::NAN), Fraction::new(-1.0), Fraction::new(7.0)].map(Fraction::steps),
            [0, 0, Fraction::WHOLE]
        );
    }
}
