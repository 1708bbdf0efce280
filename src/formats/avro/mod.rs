//! Avro in and out, framed as schema registries do it: a zero byte, four bytes of schema id, the datum. [`Datum`] reads
//! a value with its writer schema, and the `write_…` functions write the schemas of `schemas/` field by field in their
//! order.
//!
//! `apache-avro` parses schemas, but data is decoded here, and only the fields that are needed are built.
//! `apache-avro`'s own decoder was tried first. It reads a truncated string or union as null, so a truncated article
//! would pass as one without a body; it allocates a string before it checks that the bytes exist; it recurses as deep
//! as the data says; and it ignores aliases. On valid data both agree, and a property test proves it.

mod check;
mod cursor;
mod frame;
mod json;
mod read;
mod schema;
mod write;

pub use check::UnmappedField;
pub use frame::{Framed, frame, is_framed, unframe};
pub use json::as_json;
pub use read::Datum;
pub use schema::{Schema, SchemaError};
pub use write::{ArticlePart, write_article, write_cluster, write_envelope};
