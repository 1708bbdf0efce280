//! The operator's commands beside a running or stopped stage: `reconcile` and its exit code, and what follows from them.

use std::thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{Value, json};

use super::broker::shared;
use super::bus::{Record, Row};
use super::ops::{readiness, scrape, sum};
use super::stage::{Bench, PATIENCE};

const TEXT: &str = "The ferry to the island will run again from Monday morning, the harbour master said, after three weeks \
    of repairs to the pier that the January storm had broken in two places. Tickets can be bought on board, and the first \
    boat leaves at a quarter past six. School children travel free until the end of the month, and the bakery on the quay \
    will open an hour earlier for those who catch the early boat.";
const OTHER: &str = "Parliament passed the budget on Thursday after a debate of nine hours, with four votes to spare. The \
    finance minister called it the hardest spending plan in a decade. Unions have announced a march through the capital on \
    Saturday, and two mayors said that they would close swimming pools and libraries before the summer.";

fn keyed(key: &str, value: Option<&str>) -> Record {
    Record {
        partition: Some(0),
        key: Some(key.into()),
        value: value.map(|value| value.as_bytes().to_vec()),
        timestamp: Some(1_772_000_000_000),
        headers: vec![("traceparent".into(), Some(b"00-abc".to_vec()))],
    }
}

fn article(id: &str, text: &str) -> Record {
    keyed(id, Some(&json!({"id": id, "language": "en", "title": "News", "body": text}).to_string()))
}

/// The JSON that a command prints, with its exit code.
fn printed(bench: &Bench<'_>, arguments: &[&str]) -> (i32, Value) {
    let (status, printed) = bench.samestory(arguments);
    let json = printed.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{printed}"));
    (status.code().unwrap(), serde_json::from_str(json).unwrap())
}

#[test]
fn reconcile_proves_exactly_once_and_names_gaps_and_doubles() {
    let bench = Bench::new(shared(), "reconcile", "", "[topics]\npartitions = 1\n");
    bench.produce(&[
        article("a", TEXT),
        article("b", TEXT),
        keyed("poison", Some("not json")),
        // Moves from the duplicates to the unique articles, so one topic gets a record and the other a tombstone.
        article("b", OTHER),
        keyed("a", None),
        keyed("never-seen", None),
    ]);
    let running = bench.run(&[]);
    bench.wait_for(&["unique", "near", "dead"], 6, &running);
    let (code, found) = printed(&bench, &["reconcile", "--format", "json"]);
    assert_eq!(code, 0, "{found}");
    let counts = ["records", "tagged", "dead_letters", "deletes", "deletes_published", "tombstones"];
    // The update's tombstone, and one on each topic for the delete.
    assert_eq!(counts.map(|name| found[name].as_u64().unwrap()), [6, 3, 1, 2, 1, 3], "{found}");
    assert_eq!(found["gaps"], json!([]));
    assert!(running.stop().success());

    // Route's offset is moved past a record that nobody has read.
    bench.produce(&[article("lost", OTHER)]);
    let group = format!("{}.route", bench.prefix);
    let client: BaseConsumer =
        bench.broker.client().set("group.id", &group).set("enable.auto.commit", "false").create().unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(&bench.topic("raw"), 0, Offset::Offset(7)).unwrap();
    client.commit(&list, CommitMode::Sync).unwrap();
    let (code, found) = printed(&bench, &["reconcile", "--format", "json"]);
    assert_eq!((code, &found["gaps"]), (1, &json!([{"partition": 0, "offset": 6, "key": "lost"}])));
    let (code, found) = printed(&bench, &["reconcile", "--format", "json", "--partition", "0", "--to", "6"]);
    assert_eq!((code, &found["records"]), (0, &json!(6)), "the range ends before the gap: {found}");

    // Somebody publishes an article a second time.
    let row = bench.read("unique").into_iter().find(|row: &Row| row.value.is_some()).unwrap();
    let copy = Record { headers: row.headers.clone(), value: row.value.clone(), ..Record::new("a", "") };
    bench.broker.produce(&bench.topic("unique"), &[copy]);
    let (code, found) = printed(&bench, &["reconcile", "--format", "json"]);
    assert_eq!((code, &found["double_count"], &found["gap_count"]), (1, &json!(1), &json!(1)));
    let double = &found["doubles"][0];
    assert_eq!((&double["offset"], double["outputs"].as_array().unwrap().len()), (&json!(0), 2), "{double}");
    let (status, text) = bench.samestory(&["reconcile"]);
    assert_eq!(status.code(), Some(1));
    for named in
        ["raw partition 0 offset 6 (key lost)", "not exactly once: 1 records have no output, 1 have more"]
    {
        assert!(text.contains(named), "{named}: {text}");
    }
}

