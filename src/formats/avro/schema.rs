//! A writer schema compiled for decoding: a flat list of nodes with all names resolved. `apache-avro` parses the text,
//! and the other files of this folder walk the nodes. Recursive schemas are cycles between nodes.

use std::collections::HashMap;

use apache_avro::Schema as Parsed;
use apache_avro::schema::{InnerDecimalSchema, Name, UuidSchema};

/// A compiled writer schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    nodes: Vec<Node>,
    root: usize,
}

/// A schema that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SchemaError(String);

/// A type; other types are referred to by their index among the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Null,
    Bool,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    Text,
    /// Time since 1970 in this unit.
    Time(Unit),
    /// Days since 1970.
    Day,
    Fixed(usize),
    /// Sixteen bytes.
    Uuid,
    /// Bytes of an unsupported logical type, with their number if it is fixed.
    Opaque(Option<usize>),
    Enum(Vec<String>),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    Record(Vec<RecordField>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Millis,
    Micros,
    Nanos,
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordField {
    pub(super) name: String,
    /// Earlier names of the field.
    pub(super) aliases: Vec<String>,
    pub(super) node: usize,
}

impl Schema {
    /// Parses a schema together with the schemas that it refers to.
    ///
    /// # Errors
    /// The text is not a schema, or it refers to unknown types.
    pub fn parse(schema: &str, references: &[String]) -> Result<Schema, SchemaError> {
        let refuse = |error: apache_avro::Error| SchemaError(shortened(&error.to_string()));
        let (parsed, others) = Parsed::parse_str_with_list(schema, references).map_err(refuse)?;
        let mut names = HashMap::new();
        for schema in std::iter::once(&parsed).chain(&others) {
            define(schema, None, &mut names);
        }
        let mut builder = SchemaBuilder { names, built: HashMap::new(), nodes: Vec::new() };
        let root = builder.build(&parsed, None)?;
        Ok(Schema { nodes: builder.nodes, root })
    }

    pub(super) fn root(&self) -> usize {
        self.root
    }

    pub(super) fn node(&self, at: usize) -> &Node {
        &self.nodes[at]
    }
}

/// Shortens a parser's message, which may quote the whole input.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 300;
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// The definitions of named types, by full name.
type Names<'p> = HashMap<String, &'p Parsed>;

fn define<'p>(schema: &'p Parsed, enclosing: Option<&str>, names: &mut Names<'p>) {
    let full = schema.name().map(|name| name.fullname(enclosing));
    if let (Some(full), false) = (&full, matches!(schema, Parsed::Ref { .. })) {
        names.insert(full.clone(), schema);
    }
    match schema {
        Parsed::Record(record) => {
            let inside = full.as_deref().and_then(namespace);
            record.fields.iter().for_each(|field| define(&field.schema, inside, names));
        }
        Parsed::Array(array) => define(&array.items, enclosing, names),
        Parsed::Map(map) => define(&map.types, enclosing, names),
        Parsed::Union(union) => union.variants().iter().for_each(|variant| define(variant, enclosing, names)),
        _ => {}
    }
}

fn namespace(full: &str) -> Option<&str> {
    full.rsplit_once('.').map(|(enclosing, _)| enclosing)
}

struct SchemaBuilder<'p> {
    names: Names<'p>,
    built: HashMap<String, usize>,
    nodes: Vec<Node>,
}

