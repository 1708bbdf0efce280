//! Generates `docs/contract.md`: every topic, key, header and payload. Payloads are described from the files in
//! `schemas/`, so the page cannot disagree with them.

use std::fmt::Write;

use serde_json::Value;

use samestory::formats::schemas::{CHANGE, CLUSTER, RAW_ARTICLE, TAGGED_ARTICLE};

/// A topic with its default name.
struct Topic {
    name: &'static str,
    key: &'static str,
    value: &'static str,
    cleanup: &'static str,
}

const TOPICS: [Topic; 8] = [
    Topic {
        name: "articles.raw",
        key: "article id, UTF-8",
        value: "RawArticle, or your own schema, mapped by `[input.fields]`; JSON or Avro. A tombstone deletes the article.",
        cleanup: "yours",
    },
    Topic {
        name: "samestory.unique",
        key: "article id, UTF-8",
        value: "TaggedArticle (`output.value = \"envelope\"`) or the raw value byte for byte (`passthrough`). A tombstone means that the article is no longer here.",
        cleanup: "delete",
    },
    Topic {
        name: "samestory.near-duplicate",
        key: "article id, UTF-8",
        value: "the same, for near and exact duplicates",
        cleanup: "delete",
    },
    Topic {
        name: "samestory.clusters",
        key: "cluster id, UTF-8",
        value: "Cluster. A tombstone means that fewer than two members are left; its header `samestory-canonical` names the remaining member, if there is one.",
        cleanup: "compact",
    },
    Topic {
        name: "samestory.dead-letter",
        key: "unchanged",
        value: "unchanged; the reason is in headers",
        cleanup: "delete",
    },
    Topic {
        name: "samestory.routed",
        key: "article id, UTF-8",
        value: "internal: the article and its fingerprint, or a relocation notice, in samestory's own layout",
        cleanup: "delete; samestory purges it",
    },
    Topic {
        name: "samestory.changelog",
        key: "internal",
        value: "internal: Change, in samestory's own layout",
        cleanup: "compact",
    },
    Topic {
        name: "samestory.generations",
        key: "`stage.app`/…, UTF-8",
        value: "internal: generation-end records with the final offsets of a generation, an operator's pause, and the settings behind each `config` hash, in JSON",
        cleanup: "compact",
    },
];

/// Headers of tagged articles: the header, and the field of the envelope with the same content.
const HEADERS: [(&str, &str); 14] = [
    ("samestory-verdict", "verdict"),
    ("samestory-match-type", "match_type"),
    ("samestory-duplicate-of", "duplicate_of"),
    ("samestory-cluster", "cluster_id"),
    ("samestory-canonical", "canonical_id"),
    ("samestory-similarity", "similarity"),
    ("samestory-confidence", "confidence"),
    ("samestory-language", "language"),
    ("samestory-revision", "revision"),
    ("samestory-flags", "flags"),
    ("samestory-related", "related"),
    ("samestory-topic", "input"),
    ("samestory-partition", "input"),
    ("samestory-offset", "input"),
];

const DEAD_LETTER_HEADERS: [(&str, &str); 8] = [
    ("__samestory.errors.topic", "Topic that the record was read from."),
    ("__samestory.errors.partition", "Partition that the record was read from."),
    ("__samestory.errors.offset", "Offset that the record was read from."),
    ("__samestory.errors.stage", "The step that failed: `decode`, `deliver` or `read`."),
    (
        "__samestory.errors.exception.class.name",
        "The reason: `undecodable`, `unknown-schema`, `no-id`, `no-body`, `wrong-type`, `too-large`, `too-deep`, `long-number`, `not-owner`, `parser-panicked`, `undeliverable` or `unreadable`.",
    ),
    ("__samestory.errors.exception.message", "An explanation: the field, the position, what was expected."),
    ("__samestory.errors.value.dropped.bytes", "Only if the value was too large to be copied: its length."),
    ("__samestory.errors.headers.dropped", "Only if key and headers were too large as well: `true`."),
];

