//! The crawler's field names → ours.
//!
//! Usual names are understood unasked, whatever their case and whether their words are joined by `_`, `-` or
//! nothing; settings name the others, as paths: `content.text`, `paragraphs[]`, `blocks[].text`. A name given in
//! settings replaces the usual ones of that field.
//!
//! A record is anything that is a [`Value`], so that each format needs to say only how its values are looked into.

use std::collections::BTreeMap;
use std::fmt;

use crate::model::{ArticleId, EventTime};

use super::{Article, Event, Reason, time};

/// What of an article can be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// Its name. Required.
    Id,
    /// Its text. Required; it may be empty.
    Body,
    /// Its headline.
    Title,
    /// Where it was found.
    Url,
    /// The site it was found on.
    Host,
    /// The language it claims.
    Language,
    /// The content type it claims.
    ContentType,
    /// When it was published.
    PublishedAt,
    /// When it was fetched: its event time.
    FetchedAt,
    /// Whether it is to be forgotten.
    Deleted,
}

impl Field {
    /// All of them.
    pub const ALL: [Field; 10] = [
        Field::Id,
        Field::Body,
        Field::Title,
        Field::Url,
        Field::Host,
        Field::Language,
        Field::ContentType,
        Field::PublishedAt,
        Field::FetchedAt,
        Field::Deleted,
    ];

    /// Our name for it, and the names it usually has, in order of preference.
    ///
    /// An address names an article as well as anything, where there is nothing better.
    const fn names(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Field::Id => ("id", &["id", "_id", "article_id", "doc_id", "document_id", "uuid", "guid", "key", "url", "link"]),
            Field::Body => (
                "body",
                &[
                    "body", "text", "content", "article_body", "body_text", "article_text", "full_text", "main_text",
                    "article", "story", "html", "body_html", "paragraphs", "content.text", "content.body", "article.body",
                    "article.text", "content.html",
                ],
            ),
            Field::Title => ("title", &["title", "headline", "head_line", "name", "subject", "article.title"]),
            Field::Url => ("url", &["url", "link", "canonical_url", "article_url", "permalink", "uri"]),
            Field::Host => ("host", &["host", "hostname", "domain", "site", "source", "publisher", "source.name"]),
            Field::Language => ("language", &["language", "lang", "locale", "language_code", "lang_code", "in_language"]),
            Field::ContentType => ("content_type", &["content_type", "mime_type", "mime", "media_type"]),
            Field::PublishedAt => (
                "published_at",
                &["published_at", "published", "pub_date", "date_published", "publish_date", "published_date", "date"],
            ),
            Field::FetchedAt => (
                "fetched_at",
                &["fetched_at", "crawled_at", "fetched", "crawled", "crawl_date", "fetch_time", "crawl_time", "retrieved_at"],
            ),
            Field::Deleted => ("deleted", &["deleted", "_deleted", "is_deleted"]),
        }
    }

    /// Our name for it.
    pub const fn name(self) -> &'static str {
        self.names().0
    }

    /// The field of that name, in our words.
    pub fn from_name(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.name() == name)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A value in a record.
pub trait Value: Sized {
    /// The member of that name, or, with `loose`, of one that is spelled nearly so. The last, if there are several;
    /// none of what is not a record.
    fn member(&self, name: &str, loose: bool) -> Option<Self>;
    /// What it is.
    fn read(&self) -> Shape<Self>;
    /// The names of its members, the first few.
    fn names(&self) -> Vec<String>;
}

/// What a value is.
#[derive(Debug, PartialEq, Eq)]
pub enum Shape<V> {
    /// As if it were not there.
    Null,
    /// True or false.
    Bool(bool),
    /// A number as it is written.
    Number(String),
    /// A text.
    Text(String),
    /// Several values.
    List(Vec<V>),
    /// Values with names.
    Record,
}

impl<V> Shape<V> {
    const fn name(&self) -> &'static str {
        match self {
            Shape::Null => "null",
            Shape::Bool(_) => "a boolean",
            Shape::Number(_) => "a number",
            Shape::Text(_) => "a text",
            Shape::List(_) => "a list",
            Shape::Record => "an object",
        }
    }
}

/// Why a record is no article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For metrics and filters.
    pub reason: Reason,
    /// For people.
    pub message: String,
}

impl Refusal {
    /// Says why.
    pub fn new(reason: Reason, message: impl Into<String>) -> Refusal {
        Refusal { reason, message: message.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.as_str(), self.message)
    }
}

/// A path that leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no path to a field; write for example text, content.text or paragraphs[].text")]
pub struct PathError(String);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Each,
}

/// Where a value lies in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Path {
    /// As it was written: a name may have dots in it.
    whole: String,
    steps: Vec<Step>,
}

