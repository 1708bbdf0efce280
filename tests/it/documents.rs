//! Generated documents are up to date: each file equals the output of the code. `UPDATE_GOLDEN=1` rewrites
//! them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use samestory::config::{RENAMED, reference};
use samestory::formats::fields::Field;
use samestory_engine::engine::compare::evidence::{Evidence, KNOTS, Measure, Weights};
use serde_json::{Map, Value, json};

fn assert_current(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "{file} is out of date: run UPDATE_GOLDEN=1 cargo test --release documents");
}

#[test]
fn every_setting_is_in_the_document() {
    assert_current("docs/configuration.md", &reference::markdown());
}

#[test]
fn the_schemas_of_file_output_are_current() {
    for (name, schema) in samestory::formats::schemas::file_schemas() {
        assert_current(&format!("schemas/{name}.schema.json"), &schema);
    }
}

/// The contribution of each measure at the knots of its curve.
fn weights_table() -> String {
    let weights = Weights::FITTED;
    let mut text = format!("Log-odds before anything is measured (`prior`): {:+.2}.\n\n", weights.prior);
    text += "| measure | at 0 | 0.2 | 0.4 | 0.6 | 0.8 | 1 | neutral |\n|---|---:|---:|---:|---:|---:|---:|---:|\n";
    for measure in Measure::ALL {
        let contributions = KNOTS.map(|share| {
            let mut evidence = Evidence::default();
            evidence.set(measure, Some(share));
            let written = format!("{:+.2}", weights.contribution(measure, &evidence));
            if ["+0.00", "-0.00"].contains(&written.as_str()) { "0".to_owned() } else { written }
        });
        let neutral = weights.neutral[measure as usize];
        text += &format!("| `{}` | {} | {neutral:.2} |\n", measure.as_str(), contributions.join(" | "));
    }
    text
}

/// The document must show the weights that the program uses, so that people can add them up.
#[test]
fn the_weights_are_in_the_document() {
    const BEGIN: &str = "<!-- weights: UPDATE_GOLDEN=1 cargo test --release documents -->\n";
    const END: &str = "<!-- end of weights -->";
    let file = "docs/evidence.md";
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page marks where the table begins");
    let (_, after) = rest.split_once(END).expect("the page marks where the table ends");
    assert_current(file, &format!("{before}{BEGIN}{}{END}{after}", weights_table()));
}

/// Settings that the chart sets itself, so that nobody else does.
const SET_BY_CHART: &[(&str, &str)] = &[
    ("http", "listen"),
    ("http", "query"),
    ("http", "token"),
    ("http", "hosts"),
    ("http", "peers"),
    ("http", "peer_timeout"),
    ("stage", "state"),
    ("stage", "instance"),
    ("stage", "workers"),
];

/// The JSON schema of a setting, found by asking the settings what they accept.
fn kind(path: &[&str]) -> Value {
    let path: Vec<String> = path.iter().map(|&key| key.to_owned()).collect();
    let accepts = |written: &str| {
        let value = toml::from_str::<toml::Table>(&format!("v = {written}")).unwrap().remove("v").unwrap();
        reference::takes(&path, value)
    };
    let texts = json!({"type": "string"});
    match () {
        // A secret must be stored elsewhere: values end up in a ConfigMap.
        () if accepts("{ env = \"X\" }") => secret_reference(),
        // The program refuses credentials in a URL; by then they would be in the ConfigMap.
        () if path == ["registry", "url"] => json!({"type": "string", "pattern": "^[^@]*$"}),
        () if accepts("\"text\"") && accepts("[\"text\"]") => {
            json!({"type": ["string", "array"], "items": texts})
        }
        () if accepts("\"text\"") => texts,
        () if accepts("[\"text\"]") => json!({"type": "array", "items": texts}),
        () if accepts("[0.1, 0.2]") => json!({"type": "array", "items": {"type": "number"}}),
        () if accepts("0.5") => json!({"type": "number"}),
        () if accepts("1") => json!({"type": "integer"}),
        () if accepts("true") => json!({"type": "boolean"}),
        // A table of its own, such as the weights.
        () if accepts("{ prior = 0.5 }") => json!({"type": "object"}),
        () if accepts("{ words = 3 }") => {
            let of = |name: &str, kind: &str| {
                let mut one = closed(Map::from_iter([(name.to_owned(), json!({"type": kind}))]));
                one["required"] = json!([name]);
                one
            };
            json!({"anyOf": [of("words", "integer"), of("characters", "integer"), of("tokenizer", "string")]})
        }
        () => panic!("{path:?} accepts nothing"),
    }
}

/// The schema of a reference to a secret.
fn secret_reference() -> Value {
    let kept = |name: &str| {
        let mut kept = closed(Map::from_iter([(name.to_owned(), json!({"type": "string"}))]));
        kept["required"] = json!([name]);
        kept
    };
    json!({"anyOf": [kept("env"), kept("file")]})
}

fn closed(properties: Map<String, Value>) -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