/// The fields of articles and clusters, and when a later record may have another value. A record never changes; a later one
/// replaces it.
/// A path ends at the first field that answers for those inside it.
const CHANGES: [(&str, &str, &str); 33] = [
    ("raw-article", "id", "no: another id is another article"),
    ("raw-article", "", "yes, with each version that the crawler sends"),
    ("tagged-article", "id", "no"),
    (
        "tagged-article",
        "verdict",
        "only in a later record of the article: its text changed, it was sent again, or it had expired. The record on the other topic is then followed by a tombstone",
    ),
    ("tagged-article", "match_type", "as `verdict`"),
    (
        "tagged-article",
        "duplicate_of",
        "as `verdict`. The article that it names may be deleted or expire; this article is not published again for that",
    ),
    ("tagged-article", "similarity", "as `verdict`"),
    ("tagged-article", "containment", "as `verdict`"),
    ("tagged-article", "confidence", "as `verdict`"),
    ("tagged-article", "cluster_id", "as `verdict`; an id is never reused"),
    (
        "tagged-article",
        "canonical_id",
        "yes, without a new record of the article: the cluster's last record has the current one",
    ),
    (
        "tagged-article",
        "revision",
        "grows by one with each new text; 0 again after the article expired or changed its language",
    ),
    ("tagged-article", "language", "only in a later record, with a new text"),
    ("tagged-article", "language_source", "as `language`"),
    ("tagged-article", "declared_language", "in each record as the crawler sends it"),
    ("tagged-article", "content_kind", "as `language`"),
    ("tagged-article", "related", "as `verdict`"),
    ("tagged-article", "evidence", "as `verdict`"),
    ("tagged-article", "flags", "as `verdict`; new flags may be added"),
    (
        "tagged-article",
        "config",
        "in records after a change of the settings; `samestory config show` resolves it",
    ),
    ("tagged-article", "input", "in each record: it names the version"),
    (
        "tagged-article",
        "received_at",
        "in each record: it belongs to the version. A replay of the log gives the same time",
    ),
    ("tagged-article", "article", "in each record as the crawler sends it"),
    ("tagged-article", "original", "in each record as the crawler sends it"),
    ("cluster", "cluster_id", "no; never reused"),
    (
        "cluster",
        "canonical_id",
        "yes: another article joins that ranks higher, or the canonical is deleted, changes or expires",
    ),
    ("cluster", "size", "yes, in both directions"),
    ("cluster", "first_seen", "yes, when the earliest member leaves or an older one joins"),
    ("cluster", "last_seen", "yes"),
    ("cluster", "hosts", "yes"),
    ("cluster", "members", "yes; the fields of one member as in its tagged article"),
    ("cluster", "canonical_changed_from", "yes, with each election"),
    ("cluster", "split_from", "no; the cluster that it names may be gone"),
];

/// The answer for a field of one of the schemas; none where the topic is internal.
fn later(file: &str, path: &str) -> Option<&'static str> {
    let name = path.split(['.', '[']).next().unwrap_or_default();
    let of_file = CHANGES.iter().filter(|(schema, _, _)| *schema == file);
    let found = of_file.clone().find(|(_, field, _)| *field == name);
    let answer = found.or_else(|| of_file.clone().find(|(_, field, _)| field.is_empty()));
    let is_public = of_file.count() > 0;
    assert!(answer.is_some() || !is_public, "may {file}.{path} change later? Say it in CHANGES");
    answer.map(|(_, _, answer)| *answer)
}

/// A field of an Avro record.
struct Field<'s> {
    name: &'s str,
    kind: &'s Value,
    doc: &'s str,
    has_default: bool,
}

