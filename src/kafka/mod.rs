//! The stage on Kafka: reads articles, publishes verdicts, and keeps its state, exactly once.
//!
//! [`run`] checks the cluster, starts the workers of each role and supervises them. A worker publishes its output,
//! input offsets and changelog records in one transaction, and changes its local state only with the proof of that
//! commit.
//!
//! - `client`: client configuration; every property that the guarantee depends on
//! - `clock`: this machine's clock, which no verdict depends on
//! - `admin`: topics, limits, schemas and other checks before the first record is read; purging the routed topic
//! - `turn`: the worker loop, the consumer (`source`) and transactions (`txn`), the same for every role
//! - `route`: raw article → the partition that its language belongs to
//! - `matching`: routed article → verdict and state (the role `match` in the settings)
//! - `recovery`: taking a partition over, restoring its state, and following an older generation
//! - `faults`: the seams where a test injects a fault
//! - `tools`: the commands that read or write topics without being a stage

pub mod admin;
mod client;
mod clock;
mod faults;
mod matching;
pub mod recovery;
mod route;
pub mod tools;
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::error::KafkaError;

use crate::config::{Bus, Config, Mode};
use crate::formats::registry::Registry;
use crate::status::StatusBoard;
use crate::stop::Stop;
use faults::{Constant, FAULTS, Faults, Mutant};
use samestory_engine::engine::{EmptyUpdate, Engine};
use samestory_engine::index::{Budget, Durability, RocksOptions, StoreRegistry};
use samestory_engine::model::TopicId;

use admin::limits::Limits;
use admin::notes::PausedRoles;
use admin::preflight::Preflight;
use admin::values::StageIo;
use client::{Quiet, WorkerId};
use matching::intake::BatchReader;
use matching::outgoing::{OutputEncoding, Writer};
use matching::{Attempts, Matcher};
use recovery::generations::Generations;
use recovery::leftovers::Holdings;
use recovery::restore::Restorer;
use recovery::slots::RestoreSlots;
use recovery::takeover::Decisions;
use route::Route;
use route::decode::Decoder;
use route::routing::Routing;
use turn::partitions::AssignedPartitions;
use turn::worker::WorkerContext;

pub use admin::topics::{TopicError, TopicProblem};
pub use admin::values::{ValueError, misfits};
pub use client::{PropertyError, Role, check_properties};
pub use recovery::takeover::{Accept, PartitionOffset};

/// An error of the Kafka client.
pub type ClientError = KafkaError;

/// Version of the linked librdkafka.
pub fn client_version() -> String {
    rdkafka::util::get_rdkafka_version().1
}

