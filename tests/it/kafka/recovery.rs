//! Takeover and restore of a partition when its topics, its changelog or its state have changed.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};

use super::broker::{Broker, shared};
use super::bus::{Isolation, Record, block_on};
use super::days::{articles, assert_each_judged_once, into_one_partition, outputs};
use super::stage::{Bench, PATIENCE, Running};

const ONE: &str = "[topics]\npartitions = 1\n";
const DIRECT: &str = "mode = \"direct\"\n";

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

fn judged(bench: &Bench<'_>) -> usize {
    ["unique", "near", "dead"].iter().map(|topic| bench.read(topic).len()).sum()
}

/// Runs until this many articles are judged, and stops. Returns the log.
fn run_to(bench: &Bench<'_>, count: usize, arguments: &[&str]) -> String {
    let running = bench.run(arguments);
    outputs(bench, count, &running);
    let printed = running.log();
    assert!(running.stop().success());
    printed
}

/// The log line that says why a partition stopped.
fn reason_of_the_stop(running: &mut Running) -> String {
    let printed = running.wait_for_log("stopped: ");
    printed.lines().find(|line| line.contains("stopped: ")).unwrap().to_owned()
}

fn recreate(bench: &Bench<'_>, name: &str) {
    bench.broker.delete_topic(&bench.topic(name));
    let (status, printed) = bench.samestory(&["topics", "--create"]);
    assert!(status.success(), "{printed}");
}

/// Saves a state of 30 articles; then the stage is idle for longer than the changelog keeps tombstones, twice; then the
/// saved state is put back, although the changelog has newer records.
fn idle_and_then_old(environment: &[(&str, &str)]) -> (String, String) {
    const LONGER_THAN_TOMBSTONES: Duration = Duration::from_millis(1300);
    let bench = Bench::new(shared(), "idle", DIRECT, ONE);
    bench.broker.set_topic(&bench.topic("changelog"), "delete.retention.ms", "1000");
    bench.produce(&into_one_partition(articles(0, 30)));
    run_to(&bench, 30, &[]);
    let (state, kept) = (bench.dir.join("state"), bench.dir.join("kept"));
    copy(&state, &kept);
    let mut idle = String::new();
    for n in 1..3 {
        thread::sleep(LONGER_THAN_TOMBSTONES);
        let mut running = bench.run_with(&[], environment);
        // The takeover happens before there is anything to read.
        running.wait_for_log("\"resuming\"");
        bench.produce(&into_one_partition(articles(n * 30, n * 30 + 30)));
        outputs(&bench, n * 30 + 30, &running);
        idle.push_str(&running.log());
        assert!(running.stop().success());
    }
    thread::sleep(LONGER_THAN_TOMBSTONES);
    fs::remove_dir_all(&state).unwrap();
    fs::rename(&kept, &state).unwrap();
    bench.produce(&into_one_partition(articles(90, 120)));
    let running = bench.run_with(&[], environment);
    assert_each_judged_once(&outputs(&bench, 120, &running), 120);
    let old = running.log();
    assert!(running.stop().success());
    (idle, old)
}

/// An idle partition was considered too old: the commit marker after the last record of its changelog made sound state
/// look behind. It was quarantined after a day without articles, and the second time it stopped for good.
#[test]
fn an_idle_state_is_sound_and_one_older_than_the_tombstones_is_not() {
    let (idle, old) = idle_and_then_old(&[]);
    assert!(!idle.contains("quarantined"), "{idle}");
    assert!(old.contains("too-old") && old.contains("remain to be replayed"), "{old}");
}

/// The same without the check. In so short a test the changelog still has its tombstones; only the quarantine is missing.
#[test]
#[ignore = "make test-mutants"]
fn without_the_age_check_an_old_state_is_used_and_that_is_detected() {
    let (_, old) = idle_and_then_old(&[("SAMESTORY_MUTANT", "too-old-off")]);
    assert!(!old.contains("too-old"), "the guard was taken away, and it is still there: {old}");
}