fn fields(record: &Value) -> Vec<Field<'_>> {
    let fields = record.get("fields").and_then(Value::as_array);
    fields
        .into_iter()
        .flatten()
        .filter_map(|field| {
            Some(Field {
                name: field.get("name")?.as_str()?,
                kind: field.get("type")?,
                doc: field.get("doc").and_then(Value::as_str).unwrap_or_default(),
                has_default: field.get("default").is_some(),
            })
        })
        .collect()
}

/// The page, in Markdown.
pub(super) fn contract() -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    line("# The contract");
    line("");
    line(
        "Generated from the files in `schemas/` by `UPDATE_GOLDEN=1 cargo test --release avro::schemas`; a test keeps it current.",
    );
    line("[consumers.md](consumers.md) explains what the fields mean and has recipes.");
    line("");
    line("## Topics");
    line("");
    line(
        "The names are the defaults; `[topics]` sets others. With `output.topics = \"single\"` unique articles and duplicates",
    );
    line("share one topic, `samestory.tagged`.");
    line("");
    line("| topic | key | value | cleanup |");
    line("|---|---|---|---|");
    for topic in TOPICS {
        line(&format!("| `{}` | {} | {} | {} |", topic.name, topic.key, topic.value, topic.cleanup));
    }
    line("");
    line("## Bytes");
    line("");
    line(
        "**JSON**: one object, UTF-8. Times are ISO 8601 in UTC. `samestory schemas print NAME --json-schema` and",
    );
    line("`schemas/*.schema.json` describe the fields.");
    line("");
    line(
        "**Avro**: a zero byte, four bytes of schema id (big-endian), the datum, as Confluent's serializers write and read it.",
    );
    line(
        "Subjects are `<topic>-value`, compatibility is `BACKWARD`; `samestory schemas register` registers them. Keys are plain",
    );
    line("text in both formats.");
    line("");
    line(
        "`input.format` (`auto`, `json`, `avro`) and `output.format` (`json`, `avro`) are independent. `passthrough` keeps the",
    );
    line("original bytes, including the schema id, whatever `output.format` is.");
    line("");
    line("## Headers of tagged articles");
    line("");
    line("Values are UTF-8 text. Headers of the raw article are copied to the output.");
    line("");
    line("| header | in the envelope | meaning |");
    line("|---|---|---|");
    let tagged: Value = serde_json::from_str(TAGGED_ARTICLE).unwrap_or_default();
    for (header, name) in HEADERS {
        let doc = fields(&tagged).into_iter().find(|field| field.name == name).map_or("", |field| field.doc);
        let (place, doc) = match header.strip_prefix("samestory-") {
            Some(part @ ("topic" | "partition" | "offset")) => {
                (format!("input.{part}"), format!("Source position of the raw article: its {part}."))
            }
            Some("flags") => {
                (name.to_owned(), format!("{doc} Separated by commas; absent if there are none."))
            }
            Some("related") => (name.to_owned(), format!("{doc} JSON; absent if there are none.")),
            _ => (name.to_owned(), doc.to_owned()),
        };
        line(&format!("| `{header}` | `{place}` | {doc} |"));
    }
    line("");
    line("A header changes when its field does; the tables below say when that is.");
    line("");
    line("## Headers of other records");
    line("");
    line(
        "Tombstones on the article topics, and cluster records and their tombstones, carry `samestory-topic`,",
    );
    line(
        "`samestory-partition` and `samestory-offset`: the position of the raw record that caused them. A tombstone for a cluster",
    );
    line("carries `samestory-canonical` if one member is left.");
    line("");
    line("## Tombstones of a delete");
    line("");
    line(
        "A delete of a known id writes two tombstones, one to `samestory.unique` and one to `samestory.near-duplicate`: the article is on one",
    );
    line(
        "of them, and a former home may have published it on the other. With `output.topics = \"single\"` it writes one tombstone.",
    );
    line(
        "A delete of an id that is not known, was never published or has expired writes none, and neither does a repeated delete. If",
    );
    line(
        "the article was in a cluster, the clusters topic gets the cluster without it, or a tombstone if fewer than two members are left.",
    );
    line("");
    line("## Expiry");
    line("");
    line(
        "An article that has not been seen for `match.retention` expires: new articles are no longer compared with it. Expiry writes",
    );
    line(
        "no tombstone to the article topics: an article record is valid until a tombstone or a later record with the same id. Expiry",
    );
    line("removes members from cluster records. A tombstone for a cluster deletes no article.");
    line("[consumers.md](consumers.md#when-articles-expire) lists the cases.");
    line("");
    line("## Headers of dead letters");
    line("");
    line("In addition to the original headers:");
    line("");
    line("| header | meaning |");
    line("|---|---|");
    for (header, meaning) in DEAD_LETTER_HEADERS {
        line(&format!("| `{header}` | {meaning} |"));
    }
    line("");
    super::samples::section().iter().for_each(|text| line(text));
    for (file, schema) in [
        ("raw-article", RAW_ARTICLE),
        ("tagged-article", TAGGED_ARTICLE),
        ("cluster", CLUSTER),
        ("change", CHANGE),
    ] {
        let schema: Value = serde_json::from_str(schema).unwrap_or_default();
        let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        line("");
        line(&format!("## {}", text("name")));
        line("");
        let also = if file == "change" { String::new() } else { format!(", `schemas/{file}.schema.json`") };
        line(&format!("`schemas/{file}.avsc`{also}. {}", text("doc")));
        line("");
        match file {
            "change" => {
                line("| field | type | meaning |");
                line("|---|---|---|");
            }
            _ => {
                line("| field | type | meaning | may this change later? |");
                line("|---|---|---|---|");
            }
        }
        let mut rows = Vec::new();
        describe(file, &schema, "", &mut rows);
        rows.iter().for_each(|row| line(row));
    }
    out
}

