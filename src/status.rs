//! How the stage is doing, for those who ask from outside: what it waits for, how far it has come, how far it lags.
//!
//! Workers report after every turn; whoever serves HTTP reads. Nothing here decides anything.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

/// A worker that has not reported for so long is waiting for something that does not come.
const SILENCE: Duration = Duration::from_secs(45);

/// Bytes on disk by language (or `shared`) and kind of row.
pub type Sizes = Vec<(&'static str, &'static str, u64)>;

/// Where a partition stands.
#[derive(Clone, Debug, PartialEq)]
pub enum PartitionState {
    /// It is ours, and its offset is asked for.
    TakingOver,
    /// Its state is brought to the end of its log.
    Restoring(Restore),
    /// There is no space for its state; it resumes once there is.
    NoSpace,
    /// Its state cannot be opened; it is tried again.
    StateUnusable {
        /// What the store reports.
        why: String,
    },
    /// It is worked on.
    Running(Arc<Sizes>),
    /// A batch of its input cannot be read, from this offset on.
    Unreadable {
        /// The first offset that cannot be read.
        offset: i64,
        /// What the client reports.
        why: String,
    },
    /// Somebody has to decide; the log says what.
    Stopped,
}

samestory_engine::listed! {
/// Where a partition stands, as metrics label it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// [`PartitionState::TakingOver`]
    TakingOver,
    /// [`PartitionState::NoSpace`]
    NoSpace,
    /// [`PartitionState::StateUnusable`]
    StateUnusable,
    /// [`PartitionState::Restoring`]
    Restoring,
    /// [`PartitionState::Running`]
    Running,
    /// [`PartitionState::Unreadable`]
    Unreadable,
    /// [`PartitionState::Stopped`]
    Stopped,
}
}

impl State {
    /// As metrics write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::TakingOver => "taking-over",
            State::NoSpace => "no-space",
            State::StateUnusable => "state-unusable",
            State::Restoring => "restoring",
            State::Running => "running",
            State::Unreadable => "unreadable",
            State::Stopped => "stopped",
        }
    }
}

impl PartitionState {
    /// Without the details.
    pub const fn state(&self) -> State {
        match self {
            PartitionState::TakingOver => State::TakingOver,
            PartitionState::NoSpace => State::NoSpace,
            PartitionState::StateUnusable { .. } => State::StateUnusable,
            PartitionState::Restoring(_) => State::Restoring,
            PartitionState::Running(_) => State::Running,
            PartitionState::Unreadable { .. } => State::Unreadable,
            PartitionState::Stopped => State::Stopped,
        }
    }
}

/// How far a restore has come.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Restore {
    /// Records read from the changelog.
    pub records: u64,
    /// Bytes read from the changelog.
    pub bytes: u64,
    /// Offsets passed.
    pub done: u64,
    /// Offsets there were to pass.
    pub of: u64,
    /// How long it has taken so far.
    pub seconds: f64,
}

impl Restore {
    /// The share that is done.
    pub fn share(&self) -> f64 {
        if self.of == 0 { 1.0 } else { self.done.min(self.of) as f64 / self.of as f64 }
    }

    /// About how long it will take yet; nothing as long as nothing is done.
    pub fn seconds_left(&self) -> Option<f64> {
        let share = self.share();
        (share > 0.0).then(|| (self.seconds * (1.0 - share) / share).round())
    }
}

/// What a worker does before it has partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// It looks for the broker.
    Connecting,
    /// It waits for the group to give it partitions.
    Waiting,
    /// It was given what there was for it, were it nothing.
    Given,
}

