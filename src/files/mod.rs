//! Runs the engine on files and pipes, without a broker.
//!
//! `stage` reads and fingerprints articles ahead; [`run`] judges them batch by batch, in input order. A
//! batch is planned, its verdicts are written and synced, and only then is it applied to the state. A run
//! interrupted at any moment therefore resumes where state and output agree.

mod array;
mod clash;
mod clusters;
mod compress;
mod control;
mod encoding;
mod lines;
mod output_file;
mod output_format;
mod pairs;
mod paths;
mod read_as;
pub(crate) mod records;
mod replace;
mod resume;
mod sink;
pub(crate) mod source;
pub(crate) mod stage;
mod summary;
mod table;
mod walk;
mod zst;

use std::collections::BTreeSet;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::formats::fields::Fields;
use crate::formats::{Owner, json};
use samestory_engine::engine::{Batch, Engine, Incoming, Output, Preparer};
use samestory_engine::index::{Change, FileProgress, PairList, Progress, Store, StoreError};
use samestory_engine::model::{DeadLetter, Flag, Verdict};
use samestory_engine::model::{Position, VerdictKind};

use crate::report::Report;
use output_file::OutputFile;
use output_format::Encoder;
use read_as::LOOKED_AT;
use records::Records;
use resume::Identity;
use stage::{NextChunk, PreparedChunk, PreparedRecord, Stage, Start};

pub use clash::ClashError;
pub use control::set_stream_time;
pub use encoding::TextEncoding;
pub use output_format::{OutputFormat, OutputFormatError, VERDICT_COLUMNS};
pub use pairs::{PairsError, read_pairs};
pub use read_as::ReadAs;
pub use records::Format;
pub use replace::{WholeFile, for_output};
pub use sink::SinkError;
pub use source::{Source, SourceError};
pub use stage::{InputSpec, each_record};
pub use summary::{Counts, Refusals, Summary, thousands};

/// Verdicts per sync. Syncing a file takes milliseconds, a verdict tens of microseconds.
const SYNC_EVERY: usize = 1024;

