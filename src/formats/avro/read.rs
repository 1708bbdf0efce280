//! A datum as a [`Value`]: fields are decoded in place when they are needed, and the rest is skipped.
//!
//! [`Datum::parse`] checks all bytes once, so that damage in an unmapped field is found too. A field is found by its
//! name or by one of its aliases in the writer schema.

use std::cell::OnceCell;

use crate::formats::fields::{DecodeFailure, Shape, Value, spelled_alike};
use samestory_engine::model::DeadLetterReason;
use samestory_engine::model::EventTime;

use super::cursor::{Cursor, Flaw};
use super::schema::{Node, RecordField, Schema, Unit};

/// A value in a datum.
#[derive(Debug)]
pub struct Datum<'a> {
    schema: &'a Schema,
    node: usize,
    /// The bytes from the beginning of the value on.
    bytes: &'a [u8],
    /// For a record: the rest of the datum from the start of each field.
    fields: OnceCell<Vec<&'a [u8]>>,
}

/// Most field names that an error message lists.
const SHOWN: usize = 12;

impl<'a> Datum<'a> {
    /// Checks that all bytes match the schema.
    ///
    /// # Errors
    /// [`DeadLetterReason::Undecodable`], with the field and the position.
    pub fn parse(schema: &'a Schema, bytes: &'a [u8]) -> Result<Datum<'a>, DecodeFailure> {
        let undecodable = |message: String| DecodeFailure::new(DeadLetterReason::Undecodable, message);
        let mut cursor = Cursor::strict(bytes);
        cursor.skip(schema, schema.root(), 0).map_err(|flaw| undecodable(flaw.to_string()))?;
        match cursor.rest().len() {
            0 => Ok(Datum::new(schema, schema.root(), bytes)),
            left => Err(undecodable(format!(
                "{left} bytes follow the record: it was written with another schema than its id says"
            ))),
        }
    }

    /// A value with its unions resolved: callers see only the variant that is present.
    fn new(schema: &'a Schema, mut node: usize, mut bytes: &'a [u8]) -> Datum<'a> {
        while let Node::Union(variants) = schema.node(node) {
            let mut cursor = Cursor::checked(bytes);
            let Ok(variant) = cursor.choice(variants.len(), "variant") else { break };
            (node, bytes) = (variants[variant], cursor.rest());
        }
        Datum { schema, node, bytes, fields: OnceCell::new() }
    }

    pub(super) fn node(&self) -> &'a Node {
        self.schema.node(self.node)
    }

    /// The fields of a record with their values.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'a RecordField, Datum<'a>)> {
        let fields: &'a [RecordField] = match self.node() {
            Node::Record(fields) => fields,
            _ => &[],
        };
        let schema = self.schema;
        let starts = self.starts();
        fields.iter().zip(starts).map(move |(field, bytes)| (field, Datum::new(schema, field.node, bytes)))
    }

    fn starts(&self) -> &[&'a [u8]] {
        self.fields.get_or_init(|| {
            let Node::Record(fields) = self.node() else { return Vec::new() };
            let mut cursor = Cursor::checked(self.bytes);
            let mut starts = Vec::with_capacity(fields.len());
            for field in fields {
                starts.push(cursor.rest());
                if cursor.skip(self.schema, field.node, 0).is_err() {
                    break;
                }
            }
            starts
        })
    }

    /// Visits the items of an array or map; those of a map with their keys.
    pub(super) fn each(&self, mut visit: impl FnMut(Option<&'a [u8]>, Datum<'a>)) {
        let mut cursor = Cursor::checked(self.bytes);
        let (inner, keyed) = match self.node() {
            Node::Array(items) => (*items, false),
            Node::Map(values) => (*values, true),
            _ => return,
        };
        let walked: Result<(), Flaw> = cursor.each_item(|cursor| {
            let key = if keyed { Some(cursor.text()?) } else { None };
            visit(key, Datum::new(self.schema, inner, cursor.rest()));
            cursor.skip(self.schema, inner, 0)
        });
        debug_assert!(walked.is_ok(), "parse has checked these bytes");
    }

    /// The content of a value that consists of bytes.
    pub(super) fn raw(&self) -> Option<&'a [u8]> {
        match self.node() {
            Node::Bytes | Node::Text | Node::Opaque(None) => self.decode(Cursor::bytes),
            Node::Fixed(length) | Node::Opaque(Some(length)) => self.decode(|cursor| cursor.take(*length)),
            _ => None,
        }
    }

    fn decode<T>(&self, read: impl Fn(&mut Cursor<'a>) -> Result<T, Flaw>) -> Option<T> {
        read(&mut Cursor::checked(self.bytes)).ok()
    }
}

