//! Partition assignment: the classic protocol, the `consumer` protocol (KIP-848), and static membership.

use super::broker::shared;
use super::days::{articles, assert_each_judged_once, into_two_partitions, outputs};
use super::stage::{Bench, Running};

/// Starts two processes that share the partitions and have judged 180 articles.
fn two_at_work(bench: &Bench<'_>) -> (Running, Running) {
    bench.produce(&into_two_partitions(articles(0, 90)));
    let mut one = bench.run_as("one", &[]);
    outputs(bench, 90, &one);
    let mut two = bench.run_as("two", &[]);
    two.wait_for_log("\"assigned\"");
    one.wait_for_log("\"revoked\"");
    bench.produce(&into_two_partitions(articles(90, 180)));
    outputs(bench, 180, &two);
    (one, two)
}

/// Two processes share the work; one is killed, and the other takes over all of it.
fn shared_and_inherited(name: &str, stage: &str) {
    let bench = Bench::new(shared(), name, stage, "");
    let (one, two) = two_at_work(&bench);
    one.kill();
    bench.produce(&into_two_partitions(articles(180, 270)));
    assert_each_judged_once(&outputs(&bench, 270, &two), 270);
    assert!(two.stop().success());
}

#[test]
fn the_classic_protocol_shares_and_inherits_partitions() {
    shared_and_inherited("classic", "");
}

#[test]
fn the_consumer_protocol_shares_and_inherits_partitions() {
    shared_and_inherited("broker-assigns", "group_protocol = \"consumer\"\n");
}

#[test]
fn a_static_member_that_returns_soon_keeps_its_partitions_without_a_rebalance() {
    let bench = Bench::new(shared(), "static", "static_membership = true\n", "");
    let (one, two) = two_at_work(&bench);
    let noticed =
        |printed: String| printed.matches("\"assigned\"").count() + printed.matches("\"revoked\"").count();
    let before = noticed(one.log());
    two.kill();
    let two = bench.run_as("two", &[]);
    bench.produce(&into_two_partitions(articles(180, 270)));
    assert_each_judged_once(&outputs(&bench, 270, &two), 270);
    assert_eq!(noticed(one.log()), before, "the other had to give something up or take something over");
    assert!(two.stop().success());
    assert!(one.stop().success());
}