#[test]
fn dead_letters_are_listed_and_replayed_once_their_cause_is_gone() {
    let mut bench = Bench::new(shared(), "letters", "", "[topics]\npartitions = 1\n");
    let good = json!({"id": "late", "language": "en", "words": TEXT}).to_string();
    bench.produce(&[keyed("late", Some(&good)), keyed("poison", Some("not json")), article("fine", OTHER)]);
    let running = bench.run(&[]);
    bench.wait_for(&["unique", "near", "dead"], 3, &running);
    let (status, text) = bench.samestory(&["dead-letters", "list"]);
    assert!(status.success(), "{text}");
    for named in
        ["no-body", "undecodable", "late", "raw 0:0", "2 dead letters on", "1 no-body, 1 undecodable"]
    {
        assert!(text.contains(named), "{named}: {text}");
    }
    let (_, letter) = printed(&bench, &["dead-letters", "list", "--reason", "no-body", "--format", "json"]);
    assert_eq!((&letter["key"], &letter["from"]["offset"]), (&json!("late"), &json!(0)), "{letter}");
    let (status, text) = bench.samestory(&["dead-letters", "replay"]);
    assert_eq!(status.code(), Some(2), "it must be said which: {text}");
    let (status, text) = bench.samestory(&["dead-letters", "replay", "--reason", "no-body", "--dry-run"]);
    assert!(status.success() && text.contains("would be sent"), "{text}");
    assert_eq!(bench.read("raw").len(), 3, "a dry run sends nothing");
    assert!(running.stop().success());

    // The operator maps the field, and sends the letter again.
    bench.write("", "[topics]\npartitions = 1\n[input.fields]\nbody = \"words\"\n");
    let running = bench.run(&[]);
    let (status, text) = bench.samestory(&["dead-letters", "replay", "--reason", "no-body"]);
    assert!(status.success() && text.contains("1 dead letters sent"), "{text}");
    bench.wait_for(&["unique", "near", "dead"], 4, &running);
    let rows = bench.read("unique");
    let late = rows.iter().find(|row| row.id() == "late").unwrap_or_else(|| panic!("{}", running.log()));
    assert_eq!(
        late.value.as_deref().map(|value| value.ends_with(format!("{good}}}").as_bytes())),
        Some(true)
    );
    assert_eq!(late.header("traceparent"), Some(&b"00-abc"[..]), "headers travel with it");
    assert_eq!(late.timestamp, Some(1_772_000_000_000));
    let raw = bench.read("raw").pop().unwrap();
    let (partition, offset) = (&letter["partition"], &letter["offset"]);
    assert_eq!(raw.our_header("replayed"), Some(format!("{}/{partition}/{offset}", bench.topic("dead"))));
    let (code, found) = printed(&bench, &["reconcile", "--format", "json"]);
    assert_eq!((code, &found["records"]), (0, &json!(4)), "{found}");
    assert!(running.stop().success());
}

