//! Maps a crawler's fields to ours. [`Fields`] reads an event from anything that implements [`Value`], so a format only
//! has to say how its values are accessed.
//!
//! The usual names are understood without settings, in any case and with words joined by `_`, `-` or nothing. Settings
//! give paths for the others: `content.text`, `paragraphs[]`, `blocks[].text`. A path in the settings replaces all
//! usual names of that field. In Kafka records `$key` and `$header.x` are paths too, and `=en` is the constant after
//! the `=`.

mod context;
mod field;
mod value;

use std::collections::BTreeMap;
use std::fmt;

use samestory_engine::model::{ArticleId, EventTime};

use super::Event;
use samestory_engine::model::{DeadLetterReason, RawArticle};
use value::{Coerced, Path, as_body, as_bool, as_identifier, as_string, as_time};

pub use context::{RecordContext, WithContext};
pub use field::{Field, spelled_alike};
pub use value::{PathError, PathStep, Shape, Value};

/// Why a record cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeFailure {
    /// The reason, for metrics and filters.
    pub reason: DeadLetterReason,
    /// An explanation for people.
    pub message: String,
}

impl DecodeFailure {
    /// A failure with an explanation.
    pub fn new(reason: DeadLetterReason, message: impl Into<String>) -> DecodeFailure {
        DecodeFailure { reason, message: message.into() }
    }
}

impl fmt::Display for DecodeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.as_str(), self.message)
    }
}

/// Where a crawler keeps each field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// The paths of the settings.
    configured: BTreeMap<Field, Vec<Path>>,
}

