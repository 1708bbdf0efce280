//! Wrong clocks in Kafka records, the clock in the log, and the command that sets stream time.

use serde_json::json;

use super::broker::shared;
use super::bus::{Record, Row};
use super::stage::Bench;
use crate::engine_fixture::Dice;

// A broker refuses times more than an hour ahead of its own clock, so the wrong clocks here are years ahead of the other
// articles, not of the broker.
const MARCH_2020: i64 = 1_583_020_800_000;
const MARCH_2024: i64 = 1_709_251_200_000;
const DAY: i64 = 24 * 60 * 60 * 1000;

const WORDS: [&str; 48] = [
    "the", "council", "said", "on", "monday", "that", "a", "new", "bridge", "would", "open", "before",
    "winter", "and", "people", "from", "both", "towns", "have", "asked", "for", "more", "buses", "while",
    "police", "are", "looking", "into", "how", "money", "was", "spent", "by", "former", "mayor", "who",
    "left", "office", "last", "year", "after", "heavy", "rain", "had", "closed", "several", "schools",
    "again",
];

/// An article in English, with a text of its own for every story number.
fn article(id: &str, story: u64, time: i64) -> Record {
    let mut dice = Dice(story);
    let text: Vec<&str> = (0..80).map(|_| dice.one_of(&WORDS)).collect();
    let value = json!({"id": id, "language": "en", "body": text.join(" ")}).to_string();
    Record { timestamp: Some(time), partition: Some(0), ..Record::new(id, &value) }
}

/// The same with a `fetched_at` that contradicts every clock in the log.
fn fetched_in_2031(id: &str, story: u64, time: i64) -> Record {
    let mut record = article(id, story, time);
    let mut value: serde_json::Value = serde_json::from_slice(record.value.as_ref().unwrap()).unwrap();
    value["fetched_at"] = json!("2031-01-01T00:00:00Z");
    record.value = Some(value.to_string().into_bytes());
    record
}

fn verdict<'r>(rows: &'r [Row], id: &str) -> (&'r Row, String, String) {
    let row = rows.iter().find(|row| row.id() == id).unwrap_or_else(|| panic!("{id} is not there"));
    (row, row.our_header("verdict").unwrap(), row.our_header("flags").unwrap_or_default())
}

// A record time years ahead expired its whole language and kept new articles out until then. If several articles agreed
// on a wrong time, the only way back was to delete the state.
#[test]
fn a_wrong_clock_expires_nothing_and_set_stream_time_goes_through_the_log() {
    let bench = Bench::new(shared(), "wrong-clock", "", "");
    let mut records: Vec<Record> =
        (0..12).map(|n| article(&format!("a{n}"), n, MARCH_2020 + n as i64)).collect();
    records.push(article("wrong", 500, MARCH_2024));
    records.push(fetched_in_2031("ahead", 501, MARCH_2020 + 500));
    records.push(article("copy0", 0, MARCH_2020 + 1000));
    records.push(article("late", 500, MARCH_2020 + 2000));
    bench.produce(&records);
    let running = bench.run(&[]);
    let rows = bench.wait_for(&["unique", "near"], 16, &running);
    assert!(verdict(&rows, "wrong").2.contains("ahead-of-stream"));
    assert!(verdict(&rows, "ahead").2.contains("clamped-time"), "held to the stamp of the route stage");
    assert_eq!(verdict(&rows, "copy0").1, "exact-duplicate");
    assert_eq!(verdict(&rows, "late").1, "exact-duplicate", "the article with the wrong clock was stored");

    // Forward: this expires the articles of March.
    let june = "2020-06-01T00:00:00Z";
    let (status, printed) = bench.samestory(&["state", "set-stream-time", "en", june]);
    assert!(status.success() && printed.contains(&bench.topic("routed")), "{printed}");
    bench.produce(&[article("expired", 1, MARCH_2020 + 3000)]);
    let rows = bench.wait_for(&["unique", "near"], 17, &running);
    let (_, verdict_then, flags) = verdict(&rows, "expired");
    assert_eq!((verdict_then.as_str(), flags.contains("expired")), ("unique", true), "{flags}");
    assert!(running.log().contains("stream time set by control record"));

    // Back, and then a restore from the changelog alone, which includes the effect of control records.
    let (status, printed) = bench.samestory(&["state", "set-stream-time", "en", "2020-03-02"]);
    assert!(status.success(), "{printed}");
    bench.produce(&[article("back", 700, MARCH_2020 + DAY)]);
    bench.wait_for(&["unique", "near"], 18, &running);
    assert!(running.stop().success());
    std::fs::remove_dir_all(bench.dir.join("state")).unwrap();
    bench.produce(&[article("copy11", 11, MARCH_2020 + DAY), article("again", 700, MARCH_2020 + DAY)]);
    let running = bench.run(&[]);
    let rows = bench.wait_for(&["unique", "near"], 20, &running);
    assert!(running.stop().success());
    assert_eq!(verdict(&rows, "again").1, "exact-duplicate");
    assert_eq!(verdict(&rows, "copy11").1, "exact-duplicate", "not yet removed, so it is live again");
    assert_eq!(rows.len(), 20, "control records are not articles: nothing goes out for them");
}

