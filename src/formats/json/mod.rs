//! JSON in and out. [`JsonRecord`] parses an input record and [`super::fields`] maps it; the `write_…` functions write
//! envelopes, clusters and dead letters, one line each, with the article byte for byte as it was received.
//!
//! Only the fields that are needed are built. The rest is checked to be valid JSON and otherwise left alone, so a
//! number like `1e400` or half a surrogate pair in another field does not make a dead letter. Nesting and numbers that
//! would break the parsers of consumers do: see [`DEEPEST`] and [`LONGEST_NUMBER`]. If a key occurs twice, the last one
//! counts. Half a surrogate pair in a needed string is read as U+FFFD.

mod paths;
mod write;

use std::cell::OnceCell;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Event;
use super::fields::{self, DecodeFailure, Fields, Shape, Value};
use samestory_engine::model::DeadLetterReason;

pub use paths::paths;
pub use write::{
    Envelope, delete_event, enveloped, mapped, object, one_line, quoted, related, write_cluster,
    write_dead_letter,
};

/// Most nested objects and lists, as in Avro. Parsers give up somewhere between 64 (.NET) and 1,000 (Jackson, Python).
pub const DEEPEST: usize = 128;

/// Most characters of a number. Jackson refuses longer ones, Python refuses integers of more than 4,300 digits; a
/// product of two primes of 2,048 bits has 1,233 digits and belongs in a string.
pub const LONGEST_NUMBER: usize = 1000;

/// A JSON value that may be an article.
#[derive(Debug)]
pub struct JsonRecord<'a> {
    raw: &'a RawValue,
    members: OnceCell<Vec<(String, &'a RawValue)>>,
}

impl<'a> JsonRecord<'a> {
    /// Parses bytes, and checks that consumers can parse them too.
    ///
    /// # Errors
    /// [`DeadLetterReason::Undecodable`], [`DeadLetterReason::TooDeep`] or [`DeadLetterReason::LongNumber`], with the position.
    pub fn parse(bytes: &'a [u8]) -> Result<JsonRecord<'a>, DecodeFailure> {
        let undecodable = |message| DecodeFailure::new(DeadLetterReason::Undecodable, message);
        let text = std::str::from_utf8(bytes)
            .map_err(|error| undecodable(format!("byte {} is not UTF-8", error.valid_up_to() + 1)))?;
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| undecodable(not_json(&error)))?;
        check_bounds(raw.get())?;
        Ok(JsonRecord::new(raw))
    }

    /// A record that was parsed before.
    pub fn from_raw(raw: &'a RawValue) -> JsonRecord<'a> {
        JsonRecord::new(raw)
    }

    fn new(raw: &'a RawValue) -> JsonRecord<'a> {
        JsonRecord { raw, members: OnceCell::new() }
    }

    /// The JSON text unchanged, without surrounding white space.
    pub fn raw(&self) -> &'a RawValue {
        self.raw
    }

    /// The keys of the object in order; none if it is not an object.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.members().iter().map(|(key, _)| key.as_str())
    }

