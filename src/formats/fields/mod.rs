//! The crawler's field names → ours.
//!
//! Usual names are understood unasked, whatever their case and whether their words are joined by `_`, `-` or
//! nothing; settings name the others, as paths: `content.text`, `paragraphs[]`, `blocks[].text`. A name given in
//! settings replaces the usual ones of that field. On the bus `$key` and `$header.x` are paths too, and `=en` is the text
//! behind the `=`, whatever the record holds.
//!
//! A record is anything that is a [`Value`], so that each format needs to say only how its values are looked into.

mod around;
mod field;
mod value;

use std::collections::BTreeMap;
use std::fmt;

use samestory_engine::model::{ArticleId, EventTime};

use super::Event;
use samestory_engine::model::{Article, DeadLetterReason};
use value::{Path, Read, body, identifier, moment, truth, words};

pub use around::{RecordContext, WithContext};
pub use field::{Field, spelled_alike};
pub use value::{PathError, Shape, Step, Value};

/// Why a record is no article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeFailure {
    /// For metrics and filters.
    pub reason: DeadLetterReason,
    /// For people.
    pub message: String,
}

impl DecodeFailure {
    /// Says why.
    pub fn new(reason: DeadLetterReason, message: impl Into<String>) -> DecodeFailure {
        DecodeFailure { reason, message: message.into() }
    }
}

impl fmt::Display for DecodeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.as_str(), self.message)
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

