//! The command line: what can be said, and one function per subcommand.

mod bands;
mod compare;
mod config;
mod eval;
mod file;
mod fingerprint;
#[cfg(feature = "kafka")]
mod follow;
#[cfg(feature = "kafka")]
mod generation;
mod input;
mod languages;
mod plan;
#[cfg(feature = "kafka")]
mod probe;
#[cfg(feature = "kafka")]
mod produce;
mod progress;
#[cfg(feature = "kafka")]
mod ready;
#[cfg(feature = "kafka")]
mod run;
#[cfg(feature = "kafka")]
mod schemas;
#[cfg(feature = "http")]
mod serve;
mod state;
#[cfg(feature = "kafka")]
mod topics;

use std::io;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use samestory::config::{Config, ConfigError};
use samestory::files::RunError;
#[cfg(feature = "http")]
use samestory::serve::HttpError;
use samestory_engine::index::StoreError;
use samestory_engine::text::Oversized;
use samestory_eval::LabelledError;

const AFTER_HELP: &str = "\
Examples:
  samestory file articles.ndjson --html report.html > tagged.ndjson
  samestory compare morning.txt evening.txt      are these the same text?
  samestory fingerprint article.html             all that is kept of an article
  curl -s https://example.org/ | samestory fingerprint -
  samestory bands --threshold 0.7 --recall 0.99  what a threshold costs
  samestory eval labelled.ndjson                 how good the verdicts are
  samestory languages                            every language and how it is cut
  samestory state inspect state/                 what a state directory holds
  samestory config check                         are the settings right?
  samestory plan --articles 500000               how much disk, memory and partitions that needs

On a Kafka bus:
  samestory probe articles.raw                   what is on a topic, before anything is set up
  samestory topics --create && samestory run     the stage; samestory follow shows its verdicts
  samestory schemas check                        what the schema registry must know
  samestory generation end                       let the new generation of state publish

Exit codes:
  0  done
  1  an input could not be read or is not text, or a state is not whole
  2  the command line or the settings are wrong";

/// Recognises articles whose text has been seen before.
#[derive(Parser)]
#[command(name = "samestory", version, long_version = LONG_VERSION.as_str(), about, after_help = AFTER_HELP, arg_required_else_help = true)]
struct Cli {
    /// Settings file (TOML); the environment variable SAMESTORY_CONFIG names one too
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One setting, over those of the file and the environment; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(subcommand)]
    command: Command,
}

/// The version, and what this build can do.
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
enum Command {
    /// Judge the articles in files or from a pipe
    File(file::Args),
    /// Judge the articles on a Kafka bus
    #[cfg(feature = "kafka")]
    Run(run::Args),
    /// Ask a running stage whether it is ready, and what it waits for
    #[cfg(feature = "kafka")]
    Ready(ready::Args),
    /// Answer questions about the articles in a state directory, over HTTP
    #[cfg(feature = "http")]
    Serve(serve::Args),
    /// Look at a topic: can it be read, in which languages is it, how much repeats itself
    #[cfg(feature = "kafka")]
    Probe(probe::Args),
    /// Put articles from files onto a topic
    #[cfg(feature = "kafka")]
    Produce(produce::Args),
    /// Show verdicts on the bus as they arrive
    #[cfg(feature = "kafka")]
    Follow(follow::Args),
    /// Make or check the topics of the bus
    #[cfg(feature = "kafka")]
    Topics(topics::Args),
    /// End an old generation of state, so that the new one publishes
    #[cfg(feature = "kafka")]
    Generation(generation::Args),
    /// Register or check our schemas in the schema registry, or print them
    #[cfg(feature = "kafka")]
    Schemas(schemas::Args),
    /// Print all that is kept of a text
    Fingerprint(fingerprint::Args),
    /// Compare two texts, the older first
    Compare(compare::Args),
    /// Show which bands × rows a threshold needs, and what they cost
    Bands(bands::Args),
    /// Measure verdicts on labelled articles
    Eval(eval::Args),
    /// Look for the threshold that fits a language, on labelled articles
    Tune(eval::TuneArgs),
    /// Check the settings, print them, or list what can be set
    Config(config::Args),
    /// Work out disk, memory, partitions and replicas for so many articles a day
    Plan(plan::Args),
    /// Look after a state directory: inspect, verify, compact, export, rebuild, set-stream-time
    State(state::Args),
    /// List the languages and how their text is cut
    Languages(languages::Args),
    /// Write a completion script for a shell to standard output
    ///
    /// For example: samestory completions bash > /etc/bash_completion.d/samestory
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object, for programs
    Json,
    /// Lines for people
    Table,
}

