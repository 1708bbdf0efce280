//! Writes outputs as JSON. Field names and their order are those of the files in `schemas/`; a test compares them.
//! Values are serialized without a line break inside, so that one line is one record.

use std::borrow::Cow;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

use samestory_engine::model::{ClusterRecord, DeadLetter, Position, RawArticle, Related, Verdict};

/// The envelope of a tagged article.
#[derive(Debug, Serialize)]
pub struct Envelope<'a> {
    /// The verdict with everything that belongs to it.
    #[serde(flatten)]
    pub tagged: &'a Verdict,
    /// The article unchanged; `None` leaves it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub article: Option<&'a RawValue>,
}

impl Envelope<'_> {
    /// Appends the envelope as one line.
    pub fn write(&self, out: &mut Vec<u8>) {
        append(out, self);
    }
}

/// The envelope around the article's own bytes, which must be JSON and are not parsed again.
pub fn enveloped(tagged: &Verdict, article: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(article.len() + 1024);
    // The verdict by itself: flattened into an `Envelope`, each field would go through a map.
    append(&mut out, tagged);
    // Cut the closing brace and the line break.
    out.truncate(out.len() - 2);
    out.extend(b",\"article\":");
    out.extend(article.trim_ascii());
    out.push(b'}');
    out
}

/// An article in our own fields, in the order of `raw-article.avsc`.
pub fn mapped(article: &RawArticle) -> Vec<u8> {
    let mut out = Vec::with_capacity(article.body.len() + 512);
    append(&mut out, article);
    out.pop();
    out
}

/// Related articles as a JSON array.
pub fn related(related: &[Related]) -> String {
    let mut out = Vec::new();
    append(&mut out, &related);
    out.pop();
    String::from_utf8(out).unwrap_or_default()
}

/// A text as JSON writes it, in quotes.
pub fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    append(&mut out, &text);
    out.pop();
    out
}

/// A delete event in our own field names.
pub fn delete_event(id: &str, host: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Delete<'a> {
        id: &'a str,
        host: &'a str,
        deleted: bool,
    }
    let mut out = Vec::new();
    append(&mut out, &Delete { id, host, deleted: true });
    out.pop();
    out
}

/// A row of a table as an object with a string for each column.
pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    struct Row<I>(std::cell::Cell<Option<I>>);
    impl<'a, I: Iterator<Item = (&'a str, &'a str)>> Serialize for Row<I> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut out = serializer.serialize_map(None)?;
            for (name, value) in self.0.take().into_iter().flatten() {
                out.serialize_entry(name, value)?;
            }
            out.end()
        }
    }
    let mut out = Vec::new();
    append(&mut out, &Row(std::cell::Cell::new(Some(members.into_iter()))));
    out.pop();
    out
}

/// Removes line breaks and the indentation after them from JSON, so that it fits on one line. JSON strings contain no
/// line breaks.
pub fn one_line(bytes: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr2(b'\n', b'\r', bytes).is_none() {
        return Cow::Borrowed(bytes);
    }
    let mut line = Vec::with_capacity(bytes.len());
    let mut indent = false;
    for &byte in bytes {
        indent = matches!(byte, b'\n' | b'\r') || (indent && matches!(byte, b' ' | b'\t'));
        if !indent {
            line.push(byte);
        }
    }
    Cow::Owned(line)
}

/// Appends a dead letter as one line: position, reason and the original bytes. Bytes that are not UTF-8 are written as
/// hexadecimal digits, so that nothing is lost. `original` is `None` for a record that was too long to be read.
pub fn write_dead_letter(letter: &DeadLetter, original: Option<&[u8]>, out: &mut Vec<u8>) {
    append(out, &DeadLetterLine { letter, original });
}

struct DeadLetterLine<'a> {
    letter: &'a DeadLetter,
    original: Option<&'a [u8]>,
}

impl Serialize for DeadLetterLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        match &self.letter.position {
            Position::File { file, line } => {
                out.serialize_entry("file", file.as_str())?;
                out.serialize_entry("line", line)?;
            }
            position @ Position::Topic { .. } => out.serialize_entry("input", position)?,
        }
        out.serialize_entry("reason", self.letter.reason.as_str())?;
        out.serialize_entry("message", &self.letter.message)?;
        match self.original.map(|bytes| std::str::from_utf8(bytes).map_err(|_| bytes)) {
            None => out.serialize_entry("original", &None::<&str>)?,
            Some(Ok(text)) => out.serialize_entry("original", text)?,
            Some(Err(bytes)) => {
                out.serialize_entry("original_hex", &hex::encode(bytes))?;
            }
        }
        out.end()
    }
}

/// Appends a cluster record as one line.
pub fn write_cluster(cluster: &ClusterRecord, out: &mut Vec<u8>) {
    append(out, cluster);
}

fn append(out: &mut Vec<u8>, value: &impl Serialize) {
    #[expect(clippy::expect_used, reason = "a Vec accepts all bytes, and every key is a string")]
    serde_json::to_writer(&mut *out, value).expect("plain values serialize");
    out.push(b'\n');
}