/// The first value under a name of a field that is not what was wanted: the name, and what the value is.
type Passed = Option<(String, &'static str)>;

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

    /// Whether settings say where a field lies. Then it is there or missing, and nothing else stands in for it.
    pub fn is_configured(&self, field: Field) -> bool {
        self.own.contains_key(&field)
    }

    /// The path or usual name under which a record holds a field that can be read.
    pub fn source<V: Value>(&self, record: &V, field: Field) -> Option<&str> {
        fn name<T>((found, _): (Option<(T, &str)>, Passed)) -> Option<&str> {
            found.map(|(_, name)| name)
        }
        match field {
            Field::Id => name(self.look(record, field, identifier)),
            Field::Body => name(self.look(record, field, body)),
            Field::Deleted => name(self.look(record, field, truth)),
            Field::PublishedAt | Field::FetchedAt => {
                let (found, _) = self.look(record, field, moment);
                found.and_then(|(at, name)| at.map(|_| name))
            }
            Field::Title | Field::Url | Field::Host | Field::Language | Field::ContentType => {
                name(self.look(record, field, words))
            }
        }
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
            None => {
                field.names().1.iter().any(|name| columns.iter().any(|column| spelled_alike(name, column)))
            }
        }
    }

    /// Reads an article. Where its id is missing, `name` is asked for one. It has none to give where settings name a path
    /// for the id: if that path is wrong, many articles would become versions of one.
    ///
    /// # Errors
    /// It is none, and why.
    pub fn event<V: Value>(
        &self,
        record: &V,
        name: impl Fn() -> Option<String>,
    ) -> Result<Event, DecodeFailure> {
        if !matches!(record.read(), Shape::Record) {
            let shape = record.read().name();
            return Err(DecodeFailure::new(
                DeadLetterReason::WrongType,
                format!("an article is an object with fields, not {shape}"),
            ));
        }
        let id = self.id(record, name)?;
        if let Found::It(true) = self.find(record, Field::Deleted, truth) {
            return Ok(Event::Delete(id));
        }
        let (body, refusal) = match self.find(record, Field::Body, body) {
            Found::It(body) => (body, None),
            Found::Nothing => {
                (String::new(), Some(self.missing(record, Field::Body, DeadLetterReason::NoBody)))
            }
            Found::Other(name, shape) => return Err(wrong(&name, shape, "a text or a list of texts")),
        };
        let article = Box::new(Article {
            id,
            body,
            title: self.text(record, Field::Title)?,
            url: self.text(record, Field::Url)?,
            host: self.text(record, Field::Host)?,
            language: self.text(record, Field::Language)?,
            content_type: self.text(record, Field::ContentType)?,
            published_at: self.time(record, Field::PublishedAt)?,
            fetched_at: self.time(record, Field::FetchedAt)?,
        });
        Ok(match refusal {
            None => Event::Article(article),
            Some(refusal) => Event::Bodiless(article, refusal),
        })
    }

    /// The site that a record names, in a field of its own or in its URL. An event that deletes may have one, too.
    pub fn site<V: Value>(&self, record: &V) -> Option<String> {
        let text = |field| self.look(record, field, words).0.map(|(text, _)| text);
        samestory_engine::model::site(text(Field::Host).as_deref(), text(Field::Url).as_deref())
            .map(str::to_owned)
    }

    fn id<V: Value>(
        &self,
        record: &V,
        name: impl Fn() -> Option<String>,
    ) -> Result<ArticleId, DecodeFailure> {
        let id = match self.find(record, Field::Id, identifier) {
            Found::It(id) => id,
            Found::Nothing => {
                name().ok_or_else(|| self.missing(record, Field::Id, DeadLetterReason::NoId))?
            }
            Found::Other(name, shape) => return Err(wrong(&name, shape, "a text or a whole number")),
        };
        ArticleId::new(&id).map_err(|error| DecodeFailure::new(DeadLetterReason::NoId, error.to_string()))
    }

    /// An optional text. One that has another type is an error only where settings point to it: a crawler may use
    /// a usual name for something else.
    fn text<V: Value>(&self, record: &V, field: Field) -> Result<Option<String>, DecodeFailure> {
        self.optional(field, self.find(record, field, words), "a text")
    }

    /// An optional time.
    fn time<V: Value>(&self, record: &V, field: Field) -> Result<Option<EventTime>, DecodeFailure> {
        Ok(self.optional(field, self.find(record, field, moment), "a time")?.flatten())
    }

    /// The paths that settings give for fields, in order, each as it was written and taken apart. Constants have none.
    pub fn paths(&self) -> impl Iterator<Item = (Field, &str, &[Step])> {
        let own = self.own.iter().flat_map(|(&field, paths)| paths.iter().map(move |path| (field, path)));
        own.filter(|(_, path)| path.constant().is_none())
            .map(|(field, path)| (field, path.whole.as_str(), path.steps.as_slice()))
    }

    fn optional<T>(&self, field: Field, found: Found<T>, wanted: &str) -> Result<Option<T>, DecodeFailure> {
        match found {
            Found::It(value) => Ok(Some(value)),
            Found::Other(name, shape) if self.own.contains_key(&field) => Err(wrong(&name, shape, wanted)),
            Found::Nothing | Found::Other(..) => Ok(None),
        }
    }

    fn find<V: Value, T>(&self, record: &V, field: Field, read: fn(Shape<V>) -> Read<T>) -> Found<T> {
        match self.look(record, field, read) {
            (Some((it, _)), _) => Found::It(it),
            (None, Some((name, shape))) => Found::Other(name, shape),
            (None, None) => Found::Nothing,
        }
    }

    /// The first value under a name of the field that can be read, and that name. What cannot be read is passed over
    /// while there are other names: `content` may be an object with the `text` in it.
    fn look<V: Value, T>(
        &self,
        record: &V,
        field: Field,
        read: fn(Shape<V>) -> Read<T>,
    ) -> (Option<(T, &str)>, Passed) {
        let mut other = None;
        let mut see = |name, shape: Option<Shape<V>>| match shape.map(read) {
            None | Some(Read::Nothing) => None,
            Some(Read::It(it)) => Some((it, name)),
            Some(Read::Other(shape)) => {
                other.get_or_insert((str::to_owned(name), shape));
                None
            }
        };
        let it = match self.own.get(&field) {
            Some(paths) => paths.iter().find_map(|path| see(path.whole.as_str(), path.follow(record))),
            None => field.names().1.iter().find_map(|name| {
                let value = match name.split_once('.') {
                    None => record.member(name, true),
                    Some((outer, inner)) => {
                        record.member(outer, true).and_then(|outer| outer.member(inner, true))
                    }
                };
                see(*name, value.map(|value| value.read()))
            }),
        };
        (it, other)
    }

    fn missing<V: Value>(&self, record: &V, field: Field, reason: DeadLetterReason) -> DecodeFailure {
        let there: Vec<String> = record.names().iter().map(|name| short(name)).collect();
        let wanted = match self.own.contains_key(&field) {
            true => format!("\"{}\"", self.names(field).join("\" or \"")),
            false => format!("\"{field}\" or a usual name for it"),
        };
        let there = if there.is_empty() { "nothing".to_owned() } else { there.join(", ") };
        DecodeFailure::new(reason, format!("missing field {wanted}; there is {there}"))
    }
}

