//! The status of the stage as `/readyz`, `/healthz` and `/metrics` show it: what it waits for, restore
//! progress, lag.
//!
//! Workers report to the [`StatusBoard`] after every turn, and the HTTP handlers read from it. Nothing here
//! influences processing, except that [`StatusBoard::failed`] stops the process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::formats::Pause;
use crate::stop::Stop;
use samestory_eval::Accuracy;
use serde::Serialize;

/// A worker that has not reported for this long counts as stuck.
const SILENCE: Duration = Duration::from_secs(45);

/// Bytes on disk by language (or `shared`) and kind of row.
pub type Sizes = Vec<(&'static str, &'static str, u64)>;

/// The state of an assigned partition.
#[derive(Clone, Debug, PartialEq)]
pub enum PartitionState {
    /// Assigned; its committed offset is being fetched.
    TakingOver,
    /// Its state is being restored up to the end of its changelog.
    Restoring(Restore),
    /// The disk is too full for its state; it resumes once there is space.
    NoSpace,
    /// Its state cannot be opened; the worker retries.
    StateUnusable {
        /// The error of the store.
        why: String,
    },
    /// It is being processed.
    Running(Arc<Sizes>),
    /// A batch of its input cannot be read.
    Unreadable {
        /// The first offset that cannot be read.
        offset: i64,
        /// The error of the Kafka client.
        why: String,
    },
    /// It is stopped until an operator decides; the log says what about.
    Stopped,
}

samestory_engine::listed! {
/// [`PartitionState`] without its details, as the `state` label of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateLabel {
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

impl StateLabel {
    /// The value of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            StateLabel::TakingOver => "taking-over",
            StateLabel::NoSpace => "no-space",
            StateLabel::StateUnusable => "state-unusable",
            StateLabel::Restoring => "restoring",
            StateLabel::Running => "running",
            StateLabel::Unreadable => "unreadable",
            StateLabel::Stopped => "stopped",
        }
    }
}

impl PartitionState {
    /// The label of this state.
    pub const fn state(&self) -> StateLabel {
        match self {
            PartitionState::TakingOver => StateLabel::TakingOver,
            PartitionState::NoSpace => StateLabel::NoSpace,
            PartitionState::StateUnusable { .. } => StateLabel::StateUnusable,
            PartitionState::Restoring(_) => StateLabel::Restoring,
            PartitionState::Running(_) => StateLabel::Running,
            PartitionState::Unreadable { .. } => StateLabel::Unreadable,
            PartitionState::Stopped => StateLabel::Stopped,
        }
    }
}

/// The progress of a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Restore {
    /// Records read from the changelog.
    pub records: u64,
    /// Bytes read from the changelog.
    pub bytes: u64,
    /// Offsets read so far.
    pub done: u64,
    /// Offsets to read in total.
    pub of: u64,
    /// Duration so far.
    pub seconds: f64,
}

impl Restore {
    /// The fraction that is done.
    pub fn share(&self) -> f64 {
        if self.of == 0 { 1.0 } else { self.done.min(self.of) as f64 / self.of as f64 }
    }

    /// The estimated remaining time; none before the first record.
    pub fn seconds_left(&self) -> Option<f64> {
        let share = self.share();
        (share > 0.0).then(|| (self.seconds * (1.0 - share) / share).round())
    }
}

/// How far a worker has come in joining its consumer group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// It is connecting to the broker.
    Connecting,
    /// It waits for an assignment.
    Waiting,
    /// It has an assignment, which may be empty.
    Assigned,
}

