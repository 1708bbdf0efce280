//! Avro on a real broker with a real registry: a crawler's own schema in, ours out, and registries that fail in every
//! way.

use apache_avro::Schema;
use apache_avro::types::Value;
use samestory::formats::schemas;

use super::broker::shared;
use super::bus::{Record, Row};
use super::registry;
use super::stage::{Bench, PATIENCE, Running};
use crate::avro::fake_registry::{FakeRegistry, Reply};
use crate::avro::{decode, encode, member, text};

const TEXT: &str = "The ferry to the island will run again from Monday morning, the harbour master said, after three weeks \
    of repairs to the pier that the January storm had broken in two places. Tickets can be bought on board, and the first \
    boat leaves at a quarter past six. School children travel free until the end of the month, and the bakery on the quay \
    will open an hour earlier for those who catch the early boat.";

/// A crawler's own schema, without any of our field names.
const CRAWL: &str = r#"{"type":"record","name":"Crawl","namespace":"their.own","fields":[
    {"name":"nr","type":"long"},
    {"name":"content","type":{"type":"record","name":"Content","fields":[
        {"name":"paragraphs","type":{"type":"array","items":"string"}}]}},
    {"name":"seen","type":{"type":"long","logicalType":"timestamp-micros"}}]}"#;

/// The same schema a year later: reordered, with more fields.
const LATER: &str = r#"{"type":"record","name":"Crawl","namespace":"their.own","fields":[
    {"name":"seen","type":{"type":"long","logicalType":"timestamp-micros"}},
    {"name":"headline","type":["null","string"],"default":null},
    {"name":"content","type":{"type":"record","name":"Content","fields":[
        {"name":"author","type":["null","string"],"default":null},
        {"name":"paragraphs","type":{"type":"array","items":"string"}}]}},
    {"name":"nr","type":"long"}]}"#;

const FIELDS: &str = "[input.fields]\nid = \"nr\"\nbody = \"content.paragraphs[]\"\nfetched_at = \"seen\"\n\
    title = [\"headline\", \"=no title\"]\nlanguage = \"=en\"\n";

fn framed(id: u32, datum: Vec<u8>) -> Vec<u8> {
    [&[0][..], &id.to_be_bytes(), &datum].concat()
}

fn paragraphs(text: &str) -> Value {
    Value::Array(text.split(". ").map(|part| Value::String(part.into())).collect())
}

fn crawl(nr: i64, text: &str) -> Vec<u8> {
    let content = Value::Record(vec![("paragraphs".into(), paragraphs(text))]);
    let seen = Value::TimestampMicros(1_772_000_000_000_000 + nr);
    let fields = [("nr", Value::Long(nr)), ("content", content), ("seen", seen)];
    let fields = fields.map(|(name, value)| (name.to_owned(), value)).to_vec();
    encode(&Schema::parse_str(CRAWL).unwrap(), Value::Record(fields))
}

fn later(nr: i64, text: &str, headline: &str) -> Vec<u8> {
    let some = |text: &str| Value::Union(1, Box::new(Value::String(text.into())));
    let content = vec![("author".into(), some("A. Writer")), ("paragraphs".into(), paragraphs(text))];
    let fields = [
        ("seen", Value::TimestampMicros(1_772_000_000_000_000 + nr)),
        ("headline", some(headline)),
        ("content", Value::Record(content)),
        ("nr", Value::Long(nr)),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value)).to_vec();
    encode(&Schema::parse_str(LATER).unwrap(), Value::Record(fields))
}

fn keyed(key: &str, value: Vec<u8>) -> Record {
    Record { partition: Some(0), key: Some(key.into()), value: Some(value), ..Record::default() }
}

fn error(row: &Row, name: &str) -> String {
    let header = row.header(&format!("__samestory.errors.{name}")).unwrap();
    String::from_utf8(header.to_vec()).unwrap()
}

/// The datum of one of our values.
fn datum(row: &Row) -> &[u8] {
    let value = row.value.as_deref().unwrap();
    assert_eq!(value[0], 0, "{value:?}");
    &value[5..]
}

fn settings(url: &str, output: &str, more: &str) -> String {
    format!("[registry]\nurl = \"{url}\"\ntimeout = \"2s\"\n{more}\n[output]\n{output}\n{FIELDS}")
}

