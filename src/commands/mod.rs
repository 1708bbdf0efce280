//! The command line. [`Cli`] is the grammar, each subcommand has a module with its arguments and a `run` function, and
//! [`Failure`] maps every error to an exit code that `--help` documents.

#[cfg(not(all(feature = "kafka", feature = "http")))]
mod absent;
mod bands;
#[cfg(feature = "kafka")]
mod clusters;
mod compare;
mod compat;
mod config;
#[cfg(feature = "kafka")]
mod dead_letters;
#[cfg(feature = "kafka")]
mod erase;
mod eval;
mod file;
mod fingerprint;
#[cfg(feature = "kafka")]
mod follow;
#[cfg(feature = "kafka")]
mod generation;
mod input;
mod languages;
#[cfg(feature = "kafka")]
mod pause;
mod plan;
#[cfg(feature = "kafka")]
mod probe;
#[cfg(feature = "kafka")]
mod produce;
mod progress;
#[cfg(feature = "kafka")]
mod ready;
#[cfg(feature = "kafka")]
mod reconcile;
#[cfg(feature = "kafka")]
mod reset;
#[cfg(feature = "kafka")]
mod run;
#[cfg(feature = "kafka")]
mod schemas;
#[cfg(feature = "http")]
mod serve;
mod state;
#[cfg(feature = "kafka")]
mod topics;
#[cfg(feature = "kafka")]
mod webhook;

use std::io;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use samestory::config::{Config, ConfigError};
use samestory::files::RunError;
#[cfg(feature = "http")]
use samestory::serve::HttpError;
use samestory_engine::engine::Algorithm;
use samestory_engine::index::StoreError;
use samestory_engine::text::Oversized;
use samestory_eval::LabelledError;

const AFTER_HELP: &str = "\
Examples:
  samestory file articles.ndjson --html report.html > tagged.ndjson
  samestory compare morning.txt evening.txt      are these two the same text?
  samestory fingerprint article.html             show the fingerprint of an article
  curl -s https://example.org/ | samestory fingerprint -
  samestory bands --threshold 0.7 --recall 0.99  show the cost of a threshold
  samestory eval labelled.ndjson                 measure precision and recall
  samestory languages                            list the languages
  samestory compat group articles.ndjson         compute what other systems compute
  samestory state inspect state/                 show what a state directory holds
  samestory config check                         check the settings
  samestory plan --articles 500000               estimate disk, memory and partitions

On Kafka:
  samestory probe articles.raw                   look at a topic before setting anything up
  samestory topics --create && samestory run     start the stage; samestory follow shows its verdicts
  samestory schemas check                        compare the schema registry with the settings
  samestory pause --why upgrade                  stop reading; samestory resume continues
  samestory reconcile                            prove that every record was published exactly once
  samestory dead-letters list                    what could not be judged, and why
  samestory erase a17                            delete an article everywhere, and prove it
  samestory webhook run                          deliver verdicts to an HTTP server
  samestory generation end                       let the new state generation publish

Exit codes:
  0  success
  1  an input could not be read or is not text, too much of it was refused, or a state is damaged
  2  the command line or the settings are wrong
  3  with compare --exit-code: the texts are not the same";

/// Finds articles that repeat the text of an earlier article
#[derive(Parser)]
#[command(name = "samestory", version, long_version = LONG_VERSION.as_str(), about, after_help = AFTER_HELP, arg_required_else_help = true)]
struct Cli {
    /// Settings file (TOML) [default: the file that SAMESTORY_CONFIG names]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Override one setting of the file and the environment; repeatable
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(subcommand)]
    command: Command,
}

/// The version, and the features of this build.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    #[cfg(feature = "kafka")]
    let kafka = format!("librdkafka {}", samestory::kafka::client_version());
    #[cfg(not(feature = "kafka"))]
    let kafka = "not built in";
    let rocksdb = if cfg!(feature = "rocksdb") { "built in" } else { "not built in" };
    format!(
        "{}\nfingerprint scheme: {}\nkafka: {kafka}\nrocksdb: {rocksdb}",
        env!("CARGO_PKG_VERSION"),
        samestory_engine::fingerprint::Scheme::CURRENT.number(),
    )
});

