//! Runs the stage with TLS, SASL and exactly the ACLs that docs/security.md lists.

use std::fs;
use std::time::{Duration, Instant};

use super::broker::{PASSWORD, secure};
use super::bus::Isolation;
use super::days::{articles, assert_each_judged_once, into_one_partition, outputs};
use super::ops::{scrape, sum};
use super::stage::{Bench, PATIENCE, Running};

/// The rows of the document's table: resource, names, operations.
fn rights() -> Vec<(String, Vec<String>, Vec<String>)> {
    let text = include_str!("../../../docs/security.md");
    let rows = text.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let parts = |cell: &str| -> Vec<String> {
        cell.split(',').map(|name| name.trim().replace([' ', '`'], "").replace("(prefix)", "")).collect()
    };
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        (cells[1].to_owned(), parts(cells[2]), parts(cells[3]))
    })
    .collect()
}

/// The name that this test uses for a default name of the document.
fn named(bench: &Bench<'_>, name: &str) -> String {
    let topics = [
        ("articles.raw", "raw"),
        ("samestory.routed", "routed"),
        ("samestory.unique", "unique"),
        ("samestory.near-duplicate", "near"),
        ("samestory.clusters", "clusters"),
        ("samestory.changelog", "changelog"),
        ("samestory.dead-letter", "dead"),
        ("samestory.generations", "generations"),
    ];
    match topics.iter().find(|(usual, _)| *usual == name) {
        Some((_, ours)) => bench.topic(ours),
        None => name.replace("samestory", &bench.prefix),
    }
}

fn grant(bench: &Bench<'_>) {
    // Kafka's tool starts a JVM for each row, which mostly waits: run them in parallel.
    std::thread::scope(|scope| {
        for (resource, names, operations) in rights() {
            let names: Vec<String> = names.iter().map(|name| named(bench, name)).collect();
            let option = match resource.as_str() {
                "topic" => "--topic",
                "group" => "--group",
                "transactional id" => "--transactional-id",
                other => panic!("what is a {other}?"),
            };
            scope.spawn(move || {
                let mut arguments = vec!["--add", "--allow-principal", "User:stage"];
                operations.iter().for_each(|operation| arguments.extend(["--operation", operation]));
                names.iter().for_each(|name| arguments.extend([option, name]));
                if resource == "transactional id" {
                    arguments.extend(["--resource-pattern-type", "prefixed"]);
                }
                bench.broker.tool("org.apache.kafka.tools.AclCommand", &arguments);
            });
        }
    });
}

#[test]
fn the_rights_that_the_document_lists_are_enough_and_the_password_is_never_shown() {
    let broker = secure();
    let bench = Bench::new(broker, "secure", "", "");
    let config = fs::read_to_string(bench.config()).unwrap();
    let mut secure = config.replace(broker.bootstrap(), &broker.file("bootstrap.secure"));
    for line in broker.file("client.properties").lines() {
        match line.split_once('=').unwrap() {
            ("bootstrap.servers", _) => {}
            ("sasl.password", password) => {
                assert_eq!(password, PASSWORD);
                secure += "\"sasl.password\" = { env = \"TEST_STAGE_PASSWORD\" }\n";
            }
            (key, value) => secure += &format!("{key:?} = {value:?}\n"),
        }
    }
    fs::write(bench.config(), secure).unwrap();
    let environment = [("TEST_STAGE_PASSWORD", PASSWORD), ("SAMESTORY_LOG", "debug")];
    bench.produce(&into_one_partition(articles(0, 60)));

    let mut stranger = bench.run_with(&[], &environment);
    assert_eq!(stranger.wait().code(), Some(1));
    let printed = stranger.log();
    assert!(printed.contains("docs/security.md") && !printed.contains(PASSWORD), "{printed}");

    grant(&bench);
    let running = bench.run_with(&[], &environment);
    assert_each_judged_once(&outputs(&bench, 60, &running), 60);
    let printed = running.log();
    assert!(running.stop().success());
    assert!(!printed.contains(PASSWORD), "the password is in the log");
    // librdkafka looks up the coordinator of a group that nobody joins, and logs at debug level that access is denied.
    let aloud: Vec<&str> = printed.lines().filter(|line| !line.contains("\"DEBUG\"")).collect();
    assert!(!aloud.iter().any(|line| line.contains("uthoriz")), "{aloud:?}");

    // A revoked right is named in the log, and work resumes by itself when it is granted again.
    let write = |verb: &str| {
        let unique = bench.topic("unique");
        let user = ["--allow-principal", "User:stage", "--operation", "Write", "--topic", &unique];
        let force = if verb == "--remove" { &["--force"][..] } else { &[] };
        broker.tool("org.apache.kafka.tools.AclCommand", &[&[verb], &user[..], force].concat());
    };
    let mut running = bench.run_with(&[], &environment[..1]);
    running.wait_for_log("\"resuming\"");
    write("--remove");
    bench.produce(&into_one_partition(articles(60, 80)));
    let printed = running.wait_for_log("a record was not ");
    let line = printed.lines().find(|line| line.contains("a record was not ")).unwrap();
    assert!(line.contains(&bench.topic("unique")) && line.contains("uthoriz"), "{line}");
    write("--add");
    assert_each_judged_once(&outputs(&bench, 80, &running), 80);
    assert!(running.stop().success());
    purge_without_its_right(&bench, &environment[..1]);
}

// Without the right to delete records, purging failed at debug level only: the result for each partition was ignored,
// an idle partition was never retried, and a topic with retention.ms=-1 filled the brokers' disks while every metric
// looked healthy.
fn purge_without_its_right(bench: &Bench<'_>, environment: &[(&str, &str)]) {
    let routed = bench.topic("routed");
    let delete = |verb: &str| {
        let user = ["--allow-principal", "User:stage", "--operation", "Delete", "--topic", &routed];
        let force = if verb == "--remove" { &["--force"][..] } else { &[] };
        bench.broker.tool("org.apache.kafka.tools.AclCommand", &[&[verb], &user[..], force].concat());
    };
    delete("--remove");
    let environment = [environment, &[("SAMESTORY_PURGE_MS", "300")]].concat();
    let mut running = bench.run_with(&[], &environment);
    let address = running.address();
    let unpurged = || sum(&scrape(&address), "samestory_unpurged_records", "");
    let printed = running.wait_for_log("cannot be deleted");
    let line = printed.lines().find(|line| line.contains("cannot be deleted")).unwrap();
    assert!(line.contains("WARN") && line.contains(&routed) && line.contains("uthoriz"), "{line}");
    // Nothing new arrives, but the backlog of an earlier process counts: 80 articles, and a marker for each transaction.
    wait_until(&running, "unpurged records show", || unpurged() >= 80.0);
    // Long enough for several retries.
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(running.log().matches("cannot be deleted").count(), 1, "a cause is warned of once");
    delete("--add");
    running.wait_for_log("routed records are deleted again");
    wait_until(&running, "everything is purged", || unpurged() == 0.0);
    assert_eq!(bench.broker.read(&routed, Isolation::Committed).len(), 0);
    assert!(running.stop().success());
}

fn wait_until(running: &Running, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}; {}", running.log());
        std::thread::sleep(Duration::from_millis(100));
    }
}
