//! Who has which partition: assigned by the broker, or kept through a short absence.

use super::broker::shared;
use super::days::{articles, both, each_once, outputs};
use super::stage::{Bench, Running};

/// Two processes that have shared the partitions, and 180 articles done.
fn two_at_work(bench: &Bench<'_>) -> (Running, Running) {
    bench.produce(&both(articles(0, 90)));
    let mut one = bench.run_as("one", &[]);
    outputs(bench, 90, &one);
    let mut two = bench.run_as("two", &[]);
    two.wait_until_it_says("\"assigned\"");
    one.wait_until_it_says("\"revoked\"");
    bench.produce(&both(articles(90, 180)));
    outputs(bench, 180, &two);
    (one, two)
}

/// Two processes share the work; one dies, and the other does all of it.
fn shared_and_inherited(name: &str, stage: &str) {
    let bench = Bench::new(shared(), name, stage, "");
    let (one, two) = two_at_work(&bench);
    one.kill();
    bench.produce(&both(articles(180, 270)));
    each_once(&outputs(&bench, 270, &two), 270);
    assert!(two.stop().success());
}

#[test]
fn partitions_that_members_agree_about_are_shared_and_inherited() {
    shared_and_inherited("classic", "");
}

#[test]
fn partitions_that_the_broker_assigns_are_shared_and_inherited() {
    shared_and_inherited("broker-assigns", "group_protocol = \"consumer\"\n");
}

#[test]
fn a_static_member_that_is_back_soon_has_what_it_had_and_nobody_else_notices() {
    let bench = Bench::new(shared(), "static", "static_membership = true\n", "");
    let (one, two) = two_at_work(&bench);
    let noticed = |said: String| said.matches("\"assigned\"").count() + said.matches("\"revoked\"").count();
    let before = noticed(one.said());
    two.kill();
    let two = bench.run_as("two", &[]);
    bench.produce(&both(articles(180, 270)));
    each_once(&outputs(&bench, 270, &two), 270);
    assert_eq!(noticed(one.said()), before, "the other had to give something up or take something over");
    assert!(two.stop().success());
    assert!(one.stop().success());
}