/// Why the stage exits. Everything committed is correct, and a restart resumes from there.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The Kafka client failed for good.
    #[error("the Kafka client failed: {0}")]
    Client(KafkaError),
    /// Fenced by another process with the same instance id.
    #[error(
        "another process uses the instance id \"{instance}\" and has fenced this one; nothing is lost, the other process continues. Give each process its own stage.instance (or SAMESTORY_INSTANCE)"
    )]
    Fenced {
        /// The instance id.
        instance: String,
    },
    /// A topic is missing, or a setting that the guarantee depends on is wrong.
    #[error(transparent)]
    Topics(#[from] TopicError),
    /// The schema registry lacks a schema, or a configured field path is in no schema.
    #[error(transparent)]
    Values(#[from] ValueError),
    /// The settings of route do not fit the state that match has built.
    #[error("{0}")]
    IncompatibleState(String),
    /// A worker restarted too often in a row.
    #[error("gave up after restarting the worker {restarts} times; the last cause: {why}")]
    TooManyRestarts {
        /// Restarts in a row.
        restarts: u32,
        /// Cause of the last one.
        why: String,
    },
    /// A thread of the stage panicked, or a store failed too often in a row.
    #[error("{why}; everything committed is correct, and a restart resumes from there")]
    Panicked {
        /// Which thread or partition failed, and how.
        why: String,
    },
    /// A transaction does not end. Some librdkafka calls ignore their time limit, and nothing can interrupt them. The
    /// worker's thread still runs, so the process must exit.
    #[error("the transaction of worker {worker} does not end; a restart resumes from the committed offsets")]
    Stuck {
        /// The worker whose transaction it is.
        worker: String,
    },
    /// The operating system refused to start a thread.
    #[error("cannot start a worker thread")]
    Thread(#[source] std::io::Error),
    /// `--role` names a role that the mode does not have.
    #[error("mode \"direct\" has one stage; --role is for mode \"routed\"")]
    NoSuchRole,
}

/// Counters of one run for the log, and the open transactions.
#[derive(Debug, Default)]
pub struct RunCounters {
    committed: AtomicU64,
    records: AtomicU64,
    aborted: AtomicU64,
    restarts: AtomicU64,
    /// By worker, when its open transaction began.
    open: Mutex<BTreeMap<String, Instant>>,
}

impl RunCounters {
    fn committed(&self, records: usize) {
        self.committed.fetch_add(1, Ordering::Relaxed);
        self.records.fetch_add(records as u64, Ordering::Relaxed);
    }

    fn aborted(&self) {
        self.aborted.fetch_add(1, Ordering::Relaxed);
    }

    fn restarted(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }

    fn opened(&self, worker: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(worker.to_owned(), Instant::now());
    }

    fn closed(&self, worker: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(worker);
    }

    /// A worker whose transaction has been open for longer than `limit`. Some librdkafka calls ignore their time limit
    /// while the coordinator is unavailable, and nothing can interrupt them.
    fn stuck(&self, limit: Duration) -> Option<String> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().find(|(_, since)| since.elapsed() > limit).map(|(worker, _)| worker.clone())
    }

    fn log(&self, message: &str) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (transactions, records) = (load(&self.committed), load(&self.records));
        let (aborted, restarts) = (load(&self.aborted), load(&self.restarts));
        tracing::info!(transactions, records, aborted, restarts, "{message}");
    }
}

/// Runs the stage until `stop` is set. It reports its status to `board` and registers its open stores in `stores`.
///
/// # Errors
/// See [`RunError`].
pub fn run(
    config: &Config,
    role: Option<Role>,
    accept: Accept,
    stop: &Stop,
    board: &Arc<StatusBoard>,
    stores: &Arc<StoreRegistry>,
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
    if FAULTS.has(Mutant::PanicGuardOff) {
        crate::formats::leave_unguarded();
    }
    let counts = admin::topics::await_checked(bus, stop)?;
    let Some(counts) = counts else { return Ok(()) };
    if roles.contains(&Role::Route) {
        admin::preflight::wait_for_compatible_state(config, counts.routed, stop)?;
    }
    let registry = admin::values::registry(config)?;
    let io = StageIo {
        reads: roles.iter().any(|&role| role != Role::Match),
        writes: roles.iter().any(|&role| role != Role::Route),
    };
    let encoding = admin::values::await_ready(config, registry.as_deref(), io, stop, board)?;
    let Some(encoding) = encoding else { return Ok(()) };
    let values = Values { registry, encoding };
    let limits = Limits::await_read(bus, stop);
    turn::measure::begin(roles);
    stores.set_partition_count(counts.states);
    board.started();
    let pauses = PausedRoles::default();
    let watch = admin::notes::PauseWatch::new(bus, pauses.clone(), Arc::clone(board));
    watch.start(stop.clone()).map_err(RunError::Thread)?;
    if io.writes {
        admin::notes::note_settings(config).map_err(RunError::Thread)?;
    }
    let counters = Arc::new(RunCounters::default());
    let context = WorkerContext {
        stop: stop.clone(),
        counters: Arc::clone(&counters),
        board: Arc::clone(board),
        stores: Arc::clone(stores),
        limits: Arc::new(Mutex::new(Arc::new(limits))),
        slots: RestoreSlots::default(),
        holdings: Holdings::default(),
        pauses,
    };
    let (config, values, budget) =
        (Arc::new(config.clone()), Arc::new(values), Budget::new(config.store_memory));
    if io.writes {
        let (state, changelog) = (bus.state.clone(), bus.topics.changelog.clone());
        let (holdings, guard) = (context.holdings.clone(), board.guard("leftovers"));
        recovery::leftovers::start(state, changelog, counts.tombstones, holdings, stop.clone(), guard)
            .map_err(RunError::Thread)?;
    }
    let (ended, ends) = mpsc::channel();
    let mut running = BTreeSet::new();
    let mut failed = None;
    for &role in roles {
        // Each role gets its own decisions: the topics of two roles have the same partition numbers.
        let accept = Decisions::new(accept.clone());
        for number in 0..bus.workers {
            let worker = WorkerId { role, number };
            let name = worker.id(bus);
            let guard = board.guard(&name);
            let (context, budget) = (context.clone(), budget.clone());
            let (config, values, accept) = (Arc::clone(&config), Arc::clone(&values), accept.clone());
            let end = WorkerEnd { name: name.clone(), outcome: None, ended: ended.clone() };
            let work = move || {
                let (_guard, mut end) = (guard, end);
                let outcome = match role {
                    Role::Route => run_route(&config, &worker, &accept, &context, counts.routed, &values),
                    Role::Match | Role::Direct => {
                        run_match(&config, &worker, &accept, &context, &counts, &budget, &values)
                    }
                };
                if outcome.is_err() {
                    // One failed worker stops the others: the process restarts as a whole.
                    context.stop.request();
                }
                end.outcome = Some(outcome);
            };
            match std::thread::Builder::new().name(name.clone()).spawn(work) {
                Ok(_detached) => drop(running.insert(name)),
                Err(error) => {
                    stop.request();
                    failed.get_or_insert(RunError::Thread(error));
                }
            }
        }
    }
    drop(ended);
    let outcome = supervise(running, &ends, bus, &counters, board);
    counters.log("stage stopped");
    match failed {
        Some(error) => Err(error),
        None => outcome,
    }
}

