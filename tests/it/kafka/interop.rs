//! Interoperability in both directions: Confluent's Python client writes Avro with a schema that evolves halfway, and
//! reads our output.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::broker::shared;
use super::registry;
use super::stage::Bench;

const STORIES: usize = 40;

/// Runs `dev/interop`. Without Python the test fails. It can be skipped by an environment variable, but not if `CI` is
/// set.
fn interop(arguments: &[&str]) -> Option<String> {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|is| is == value);
    if is("SAMESTORY_WITHOUT_PYTHON", "1") && !is("CI", "true") {
        eprintln!("LEFT OUT: Avro from and to Python, because SAMESTORY_WITHOUT_PYTHON=1");
        return None;
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("dev/interop");
    let output = Command::new(program).args(arguments).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "dev/interop {arguments:?}: {printed}");
    Some(String::from_utf8(output.stdout).unwrap())
}

fn bench(name: &str, output: &str) -> Option<Bench<'static>> {
    let url = &registry::shared().url;
    let fields = "[input.fields]\nid = \"story_id\"\nbody = \"text\"\nhost = \"source.domain\"\nfetched_at = \"crawled\"\n\
        language = \"=en\"\n";
    let rest =
        format!("[registry]\nurl = \"{url}\"\n[input]\nformat = \"avro\"\n[output]\n{output}\n{fields}");
    let bench = Bench::new(shared(), name, "", &rest);
    let (status, printed) = bench.samestory(&["schemas", "register"]);
    assert!(status.success(), "{printed}");
    let (broker, topic) = (bench.broker.bootstrap(), bench.topic("raw"));
    interop(&["produce", broker, url, &topic, &STORIES.to_string()])?;
    Some(bench)
}

/// The records that Python reads from a topic.
fn read(bench: &Bench<'_>, name: &str, count: usize) -> Vec<Value> {
    let (broker, url, topic) = (bench.broker.bootstrap(), &registry::shared().url, bench.topic(name));
    let printed = interop(&["consume", broker, url, &topic, &count.to_string()]).unwrap();
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn python_writes_and_reads_with_a_schema_that_evolves_halfway() {
    let Some(bench) = bench("interop", "format = \"avro\"") else { return };
    let running = bench.run(&[]);
    bench.wait_for(&["unique", "near", "dead"], STORIES, &running);
    bench.wait_for(&["clusters"], STORIES / 2, &running);
    assert!(running.stop().success());
    let unique = read(&bench, "unique", STORIES / 2);
    let near = read(&bench, "near", STORIES / 2);
    for row in &unique {
        let (key, value) = (&row["key"], &row["value"]);
        assert_eq!(
            (&value["id"], &value["verdict"], &value["duplicate_of"]),
            (key, &"unique".into(), &Value::Null)
        );
        assert_eq!(value["article"]["host"], Value::Null, "the first schema knows no source");
    }
    for row in &near {
        let value = &row["value"];
        let number: usize = row["key"].as_str().unwrap()[1..].parse().unwrap();
        assert_eq!(value["duplicate_of"], format!("s{}", number - STORIES / 2), "{value}");
        assert_eq!((&value["verdict"], &value["similarity"]), (&"exact-duplicate".into(), &1.0.into()));
        assert_eq!(value["article"]["host"], "wire.example", "of the evolved schema");
        assert_eq!(value["article"]["fetched_at"], "2026-03-02 06:10:00+00:00");
        assert_eq!(value["input"]["offset"], number);
        assert!(value["article"]["body"].as_str().unwrap().starts_with("The ferry to island"));
    }
    let clusters = read(&bench, "clusters", STORIES / 2);
    for row in &clusters {
        assert_eq!((&row["value"]["cluster_id"], &row["value"]["size"]), (&row["key"], &2.into()), "{row}");
    }
    assert!(bench.read("dead").is_empty());
}

#[test]
fn python_reads_its_own_articles_after_a_passthrough() {
    let Some(bench) = bench("interop-pass", "value = \"passthrough\"") else { return };
    let running = bench.run(&[]);
    bench.wait_for(&["unique", "near", "dead"], STORIES, &running);
    assert!(running.stop().success());
    for row in read(&bench, "unique", STORIES / 2) {
        assert_eq!(
            (&row["value"]["story_id"], &row["value"]["kind"]),
            (&row["key"], &"NEWS".into()),
            "{row}"
        );
    }
    for row in read(&bench, "near", STORIES / 2) {
        assert_eq!(
            (&row["value"]["kind"], &row["value"]["source"]["domain"]),
            (&"WIRE".into(), &"wire.example".into())
        );
    }
}