/// Why the command ended early.
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
    #[error("standard input is one text, and two are compared: name a file for the other")]
    OneInput,
    #[cfg(feature = "kafka")]
    #[error("standard input can be read only once: name files, or leave --repeat out")]
    OnlyOnce,
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
    Property(#[from] samestory::kafka::PropertyError),
    #[cfg(feature = "http")]
    #[error("http.query = off: there is nothing to serve; write an address and a port")]
    NothingToServe,
    #[cfg(feature = "http")]
    #[error("{0}; nothing answers any more")]
    Died(String),
    #[cfg(feature = "http")]
    #[error(transparent)]
    Http(#[from] samestory::serve::HttpError),
    #[cfg(feature = "kafka")]
    #[error("cannot count for /metrics: {0}")]
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
    #[error(
        "state directories need RocksDB, which this program was built without; build it with default features"
    )]
    NoState,
}

impl Failure {
    /// As documented in the help.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Config(_)
            | Failure::Plan(_)
            | Failure::OneInput
            | Failure::UnknownLanguage(_)
            | Failure::State(state::StateError::NotATime(_) | state::StateError::Future(_))
            | Failure::Run(RunError::Clash(_)) => 2,
            #[cfg(not(feature = "rocksdb"))]
            Failure::NoState => 2,
            #[cfg(feature = "http")]
            Failure::NothingToServe | Failure::Http(HttpError::Listen { .. }) => 2,
            #[cfg(feature = "http")]
            Failure::Http(HttpError::Thread(_)) | Failure::Died(_) => 1,
            #[cfg(feature = "kafka")]
            Failure::OnlyOnce
            | Failure::Property(_)
            | Failure::Generation(samestory::kafka::recovery::generations::end::EndError::NoneBefore)
            | Failure::Stage(samestory::kafka::RunError::Values(_))
            | Failure::Ready(ready::ReadyError::Off)
            | Failure::Schemas(schemas::SchemasError::NoRegistry) => 2,
            #[cfg(feature = "kafka")]
            Failure::Stage(_)
            | Failure::Topics(_)
            | Failure::Control(_)
            | Failure::Generation(_)
            | Failure::Probe(_)
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
            | Failure::Page { .. } => 1,
        }
    }

    /// The reader has seen enough (`| head`): not an error.
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
    let config = Config::load_with(cli.config.as_deref(), &cli.set)?;
    #[cfg(feature = "kafka")]
    if let Command::Run(_)
    | Command::Probe(_)
    | Command::Produce(_)
    | Command::Follow(_)
    | Command::Generation(_)
    | Command::Topics(_) = &cli.command
    {
        samestory::kafka::check_properties(&config.bus)?;
    }
    match cli.command {
        // Done above: its settings need not be right.
        Command::Config(_) => Ok(()),
        Command::File(args) => file::run(&args, &config),
        #[cfg(feature = "kafka")]
        Command::Run(args) => run::run(&args, &config),
        #[cfg(feature = "kafka")]
        Command::Ready(args) => ready::run(&args, &config),
        #[cfg(feature = "http")]
        Command::Serve(args) => serve::run(&args, &config),
        #[cfg(feature = "kafka")]
        Command::Probe(args) => probe::run(&args, &config),
        #[cfg(feature = "kafka")]
        Command::Produce(args) => produce::run(&args, &config),
        #[cfg(feature = "kafka")]
        Command::Follow(args) => follow::run(&args, &config),
        #[cfg(feature = "kafka")]
        Command::Topics(args) => topics::run(&args, &config),
        #[cfg(feature = "kafka")]
        Command::Generation(args) => generation::run(&args, &config),
        #[cfg(feature = "kafka")]
        Command::Schemas(args) => schemas::run(&args, &config),
        Command::Fingerprint(args) => fingerprint::run(&args, &config),
        Command::Compare(args) => compare::run(&args, &config),
        Command::Bands(args) => bands::run(&args, &config),
        Command::Eval(args) => eval::run(&args, &config),
        Command::Tune(args) => eval::tune(&args, &config),
        Command::Plan(args) => plan::run(&args, &config),
        Command::State(args) => state::run(&args, &config),
        Command::Languages(args) => languages::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "samestory", &mut script);
            Ok(io::Write::write_all(&mut io::stdout(), &script)?)
        }
    }
}