/// A recreated input topic was read from the old offset: a bare number fits every topic of that name, so the first
/// records were silently skipped. The same number in a changelog hid that the state belonged to another topic.
#[test]
fn recreated_topics_stop_the_partition_and_are_named() {
    let bench = Bench::new(shared(), "recreated", DIRECT, ONE);
    bench.produce(&into_one_partition(articles(0, 30)));
    run_to(&bench, 30, &[]);

    // Longer than the old topic, so that the old offset exists.
    recreate(&bench, "raw");
    bench.produce(&into_one_partition(articles(30, 75)));
    let mut running = bench.run(&[]);
    let why = reason_of_the_stop(&mut running);
    for part in ["topic id of the input", "the position 30", "--accept-offsets 0:0 ", "stage.generation"] {
        assert!(why.contains(part), "{why}");
    }
    assert!(running.stop().success());
    assert_eq!(judged(&bench), 30, "nothing of the new topic is judged");

    // The operator decides. The group's offsets were deleted with the topic, so it is read from the beginning.
    run_to(&bench, 75, &["--accept-offsets", "0:0"]);
    let ids: std::collections::BTreeSet<String> =
        ["unique", "near"].iter().flat_map(|topic| bench.read(topic)).map(|row| row.id()).collect();
    assert_eq!(ids.len(), 75, "each article once");

    // Recreated while the stage runs, and longer again.
    let mut running = bench.run_with(&[], &[("SAMESTORY_COMPARE_MS", "200")]);
    running.wait_for_log("\"resuming\"");
    recreate(&bench, "raw");
    bench.produce(&into_one_partition(articles(75, 150)));
    let why = reason_of_the_stop(&mut running);
    assert!(why.contains("topic id of the input"), "{why}");
    assert!(running.stop().success());

    // Another application on the same changelog.
    let ours = format!("app = \"{}\"", bench.prefix);
    let settings = fs::read_to_string(bench.config()).unwrap();
    fs::write(bench.config(), settings.replace(&ours, "app = \"somebody-else\"")).unwrap();
    let mut running = bench.run(&[]);
    let why = reason_of_the_stop(&mut running);
    assert!(
        why.contains("somebody-else") && why.contains(&bench.prefix) && why.contains("stage.app"),
        "{why}"
    );
    assert!(running.stop().success());
    fs::write(bench.config(), &settings).unwrap();

    // The changelog is recreated but the volume kept: the state belongs to another topic, and the group's offset has no
    // position.
    run_to(&bench, 150, &["--accept-offsets", "0:0"]);
    recreate(&bench, "changelog");
    let mut running = bench.run(&[]);
    let why = reason_of_the_stop(&mut running);
    let printed = running.log();
    assert!(
        printed.contains("other-topic") && printed.contains("was built from a changelog with topic id"),
        "{printed}"
    );
    assert!(why.contains("the changelog has no position"), "{why}");
    assert!(running.stop().success());
}

/// An input topic was recreated with fewer partitions than the changelog has: nothing starts, and both topics are named.
#[test]
fn an_input_recreated_with_fewer_partitions_is_refused_at_startup() {
    let mut bench = Bench::new(shared(), "fewer", DIRECT, "");
    bench.write(DIRECT, ONE);
    recreate(&bench, "raw");
    let mut running = bench.run(&[]);
    assert_eq!(running.wait().code(), Some(1));
    let printed = running.log();
    assert!(printed.contains("changelog has 2 partitions") && printed.contains("raw has 1"), "{printed}");
}

/// The same without comparing topic ids: the first records of the new topic are skipped.
#[test]
#[ignore = "make test-mutants"]
fn without_topic_ids_a_recreated_input_is_read_from_the_middle_and_that_is_detected() {
    let bench = Bench::new(shared(), "ids-ignored", DIRECT, ONE);
    bench.produce(&into_one_partition(articles(0, 30)));
    run_to(&bench, 30, &[]);
    recreate(&bench, "raw");
    bench.produce(&into_one_partition(articles(30, 75)));
    let running = bench.run_with(&[], &[("SAMESTORY_MUTANT", "topic-id-ignored")]);
    outputs(&bench, 45, &running);
    assert!(!running.log().contains("stopped: "), "{}", running.log());
    assert!(running.stop().success());
    let lost = 75 - judged(&bench);
    assert_eq!(lost, 30, "what the guard is for");
}

