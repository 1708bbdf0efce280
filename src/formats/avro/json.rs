//! Converts a datum to JSON with its own field names, for JSON envelopes around Avro articles. It serializes straight
//! from the bytes and builds no intermediate value.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::formats::fields::{Shape, Value};

use super::read::Datum;
use super::schema::Node;

/// The datum as JSON. Times are ISO 8601 strings, bytes that are not UTF-8 are hexadecimal digits, and NaN and
/// infinities are null.
pub fn as_json(datum: &Datum<'_>) -> Vec<u8> {
    serde_json::to_vec(&Json(datum)).unwrap_or_else(|_| b"null".to_vec())
}

struct Json<'d, 'a>(&'d Datum<'a>);

impl Serialize for Json<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let datum = self.0;
        match datum.node() {
            Node::Record(fields) => {
                let mut out = serializer.serialize_map(Some(fields.len()))?;
                for (field, value) in datum.fields() {
                    out.serialize_entry(&field.name, &Json(&value))?;
                }
                out.end()
            }
            Node::Map(_) => {
                let mut out = serializer.serialize_map(None)?;
                let mut written = Ok(());
                datum.each(|key, value| {
                    if written.is_ok() {
                        let key = String::from_utf8_lossy(key.unwrap_or_default());
                        written = out.serialize_entry(&key, &Json(&value));
                    }
                });
                written?;
                out.end()
            }
            Node::Opaque(_) => match datum.raw() {
                Some(bytes) => serializer.serialize_str(&hex::encode(bytes)),
                None => serializer.serialize_none(),
            },
            _ => match datum.read() {
                Shape::Null | Shape::Record => serializer.serialize_none(),
                Shape::Bool(value) => serializer.serialize_bool(value),
                Shape::Number(number) => match serde_json::from_str::<serde_json::Number>(&number) {
                    Ok(number) => number.serialize(serializer),
                    Err(_) => serializer.serialize_none(),
                },
                Shape::Text(text) => serializer.serialize_str(&text),
                Shape::Time(at) => serializer.serialize_str(&at.to_string()),
                Shape::Other(_) => match datum.raw() {
                    Some(bytes) => serializer.serialize_str(&hex::encode(bytes)),
                    None => serializer.serialize_none(),
                },
                Shape::List(values) => {
                    let mut out = serializer.serialize_seq(Some(values.len()))?;
                    values.iter().try_for_each(|value| out.serialize_element(&Json(value)))?;
                    out.end()
                }
            },
        }
    }
}