    fn members(&self) -> &[(String, &'a RawValue)] {
        self.members.get_or_init(|| {
            let Members(members) = serde_json::from_str(self.raw.get()).unwrap_or_default();
            members
        })
    }
}

/// Refuses valid JSON that consumers could not read.
fn check_bounds(json: &str) -> Result<(), DecodeFailure> {
    let bytes = json.as_bytes();
    let (mut at, mut depth) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'[' | b'{' => {
                depth += 1;
                if depth > DEEPEST {
                    let message = format!("nested more than {DEEPEST} levels deep, at byte {}", at + 1);
                    return Err(DecodeFailure::new(DeadLetterReason::TooDeep, message));
                }
            }
            b']' | b'}' => depth -= 1,
            b'-' | b'0'..=b'9' => {
                let rest = &bytes[at..];
                let length =
                    rest.iter().position(|byte| !b"+-.0123456789eE".contains(byte)).unwrap_or(rest.len());
                if length > LONGEST_NUMBER {
                    let message = format!(
                        "a number of {length} characters, at byte {}; at most {LONGEST_NUMBER} are accepted",
                        at + 1
                    );
                    return Err(DecodeFailure::new(DeadLetterReason::LongNumber, message));
                }
                at += length - 1;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// The position of the closing quote of the string that opens at `from`.
fn end_of_string(bytes: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

/// The parser's message with the column. The line is named only if there are several.
fn not_json(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let what = message.rfind(" at line ").map_or(message.as_str(), |end| &message[..end]);
    match error.line() {
        0 | 1 => format!("not JSON: {what} at column {}", error.column()),
        line => format!("not JSON: {what} at line {line} of the value, column {}", error.column()),
    }
}

/// Maps a record to an event. If it has no id, `name` supplies one.
///
/// # Errors
/// The reason why the record is a dead letter.
pub fn decode(
    record: &JsonRecord<'_>,
    fields: &Fields,
    name: impl Fn() -> Option<String>,
) -> Result<Event, DecodeFailure> {
    fields.event(record, name)
}

impl Value for JsonRecord<'_> {
    fn member(&self, name: &str, loose: bool) -> Option<Self> {
        let members = self.members();
        let exact = members.iter().rfind(|(key, _)| key == name);
        let found = match loose {
            true => exact.or_else(|| members.iter().rfind(|(key, _)| fields::spelled_alike(key, name))),
            false => exact,
        };
        found.map(|&(_, raw)| JsonRecord::new(raw))
    }

    fn read(&self) -> Shape<Self> {
        let text = self.raw.get();
        match text.as_bytes().first() {
            Some(b'"') => match serde_json::from_str::<LossyString>(text) {
                Ok(LossyString(text)) => Shape::Text(text),
                Err(_) => Shape::Null,
            },
            Some(b'{') => Shape::Record,
            Some(b'[') => {
                let values: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
                Shape::List(values.into_iter().map(JsonRecord::new).collect())
            }
            Some(b't') => Shape::Bool(true),
            Some(b'f') => Shape::Bool(false),
            Some(b'-' | b'0'..=b'9') => Shape::Number(text.to_owned()),
            _ => Shape::Null,
        }
    }

    fn names(&self) -> Vec<String> {
        const SHOWN: usize = 12;
        self.members().iter().take(SHOWN).map(|(name, _)| name.clone()).collect()
    }
}

/// A string that may contain half a surrogate pair; serde_json accepts that only when bytes are requested.
#[derive(Default)]
struct LossyString(String);

impl<'de> Deserialize<'de> for LossyString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LossyString, D::Error> {
        struct JsonBytes;
        impl Visitor<'_> for JsonBytes {
            type Value = LossyString;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<LossyString, E> {
                Ok(LossyString(String::from_utf8_lossy(bytes).into_owned()))
            }
            fn visit_str<E>(self, text: &str) -> Result<LossyString, E> {
                Ok(LossyString(text.to_owned()))
            }
        }
        deserializer.deserialize_bytes(JsonBytes)
    }
}

/// The members of an object in order, including repeated keys.
#[derive(Default)]
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'de>, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(LossyString(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> Result<(), DeadLetterReason> {
        JsonRecord::parse(json.as_bytes()).map(drop).map_err(|refusal| refusal.reason)
    }

    // An article with a list nested 100,000 deep or a number of 100,000 digits in an unmapped field was published
    // unchanged and broke every consumer that parsed it.
    #[test]
    fn json_that_consumers_cannot_parse_is_refused() {
        let deep = |depth: usize| format!("{{\"x\":{}1{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        assert_eq!(parsed(&deep(DEEPEST)), Ok(()));
        assert_eq!(parsed(&deep(DEEPEST + 1)), Err(DeadLetterReason::TooDeep));
        assert_eq!(parsed(&deep(100_000)), Err(DeadLetterReason::TooDeep));
        let number = |digits: usize| format!("{{\"x\":[-{}]}}", "7".repeat(digits - 1));
        assert_eq!(parsed(&number(LONGEST_NUMBER)), Ok(()));
        assert_eq!(parsed(&number(LONGEST_NUMBER + 1)), Err(DeadLetterReason::LongNumber));
        assert_eq!(
            parsed(&format!("{{\"x\":1.5e{}}}", "0".repeat(100_000))),
            Err(DeadLetterReason::LongNumber)
        );
        // Brackets and digits in strings do not count, and siblings are not nested.
        let text = format!(r#"{{"a\"[":"{}","b":"\\","c":"{}"}}"#, "[".repeat(1_000), "7".repeat(10_000));
        assert_eq!(parsed(&text), Ok(()));
        assert_eq!(parsed(&format!("{{\"x\":[{}[]]}}", "[[]],".repeat(1_000))), Ok(()));
    }
}