/// Starts a stage at the end of its topic, stops it before anything arrives, and starts it again after 30 articles.
/// Returns how many of them are judged.
fn judged_after_a_quiet_start(environment: &[(&str, &str)]) -> usize {
    let rest = "[input]\nstart = \"latest\"\n[topics]\npartitions = 1\n";
    let bench = Bench::new(shared(), "quiet-start", DIRECT, rest);
    bench.produce(&into_one_partition(articles(0, 30)));
    let mut running = bench.run_with(&[], environment);
    running.wait_for_log("\"starting with empty state\"");
    thread::sleep(Duration::from_secs(1));
    assert!(running.stop().success());
    bench.produce(&into_one_partition(articles(30, 60)));
    let mut running = bench.run_with(&[], environment);
    running.wait_for_log(if environment.is_empty() {
        "\"resuming\""
    } else {
        "\"starting with empty state\""
    });
    bench.produce(&into_one_partition(articles(60, 90)));
    outputs(&bench, 30, &running);
    thread::sleep(Duration::from_secs(2));
    assert!(running.stop().success());
    judged(&bench) - 30
}

/// Without a recorded first position the end of the topic is looked up again, and by then it has moved.
#[test]
#[ignore = "make test-mutants"]
fn without_a_first_position_articles_are_skipped_and_that_is_detected() {
    assert_eq!(judged_after_a_quiet_start(&[]), 30, "with the guard");
    assert_eq!(judged_after_a_quiet_start(&[("SAMESTORY_MUTANT", "first-position-off")]), 0);
}

/// Sets the offset of the stage's group by hand, as `kafka-consumer-groups.sh --reset-offsets` does.
fn set_offset(bench: &Bench<'_>, offset: i64) {
    let group = format!("{}.direct", bench.prefix);
    let mut client = bench.broker.client();
    let consumer: BaseConsumer =
        client.set("group.id", &group).set("enable.auto.commit", "false").create().unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(&bench.topic("raw"), 0, Offset::Offset(offset)).unwrap();
    consumer.commit(&list, CommitMode::Sync).unwrap();
}

/// Deletes the first records of the input, as a topic with too short a retention does.
fn delete_before(bench: &Bench<'_>, offset: i64) {
    let admin: AdminClient<DefaultClientContext> = bench.broker.client().create().unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(&bench.topic("raw"), 0, Offset::Offset(offset)).unwrap();
    block_on(admin.delete_records(&list, &AdminOptions::new())).unwrap();
}

/// `--accept-offsets` and `--accept-gap` accepted any disagreement for as long as they were on the command line: a
/// later loss was silently accepted. Now each names a partition and an offset, and expires once the decision is
/// recorded.
#[test]
#[ignore = "unit tests of stream::takeover have the rules: make test-edges"]
fn an_operators_decision_covers_one_offset_of_one_partition_once() {
    let bench = Bench::new(shared(), "accepted", DIRECT, ONE);
    bench.produce(&into_one_partition(articles(0, 60)));
    run_to(&bench, 60, &[]);
    let stops = |arguments: &[&str], named: &str| {
        let mut running = bench.run(arguments);
        let why = reason_of_the_stop(&mut running);
        assert!(why.contains(named), "{why}");
        assert!(running.stop().success());
    };

    set_offset(&bench, 30);
    stops(&["--accept-offsets", "0:31"], "--accept-offsets 0:30 ");
    // 30 articles are judged again, with the state as it is.
    let printed = run_to(&bench, 90, &["--accept-offsets", "0:30"]);
    assert!(printed.contains("resuming as the operator decided"), "{printed}");
    bench.produce(&into_one_partition(articles(60, 70)));
    let printed = run_to(&bench, 100, &["--accept-offsets", "0:30"]);
    assert!(printed.contains("\"resuming\"") && !printed.contains("as the operator decided"), "{printed}");
    set_offset(&bench, 40);
    stops(&["--accept-offsets", "0:30"], "--accept-offsets 0:40 ");
    set_offset(&bench, 70);

    // Ten of the next twenty are deleted before anybody has read them.
    bench.produce(&into_one_partition(articles(70, 90)));
    delete_before(&bench, 80);
    stops(&["--accept-gap", "0:69"], "--accept-gap 0:70 ");
    let printed = run_to(&bench, 110, &["--accept-gap", "0:70"]);
    let line = printed.lines().find(|line| line.contains("as the operator decided")).unwrap();
    assert!(line.contains("\"from\":80") && line.contains("\"lost\":10"), "{line}");
    bench.produce(&into_one_partition(articles(90, 120)));
    delete_before(&bench, 100);
    stops(&["--accept-gap", "0:70"], "--accept-gap 0:90 ");
}

