//! Verdicts on the output topics equal those of `samestory file`, for every mode, number of partitions and batch size.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;

use super::broker::shared;
use super::bus::Record;
use super::stage::Bench;

/// The demo's articles, each with a time, so that a file run and the stage judge them alike.
fn articles() -> Vec<Value> {
    let file = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/demo/articles.ndjson")).unwrap();
    let articles = file.lines().filter(|line| !line.trim().is_empty()).enumerate().map(|(at, line)| {
        let mut article: Value = serde_json::from_str(line).unwrap();
        article["fetched_at"] = (1_772_000_000_000_i64 + at as i64 * 1000).into();
        article
    });
    articles.collect()
}

fn record(article: &Value, key: Option<&str>, partition: i32) -> Record {
    Record {
        partition: Some(partition),
        key: key.map(Into::into),
        value: Some(article.to_string().into_bytes()),
        timestamp: article["fetched_at"].as_i64(),
        ..Record::default()
    }
}

/// Envelopes by id and position in the input, without the input position and the partition in the cluster id.
type Verdicts = BTreeMap<(String, i64), Value>;

fn without_input(mut envelope: Value, place: i64) -> ((String, i64), Value) {
    let members = envelope.as_object_mut().unwrap();
    members.remove("input");
    // A file has no clock in its log.
    members.remove("received_at");
    let cluster = members["cluster_id"].as_str().unwrap().split(':').collect::<Vec<_>>();
    let [language, _partition, number] = cluster[..] else { panic!("{cluster:?}") };
    members["cluster_id"] = format!("{language}:{number}").into();
    ((members["id"].as_str().unwrap().to_owned(), place), envelope)
}

fn from_file(articles: &[Value], bench: &Bench<'_>) -> Verdicts {
    let input = bench.dir.join("articles.ndjson");
    let lines: Vec<String> = articles.iter().map(Value::to_string).collect();
    fs::write(&input, lines.join("\n")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_samestory"))
        .arg("--config")
        .arg(bench.config())
        .args(["file", "--quiet", "--retention", "7d"])
        .arg(&input)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let envelope: Value = serde_json::from_str(line).unwrap();
        let place = envelope["input"]["line"].as_i64().unwrap() - 1;
        without_input(envelope, place)
    };
    lines.lines().map(line).collect()
}

fn from_bus(bench: &Bench<'_>, articles: &[Value], key: impl Fn(&Value) -> Option<String>) -> Verdicts {
    // One partition, so that offsets correspond to the lines of the file.
    let records: Vec<Record> =
        articles.iter().map(|article| record(article, key(article).as_deref(), 0)).collect();
    bench.produce(&records);
    let running = bench.run(&[]);
    let rows = bench.wait_for(&["unique", "near"], articles.len(), &running);
    assert!(running.stop().success());
    assert_eq!(rows.len(), articles.len(), "one verdict for each article");
    let verdict = |row: &super::bus::Row| {
        let envelope: Value = serde_json::from_slice(row.value.as_ref().unwrap()).unwrap();
        let place = envelope["input"]["offset"].as_i64().unwrap();
        assert_eq!(row.our_header("verdict").as_deref(), envelope["verdict"].as_str());
        assert_eq!(row.our_header("offset"), Some(place.to_string()));
        assert_eq!(row.id(), envelope["id"].as_str().unwrap());
        without_input(envelope, place)
    };
    rows.iter().map(verdict).collect()
}

fn id(article: &Value) -> Option<String> {
    article["id"].as_str().map(str::to_owned)
}

#[test]
fn routed_mode_gives_the_verdicts_that_a_file_gets() {
    for (partitions, batch) in [(1, 500), (4, 1)] {
        let rest = format!("[topics]\npartitions = {partitions}\n[batch]\nmax_articles = {batch}\n");
        let bench = Bench::new(shared(), "same-routed", "", &rest);
        let articles = articles();
        let (bus, file) = (from_bus(&bench, &articles, id), from_file(&articles, &bench));
        assert_eq!(bus, file, "{partitions} partitions, batches of {batch}");
    }
}

#[test]
fn direct_mode_gives_the_verdicts_that_a_file_gets() {
    let bench = Bench::new(shared(), "same-direct", "mode = \"direct\"", "");
    let mut english = articles();
    english.retain(|article| article["language"] == "en");
    assert!(english.len() > 10);
    let (bus, file) = (from_bus(&bench, &english, |_| Some("en".into())), from_file(&english, &bench));
    assert_eq!(bus, file);
}