/// Why the stage is not ready. As answered by `/readyz`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Reason {
    /// The topics have not been checked yet: the broker has not answered.
    Starting,
    /// It was told to stop.
    Stopping,
    /// No broker answers this worker.
    BrokerAway {
        /// Who.
        worker: String,
    },
    /// The group has not given this worker partitions yet.
    WaitingForPartitions {
        /// Who.
        worker: String,
    },
    /// A partition's offset is asked for.
    TakingOver {
        /// Who.
        worker: String,
        /// Of what.
        partition: i32,
    },
    /// A partition's state is being restored.
    Restoring {
        /// Who.
        worker: String,
        /// Of what.
        partition: i32,
        /// Records read from the changelog.
        records: u64,
        /// Bytes read from the changelog.
        bytes: u64,
        /// How much is done.
        percent: f64,
        /// About how long it will take yet.
        seconds_left: Option<f64>,
    },
    /// There is no space for a partition's state. It resumes once there is; nothing is lost.
    NoSpace {
        /// Who.
        worker: String,
        /// Of what.
        partition: i32,
    },
    /// A partition's state cannot be opened: another process has it, or the disk or its permissions are wrong. It is tried
    /// again.
    StateUnusable {
        /// Who.
        worker: String,
        /// Of what.
        partition: i32,
        /// What the store reports.
        why: String,
    },
    /// The schema registry does not answer: what cannot be read yet waits, and nothing is lost.
    RegistryAway {
        /// Who; nobody yet while the stage starts.
        #[serde(skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
        /// What it said, or that it said nothing.
        why: String,
    },
    /// A batch of a partition's input cannot be read. It is skipped after `input.unreadable_after`.
    Unreadable {
        /// Who.
        worker: String,
        /// Of what.
        partition: i32,
        /// The first offset that cannot be read.
        offset: i64,
        /// What the client reports.
        why: String,
    },
    /// A topic refuses records that cannot be made smaller; somebody has to raise its limits.
    Refused {
        /// Who.
        worker: String,
        /// What the broker says.
        why: String,
    },
    /// A partition stands still until somebody decides; the log says what.
    Stopped {
        /// Who.
        worker: String,
        /// Of what.
        partition: i32,
    },
    /// A thread that the stage needs has panicked or hangs; the process is about to end.
    Failed {
        /// Which thread, and how.
        why: String,
    },
    /// A worker has not come round for a while: it waits for the broker.
    Silent {
        /// Who.
        worker: String,
        /// For how long.
        seconds: u64,
    },
}

/// What is known, and shared.
#[derive(Debug)]
pub struct StatusBoard {
    stop: Arc<AtomicBool>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    started: bool,
    /// Why the start waits for the schema registry.
    registry: Option<String>,
    failed: Option<String>,
    workers: BTreeMap<String, Member>,
}

/// One worker.
#[derive(Clone, Debug)]
pub struct Member {
    /// What it does.
    pub role: &'static str,
    /// Where its partitions stand.
    pub partitions: BTreeMap<i32, PartitionState>,
    /// By partition, records that wait to be read; only where it is known.
    pub lags: BTreeMap<i32, i64>,
    /// By partition, records that are committed and that the broker was asked to delete and still has.
    pub unpurged: BTreeMap<i32, u64>,
    joining: Joining,
    away: bool,
    waits: Option<String>,
    refused: Option<String>,
    heard: Instant,
}