#[derive(Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one per process")]
enum Command {
    /// Judge the articles in files or from a pipe
    File(file::Args),
    /// Run the stage: judge the articles of a Kafka topic
    #[cfg(feature = "kafka")]
    Run(run::Args),
    /// Run the stage: judge the articles of a Kafka topic (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Run(absent::Args),
    /// Ask a running stage whether it is ready, and why not
    #[cfg(feature = "kafka")]
    Ready(ready::Args),
    /// Ask a running stage whether it is ready, and why not (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Ready(absent::Args),
    /// Serve the query API over a state directory
    #[cfg(feature = "http")]
    Serve(serve::Args),
    /// Serve the query API over a state directory (this build lacks RocksDB)
    #[cfg(not(feature = "http"))]
    Serve(absent::Args),
    /// Inspect a topic: formats, fields, languages and duplicates
    #[cfg(feature = "kafka")]
    Probe(probe::Args),
    /// Inspect a topic: formats, fields, languages and duplicates (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Probe(absent::Args),
    /// Produce articles from files to a topic
    #[cfg(feature = "kafka")]
    Produce(produce::Args),
    /// Produce articles from files to a topic (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Produce(absent::Args),
    /// Show verdicts as they are published
    #[cfg(feature = "kafka")]
    Follow(follow::Args),
    /// Show verdicts as they are published (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Follow(absent::Args),
    /// Stop the intake of every process
    #[cfg(feature = "kafka")]
    Pause(pause::PauseArgs),
    /// Stop the intake of every process (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Pause(absent::Args),
    /// Continue after a pause
    #[cfg(feature = "kafka")]
    Resume(pause::ResumeArgs),
    /// Continue after a pause (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Resume(absent::Args),
    /// Stop the intake, and wait until everything that was read is published
    #[cfg(feature = "kafka")]
    Drain(pause::DrainArgs),
    /// Stop the intake, and wait until everything that was read is published (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Drain(absent::Args),
    /// List or export the current clusters
    #[cfg(feature = "kafka")]
    Clusters(clusters::Args),
    /// List or export the current clusters (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Clusters(absent::Args),
    /// Delete what was built from the raw topic, to start again from it
    #[cfg(feature = "kafka")]
    Reset(reset::Args),
    /// Delete what was built from the raw topic, to start again from it (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Reset(absent::Args),
    /// List dead letters, or send them to the raw topic again
    #[cfg(feature = "kafka")]
    DeadLetters(dead_letters::Args),
    /// List dead letters, or send them to the raw topic again (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    DeadLetters(absent::Args),
    /// Delete articles everywhere, and prove it
    #[cfg(feature = "kafka")]
    Erase(erase::Args),
    /// Delete articles everywhere, and prove it (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Erase(absent::Args),
    /// Prove that every record was published exactly once
    #[cfg(feature = "kafka")]
    Reconcile(reconcile::Args),
    /// Prove that every record was published exactly once (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Reconcile(absent::Args),
    /// Create, check or fix the topics
    #[cfg(feature = "kafka")]
    Topics(topics::Args),
    /// Create, check or fix the topics (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Topics(absent::Args),
    /// End the old state generation, so that the new one publishes
    #[cfg(feature = "kafka")]
    Generation(generation::Args),
    /// End the old state generation, so that the new one publishes (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Generation(absent::Args),
    /// Register, check or print the schemas
    #[cfg(feature = "kafka")]
    Schemas(schemas::Args),
    /// Register, check or print the schemas (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Schemas(absent::Args),
    /// Deliver verdicts to an HTTP server
    #[cfg(feature = "kafka")]
    Webhook(webhook::Args),
    /// Deliver verdicts to an HTTP server (this build lacks Kafka)
    #[cfg(not(feature = "kafka"))]
    Webhook(absent::Args),
    /// Print the fingerprint of a text
    Fingerprint(fingerprint::Args),
    /// Compare two texts, the older first
    Compare(compare::Args),
    /// Show the bands and rows that a threshold needs, and their cost
    Bands(bands::Args),
    /// Measure precision and recall on labelled articles
    Eval(eval::Args),
    /// Choose min_confidence for a language on labelled articles
    Tune(eval::TuneArgs),
    /// Compute what other near-duplicate systems compute, exact to the byte
    Compat(compat::Args),
    /// Check or print the settings, or print the reference
    Config(config::Args),
    /// Estimate disk, memory, partitions and replicas
    Plan(plan::Args),
    /// Inspect, verify, compact, export, compare or rebuild a state directory
    State(state::Args),
    /// List the languages and how their text is cut into shingles
    Languages(languages::Args),
    /// Print a completion script for a shell
    #[command(after_help = "\
Example:
  samestory completions bash > /etc/bash_completion.d/samestory")]
    Completions {
        /// The shell to complete for
        shell: clap_complete::Shell,
    },
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON value, for programs
    Json,
    /// Text, for people
    Table,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Input(#[from] input::InputError),
    #[error("{name}")]
    TooLarge {
        name: String,
        #[source]
        error: Oversized,
    },
    #[error("cannot write to standard output")]
    Output(#[from] io::Error),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Labelled(#[from] LabelledError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    State(#[from] state::StateError),
    #[error(transparent)]
    Plan(#[from] plan::PlanError),
    #[cfg(not(all(feature = "kafka", feature = "http")))]
    #[error(
        "{command}: this samestory was built without {lacks}; install one that has it: `make install`, or `cargo install --path .` without --no-default-features"
    )]
    NotBuilt { command: &'static str, lacks: &'static str },
    #[error("the texts are not the same")]
    NotTheSame,
    #[error(
        "{name} ends inside the record that begins on line {line}: records may be missing; the rest is judged and written"
    )]
    Truncated { name: String, line: u64 },
    #[error("no record could be judged: {records} of {records} were refused")]
    NothingJudged { records: u64 },
    #[error(
        "{refused} records were refused, {percent:.1} % of all and more than --max-errors {allowed}; the rest is judged and written"
    )]
    TooManyRefused { refused: u64, percent: f64, allowed: f64 },
    #[error(transparent)]
    OutputFormat(#[from] samestory::files::OutputFormatError),
    #[error("standard input is only one of the two texts: name a file for the other")]
    OneInput,
    #[cfg(feature = "kafka")]
    #[error("standard input can be read only once: name files, or remove --repeat")]
    OnlyOnce,
    #[error(transparent)]
    Tokenizer(#[from] samestory::compat::txtfp::UnknownTokenizer),
    #[error(transparent)]
    CompatBanding(#[from] samestory::compat::recap::BandingError),
    #[error("{0} is not a language of `samestory languages`")]
    UnknownLanguage(String),
    #[error("cannot write {}", path.display())]
    Save {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("cannot write the page {}", path.display())]
    Page {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Judged(#[from] samestory::accuracy::JudgedError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Stage(#[from] samestory::kafka::RunError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Topics(#[from] samestory::kafka::TopicError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Control(#[from] samestory::kafka::admin::control::ControlError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Generation(#[from] samestory::kafka::recovery::generations::end::EndError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Probe(#[from] samestory::kafka::tools::probe::ProbeError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Reconcile(#[from] samestory::kafka::tools::reconcile::ReconcileError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Scan(#[from] samestory::kafka::tools::scan::ScanError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Clusters(#[from] samestory::kafka::tools::clusters::ClustersError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Reset(#[from] samestory::kafka::admin::reset::ResetError),
    #[cfg(feature = "kafka")]
    #[error(
        "no settings with the hash {0} are known: not the current ones, and {1} has none; a stage without Write on that topic notes none"
    )]
    NoSuchConfig(String, String),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Erase(#[from] samestory::kafka::tools::erase::EraseError),
    #[cfg(feature = "kafka")]
    #[error("say which dead letters: --reason, --at, --since or --key, or --all")]
    ReplayWhat,
    #[cfg(feature = "kafka")]
    #[error("cannot read the ids in {}", path.display())]
    Ids {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[cfg(feature = "kafka")]
    #[error("{id} is not an article id: {error}")]
    NotAnId { id: String, error: samestory_engine::model::IdError },
    #[cfg(feature = "kafka")]
    #[error("{remain} of {ids} ids are not erased yet; the lines above say where")]
    NotErased { remain: usize, ids: usize },
    #[cfg(feature = "kafka")]
    #[error("not exactly once: {gaps} records have no output, {doubles} have more than one")]
    NotExact { gaps: u64, doubles: u64 },
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Webhook(#[from] samestory::kafka::tools::webhook::WebhookError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Property(#[from] samestory::kafka::PropertyError),
    #[cfg(feature = "http")]
    #[error("http.query = off: there is nothing to serve; write an address and a port")]
    NothingToServe,
    #[cfg(feature = "http")]
    #[error("{0}; the query API has stopped")]
    Died(String),
    #[cfg(feature = "http")]
    #[error(transparent)]
    Http(#[from] samestory::serve::HttpError),
    #[cfg(feature = "kafka")]
    #[error("cannot start the metrics for /metrics: {0}")]
    Metrics(#[from] samestory::metrics::StartError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Schemas(#[from] schemas::SchemasError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Ready(#[from] ready::ReadyError),
    #[cfg(feature = "kafka")]
    #[error("Kafka: {0}")]
    Client(#[from] samestory::kafka::ClientError),
    #[cfg(not(feature = "rocksdb"))]
    #[error("state directories need RocksDB, which this build lacks; build with default features")]
    NoState,
}

impl Failure {
    /// The exit code that `samestory --help` documents.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Config(_)
            | Failure::Plan(_)
            | Failure::OneInput
            | Failure::UnknownLanguage(_)
            | Failure::Tokenizer(_)
            | Failure::CompatBanding(_)
            | Failure::State(state::StateError::NotATime(_) | state::StateError::Future(_))
            | Failure::OutputFormat(_)
            | Failure::Run(RunError::Clash(_) | RunError::Whole) => 2,
            #[cfg(not(feature = "rocksdb"))]
            Failure::NoState => 2,
            #[cfg(not(all(feature = "kafka", feature = "http")))]
            Failure::NotBuilt { .. } => 2,
            Failure::NotTheSame => 3,
            #[cfg(feature = "http")]
            Failure::NothingToServe | Failure::Http(HttpError::Listen { .. }) => 2,
            #[cfg(feature = "http")]
            Failure::Http(HttpError::Thread(_)) | Failure::Died(_) => 1,
            #[cfg(feature = "kafka")]
            Failure::OnlyOnce
            | Failure::ReplayWhat
            | Failure::NotAnId { .. }
            | Failure::Property(_)
            | Failure::Generation(samestory::kafka::recovery::generations::end::EndError::NoneBefore)
            | Failure::Judged(_)
            | Failure::Stage(samestory::kafka::RunError::Values(_))
            | Failure::Ready(ready::ReadyError::Off)
            | Failure::Webhook(samestory::kafka::tools::webhook::WebhookError::NoUrl)
            | Failure::Webhook(samestory::kafka::tools::webhook::WebhookError::Settings(_))
            | Failure::Schemas(schemas::SchemasError::NoRegistry) => 2,
            #[cfg(feature = "kafka")]
            Failure::Stage(_)
            | Failure::Topics(_)
            | Failure::Control(_)
            | Failure::Generation(_)
            | Failure::Probe(_)
            | Failure::Reconcile(_)
            | Failure::Scan(_)
            | Failure::Ids { .. }
            | Failure::Erase(_)
            | Failure::Clusters(_)
            | Failure::Reset(_)
            | Failure::NoSuchConfig(..)
            | Failure::NotErased { .. }
            | Failure::NotExact { .. }
            | Failure::Webhook(_)
            | Failure::Ready(_)
            | Failure::Schemas(_)
            | Failure::Client(_)
            | Failure::Metrics(_) => 1,
            Failure::Input(_)
            | Failure::TooLarge { .. }
            | Failure::Output(_)
            | Failure::Run(_)
            | Failure::Labelled(_)
            | Failure::Store(_)
            | Failure::State(_)
            | Failure::Save { .. }
            | Failure::Truncated { .. }
            | Failure::NothingJudged { .. }
            | Failure::TooManyRefused { .. }
            | Failure::Page { .. } => 1,
        }
    }

    /// A client's error, with the address that it was given: the client's own words name none.
    #[cfg(feature = "kafka")]
    fn with_address(self, config: &Config) -> Failure {
        match self {
            Failure::Client(error)
            | Failure::Probe(samestory::kafka::tools::probe::ProbeError::Broker(error)) => {
                Failure::Scan(samestory::kafka::tools::scan::broker_error(&config.bus, error))
            }
            other => other,
        }
    }

    /// Whether the exit code is the whole answer, as with `compare --exit-code`.
    pub(crate) fn is_an_answer(&self) -> bool {
        matches!(self, Failure::NotTheSame)
    }

    /// True if the reader closed the pipe (`| head`), which is not an error.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        match self {
            Failure::Output(error) => error.kind() == io::ErrorKind::BrokenPipe,
            Failure::Run(RunError::Sink(error)) => error.is_broken_pipe(),
            _ => false,
        }
    }
}

pub(crate) fn run() -> Result<(), Failure> {
    let cli = Cli::parse();
    if let Command::Config(args) = &cli.command {
        return config::run(args, cli.config.as_deref(), &cli.set);
    }
    let mut config = Config::load_with(cli.config.as_deref(), &cli.set)?;
    if let Command::File(file::Args { threshold: Some(threshold), .. })
    | Command::Compare(compare::Args { threshold: Some(threshold), .. }) = &cli.command
    {
        let key = threshold_key(&config);
        let set = [cli.set.as_slice(), &[format!("{key}={threshold}")]].concat();
        config = Config::load_with(cli.config.as_deref(), &set)?;
    }
    #[cfg(feature = "kafka")]
    if let Command::Run(_)
    | Command::Probe(_)
    | Command::Produce(_)
    | Command::Follow(_)
    | Command::Reconcile(_)
    | Command::DeadLetters(_)
    | Command::Erase(_)
    | Command::Pause(_)
    | Command::Resume(_)
    | Command::Drain(_)
    | Command::Clusters(_)
    | Command::Reset(_)
    | Command::Generation(_)
    | Command::Topics(_)
    | Command::Webhook(_) = &cli.command
    {
        samestory::kafka::check_properties(&config.bus)?;
    }
    let done = dispatch(cli.command, &config);
    #[cfg(feature = "kafka")]
    let done = done.map_err(|failure| failure.with_address(&config));
    done
}

fn dispatch(command: Command, config: &Config) -> Result<(), Failure> {
    match command {
        // Handled above, because it must also run with invalid settings.
        Command::Config(_) => Ok(()),
        Command::File(args) => file::run(&args, config),
        #[cfg(feature = "kafka")]
        Command::Run(args) => run::run(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Run(_) => Err(Failure::NotBuilt { command: "run", lacks: "Kafka" }),
        #[cfg(feature = "kafka")]
        Command::Ready(args) => ready::run(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Ready(_) => Err(Failure::NotBuilt { command: "ready", lacks: "Kafka" }),
        #[cfg(feature = "http")]
        Command::Serve(args) => serve::run(&args, config),
        #[cfg(not(feature = "http"))]
        Command::Serve(_) => Err(Failure::NotBuilt { command: "serve", lacks: "RocksDB" }),
        #[cfg(feature = "kafka")]
        Command::Probe(args) => probe::run(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Probe(_) => Err(Failure::NotBuilt { command: "probe", lacks: "Kafka" }),
        #[cfg(feature = "kafka")]
        Command::Produce(args) => produce::run(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Produce(_) => Err(Failure::NotBuilt { command: "produce", lacks: "Kafka" }),
        #[cfg(feature = "kafka")]
        Command::Follow(args) => follow::run(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Follow(_) => Err(Failure::NotBuilt { command: "follow", lacks: "Kafka" }),
        #[cfg(feature = "kafka")]
        Command::DeadLetters(args) => dead_letters::run(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::DeadLetters(_) => Err(Failure::NotBuilt { command: "dead-letters", lacks: "Kafka" }),
        #[cfg(feature = "kafka")]
        Command::Erase(args) => erase::run(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Erase(_) => Err(Failure::NotBuilt { command: "erase", lacks: "Kafka" }),
        #[cfg(feature = "kafka")]
        Command::Pause(args) => pause::pause(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Pause(_) => Err(Failure::NotBuilt { command: "pause", lacks: "Kafka" }),
        #[cfg(feature = "kafka")]
        Command::Resume(args) => pause::resume(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Resume(_) => Err(Failure::NotBuilt { command: "resume", lacks: "Kafka" }),
        #[cfg(feature = "kafka")]
        Command::Drain(args) => pause::run_drain(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Drain(_) => Err(Failure::NotBuilt { command: "drain", lacks: "Kafka" }),
        #[cfg(feature = "kafka")]
        Command::Clusters(args) => clusters::run(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Clusters(_) => Err(Failure::NotBuilt { command: "clusters", lacks: "Kafka" }),
        #[cfg(feature = "kafka")]
        Command::Reset(args) => reset::run(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Reset(_) => Err(Failure::NotBuilt { command: "reset", lacks: "Kafka" }),
        #[cfg(feature = "kafka")]
        Command::Reconcile(args) => reconcile::run(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Reconcile(_) => Err(Failure::NotBuilt { command: "reconcile", lacks: "Kafka" }),
        #[cfg(feature = "kafka")]
        Command::Topics(args) => topics::run(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Topics(_) => Err(Failure::NotBuilt { command: "topics", lacks: "Kafka" }),
        #[cfg(feature = "kafka")]
        Command::Generation(args) => generation::run(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Generation(_) => Err(Failure::NotBuilt { command: "generation", lacks: "Kafka" }),
        #[cfg(feature = "kafka")]
        Command::Schemas(args) => schemas::run(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Schemas(_) => Err(Failure::NotBuilt { command: "schemas", lacks: "Kafka" }),
        #[cfg(feature = "kafka")]
        Command::Webhook(args) => webhook::run(&args, config),
        #[cfg(not(feature = "kafka"))]
        Command::Webhook(_) => Err(Failure::NotBuilt { command: "webhook", lacks: "Kafka" }),
        Command::Fingerprint(args) => fingerprint::run(&args, config),
        Command::Compare(args) => compare::run(&args, config),
        Command::Bands(args) => bands::run(&args, config),
        Command::Eval(args) => eval::run(&args, config),
        Command::Tune(args) => eval::tune(&args, config),
        Command::Compat(args) => compat::run(&args, config),
        Command::Plan(args) => plan::run(&args, config),
        Command::State(args) => state::run(&args, config),
        Command::Languages(args) => languages::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "samestory", &mut script);
            Ok(io::Write::write_all(&mut io::stdout(), &script)?)
        }
    }
}

/// The setting that `--threshold` moves: the one by which the algorithm decides.
fn threshold_key(config: &Config) -> &'static str {
    match config.engine.default.algorithm {
        Algorithm::Combined => "match.min_confidence",
        Algorithm::Minhash => "match.threshold",
        Algorithm::Simhash64 | Algorithm::Simhash128 => "match.hamming",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_of_every_subcommand_has_an_example() {
        fn check(command: &clap::Command, path: &str) {
            for subcommand in command.get_subcommands() {
                let path = format!("{path} {}", subcommand.get_name());
                let help = subcommand.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Example") && help.contains("samestory"), "{path}: {help}");
                check(subcommand, &path);
            }
        }
        check(&Cli::command(), "samestory");
    }
}
