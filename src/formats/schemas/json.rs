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
