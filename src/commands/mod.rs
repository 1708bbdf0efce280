//! The command line. [`Cli`] is the grammar, each subcommand has a module with its arguments and a `run` function, and
//! [`Failure`] gives every error an exit code.

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
mod failure;
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
use samestory::config::Config;
use samestory_engine::engine::Algorithm;

pub(crate) use failure::Failure;

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
  samestory dead-letters list                    show records that could not be judged, and why
  samestory erase a17                            delete an article everywhere, and prove it
  samestory webhook run                          deliver verdicts to an HTTP server
  samestory generation end                       let the new state generation publish

Exit codes:
  0  success
  1  an input could not be read or is not text, too much of it was refused, or a state is damaged
  2  the command line or the settings are wrong
  3  with compare --exit-code: the texts are not the same
  130  with file: interrupted by Ctrl-C";

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
enum AnswerFormat {
    /// One JSON value, for programs
    Json,
    /// Text, for people
    Table,
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
