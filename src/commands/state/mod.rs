//! `samestory state`: maintenance of state directories, one module per subcommand. No subcommand creates a state where there is
//! none, and none deletes one.

#[cfg(feature = "rocksdb")]
mod compact;
#[cfg(feature = "rocksdb")]
mod corpus;
#[cfg(feature = "rocksdb")]
mod export;
#[cfg(feature = "rocksdb")]
mod inspect;
#[cfg(feature = "rocksdb")]
mod pairs;
#[cfg(feature = "rocksdb")]
mod rebuild;
#[cfg(feature = "rocksdb")]
mod recovery_hints;
#[cfg(feature = "rocksdb")]
mod sizes;
#[cfg(feature = "rocksdb")]
mod stream_time;
#[cfg(feature = "rocksdb")]
mod verify;

use std::path::PathBuf;

use samestory::config::Config;

use super::Failure;

const EXAMPLES: &str = "\
Examples:
  samestory state inspect state/                 show contents, positions and sizes
  samestory state verify state/ && echo sound    check every checksum and every row
  samestory state compact state/                 free the space of deleted documents
  samestory state export state/ > documents.ndjson
  samestory state pairs state/ --min-similarity 0.5 > pairs.ndjson
  samestory state check-corpus state/            judge every document again
  samestory --config new.toml state rebuild state/
  samestory state set-stream-time en 2026-03-02  repair stream time after articles with a wrong clock

A state directory belongs to `samestory file --state DIR`, or to a partition of `samestory run`. A state that another process
has open is refused: stop that process first.";

/// Inspect, verify, compact, export, compare or rebuild a state directory
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "this build has no state directories"))]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show contents, build settings, positions and sizes
    #[command(after_help = INSPECT_HELP)]
    Inspect(InspectArgs),
    /// Check every checksum, and that all rows are consistent
    #[command(after_help = VERIFY_HELP)]
    Verify(VerifyArgs),
    /// Compact all data, which frees the space of deleted documents
    #[command(after_help = COMPACT_HELP)]
    Compact(CompactArgs),
    /// Export the documents as NDJSON or CSV, by language and number
    #[command(after_help = EXPORT_HELP)]
    Export(ExportArgs),
    /// List all pairs of documents from a similarity on
    #[command(after_help = PAIRS_HELP)]
    Pairs(PairsArgs),
    /// Judge every document again and report differences and damage
    #[command(after_help = CHECK_CORPUS_HELP)]
    CheckCorpus(CheckCorpusArgs),
    /// Rebuild the bands from the stored fingerprints, after a change of settings
    #[command(after_help = REBUILD_HELP)]
    Rebuild(RebuildArgs),
    /// Set the stream time of a language, after articles with a wrong clock moved it
    #[command(after_help = STREAM_TIME_HELP)]
    SetStreamTime(StreamTimeArgs),
}

const INSPECT_HELP: &str = "\
Documents and clusters are counted. Postings are counted up to a hundred thousand documents; beyond that they are estimated and
marked with ~. Differences between the state and the settings are noted.

Examples:
  samestory state inspect state/
  samestory state inspect state/ --json | jq '.languages[] | [.language, .documents]'";

#[derive(clap::Args)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "this build has no state directories"))]
struct InspectArgs {
    /// The state directory
    dir: PathBuf,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

const VERIFY_HELP: &str = "\
The exit code is 0 if the state is sound and 1 if it is damaged; each finding is a line on standard output.

Examples:
  samestory state verify state/
  samestory state verify state/ --quiet > findings.txt || mail -s 'state is damaged' desk@example.org < findings.txt";

#[derive(clap::Args)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "this build has no state directories"))]
struct VerifyArgs {
    /// The state directory
    dir: PathBuf,
    /// Print neither progress nor a summary
    #[arg(long, short)]
    quiet: bool,
}

const COMPACT_HELP: &str = "\
While it runs, it needs about as much free space as the state takes.

Example:
  samestory state compact state/";

#[derive(clap::Args)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "this build has no state directories"))]
struct CompactArgs {
    /// The state directory
    dir: PathBuf,
}

const EXPORT_HELP: &str = "\
Each line is a JSON object with everything that the state keeps of a document; the text is not kept. Documents are ordered by
language and number, so two exports of one state are the same bytes.

Examples:
  samestory state export state/ | jq -r 'select(.verdict == \"unique\") | .id'
  samestory state export state/ --fingerprints --output documents.ndjson
  samestory state export state/ --format csv --output article_fingerprints.csv

With --format csv the columns are those of a table of fingerprints: article_id, simhash (16 hex digits), minhash_signature (256
bytes in hex), computed_at (the article's event time, not the time of the export), language, content_hash, cluster_id.";

#[derive(clap::Args)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "this build has no state directories"))]
struct ExportArgs {
    /// The state directory
    dir: PathBuf,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Add each fingerprint, in hexadecimal
    #[arg(long)]
    fingerprints: bool,
    /// Everything as NDJSON, or a table of fingerprints as CSV
    #[arg(long, value_enum, default_value = "ndjson", conflicts_with = "fingerprints")]
    format: ExportFormat,
    /// Print neither progress nor a summary
    #[arg(long, short)]
    quiet: bool,
}

const PAIRS_HELP: &str = "\
Each line is a pair: language, number and id of the newer document, id of the older one, similarity, containment, and whether they
are in one cluster. Documents are compared if they share a bucket, so pairs far below match.threshold are found by chance. Memory
does not grow with the state.

With --output and --resume, an interrupted listing continues with its last document.

Examples:
  samestory state pairs state/ --min-similarity 0.5 | jq -c 'select(.same_cluster | not)'
  samestory state pairs state/ --output pairs.ndjson --resume";

#[derive(clap::Args)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "this build has no state directories"))]
struct PairsArgs {
    /// The state directory
    dir: PathBuf,
    /// List pairs from this similarity on, 0 to 1
    #[arg(long, value_name = "NUMBER", default_value_t = 0.5, value_parser = fraction)]
    min_similarity: f64,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Continue where the output file ends
    #[arg(long, requires = "output")]
    resume: bool,
    /// Print neither progress nor a summary
    #[arg(long, short)]
    quiet: bool,
}

fn fraction(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=1.0).contains(&number) { Ok(number) } else { Err("use a number from 0 to 1".to_owned()) }
}

const CHECK_CORPUS_HELP: &str = "\
Findings are lines of JSON: verdict-would-differ (after a change of settings, or because the original came later),
does-not-find-itself (its postings are wrong: state rebuild --force), and hot-bucket (more documents than lsh.max_bucket share one
band; usually page furniture). The exit code is 0 even if there are findings, and nothing is changed. The frequency of a phrase is
counted over today's documents, so a verdict close to min_confidence may differ for that reason alone.

Examples:
  samestory state check-corpus state/
  samestory --config new.toml state check-corpus state/ --quiet | jq -r .finding | sort | uniq -c";

#[derive(clap::Args)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "this build has no state directories"))]
struct CheckCorpusArgs {
    /// The state directory
    dir: PathBuf,
    /// Print neither progress nor a summary
    #[arg(long, short)]
    quiet: bool,
}

/// Format of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum ExportFormat {
    /// One JSON object per document
    #[default]
    Ndjson,
    /// A table of fingerprints
    Csv,
}