impl Path {
    fn parse(text: &str) -> Result<Path, PathError> {
        let mut steps = Vec::new();
        for part in text.split('.') {
            let name = part.trim_end_matches("[]");
            if name.is_empty() {
                return Err(PathError(text.to_owned()));
            }
            steps.push(Step::Member(name.to_owned()));
            steps.extend((0..(part.len() - name.len()) / 2).map(|_| Step::Each));
        }
        Ok(Path { whole: text.to_owned(), steps })
    }

    /// What lies there: several values where the path says so.
    fn follow<V: Value>(&self, record: &V) -> Option<Shape<V>> {
        let mut steps = self.steps.iter();
        let Some(Step::Member(first)) = steps.next() else { return None };
        let start = record.member(&self.whole, false);
        if let Some(value) = start {
            return Some(value.read());
        }
        let mut here: Vec<V> = record.member(first, false).into_iter().collect();
        let mut several = false;
        for step in steps {
            here = match step {
                Step::Member(name) => here.iter().filter_map(|value| value.member(name, false)).collect(),
                Step::Each => {
                    several = true;
                    let lists = here.iter().map(|value| match value.read() {
                        Shape::List(values) => values,
                        _ => Vec::new(),
                    });
                    lists.flatten().collect()
                }
            };
        }
        match several {
            true if here.is_empty() => None,
            true => Some(Shape::List(here)),
            false => here.pop().map(|value| value.read()),
        }
    }
}

/// Where a crawler keeps what we ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    own: BTreeMap<Field, Vec<Path>>,
}

/// What was found under the names of a field.
enum Found<T> {
    It(T),
    Nothing,
    /// Something else, and what it is.
    Other(String, &'static str),
}

impl Fields {
    /// Looks for a field here. Said twice, the first has precedence.
    ///
    /// # Errors
    /// The path cannot be one.
    pub fn with(mut self, field: Field, path: &str) -> Result<Fields, PathError> {
        let path = Path::parse(path)?;
        self.own.entry(field).or_default().push(path);
        Ok(self)
    }

    /// Looks for a field under its usual names again.
    #[must_use]
    pub fn without(mut self, field: Field) -> Fields {
        self.own.remove(&field);
        self
    }

    /// The names that a field is looked for under, for messages.
    pub fn names(&self, field: Field) -> Vec<&str> {
        match self.own.get(&field) {
            Some(paths) => paths.iter().map(|path| path.whole.as_str()).collect(),
            None => field.names().1.to_vec(),
        }
    }

    /// Whether one of these columns is the field.
    pub fn any_is(&self, field: Field, columns: &[String]) -> bool {
        match self.own.get(&field) {
            Some(paths) => paths.iter().any(|path| columns.contains(&path.whole)),
            None => field.names().1.iter().any(|name| columns.iter().any(|column| spelled_alike(name, column))),
        }
    }

    /// Reads an article. Where its id is missing, `name` is asked for one.
    ///
    /// # Errors
    /// It is none, and why.
    pub fn event<V: Value>(&self, record: &V, name: impl Fn() -> Option<String>) -> Result<Event, Refusal> {
        if !matches!(record.read(), Shape::Record) {
            let shape = record.read().name();
            return Err(Refusal::new(Reason::WrongType, format!("an article is an object with fields, not {shape}")));
        }
        let id = self.id(record, name)?;
        if let Found::It(true) = self.find(record, Field::Deleted, truth) {
            return Ok(Event::Delete(id));
        }
        let body = match self.find(record, Field::Body, body) {
            Found::It(body) => body,
            Found::Nothing => return Err(self.missing(record, Field::Body, Reason::NoBody)),
            Found::Other(name, shape) => return Err(wrong(&name, shape, "a text or a list of texts")),
        };
        Ok(Event::Article(Box::new(Article {
            id,
            body,
            title: self.text(record, Field::Title)?,
            url: self.text(record, Field::Url)?,
            host: self.text(record, Field::Host)?,
            language: self.text(record, Field::Language)?,
            content_type: self.text(record, Field::ContentType)?,
            published_at: self.time(record, Field::PublishedAt)?,
            fetched_at: self.time(record, Field::FetchedAt)?,
        })))
    }

    fn id<V: Value>(&self, record: &V, name: impl Fn() -> Option<String>) -> Result<ArticleId, Refusal> {
        let id = match self.find(record, Field::Id, identifier) {
            Found::It(id) => id,
            Found::Nothing => name().ok_or_else(|| self.missing(record, Field::Id, Reason::NoId))?,
            Found::Other(name, shape) => return Err(wrong(&name, shape, "a text or a whole number")),
        };
        ArticleId::new(&id).map_err(|error| Refusal::new(Reason::NoId, error.to_string()))
    }

    /// An optional text. One that has another type is an error only where settings point to it: a crawler may use
    /// a usual name for something else.
    fn text<V: Value>(&self, record: &V, field: Field) -> Result<Option<String>, Refusal> {
        self.optional(field, self.find(record, field, words), "a text")
    }

