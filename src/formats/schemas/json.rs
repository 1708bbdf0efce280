//! An Avro schema → the JSON Schema of the same values as samestory writes them in JSON.
//!
//! Times are ISO 8601 texts there, and `input` may be a line of a file. A field with a default may be absent.

use serde_json::{Map, Value, json};

use super::fields;

/// The JSON Schema (2020-12) of an Avro schema of ours, with a line's end.
pub fn json_schema(avro: &str) -> String {
    let avro: Value = serde_json::from_str(avro).unwrap_or_default();
    let mut schema = Map::new();
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    let name = avro.get("name").and_then(Value::as_str).unwrap_or_default();
    schema.insert("title".into(), json!(name));
    if let Value::Object(of) = of(&avro) {
        schema.extend(of);
    }
    let mut text = serde_json::to_string_pretty(&Value::Object(schema)).unwrap_or_default();
    text.push('\n');
    text
}

fn of(avro: &Value) -> Value {
    match avro {
        Value::String(name) => match name.as_str() {
            "null" => json!({ "type": "null" }),
            "boolean" => json!({ "type": "boolean" }),
            "int" | "long" => json!({ "type": "integer" }),
            "float" | "double" => json!({ "type": "number" }),
            _ => json!({ "type": "string" }),
        },
        Value::Array(variants) => {
            let variants: Vec<Value> = variants.iter().map(of).collect();
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
            Some("array") => json!({ "type": "array", "items": of(&kind["items"]) }),
            Some("map") => json!({ "type": "object", "additionalProperties": of(&kind["values"]) }),
            Some(_) if kind.contains_key("logicalType") => json!({ "type": "string", "format": "date-time" }),
            Some(other) => of(&json!(other)),
            None => json!({}),
        },
        _ => json!({}),
    }
}

fn record(avro: &Value) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields(avro) {
        let mut kind = match field.name {
            // The article as it came may be any object.
            "article" => json!({ "anyOf": [{ "type": "null" }, { "type": "object" }] }),
            "original" => continue,
            _ => of(field.kind),
        };
        if let Value::Object(kind) = &mut kind {
            let doc = match field.name {
                "article" => "The article: unchanged, or in our own fields if envelope.article is mapped.",
                _ => field.doc,
            };
            kind.insert("description".into(), json!(doc));
        }
        properties.insert(field.name.to_owned(), kind);
        if !field.has_default {
            required.push(field.name.to_owned());
        }
    }
    let doc = avro.get("doc").and_then(Value::as_str).unwrap_or_default();
    json!({ "type": "object", "description": doc, "properties": properties, "required": required })
}
