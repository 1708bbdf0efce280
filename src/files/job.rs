//! A run as its caller describes it ([`Job`]), what the caller hears of it ([`Watch`]), and why it may end early
//! ([`FileRunError`]). [`super::run`] carries it out.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use samestory_engine::index::StoreError;
use samestory_engine::model::{DeadLetter, Flag, Position, Verdict, VerdictKind};

use super::clash::ClashError;
use super::output_format::OutputFormat;
use super::pairs::PairsError;
use super::read_as::ReadAs;
use super::sink::SinkError;
use super::source::SourceError;
use super::stage::InputSpec;
use super::summary::Summary;

/// The inputs and outputs of a run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The inputs, and how to decode them.
    pub reading: InputSpec,
    /// Worker threads that compute fingerprints.
    pub threads: NonZeroUsize,
    /// Stop at the first record that cannot be judged.
    pub strict: bool,
    /// Write only verdicts that match one of these; all if empty.
    pub only: Vec<Only>,
    /// Include the article in the output.
    pub article: bool,
    /// Include the evidence in the output. The engine may give it for the report alone.
    pub evidence: bool,
    /// The format of the verdicts.
    pub to: OutputFormat,
    /// The format of the clusters.
    pub clusters_to: OutputFormat,
    /// Set by another thread to end the run after the batch that is being judged.
    pub stop: Arc<AtomicBool>,
    /// Write verdicts to this file instead of standard output.
    pub output: Option<PathBuf>,
    /// Write dead letters, with their reasons, to this file.
    pub dead_letters: Option<PathBuf>,
    /// The HTML report that the caller writes at the end; named here so that clashes with it are found.
    pub html: Option<PathBuf>,
    /// Write the clusters to this file at the end.
    pub clusters: Option<PathBuf>,
    /// The file that the engine's constraints were read from.
    pub pairs: Option<PathBuf>,
    /// The file that the settings were read from.
    pub settings: Option<PathBuf>,
    /// A state directory that outlives the run: a later run with it resumes where this one stopped.
    pub state: Option<PathBuf>,
}

/// A filter on the verdicts that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Unique articles.
    Unique,
    /// Near-duplicates.
    NearDuplicate,
    /// Exact duplicates.
    ExactDuplicate,
    /// Near and exact duplicates.
    Duplicate,
    /// Articles that are related to others without being copies of them.
    Related,
    /// Articles flagged for review.
    Review,
}

impl Only {
    pub(super) fn matches(self, tagged: &Verdict) -> bool {
        match self {
            Only::Unique => tagged.kind == VerdictKind::Unique,
            Only::NearDuplicate => tagged.kind == VerdictKind::NearDuplicate,
            Only::ExactDuplicate => tagged.kind == VerdictKind::ExactDuplicate,
            Only::Duplicate => tagged.kind != VerdictKind::Unique,
            Only::Related => !tagged.related.is_empty(),
            Only::Review => tagged.flags.contains(&Flag::Review),
        }
    }
}

/// Receives the progress of a run.
pub trait Watch {
    /// An input was opened, and this is how it is read.
    fn reading(&mut self, read_as: &ReadAs);
    /// A record could not be judged and became a dead letter.
    fn dead_letter(&mut self, letter: &DeadLetter);
    /// A file ends in the middle of the record on this line, which is left to a later run.
    fn unfinished(&mut self, name: &str, line: u64);
    /// A batch is done: the counts so far, and the input bytes read so far.
    fn batch(&mut self, so_far: &Summary, bytes: u64);
    /// The run was stopped ([`Job::stop`]). The verdicts so far are written and, with a state directory, remembered. A reader
    /// that waits for standard input keeps the run from returning, so a program may have to end itself here.
    fn interrupted(&mut self, so_far: &Summary, partial: Option<&Path>);
    /// These keys of the articles are not in the output, because they appeared after its columns were chosen.
    fn left_out(&mut self, keys: &[String]);
    /// The run failed: this partial file holds the lines written so far, and the requested output is
    /// unchanged.
    fn partial(&mut self, path: &Path);
}

/// Why a run ended early. The lines written until then are valid.
#[derive(Debug, thiserror::Error)]
pub enum FileRunError {
    /// An input cannot be opened.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An input became unreadable part way through.
    #[error("cannot read {name} past line {after}")]
    Broken {
        /// Which input.
        name: String,
        /// The last line that was read.
        after: u64,
        /// The error of the operating system, or the defect in the compressed data.
        #[source]
        error: io::Error,
    },
    /// An output cannot be written.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// An output would overwrite another file of this run.
    #[error(transparent)]
    Clash(#[from] ClashError),
    /// The state cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The pairs cannot be used.
    #[error(transparent)]
    Pairs(#[from] PairsError),
    /// The output cannot be encoded.
    #[error("cannot encode the output")]
    Encode {
        /// The encoder's error.
        #[source]
        error: io::Error,
    },
    /// The run was stopped.
    #[error("interrupted")]
    Interrupted,
    /// A format that is written as a whole cannot be continued by a later run.
    #[error(
        "Parquet is written as a whole and cannot be continued; leave out --state, or write NDJSON or CSV"
    )]
    Whole,
    /// The output has other columns than this run would write.
    #[error("{} has other columns than these inputs; write to another file, or write NDJSON", .0.display())]
    OtherColumns(PathBuf),
    /// A record could not be judged, and the run is strict.
    #[error("{}", letter_line(.0))]
    Strict(Box<DeadLetter>),
    /// Standard input is named more than once, and its bytes are gone after the first reading.
    #[error("- is named twice; standard input can only be read once")]
    Pipes,
    /// A file is named more than once, and the state keeps one position per file.
    #[error("{0} is named twice; with --state, name each file once")]
    Twice(String),
}

/// Formats a dead letter in one line: position, reason, message.
pub fn letter_line(letter: &DeadLetter) -> String {
    let position = match &letter.position {
        Position::File { file, line } => format!("{file}:{line}"),
        Position::Topic { topic, partition, offset } => format!("{topic}/{partition} offset {offset}"),
    };
    format!("{position}: {}: {}", letter.reason.as_str(), letter.message)
}