/// Reports the end of a worker's thread when it is dropped, also after a panic.
struct WorkerEnd {
    name: String,
    /// `None` after a panic.
    outcome: Option<Result<(), RunError>>,
    ended: mpsc::Sender<(String, Result<(), RunError>)>,
}

impl Drop for WorkerEnd {
    fn drop(&mut self) {
        let name = std::mem::take(&mut self.name);
        let panicked = || Err(RunError::Panicked { why: format!("worker {name} panicked") });
        let outcome = self.outcome.take().unwrap_or_else(panicked);
        // The supervisor may have given up on this worker.
        let _unheard = self.ended.send((name, outcome));
    }
}

/// Waits for all workers and returns the first failure. A worker that hangs inside librdkafka does not end; its thread
/// is abandoned, and the caller exits the process.
fn supervise(
    mut running: BTreeSet<String>,
    ends: &mpsc::Receiver<(String, Result<(), RunError>)>,
    bus: &Bus,
    counters: &RunCounters,
    board: &StatusBoard,
) -> Result<(), RunError> {
    /// How often open transactions are looked at.
    const LOOK: Duration = Duration::from_millis(200);
    let limit = (bus.transaction_timeout * 3 + Duration::from_secs(30)).as_millis() as u64;
    let limit = Duration::from_millis(FAULTS.value(Constant::StuckTransaction, limit));
    let mut logged = Instant::now();
    let mut outcome = Ok(());
    while !running.is_empty() {
        if let Ok((name, end)) = ends.recv_timeout(LOOK) {
            running.remove(&name);
            outcome = outcome.and(end);
        }
        if let Some(worker) = counters.stuck(limit) {
            board.failed(format!("the transaction of worker {worker} does not end"));
            let deadline = Instant::now() + bus.shutdown / 2;
            while running.iter().any(|name| *name != worker) {
                let Ok((name, _)) = ends.recv_timeout(client::left_until(deadline)) else { break };
                running.remove(&name);
            }
            return Err(RunError::Stuck { worker });
        }
        if logged.elapsed() > Duration::from_secs(60) {
            logged = Instant::now();
            counters.log("stage running");
        }
    }
    // A helper thread may have failed the stage. The workers then stopped normally, so the board has the cause.
    match board.failure() {
        Some(why) if outcome.is_ok() => Err(RunError::Panicked { why }),
        _ => outcome,
    }
}

/// How values are read and written, determined at startup.
struct Values {
    registry: Option<Arc<Registry>>,
    encoding: OutputEncoding,
}

fn writer(bus: &Bus, values: &Values, context: &WorkerContext) -> Writer {
    Writer { topics: bus.topics.clone(), form: bus.value, wire: values.encoding, limits: context.limits() }
}

