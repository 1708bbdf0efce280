//! The files of `schemas/`: consumers of the last release can read the new schemas, and the generated files are current.

use std::fs;
use std::path::{Path, PathBuf};

use apache_avro::Schema;
use apache_avro::schema_compatibility::{Compatibility, SchemaCompatibility};
use samestory::formats::schemas;
use serde_json::Value;

use super::contract::contract;
use super::samples::{samples, value};
use crate::file_doors::is_of_json_type;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// Compares a file with the generated content, or writes it.
fn assert_generated(path: &Path, made: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(path, made).unwrap();
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    let shown = path.strip_prefix(root()).unwrap().display();
    assert!(
        kept == made,
        "{shown} is not current; UPDATE_GOLDEN=1 cargo test --release avro::schemas writes it anew"
    );
}

#[test]
fn a_new_schema_can_read_what_the_last_release_wrote() {
    let mut releases: Vec<PathBuf> =
        fs::read_dir(root().join("schemas/released")).unwrap().map(|entry| entry.unwrap().path()).collect();
    releases.sort();
    let last = releases.last().unwrap();
    for (name, now) in schemas::ALL {
        let released =
            Schema::parse_str(&fs::read_to_string(last.join(format!("{name}.avsc"))).unwrap()).unwrap();
        let now = Schema::parse_str(now).unwrap();
        let readable = SchemaCompatibility::can_read(&released, &now);
        assert!(matches!(readable, Ok(Compatibility::Full)), "{name}: {readable:?}");
    }
    // The check detects incompatibility.
    let mut broken: Value = serde_json::from_str(schemas::CLUSTER).unwrap();
    broken["fields"].as_array_mut().unwrap().push(serde_json::json!({"name": "new", "type": "string"}));
    let broken = Schema::parse_str(&broken.to_string()).unwrap();
    assert!(SchemaCompatibility::can_read(&Schema::parse_str(schemas::CLUSTER).unwrap(), &broken).is_err());
}

#[test]
fn every_field_is_documented() {
    fn visit(schema: &Value, path: &str) {
        match schema {
            Value::Array(all) => all.iter().for_each(|each| visit(each, path)),
            Value::Object(object) => {
                for (key, inner) in object {
                    match key.as_str() {
                        "fields" => {
                            for field in inner.as_array().unwrap() {
                                let path = format!("{path}.{}", field["name"].as_str().unwrap());
                                assert!(
                                    field["doc"].as_str().is_some_and(|doc| doc.ends_with('.')),
                                    "{path}"
                                );
                                visit(&field["type"], &path);
                            }
                        }
                        "items" | "values" | "type" => visit(inner, path),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    for (name, schema) in schemas::ALL {
        let schema: Value = serde_json::from_str(schema).unwrap();
        assert!(schema["doc"].is_string(), "{name}");
        visit(&schema, name);
    }
}

#[test]
fn the_article_in_an_envelope_is_the_raw_article() {
    let tagged: Value = serde_json::from_str(schemas::TAGGED_ARTICLE).unwrap();
    let fields = tagged["fields"].as_array().unwrap();
    let article = fields.iter().find(|field| field["name"] == "article").unwrap();
    let raw: Value = serde_json::from_str(schemas::RAW_ARTICLE).unwrap();
    assert_eq!(article["type"][1], raw);
}

#[test]
fn json_schemas_are_up_to_date() {
    for (name, schema) in schemas::ALL.iter().filter(|(name, _)| *name != "change") {
        assert_generated(&root().join(format!("schemas/{name}.schema.json")), &schemas::json_schema(schema));
    }
}

#[test]
fn the_contract_is_up_to_date() {
    assert_generated(&root().join("docs/contract.md"), &contract());
}

/// A validator for the keywords that our schemas use.
fn fits(value: &Value, schema: &Value) -> Result<(), String> {
    let is = |kind: &str| is_of_json_type(value, kind);
    let fitting = match &schema["type"] {
        Value::String(kind) => is(kind),
        Value::Array(kinds) => kinds.iter().any(|kind| is(kind.as_str().unwrap())),
        _ => true,
    };
    if !fitting {
        return Err(format!("{value} is not {}", schema["type"]));
    }
    if let Some(variants) = schema["anyOf"].as_array()
        && !variants.iter().any(|variant| fits(value, variant).is_ok())
    {
        return Err(format!("{value} fits none of {variants:?}"));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().unwrap()).is_none() {
            return Err(format!("{name} is missing in {value}"));
        }
    }
    if let Some(object) = value.as_object() {
        for (name, member) in object {
            match schema["properties"].get(name) {
                Some(inner) => fits(member, inner).map_err(|error| format!("{name}: {error}"))?,
                None if schema.get("properties").is_some() => {
                    return Err(format!("{name} is not in the schema"));
                }
                None => {}
            }
        }
    }
    for item in value.as_array().into_iter().flatten() {
        fits(item, &schema["items"])?;
    }
    Ok(())
}

#[test]
fn json_output_matches_its_json_schema() {
    let folder = crate::folder::Folder::new("json-schema");
    let article = |id: &str| {
        let text =
            "The ferry runs again from Monday morning, the harbour master said, after repairs to the pier. ";
        serde_json::json!({"id": id, "body": text.repeat(5), "language": "en"}).to_string()
    };
    folder.write("a.ndjson", format!("{}\n{}\n", article("a"), article("b")).as_bytes());
    let printed = folder.run(&["file", "a.ndjson"]);
    let schema: Value = serde_json::from_str(&schemas::json_schema(schemas::TAGGED_ARTICLE)).unwrap();
    let mut lines = 0;
    for line in printed.stdout.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        // In Kafka it is a position in a topic.
        line["input"] = serde_json::json!({"topic": "t", "partition": 0, "offset": 1});
        fits(&line, &schema).unwrap();
        line["more"] = Value::Null;
        assert!(fits(&line, &schema).is_err());
        lines += 1;
    }
    assert_eq!(lines, 2);
}

// Consumers copy these messages into their own tests.
#[test]
fn the_messages_in_the_contract_fit_their_schemas() {
    let messages = samples();
    let topics = ["articles.raw", "samestory.unique", "samestory.near-duplicate", "samestory.clusters"];
    let of = [schemas::RAW_ARTICLE, schemas::TAGGED_ARTICLE, schemas::TAGGED_ARTICLE, schemas::CLUSTER];
    for (topic, schema) in topics.into_iter().zip(of) {
        let sent = messages.iter().find(|sent| sent.topic == topic && sent.value.is_some());
        let schema: Value = serde_json::from_str(&schemas::json_schema(schema)).unwrap();
        fits(&value(sent.unwrap()).unwrap(), &schema).unwrap_or_else(|why| panic!("{topic}: {why}"));
    }
    let has = |topic: &str, is_record: bool| {
        messages.iter().any(|sent| sent.topic == topic && sent.value.is_some() == is_record)
    };
    assert!(has("samestory.dead-letter", true), "a record without a text");
    assert!(has("samestory.unique", false) && has("samestory.clusters", false), "tombstones of a delete");
}
