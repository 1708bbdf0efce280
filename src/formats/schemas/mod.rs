//! The published schemas: the files of `schemas/`, compiled in, and [`json_schema`], which converts them for consumers
//! of JSON. `samestory schemas` prints and registers them. The writers in `formats::json` and `formats::avro` follow
//! them field by field.

mod json;

pub use json::{file_schemas, json_schema};

/// An article as crawlers publish it; `[input.fields]` maps other schemas to it.
pub const RAW_ARTICLE: &str = include_str!("../../../schemas/raw-article.avsc");
/// The envelope of a tagged article.
pub const TAGGED_ARTICLE: &str = include_str!("../../../schemas/tagged-article.avsc");
/// A cluster record.
pub const CLUSTER: &str = include_str!("../../../schemas/cluster.avsc");
/// A changelog record. It describes the content; the bytes have a layout of their own.
pub const CHANGE: &str = include_str!("../../../schemas/change.avsc");

/// All schemas, by file name.
pub const ALL: [(&str, &str); 4] = [
    ("raw-article", RAW_ARTICLE),
    ("tagged-article", TAGGED_ARTICLE),
    ("cluster", CLUSTER),
    ("change", CHANGE),
];