impl SchemaBuilder<'_> {
    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn build(&mut self, schema: &Parsed, enclosing: Option<&str>) -> Result<usize, SchemaError> {
        let full = schema.name().map(|name: &Name| name.fullname(enclosing));
        if let Some(&built) = full.as_ref().and_then(|full| self.built.get(full)) {
            return Ok(built);
        }
        let node = match schema {
            Parsed::Ref { .. } => {
                let full = full.unwrap_or_default();
                let Some(&defined) = self.names.get(&full) else {
                    return Err(SchemaError(format!("it refers to {full}, which is not defined")));
                };
                return self.build(defined, namespace(&full));
            }
            Parsed::Record(record) => {
                // Reserve the index before the fields, because they may refer to this record.
                let index = self.add(Node::Null);
                let full = full.unwrap_or_default();
                self.built.insert(full.clone(), index);
                let mut fields = Vec::with_capacity(record.fields.len());
                for field in &record.fields {
                    let node = self.build(&field.schema, namespace(&full))?;
                    fields.push(RecordField {
                        name: field.name.clone(),
                        aliases: field.aliases.clone(),
                        node,
                    });
                }
                self.nodes[index] = Node::Record(fields);
                return Ok(index);
            }
            Parsed::Array(array) => Node::Array(self.build(&array.items, enclosing)?),
            Parsed::Map(map) => Node::Map(self.build(&map.types, enclosing)?),
            Parsed::Union(union) => {
                let variants = union.variants().iter().map(|variant| self.build(variant, enclosing));
                Node::Union(variants.collect::<Result<_, _>>()?)
            }
            Parsed::Null => Node::Null,
            Parsed::Boolean => Node::Bool,
            Parsed::Int | Parsed::TimeMillis => Node::Int,
            Parsed::Long | Parsed::TimeMicros => Node::Long,
            Parsed::Float => Node::Float,
            Parsed::Double => Node::Double,
            Parsed::Bytes => Node::Bytes,
            Parsed::String | Parsed::Uuid(UuidSchema::String) => Node::Text,
            Parsed::Uuid(UuidSchema::Fixed(_)) => Node::Uuid,
            Parsed::Uuid(UuidSchema::Bytes) | Parsed::BigDecimal => Node::Opaque(None),
            Parsed::Date => Node::Day,
            Parsed::TimestampMillis | Parsed::LocalTimestampMillis => Node::Time(Unit::Millis),
            Parsed::TimestampMicros | Parsed::LocalTimestampMicros => Node::Time(Unit::Micros),
            Parsed::TimestampNanos | Parsed::LocalTimestampNanos => Node::Time(Unit::Nanos),
            Parsed::Fixed(fixed) => Node::Fixed(fixed.size),
            Parsed::Duration(fixed) => Node::Opaque(Some(fixed.size)),
            Parsed::Decimal(decimal) => Node::Opaque(match &decimal.inner {
                InnerDecimalSchema::Bytes => None,
                InnerDecimalSchema::Fixed(fixed) => Some(fixed.size),
            }),
            Parsed::Enum(symbols) => Node::Enum(symbols.symbols.clone()),
        };
        let index = self.add(node);
        if let Some(full) = full {
            self.built.insert(full, index);
        }
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_may_refer_to_themselves_and_each_other() {
        let list = r#"{"type":"record","name":"a.List","fields":[{"name":"next","type":["null","List"]}]}"#;
        let schema = Schema::parse(list, &[]).unwrap();
        let Node::Record(fields) = schema.node(schema.root()) else { panic!("{schema:?}") };
        let Node::Union(variants) = schema.node(fields[0].node) else { panic!("{schema:?}") };
        assert_eq!(variants[1], schema.root());
        let part =
            r#"{"type":"record","name":"Part","namespace":"b","fields":[{"name":"t","type":"string"}]}"#;
        let whole = r#"{"type":"record","name":"Whole","fields":[{"name":"p","type":{"type":"array","items":"b.Part"}}]}"#;
        assert!(Schema::parse(whole, &[part.to_owned()]).is_ok());
        assert!(Schema::parse(whole, &[]).is_err());
    }

    #[test]
    fn an_invalid_schema_is_refused_with_a_short_message() {
        let long = format!(r#"{{"type":"{}"}}"#, "x".repeat(100_000));
        for wrong in ["", "{", "{\"type\":\"record\"}", "\"nothing\"", &long, &"[".repeat(100_000)] {
            let error = Schema::parse(wrong, &[]).unwrap_err().to_string();
            assert!(!error.is_empty() && error.chars().count() <= 301, "{error}");
        }
    }
}
