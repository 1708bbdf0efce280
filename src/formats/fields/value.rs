//! Values in records, whatever format those are written in: where they lie, and what they are to who asks.

use samestory_engine::model::EventTime;

use super::super::time;

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
    /// A moment, from a format that has such a type.
    Time(EventTime),
    /// Values with names.
    Record,
    /// What nobody here can use, and what it is.
    Other(&'static str),
}

impl<V> Shape<V> {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Shape::Null => "null",
            Shape::Bool(_) => "a boolean",
            Shape::Number(_) => "a number",
            Shape::Text(_) => "a text",
            Shape::List(_) => "a list",
            Shape::Time(_) => "a time",
            Shape::Record => "an object",
            Shape::Other(what) => what,
        }
    }
}

/// A path that leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is no path to a field; write for example text, content.text, paragraphs[].text or =en for a constant"
)]
pub struct PathError(pub(super) String);

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the member of this name.
    Member(String),
    /// To each of a list.
    Each,
}

/// Where a value lies in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// As it was written: a name may have dots in it.
    pub(super) whole: String,
    /// Empty where it is a constant, which is what stands behind the `=`.
    pub(super) steps: Vec<Step>,
}

impl Path {
    pub(super) fn parse(text: &str) -> Result<Path, PathError> {
        let mut steps = Vec::new();
        match text.strip_prefix('=') {
            Some("") => return Err(PathError(text.to_owned())),
            Some(_) => return Ok(Path { whole: text.to_owned(), steps }),
            None => {}
        }
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

    /// What it says itself, whatever the record holds.
    pub(super) fn constant(&self) -> Option<&str> {
        self.whole.strip_prefix('=').filter(|_| self.steps.is_empty())
    }

    /// What lies there: several values where the path says so.
    pub(super) fn follow<V: Value>(&self, record: &V) -> Option<Shape<V>> {
        if let Some(constant) = self.constant() {
            return Some(Shape::Text(constant.to_owned()));
        }
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

/// What a shape is to someone who wants a certain kind of value.
pub(super) enum Read<T> {
    It(T),
    Nothing,
    Other(&'static str),
}

pub(super) fn words<V>(shape: Shape<V>) -> Read<String> {
    match shape {
        Shape::Null => Read::Nothing,
        Shape::Text(text) if text.is_empty() => Read::Nothing,
        Shape::Text(text) | Shape::Number(text) => Read::It(text),
        Shape::Time(time) => Read::It(time.to_string()),
        other => Read::Other(other.name()),
    }
}

/// A text that is not a time is no time: it says nothing of the article's text.
pub(super) fn moment<V>(shape: Shape<V>) -> Read<Option<EventTime>> {
    match shape {
        Shape::Time(time) => Read::It(Some(time)),
        shape => match words(shape) {
            Read::It(text) => Read::It(time::parse(&text)),
            Read::Nothing => Read::Nothing,
            Read::Other(what) => Read::Other(what),
        },
    }
}

pub(super) fn identifier<V>(shape: Shape<V>) -> Read<String> {
    match shape {
        // 1.0 and 1e0 are one number and two names.
        Shape::Number(number) if number.contains(['.', 'e', 'E']) => Read::Other("a number with a fraction"),
        shape => words(shape),
    }
}

pub(super) fn truth<V>(shape: Shape<V>) -> Read<bool> {
    match shape {
        Shape::Null => Read::Nothing,
        Shape::Bool(value) => Read::It(value),
        // Tables and headers know only text.
        Shape::Text(text) if text == "true" || text == "1" => Read::It(true),
        Shape::Text(text) if text.is_empty() || text == "false" || text == "0" => Read::It(false),
        other => Read::Other(other.name()),
    }
}

/// An empty text is a body, if an empty one.
pub(super) fn body<V: Value>(shape: Shape<V>) -> Read<String> {
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
