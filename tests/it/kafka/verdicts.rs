//! Verdicts on the output topics equal those of `samestory file`, for every mode, number of partitions and batch size.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::broker::shared;
use super::bus::{Record, Row};
use super::stage::{Bench, PATIENCE};

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

/// A page of a site, with its own menu and footer around the text.
fn page(site: u32, headline: &str, text: &str) -> String {
    format!(
        "<!DOCTYPE html><html><head><title>{headline}</title><script>var site = {site};</script></head><body>\
         <nav><ul><li><a href=\"/{site}\">{site}</a></li></ul></nav><article><h1>{headline}</h1><p>{text}</p></article>\
         <footer>&copy; {site}</footer></body></html>"
    )
}

// `make bench-day` measures such a day with 25,000 items.
#[test]
fn a_day_of_pages_in_ten_languages_gets_one_verdict_for_each_item() {
    const LANGUAGES: [&str; 10] = ["en", "hi", "es", "bn", "ta", "fr", "te", "de", "ru", "ar"];
    let bench = Bench::new(shared(), "newsroom", "", "[topics]\npartitions = 4\n");
    let article = |id: String, site: u32, text: &str| {
        let headline = text.split(' ').take(6).collect::<Vec<_>>().join(" ");
        let (url, body) = (format!("https://site-{site}.example/{id}"), page(site, &headline, text));
        let value = serde_json::json!({"id": id, "url": url, "title": headline, "body": body}).to_string();
        Record { partition: Some(0), ..Record::new(&id, &value) }
    };
    let (mut yesterday, mut today) = (Vec::new(), Vec::new());
    for code in LANGUAGES {
        let file = format!("{}/tests/data/language/{code}.txt", env!("CARGO_MANIFEST_DIR"));
        let file = fs::read_to_string(file).unwrap();
        let [first, second] = file.trim().split("\n\n").collect::<Vec<_>>()[..] else { panic!("{code}") };
        yesterday.push(article(format!("{code}-unpublished"), 1, first));
        yesterday.push(article(format!("{code}-updated"), 1, second));
        today.push(article(format!("{code}-copy"), 2, first));
        today.push(article(format!("{code}-updated"), 1, &format!("{second} 2026.")));
        let gone = format!("{code}-unpublished");
        today.push(Record { partition: Some(0), key: Some(gone.into_bytes()), ..Record::default() });
    }
    bench.produce(&yesterday);
    let running = bench.run(&[]);
    bench.wait_for(&["unique"], yesterday.len(), &running);
    bench.produce(&today);
    let retracted = || bench.read("unique").iter().filter(|row| row.value.is_none()).map(Row::id).collect();
    let expected: BTreeSet<String> = LANGUAGES.iter().map(|code| format!("{code}-unpublished")).collect();
    let deadline = Instant::now() + PATIENCE;
    // The retraction is the last record of its language.
    while !expected.is_subset(&retracted()) {
        assert!(Instant::now() < deadline, "retracted: {:?}; {}", retracted(), running.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(running.stop().success());
    assert_eq!(retracted(), expected);
    let mut verdicts: BTreeMap<String, Vec<(String, String, String)>> = BTreeMap::new();
    for row in ["unique", "near"].iter().flat_map(|topic| bench.read(topic)).filter(|row| row.value.is_some())
    {
        let header = |name: &str| row.our_header(name).unwrap_or_default();
        let verdict = if header("verdict") == "unique" { "unique" } else { "duplicate" };
        let judged = (verdict.to_owned(), header("language"), header("revision"));
        verdicts.entry(row.id()).or_default().push(judged);
    }
    for code in LANGUAGES {
        let mut judged = |id: &str| verdicts.remove(&format!("{code}-{id}")).unwrap_or_default();
        let expected =
            |verdict: &str, revision: &str| (verdict.to_owned(), code.to_owned(), revision.to_owned());
        assert_eq!(judged("unpublished"), [expected("unique", "0")]);
        assert_eq!(judged("copy"), [expected("duplicate", "0")]);
        assert_eq!(judged("updated"), [expected("unique", "0"), expected("unique", "1")]);
    }
    assert!(verdicts.is_empty(), "{verdicts:?}");
    assert!(bench.read("dead").is_empty());
}
