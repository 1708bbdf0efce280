//! The stage on a Kafka bus: exactly-once verdicts.
//!
//! - [`clients`](self): how clients are set up; `source`: the group's member; `txn`: transactions
//! - `worker`: the turn and the loop around it, the same for every role; `limits` and `suspects`: what topics accept, and
//!   how a refused record is found
//! - `route`: raw article → the partition where its language lives; `judge`: look-up → verdict → state
//! - `takeover` and `restore`: how a partition changes hands; `generations`: how one generation of state follows another
//! - `decode`, `payload`, `routed`, `outgoing`: bytes in, between, and out; `values`: the registry at the start

mod clients;
pub mod control;
mod decode;
mod faults;
mod finish;
pub mod follow;
pub mod generations;
mod ids;
mod intake;
mod judge;
mod leftovers;
mod limits;
mod measure;
mod outgoing;
mod payload;
pub mod probe;
pub mod produce;
mod purge;
mod record;
mod recorded;
#[cfg(test)]
mod relocation_tests;
#[doc(hidden)]
pub mod replay;
mod restore;
mod route;
mod routed;
mod routing;
mod source;
mod stage;
mod suspects;
mod takeover;
pub mod topics;
mod txn;
mod unreadable;
mod values;
mod worker;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::error::KafkaError;

use crate::config::{Bus, Config, Mode};
use crate::detect::{EmptyUpdate, Engine};
use crate::health::Board;
use crate::model::TopicId;
use crate::registry::Registry;
use crate::store::{Ahead, Budget, RocksOptions, Shelf};

use clients::{Quiet, Worker};
use decode::Decoder;
use generations::Generations;
use intake::Intake;
use judge::{Attempts, Judge};
use leftovers::Holdings;
use limits::Limits;
use outgoing::{Wire, Writer};
use recorded::Recorded;
use restore::{Restorer, Slots};
use route::Route;
use routing::Routing;
use takeover::{Decisions, Disagreed};
use values::Does;
use worker::Reins;

pub use clients::{PropertyError, Role, check_properties};
pub use takeover::{Accept, PartitionOffset};
pub use topics::{TopicError, TopicProblem};
pub use values::{ValueError, misfits};

/// What the client library says is wrong.
pub type ClientError = KafkaError;

/// Version of the librdkafka that is linked in.
pub fn client_version() -> String {
    rdkafka::util::get_rdkafka_version().1
}

