//! The paths of the values in a JSON object, as `[input.fields]` writes them, for `samestory probe`.

use std::collections::BTreeSet;

use serde_json::Value;

/// How deep paths are listed, and how long they may be.
const DEPTH: usize = 6;
const LONGEST: usize = 200;
/// Elements of a list that are looked at.
const ELEMENTS: usize = 8;

/// The path of every value in an object, with its type; empty if the bytes are not JSON.
pub fn paths(json: &[u8]) -> BTreeSet<(String, &'static str)> {
    let mut found = BTreeSet::new();
    if let Ok(value) = serde_json::from_slice(json) {
        collect(&value, "", DEPTH, &mut found);
    }
    found
}

fn collect(value: &Value, path: &str, depth: usize, found: &mut BTreeSet<(String, &'static str)>) {
    let kind = match value {
        Value::Object(fields) if depth > 0 => {
            for (name, inner) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if path.len() <= LONGEST {
                    collect(inner, &path, depth - 1, found);
                }
            }
            return;
        }
        Value::Array(values) if depth > 0 && !values.is_empty() => {
            let path = format!("{path}[]");
            values.iter().take(ELEMENTS).for_each(|inner| collect(inner, &path, depth - 1, found));
            return;
        }
        Value::Null => return,
        Value::Object(_) => "object",
        Value::Array(_) => "list",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
    };
    found.insert((path.to_owned(), kind));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_values_are_listed_as_settings_write_them() {
        let json = br#"{"id":7,"content":{"text":"x","by":[{"name":"A"},{"name":"B"}]},"tags":["x"],"none":null,"empty":[]}"#;
        let found: Vec<String> =
            paths(json).into_iter().map(|(path, kind)| format!("{path} {kind}")).collect();
        let expected =
            ["content.by[].name string", "content.text string", "empty list", "id number", "tags[] string"];
        assert_eq!(found, expected);
        assert!(paths(b"not json").is_empty());
    }
}
