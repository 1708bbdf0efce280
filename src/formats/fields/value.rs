//! Values in records, independent of the format. Formats implement [`Value`], paths are followed on it, and the
//! functions at the end convert what they find to the type that a field needs. A value of another type is reported,
//! never guessed.

use samestory_engine::model::EventTime;

use super::super::time;

/// A value in a record.
pub trait Value: Sized {
    /// The member of that name; with `loose`, also one that is [`spelled_alike`](super::spelled_alike). If there are
    /// several, the last one. A value that is not a record has none.
    fn member(&self, name: &str, loose: bool) -> Option<Self>;
    /// Decodes the value.
    fn read(&self) -> Shape<Self>;
    /// The names of the first few members, for messages.
    fn names(&self) -> Vec<String>;
}

/// A decoded value.
#[derive(Debug, PartialEq, Eq)]
pub enum Shape<V> {
    /// Null, treated like a missing value.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number as it is written.
    Number(String),
    /// A string.
    Text(String),
    /// A list of values.
    List(Vec<V>),
    /// A time, from a format that has such a type.
    Time(EventTime),
    /// A record; [`Value::member`] reads its members.
    Record,
    /// A value of a type that is not supported, with a description.
    Other(&'static str),
}

impl<V> Shape<V> {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Shape::Null => "null",
            Shape::Bool(_) => "a boolean",
            Shape::Number(_) => "a number",
            Shape::Text(_) => "a string",
            Shape::List(_) => "a list",
            Shape::Time(_) => "a time",
            Shape::Record => "an object",
            Shape::Other(what) => what,
        }
    }
}

/// A text that is not a field path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a field path; write for example text, content.text, paragraphs[].text or =en for a constant"
)]
pub struct PathError(pub(super) String);

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// To the member of this name.
    Member(String),
    /// To each item of a list.
    Each,
}

/// A path to a value in a record, or a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// The path as written; it is also tried as one name, because names may contain dots.
    pub(super) written: String,
    /// Empty for a constant, which is the text after the `=`.
    pub(super) steps: Vec<PathStep>,
}

impl Path {
    pub(super) fn parse(text: &str) -> Result<Path, PathError> {
        let mut steps = Vec::new();
        match text.strip_prefix('=') {
            Some("") => return Err(PathError(text.to_owned())),
            Some(_) => return Ok(Path { written: text.to_owned(), steps }),
            None => {}
        }
        for part in text.split('.') {
            let name = part.trim_end_matches("[]");
            if name.is_empty() {
                return Err(PathError(text.to_owned()));
            }
            steps.push(PathStep::Member(name.to_owned()));
            steps.extend((0..(part.len() - name.len()) / 2).map(|_| PathStep::Each));
        }
        Ok(Path { written: text.to_owned(), steps })
    }

    /// The constant, if the path is one.
    pub(super) fn constant(&self) -> Option<&str> {
        self.written.strip_prefix('=').filter(|_| self.steps.is_empty())
    }

    /// The value at this path; a list if the path has `[]` steps.
    pub(super) fn follow<V: Value>(&self, record: &V) -> Option<Shape<V>> {
        if let Some(constant) = self.constant() {
            return Some(Shape::Text(constant.to_owned()));
        }
        let mut steps = self.steps.iter();
        let Some(PathStep::Member(first)) = steps.next() else { return None };
        let start = record.member(&self.written, false);
        if let Some(value) = start {
            return Some(value.read());
        }
        let mut here: Vec<V> = record.member(first, false).into_iter().collect();
        let mut several = false;
        for step in steps {
            here = match step {
                PathStep::Member(name) => here.iter().filter_map(|value| value.member(name, false)).collect(),
                PathStep::Each => {
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

/// A value converted to the type that a field needs.
pub(super) enum Coerced<T> {
    Value(T),
    Missing,
    WrongType(&'static str),
}

pub(super) fn as_string<V>(shape: Shape<V>) -> Coerced<String> {
    match shape {
        Shape::Null => Coerced::Missing,
        Shape::Text(text) if text.is_empty() => Coerced::Missing,
        Shape::Text(text) | Shape::Number(text) => Coerced::Value(text),
        Shape::Time(time) => Coerced::Value(time.to_string()),
        other => Coerced::WrongType(other.name()),
    }
}

/// A time. A string that is not a time counts as none: it is no reason to refuse the article.
pub(super) fn as_time<V>(shape: Shape<V>) -> Coerced<Option<EventTime>> {
    match shape {
        Shape::Time(time) => Coerced::Value(Some(time)),
        shape => match as_string(shape) {
            Coerced::Value(text) => Coerced::Value(time::parse(&text)),
            Coerced::Missing => Coerced::Missing,
            Coerced::WrongType(what) => Coerced::WrongType(what),
        },
    }
}

pub(super) fn as_identifier<V>(shape: Shape<V>) -> Coerced<String> {
    match shape {
        // 1.0 and 1e0 are the same number but would be different ids.
        Shape::Number(number) if number.contains(['.', 'e', 'E']) => {
            Coerced::WrongType("a number with a fraction")
        }
        shape => as_string(shape),
    }
}

pub(super) fn as_bool<V>(shape: Shape<V>) -> Coerced<bool> {
    match shape {
        Shape::Null => Coerced::Missing,
        Shape::Bool(value) => Coerced::Value(value),
        // Tables and headers have only strings.
        Shape::Text(text) if text == "true" || text == "1" => Coerced::Value(true),
        Shape::Text(text) if text.is_empty() || text == "false" || text == "0" => Coerced::Value(false),
        other => Coerced::WrongType(other.name()),
    }
}

/// A string, or a list of strings joined by blank lines. An empty string is a body.
pub(super) fn as_body<V: Value>(shape: Shape<V>) -> Coerced<String> {
    match shape {
        Shape::Null => Coerced::Missing,
        Shape::Text(text) => Coerced::Value(text),
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
                    _ => return Coerced::WrongType("a list that contains other values than strings"),
                }
            }
            Coerced::Value(body)
        }
        other => Coerced::WrongType(other.name()),
    }
}
