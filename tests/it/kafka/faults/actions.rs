//! Faults of processes, their disks, their networks and a single broker. Each action records itself in the
//! ledger.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::kafka::proxy::{Mode, Way};

use super::coverage;
use super::process::Orders;
use super::random::Random;
use super::scene::{INSTANCES, Scene};

/// How long a process may take to reach a fault point.
const REACHED: Duration = Duration::from_secs(90);

/// An instance, a fault point, and the visit at which the fault strikes.
pub(crate) type CrashAt = (usize, &'static str, u32);

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl Scene {
    /// Lets each instance die at its fault point, and starts it again.
    pub(crate) fn crash(&mut self, at: &[CrashAt]) {
        self.say(&format!("crash at {at:?}"));
        for &(instance, point, count) in at {
            self.kill(instance);
            self.start_with(
                instance,
                &Orders::default().with("SAMESTORY_CRASH_AT", format!("{point}:{count}")),
            );
        }
        self.await_deaths(at);
    }

    /// Waits until the instances have died at their fault points, and starts them again.
    pub(crate) fn await_deaths(&mut self, at: &[CrashAt]) {
        for &(instance, point, count) in at {
            if self.await_death(instance, REACHED) {
                self.ledger.done("death at a fault point");
            } else if self.is_spare(instance) {
                self.say(&format!("{instance} has no partition and cannot come to {point}"));
            } else {
                self.ledger.drawn("death at a fault point");
                self.wrong.push(format!("void: instance {instance} never came to {point}:{count}"));
            }
            self.start(instance);
        }
    }

    /// Kills an instance with SIGKILL at an arbitrary moment, and starts it again.
    pub(crate) fn kill_and_start(&mut self, at: usize) {
        self.kill_and_start_with(at, &Orders::default());
    }

    pub(crate) fn kill_and_start_with(&mut self, at: usize, orders: &Orders) {
        self.ledger.done("SIGKILL");
        self.say(&format!("kill {at}"));
        self.kill(at);
        self.start_with(at, orders);
    }

    /// Freezes an instance in the middle of a transaction until the others have taken over, and then lets it
    /// continue.
    pub(crate) fn zombie(&mut self, at: usize, point: &str, time: Duration) {
        self.say(&format!("{at} freezes at {point}"));
        self.kill(at);
        self.start_with(at, &Orders::default().with("SAMESTORY_STOP_AT", format!("{point}:4")));
        if !self.process(at).await_frozen(REACHED) {
            if self.is_spare(at) {
                self.say(&format!("{at} has no partition and cannot come to {point}"));
                self.kill(at);
                self.start(at);
                return;
            }
            self.wrong.push(format!("void: instance {at} never came to {point} to freeze there"));
            return;
        }
        self.ledger.drawn("zombie");
        let before = self.disowned(at);
        self.wait(time);
        self.process(at).signal("CONT");
        // The instance learns that it was fenced or revoked with its next request.
        let deadline = Instant::now() + secs(15);
        while self.disowned(at) == before && Instant::now() < deadline {
            self.wait(Duration::from_millis(200));
        }
        if self.disowned(at) > before {
            self.ledger.traced("zombie");
        }
    }

    /// True if an instance has taken over no partition since it was started last: with two workers each, three instances are
    /// six members, and three partitions leave some without one.
    fn is_spare(&self, at: usize) -> bool {
        let log = fs::read_to_string(self.logs().join(format!("{at}.log"))).unwrap_or_default();
        let since = log.rfind("\"message\":\"starting\"").unwrap_or(0);
        !log[since..].contains("\"resuming\"")
    }

    /// How often an instance lost a transaction or a partition.
    fn disowned(&self, at: usize) -> usize {
        let signs = ["a transaction was aborted", "restarting the worker", "assignment lost", "\"revoked\""];
        signs.iter().map(|sign| self.logged(at, sign)).sum()
    }

    /// Freezes an instance with SIGSTOP at an arbitrary moment.
    pub(crate) fn freeze(&mut self, at: usize, time: Duration) {
        self.say(&format!("freeze {at} for {time:?}"));
        self.ledger.done("process frozen");
        self.process(at).signal("STOP");
        self.wait(time);
        self.process(at).signal("CONT");
    }

    pub(crate) fn kill_broker(&mut self) {
        self.say("kill the broker and start it again");
        self.ledger.done("broker killed");
        self.broker.kill();
        self.wait(secs(1));
        self.broker.restart();
    }

    pub(crate) fn pause_broker(&mut self, time: Duration) {
        self.say(&format!("freeze the broker for {time:?}"));
        self.ledger.done("broker frozen");
        self.broker.pause();
        self.wait(time);
        self.broker.resume();
    }

    /// Drops the response to an EndTxn request, so that the outcome of the commit is unknown.
    pub(crate) fn lose_answers(&mut self, at: usize, time: Duration) {
        self.say(&format!("answers to commits of {at} are lost"));
        let before = self.networks[at].lost();
        self.networks[at].set(Mode::LoseAnswerToEndTxn);
        let deadline = Instant::now() + REACHED;
        while self.networks[at].lost() == before && Instant::now() < deadline {
            self.wait(Duration::from_millis(20));
        }
        if self.networks[at].lost() > before {
            self.ledger.done("answer to a commit lost");
        } else if self.is_spare(at) {
            self.say(&format!("{at} has no partition and commits nothing"));
        } else {
            self.ledger.drawn("answer to a commit lost");
            self.wrong.push(format!("void: instance {at} lost no answer"));
        }
        self.wait(time);
        self.networks[at].set(Mode::Pass);
    }

    /// Stalls an instance's network in one direction or both.
    pub(crate) fn stall(&mut self, at: usize, way: Option<Way>, time: Duration) {
        self.say(&format!("the network of {at} stalls ({way:?}) for {time:?}"));
        self.ledger.done("network stalls");
        self.networks[at].set(Mode::Stall(way));
        self.wait(time);
        self.networks[at].set(Mode::Pass);
    }

    pub(crate) fn reset_network(&mut self, at: usize) {
        self.say(&format!("connections of {at} are reset"));
        self.ledger.done("connections reset");
        self.networks[at].reset();
    }

    /// Kills an instance and deletes its state.
    pub(crate) fn lose_disk(&mut self, at: usize) {
        self.say(&format!("the disk of {at} is lost"));
        self.ledger.done("disk lost");
        self.kill(at);
        drop(fs::remove_dir_all(self.state(at)));
    }

    /// Damages an SST file of a stopped instance's state, if it has one.
    pub(crate) fn damage(&mut self, at: usize, truncate: bool, random: &mut Random) {
        self.stop(at);
        let mut files = sst_files(&self.state(at));
        files.retain(|file| fs::metadata(file).is_ok_and(|file| file.len() > 2000));
        if !files.is_empty() {
            let file = random.pick(&files);
            let mut bytes = fs::read(file).unwrap();
            let middle = bytes.len() / 2;
            if truncate {
                bytes.truncate(middle);
            } else {
                bytes[middle] ^= 0x10;
            }
            fs::write(file, bytes).unwrap();
            self.ledger.done("table damaged");
            self.say(&format!("damage {} (cut short: {truncate})", file.display()));
        }
        self.start(at);
    }

    /// Puts back a state from before many deletes, after the changelog has dropped their tombstones.
    pub(crate) fn put_back_old_state(&mut self, at: usize, age: Duration) {
        self.say(&format!("state of {at} is put back to what it was"));
        self.ledger.drawn("old state");
        let before = coverage::count(&self.logs()).0["wipes"];
        // The state of the other instances would be too old as well.
        for other in (0..INSTANCES).filter(|&other| other != at) {
            self.stop(other);
            drop(fs::remove_dir_all(self.state(other)));
        }
        self.stop(at);
        let kept = self.scratch("kept");
        drop(fs::remove_dir_all(&kept));
        copy(&self.state(at), &kept);
        self.start(at);
        self.keep_tombstones("1000");
        self.wait(age);
        self.stop(at);
        fs::remove_dir_all(self.state(at)).unwrap();
        fs::rename(&kept, self.state(at)).unwrap();
        self.start(at);
        self.wait(secs(8));
        self.keep_tombstones("86400000");
        if coverage::count(&self.logs()).0["wipes"] > before {
            self.ledger.traced("old state");
        }
    }
}

/// All SST files below a state directory, sorted. Quarantined stores are skipped.
fn sst_files(state: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(state).into_iter().flatten() {
        let store = entry.unwrap().path();
        // The name of a quarantined store ends in a dot and the cause.
        if store.extension().is_some() {
            continue;
        }
        files.extend(fs::read_dir(store).unwrap().map(|file| file.unwrap().path()));
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "sst"));
    files.sort();
    files
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
