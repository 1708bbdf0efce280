//! Avro in and out, as schema registries frame it: a zero byte, four bytes of schema id, the datum.
//!
//! In: `apache-avro` reads schemas; data is read here, over the writer's schema, and nothing is built but the fields
//! that are asked for. `apache-avro`'s own reader was tried first: it takes a text or a union that ends early for a
//! null, so a truncated article would pass as one without a body; it makes room for a text before it has looked
//! whether the bytes are there; it follows recursive schemas as deep as the data say; and it knows no aliases. What both
//! read is the same, and a law in the tests holds them together.
//!
//! Out: the schemas of `schemas/`, field by field in their order.

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
