//! Through TLS and a password, with the rights that docs/security.md lists and no others.

use std::fs;

use super::broker::Broker;
use super::days::{articles, each_once, in_order, outputs};
use super::stage::Bench;

const PASSWORD: &str = "open sesame please";

/// A row of the table: resource, names, operations.
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

/// The default names of the document, and what this test calls them.
fn named(bench: &Bench<'_>, name: &str) -> String {
    let topics = [
        ("articles.raw", "raw"),
        ("samestory.routed", "routed"),
        ("samestory.unique", "unique"),
        ("samestory.near-duplicate", "near"),
        ("samestory.clusters", "clusters"),
        ("samestory.changelog", "changelog"),
        ("samestory.dead-letter", "dead"),
    ];
    match topics.iter().find(|(usual, _)| *usual == name) {
        Some((_, ours)) => bench.topic(ours),
        None => name.replace("samestory", &bench.prefix),
    }
}

fn grant(bench: &Bench<'_>) {
    for (resource, names, operations) in rights() {
        let names: Vec<String> = names.iter().map(|name| named(bench, name)).collect();
        let option = match resource.as_str() {
            "topic" => "--topic",
            "group" => "--group",
            "transactional id" => "--transactional-id",
            other => panic!("what is a {other}?"),
        };
        let mut arguments = vec!["--add", "--allow-principal", "User:stage"];
        operations.iter().for_each(|operation| arguments.extend(["--operation", operation]));
        names.iter().for_each(|name| arguments.extend([option, name]));
        if resource == "transactional id" {
            arguments.extend(["--resource-pattern-type", "prefixed"]);
        }
        bench.broker.tool("org.apache.kafka.tools.AclCommand", &arguments);
    }
}

#[test]
fn the_rights_that_the_document_lists_are_enough_and_the_password_is_never_shown() {
    let user = format!("stage:{PASSWORD}");
    let broker = Broker::start(&["--secure", "--user", &user]);
    let bench = Bench::new(&broker, "secure", "", "");
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
    bench.produce(&in_order(articles(0, 60)));

    let mut stranger = bench.run_with(&[], &environment);
    assert_eq!(stranger.wait().code(), Some(1));
    let said = stranger.said();
    assert!(said.contains("docs/security.md") && !said.contains(PASSWORD), "{said}");

    grant(&bench);
    let running = bench.run_with(&[], &environment);
    each_once(&outputs(&bench, 60, &running), 60);
    let said = running.said();
    assert!(running.stop().success());
    assert!(!said.contains(PASSWORD), "the password is in the log");
    // The client library looks for the coordinator of a group that nobody joins, and says at debug that it may not.
    let aloud: Vec<&str> = said.lines().filter(|line| !line.contains("\"DEBUG\"")).collect();
    assert!(!aloud.iter().any(|line| line.contains("uthoriz")), "{aloud:?}");

    // A right that is taken away is named, and when it is back the work goes on by itself.
    let write = |verb: &str| {
        let unique = bench.topic("unique");
        let user = ["--allow-principal", "User:stage", "--operation", "Write", "--topic", &unique];
        let force = if verb == "--remove" { &["--force"][..] } else { &[] };
        broker.tool("org.apache.kafka.tools.AclCommand", &[&[verb], &user[..], force].concat());
    };
    let mut running = bench.run_with(&[], &environment[..1]);
    running.wait_until_it_says("going on");
    write("--remove");
    bench.produce(&in_order(articles(60, 80)));
    let said = running.wait_until_it_says("a record was not ");
    let line = said.lines().find(|line| line.contains("a record was not ")).unwrap();
    assert!(line.contains(&bench.topic("unique")) && line.contains("uthoriz"), "{line}");
    write("--add");
    each_once(&outputs(&bench, 80, &running), 80);
    assert!(running.stop().success());
}