    /// An optional time. A text that is not a time is no time: it says nothing of the article's text.
    fn time<V: Value>(&self, record: &V, field: Field) -> Result<Option<EventTime>, Refusal> {
        let written = self.optional(field, self.find(record, field, words), "a time")?;
        Ok(written.as_deref().and_then(time::parse))
    }

    fn optional<T>(&self, field: Field, found: Found<T>, wanted: &str) -> Result<Option<T>, Refusal> {
        match found {
            Found::It(value) => Ok(Some(value)),
            Found::Other(name, shape) if self.own.contains_key(&field) => Err(wrong(&name, shape, wanted)),
            Found::Nothing | Found::Other(..) => Ok(None),
        }
    }

    /// The first value under a name of the field that can be read. What cannot be read is passed over while there
    /// are other names: `content` may be an object with the `text` in it.
    fn find<V: Value, T>(&self, record: &V, field: Field, read: fn(Shape<V>) -> Read<T>) -> Found<T> {
        let mut other = None;
        let mut see = |name: &str, shape: Option<Shape<V>>| match shape.map(read) {
            None | Some(Read::Nothing) => None,
            Some(Read::It(it)) => Some(it),
            Some(Read::Other(shape)) => {
                other.get_or_insert((name.to_owned(), shape));
                None
            }
        };
        let it = match self.own.get(&field) {
            Some(paths) => paths.iter().find_map(|path| see(&path.whole, path.follow(record))),
            None => field.names().1.iter().find_map(|name| {
                let value = match name.split_once('.') {
                    None => record.member(name, true),
                    Some((outer, inner)) => record.member(outer, true).and_then(|outer| outer.member(inner, true)),
                };
                see(name, value.map(|value| value.read()))
            }),
        };
        match (it, other) {
            (Some(it), _) => Found::It(it),
            (None, Some((name, shape))) => Found::Other(name, shape),
            (None, None) => Found::Nothing,
        }
    }

    fn missing<V: Value>(&self, record: &V, field: Field, reason: Reason) -> Refusal {
        let there: Vec<String> = record.names().iter().map(|name| short(name)).collect();
        let wanted = match self.own.contains_key(&field) {
            true => format!("\"{}\"", self.names(field).join("\" or \"")),
            false => format!("\"{field}\" or a usual name for it"),
        };
        let there = if there.is_empty() { "nothing".to_owned() } else { there.join(", ") };
        Refusal::new(reason, format!("missing field {wanted}; there is {there}"))
    }
}

/// What a shape is to someone who wants a certain kind of value.
enum Read<T> {
    It(T),
    Nothing,
    Other(&'static str),
}

fn words<V>(shape: Shape<V>) -> Read<String> {
    match shape {
        Shape::Null => Read::Nothing,
        Shape::Text(text) if text.is_empty() => Read::Nothing,
        Shape::Text(text) | Shape::Number(text) => Read::It(text),
        other => Read::Other(other.name()),
    }
}

fn identifier<V>(shape: Shape<V>) -> Read<String> {
    match shape {
        // 1.0 and 1e0 are one number and two names.
        Shape::Number(number) if number.contains(['.', 'e', 'E']) => Read::Other("a number with a fraction"),
        shape => words(shape),
    }
}

fn truth<V>(shape: Shape<V>) -> Read<bool> {
    match shape {
        Shape::Null => Read::Nothing,
        Shape::Bool(value) => Read::It(value),
        other => Read::Other(other.name()),
    }
}

/// An empty text is a body, if an empty one.
fn body<V: Value>(shape: Shape<V>) -> Read<String> {
    match shape {
        Shape::Null => Read::Nothing,
        Shape::Text(text) => Read::It(text),
        Shape::List(values) => {
            let mut body = String::new();
            for value in values {
                match value.read() {
                    Shape::Null => {}
                    Shape::Text(text) => {
                        if !body.is_empty() {
                            body.push_str("\n\n");
                        }
                        body.push_str(&text);
                    }
                    _ => return Read::Other("a list with other things than texts"),
                }
            }
            Read::It(body)
        }
        other => Read::Other(other.name()),
    }
}

fn wrong(name: &str, shape: &str, wanted: &str) -> Refusal {
    Refusal::new(Reason::WrongType, format!("field \"{}\" is {shape}; it must be {wanted}", short(name)))
}

/// A name or value from outside, fit to stand in a message.
pub(super) fn short(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut shown: String = text.chars().take(LONGEST).flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

/// Whether two names differ only in case and in what joins their words.
pub fn spelled_alike(a: &str, b: &str) -> bool {
    fn letters(name: &str) -> impl Iterator<Item = u8> {
        name.bytes().filter(|byte| !b"_- ".contains(byte)).map(|byte| byte.to_ascii_lowercase())
    }
    letters(a).eq(letters(b))
}
