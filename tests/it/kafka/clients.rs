//! The consumers that users copy, in Python, Rust and Java: on topics that hold JSON and Avro, with updates and deletes, all
//! three print the cards that were produced.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::broker::shared;
use super::bus::Record;
use super::registry;
use super::stage::Bench;
use crate::engine_fixture::window;

const STORIES: u64 = 12;

fn article(story: u64, copy: u64) -> Record {
    let id = format!("s{story}-{copy}");
    let value = json!({"id": id, "body": window(story, 100, 90, 0, 5 * copy), "language": "en", "host": format!("h{copy}.example"),
                       "fetched_at": 1_772_431_800_000_i64});
    Record { partition: Some(0), ..Record::new(&id, &value.to_string()) }
}

fn delete(id: &str) -> Record {
    Record { partition: Some(0), key: Some(id.into()), ..Record::default() }
}

/// The cards that a program prints: story -> canonical, number of articles, hosts.
fn cards(bench: &Bench<'_>, mut program: Command) -> BTreeMap<String, (String, u64, Vec<String>)> {
    program.args([
        "--until-end",
        "--bootstrap",
        bench.broker.bootstrap(),
        "--registry",
        &registry::shared().url,
    ]);
    for (option, topic) in [("--unique", "unique"), ("--near-duplicate", "near"), ("--clusters", "clusters")]
    {
        program.args([option, &bench.topic(topic)]);
    }
    let output = program.output().unwrap();
    assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
    let printed: BTreeMap<String, Value> = serde_json::from_slice(&output.stdout).unwrap();
    let card = |card: Value| serde_json::from_value(card).unwrap();
    printed.into_iter().map(|(story, value)| (story, card(value))).collect()
}

#[test]
fn the_examples_in_three_languages_print_the_same_cards_from_json_and_avro() {
    let url = &registry::shared().url;
    let settings = |format: &str| format!("[registry]\nurl = \"{url}\"\n[output]\nformat = \"{format}\"\n");
    let mut bench = Bench::new(shared(), "clients", "", &settings("json"));
    let (mut produced, mut deleted) = (0, 0);
    for format in ["json", "avro"] {
        bench.write("", &settings(format));
        if format == "avro" {
            let (status, printed) = bench.samestory(&["schemas", "register"]);
            assert!(status.success(), "{printed}");
        }
        // The second half continues the first half's stories and begins others.
        let stories = if format == "json" { 0..STORIES } else { STORIES / 2..STORIES * 2 };
        let copies = if format == "json" { 0..2 } else { 2..4 };
        let articles: Vec<Record> =
            stories.flat_map(|s| copies.clone().map(move |c| article(s, c))).collect();
        produced += articles.len();
        bench.produce(&articles);
        let running = bench.run(&[]);
        bench.wait_for(&["unique", "near"], produced + deleted, &running);
        let goes = if format == "json" { ["s1-1", "s8-0"] } else { ["s9-2", "s20-3"] };
        bench.produce(&goes.map(delete));
        deleted += goes.len();
        bench.wait_for(&["unique", "near"], produced + deleted, &running);
        assert!(running.stop().success());
    }
    let first_bytes: Vec<u8> =
        bench.read("clusters").iter().filter_map(|row| row.value.as_ref()?.first().copied()).collect();
    assert!(first_bytes.contains(&0) && first_bytes.contains(&b'{'), "one topic holds both formats");

    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut python = Command::new(root.join("dev/interop"));
    python.arg("run").arg(root.join("examples/consumer.py"));
    let mut java = Command::new(root.join("dev/jvm"));
    java.arg(root.join("examples/Consumer.java"));
    let example = Path::new(env!("CARGO_BIN_EXE_samestory")).with_file_name("examples").join("consumer");
    assert!(example.is_file(), "{}: `make test-clients` builds it", example.display());

    let shown = cards(&bench, python);
    let mut sizes: Vec<u64> = shown.values().map(|(_, size, _)| *size).collect();
    sizes.sort_unstable();
    // Stories 0 to 5 have two articles, 6 to 11 four, 12 to 23 two; four articles were deleted.
    assert_eq!(sizes, [&[1, 1][..], &[2; 16], &[3; 2], &[4; 4]].concat(), "{shown:#?}");
    for (canonical, size, hosts) in shown.values() {
        let story = canonical.split('-').next().unwrap();
        assert!(!["s1-1", "s8-0", "s9-2", "s20-3"].contains(&canonical.as_str()), "{canonical} is deleted");
        assert_eq!(hosts.len() as u64, if *size == 1 { 0 } else { *size }, "{story}: {hosts:?}");
    }
    assert_eq!(cards(&bench, Command::new(example)), shown, "Rust and Python");
    assert_eq!(cards(&bench, java), shown, "Java and Python");
}