/// Adds a row for each field of a record, and for the fields of nested records.
fn describe(file: &str, record: &Value, path: &str, rows: &mut Vec<String>) {
    for field in fields(record) {
        let path = format!("{path}{}", field.name);
        let (kind, inner) = named(field.kind);
        let absent = if field.has_default { ", may be absent" } else { "" };
        let later = later(file, &path).map(|answer| format!(" {answer} |")).unwrap_or_default();
        rows.push(format!("| `{path}` | {kind}{absent} | {} |{later}", field.doc));
        // RawArticle has a section of its own.
        if let Some(inner) = inner.filter(|inner| inner.get("name").is_none_or(|name| name != "RawArticle")) {
            let each = if kind.contains("array") { "[]" } else { "" };
            describe(file, inner, &format!("{path}{each}."), rows);
        }
    }
}

/// A type in words, and the record nested in it, if any.
fn named(kind: &Value) -> (String, Option<&Value>) {
    match kind {
        Value::String(name) => (name.clone(), None),
        Value::Array(variants) => {
            let named: Vec<_> = variants.iter().map(named).collect();
            let words: Vec<String> = named.iter().map(|(words, _)| words.clone()).collect();
            (words.join(" or "), named.into_iter().find_map(|(_, inner)| inner))
        }
        Value::Object(object) => match object.get("type").and_then(Value::as_str) {
            Some("record") => {
                (object.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(), Some(kind))
            }
            Some("array") => {
                let (words, inner) = object.get("items").map(named).unwrap_or_default();
                (format!("array of {words}"), inner)
            }
            Some("map") => {
                let (words, inner) = object.get("values").map(named).unwrap_or_default();
                (format!("map of {words}"), inner)
            }
            Some(other) => {
                let mut words = other.to_owned();
                if let Some(logical) = object.get("logicalType").and_then(Value::as_str) {
                    // Writing to a string cannot fail.
                    let _written = write!(words, " ({logical})");
                }
                (words, None)
            }
            None => (String::new(), None),
        },
        _ => (String::new(), None),
    }
}
