//! A disk that is full, and has room again.

use std::process::Command;

use super::broker::shared;
use super::days::{articles, each_once, in_order, outputs};
use super::stage::Bench;

/// How large a file of this process may become: writing more fails, as on a full disk.
fn limit(pid: u32, bytes: &str) {
    let arguments = ["--pid", &pid.to_string(), &format!("--fsize={bytes}:unlimited")];
    assert!(Command::new("prlimit").args(arguments).status().unwrap().success());
}

#[test]
fn without_room_a_partition_waits_and_with_room_it_goes_on() {
    let bench = Bench::new(shared(), "space", "", "[topics]\npartitions = 1\n");
    bench.produce(&in_order(articles(0, 60)));
    let mut running = bench.run_without_signal("XFSZ", &[("SAMESTORY_FLUSH_MS", "3000")]);
    outputs(&bench, 60, &running);
    limit(running.pid(), "32768");
    for from in (60..600).step_by(60) {
        bench.produce(&in_order(articles(from, from + 60)));
    }
    running.wait_until_it_says("stopped for now");
    limit(running.pid(), "unlimited");
    each_once(&outputs(&bench, 600, &running), 600);
    running.signal("TERM");
    let status = running.wait();
    assert!(status.success(), "{status}: {}", running.said());
}
