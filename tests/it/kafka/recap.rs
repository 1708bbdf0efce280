//! `examples/recap.py` on the topics of a stage.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::broker::shared;
use super::bus::Record;
use super::stage::Bench;
use crate::folder::story;

#[test]
fn a_recap_of_the_bus_has_one_article_per_story() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bench = Bench::new(shared(), "recap", "", "");
    let ids = [("a1", 1), ("b1", 2), ("a2", 1), ("c1", 3), ("a3", 1), ("b2", 2)];
    let records = ids.map(|(id, number)| {
        Record::new(
            id,
            &json!({"id": id, "language": "en", "title": id, "body": story(number, "")}).to_string(),
        )
    });
    bench.produce(&records);
    let running = bench.run(&[]);
    bench.wait_for(&["unique", "near"], records.len(), &running);
    bench.wait_for(&["clusters"], 3, &running);
    assert!(running.stop().success());
    let output = Command::new(root.join("dev/interop"))
        .arg("run")
        .arg(root.join("examples/recap.py"))
        .args(["--json", "--bootstrap", bench.broker.bootstrap()])
        .args(["--clusters-topic", &bench.topic("clusters"), "--unique-topic", &bench.topic("unique")])
        // The records have no time of their own, so the articles are seen now.
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["stats"], json!({"total": 6, "unique": 3, "duplicate": 3}));
    let stories: Vec<(&str, u64)> = result["stories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|story| (story["id"].as_str().unwrap(), story["size"].as_u64().unwrap()))
        .collect();
    assert_eq!(stories, [("a1", 3), ("b1", 2)]);
}