/// Why the stage is not ready, as `/readyz` reports it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum NotReady {
    /// The topics have not been checked yet: the broker has not answered.
    Starting,
    /// The process is shutting down.
    Stopping,
    /// The worker cannot reach a broker.
    BrokerAway {
        /// The worker.
        worker: String,
    },
    /// The worker has no assignment yet.
    WaitingForPartitions {
        /// The worker.
        worker: String,
    },
    /// The committed offset of a partition is being fetched.
    TakingOver {
        /// The worker.
        worker: String,
        /// The partition.
        partition: i32,
    },
    /// A partition's state is being restored.
    Restoring {
        /// The worker.
        worker: String,
        /// The partition.
        partition: i32,
        /// Records read from the changelog.
        records: u64,
        /// Bytes read from the changelog.
        bytes: u64,
        /// Progress in percent.
        percent: f64,
        /// The estimated remaining time.
        seconds_left: Option<f64>,
    },
    /// The disk is too full for a partition's state. The partition resumes once there is space; nothing is
    /// lost.
    NoSpace {
        /// The worker.
        worker: String,
        /// The partition.
        partition: i32,
    },
    /// A partition's state cannot be opened: another process has it open, or the disk or its permissions are
    /// wrong. The worker retries.
    StateUnusable {
        /// The worker.
        worker: String,
        /// The partition.
        partition: i32,
        /// The error of the store.
        why: String,
    },
    /// The schema registry does not answer. Records that need it wait; nothing is lost.
    RegistryAway {
        /// The worker; none while the stage is starting.
        #[serde(skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
        /// The error of the request.
        why: String,
    },
    /// A batch of a partition's input cannot be read. It is skipped after `input.unreadable_after`.
    Unreadable {
        /// The worker.
        worker: String,
        /// The partition.
        partition: i32,
        /// The first offset that cannot be read.
        offset: i64,
        /// The error of the Kafka client.
        why: String,
    },
    /// A topic refuses a record that cannot be made smaller; an operator must raise the topic's limits.
    Refused {
        /// The worker.
        worker: String,
        /// The error of the broker.
        why: String,
    },
    /// A partition is stopped until an operator decides; the log says what about.
    Stopped {
        /// The worker.
        worker: String,
        /// The partition.
        partition: i32,
    },
    /// A thread that the stage needs has panicked or hangs; the process is about to exit.
    Failed {
        /// The thread, and what happened to it.
        why: String,
    },
    /// A worker has not finished a turn for a while, usually because it waits for the broker.
    Silent {
        /// The worker.
        worker: String,
        /// Seconds since its last report.
        seconds: u64,
    },
}

/// How far a new generation has followed the one before, which still publishes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Following {
    /// The generation before.
    pub generation: u32,
    /// Whether all partitions of this process have caught up.
    pub caught_up: bool,
    /// The partitions that have not.
    pub behind: Vec<i32>,
}

/// The shared status of all workers.
#[derive(Debug)]
pub struct StatusBoard {
    stop: Stop,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    started: bool,
    /// Why startup waits for the schema registry.
    registry: Option<String>,
    failed: Option<String>,
    paused: Option<Pause>,
    accuracy: Measured,
    workers: BTreeMap<String, Member>,
}

/// The accuracy of verdicts on articles that people have judged, as last measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// On pairs that people have labelled.
    pub pairs: Option<Accuracy>,
    /// On articles with an expected verdict.
    pub articles: Option<Accuracy>,
}

/// The status of one worker.
#[derive(Clone, Debug)]
pub struct Member {
    /// `route`, `match` or `direct`.
    pub role: &'static str,
    /// The state of its partitions.
    pub partitions: BTreeMap<i32, PartitionState>,
    /// By partition, records not committed yet, where known.
    pub lags: BTreeMap<i32, i64>,
    /// By partition, committed records that the broker still has after a purge.
    pub unpurged: BTreeMap<i32, u64>,
    /// In a new generation that follows the one before: by partition, whether it has caught up.
    pub follows: BTreeMap<i32, bool>,
    /// The generation that is followed.
    followed: Option<u32>,
    joining: Joining,
    broker_away: bool,
    registry_away: Option<String>,
    refused: Option<String>,
    last_report: Instant,
}

