//! Another way to make fingerprints: a new generation warms up in silence and takes over, and no verdict is lost or said
//! twice.

use std::thread;
use std::time::{Duration, Instant};

use super::broker::shared;
use super::bus::Isolation;
use super::days::{articles, each_once, in_order, outputs};
use super::stage::{Bench, PATIENCE, Running};

/// Changes every fingerprint.
const OTHER: &str = "[text]\nskeleton = true\n";

/// Waits until a group has read all of the raw topic.
fn wait_for_group(bench: &Bench<'_>, group: &str, running: &Running) {
    let (topic, deadline) = (bench.topic("raw"), Instant::now() + PATIENCE);
    let ends = bench.broker.ends(&topic, Isolation::Committed);
    while ends.iter().any(|(at, end)| *end > 0 && bench.broker.committed(group, &topic).get(at) != Some(end))
    {
        assert!(Instant::now() < deadline, "{group} is not done: {}", running.said());
        thread::sleep(Duration::from_millis(100));
    }
}

fn handed_over(name: &str, mode: &str, reader: &str) {
    let mut bench = Bench::new(shared(), name, &format!("mode = \"{mode}\"\n"), "[topics]\npartitions = 1\n");
    bench.produce(&in_order(articles(0, 90)));
    let before = bench.run_as("before", &[]);
    outputs(&bench, 90, &before);

    // The same state and other fingerprints cannot be compared.
    let other = format!("{OTHER}[topics]\npartitions = 1\n");
    bench.write(&format!("mode = \"{mode}\"\n"), &other);
    assert!(before.stop().success());
    let mut mistaken = bench.run_as("before", &[]);
    mistaken.wait_until_it_says("the next number in stage.generation");
    mistaken.kill();

    bench.write(&format!("mode = \"{mode}\"\n"), "[topics]\npartitions = 1\n");
    let before = bench.run_as("before", &[]);
    bench.write(&format!("mode = \"{mode}\"\ngeneration = 2\n"), &other);
    let (created, said) = bench.samestory(&["topics", "--create"]);
    assert!(created.success(), "{said}");
    let after = bench.run_as("after", &[]);
    bench.produce(&in_order(articles(90, 150)));
    outputs(&bench, 150, &before);
    let group = format!("{}.g2.{reader}", bench.prefix);
    wait_for_group(&bench, &group, &after);
    assert_eq!(outputs(&bench, 150, &after).len(), 150, "the new one is silent about what was said");

    // 150 is a new story, 152 a copy of the one before it; 149 was judged by the old generation.
    assert!(before.stop().success());
    let mut late = in_order(articles(150, 240));
    let copy = late.len();
    late.extend(in_order(articles(147, 148)));
    late[copy].key = Some(b"copy-of-old".to_vec());
    let value = String::from_utf8(late[copy].value.clone().unwrap()).unwrap();
    late[copy].value = Some(value.replace("a0147", "copy-of-old").into_bytes());
    bench.produce(&late);
    let mut rows = outputs(&bench, 241, &after);
    let old = rows.iter().position(|(_, _, row)| row.id() == "copy-of-old").unwrap();
    assert_eq!(
        rows[old].2.says("duplicate-of").as_deref(),
        Some("a0147"),
        "it knows what it was silent about"
    );
    rows.remove(old);
    each_once(&rows, 240);
    assert!(after.stop().success());
}

#[test]
fn a_new_generation_takes_over_where_articles_are_routed() {
    handed_over("generations", "routed", "route");
}

#[test]
fn a_new_generation_takes_over_where_articles_come_by_language() {
    handed_over("generations-direct", "direct", "direct");
}