impl StatusBoard {
    /// Nothing is known yet. `stop` says that the process is to end.
    pub fn new(stop: Arc<AtomicBool>) -> StatusBoard {
        StatusBoard { stop, inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The topics are as they must be.
    pub fn started(&self) {
        self.inner().started = true;
    }

    /// The start waits for the schema registry, or does not any more.
    pub fn awaits_registry(&self, why: Option<String>) {
        self.inner().registry = why;
    }

    /// A thread that the stage needs has panicked or hangs. Sets `stop`: the process must end, not live on without it.
    pub fn failed(&self, why: impl Into<String>) {
        self.inner().failed.get_or_insert_with(|| why.into());
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Why the process must be restarted; `/healthz` answers with it.
    pub fn failure(&self) -> Option<String> {
        self.inner().failed.clone()
    }

    /// A value that a thread holds for as long as it runs. If the thread panics, the stage [fails](StatusBoard::failed).
    pub fn guard(self: &Arc<StatusBoard>, thread: &str) -> Guard {
        Guard { board: Arc::clone(self), thread: thread.to_owned() }
    }

    /// A worker begins, perhaps anew: it has no partitions.
    pub fn begins(&self, worker: &str, role: &'static str, joining: Joining) {
        let member = Member {
            role,
            partitions: BTreeMap::new(),
            lags: BTreeMap::new(),
            unpurged: BTreeMap::new(),
            joining,
            away: false,
            waits: None,
            refused: None,
            heard: Instant::now(),
        };
        self.inner().workers.insert(worker.to_owned(), member);
    }

    /// The group has given a worker what there is for it.
    pub fn given(&self, worker: &str) {
        if let Some(member) = self.inner().workers.get_mut(worker) {
            member.joining = Joining::Given;
        }
    }

    /// A worker waits for the schema registry, or does not any more.
    pub fn waits(&self, worker: &str, why: Option<String>) {
        if let Some(member) = self.inner().workers.get_mut(worker) {
            member.waits = why;
            member.heard = Instant::now();
        }
    }

    /// Records of a worker's partitions that could not be deleted from the input.
    pub fn unpurged(&self, worker: &str, records: BTreeMap<i32, u64>) {
        if let Some(member) = self.inner().workers.get_mut(worker) {
            member.unpurged = records;
        }
    }

    /// A topic refuses what a worker has to write, or does not any more.
    pub fn refuses(&self, worker: &str, why: Option<String>) {
        if let Some(member) = self.inner().workers.get_mut(worker) {
            member.refused = why;
            member.heard = Instant::now();
        }
    }

    /// A worker has come round: this is how its partitions stand.
    pub fn reports(
        &self,
        worker: &str,
        partitions: impl IntoIterator<Item = (i32, PartitionState)>,
        lags: BTreeMap<i32, i64>,
        away: bool,
    ) {
        if let Some(member) = self.inner().workers.get_mut(worker) {
            member.partitions = partitions.into_iter().collect();
            member.lags = lags;
            member.away = away;
            member.heard = Instant::now();
        }
    }

    /// The workers as they are now.
    pub fn workers(&self) -> Vec<Member> {
        self.inner().workers.values().cloned().collect()
    }

    /// Why it is not ready; nothing where it is.
    pub fn reasons(&self) -> Vec<Reason> {
        let inner = self.inner();
        let mut reasons = Vec::new();
        if self.stop.load(Ordering::Relaxed) {
            reasons.push(Reason::Stopping);
        }
        if let Some(why) = inner.failed.clone() {
            reasons.push(Reason::Failed { why });
        }
        match inner.registry.clone() {
            _ if inner.started => {}
            None => reasons.push(Reason::Starting),
            Some(why) => reasons.push(Reason::RegistryAway { worker: None, why }),
        }
        for (name, member) in &inner.workers {
            member.complain(name, &mut reasons);
        }
        reasons
    }
}

/// Fails the stage when the thread that holds it panics.
#[derive(Debug)]
#[must_use = "move it into the thread"]
pub struct Guard {
    board: Arc<StatusBoard>,
    thread: String,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.board.failed(format!("thread {} panicked", self.thread));
        }
    }
}

impl Member {
    fn complain(&self, name: &str, reasons: &mut Vec<Reason>) {
        let worker = || name.to_owned();
        if self.away || self.joining == Joining::Connecting {
            reasons.push(Reason::BrokerAway { worker: worker() });
        } else if self.heard.elapsed() > SILENCE {
            reasons.push(Reason::Silent { worker: worker(), seconds: self.heard.elapsed().as_secs() });
        }
        if let Some(why) = self.waits.clone() {
            reasons.push(Reason::RegistryAway { worker: Some(worker()), why });
        }
        if let Some(why) = self.refused.clone() {
            reasons.push(Reason::Refused { worker: worker(), why });
        }
        if self.joining == Joining::Waiting {
            reasons.push(Reason::WaitingForPartitions { worker: worker() });
        }
        for (&partition, standing) in &self.partitions {
            let worker = worker();
            match standing {
                PartitionState::Running(_) => {}
                PartitionState::TakingOver => reasons.push(Reason::TakingOver { worker, partition }),
                PartitionState::NoSpace => reasons.push(Reason::NoSpace { worker, partition }),
                PartitionState::StateUnusable { why } => {
                    reasons.push(Reason::StateUnusable { worker, partition, why: why.clone() });
                }
                PartitionState::Unreadable { offset, why } => {
                    let (offset, why) = (*offset, why.clone());
                    reasons.push(Reason::Unreadable { worker, partition, offset, why });
                }
                PartitionState::Stopped => reasons.push(Reason::Stopped { worker, partition }),
                PartitionState::Restoring(restore) => reasons.push(Reason::Restoring {
                    worker,
                    partition,
                    records: restore.records,
                    bytes: restore.bytes,
                    percent: (restore.share() * 1000.0).round() / 10.0,
                    seconds_left: restore.seconds_left(),
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> StatusBoard {
        let board = StatusBoard::new(Arc::default());
        board.started();
        board.begins("w", "match", Joining::Waiting);
        board
    }

    #[test]
    fn it_is_ready_when_every_worker_has_what_there_is_for_it() {
        let board = board();
        assert_eq!(board.reasons(), [Reason::WaitingForPartitions { worker: "w".into() }]);
        // A spare member of the group has no partitions and nothing to wait for.
        board.given("w");
        assert_eq!(board.reasons(), []);
        board.reports("w", [(3, PartitionState::Running(Arc::default()))], BTreeMap::new(), false);
        assert_eq!(board.reasons(), []);
    }

    #[test]
    fn what_stands_in_the_way_is_said_with_its_numbers() {
        let board = board();
        board.given("w");
        let restore = Restore { records: 250, bytes: 9000, done: 300, of: 1200, seconds: 2.0 };
        let standings = [
            (0, PartitionState::Restoring(restore)),
            (1, PartitionState::Stopped),
            (2, PartitionState::TakingOver),
        ];
        board.reports("w", standings, BTreeMap::new(), true);
        let worker = || "w".to_owned();
        assert_eq!(
            board.reasons(),
            [
                Reason::BrokerAway { worker: worker() },
                Reason::Restoring {
                    worker: worker(),
                    partition: 0,
                    records: 250,
                    bytes: 9000,
                    percent: 25.0,
                    seconds_left: Some(6.0),
                },
                Reason::Stopped { worker: worker(), partition: 1 },
                Reason::TakingOver { worker: worker(), partition: 2 },
            ]
        );
    }

    #[test]
    fn before_the_topics_are_checked_and_after_a_stop_it_is_not_ready() {
        let stop = Arc::new(AtomicBool::new(false));
        let board = StatusBoard::new(Arc::clone(&stop));
        assert_eq!(board.reasons(), [Reason::Starting]);
        board.started();
        assert_eq!(board.reasons(), []);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(board.reasons(), [Reason::Stopping]);
    }

    // A registry that was away at the start showed as `starting`, whose runbook entry sends people to the broker; a state
    // directory that could not be opened showed as `taking-over`.
    #[test]
    fn what_a_start_or_a_takeover_waits_for_is_named() {
        let board = StatusBoard::new(Arc::default());
        board.awaits_registry(Some("connection refused".into()));
        let away = Reason::RegistryAway { worker: None, why: "connection refused".into() };
        assert_eq!(board.reasons(), [away]);
        board.awaits_registry(None);
        assert_eq!(board.reasons(), [Reason::Starting]);
        board.started();
        board.begins("w", "match", Joining::Given);
        let why = || "another process has it".to_owned();
        board.reports("w", [(4, PartitionState::StateUnusable { why: why() })], BTreeMap::new(), false);
        let unusable = Reason::StateUnusable { worker: "w".into(), partition: 4, why: why() };
        assert_eq!(board.reasons(), [unusable]);
    }

    #[test]
    fn a_thread_that_panics_fails_the_stage_and_one_that_ends_does_not() {
        let stop = Arc::new(AtomicBool::new(false));
        let board = Arc::new(StatusBoard::new(Arc::clone(&stop)));
        board.started();
        let guard = board.guard("calm");
        std::thread::spawn(move || drop(guard)).join().unwrap();
        assert_eq!((board.failure(), stop.load(Ordering::Relaxed)), (None, false));
        let guard = board.guard("purge");
        let thread = std::thread::spawn(move || {
            let _guard = guard;
            panic!("a test");
        });
        assert!(thread.join().is_err());
        let why = "thread purge panicked".to_owned();
        assert_eq!((board.failure(), stop.load(Ordering::Relaxed)), (Some(why.clone()), true));
        assert_eq!(board.reasons(), [Reason::Stopping, Reason::Failed { why }]);
    }

    #[test]
    fn a_restore_that_has_nothing_to_do_is_done() {
        assert_eq!(Restore::default().share(), 1.0);
        assert_eq!(Restore { of: 10, ..Restore::default() }.seconds_left(), None);
    }
}