impl StatusBoard {
    /// An empty board. `stop` is the request to stop this process.
    pub fn new(stop: Stop) -> StatusBoard {
        StatusBoard { stop, inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Startup is complete: the topics have been checked.
    pub fn started(&self) {
        self.inner().started = true;
    }

    /// Sets or clears the reason why startup waits for the schema registry.
    pub fn awaits_registry(&self, why: Option<String>) {
        self.inner().registry = why;
    }

    /// Reports that a thread which the stage needs has panicked or hangs, and requests the stop: the process must
    /// not run on without it.
    pub fn failed(&self, why: impl Into<String>) {
        self.inner().failed.get_or_insert_with(|| why.into());
        self.stop.request();
    }

    /// The reason why the process must be restarted, as `/healthz` reports it.
    pub fn failure(&self) -> Option<String> {
        self.inner().failed.clone()
    }

    /// A guard for a thread to hold while it runs. If the thread panics, the stage
    /// [fails](StatusBoard::failed).
    pub fn guard(self: &Arc<StatusBoard>, thread: &str) -> Guard {
        Guard { board: Arc::clone(self), thread: thread.to_owned() }
    }

    /// A worker starts or restarts, without partitions.
    pub fn begins(&self, worker: &str, role: &'static str, joining: Joining) {
        let member = Member {
            role,
            partitions: BTreeMap::new(),
            lags: BTreeMap::new(),
            unpurged: BTreeMap::new(),
            follows: BTreeMap::new(),
            followed: None,
            joining,
            broker_away: false,
            registry_away: None,
            refused: None,
            last_report: Instant::now(),
        };
        self.inner().workers.insert(worker.to_owned(), member);
    }

    /// A worker has received its assignment, which may be empty.
    pub fn assigned(&self, worker: &str) {
        if let Some(member) = self.inner().workers.get_mut(worker) {
            member.joining = Joining::Assigned;
        }
    }

    /// Sets or clears the reason why a worker waits for the schema registry.
    pub fn waits(&self, worker: &str, why: Option<String>) {
        if let Some(member) = self.inner().workers.get_mut(worker) {
            member.registry_away = why;
            member.last_report = Instant::now();
        }
    }

    /// Sets, by partition, the number of committed records that the broker still has after a purge.
    pub fn unpurged(&self, worker: &str, records: BTreeMap<i32, u64>) {
        if let Some(member) = self.inner().workers.get_mut(worker) {
            member.unpurged = records;
        }
    }

    /// A partition of a new generation that publishes nothing yet: whether it has caught up with the old generation; `None`
    /// once that has ended.
    pub fn follows(&self, worker: &str, generation: u32, partition: i32, caught_up: Option<bool>) {
        if let Some(member) = self.inner().workers.get_mut(worker) {
            member.followed = caught_up.map(|_| generation);
            match caught_up {
                Some(caught_up) => drop(member.follows.insert(partition, caught_up)),
                None => member.follows.clear(),
            }
        }
    }

    /// How far this process has followed the generation before; `None` if it follows none.
    pub fn following(&self) -> Option<Following> {
        let inner = self.inner();
        let mut following = None::<Following>;
        for member in inner.workers.values() {
            let Some(generation) = member.followed else { continue };
            let all = following.get_or_insert_with(|| Following {
                generation,
                caught_up: true,
                behind: Vec::new(),
            });
            // A revoked partition is another process's.
            let behind = member
                .follows
                .iter()
                .filter(|(partition, caught_up)| !**caught_up && member.partitions.contains_key(partition));
            all.behind.extend(behind.map(|(&partition, _)| partition));
            all.caught_up = all.behind.is_empty();
        }
        following
    }

    /// Sets or clears the pause that an operator asked for.
    pub fn paused(&self, pause: Option<Pause>) {
        self.inner().paused = pause;
    }

    /// The pause that an operator asked for.
    pub fn pause(&self) -> Option<Pause> {
        self.inner().paused.clone()
    }

    /// Sets the accuracy on judged articles; nothing of it while it cannot be measured.
    pub fn measured(&self, accuracy: Measured) {
        self.inner().accuracy = accuracy;
    }

    /// The accuracy on judged articles.
    pub fn accuracy(&self) -> Measured {
        self.inner().accuracy
    }

    /// Sets or clears the reason why a topic refuses a worker's records.
    pub fn refuses(&self, worker: &str, why: Option<String>) {
        if let Some(member) = self.inner().workers.get_mut(worker) {
            member.refused = why;
            member.last_report = Instant::now();
        }
    }

    /// A worker reports its partitions after a turn. `broker_away` means that it cannot reach a broker.
    pub fn reports(
        &self,
        worker: &str,
        partitions: impl IntoIterator<Item = (i32, PartitionState)>,
        lags: BTreeMap<i32, i64>,
        broker_away: bool,
    ) {
        if let Some(member) = self.inner().workers.get_mut(worker) {
            member.partitions = partitions.into_iter().collect();
            member.lags = lags;
            member.broker_away = broker_away;
            member.last_report = Instant::now();
        }
    }

    /// A snapshot of all workers.
    pub fn workers(&self) -> Vec<Member> {
        self.inner().workers.values().cloned().collect()
    }

    /// The reasons why the stage is not ready; empty if it is.
    pub fn reasons(&self) -> Vec<NotReady> {
        let inner = self.inner();
        let mut reasons = Vec::new();
        if self.stop.is_requested() {
            reasons.push(NotReady::Stopping);
        }
        if let Some(why) = inner.failed.clone() {
            reasons.push(NotReady::Failed { why });
        }
        match inner.registry.clone() {
            _ if inner.started => {}
            None => reasons.push(NotReady::Starting),
            Some(why) => reasons.push(NotReady::RegistryAway { worker: None, why }),
        }
        for (name, member) in &inner.workers {
            member.push_reasons(name, &mut reasons);
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
    fn push_reasons(&self, name: &str, reasons: &mut Vec<NotReady>) {
        let worker = || name.to_owned();
        if self.broker_away || self.joining == Joining::Connecting {
            reasons.push(NotReady::BrokerAway { worker: worker() });
        } else if self.last_report.elapsed() > SILENCE {
            reasons
                .push(NotReady::Silent { worker: worker(), seconds: self.last_report.elapsed().as_secs() });
        }
        if let Some(why) = self.registry_away.clone() {
            reasons.push(NotReady::RegistryAway { worker: Some(worker()), why });
        }
        if let Some(why) = self.refused.clone() {
            reasons.push(NotReady::Refused { worker: worker(), why });
        }
        if self.joining == Joining::Waiting {
            reasons.push(NotReady::WaitingForPartitions { worker: worker() });
        }
        for (&partition, state) in &self.partitions {
            let worker = worker();
            match state {
                PartitionState::Running(_) => {}
                PartitionState::TakingOver => reasons.push(NotReady::TakingOver { worker, partition }),
                PartitionState::NoSpace => reasons.push(NotReady::NoSpace { worker, partition }),
                PartitionState::StateUnusable { why } => {
                    reasons.push(NotReady::StateUnusable { worker, partition, why: why.clone() });
                }
                PartitionState::Unreadable { offset, why } => {
                    let (offset, why) = (*offset, why.clone());
                    reasons.push(NotReady::Unreadable { worker, partition, offset, why });
                }
                PartitionState::Stopped => reasons.push(NotReady::Stopped { worker, partition }),
                PartitionState::Restoring(restore) => reasons.push(NotReady::Restoring {
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
        let board = StatusBoard::new(Stop::default());
        board.started();
        board.begins("w", "match", Joining::Waiting);
        board
    }

    #[test]
    fn it_is_ready_when_every_worker_has_its_assignment() {
        let board = board();
        assert_eq!(board.reasons(), [NotReady::WaitingForPartitions { worker: "w".into() }]);
        // A spare member of the group has an empty assignment and nothing to wait for.
        board.assigned("w");
        assert_eq!(board.reasons(), []);
        board.reports("w", [(3, PartitionState::Running(Arc::default()))], BTreeMap::new(), false);
        assert_eq!(board.reasons(), []);
    }

    #[test]
    fn each_reason_carries_its_numbers() {
        let board = board();
        board.assigned("w");
        let restore = Restore { records: 250, bytes: 9000, done: 300, of: 1200, seconds: 2.0 };
        let partitions = [
            (0, PartitionState::Restoring(restore)),
            (1, PartitionState::Stopped),
            (2, PartitionState::TakingOver),
        ];
        board.reports("w", partitions, BTreeMap::new(), true);
        let worker = || "w".to_owned();
        assert_eq!(
            board.reasons(),
            [
                NotReady::BrokerAway { worker: worker() },
                NotReady::Restoring {
                    worker: worker(),
                    partition: 0,
                    records: 250,
                    bytes: 9000,
                    percent: 25.0,
                    seconds_left: Some(6.0),
                },
                NotReady::Stopped { worker: worker(), partition: 1 },
                NotReady::TakingOver { worker: worker(), partition: 2 },
            ]
        );
    }

    #[test]
    fn it_is_not_ready_before_the_topics_are_checked_or_after_a_stop() {
        let stop = Stop::default();
        let board = StatusBoard::new(stop.clone());
        assert_eq!(board.reasons(), [NotReady::Starting]);
        board.started();
        assert_eq!(board.reasons(), []);
        stop.request();
        assert_eq!(board.reasons(), [NotReady::Stopping]);
    }

    // A schema registry that was unreachable at startup showed as `starting`, whose runbook entry points to
    // the broker; a state directory that could not be opened showed as `taking-over`.
    #[test]
    fn a_waiting_start_or_takeover_names_its_cause() {
        let board = StatusBoard::new(Stop::default());
        board.awaits_registry(Some("connection refused".into()));
        let away = NotReady::RegistryAway { worker: None, why: "connection refused".into() };
        assert_eq!(board.reasons(), [away]);
        board.awaits_registry(None);
        assert_eq!(board.reasons(), [NotReady::Starting]);
        board.started();
        board.begins("w", "match", Joining::Assigned);
        let why = || "another process has it".to_owned();
        board.reports("w", [(4, PartitionState::StateUnusable { why: why() })], BTreeMap::new(), false);
        let unusable = NotReady::StateUnusable { worker: "w".into(), partition: 4, why: why() };
        assert_eq!(board.reasons(), [unusable]);
    }

    #[test]
    fn only_a_thread_that_panics_fails_the_stage() {
        let stop = Stop::default();
        let board = Arc::new(StatusBoard::new(stop.clone()));
        board.started();
        let guard = board.guard("calm");
        std::thread::spawn(move || drop(guard)).join().unwrap();
        assert_eq!((board.failure(), stop.is_requested()), (None, false));
        let guard = board.guard("purge");
        let thread = std::thread::spawn(move || {
            let _guard = guard;
            panic!("a test");
        });
        assert!(thread.join().is_err());
        let why = "thread purge panicked".to_owned();
        assert_eq!((board.failure(), stop.is_requested()), (Some(why.clone()), true));
        assert_eq!(board.reasons(), [NotReady::Stopping, NotReady::Failed { why }]);
    }

    #[test]
    fn an_empty_restore_is_done() {
        assert_eq!(Restore::default().share(), 1.0);
        assert_eq!(Restore { of: 10, ..Restore::default() }.seconds_left(), None);
    }
}