const REBUILD_HELP: &str = "\
Threshold, recall, bands, rows, algorithm and the shortest text decide which documents are compared. When they change, this
command rebuilds the bands from the stored fingerprints; no article is read again. If it is interrupted, the state says so when
it is opened, and running the command again starts over.

It cannot rebuild fingerprints: if they are damaged or of another scheme, it explains how to recover.

Examples:
  samestory --config new.toml state rebuild state/
  samestory state rebuild state/ --force      only the bands are damaged";

#[derive(clap::Args)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "this build has no state directories"))]
struct RebuildArgs {
    /// The state directory
    dir: PathBuf,
    /// Rebuild even if the settings have not changed
    #[arg(long)]
    force: bool,
    /// Print neither progress nor a summary
    #[arg(long, short)]
    quiet: bool,
}

const STREAM_TIME_HELP: &str = "\
Stream time decides which articles are expired. One wrong clock does not move it, but five articles that agree do. First stop
the crawler whose clock is wrong, or it moves stream time again.

On Kafka this writes a control record that the stage reads like any other: to the language's partition of the routed topic, or
in mode \"direct\" to every partition of the raw topic. A state of `samestory file` is changed in place.

Examples:
  samestory state set-stream-time en 2026-03-02T06:10:00Z
  samestory state set-stream-time hi 2026-03-02 --state state/    a state of `samestory file`";

#[derive(clap::Args)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "this build has no state directories"))]
struct StreamTimeArgs {
    /// Code of the language, as in `samestory languages`
    language: String,
    /// The new stream time: a date or a time in UTC, not in the future
    time: String,
    /// Change this state of `samestory file` instead
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// Why a maintenance command failed, and how to recover.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "this build has no state directories"))]
pub(crate) enum StateError {
    /// The findings are on standard output.
    #[error("state {directory} is damaged, see above ({findings})\n{hints}")]
    Damaged { directory: String, findings: String, hints: String },
    /// Rebuilding the bands does not repair the state.
    #[error("{why}. It cannot be rebuilt from its own data, and was left as it is\n{hints}")]
    NotRebuilt { why: String, hints: String },
    /// The argument is not a time.
    #[error("\"{0}\" is not a time; write for example 2026-03-02 or 2026-03-02T06:10:00Z")]
    NotATime(String),
    /// Stream time ahead of every clock would expire every article.
    #[error("{0} is in the future: every article of the language would be expired until then")]
    Future(String),
    /// A change in place would make the state differ from its changelog.
    #[error(
        "state {directory} follows partition {partition} of a changelog; remove --state, so that the change goes through Kafka"
    )]
    FollowsChangelog { directory: String, partition: i32 },
    /// This build has no Kafka client.
    #[cfg(not(feature = "kafka"))]
    #[error("this program was built without Kafka; name a state directory with --state")]
    NoBus,
}

#[cfg(not(feature = "rocksdb"))]
pub(super) fn run(_args: &Args, _config: &Config) -> Result<(), Failure> {
    Err(Failure::NoState)
}

#[cfg(feature = "rocksdb")]
pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    match &args.command {
        Command::Inspect(args) => inspect::run(args, config),
        Command::Verify(args) => verify::run(args),
        Command::Compact(args) => compact::run(args),
        Command::Export(args) => export::run(args),
        Command::Pairs(args) => pairs::run(args, config),
        Command::CheckCorpus(args) => corpus::run(args, config),
        Command::Rebuild(args) => rebuild::run(args, config),
        Command::SetStreamTime(args) => stream_time::run(args, config),
    }
}