#[test]
fn a_crawlers_own_schema_is_read_and_ours_is_written() {
    let registry = registry::shared();
    let bench = Bench::new(shared(), "avro", "", &settings(&registry.url, "format = \"avro\"", ""));
    let subject = format!("{}-value", bench.topic("raw"));
    let (status, printed) = bench.samestory(&["schemas", "check"]);
    assert!(!status.success() && printed.contains("not registered"), "{printed}");
    let (status, printed) = bench.samestory(&["run"]);
    assert!(!status.success() && printed.contains("samestory schemas register"), "{printed}");
    let (status, printed) = bench.samestory(&["schemas", "register"]);
    assert!(status.success() && printed.contains("BACKWARD"), "{printed}");
    let unique = format!("{}-value", bench.topic("unique"));
    let level = registry.ask("GET", &format!("/config/{unique}"), "");
    assert_eq!(level["compatibilityLevel"], "BACKWARD", "{level}");
    // No registered schema has a headline yet.
    let first = registry.register(&subject, CRAWL);
    let (status, printed) = bench.samestory(&["schemas", "check"]);
    assert!(!status.success() && printed.contains("input.fields.title = \"headline\""), "{printed}");
    let second = registry.register(&subject, LATER);
    let (status, printed) = bench.samestory(&["schemas", "check"]);
    assert!(status.success() && printed.contains("has every field"), "{printed}");

    bench.produce(&[
        keyed("1", framed(first, crawl(1, TEXT))),
        keyed("2", framed(second, later(2, TEXT, "Ferry again"))),
        keyed("3", br#"{"nr":3,"content":{"paragraphs":["Something else"]},"seen":5}"#.to_vec()),
        keyed("4", framed(first, crawl(4, TEXT)[..60].to_vec())),
        keyed("5", framed(987_654, crawl(5, TEXT))),
        keyed("6", vec![0, 0]),
    ]);
    let running = bench.run(&[]);
    let rows = bench.wait_for(&["unique", "near", "dead"], 6, &running);
    assert_eq!(rows.len(), 6);
    let schema = Schema::parse_str(schemas::TAGGED_ARTICLE).unwrap();
    let envelope = |key: &str| {
        let row = rows.iter().find(|row| row.key.as_deref() == Some(key.as_bytes())).unwrap();
        decode(&schema, None, datum(row))
    };
    let says = |value: &Value, name: &str| text(member(value, name)).unwrap();
    let (one, two, three) = (envelope("1"), envelope("2"), envelope("3"));
    assert_eq!((says(&one, "verdict"), says(&two, "duplicate_of")), ("unique".into(), "1".into()));
    assert_eq!(says(&two, "verdict"), "exact-duplicate");
    let (old, new) = (member(&one, "article"), member(&two, "article"));
    assert_eq!((says(old, "title"), says(new, "title")), ("no title".into(), "Ferry again".into()));
    assert!(says(new, "body").contains("\n\nTickets can be bought"));
    assert_eq!(says(&three, "language"), "en", "JSON beside Avro on one topic");
    let clusters = bench.wait_for(&["clusters"], 1, &running);
    let cluster = decode(&Schema::parse_str(schemas::CLUSTER).unwrap(), None, datum(&clusters[0]));
    assert_eq!(*member(&cluster, "size"), Value::Long(2));
    assert!(running.stop().success());
    let letters = bench.read("dead");
    let letter = |key: &str| letters.iter().find(|row| row.key.as_deref() == Some(key.as_bytes())).unwrap();
    assert_eq!(error(letter("4"), "exception.class.name"), "undecodable");
    assert!(error(letter("4"), "exception.message").contains("field \"content.paragraphs\""));
    assert_eq!(error(letter("5"), "exception.class.name"), "unknown-schema");
    assert!(error(letter("5"), "exception.message").contains("987654"));
    assert_eq!(letter("5").value, Some(framed(987_654, crawl(5, TEXT))), "the bytes as they came");
    assert!(error(letter("6"), "exception.message").contains("truncated"));
    let (status, printed) = bench.samestory(&["probe", &bench.topic("raw")]);
    assert!(
        status.success() && printed.contains("unknown-schema") && printed.contains("articles       3"),
        "{printed}"
    );
}

#[test]
fn passthrough_and_original_keep_every_byte() {
    let registry = registry::shared();
    let id = registry.register("anything-value", CRAWL);
    let value = framed(id, crawl(1, TEXT));
    for (name, output, more) in [
        ("avro-pass", "value = \"passthrough\"\nformat = \"avro\"\n", ""),
        ("avro-orig", "format = \"avro\"\n[envelope]\narticle = \"original\"\n", "auto_register = true"),
        ("avro-json", "format = \"json\"\n", ""),
        ("avro-direct", "format = \"json\"\n[envelope]\narticle = \"mapped\"\n", ""),
    ] {
        let stage = if name == "avro-direct" { "mode = \"direct\"" } else { "" };
        let more = if more.is_empty() { "auto_register = true" } else { more };
        let bench = Bench::new(shared(), name, stage, &settings(&registry.url, output, more));
        // Six times as long in JSON: too large for a record.
        let bomb = framed(id, crawl(2, &"\u{1}".repeat(900_000)));
        bench.produce(&[keyed("2", bomb), keyed("1", value.clone())]);
        let running = bench.run(&[]);
        let rows = bench.wait_for(
            &["unique"],
            if name == "avro-json" || name == "avro-direct" { 1 } else { 2 },
            &running,
        );
        let rows: Vec<Row> = rows.into_iter().filter(|row| row.id() == "1").collect();
        let out = rows[0].value.as_deref().unwrap();
        match name {
            "avro-pass" => {
                assert_eq!(out, value);
                assert_eq!(rows[0].our_header("verdict").as_deref(), Some("unique"));
            }
            "avro-orig" => {
                let read =
                    decode(&Schema::parse_str(schemas::TAGGED_ARTICLE).unwrap(), None, datum(&rows[0]));
                let bytes = Value::Union(1, Box::new(Value::Bytes(value.clone())));
                assert_eq!(*member(&read, "original"), bytes);
            }
            "avro-json" => {
                let read: serde_json::Value = serde_json::from_slice(out).unwrap();
                assert_eq!(read["article"]["nr"], 1);
                assert_eq!(
                    error(&bench.wait_for(&["dead"], 1, &running)[0], "exception.class.name"),
                    "too-large"
                );
                assert_eq!(read["article"]["seen"], "2026-02-25T06:13:20Z");
            }
            _ => {
                let read: serde_json::Value = serde_json::from_slice(out).unwrap();
                assert_eq!(read["article"]["id"], "1");
                assert!(read["article"]["body"].as_str().unwrap().starts_with("The ferry"));
            }
        }
        assert!(running.stop().success());
    }
}

#[test]
fn a_path_that_the_schema_lacks_is_refused_at_startup_with_the_nearest_one() {
    let registry = registry::shared();
    let fields = "[input.fields]\nid = \"number\"\nbody = \"content.paragraph[]\"\n";
    let rest = format!("[registry]\nurl = \"{}\"\n{fields}", registry.url);
    let bench = Bench::new(shared(), "misfit", "", &rest);
    registry.register(&format!("{}-value", bench.topic("raw")), CRAWL);
    let (status, printed) = bench.samestory(&["run"]);
    assert_eq!(status.code(), Some(2), "{printed}");
    assert!(printed.contains("input.fields.body = \"content.paragraph[]\""), "{printed}");
    assert!(printed.contains("the nearest is \"content.paragraphs[]\""), "{printed}");
}

#[test]
fn a_failing_registry_is_retried_and_causes_no_dead_letters() {
    let working = |path: &str| match path {
        "/schemas/ids/7" => Reply::schema(CRAWL),
        "/schemas/ids/8" => Reply::schema(LATER),
        _ => Reply::new(404, r#"{"error_code":40401,"message":"Subject not found"}"#),
    };
    // At startup: not even a registry.
    let fake_registry = FakeRegistry::new(|_| Reply::new(200, "<html>starting</html>"));
    let bench = Bench::new(shared(), "trouble", "", &settings(&fake_registry.url, "", ""));
    bench.produce(&[keyed("1", framed(7, crawl(1, TEXT)))]);
    let mut running = bench.run(&[]);
    running.wait_for_log("waiting for the schema registry");
    fake_registry.behave(working);
    assert_eq!(bench.wait_for(&["unique", "near", "dead"], 1, &running).len(), 1);
    // While the stage runs, in several ways.
    for (nr, reply) in [
        (2, Reply::new(500, "")),
        (3, Reply::new(200, "garbage")),
        (4, Reply::new(403, "{}")),
        (5, Reply { delay: std::time::Duration::from_secs(4), ..Reply::schema(LATER) }),
    ] {
        let id = 100 + nr;
        let subject = format!("/schemas/ids/{id}");
        let trouble = reply.clone();
        fake_registry.behave(move |path| if path == subject { trouble.clone() } else { working(path) });
        let before = running.log().matches("batch delayed, retrying").count();
        bench.produce(&[keyed(&nr.to_string(), framed(id as u32, later(nr, TEXT, "T")))]);
        let deadline = std::time::Instant::now() + super::stage::PATIENCE;
        while running.log().matches("batch delayed, retrying").count() == before {
            assert!(std::time::Instant::now() < deadline, "it does not wait: {}", running.log());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let (status, answer) = super::ops::readiness(&running.address());
        assert!(status == 503 && super::ops::reasons(&answer).contains("registry-away"), "{status} {answer}");
        let rows: usize = ["unique", "near", "dead"].iter().map(|topic| bench.read(topic).len()).sum();
        assert_eq!(rows as i64, nr - 1, "nothing goes out before it is known");
        fake_registry.behave(|_| Reply::schema(LATER));
        bench.wait_for(&["unique", "near"], nr as usize, &running);
        running.wait_for_log("resuming the delayed batch");
    }
    assert!(bench.read("dead").is_empty());
    assert!(!running.log().contains("restarting the worker"), "it stayed a member: {}", running.log());
    assert!(running.stop().success());
}

// The pauses were constants: a registry that took five minutes to come back was asked every five seconds, by everybody.
#[test]
fn an_absent_registry_is_asked_again_with_the_pauses_of_the_settings() {
    let broken = FakeRegistry::new(|_| Reply::new(500, ""));
    let retry = "[retry]\nregistry = [\"5ms\", \"5ms\"]\n";
    let bench = Bench::new(shared(), "asked-again", "", &settings(&broken.url, "", retry));
    let mut running = bench.run(&[]);
    // With the default pauses, so many questions take minutes.
    let wait_for_questions = |count: usize, running: &Running| {
        let (before, deadline) = (broken.asked().len(), std::time::Instant::now() + PATIENCE / 3);
        while broken.asked().len() < before + count {
            let (asked, late) = (broken.asked().len() - before, std::time::Instant::now() > deadline);
            assert!(!late, "asked {asked} times: {}", running.log());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    running.wait_for_log("waiting for the schema registry");
    wait_for_questions(60, &running);
    let working = |path: &str| match path {
        "/schemas/ids/7" => Reply::schema(CRAWL),
        _ => Reply::new(404, r#"{"error_code":40401,"message":"Subject not found"}"#),
    };
    broken.behave(working);
    bench.produce(&[keyed("1", framed(7, crawl(1, TEXT)))]);
    bench.wait_for(&["unique"], 1, &running);
    broken.behave(|_| Reply::new(500, ""));
    bench.produce(&[keyed("2", framed(8, crawl(2, TEXT)))]);
    running.wait_for_log("batch delayed, retrying");
    wait_for_questions(30, &running);
    broken.behave(|_| Reply::schema(CRAWL));
    bench.wait_for(&["near"], 1, &running);
    assert!(running.stop().success());
}

#[test]
fn a_registry_that_freezes_is_retried_until_it_answers() {
    let registry = registry::Registry::start();
    let bench = Bench::new(shared(), "frozen", "", &settings(&registry.url, "", ""));
    let id = registry.register(&format!("{}-value", bench.topic("raw")), LATER);
    let other = registry.register("another-value", CRAWL);
    bench.produce(&[keyed("1", framed(id, later(1, TEXT, "T")))]);
    let mut running = bench.run(&[]);
    bench.wait_for(&["unique"], 1, &running);
    registry.pause();
    // Records with a cached schema are judged; the others wait.
    bench.produce(&[keyed("2", framed(id, later(2, TEXT, "T")))]);
    bench.wait_for(&["near"], 1, &running);
    bench.produce(&[keyed("3", framed(other, crawl(3, TEXT)))]);
    running.wait_for_log("batch delayed, retrying");
    registry.resume();
    bench.wait_for(&["near"], 2, &running);
    assert!(bench.read("dead").is_empty());
    assert!(running.stop().success());
}
