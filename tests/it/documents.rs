//! Documents that are made from the code: the file is what the code says. `UPDATE_GOLDEN=1` writes them anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use samestory::config::reference;
use serde_json::{Map, Value, json};

fn is_current(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "{file} is not what the code says: run UPDATE_GOLDEN=1 cargo test --release documents"
    );
}

#[test]
fn every_setting_is_in_the_document() {
    is_current("docs/configuration.md", &reference::markdown());
}

/// What the chart decides itself, so that nobody else does.
const THE_CHARTS_OWN: &[(&str, &str)] = &[
    ("http", "listen"),
    ("http", "query"),
    ("http", "token"),
    ("http", "peers"),
    ("http", "peer_timeout"),
    ("stage", "state"),
    ("stage", "instance"),
    ("stage", "workers"),
];

fn kind(value: &toml::Value) -> Value {
    match value {
        toml::Value::Integer(_) => json!({"type": "integer"}),
        toml::Value::Float(_) => json!({"type": "number"}),
        toml::Value::Boolean(_) => json!({"type": "boolean"}),
        toml::Value::Array(values) => json!({"type": "array", "items": kind(&values[0])}),
        _ => json!({"type": "string"}),
    }
}

fn closed(properties: Map<String, Value>) -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

/// The chart takes the settings that there are, and refuses others before anything is installed.
#[test]
fn the_chart_knows_every_setting() {
    let mut tables: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for setting in reference::settings() {
        if !THE_CHARTS_OWN.contains(&(setting.table, setting.key)) {
            let kind = match setting.table {
                "input.fields" => json!({"type": ["string", "array"], "items": {"type": "string"}}),
                _ => kind(&setting.value),
            };
            tables.entry(setting.table).or_default().insert(setting.key.to_owned(), kind);
        }
    }
    let kept = |name: &str| closed(Map::from_iter([(name.to_owned(), json!({"type": "string"}))]));
    let property = json!({"anyOf": [{"type": ["string", "number", "boolean"]}, kept("env"), kept("file")]});
    tables.remove("kafka");
    let fields = tables.remove("input.fields").unwrap();
    tables.get_mut("input").unwrap().insert("fields".into(), closed(fields));
    let language = closed(tables["match"].clone());
    let mut config: Map<String, Value> =
        tables.into_iter().map(|(table, keys)| (table.to_owned(), closed(keys))).collect();
    config.insert("kafka".into(), json!({"type": "object", "additionalProperties": property}));
    let languages = json!({"type": "object", "propertyNames": {"pattern": "^[a-z]{2,3}$"}, "additionalProperties": language});
    config.insert("languages".into(), languages);
    let file = "helm/samestory/values.schema.json";
    let schema = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let mut schema: Value = serde_json::from_str(&schema).unwrap();
    schema["properties"]["config"] = closed(config);
    is_current(file, &format!("{}\n", serde_json::to_string_pretty(&schema).unwrap()));
}

/// Names of metrics in an expression: ours, the process's, and what recording rules make of them.
fn metrics_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    words.filter(|word| word.starts_with("samestory_") || word.starts_with("process_"))
}

/// That a scrape of the real program has every metric of the table is shown in `kafka::ops`.
#[cfg(feature = "http")]
#[test]
fn the_dashboard_and_the_alerts_speak_of_metrics_that_there_are() {
    use samestory::metrics::{Kind, METRICS};
    let there = |name: &str| {
        METRICS.iter().any(|metric| match metric.kind {
            Kind::Histogram(_) => {
                ["_bucket", "_sum", "_count"].iter().any(|end| name == format!("{}{end}", metric.name))
            }
            Kind::Counter | Kind::Gauge => metric.name == name,
        })
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("helm/samestory");
    let dashboard = fs::read_to_string(root.join("dashboards/samestory.json")).unwrap();
    let rules = fs::read_to_string(root.join("rules/samestory.yaml")).unwrap();
    for text in [&dashboard, &rules] {
        let unknown: Vec<&str> = metrics_in(text).filter(|name| !there(name)).collect();
        assert!(metrics_in(text).count() > 20 && unknown.is_empty(), "no such metrics: {unknown:?}");
    }
    for metric in METRICS
        .iter()
        .filter(|metric| metric.name != "process_threads" && metric.name != "process_start_time_seconds")
    {
        assert!(dashboard.contains(metric.name), "{} is on no panel", metric.name);
    }
}

#[cfg(feature = "http")]
#[test]
fn every_metric_is_in_the_document() {
    is_current("docs/metrics.md", &samestory::metrics::markdown());
}