fn wrong(name: &str, shape: &str, wanted: &str) -> DecodeFailure {
    DecodeFailure::new(
        DeadLetterReason::WrongType,
        format!("field \"{}\" is {shape}; it must be {wanted}", short(name)),
    )
}

/// A name or value from outside, fit to stand in a message.
pub(super) fn short(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut shown: String = text
        .chars()
        .take(LONGEST)
        .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::super::json::{self, Record};
    use super::*;
    use samestory_engine::model::EventTime;

    fn event(json: &str, fields: &Fields) -> Result<Event, DecodeFailure> {
        json::decode(&Record::parse(json.as_bytes()).unwrap(), fields, || None)
    }

    fn article(json: &str) -> Article {
        match event(json, &Fields::default()).unwrap() {
            Event::Article(article) => *article,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn usual_names_are_understood_unasked() {
        let found = article(
            r#"{"_id":17,"headline":"H","articleBody":"B","lang":"hi","pubDate":"Mon, 02 Mar 2026 06:10:00 GMT",
                "crawled-at":1772431800,"Link":"https://x.example/1","domain":"x.example","mime":"text/html"}"#,
        );
        let at = Some(EventTime::from_millis(1_772_431_800_000));
        assert_eq!((found.id.as_str(), found.body.as_str()), ("17", "B"));
        assert_eq!((found.published_at, found.fetched_at), (at, at));
        let text = |text: &Option<String>| text.clone().unwrap();
        assert_eq!(
            [
                text(&found.title),
                text(&found.language),
                text(&found.url),
                text(&found.host),
                text(&found.content_type)
            ],
            ["H", "hi", "https://x.example/1", "x.example", "text/html"]
        );
    }

    #[test]
    fn a_better_name_wins_and_null_is_nothing() {
        assert_eq!(article(r#"{"url":"u","guid":"g","id":null,"text":"t","content":"c"}"#).id.as_str(), "g");
        assert_eq!(article(r#"{"id":"a","content":{"text":"inside"},"body":null}"#).body, "inside");
        assert_eq!(article(r#"{"id":"a","ID":"b","body":""}"#).id.as_str(), "a");
        assert_eq!(article(r#"{"id":"a","id":"b","body":"x","body":"y"}"#).body, "y");
    }

    #[test]
    fn what_is_not_asked_for_may_be_anything() {
        let found = article(r#"{"id":"a","body":"b","title":["x"],"date":{"y":1},"host":false,"z":1e400}"#);
        assert_eq!((found.title, found.published_at, found.host), (None, None, None));
        assert_eq!(
            article(r#"{"id":"a","body":"half \ud800 a pair"}"#).body,
            "half \u{fffd}\u{fffd}\u{fffd} a pair"
        );
        assert_eq!(article(r#"{"id":"a","body":"b","date":"some day"}"#).published_at, None);
    }

    #[test]
    fn named_fields_replace_the_usual_ones_and_must_be_right() {
        let fields = Fields::default().with(Field::Title, "meta.head").unwrap();
        let fields =
            fields.with(Field::Body, "parts[].text").unwrap().with(Field::Body, "plain.text").unwrap();
        let read = |json: &str| event(json, &fields);
        let Ok(Event::Article(found)) = read(
            r#"{"id":"a","title":"no","meta":{"head":"yes"},"parts":[{"text":"one"},{"x":1},{"text":"two"}]}"#,
        ) else {
            panic!("no article")
        };
        assert_eq!((found.title.as_deref(), found.body.as_str()), (Some("yes"), "one\n\ntwo"));
        let Ok(Event::Article(found)) = read(r#"{"id":"a","plain.text":"a name with a dot"}"#) else {
            panic!()
        };
        assert_eq!(found.body, "a name with a dot");
        let refusal = read(r#"{"id":"a","plain":{"text":"b"},"meta":{"head":[]}}"#).unwrap_err();
        assert_eq!(refusal.to_string(), "wrong-type: field \"meta.head\" is a list; it must be a text");
        let Ok(Event::Bodiless(_, refusal)) = read(r#"{"id":"a","body":"not asked for"}"#) else { panic!() };
        assert!(
            refusal
                .message
                .starts_with("missing field \"parts[].text\" or \"plain.text\"; there is id, body")
        );
    }

    #[test]
    fn an_article_may_be_gone() {
        let gone = event(r#"{"id":"a","deleted":true}"#, &Fields::default()).unwrap();
        assert_eq!(gone, Event::Delete(ArticleId::new("a").unwrap()));
        assert_eq!(article(r#"{"id":"a","deleted":false,"body":"b"}"#).body, "b");
    }

    #[test]
    fn refusals_stay_short_whatever_they_are_about() {
        let long = format!(r#"{{"{}\u0007":1}}"#, "n".repeat(10_000));
        let refusal = event(&long, &Fields::default()).unwrap_err();
        assert!(refusal.message.len() < 200 && !refusal.message.contains('\u{7}'), "{}", refusal.message);
        let id =
            event(&format!(r#"{{"id":"{}","body":""}}"#, "i".repeat(513)), &Fields::default()).unwrap_err();
        assert_eq!(id.reason, DeadLetterReason::NoId);
        for number in ["1.5", "1e3", "true", "{}"] {
            let refusal = event(&format!(r#"{{"id":{number},"body":""}}"#), &Fields::default()).unwrap_err();
            assert_eq!(refusal.reason, DeadLetterReason::WrongType, "{number}");
        }
    }

    #[test]
    fn a_constant_stands_in_for_what_is_missing() {
        let fields = Fields::default()
            .with(Field::Language, "meta.lang")
            .and_then(|fields| fields.with(Field::Language, "=en"))
            .and_then(|fields| fields.with(Field::Host, "=wire.example"))
            .unwrap();
        let read = |json: &str| match event(json, &fields).unwrap() {
            Event::Article(article) => (article.language, article.host),
            other => panic!("{other:?}"),
        };
        let host = Some("wire.example".to_owned());
        assert_eq!(
            read(r#"{"id":"a","body":"b","host":"x","meta":{"lang":"hi"}}"#),
            (Some("hi".into()), host.clone())
        );
        assert_eq!(read(r#"{"id":"a","body":"b"}"#), (Some("en".into()), host));
        assert_eq!(fields.paths().map(|(_, path, _)| path).collect::<Vec<_>>(), ["meta.lang"]);
    }

    #[test]
    fn a_field_says_where_it_was_found() {
        let fields = Fields::default().with(Field::Id, "meta.uid").unwrap();
        let record =
            Record::parse(br#"{"meta":{"uid":7},"id":"x","content":{"text":"b"},"date":"some day"}"#)
                .unwrap();
        assert_eq!(fields.source(&record, Field::Id), Some("meta.uid"));
        assert_eq!(fields.source(&record, Field::Body), Some("content.text"));
        assert_eq!(fields.source(&record, Field::PublishedAt), None, "no time can be read there");
        assert_eq!(fields.source(&record, Field::Title), None);
        assert_eq!(Fields::default().source(&record, Field::Id), Some("id"));
        assert!(fields.is_configured(Field::Id) && !fields.is_configured(Field::Body));
    }

    #[test]
    fn paths_lead_somewhere_or_are_refused() {
        for wrong in ["", ".", "a..b", "[]", "a.[]", ".a", "="] {
            assert!(Fields::default().with(Field::Body, wrong).is_err(), "{wrong:?}");
        }
    }
}