#[test]
fn erase_deletes_an_article_and_shows_what_is_left_of_it() {
    let bench = Bench::new(shared(), "erase", "", "[topics]\npartitions = 2\n");
    bench.produce(&[article("person-1", TEXT), article("copy-1", TEXT), article("other", OTHER)]);
    let running = bench.run(&[]);
    bench.wait_for(&["unique", "near"], 3, &running);
    let (code, before) = printed(&bench, &["erase", "--check", "person-1", "--format", "json"]);
    let left = |found: &Value, place: &str| -> Vec<String> {
        let findings = found["findings"].as_array().unwrap().iter();
        let here = findings.filter(|finding| finding["place"].as_str().unwrap().ends_with(place));
        here.map(|finding| finding["left"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(code, 1, "nothing is deleted yet: {before}");
    assert!(left(&before, ".changelog").contains(&"current".to_owned()), "{before}");
    assert!(left(&before, ".clusters").contains(&"named".to_owned()), "{before}");

    let (code, erased) = printed(&bench, &["erase", "person-1", "--format", "json"]);
    assert_eq!((code, &erased["deletes"]), (0, &json!(1)), "{erased}; {}", running.log());
    assert_eq!(left(&erased, ".changelog").iter().filter(|left| *left == "current").count(), 0, "{erased}");
    // The topics keep their records until compaction and retention remove them, and the report says so.
    assert_eq!(erased["not_found"], json!([]), "{erased}");
    assert!(left(&erased, ".unique").contains(&"superseded".to_owned()), "{erased}");
    assert!(left(&erased, ".raw").contains(&"superseded".to_owned()), "{erased}");
    assert!(left(&erased, ".near").contains(&"named".to_owned()), "its copy names it: {erased}");
    let in_use = erased["states_in_use"].as_array().unwrap();
    assert_eq!(in_use.len(), 2, "the running process has both open: {erased}");
    let rows = bench.read("unique");
    let last = rows.iter().rfind(|row| row.id() == "person-1").unwrap();
    assert!(last.value.is_none(), "consumers are told");
    let (status, text) = bench.samestory(&["erase", "--check", "person-1", "other", "preson-1"]);
    assert_eq!(status.code(), Some(1), "{text}");
    for named in [
        "person-1: erased",
        "other: NOT erased",
        "preson-1: not found",
        "retention.ms",
        "1 of 3 ids are not erased",
    ] {
        assert!(text.contains(named), "{named}: {text}");
    }
    assert!(running.stop().success());
    let (code, checked) = printed(&bench, &["erase", "--check", "person-1", "--format", "json"]);
    assert_eq!(
        (code, checked["states"].as_array().unwrap().len()),
        (0, 2),
        "both states are read: {checked}"
    );

    // A quarantined copy still holds an article that was deleted after it was made.
    let state = std::fs::read_dir(bench.dir.join("state")).unwrap().filter_map(Result::ok);
    let mut stores: Vec<_> = state.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    stores.sort();
    for store in &stores {
        let copy =
            store.with_file_name(format!("{}.damaged.1", store.file_name().unwrap().to_string_lossy()));
        std::fs::create_dir(&copy).unwrap();
        for file in std::fs::read_dir(store).unwrap().filter_map(Result::ok) {
            std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
        }
    }
    let running = bench.run(&[]);
    let (code, erased) = printed(&bench, &["erase", "other", "--wait", "60", "--format", "json"]);
    assert_eq!(code, 1, "{erased}");
    let held: Vec<&Value> = erased["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["left"] == "current")
        .collect();
    assert_eq!(held.len(), 1, "only the copy holds it: {held:?}");
    assert!(held[0]["place"].as_str().unwrap().ends_with(".damaged.1"), "{held:?}");
    assert!(running.stop().success());
}

#[test]
fn a_paused_stage_reads_nothing_until_it_is_resumed_and_a_drained_one_has_published_everything() {
    let bench = Bench::new(shared(), "pause", "", "[topics]\npartitions = 1\n");
    let mut running = bench.run(&[]);
    let address = running.address();
    bench.produce(&[article("first", TEXT)]);
    bench.wait_for(&["unique"], 1, &running);
    let (status, text) = bench.samestory(&["pause", "--why", "broker upgrade"]);
    assert!(status.success() && text.contains("paused: route and match"), "{text}");
    let paused = |address: &str| -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (status, answer) = readiness(address);
            if status == 200 && answer["paused"].is_object() {
                return answer;
            }
            assert!(Instant::now() < deadline, "{answer}");
            thread::sleep(Duration::from_millis(100));
        }
    };
    let answer = paused(&address);
    assert_eq!(
        (&answer["ready"], &answer["paused"]["why"]),
        (&json!(true), &json!("broker upgrade")),
        "{answer}"
    );
    assert_eq!(sum(&scrape(&address), "samestory_paused", ""), 2.0);
    bench.produce(&[article("second", OTHER)]);
    thread::sleep(Duration::from_secs(3));
    assert_eq!(bench.read("unique").len(), 1, "nothing is read: {}", running.log());
    // It outlives a restart.
    assert!(running.stop().success());
    let mut running = bench.run(&[]);
    let address = running.address();
    paused(&address);
    thread::sleep(Duration::from_secs(3));
    assert_eq!(bench.read("unique").len(), 1, "{}", running.log());
    let (status, text) = bench.samestory(&["resume"]);
    assert!(status.success() && text.contains("resumed: route and match"), "{text}");
    bench.wait_for(&["unique"], 2, &running);
    assert_eq!(readiness(&address).1, json!({"ready": true, "reasons": []}));

    let more: Vec<Record> =
        (0..50).map(|n| article(&format!("n{n}"), &format!("{TEXT} {n} {n} {n}"))).collect();
    bench.produce(&more);
    let (status, text) = bench.samestory(&["drain", "--wait", "80"]);
    assert!(status.success() && text.contains("drained"), "{text}; {}", running.log());
    let (routed, judged) =
        (bench.read("routed").len(), bench.read("unique").len() + bench.read("near").len());
    assert_eq!(routed, judged, "everything that was read is published");
    bench.produce(&[article("after", TEXT)]);
    thread::sleep(Duration::from_secs(3));
    assert_eq!(bench.read("routed").len(), routed, "{}", running.log());
    assert!(bench.samestory(&["resume"]).0.success());
    bench.wait_for(&["unique", "near"], 53, &running);
    assert!(running.stop().success());
}

#[test]
fn a_verdict_names_when_it_was_received_and_its_config_resolves_to_settings() {
    let bench =
        Bench::new(shared(), "resolves", "", "[topics]\npartitions = 1\n[match]\nmin_confidence = 0.61\n");
    bench.produce(&[article("a", TEXT), article("b", TEXT)]);
    let running = bench.run(&[]);
    let rows = bench.wait_for(&["unique", "near"], 2, &running);
    let envelope = |row: &Row| -> Value { serde_json::from_slice(row.value.as_deref().unwrap()).unwrap() };
    let received = envelope(&rows[0])["received_at"].as_str().unwrap().to_owned();
    let received = samestory::formats::time::parse(&received).unwrap().millis();
    assert!(received > 1_772_000_000_000 + 1000, "route's stamp and not the crawler's time: {received}");
    let hash = envelope(&rows[0])["config"].as_str().unwrap().to_owned();
    let (status, text) = bench.samestory(&["config", "show"]);
    assert!(status.success() && text.contains(&format!("config {hash}: the current settings")), "{text}");
    // The operator has changed the settings since.
    let show = ["--set", "match.min_confidence=0.7", "config", "show", hash.as_str()];
    let deadline = Instant::now() + PATIENCE;
    let text = loop {
        let (status, text) = bench.samestory(&show);
        if status.success() {
            break text;
        }
        assert!(Instant::now() < deadline, "{text}; {}", running.log());
        thread::sleep(Duration::from_millis(200));
    };
    assert!(text.contains("min_confidence = 0.61") && text.contains("first used"), "{text}");
    assert!(!text.contains("bootstrap.servers"), "only what verdicts depend on: {text}");
    let covers = text.lines().find_map(|line| line.strip_prefix("# covers: ")).unwrap();
    assert_eq!(format!("{:08x}", xxhash_rust::xxh3::xxh3_64(covers.as_bytes()) as u32), hash);
    let (status, text) = bench.samestory(&["config", "show", "00000000"]);
    assert_eq!(status.code(), Some(1), "{text}");

    let (status, text) = bench.samestory(&["clusters", "list"]);
    assert!(status.success() && text.contains("News") && text.contains("1 of 1 clusters"), "{text}");
    let (_, cluster) = printed(&bench, &["clusters", "export"]);
    assert_eq!((&cluster["size"], &cluster["canonical_id"]), (&json!(2), &json!("a")), "{cluster}");

    let (status, text) = bench.samestory(&["reset"]);
    assert!(!status.success() && text.contains("stop every process"), "{text}");
    assert!(running.stop().success());
    let (status, text) = bench.samestory(&["reset"]);
    assert!(
        status.success() && text.contains("would delete topic") && text.contains("nothing was"),
        "{text}"
    );
    assert_eq!(bench.read("routed").len(), 2);
    let (status, text) = bench.samestory(&["reset", "--yes"]);
    assert!(status.success(), "{text}");
    assert_eq!((bench.read("routed").len(), bench.read("unique").len()), (0, 1), "outputs stay");
    let running = bench.run(&[]);
    bench.wait_for(&["unique", "near"], 4, &running);
    assert!(running.stop().success());
}

#[test]
fn a_verdict_in_direct_mode_was_received_at_the_time_of_its_record() {
    let bench = Bench::new(shared(), "received", "mode = \"direct\"", "[topics]\npartitions = 1\n");
    bench.produce(&[article("a", TEXT)]);
    let running = bench.run(&[]);
    let rows = bench.wait_for(&["unique"], 1, &running);
    let envelope: Value = serde_json::from_slice(rows[0].value.as_deref().unwrap()).unwrap();
    let received = samestory::formats::time::parse(envelope["received_at"].as_str().unwrap()).unwrap();
    assert_eq!(received.millis(), 1_772_000_000_000);
    assert!(running.stop().success());
    let (status, text) = bench.samestory(&["erase", "a", "--wait", "5"]);
    assert_eq!(status.code(), Some(1), "no stage applies the delete: {text}");
    assert!(text.contains("has not processed"), "{text}");
}