/// Why the stage cannot go on. What is committed is right, and a restart goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The client library cannot go on.
    #[error("the Kafka client cannot go on: {0}")]
    Client(KafkaError),
    /// Two processes have one name.
    #[error(
        "another process uses the instance id \"{instance}\"; nothing is lost, that one goes on. Give each process its own stage.instance (or SAMESTORY_INSTANCE)"
    )]
    Usurped {
        /// The name.
        instance: String,
    },
    /// The topics are not as they must be.
    #[error(transparent)]
    Topics(#[from] TopicError),
    /// The schema registry does not have what is needed, or field paths lead nowhere.
    #[error(transparent)]
    Values(#[from] ValueError),
    /// State was made with other settings than route would write for.
    #[error("{0}")]
    Misfit(String),
    /// It was begun anew too often.
    #[error("gave up after beginning anew {losses} times, the last time because: {why}")]
    Hopeless {
        /// How often.
        losses: u32,
        /// What was the matter.
        why: String,
    },
    /// A thread of the stage panicked, or a store failed too often in a row.
    #[error("{why}; what is committed is right, and a restart resumes from there")]
    Panicked {
        /// Which, and how.
        why: String,
    },
    /// A transaction does not end, although every call of it has a time limit, and nothing can interrupt it. The worker's
    /// thread is still there, so the process must exit.
    #[error("the transaction of worker {worker} does not end; a restart resumes from what is committed")]
    Stuck {
        /// Whose.
        worker: String,
    },
    /// The system has no thread for a worker.
    #[error("cannot start a worker thread")]
    Thread(#[source] std::io::Error),
    /// A role that the mode does not have.
    #[error("mode \"direct\" has one stage; --role is for mode \"routed\"")]
    NoSuchRole,
}

/// How it is going, for logs and tests.
#[derive(Debug, Default)]
pub struct Progress {
    committed: AtomicU64,
    records: AtomicU64,
    aborted: AtomicU64,
    lost: AtomicU64,
    /// Transactions that are open, by worker, and since when.
    open: Mutex<BTreeMap<String, Instant>>,
}

impl Progress {
    fn committed(&self, records: usize) {
        self.committed.fetch_add(1, Ordering::Relaxed);
        self.records.fetch_add(records as u64, Ordering::Relaxed);
    }

    fn aborted(&self) {
        self.aborted.fetch_add(1, Ordering::Relaxed);
    }

    fn lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    fn opened(&self, worker: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(worker.to_owned(), Instant::now());
    }

    fn closed(&self, worker: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(worker);
    }

    /// A worker whose transaction has been open for longer than this. The client library has calls that do not keep
    /// their time limit while a coordinator is away, and nothing can interrupt them.
    fn stuck(&self, limit: Duration) -> Option<String> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().find(|(_, since)| since.elapsed() > limit).map(|(worker, _)| worker.clone())
    }

    fn say(&self, message: &str) {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (committed, records) = (of(&self.committed), of(&self.records));
        tracing::info!(committed, records, aborted = of(&self.aborted), lost = of(&self.lost), "{message}");
    }
}

/// Runs the stage until `stop` is set, tells the board how it is going, and shows its stores on the shelf.
///
/// # Errors
/// See [`RunError`].
pub fn run(
    config: &Config,
    role: Option<Role>,
    accept: Accept,
    stop: &Arc<AtomicBool>,
    board: &Arc<Board>,
    shelf: &Arc<Shelf>,
) -> Result<(), RunError> {
    let bus = &config.bus;
    let roles: &[Role] = match (bus.mode, role) {
        (Mode::Routed, None) => &[Role::Route, Role::Match],
        (Mode::Routed, Some(Role::Route)) => &[Role::Route],
        (Mode::Routed, Some(Role::Match)) => &[Role::Match],
        (Mode::Direct, None) => &[Role::Direct],
        (Mode::Routed, Some(Role::Direct)) | (Mode::Direct, Some(_)) => return Err(RunError::NoSuchRole),
    };
    #[cfg(feature = "faults")]
    if faults::mutant("panic-guard-off") {
        crate::event::leave_unguarded();
    }
    let counts = topics::await_checked(bus, stop)?;
    let Some(counts) = counts else { return Ok(()) };
    if roles.contains(&Role::Route) {
        recorded::await_fitting(config, counts.routed, stop)?;
    }
    let registry = values::registry(config)?;
    let does = Does {
        reads: roles.iter().any(|&role| role != Role::Match),
        writes: roles.iter().any(|&role| role != Role::Route),
    };
    let wire = values::await_ready(config, registry.as_deref(), does, stop, board)?;
    let Some(wire) = wire else { return Ok(()) };
    let values = Values { registry, wire };
    let limits = Limits::await_read(bus, stop);
    measure::begin(roles);
    shelf.holds_some_of(counts.states);
    board.started();
    let progress = Arc::new(Progress::default());
    let reins = Reins {
        stop: Arc::clone(stop),
        progress: Arc::clone(&progress),
        board: Arc::clone(board),
        shelf: Arc::clone(shelf),
        limits: Arc::new(Mutex::new(Arc::new(limits))),
        slots: Slots::default(),
        holdings: Holdings::default(),
    };
    let (config, values, budget) = (Arc::new(config.clone()), Arc::new(values), Budget::default());
    if does.writes {
        let (state, changelog) = (bus.state.clone(), bus.topics.changelog.clone());
        let (holdings, guard) = (reins.holdings.clone(), board.guard("leftovers"));
        leftovers::start(state, changelog, counts.tombstones, holdings, Arc::clone(stop), guard)
            .map_err(RunError::Thread)?;
    }
    let mut threads = Vec::new();
    let mut failed = None;
    for &role in roles {
        // Partitions of two topics have the same numbers, so each role has decisions of its own.
        let accept = Decisions::new(accept.clone());
        for number in 0..bus.workers {
            let worker = Worker { role, number };
            let name = worker.id(bus);
            let guard = board.guard(&name);
            let (reins, budget) = (reins.clone(), budget.clone());
            let (config, values, accept) = (Arc::clone(&config), Arc::clone(&values), accept.clone());
            let work = move || {
                let _guard = guard;
                let outcome = match role {
                    Role::Route => route(&config, &worker, &accept, &reins, counts.routed, &values),
                    Role::Match | Role::Direct => {
                        judge(&config, &worker, &accept, &reins, &counts, &budget, &values)
                    }
                };
                if outcome.is_err() {
                    // One that cannot go on takes the others along: the process is restarted as a whole.
                    reins.stop.store(true, Ordering::Relaxed);
                }
                outcome
            };
            match std::thread::Builder::new().name(name.clone()).spawn(work) {
                Ok(thread) => threads.push((name, thread)),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    failed.get_or_insert(RunError::Thread(error));
                }
            }
        }
    }
    let outcome = supervise(threads, bus, &progress, board);
    progress.say("ended");
    match failed {
        Some(error) => Err(error),
        None => outcome,
    }
}