/// The chart accepts the existing settings, and refuses others before anything is installed.
#[test]
fn the_chart_knows_every_setting() {
    let mut tables: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for (table, key) in reference::keys() {
        if !SET_BY_CHART.contains(&(&table, &key)) && key != "fields" {
            let kind = kind(&[&table, &key]);
            tables.entry(table).or_default().insert(key, kind);
        }
    }
    // Values files with an old key keep working; the program warns at startup.
    for (table, old, current) in RENAMED {
        let mut kind = kind(&[table, current]);
        kind["description"] = format!("Deprecated: renamed to {current}.").into();
        tables.entry((*table).to_owned()).or_default().insert((*old).to_owned(), kind);
    }
    let field = |field: Field| (field.name().to_owned(), kind(&["input", "fields", field.name()]));
    let fields: Map<String, Value> = Field::ALL.map(field).into_iter().collect();
    tables.get_mut("input").unwrap().insert("fields".into(), closed(fields));
    let mut property = secret_reference();
    property["anyOf"].as_array_mut().unwrap().insert(0, json!({"type": ["string", "number", "boolean"]}));
    let language = closed(tables["match"].clone());
    let mut config: Map<String, Value> =
        tables.into_iter().map(|(table, keys)| (table, closed(keys))).collect();
    let secret = reference::SECRET_WORDS.join("|").replace('.', "\\.");
    config.insert(
        "kafka".into(),
        json!({"type": "object", "patternProperties": {secret: secret_reference()}, "additionalProperties": property}),
    );
    let languages = json!({"type": "object", "propertyNames": {"pattern": "^[a-z]{2,3}$"}, "additionalProperties": language});
    config.insert("languages".into(), languages);
    let file = "helm/samestory/values.schema.json";
    let schema = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let mut schema: Value = serde_json::from_str(&schema).unwrap();
    schema["properties"]["config"] = closed(config);
    assert_current(file, &format!("{}\n", serde_json::to_string_pretty(&schema).unwrap()));
}

/// Metric names in an expression: ours, the process's, and those of recording rules.
#[cfg(feature = "http")]
fn metrics_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    words.filter(|word| word.starts_with("samestory_") || word.starts_with("process_"))
}

/// `kafka::ops` checks that a scrape of the real program has every metric of the table.
#[cfg(feature = "http")]
#[test]
fn the_dashboard_and_the_alerts_use_existing_metrics() {
    use samestory::metrics::{Kind, METRICS};
    let exists = |name: &str| {
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
        let unknown: Vec<&str> = metrics_in(text).filter(|name| !exists(name)).collect();
        assert!(metrics_in(text).count() > 20 && unknown.is_empty(), "no such metrics: {unknown:?}");
    }
    for metric in METRICS
        .iter()
        .filter(|metric| metric.name != "process_threads" && metric.name != "process_start_time_seconds")
    {
        assert!(dashboard.contains(metric.name), "{} is on no panel", metric.name);
    }
}

// Two panels had the ids of two others, and covered four: Grafana showed whichever it drew last.
#[test]
fn every_panel_of_the_dashboard_has_an_id_and_a_place_of_its_own() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("helm/samestory");
    let dashboard = fs::read_to_string(root.join("dashboards/samestory.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let (mut ids, mut taken) = (std::collections::BTreeSet::new(), BTreeMap::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{} has the id of another panel", panel["title"]);
        let place = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        let (x, y) = (place("x"), place("y"));
        assert!(x + place("w") <= 24, "{} is wider than the page", panel["title"]);
        for at in (x..x + place("w")).flat_map(|x| (y..y + place("h")).map(move |y| (x, y))) {
            let other = taken.insert(at, &panel["title"]);
            assert_eq!(other, None, "{} covers it", panel["title"]);
        }
    }
    assert!(taken.len() > 24 * 40, "{} cells", taken.len());
}

#[cfg(feature = "http")]
#[test]
fn every_metric_is_in_the_document() {
    assert_current("docs/metrics.md", &samestory::metrics::markdown());
}

/// Rust files below a folder, each with its module path.
fn modules(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let (mut folders, mut modules) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let module = path.strip_prefix(&root).unwrap().with_extension("");
                let module = module.to_str().unwrap().replace('/', "::");
                let module = module.trim_end_matches("mod").trim_end_matches("::").to_owned();
                modules.push((module, fs::read_to_string(path).unwrap()));
            }
        }
    }
    modules
}

// Tests were renamed and moved, and documents kept naming what no longer existed: a reader could not run them, and a filter
// in the Makefile that matches nothing passes.
#[test]
fn tests_that_documents_and_the_makefile_name_exist() {
    let mut known = std::collections::BTreeSet::new();
    for folder in ["tests/it", "src", "crates/samestory-engine/src"] {
        for (module, text) in modules(folder) {
            for function in text.lines().filter_map(|line| line.trim_start().split_once("fn ")) {
                let name: String =
                    function.1.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                known.extend([format!("{module}::{name}"), format!("{module}::tests::{name}")]);
            }
            known.insert(module);
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_path = |word: &str| {
        word.contains("::")
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c))
    };
    let page = fs::read_to_string(root.join("docs/reliability.md")).unwrap();
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).filter(|word| is_path(word)).collect();
    assert!(named.len() > 40, "{named:?}");
    let missing: Vec<&str> =
        named.into_iter().filter(|name| !known.contains(name.trim_end_matches("::"))).collect();
    assert!(missing.is_empty(), "docs/reliability.md names what does not exist: {missing:#?}");
    let makefile = fs::read_to_string(root.join("Makefile")).unwrap();
    let filters = makefile.split_whitespace().filter(|word| word.starts_with("kafka::"));
    let idle: Vec<&str> = filters.filter(|word| !known.iter().any(|name| name.contains(word))).collect();
    assert!(idle.is_empty(), "filters of the Makefile match no test: {idle:#?}");
}
