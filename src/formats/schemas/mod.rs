//! The schemas of what comes in and goes out: the very files of `schemas/`; the same as JSON Schema, for those who
//! read and write JSON; and the page that describes every topic, made from them.

mod contract;
mod json;

pub use contract::contract;
pub use json::json_schema;

/// Crawlers write this, or anything that `[input.fields]` maps to it.
pub const RAW_ARTICLE: &str = include_str!("../../../schemas/raw-article.avsc");
/// The envelope.
pub const TAGGED_ARTICLE: &str = include_str!("../../../schemas/tagged-article.avsc");
/// A cluster.
pub const CLUSTER: &str = include_str!("../../../schemas/cluster.avsc");
/// What a record of the changelog says.
pub const CHANGE: &str = include_str!("../../../schemas/change.avsc");

/// All of them, by the names of their files.
pub const ALL: [(&str, &str); 4] = [
    ("raw-article", RAW_ARTICLE),
    ("tagged-article", TAGGED_ARTICLE),
    ("cluster", CLUSTER),
    ("change", CHANGE),
];

/// A field of a schema, for those who describe it.
pub(crate) struct Described<'s> {
    pub(crate) name: &'s str,
    pub(crate) kind: &'s serde_json::Value,
    pub(crate) doc: &'s str,
    pub(crate) has_default: bool,
}

/// The fields of a record.
pub(crate) fn fields(record: &serde_json::Value) -> Vec<Described<'_>> {
    let fields = record.get("fields").and_then(serde_json::Value::as_array);
    fields
        .into_iter()
        .flatten()
        .filter_map(|field| {
            Some(Described {
                name: field.get("name")?.as_str()?,
                kind: field.get("type")?,
                doc: field.get("doc").and_then(serde_json::Value::as_str).unwrap_or_default(),
                has_default: field.get("default").is_some(),
            })
        })
        .collect()
}