/// Waits for all workers and returns the first failure. A worker that hangs inside librdkafka cannot be joined: it is left
/// behind, and the caller ends the process.
fn supervise(
    threads: Vec<(String, JoinHandle<Result<(), RunError>>)>,
    bus: &Bus,
    progress: &Progress,
    board: &Board,
) -> Result<(), RunError> {
    const LOOK: Duration = Duration::from_millis(20);
    let limit = (bus.transaction_timeout * 3 + Duration::from_secs(30)).as_millis() as u64;
    let limit = Duration::from_millis(faults::number("SAMESTORY_STUCK_MS", limit));
    let mut said = Instant::now();
    while !threads.iter().all(|(_, thread)| thread.is_finished()) {
        std::thread::sleep(LOOK);
        if let Some(worker) = progress.stuck(limit) {
            board.failed(format!("the transaction of worker {worker} does not end"));
            let others = || threads.iter().filter(|(name, _)| *name != worker);
            let deadline = Instant::now() + bus.shutdown / 2;
            while Instant::now() < deadline && !others().all(|(_, thread)| thread.is_finished()) {
                std::thread::sleep(LOOK);
            }
            return Err(RunError::Stuck { worker });
        }
        if said.elapsed() > Duration::from_secs(60) {
            said = Instant::now();
            progress.say("so far");
        }
    }
    let mut outcome = Ok(());
    for (name, thread) in threads {
        let panicked = |_| Err(RunError::Panicked { why: format!("worker {name} panicked") });
        outcome = outcome.and(thread.join().unwrap_or_else(panicked));
    }
    // Another thread may have failed the stage; its workers then ended as if they had been asked to.
    match board.failure() {
        Some(why) if outcome.is_ok() => Err(RunError::Panicked { why }),
        _ => outcome,
    }
}

/// How values are read and written, found out at the start.
struct Values {
    registry: Option<Arc<Registry>>,
    wire: Wire,
}

fn writer(bus: &Bus, values: &Values, reins: &Reins) -> Writer {
    Writer { topics: bus.topics.clone(), form: bus.value, wire: values.wire, limits: reins.limits() }
}

