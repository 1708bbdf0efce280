//! Avro and the schema registry, without a broker.

// The generator of `docs/contract.md`.
mod contract;
// Our reader beside `apache-avro`'s.
mod laws;
// Hostile data.
mod hostile;
// A scripted schema registry.
pub(crate) mod fake_registry;
// The registry client in every kind of trouble.
mod registry;
// One whole message of each topic, for the contract.
mod samples;
// The files of `schemas/`, and what is generated from them.
mod schemas;
// Our output, read by another implementation.
mod written;

use apache_avro::Schema;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value;
use apache_avro::writer::datum::GenericDatumWriter;

pub(crate) fn encode(schema: &Schema, value: Value) -> Vec<u8> {
    GenericDatumWriter::builder(schema).build().unwrap().write_value_to_vec(value).unwrap()
}

pub(crate) fn decode(writer: &Schema, reader: Option<&Schema>, mut bytes: &[u8]) -> Value {
    let reading = GenericDatumReader::builder(writer).maybe_reader_schema(reader).build().unwrap();
    let value = reading.read_value(&mut bytes).unwrap();
    assert!(bytes.is_empty(), "{} bytes are left", bytes.len());
    value
}

/// A field of a record, by name.
pub(crate) fn member<'v>(value: &'v Value, name: &str) -> &'v Value {
    match value {
        Value::Record(fields) => &fields.iter().find(|(field, _)| field == name).unwrap().1,
        Value::Union(_, inner) => member(inner, name),
        other => panic!("{other:?}"),
    }
}

/// A text that may be null.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Union(_, inner) => text(inner),
        other => panic!("{other:?}"),
    }
}
