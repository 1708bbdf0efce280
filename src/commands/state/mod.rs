//! `samestory state …`: what an operator does to a state directory. Nothing is made where there is none, and nothing is
//! ever wiped.

#[cfg(feature = "rocksdb")]
mod compact;
#[cfg(feature = "rocksdb")]
mod export;
#[cfg(feature = "rocksdb")]
mod inspect;
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
  samestory state inspect state/                 what is in it, and how far it has come
  samestory state verify state/ && echo sound    every checksum, every row
  samestory state compact state/                 give back the space of what was removed
  samestory state export state/ > documents.ndjson
  samestory --config new.toml state rebuild state/
  samestory state set-stream-time en 2026-03-02  articles with a wrong clock have expired a language

A state directory is made by `samestory file --state DIR`, or holds a partition of a stage on the bus. One that is in
use by another process is refused: stop that one first.";

/// Look after a state directory
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "there is no state to look after"))]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show what is in a state directory, what it was made with, and how far it has come
    #[command(after_help = INSPECT_HELP)]
    Inspect(InspectArgs),
    /// Read everything, compare checksums, and name whatever does not fit together
    #[command(after_help = VERIFY_HELP)]
    Verify(VerifyArgs),
    /// Rewrite everything, so that what was removed takes no more space
    #[command(after_help = COMPACT_HELP)]
    Compact(CompactArgs),
    /// Write the documents as NDJSON, by language and number
    #[command(after_help = EXPORT_HELP)]
    Export(ExportArgs),
    /// Make the bands anew from the stored fingerprints, as the settings say
    #[command(after_help = REBUILD_HELP)]
    Rebuild(RebuildArgs),
    /// Set the stream time of a language, after articles with a wrong clock have agreed on one
    #[command(after_help = STREAM_TIME_HELP)]
    SetStreamTime(StreamTimeArgs),
}

const INSPECT_HELP: &str = "\
Documents and clusters are counted, and postings too up to a hundred thousand documents; beyond that they are estimated,
and marked with ~. What the settings ask for and the state does not have is noted.

Examples:
  samestory state inspect state/
  samestory state inspect state/ --json | jq '.languages[] | [.language, .documents]'";

#[derive(clap::Args)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "there is no state to look after"))]
struct InspectArgs {
    /// The state directory
    dir: PathBuf,
    /// One JSON object, for programs
    #[arg(long)]
    json: bool,
}

const VERIFY_HELP: &str = "\
Exit code 0 if the state is whole, 1 if anything is wrong; every finding is a line on standard output.

Examples:
  samestory state verify state/
  samestory state verify state/ --quiet > findings.txt || mail -s 'state is damaged' desk@example.org < findings.txt";

#[derive(clap::Args)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "there is no state to look after"))]
struct VerifyArgs {
    /// The state directory
    dir: PathBuf,
    /// No progress and no summary
    #[arg(long, short)]
    quiet: bool,
}

const COMPACT_HELP: &str = "\
Needs about as much free space as the state takes, for as long as it runs.

Example:
  samestory state compact state/";

#[derive(clap::Args)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "there is no state to look after"))]
struct CompactArgs {
    /// The state directory
    dir: PathBuf,
}

const EXPORT_HELP: &str = "\
One JSON object per document, with everything that is kept of it: the text is not. The order is that of languages, then
of numbers, so that two exports of the same state are the same bytes.

Examples:
  samestory state export state/ | jq -r 'select(.verdict == \"unique\") | .id'
  samestory state export state/ --fingerprints --output documents.ndjson";

#[derive(clap::Args)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "there is no state to look after"))]
struct ExportArgs {
    /// The state directory
    dir: PathBuf,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write each fingerprint too, as hexadecimal digits
    #[arg(long)]
    fingerprints: bool,
    /// No progress and no summary
    #[arg(long, short)]
    quiet: bool,
}

const REBUILD_HELP: &str = "\
Threshold, recall, bands, rows, algorithm and the shortest text decide which documents are looked at together. When
they change, the bands are made anew here, from the stored fingerprints; no article is read again. If it is cut off,
the state says so when it is opened, and running this again begins at the beginning.

What it cannot do is make fingerprints: where those are damaged or of another scheme, it says what can be done.

Examples:
  samestory --config new.toml state rebuild state/
  samestory state rebuild state/ --force      the bands are damaged, the documents are not";

#[derive(clap::Args)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "there is no state to look after"))]
struct RebuildArgs {
    /// The state directory
    dir: PathBuf,
    /// Make the bands anew although the settings have not changed
    #[arg(long)]
    force: bool,
    /// No progress and no summary
    #[arg(long, short)]
    quiet: bool,
}

const STREAM_TIME_HELP: &str = "\
Stream time decides what is expired. One wrong clock does not move it; five articles that agree do. Stop the crawler
whose clock is wrong first, or it moves stream time again.

On the bus this writes a control record, which the stage reads like any other: to the routed topic, in the partition of
the language; in mode \"direct\" to every partition of the raw topic. A state of file runs is changed where it lies.

Examples:
  samestory state set-stream-time en 2026-03-02T06:10:00Z
  samestory state set-stream-time hi 2026-03-02 --state state/    a state made by `samestory file`";

#[derive(clap::Args)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "there is no state to look after"))]
struct StreamTimeArgs {
    /// The language, as `samestory languages` lists it
    language: String,
    /// Its stream time from then on: a date or a time in UTC, not in the future
    time: String,
    /// Change this state directory of `samestory file` instead
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// Why looking after a state ended early, with what can be done.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "there is no state to look after"))]
pub(crate) enum StateError {
    /// What is wrong has been said.
    #[error("state {place} is not whole, see above ({findings})\n{ways}")]
    NotWhole { place: String, findings: String, ways: String },
    /// Re-banding does not help.
    #[error("{why}. It cannot be rebuilt from what it holds, and was left as it is\n{ways}")]
    NotRebuilt { why: String, ways: String },
    /// The time cannot be read.
    #[error("\"{0}\" is not a time; write for example 2026-03-02 or 2026-03-02T06:10:00Z")]
    NotATime(String),
    /// Stream time ahead of every clock would expire every article.
    #[error("{0} is in the future: every article of the language would be expired until then")]
    Future(String),
    /// Changing it here would part it from its log.
    #[error(
        "state {place} follows partition {partition} of a changelog; leave --state out, so that the change goes through the log"
    )]
    FollowsChangelog { place: String, partition: i32 },
    /// There is no bus in this program.
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
        Command::Rebuild(args) => rebuild::run(args, config),
        Command::SetStreamTime(args) => stream_time::run(args, config),
    }
}