/// All restores ran at once, and each had 32 MB of records waiting: a pod that started without its volume took a
/// gigabyte for that alone. Now two run at a time.
#[test]
#[ignore = "160,000 articles, a minute or two: make test-edges"]
fn a_cold_pod_with_32_partitions_stays_under_two_gigabytes() {
    const PARTITIONS: usize = 32;
    const EACH: usize = 5000;
    let rest = "[topics]\npartitions = 32\n";
    let bench = Bench::new(shared(), "cold", DIRECT, rest);
    let article = |n: usize| {
        let word = |at: usize| (n * 1000 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let text: Vec<String> = (0..80).map(|at| format!("w{}", word(at))).collect();
        let (id, body) = (format!("a{n}"), text.join(" "));
        let value = serde_json::json!({"id": id, "language": "en", "body": body}).to_string();
        let timestamp = Some(1_772_000_000_000 + n as i64);
        Record { partition: Some((n % PARTITIONS) as i32), timestamp, ..Record::new(&id, &value) }
    };
    for from in (0..PARTITIONS * EACH).step_by(8000) {
        bench.produce(&(from..from + 8000).map(article).collect::<Vec<_>>());
    }
    let peak = |running: &Running| {
        let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    };
    let running = bench.run(&[]);
    let (group, topic) = (format!("{}.direct", bench.prefix), bench.topic("raw"));
    let deadline = Instant::now() + PATIENCE * 5;
    while bench.broker.committed(&group, &topic).values().sum::<i64>() < (PARTITIONS * EACH) as i64 {
        assert!(Instant::now() < deadline, "{}", running.log());
        thread::sleep(Duration::from_secs(1));
    }
    let judging = peak(&running);
    assert!(running.stop().success());
    let changelog = bench.broker.ends(&bench.topic("changelog"), Isolation::Committed).values().sum::<i64>();
    fs::remove_dir_all(bench.dir.join("state")).unwrap();
    let began = Instant::now();
    let running = bench.run(&[]);
    let deadline = Instant::now() + PATIENCE * 5;
    while running.log().matches("\"resuming\"").count() < PARTITIONS {
        assert!(Instant::now() < deadline, "{}", running.log());
        thread::sleep(Duration::from_millis(200));
    }
    let (took, restoring) = (began.elapsed(), peak(&running));
    assert!(running.stop().success());
    println!(
        "{changelog} changelog offsets in {PARTITIONS} partitions: {restoring} MB at most, {took:?}; judging them took {judging} MB"
    );
    assert!(restoring < 2048, "{restoring} MB");
}

/// A broker lost the end of a log (power failure, unclean leader election). The offset was beyond its end or, once
/// enough had been written again, in the middle of unjudged records, which were silently skipped.
#[test]
#[ignore = "has a broker of its own: make test-edges"]
fn a_truncated_log_stops_the_partition_even_after_it_has_grown_again() {
    let broker = Broker::start(&[]);
    let bench = Bench::new(&broker, "truncated", DIRECT, ONE);
    // In several batches, so that the last ones can be lost.
    for n in 0..6 {
        bench.produce(&into_one_partition(articles(n * 10, n * 10 + 10)));
    }
    run_to(&bench, 60, &[]);
    let group = format!("{}.direct", bench.prefix);
    assert!(broker.committed_epoch(&group, &bench.topic("raw"), 0) >= 0, "offsets carry the leader epoch");
    broker.kill();
    let partition = find(broker.dir(), &format!("{}-0", bench.topic("raw")));
    let log = partition.join("00000000000000000000.log");
    let length = fs::metadata(&log).unwrap().len();
    fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(length / 2).unwrap();
    for entry in fs::read_dir(&partition).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "index" || extension == "timeindex") {
            fs::remove_file(path).unwrap();
        }
    }
    broker.restart();
    let mut running = bench.run(&[]);
    let why = reason_of_the_stop(&mut running);
    assert!(
        why.contains("the next record is 60, but the topic ends at") && why.contains("truncated"),
        "{why}"
    );
    assert!(running.stop().success());

    for n in 6..12 {
        bench.produce(&into_one_partition(articles(n * 10, n * 10 + 10)));
    }
    let mut running = bench.run(&[]);
    let why = reason_of_the_stop(&mut running);
    assert!(why.contains("truncated before offset 60 and written again"), "{why}");
    assert!(running.stop().success());
    assert_eq!(judged(&bench), 60, "nothing was judged from the middle");
}