impl Value for Datum<'_> {
    fn member(&self, name: &str, loose: bool) -> Option<Self> {
        match self.node() {
            Node::Record(fields) => {
                let called = |is: &dyn Fn(&str) -> bool| {
                    let by_name = fields.iter().rposition(|field| is(&field.name));
                    by_name.or_else(|| {
                        fields.iter().rposition(|field| field.aliases.iter().any(|alias| is(alias)))
                    })
                };
                let found = called(&|other| other == name);
                let found = match loose {
                    true => found.or_else(|| called(&|other| spelled_alike(other, name))),
                    false => found,
                }?;
                Some(Datum::new(self.schema, fields[found].node, self.starts().get(found)?))
            }
            Node::Map(_) => {
                let (mut exact, mut alike) = (None, None);
                self.each(|key, value| match key.and_then(|key| str::from_utf8(key).ok()) {
                    Some(key) if key == name => exact = Some(value),
                    Some(key) if loose && spelled_alike(key, name) => alike = Some(value),
                    _ => {}
                });
                exact.or(alike)
            }
            _ => None,
        }
    }

    fn read(&self) -> Shape<Self> {
        let text = |bytes: Option<&[u8]>| match bytes.map(str::from_utf8) {
            Some(Ok(text)) => Shape::Text(text.to_owned()),
            Some(Err(_)) => Shape::Other("bytes that are not UTF-8"),
            None => Shape::Null,
        };
        let or_null = |shape: Option<Shape<Self>>| shape.unwrap_or(Shape::Null);
        match self.node() {
            Node::Null | Node::Union(_) => Shape::Null,
            Node::Bool => or_null(self.decode(Cursor::byte).map(|byte| Shape::Bool(byte == 1))),
            Node::Int => or_null(self.decode(Cursor::int).map(|number| Shape::Number(number.to_string()))),
            Node::Long => or_null(self.decode(Cursor::long).map(|number| Shape::Number(number.to_string()))),
            Node::Float => {
                let number = self.decode(|cursor| cursor.take(4)).and_then(|bytes| bytes.try_into().ok());
                or_null(number.map(|bytes| Shape::Number(f32::from_le_bytes(bytes).to_string())))
            }
            Node::Double => {
                let number = self.decode(|cursor| cursor.take(8)).and_then(|bytes| bytes.try_into().ok());
                or_null(number.map(|bytes| Shape::Number(f64::from_le_bytes(bytes).to_string())))
            }
            Node::Bytes | Node::Text => text(self.decode(Cursor::bytes)),
            Node::Fixed(length) => text(self.decode(|cursor| cursor.take(*length))),
            Node::Uuid => {
                or_null(self.decode(|cursor| cursor.take(16)).map(|bytes| Shape::Text(uuid(bytes))))
            }
            Node::Time(unit) => {
                or_null(self.decode(Cursor::long).map(|number| Shape::Time(time(number, *unit))))
            }
            Node::Day => {
                const DAY: i64 = 86_400_000;
                let day = self.decode(Cursor::int);
                or_null(day.map(|day| Shape::Time(EventTime::from_millis(i64::from(day) * DAY))))
            }
            Node::Opaque(_) => Shape::Other("a logical type that is not supported"),
            Node::Enum(symbols) => {
                let symbol = self.decode(|cursor| cursor.choice(symbols.len(), "symbol"));
                or_null(symbol.map(|symbol| Shape::Text(symbols[symbol].clone())))
            }
            Node::Array(_) => {
                let mut values = Vec::new();
                self.each(|_, value| values.push(value));
                Shape::List(values)
            }
            Node::Map(_) | Node::Record(_) => Shape::Record,
        }
    }

    fn names(&self) -> Vec<String> {
        match self.node() {
            Node::Record(fields) => fields.iter().take(SHOWN).map(|field| field.name.clone()).collect(),
            Node::Map(_) => {
                let mut names = Vec::new();
                self.each(|key, _| {
                    if names.len() < SHOWN {
                        names.extend(key.map(|key| String::from_utf8_lossy(key).into_owned()));
                    }
                });
                names
            }
            _ => Vec::new(),
        }
    }
}

fn time(number: i64, unit: Unit) -> EventTime {
    EventTime::from_millis(match unit {
        Unit::Millis => number,
        Unit::Micros => number.div_euclid(1_000),
        Unit::Nanos => number.div_euclid(1_000_000),
    })
}

/// Sixteen bytes in the usual notation of a UUID.
fn uuid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