/// The result of looking a field up under all its names.
enum Lookup<T> {
    Value(T),
    Missing,
    /// A value of another type: its name, and what it is.
    WrongType(String, &'static str),
}

/// The first value of a wrong type under a name of a field: the name, and what the value is.
type WrongType = Option<(String, &'static str)>;

impl Fields {
    /// Adds a path for a field. Earlier paths take precedence.
    ///
    /// # Errors
    /// The text is not a field path.
    pub fn with(mut self, field: Field, path: &str) -> Result<Fields, PathError> {
        let path = Path::parse(path)?;
        self.configured.entry(field).or_default().push(path);
        Ok(self)
    }

    /// Removes all paths of a field, so that its usual names apply again.
    #[must_use]
    pub fn without(mut self, field: Field) -> Fields {
        self.configured.remove(&field);
        self
    }

    /// True if the settings name a path for a field. If so, the usual names and the record's key do not replace it.
    pub fn is_configured(&self, field: Field) -> bool {
        self.configured.contains_key(&field)
    }

    /// The path or usual name under which a record has a readable value for a field.
    pub fn source<V: Value>(&self, record: &V, field: Field) -> Option<&str> {
        fn name<T>((found, _): (Option<(T, &str)>, WrongType)) -> Option<&str> {
            found.map(|(_, name)| name)
        }
        match field {
            Field::Id => name(self.lookup(record, field, as_identifier)),
            Field::Body => name(self.lookup(record, field, as_body)),
            Field::Deleted => name(self.lookup(record, field, as_bool)),
            Field::PublishedAt | Field::FetchedAt => {
                let (found, _) = self.lookup(record, field, as_time);
                found.and_then(|(at, name)| at.map(|_| name))
            }
            Field::Title | Field::Url | Field::Host | Field::Language | Field::ContentType => {
                name(self.lookup(record, field, as_string))
            }
        }
    }

    /// The paths or names under which a field is looked up, for messages.
    pub fn names(&self, field: Field) -> Vec<&str> {
        match self.configured.get(&field) {
            Some(paths) => paths.iter().map(|path| path.written.as_str()).collect(),
            None => field.names().1.to_vec(),
        }
    }

    /// True if a table with these columns has the field.
    pub fn any_is(&self, field: Field, columns: &[String]) -> bool {
        match self.configured.get(&field) {
            Some(paths) => paths.iter().any(|path| columns.contains(&path.written)),
            None => {
                field.names().1.iter().any(|name| columns.iter().any(|column| spelled_alike(name, column)))
            }
        }
    }

    /// True if a key is one of the paths or usual names of a field.
    pub fn is_name(&self, field: Field, key: &str) -> bool {
        self.any_is(field, &[key.to_owned()])
    }

    /// Maps a record to an event. If it has no id, `name` supplies one. It must not if the settings name a path for the
    /// id: a wrong path would then turn many articles into versions of one.
    ///
    /// # Errors
    /// The reason why the record is a dead letter.
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
        if let Lookup::Value(true) = self.find(record, Field::Deleted, as_bool) {
            return Ok(Event::Delete(id));
        }
        let (body, refusal) = match self.find(record, Field::Body, as_body) {
            Lookup::Value(body) => (body, None),
            Lookup::Missing => {
                (String::new(), Some(self.missing(record, Field::Body, DeadLetterReason::NoBody)))
            }
            Lookup::WrongType(name, shape) => {
                return Err(wrong(&name, shape, "a string or a list of strings"));
            }
        };
        let article = Box::new(RawArticle {
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

    /// The site of a record, from its host field or its URL. Deletes may have one too.
    pub fn site<V: Value>(&self, record: &V) -> Option<String> {
        let text = |field| self.lookup(record, field, as_string).0.map(|(text, _)| text);
        samestory_engine::model::site(text(Field::Host).as_deref(), text(Field::Url).as_deref())
            .map(str::to_owned)
    }

    fn id<V: Value>(
        &self,
        record: &V,
        name: impl Fn() -> Option<String>,
    ) -> Result<ArticleId, DecodeFailure> {
        let id = match self.find(record, Field::Id, as_identifier) {
            Lookup::Value(id) => id,
            Lookup::Missing => {
                name().ok_or_else(|| self.missing(record, Field::Id, DeadLetterReason::NoId))?
            }
            Lookup::WrongType(name, shape) => return Err(wrong(&name, shape, "a string or an integer")),
        };
        ArticleId::new(&id).map_err(|error| DecodeFailure::new(DeadLetterReason::NoId, error.to_string()))
    }

    /// An optional string. A value of another type is an error only under a path of the settings: a crawler may use a
    /// usual name for something else.
    fn text<V: Value>(&self, record: &V, field: Field) -> Result<Option<String>, DecodeFailure> {
        self.optional(field, self.find(record, field, as_string), "a string")
    }

    fn time<V: Value>(&self, record: &V, field: Field) -> Result<Option<EventTime>, DecodeFailure> {
        Ok(self.optional(field, self.find(record, field, as_time), "a time")?.flatten())
    }

    /// The paths of the settings in order, as written and as steps; without constants.
    pub fn paths(&self) -> impl Iterator<Item = (Field, &str, &[PathStep])> {
        let paths =
            self.configured.iter().flat_map(|(&field, paths)| paths.iter().map(move |path| (field, path)));
        paths
            .filter(|(_, path)| path.constant().is_none())
            .map(|(field, path)| (field, path.written.as_str(), path.steps.as_slice()))
    }

    fn optional<T>(&self, field: Field, found: Lookup<T>, wanted: &str) -> Result<Option<T>, DecodeFailure> {
        match found {
            Lookup::Value(value) => Ok(Some(value)),
            Lookup::WrongType(name, shape) if self.configured.contains_key(&field) => {
                Err(wrong(&name, shape, wanted))
            }
            Lookup::Missing | Lookup::WrongType(..) => Ok(None),
        }
    }

    fn find<V: Value, T>(&self, record: &V, field: Field, read: fn(Shape<V>) -> Coerced<T>) -> Lookup<T> {
        match self.lookup(record, field, read) {
            (Some((it, _)), _) => Lookup::Value(it),
            (None, Some((name, shape))) => Lookup::WrongType(name, shape),
            (None, None) => Lookup::Missing,
        }
    }

    /// The first readable value under a name of the field, with that name. Values of a wrong type are skipped as long
    /// as there are other names: `content` may be an object that contains `text`.
    fn lookup<V: Value, T>(
        &self,
        record: &V,
        field: Field,
        read: fn(Shape<V>) -> Coerced<T>,
    ) -> (Option<(T, &str)>, WrongType) {
        let mut other = None;
        let mut check = |name, shape: Option<Shape<V>>| match shape.map(read) {
            None | Some(Coerced::Missing) => None,
            Some(Coerced::Value(it)) => Some((it, name)),
            Some(Coerced::WrongType(shape)) => {
                other.get_or_insert((str::to_owned(name), shape));
                None
            }
        };
        let it = match self.configured.get(&field) {
            Some(paths) => paths.iter().find_map(|path| check(path.written.as_str(), path.follow(record))),
            None => field.names().1.iter().find_map(|name| {
                let value = match name.split_once('.') {
                    None => record.member(name, true),
                    Some((outer, inner)) => {
                        record.member(outer, true).and_then(|outer| outer.member(inner, true))
                    }
                };
                check(*name, value.map(|value| value.read()))
            }),
        };
        (it, other)
    }

    fn missing<V: Value>(&self, record: &V, field: Field, reason: DeadLetterReason) -> DecodeFailure {
        let there: Vec<String> = record.names().iter().map(|name| short(name)).collect();
        let wanted = match self.configured.contains_key(&field) {
            true => format!("\"{}\"", self.names(field).join("\" or \"")),
            false => format!("\"{field}\" or one of its usual names"),
        };
        let there = if there.is_empty() { "no fields".to_owned() } else { there.join(", ") };
        DecodeFailure::new(reason, format!("missing field {wanted}; the record has {there}"))
    }
}

fn wrong(name: &str, shape: &str, wanted: &str) -> DecodeFailure {
    DecodeFailure::new(
        DeadLetterReason::WrongType,
        format!("field \"{}\" is {shape}; it must be {wanted}", short(name)),
    )
}

/// A name or value from a record, shortened and escaped for a message.
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
    use super::super::json::{self, JsonRecord};
    use super::*;
    use samestory_engine::model::EventTime;

    fn event(json: &str, fields: &Fields) -> Result<Event, DecodeFailure> {
        json::decode(&JsonRecord::parse(json.as_bytes()).unwrap(), fields, || None)
    }

    fn article(json: &str) -> RawArticle {
        match event(json, &Fields::default()).unwrap() {
            Event::Article(article) => *article,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn usual_names_are_understood_without_settings() {
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
    fn a_better_name_wins_and_null_counts_as_missing() {
        assert_eq!(article(r#"{"url":"u","guid":"g","id":null,"text":"t","content":"c"}"#).id.as_str(), "g");
        assert_eq!(article(r#"{"id":"a","content":{"text":"inside"},"body":null}"#).body, "inside");
        assert_eq!(article(r#"{"id":"a","ID":"b","body":""}"#).id.as_str(), "a");
        assert_eq!(article(r#"{"id":"a","id":"b","body":"x","body":"y"}"#).body, "y");
    }

    #[test]
    fn unneeded_fields_may_be_anything() {
        let found = article(r#"{"id":"a","body":"b","title":["x"],"date":{"y":1},"host":false,"z":1e400}"#);
        assert_eq!((found.title, found.published_at, found.host), (None, None, None));
        assert_eq!(
            article(r#"{"id":"a","body":"half \ud800 a pair"}"#).body,
            "half \u{fffd}\u{fffd}\u{fffd} a pair"
        );
        assert_eq!(article(r#"{"id":"a","body":"b","date":"some day"}"#).published_at, None);
    }

    #[test]
    fn configured_paths_replace_the_usual_names_and_must_have_the_right_type() {
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
        assert_eq!(refusal.to_string(), "wrong-type: field \"meta.head\" is a list; it must be a string");
        let Ok(Event::Bodiless(_, refusal)) = read(r#"{"id":"a","body":"not asked for"}"#) else { panic!() };
        assert!(
            refusal
                .message
                .starts_with("missing field \"parts[].text\" or \"plain.text\"; the record has id, body")
        );
    }

    #[test]
    fn a_deleted_flag_makes_a_delete() {
        let gone = event(r#"{"id":"a","deleted":true}"#, &Fields::default()).unwrap();
        assert_eq!(gone, Event::Delete(ArticleId::new("a").unwrap()));
        assert_eq!(article(r#"{"id":"a","deleted":false,"body":"b"}"#).body, "b");
    }

    #[test]
    fn messages_stay_short_and_printable() {
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
    fn a_constant_replaces_a_missing_value() {
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
    fn the_source_of_a_field_is_its_path_or_name() {
        let fields = Fields::default().with(Field::Id, "meta.uid").unwrap();
        let record =
            JsonRecord::parse(br#"{"meta":{"uid":7},"id":"x","content":{"text":"b"},"date":"some day"}"#)
                .unwrap();
        assert_eq!(fields.source(&record, Field::Id), Some("meta.uid"));
        assert_eq!(fields.source(&record, Field::Body), Some("content.text"));
        assert_eq!(fields.source(&record, Field::PublishedAt), None, "no time can be read there");
        assert_eq!(fields.source(&record, Field::Title), None);
        assert_eq!(Fields::default().source(&record, Field::Id), Some("id"));
        assert!(fields.is_configured(Field::Id) && !fields.is_configured(Field::Body));
    }

    #[test]
    fn malformed_paths_are_refused() {
        for wrong in ["", ".", "a..b", "[]", "a.[]", ".a", "="] {
            assert!(Fields::default().with(Field::Body, wrong).is_err(), "{wrong:?}");
        }
    }
}
