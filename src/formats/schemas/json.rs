//! Converts an Avro schema of ours into a JSON Schema of the same values as samestory writes them in JSON. Times become
//! ISO 8601 strings, and a field with a default is optional. It knows only what the files of `schemas/` use.

use serde_json::{Map, Value, json};

/// The JSON Schema (2020-12) of one of our Avro schemas, with a trailing line break.
pub fn json_schema(avro: &str) -> String {
    let avro: Value = serde_json::from_str(avro).unwrap_or_default();
    let mut schema = Map::new();
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    let name = avro.get("name").and_then(Value::as_str).unwrap_or_default();
    schema.insert("title".into(), json!(name));
    if let Value::Object(converted) = convert(&avro) {
        schema.extend(converted);
    }
    let mut text = serde_json::to_string_pretty(&Value::Object(schema)).unwrap_or_default();
    text.push('\n');
    text
}

/// The JSON Schemas of what `samestory file` writes, by file name: its lines have a file where those of the bus have a topic.
/// They are closed, because a file belongs to one version of the program. Clusters are as on the bus.
pub fn file_schemas() -> [(&'static str, String); 2] {
    let mut verdict: Value = serde_json::from_str(&json_schema(super::TAGGED_ARTICLE)).unwrap_or_default();
    verdict["title"] = json!("FileVerdict");
    verdict["description"] = json!("A line of the output of `samestory file`: an article with its verdict.");
    verdict["additionalProperties"] = json!(false);
    verdict["properties"]["verdict"]["enum"] = json!(["unique", "near-duplicate", "exact-duplicate"]);
    for share in ["similarity", "containment", "confidence"] {
        verdict["properties"][share]["minimum"] = json!(0);
        verdict["properties"][share]["maximum"] = json!(1);
    }
    verdict["properties"]["input"] = json!({
        "type": "object",
        "description": "Where the article was read.",
        "properties": {
            "file": { "type": "string", "description": "The file as named on the command line; - for standard input." },
            "line": { "type": "integer", "description": "The line on which it begins, or its row, counted from 1." },
        },
        "required": ["file", "line"],
        "additionalProperties": false,
    });
    // A file has no log, and so no time of arrival in it.
    if let Some(properties) = verdict["properties"].as_object_mut() {
        properties.shift_remove("received_at");
    }
    verdict["properties"]["article"] = json!({
        "type": "object",
        "description": "The article, unchanged; absent with --no-article.",
    });
    // A file has no log whose clock could say when an article was received.
    if let Some(properties) = verdict["properties"].as_object_mut() {
        properties.shift_remove("received_at");
    }
    let text = |description: &str| json!({ "type": "string", "description": description });
    let letter = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "FileDeadLetter",
        "type": "object",
        "description": "A line of --dead-letters: a record that could not be judged.",
        "properties": {
            "file": text("The file as named on the command line; - for standard input."),
            "line": { "type": "integer", "description": "The line on which it begins, or its row, counted from 1." },
            "reason": text("Why: undecodable, no-id, no-body, wrong-type, too-large, too-deep, long-number, not-owner or parser-panicked."),
            "message": text("The same for people."),
            "original": { "type": ["null", "string"], "description": "The record; null if it was too long to be read." },
            "original_hex": text("The record in hexadecimal digits, in place of original, if it is not UTF-8."),
        },
        "required": ["file", "line", "reason", "message"],
        "additionalProperties": false,
    });
    let pretty = |schema: &Value| serde_json::to_string_pretty(schema).unwrap_or_default() + "\n";
    [("file-verdict", pretty(&verdict)), ("file-dead-letter", pretty(&letter))]
}

fn convert(avro: &Value) -> Value {
    match avro {
        Value::String(name) => match name.as_str() {
            "null" => json!({ "type": "null" }),
            "boolean" => json!({ "type": "boolean" }),
            "int" | "long" => json!({ "type": "integer" }),
            "float" | "double" => json!({ "type": "number" }),
            _ => json!({ "type": "string" }),
        },
        Value::Array(variants) => {
            let variants: Vec<Value> = variants.iter().map(convert).collect();
            let simple: Option<Vec<&str>> = variants
                .iter()
                .map(|variant| match variant {
                    Value::Object(fields) if fields.len() == 1 => fields.get("type").and_then(Value::as_str),
                    _ => None,
                })
                .collect();
            match simple {
                Some(types) => json!({ "type": types }),
                None => json!({ "anyOf": variants }),
            }
        }
        Value::Object(kind) => match kind.get("type").and_then(Value::as_str) {
            Some("record") => record(avro),
            Some("array") => json!({ "type": "array", "items": convert(&kind["items"]) }),
            Some("map") => json!({ "type": "object", "additionalProperties": convert(&kind["values"]) }),
            Some(_) if kind.contains_key("logicalType") => json!({ "type": "string", "format": "date-time" }),
            Some(other) => convert(&json!(other)),
            None => json!({}),
        },
        _ => json!({}),
    }
}

fn record(avro: &Value) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in avro.get("fields").and_then(Value::as_array).into_iter().flatten() {
        let (Some(name), Some(kind)) = (field.get("name").and_then(Value::as_str), field.get("type")) else {
            continue;
        };
        let mut property = match name {
            // An unchanged article may be any object.
            "article" => json!({ "anyOf": [{ "type": "null" }, { "type": "object" }] }),
            "original" => continue,
            _ => convert(kind),
        };
        if let Value::Object(property) = &mut property {
            let doc = match name {
                "article" => "The article: unchanged, or in our own fields if envelope.article is mapped.",
                _ => field.get("doc").and_then(Value::as_str).unwrap_or_default(),
            };
            property.insert("description".into(), json!(doc));
        }
        properties.insert(name.to_owned(), property);
        if field.get("default").is_none() {
            required.push(name.to_owned());
        }
    }
    let doc = avro.get("doc").and_then(Value::as_str).unwrap_or_default();
    json!({ "type": "object", "description": doc, "properties": properties, "required": required })
}