/// How long to wait for an input before looking whether the run should stop.
const LOOK_UP: Duration = Duration::from_millis(100);

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
    fn matches(self, tagged: &Verdict) -> bool {
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
pub enum RunError {
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

/// Judges all articles of the job, in input order.
///
/// The verdicts do not depend on the number of threads or, with a state directory, on interruptions.
///
/// # Errors
/// The lines written until then are valid; with a state directory, the next run resumes after them.
pub fn run(
    job: &Job,
    engine: &Engine,
    preparer: Preparer,
    state: &mut impl Store,
    report: Option<&mut Report>,
    watch: &mut dyn Watch,
) -> Result<Summary, RunError> {
    for source in &job.reading.sources {
        source.check()?;
    }
    if job.reading.sources.iter().filter(|source| matches!(source, Source::Pipe)).count() > 1 {
        return Err(RunError::Pipes);
    }
    job.refuse_clashes()?;
    let mut before = state.progress()?;
    let pairs = pairs::list(&engine.settings().constraints);
    refuse_other_pairs(job, &before, pairs)?;
    let files = identify(job, &before)?;
    let mut encoder = Encoder::new(job.to, job.article, job.evidence);
    let file_columns = if job.to.has_columns() { Some(columns_of_files(&job.reading)?) } else { None };
    let (mut sink, mut letters) = output_file::open(job, &before.files)?;
    if let Some(known) = &file_columns
        && known.is_all
    {
        encoder.set_columns(&known.names, known.id.as_deref(), false);
        continue_columns(job, &sink, known, &mut encoder)?;
    }
    let clusters = job.clusters.as_deref().map(OutputFile::create).transpose()?;
    register(state, &mut before, pairs.filter(|_| job.state.is_some()), &mut sink, letters.as_mut())?;
    let starts = files.iter().enumerate();
    let starts = starts.map(|(source, file)| Start {
        source,
        skip: file.as_ref().map_or(0, |file| file.judged),
        grows: file.is_some(),
    });
    let starts: Vec<Start> = starts.collect();
    let judged_before = starts.iter().map(|start| start.skip).sum();
    let mut run = Run {
        job,
        engine,
        state,
        report,
        files,
        sink,
        encoder,
        file_columns,
        letters,
        summary: Summary::resumed(judged_before),
    };
    let bytes = Arc::new(AtomicU64::new(0));
    let outcome = thread::scope(|scope| {
        // Dropping the stage on any exit closes its channels, so no worker stays blocked on a send.
        let mut stage = Stage::start(scope, &job.reading, preparer, starts, job.threads, bytes);
        run.judge_all(&mut stage, watch)
    });
    let outcome = outcome.and_then(|()| Ok(run.state.flush()?));
    let outcome = outcome.and_then(|()| match &mut run.report {
        Some(report) => Ok(report.add_clusters(engine, &*run.state)?),
        None => Ok(()),
    });
    let outcome = outcome.and_then(|()| match clusters {
        Some(file) => clusters::write(engine, &*run.state, file, job.clusters_to),
        None => Ok(()),
    });
    let Run { sink, letters, summary, mut encoder, .. } = run;
    if let Err(error) = outcome {
        for partial in [Some(sink), letters].into_iter().flatten().filter_map(OutputFile::keep) {
            watch.partial(&partial);
        }
        return Err(error);
    }
    let mut end = Vec::new();
    encoder.finish(&mut end).map_err(|error| RunError::Encode { error })?;
    sink.finish(&end)?;
    letters.map_or(Ok(()), |letters| letters.finish(&[]))?;
    let left_out = encoder.left_out();
    if !left_out.is_empty() {
        watch.left_out(&left_out);
    }
    Ok(summary)
}

/// The columns of the inputs that can be read twice.
#[derive(Debug, Default)]
struct FileColumns {
    names: Vec<String>,
    /// The column that holds the id, if all inputs have it.
    id: Option<String>,
    /// All inputs are files.
    is_all: bool,
}

/// Reads the header, or the first records, of every input that is a file. An output with columns has all of them.
fn columns_of_files(reading: &InputSpec) -> Result<FileColumns, RunError> {
    let mut columns = FileColumns { is_all: true, ..FileColumns::default() };
    let mut ids: Vec<Option<String>> = Vec::new();
    for source in &reading.sources {
        if !matches!(source, Source::File(path) if path.is_file()) {
            columns.is_all = false;
            continue;
        }
        let (mut records, opened) = Records::open(source, reading, &Arc::default())?;
        let mut first = Vec::new();
        while first.len() < LOOKED_AT {
            // An unreadable rest is reported when it is judged.
            let Ok(Some(record)) = records.next() else { break };
            first.push(record);
        }
        let read_as = ReadAs::new(source.name(), &opened, &records, &first, reading, false);
        columns.add(&read_as.columns);
        ids.push(read_as.id_column().map(str::to_owned));
    }
    let id = ids.first().cloned().flatten();
    columns.id = id.filter(|_| ids.windows(2).all(|pair| pair[0] == pair[1]));
    Ok(columns)
}

impl FileColumns {
    fn add(&mut self, names: &[String]) {
        for name in names {
            if !self.names.contains(name) {
                self.names.push(name.clone());
            }
        }
    }
}

/// Checks the header of a table that an earlier run began, and has this run write its rows after it.
fn continue_columns(
    job: &Job,
    output: &OutputFile,
    known: &FileColumns,
    encoder: &mut Encoder,
) -> Result<(), RunError> {
    let (Some(path), true) = (&job.output, output.length > 0) else { return Ok(()) };
    let mut reading = InputSpec::new(Vec::new(), Fields::default(), Owner::default(), job.reading.limit);
    reading.format = Some(if job.to == OutputFormat::Tsv { Format::Tsv } else { Format::Csv });
    let (records, _) = Records::open(&Source::File(path.clone()), &reading, &Arc::default())?;
    let mut expected = Encoder::new(job.to, job.article, job.evidence);
    expected.set_columns(&known.names, known.id.as_deref(), true);
    if records.columns().map(<[String]>::to_vec) != expected.column_names() {
        return Err(RunError::OtherColumns(path.clone()));
    }
    *encoder = expected;
    Ok(())
}

/// Registers the outputs in the state and flushes it before the first line is written. Otherwise a run that
/// is killed early leaves a file that the next run must refuse as foreign.
fn register(
    state: &mut impl Store,
    before: &mut Progress,
    pairs: Option<PairList>,
    sink: &mut OutputFile,
    letters: Option<&mut OutputFile>,
) -> Result<(), RunError> {
    let letters = letters.map_or(Ok(None), OutputFile::registration)?;
    let new = FileProgress {
        outputs: sink.registration()?.into_iter().collect(),
        dead_letters: letters.into_iter().collect(),
        pairs: pairs.filter(|_| before.files.pairs.is_none()),
        ..FileProgress::default()
    };
    if new.is_empty() {
        return Ok(());
    }
    before.files.extend(new);
    state.apply_own_changes(&[Change::Progress(before.clone())])?;
    Ok(state.flush()?)
}

/// Refuses pairs that differ from those the state was built with.
fn refuse_other_pairs(job: &Job, before: &Progress, ours: Option<PairList>) -> Result<(), PairsError> {
    let known = before.files.pairs;
    let is_new = known.is_none() && before.languages.is_empty();
    if job.state.is_none() || is_new || known == ours {
        return Ok(());
    }
    Err(PairsError::Others { known: known.map_or(0, |known| known.count) })
}

/// Looks up each source in the state's progress; None for standard input, and for all sources without a state
/// directory.
fn identify(job: &Job, before: &Progress) -> Result<Vec<Option<Identity>>, RunError> {
    let mut names = BTreeSet::new();
    let mut files = Vec::new();
    for source in &job.reading.sources {
        let Source::File(path) = source else {
            files.push(None);
            continue;
        };
        if job.state.is_none() {
            files.push(None);
            continue;
        }
        let file = Identity::find(path, before)
            .map_err(|error| SourceError::Unreadable { name: source.name(), error })?;
        if !names.insert(file.path().clone()) {
            return Err(RunError::Twice(source.name()));
        }
        files.push(Some(file));
    }
    Ok(files)
}

struct Run<'a, S> {
    job: &'a Job,
    engine: &'a Engine,
    state: &'a mut S,
    report: Option<&'a mut Report>,
    files: Vec<Option<Identity>>,
    sink: OutputFile,
    encoder: Encoder,
    file_columns: Option<FileColumns>,
    letters: Option<OutputFile>,
    summary: Summary,
}

impl<S: Store> Run<'_, S> {
    fn judge_all(&mut self, stage: &mut Stage, watch: &mut dyn Watch) -> Result<(), RunError> {
        loop {
            if self.job.stop.load(Ordering::Relaxed) {
                self.state.flush()?;
                watch.interrupted(&self.summary, self.sink.partial());
                return Err(RunError::Interrupted);
            }
            let first = match stage.next(LOOK_UP) {
                NextChunk::Ready(chunk) => *chunk,
                NextChunk::Waiting => continue,
                NextChunk::End => return Ok(()),
            };
            let mut bytes = first.bytes;
            let mut chunks = vec![first];
            let mut count = chunks[0].items.len();
            // Verdicts do not depend on batch borders, so take whatever is ready.
            while count < SYNC_EVERY && chunks.last().is_some_and(|last| last.failure.is_none()) {
                let Some(more) = stage.next_now() else { break };
                count += more.items.len();
                bytes = more.bytes;
                chunks.push(more);
            }
            self.judge(chunks, watch)?;
            watch.batch(&self.summary, bytes);
        }
    }

    /// Tells the output its columns, if it has any and the first records decide them.
    fn describe(&mut self, read_as: &ReadAs) {
        if let Some(mut known) = self.file_columns.take() {
            let id =
                read_as.id_column().filter(|id| known.names.is_empty() || known.id.as_deref() == Some(id));
            known.add(&read_as.columns);
            self.encoder.set_columns(&known.names, id, self.sink.length > 0);
        }
    }

    /// One batch: plan, write, sync, apply.
    fn judge(&mut self, ready: Vec<PreparedChunk>, watch: &mut dyn Watch) -> Result<(), RunError> {
        let mut batch = Batch::default();
        let (mut articles, mut originals) = (Vec::new(), Vec::new());
        let mut end = None;
        'all: for PreparedChunk { source, items, next, unfinished, truncated, failure, read_as, bytes: _ } in
            ready
        {
            if let Some(line) = truncated {
                self.summary.truncated = Some((self.job.reading.sources[source].name(), line));
            }
            if let Some(read_as) = read_as {
                self.describe(&read_as);
                watch.reading(&read_as);
            }
            let remaining = items.len() as u64;
            for (at, PreparedRecord { item, raw, named_by_line, original }) in items.into_iter().enumerate() {
                // Only the plan knows whether an article without a body is already indexed; strict refuses it
                // either way.
                if let (true, Incoming::DeadLetter(letter) | Incoming::Bodiless { refusal: letter, .. }) =
                    (self.job.strict, &item.incoming)
                {
                    end = Some(RunError::Strict(Box::new(letter.clone())));
                    let judged = next - remaining + at as u64;
                    batch.files.inputs.extend(self.files[source].as_ref().map(|file| file.position(judged)));
                    break 'all;
                }
                self.summary.named_by_line += u64::from(named_by_line);
                self.summary.deletes += u64::from(matches!(item.incoming, Incoming::Delete(_)));
                batch.items.push(item);
                articles.push(raw);
                originals.push(original);
            }
            batch.files.inputs.extend(self.files[source].as_ref().map(|file| file.position(next)));
            if let Some(line) = unfinished {
                watch.unfinished(&self.job.reading.sources[source].name(), line);
            }
            if failure.is_some() {
                end = failure;
                break;
            }
        }
        let (plan, write_set) = self.engine.plan(&*self.state, batch)?;
        // Create column families before writing any output, so that a failure leaves nothing half done.
        let languages: BTreeSet<_> = plan.changes.iter().filter_map(Change::language).collect();
        for language in languages {
            self.state.ensure_language(language)?;
        }
        self.summary.reviewed += plan.stats.reviewed;
        self.summary.expired += plan.stats.expired;
        self.summary.arrived_expired += plan.stats.arrived_expired;
        let (mut lines, mut letters) = (Vec::new(), Vec::new());
        for ((decided, article), original) in plan.decided.iter().zip(&articles).zip(&originals) {
            for output in &decided.outputs {
                match output {
                    Output::Tagged(tagged) => {
                        self.summary.count(tagged);
                        if self.job.only.is_empty() || self.job.only.iter().any(|only| only.matches(tagged)) {
                            self.summary.written += 1;
                            let encoded = self.encoder.add(tagged, article.as_deref(), &mut lines);
                            encoded.map_err(|error| RunError::Encode { error })?;
                        }
                    }
                    Output::DeadLetter(letter) => {
                        self.summary.refuse(letter);
                        watch.dead_letter(letter);
                        json::write_dead_letter(letter, original.as_deref(), &mut letters);
                    }
                    // A file records each article's verdict on arrival; nothing in it is retracted later.
                    Output::Tombstone { .. }
                    | Output::Notice { .. }
                    | Output::Cluster(_)
                    | Output::ClusterDeleted { .. } => {}
                }
            }
        }
        let mut written = FileProgress::default();
        written.outputs.extend(self.sink.add(&lines)?);
        if let Some(file) = self.letters.as_mut().filter(|_| !letters.is_empty()) {
            written.dead_letters.extend(file.add(&letters)?);
        }
        self.state.apply_own(write_set.with_files(plan.progress(), written))?;
        if let Some(report) = &mut self.report {
            report.add(&plan, &articles, &*self.state)?;
        }
        end.map_or(Ok(()), Err)
    }
}
