//! Bad days: what the operator sees, and that nothing is lost. Also the articles and checks that other files use.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::json;

use super::broker::{breakable, shared};
use super::bus::{Isolation, Record, Row};
use super::stage::{Bench, Running};

/// Articles `from..to`: every third is a copy of the one before.
pub(super) fn articles(from: usize, to: usize) -> Vec<Record> {
    let article = |n: usize| {
        let story = n - usize::from(n % 3 == 2);
        // No two stories share a sequence of words.
        let word = |at: usize| (story * 1000 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let text: Vec<String> = (0..80).map(|at| format!("w{}", word(at))).collect();
        let id = format!("a{n:04}");
        let value = json!({"id": id, "language": "en", "body": text.join(" ")}).to_string();
        Record { timestamp: Some(1_772_000_000_000 + n as i64), ..Record::new(&id, &value) }
    };
    (from..to).map(article).collect()
}

/// All records on the output topics, by the position of their article.
pub(super) fn outputs(bench: &Bench<'_>, count: usize, running: &Running) -> Vec<(String, String, Row)> {
    let rows = bench.wait_for(&["unique", "near", "dead"], count, running);
    let place = |row: &Row| (row.our_header("partition").unwrap(), row.our_header("offset").unwrap());
    let mut rows: Vec<_> = rows
        .into_iter()
        .map(|row| {
            let (partition, offset) = place(&row);
            (partition, offset, row)
        })
        .collect();
    rows.sort_by_key(|(partition, offset, _)| (partition.clone(), offset.parse::<i64>().unwrap()));
    rows
}

/// Checks that each input has one output with the expected verdict.
pub(super) fn assert_each_judged_once(rows: &[(String, String, Row)], count: usize) {
    let places: std::collections::BTreeSet<_> =
        rows.iter().map(|(partition, offset, _)| (partition, offset)).collect();
    assert_eq!((rows.len(), places.len()), (count, count), "one output for each input");
    for (_, _, row) in rows {
        let n: usize = row.id()[1..].parse().unwrap();
        let expected = if n % 3 == 2 { "exact-duplicate" } else { "unique" };
        assert_eq!(row.our_header("verdict").as_deref(), Some(expected), "{}", row.id());
    }
}

/// Puts all records into one partition, so that a copy always follows its original.
pub(super) fn into_one_partition(mut records: Vec<Record>) -> Vec<Record> {
    records.iter_mut().for_each(|record| record.partition = Some(0));
    records
}

/// Alternates stories between two partitions.
pub(super) fn into_two_partitions(mut records: Vec<Record>) -> Vec<Record> {
    for record in &mut records {
        let n: i32 = String::from_utf8_lossy(&record.key.as_deref().unwrap()[1..]).parse().unwrap();
        record.partition = Some(n / 3 % 2);
    }
    records
}

#[test]
fn a_killed_stage_resumes_as_if_nothing_had_happened() {
    let bench = Bench::new(shared(), "killed", "", "");
    bench.produce(&into_one_partition(articles(0, 300)));
    let running = bench.run(&[]);
    outputs(&bench, 300, &running);
    running.kill();
    bench.produce(&into_one_partition(articles(300, 600)));
    let running = bench.run(&[]);
    // Without its directory the state is restored from the changelog, and the log says so.
    outputs(&bench, 600, &running);
    assert!(running.stop().success());
    std::fs::remove_dir_all(bench.dir.join("state")).unwrap();
    bench.produce(&into_one_partition(articles(600, 900)));
    let mut running = bench.run(&[]);
    running.wait_for_log("\"restored\"");
    assert_each_judged_once(&outputs(&bench, 900, &running), 900);
    let began = Instant::now();
    assert!(running.stop().success());
    assert!(began.elapsed() < Duration::from_secs(20), "a stop keeps its deadline");
}

#[test]
fn missing_or_unsuitable_topics_are_named_with_the_command_that_creates_them() {
    let bench = Bench::without_topics(shared(), "missing", "", "");
    let mut running = bench.run(&[]);
    assert_eq!(running.wait().code(), Some(1));
    let printed = running.log();
    assert!(
        printed.contains("samestory topics --create") && printed.contains(&bench.topic("changelog")),
        "{printed}"
    );

    let mut bench = Bench::new(shared(), "misfit", "", "[topics]\npartitions = 2\n");
    let changelog = shared().create_topic("misfit-changelog", 3, &[("cleanup.policy", "compact")]);
    bench.write("", "");
    let config = std::fs::read_to_string(bench.config()).unwrap();
    std::fs::write(bench.config(), config.replace(&bench.topic("changelog"), &changelog)).unwrap();
    let (status, printed) = bench.samestory(&["topics", "--check"]);
    assert_eq!(status.code(), Some(1));
    assert!(printed.contains("has 3 partitions") && printed.contains("has 2"), "{printed}");
}

#[test]
#[ignore = "kafka::ops and kafka::delivery kill a broker too: make test-edges"]
fn a_broker_that_is_away_is_waited_for() {
    let broker = breakable();
    let bench = Bench::new(&broker, "away", "", "");
    bench.produce(&into_one_partition(articles(0, 30)));
    broker.kill();
    let mut running = bench.run(&[]);
    running.wait_for_log("broker unreachable");
    broker.restart();
    outputs(&bench, 30, &running);
    broker.kill();
    std::thread::sleep(Duration::from_secs(2));
    broker.restart();
    bench.produce(&into_one_partition(articles(30, 60)));
    assert_each_judged_once(&outputs(&bench, 60, &running), 60);
    assert!(running.stop().success());
}

#[test]
fn route_writes_nothing_if_the_state_was_made_with_other_languages() {
    let mut bench = Bench::new(shared(), "map", "languages = [\"en\"]\n", "");
    bench.produce(&into_one_partition(articles(0, 30)));
    let running = bench.run(&[]);
    outputs(&bench, 30, &running);
    assert!(running.stop().success());
    bench.produce(&into_one_partition(articles(30, 60)));
    let before = bench.broker.ends(&bench.topic("routed"), Isolation::Uncommitted);
    bench.write("languages = [\"hi\", \"en\"]\n", "");
    let mut route = bench.run(&["--role", "route"]);
    assert_eq!(route.wait().code(), Some(1));
    assert!(route.log().contains("put stage.languages back"), "{}", route.log());
    let after = bench.broker.ends(&bench.topic("routed"), Isolation::Uncommitted);
    assert_eq!(after, before, "something was routed");
    bench.write("languages = [\"en\"]\n", "");
    let running = bench.run(&[]);
    assert_each_judged_once(&outputs(&bench, 60, &running), 60);
    assert!(running.stop().success());
}

#[test]
fn offsets_set_by_hand_stop_the_partition_until_an_operator_decides() {
    let bench = Bench::new(shared(), "reset", "", "[topics]\npartitions = 1\n");
    bench.produce(&into_one_partition(articles(0, 60)));
    let running = bench.run(&[]);
    outputs(&bench, 60, &running);
    assert!(running.stop().success());
    let group = format!("{}.match", bench.prefix);
    let consumer: BaseConsumer =
        bench.broker.client().set("group.id", &group).set("enable.auto.commit", "false").create().unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(&bench.topic("routed"), 0, Offset::Offset(3)).unwrap();
    consumer.commit(&list, CommitMode::Sync).unwrap();
    drop(consumer);
    let mut running = bench.run(&[]);
    let printed = running.wait_for_log("stopped:");
    assert!(
        printed.contains("--accept-offsets 0:3 ") && printed.contains("the group's offset is 3"),
        "{printed}"
    );
    assert_eq!(printed.matches("claiming again: ").count(), 3, "{printed}");
    assert!(running.stop().success());
    // A decision about another offset changes nothing.
    let mut running = bench.run(&["--accept-offsets", "0:4"]);
    running.wait_for_log("stopped:");
    assert!(running.stop().success());
    assert_eq!(bench.read("unique").len() + bench.read("near").len(), 60, "nothing was judged twice");
}

#[test]
fn the_older_of_two_processes_with_one_name_leaves_and_nothing_is_lost() {
    let bench = Bench::new(shared(), "twins", "", "");
    bench.produce(&into_two_partitions(articles(0, 30)));
    let mut older = bench.run(&[]);
    outputs(&bench, 30, &older);
    let other = bench.dir.join("other");
    let config = std::fs::read_to_string(bench.config()).unwrap();
    let copied = config.replace(&format!("{:?}", bench.dir.join("state")), &format!("{other:?}"));
    std::fs::write(bench.config(), copied).unwrap();
    let newer = bench.run(&[]);
    // The older one is fenced when it next writes, so produce work for the partitions that it still holds.
    for n in 1..40 {
        bench.produce(&into_two_partitions(articles(n * 30, n * 30 + 30)));
        outputs(&bench, n * 30 + 30, &newer);
        if older.log().contains("another process uses the instance id") {
            assert_eq!(older.wait().code(), Some(1));
            assert_each_judged_once(&outputs(&bench, n * 30 + 30, &newer), n * 30 + 30);
            assert!(newer.stop().success());
            return;
        }
    }
    panic!("the older did not leave: {}", older.log());
}

#[test]
fn bands_are_rebuilt_from_the_store_and_a_history_is_replayed_without_publishing() {
    let mut bench = Bench::new(shared(), "reband", "", "");
    bench.produce(&into_one_partition(articles(0, 60)));
    let running = bench.run(&[]);
    outputs(&bench, 60, &running);
    assert!(running.stop().success());
    bench.write("", "[lsh]\nbands = 20\nrows = 4\n[output]\npublish_from = \"2026-02-25T06:13:20.080Z\"\n");
    bench.produce(&into_one_partition(articles(60, 90)));
    let mut running = bench.run(&[]);
    running.wait_for_log("rebuilding the bands");
    // Articles 60 to 79 are older than publish_from.
    let rows = outputs(&bench, 70, &running);
    assert!(running.stop().success());
    assert_eq!(rows.len(), 70);
    // 80 is a copy of 79, which is known but was never published.
    let copy = rows.iter().find(|(_, _, row)| row.id() == "a0080").unwrap();
    assert_eq!(copy.2.our_header("duplicate-of").as_deref(), Some("a0079"));
}