fn route(
    config: &Config,
    worker: &Worker,
    accept: &Decisions,
    reins: &Reins,
    partitions: i32,
    values: &Values,
) -> Result<(), RunError> {
    let bus = &config.bus;
    worker::run(bus, worker, &bus.topics.raw, reins, || {
        let surveyor = clients::surveyor(bus, &format!("{}-survey", worker.id(bus)));
        Ok(Route {
            bus: bus.clone(),
            routing: Routing {
                decoder: Decoder::new(config, true, values.registry.as_ref()),
                languages: bus.languages.clone(),
                topic: bus.topics.raw.clone(),
                topic_id: TopicId::UNKNOWN,
                partitions,
                limit: reins.limits().of(&bus.topics.routed).bytes,
                refuses_empty: config.engine.empty_update == EmptyUpdate::Refuse,
            },
            recorded: Recorded::new(bus, worker, partitions),
            writer: writer(bus, values, reins),
            surveyor: surveyor.create_with_context(Quiet).map_err(RunError::Client)?,
            accept: accept.clone(),
            disagreed: Disagreed::default(),
            generations: Generations::new(bus, worker).map_err(RunError::Client)?,
            tasks: BTreeMap::new(),
            first_offsets: BTreeMap::new(),
            repeats_below: BTreeMap::new(),
            compared: Instant::now(),
        })
    })
}

fn judge(
    config: &Config,
    worker: &Worker,
    accept: &Decisions,
    reins: &Reins,
    counts: &topics::Counts,
    budget: &Budget,
    values: &Values,
) -> Result<(), RunError> {
    let bus = &config.bus;
    let intake = match worker.role {
        Role::Direct => Intake::raw(config, counts.states, values.registry.as_ref()),
        Role::Route | Role::Match => Intake::routed(config, counts.routed),
    };
    let purge = (worker.role == Role::Match && bus.purge)
        .then(|| purge::start(bus, worker, Arc::clone(&reins.stop), Arc::clone(&reins.board)));
    // Counted over the life of the process, however often a worker begins anew.
    let wiped = Arc::default();
    worker::run(bus, worker, intake.topic(), reins, || {
        let surveyor = clients::surveyor(bus, &format!("{}-survey", worker.id(bus)));
        let mut restorer = Restorer {
            config: clients::restorer(bus, worker),
            surveyor: surveyor.create_with_context(Quiet).map_err(RunError::Client)?,
            changelog: bus.topics.changelog.clone(),
            tombstones: counts.tombstones,
            state: bus.state.clone(),
            options: RocksOptions::new(
                config.postings.clone(),
                Ahead::Changelog { partition: 0 },
                budget.clone(),
            ),
        };
        restorer.options.write_buffer =
            faults::number("SAMESTORY_WRITE_BUFFER", restorer.options.write_buffer as u64) as usize;
        #[cfg(feature = "faults")]
        {
            restorer.options.without_atomic_flush = faults::mutant("atomic-flush-off");
            restorer.options.position_beside_the_batch = faults::mutant("position-outside-batch");
        }
        let mut settings = config.engine.clone();
        if faults::mutant("read-expired") {
            settings.default.retention = crate::store::Retention::Forever;
        }
        let flush = faults::number("SAMESTORY_FLUSH_MS", judge::FLUSH.as_millis() as u64);
        Ok(Judge {
            bus: bus.clone(),
            engine: Engine::new(settings),
            flush: Duration::from_millis(flush),
            intake: intake.clone(),
            restorer,
            writer: writer(bus, values, reins),
            accept: accept.clone(),
            disagreed: Disagreed::default(),
            attempts: Attempts::default(),
            slots: reins.slots.clone(),
            holdings: reins.holdings.clone(),
            board: Arc::clone(&reins.board),
            generations: Generations::new(bus, worker).map_err(RunError::Client)?,
            tasks: BTreeMap::new(),
            wiped: Arc::clone(&wiped),
            unusable: BTreeMap::new(),
            purge: purge.clone(),
            shelf: Arc::clone(&reins.shelf),
            compared: Instant::now(),
        })
    })
}