fn run_route(
    config: &Config,
    worker: &WorkerId,
    accept: &Decisions,
    context: &WorkerContext,
    partitions: i32,
    values: &Values,
) -> Result<(), RunError> {
    let bus = &config.bus;
    turn::worker::run(bus, worker, &bus.topics.raw, context, || {
        let surveyor = client::surveyor(bus, &format!("{}-survey", worker.id(bus)));
        Ok(Route {
            bus: bus.clone(),
            routing: Routing {
                decoder: Decoder::new(config, true, values.registry.as_ref()),
                languages: bus.languages.clone(),
                topic: bus.topics.raw.clone(),
                topic_id: TopicId::UNKNOWN,
                partitions,
                limit: context.limits().for_topic(&bus.topics.routed).bytes,
                refuses_empty: config.engine.empty_update == EmptyUpdate::Refuse,
            },
            recorded: Preflight::new(bus, worker, partitions),
            writer: writer(bus, values, context),
            surveyor: surveyor.create_with_context(Quiet).map_err(RunError::Client)?,
            accept: accept.clone(),
            generations: Generations::new(bus, worker, &context.board).map_err(RunError::Client)?,
            partitions: AssignedPartitions::new(),
            first_offsets: BTreeMap::new(),
            repeats_below: BTreeMap::new(),
        })
    })
}

fn run_match(
    config: &Config,
    worker: &WorkerId,
    accept: &Decisions,
    context: &WorkerContext,
    counts: &admin::topics::PartitionCounts,
    budget: &Budget,
    values: &Values,
) -> Result<(), RunError> {
    let bus = &config.bus;
    let intake = match worker.role {
        Role::Direct => BatchReader::raw(config, counts.states, values.registry.as_ref()),
        Role::Route | Role::Match => BatchReader::routed(config, counts.routed),
    };
    let purge = (worker.role == Role::Match && bus.purge)
        .then(|| admin::purge::start(bus, worker, context.stop.clone(), Arc::clone(&context.board)));
    // Outlives worker restarts: a partition is rebuilt once per cause in the life of the process.
    let wiped = Arc::default();
    turn::worker::run(bus, worker, intake.topic(), context, || {
        let surveyor = client::surveyor(bus, &format!("{}-survey", worker.id(bus)));
        let mut restorer = Restorer {
            config: client::restorer(bus, worker),
            surveyor: surveyor.create_with_context(Quiet).map_err(RunError::Client)?,
            changelog: bus.topics.changelog.clone(),
            tombstones: counts.tombstones,
            state: bus.state.clone(),
            options: RocksOptions::new(
                config.postings.clone(),
                Durability::Changelog { partition: 0 },
                budget.clone(),
            ),
        };
        restorer.options.observer = Some(turn::measure::store);
        restorer.options.write_buffer =
            FAULTS.value(Constant::WriteBuffer, restorer.options.write_buffer as u64) as usize;
        #[cfg(feature = "faults")]
        {
            restorer.options.without_atomic_flush = FAULTS.has(Mutant::AtomicFlushOff);
            restorer.options.position_beside_the_batch = FAULTS.has(Mutant::PositionOutsideBatch);
        }
        let mut settings = config.engine.clone();
        if FAULTS.has(Mutant::ReadExpired) {
            settings.default.retention = samestory_engine::index::Retention::Forever;
        }
        let flush = FAULTS.value(Constant::FlushInterval, matching::FLUSH.as_millis() as u64);
        Ok(Matcher {
            bus: bus.clone(),
            engine: Engine::new(settings),
            flush: Duration::from_millis(flush),
            intake: intake.clone(),
            restorer,
            writer: writer(bus, values, context),
            accept: accept.clone(),
            attempts: Attempts::new(bus.retry),
            slots: context.slots.clone(),
            holdings: context.holdings.clone(),
            board: Arc::clone(&context.board),
            generations: Generations::new(bus, worker, &context.board).map_err(RunError::Client)?,
            partitions: AssignedPartitions::new(),
            wiped: Arc::clone(&wiped),
            purge: purge.clone(),
            stores: Arc::clone(&context.stores),
        })
    })
}
