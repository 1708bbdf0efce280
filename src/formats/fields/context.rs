//! Makes a Kafka record's key and headers available to field paths: `$key` and `$header.x` work like any other path.
//! [`WithContext`] wraps the parsed value of any format, so the formats know nothing of Kafka.

use super::value::{Shape, Value};

/// The key and headers of a Kafka record.
#[derive(Clone, Copy, Debug)]
pub struct RecordContext<'a> {
    /// The record's key.
    pub key: Option<&'a [u8]>,
    /// The record's headers, in order.
    pub headers: &'a [(String, Option<Vec<u8>>)],
}

impl RecordContext<'_> {
    fn key(&self) -> Option<String> {
        self.key.and_then(|key| str::from_utf8(key).ok()).map(str::to_owned)
    }

    /// The last header of that name: headers that are added later take precedence.
    pub(in crate::formats) fn header(&self, name: &str) -> Option<String> {
        let (_, value) = self.headers.iter().rfind(|(key, _)| key == name)?;
        value.as_deref().and_then(|value| str::from_utf8(value).ok()).map(str::to_owned)
    }
}

/// A value of a record, or of its key or headers.
#[derive(Debug)]
pub enum WithContext<'a, V> {
    /// The record itself.
    Record(V, RecordContext<'a>),
    /// A value inside the record.
    Inside(V),
    /// The key or a header.
    Text(String),
    /// All headers.
    Headers(RecordContext<'a>),
}

impl<V: Value> Value for WithContext<'_, V> {
    fn member(&self, name: &str, loose: bool) -> Option<Self> {
        match self {
            WithContext::Record(record, context) => match name {
                "$key" => context.key().map(WithContext::Text),
                "$header" => Some(WithContext::Headers(*context)),
                _ => match name.strip_prefix("$header.") {
                    Some(header) => context.header(header).map(WithContext::Text),
                    None => record.member(name, loose).map(WithContext::Inside),
                },
            },
            WithContext::Inside(value) => value.member(name, loose).map(WithContext::Inside),
            WithContext::Headers(context) => context.header(name).map(WithContext::Text),
            WithContext::Text(_) => None,
        }
    }

    fn read(&self) -> Shape<Self> {
        match self {
            WithContext::Text(text) => Shape::Text(text.clone()),
            WithContext::Headers(_) => Shape::Record,
            WithContext::Record(value, _) | WithContext::Inside(value) => match value.read() {
                Shape::Null => Shape::Null,
                Shape::Bool(value) => Shape::Bool(value),
                Shape::Number(number) => Shape::Number(number),
                Shape::Text(text) => Shape::Text(text),
                Shape::List(values) => Shape::List(values.into_iter().map(WithContext::Inside).collect()),
                Shape::Time(time) => Shape::Time(time),
                Shape::Record => Shape::Record,
                Shape::Other(what) => Shape::Other(what),
            },
        }
    }

    fn names(&self) -> Vec<String> {
        match self {
            WithContext::Record(value, _) | WithContext::Inside(value) => value.names(),
            WithContext::Text(_) | WithContext::Headers(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Event;
    use super::super::super::json::JsonRecord;
    use super::super::{Field, Fields};
    use super::*;

    #[test]
    fn keys_and_headers_are_fields_like_any_other() {
        let headers = [
            ("lang".to_owned(), Some(b"en".to_vec())),
            ("lang".to_owned(), Some(b"hi".to_vec())),
            ("x.gone".to_owned(), Some(b"true".to_vec())),
            ("raw".to_owned(), Some(vec![0xff])),
        ];
        let context = RecordContext { key: Some(b"k-1"), headers: &headers };
        let fields = Fields::default()
            .with(Field::Id, "$key")
            .and_then(|fields| fields.with(Field::Language, "$header.lang"))
            .and_then(|fields| fields.with(Field::Title, "$header.raw"))
            .and_then(|fields| fields.with(Field::Title, "meta.title"))
            .unwrap();
        let record = br#"{"id":"other","body":"b","meta":{"title":"T"}}"#;
        let read = |fields: &Fields| {
            fields.event(&WithContext::Record(JsonRecord::parse(record).unwrap(), context), || None).unwrap()
        };
        let Event::Article(article) = read(&fields) else { panic!("a delete") };
        assert_eq!((article.id.as_str(), article.language.as_deref()), ("k-1", Some("hi")));
        assert_eq!(article.title.as_deref(), Some("T"), "a header that is not UTF-8 does not count");
        let gone = fields.with(Field::Deleted, "$header.x.gone").unwrap();
        assert!(matches!(read(&gone), Event::Delete(id) if id.as_str() == "k-1"));
    }
}