/// The directory of that name somewhere below another.
fn find(dir: &Path, name: &str) -> std::path::PathBuf {
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if path.ends_with(name) => return path,
                true => open.push(path),
                false => {}
            }
        }
    }
    panic!("no {name} below {}", dir.display());
}

/// While a partition was being restored, polls did not block, and a rebalance served by such a poll went unnoticed:
/// assigned partitions stood still and revoked ones were worked on until the last restore was done. Now all four are
/// restored, two at a time, each resumes where it was, and copies of articles that the others had judged are
/// recognised.
#[test]
fn three_partitions_assigned_during_a_restore_all_resume() {
    let bench = Bench::new(shared(), "three-at-once", DIRECT, "[topics]\npartitions = 4\n");
    let spread = |keep: fn(usize) -> bool| -> Vec<Record> {
        let numbered = articles(0, 120).into_iter().enumerate().filter(|(n, _)| keep(*n));
        numbered.map(|(n, record)| Record { partition: Some((n / 3 % 4) as i32), ..record }).collect()
    };
    let mut others: Vec<Running> = ["one", "two", "three"].map(|name| bench.run_as(name, &[])).into();
    bench.produce(&spread(|n| n % 3 != 2));
    outputs(&bench, 80, &others[0]);
    // It reads two changelog records, sleeps until the other processes are gone, and then reads the rest in small steps.
    let slowly = [
        ("SAMESTORY_SLEEP_AT", "restore:1:5000"),
        ("SAMESTORY_CHUNK", "2"),
        ("SAMESTORY_RESTORE_PAUSE_MS", "100"),
    ];
    let mut late = bench.run_as_with("late", &[], &slowly);
    late.wait_for_log("sleeps at restore");
    others.iter().for_each(|other| other.signal("TERM"));
    others.iter_mut().for_each(|other| assert!(other.wait().success(), "{}", other.log()));
    bench.produce(&spread(|n| n % 3 == 2));
    assert_each_judged_once(&outputs(&bench, 120, &late), 120);
    let printed = late.log();
    let assigned: Vec<&str> = printed.lines().filter(|line| line.contains("\"assigned\"")).collect();
    assert!(assigned.len() >= 2, "all at once, before it restored any: {printed}");
    assert!(
        printed.rfind("\"assigned\"") < printed.find("\"restored\""),
        "the others came after it had restored: {printed}"
    );
    assert_eq!(printed.matches("\"restored\"").count(), 4, "{printed}");
    // If all ran at once, 32 partitions of a cold pod would have a gigabyte of records waiting.
    let mut at_once = 0;
    for line in printed.lines() {
        at_once += i32::from(line.contains("\"restoring\"") && line.contains("\"from\""));
        at_once -= i32::from(line.contains("\"restored\""));
        assert!(at_once <= 2, "more than two restores at once: {printed}");
    }
    assert!(late.stop().success());
}

/// A restore waited for a transaction that a killed producer had left open, and nothing reported it: `restoring`, 99 %,
/// until that producer's transaction timed out.
#[test]
fn a_restore_behind_an_open_transaction_reports_what_it_waits_for() {
    let bench = Bench::new(shared(), "open", DIRECT, ONE);
    bench.produce(&into_one_partition(articles(0, 30)));
    run_to(&bench, 30, &[]);
    let changelog = bench.topic("changelog");
    let mut client = bench.broker.client();
    client.set("transactional.id", &bench.prefix).set("transaction.timeout.ms", "120000");
    let producer: BaseProducer = client.create().unwrap();
    let wait = Duration::from_secs(20);
    producer.init_transactions(wait).unwrap();
    producer.begin_transaction().unwrap();
    let record = BaseRecord::to(&changelog).partition(0).key("nobody").payload("nothing");
    producer.send(record).map_err(|(error, _)| error).unwrap();
    producer.flush(wait).unwrap();
    let mut running = bench.run_with(&[], &[("SAMESTORY_STALL_MS", "500")]);
    let printed = running.wait_for_log("the restore makes no progress");
    let line = printed.lines().find(|line| line.contains("no progress")).unwrap();
    for part in ["a transaction is open", "last_stable_offset", "high_watermark", "\"partition\":0"] {
        assert!(line.contains(part), "{line}");
    }
    producer.abort_transaction(wait).unwrap();
    running.wait_for_log("\"resuming\"");
    assert!(running.stop().success());
}