// Without a clock in the log (`direct`, CreateTime) only agreement between articles protects a language. A crawler
// whose clock is consistently wrong wins in the end; one command corrects that, and the state is kept.
#[test]
fn in_direct_mode_the_command_corrects_a_consistently_wrong_crawler() {
    let bench = Bench::new(shared(), "direct-clock", "mode = \"direct\"", "");
    let mut records: Vec<Record> = (0..10).map(|n| article(&format!("a{n}"), n, MARCH_2020)).collect();
    records.extend((0..4).map(|n| article(&format!("w{n}"), 500 + n, MARCH_2024)));
    records.push(article("copy0", 0, MARCH_2020 + 1000));
    records.push(article("w4", 504, MARCH_2024));
    records.push(article("lost", 600, MARCH_2020 + 2000));
    records.push(article("lost-copy", 600, MARCH_2020 + 2000));
    bench.produce(&records);
    let running = bench.run(&[]);
    let rows = bench.wait_for(&["unique", "near"], 18, &running);
    assert_eq!(verdict(&rows, "copy0").1, "exact-duplicate", "four wrong clocks do nothing");
    assert!(verdict(&rows, "w3").2.contains("ahead-of-stream"));
    let (_, lost, flags) = verdict(&rows, "lost-copy");
    assert_eq!((lost.as_str(), flags.contains("expired")), ("unique", true), "five agree");
    let (status, printed) = bench.samestory(&["state", "set-stream-time", "en", "2020-03-02"]);
    assert!(
        status.success() && printed.lines().filter(|line| line.contains("offset")).count() >= 2,
        "{printed}"
    );
    bench.produce(&[article("found", 601, MARCH_2020 + 3000), article("found-copy", 601, MARCH_2020 + 3000)]);
    let rows = bench.wait_for(&["unique", "near"], 20, &running);
    assert!(running.stop().success());
    assert_eq!(verdict(&rows, "found-copy").1, "exact-duplicate");
    assert_eq!(bench.read("dead").len(), 0, "a control record is not a dead letter");
}

// If the broker stamps records, its clock is in the log: no article can be further ahead of it than `input.skew`.
#[test]
fn the_brokers_append_time_bounds_an_article() {
    let mut bench = Bench::without_topics(shared(), "append-time", "mode = \"direct\"", "");
    let raw = shared().create_topic("append-time-raw", 2, &[("message.timestamp.type", "LogAppendTime")]);
    bench.write("mode = \"direct\"", "");
    let config = std::fs::read_to_string(bench.config()).unwrap();
    std::fs::write(bench.config(), config.replace(&bench.topic("raw"), &raw)).unwrap();
    let (status, printed) = bench.samestory(&["topics", "--create"]);
    assert!(status.success(), "{printed}");
    let mut records: Vec<Record> = (0..8).map(|n| fetched_in_2031(&format!("w{n}"), n, MARCH_2020)).collect();
    records.push(article("a", 100, MARCH_2020));
    records.push(article("copy", 100, MARCH_2020));
    shared().produce(&raw, &records);
    let running = bench.run(&[]);
    let rows = bench.wait_for(&["unique", "near"], 10, &running);
    assert!(running.stop().success());
    assert!(verdict(&rows, "w0").2.contains("clamped-time"));
    let (_, copy, flags) = verdict(&rows, "copy");
    assert_eq!((copy.as_str(), flags.contains("expired")), ("exact-duplicate", false), "{flags}");
}

// `[input.fields] id` with a typing error fell back to the record's key, which was the site: `probe` reported 100 %,
// and 60 articles became versions of one.
#[test]
fn a_wrong_path_for_ids_makes_dead_letters_and_probe_shows_where_ids_come_from() {
    let mut bench = Bench::new(shared(), "wrong-path", "", "[input.fields]\nid = \"meta.uuid\"\n");
    let mut records = Vec::new();
    for n in 0..20_u64 {
        let mut record = article(&format!("a{n}"), n, MARCH_2020);
        let mut value: serde_json::Value = serde_json::from_slice(record.value.as_ref().unwrap()).unwrap();
        value["meta"] = json!({"uid": format!("u{n}"), "site": "wire.example"});
        value.as_object_mut().unwrap().remove("id");
        record.key = Some(b"wire.example".to_vec());
        record.value = Some(value.to_string().into_bytes());
        records.push(record);
    }
    bench.produce(&records);
    let probe = |bench: &Bench<'_>| bench.samestory(&["probe", &bench.topic("raw")]).1;
    let printed = probe(&bench);
    assert!(printed.contains("20 × no-id") && printed.contains("missing field \"meta.uuid\""), "{printed}");
    let running = bench.run(&[]);
    bench.wait_for(&["dead"], 20, &running);
    assert!(running.stop().success());
    assert_eq!(bench.read("unique").len() + bench.read("near").len(), 0);

    bench.write("", "[input.fields]\nid = \"meta.uid\"\n");
    let printed = probe(&bench);
    assert!(printed.contains("from meta.uid 20 (100.0 %)") && printed.contains("20 (100.0 %)"), "{printed}");
    assert!(!printed.contains("few"), "{printed}");
    bench.write("", "[input.fields]\nid = \"meta.site\"\n");
    let printed = probe(&bench);
    assert!(
        printed.contains("distinct ids   1 (5.0 %)") && printed.contains("is input.fields.id"),
        "{printed}"
    );
    bench.write("", "");
    assert!(probe(&bench).contains("from the record's key 20 (100.0 %)"), "{printed}");
}
