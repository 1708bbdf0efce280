//! The same engine on files and pipes, without a broker.
//!
//! Articles are read and fingerprinted ahead ([`stage`]); verdicts are made one batch after the other, in order. A
//! batch is planned, its verdicts are written, and only when they are safe does the state learn of them. So a run
//! that was interrupted at any moment goes on where state and output agree.

mod array;
mod clash;
mod clusters;
mod control;
mod lines;
mod pairs;
mod place;
pub(crate) mod records;
mod replace;
mod resume;
mod sink;
pub(crate) mod source;
pub(crate) mod stage;
mod summary;
mod table;
mod written;
mod zst;

use std::collections::BTreeSet;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::formats::json;
use samestory_engine::engine::{Batch, Engine, Incoming, Output, Plan, Preparer};
use samestory_engine::index::{Change, Input, InputName, Progress, Store, StoreError, WriteSet};
use samestory_engine::model::{DeadLetter, Flag, Tagged};
use samestory_engine::model::{Position, Verdict};

use crate::report::Report;
use resume::Identity;
use sink::Sink;
use stage::{Ready, ReadyItem, Stage, Start};
use written::Written;

pub use clash::ClashError;
pub use control::set_stream_time;
pub use pairs::{PairsError, read_pairs};
pub use records::Format;
pub use replace::{WholeFile, for_output};
pub use sink::SinkError;
pub use source::{Source, SourceError};
pub use stage::{Reading, each_record};
pub use summary::{Counts, Summary, thousands};

/// Verdicts that are made safe together. Syncing a file takes milliseconds, a verdict tens of microseconds.
const TOGETHER: usize = 1024;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Job {
    /// What is read.
    pub reading: Reading,
    /// Threads that fingerprint.
    pub threads: NonZeroUsize,
    /// Stop at the first record that cannot be judged.
    pub strict: bool,
    /// Write these only; all if there are none.
    pub only: Vec<Only>,
    /// Write the article too.
    pub article: bool,
    /// Write to this file, else to standard output.
    pub output: Option<PathBuf>,
    /// Write what cannot be judged to this file, with the reason.
    pub dead_letters: Option<PathBuf>,
    /// The page that the caller writes at the end.
    pub html: Option<PathBuf>,
    /// Write the clusters to this file at the end.
    pub clusters: Option<PathBuf>,
    /// The file that the engine's constraints came from.
    pub pairs: Option<PathBuf>,
    /// The file that the settings came from.
    pub settings: Option<PathBuf>,
    /// The directory of a state that outlives the run: remember how far it came, and resume there.
    pub state: Option<PathBuf>,
}

/// Which verdicts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// New texts.
    Unique,
    /// Near-duplicates.
    NearDuplicate,
    /// Exact duplicates.
    ExactDuplicate,
    /// Near and exact duplicates.
    Duplicate,
    /// Articles that have to do with others without being copies.
    Related,
    /// Articles that people should look at.
    Review,
}

impl Only {
    fn takes(self, tagged: &Tagged) -> bool {
        match self {
            Only::Unique => tagged.verdict == Verdict::Unique,
            Only::NearDuplicate => tagged.verdict == Verdict::NearDuplicate,
            Only::ExactDuplicate => tagged.verdict == Verdict::ExactDuplicate,
            Only::Duplicate => tagged.verdict != Verdict::Unique,
            Only::Related => !tagged.related.is_empty(),
            Only::Review => tagged.flags.contains(&Flag::Review),
        }
    }
}

/// Who looks on.
pub trait Watch {
    /// A record could not be judged.
    fn dead_letter(&mut self, letter: &DeadLetter);
    /// A file ends in the middle of the record on this line, which is left for a later run.
    fn unfinished(&mut self, name: &str, line: u64);
    /// A batch is done: this much so far, from so many bytes of the inputs.
    fn batch(&mut self, so_far: &Summary, bytes: u64);
    /// The run failed; the lines until then are in this file, and the file that was asked for is as it was.
    fn partial(&mut self, path: &Path);
}

/// Why a run ended early. What was written until then is right.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An input cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An input could be read up to somewhere.
    #[error("{name} cannot be read on after line {after}")]
    Broken {
        /// Which input.
        name: String,
        /// The last line that was read.
        after: u64,
        /// What the system said, or what is wrong with the compressed data.
        #[source]
        error: io::Error,
    },
    /// The verdicts cannot be written.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// A file would be written over another of this run.
    #[error(transparent)]
    Clash(#[from] ClashError),
    /// The state cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The pairs cannot be used.
    #[error(transparent)]
    Pairs(#[from] PairsError),
    /// The first record that cannot be judged, where that ends the run.
    #[error("{}", letter_line(.0))]
    Strict(Box<DeadLetter>),
    /// What was read of standard input the first time is gone.
    #[error("- is named twice; standard input can be read once")]
    Pipes,
    /// One file cannot be continued in two places.
    #[error("{0} is named twice; with --state each file is read once")]
    Twice(String),
}

/// A dead letter in one line: where, and why.
pub fn letter_line(letter: &DeadLetter) -> String {
    let place = match &letter.position {
        Position::File { file, line } => format!("{file}:{line}"),
        Position::Topic { topic, partition, offset } => format!("{topic}/{partition} offset {offset}"),
    };
    format!("{place}: {}: {}", letter.reason.as_str(), letter.message)
}

/// Judges all articles of the job, in order.
///
/// The verdicts are the same for any number of threads, and, with a state that outlives the run, for any number of
/// interruptions.
///
/// # Errors
/// What was written until then is right, and a rerun goes on from there where the state outlives the run.
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
    let pairs = pairs::entry(&engine.settings().constraints);
    refuse_other_pairs(job, &before, pairs.as_ref())?;
    let files = identify(job, &before)?;
    let (mut sink, mut letters) = written::open(job, &before)?;
    let clusters = job.clusters.as_deref().map(Sink::whole).transpose()?;
    register(state, &mut before, pairs.filter(|_| job.state.is_some()), [Some(&mut sink), letters.as_mut()])?;
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
        letters,
        summary: Summary { judged_before, ..Summary::default() },
        bytes: Arc::new(AtomicU64::new(0)),
    };
    let bytes = Arc::clone(&run.bytes);
    let outcome = thread::scope(|scope| {
        // Dropped when this ends, however it ends; then no thread waits for it to take more.
        let mut stage = Stage::start(scope, &job.reading, preparer, starts, job.threads, bytes);
        run.judge_all(&mut stage, watch)
    });
    let outcome = outcome.and_then(|()| Ok(run.state.flush()?));
    let outcome = outcome.and_then(|()| match clusters {
        Some(file) => clusters::write(engine, &*run.state, file),
        None => Ok(()),
    });
    let Run { sink, letters, summary, .. } = run;
    if let Err(error) = outcome {
        for partial in [Some(sink), letters].into_iter().flatten().filter_map(Written::keep) {
            watch.partial(&partial);
        }
        return Err(error);
    }
    sink.finish()?;
    letters.map_or(Ok(()), Written::finish)?;
    Ok(summary)
}

/// Tells the state which files it is going to write, and makes that safe before the first line: otherwise a run that is killed
/// early leaves a file that the next run must take for somebody else's.
fn register(
    state: &mut impl Store,
    before: &mut Progress,
    pairs: Option<(InputName, Input)>,
    files: [Option<&mut Written>; 2],
) -> Result<(), RunError> {
    let mut new: Vec<_> = pairs.into_iter().filter(|(name, _)| !before.inputs.contains_key(name)).collect();
    for file in files.into_iter().flatten() {
        new.extend(file.entry()?);
    }
    if new.is_empty() {
        return Ok(());
    }
    before.inputs.extend(new);
    state.apply_own_changes(&[Change::Progress(before.clone())])?;
    Ok(state.flush()?)
}

/// Refuses pairs that are not those of the verdicts that a state has given.
fn refuse_other_pairs(
    job: &Job,
    before: &Progress,
    ours: Option<&(InputName, Input)>,
) -> Result<(), PairsError> {
    let known = before.inputs.get(&pairs::name());
    let is_new = known.is_none() && before.languages.is_empty();
    if job.state.is_none() || is_new || known == ours.map(|(_, input)| input) {
        return Ok(());
    }
    Err(PairsError::Others { known: known.map_or(0, |known| known.next) })
}

/// What is known of each source; nothing where nothing is remembered.
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
        if !names.insert(file.name().clone()) {
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
    sink: Written,
    letters: Option<Written>,
    summary: Summary,
    bytes: Arc<AtomicU64>,
}

impl<S: Store> Run<'_, S> {
    fn judge_all(&mut self, stage: &mut Stage, watch: &mut dyn Watch) -> Result<(), RunError> {
        while let Some(first) = stage.next() {
            let mut together = vec![first];
            let mut count = together[0].items.len();
            // Verdicts do not depend on where batches are cut, so whatever is there is taken along.
            while count < TOGETHER && together.last().is_some_and(|last| last.failure.is_none()) {
                let Some(more) = stage.next_now() else { break };
                count += more.items.len();
                together.push(more);
            }
            self.judge(together, watch)?;
            watch.batch(&self.summary, self.bytes.load(Ordering::Relaxed));
        }
        Ok(())
    }

    /// Plans, writes, makes safe, applies: one batch.
    fn judge(&mut self, ready: Vec<Ready>, watch: &mut dyn Watch) -> Result<(), RunError> {
        let mut batch = Batch::default();
        let (mut articles, mut originals) = (Vec::new(), Vec::new());
        let mut end = None;
        'all: for Ready { source, items, next, unfinished, failure } in ready {
            let remaining = items.len() as u64;
            for (at, ReadyItem { item, raw, named, original }) in items.into_iter().enumerate() {
                // Whether a text is known cannot be told here; who wants to be strict wants a text.
                if let (true, Incoming::DeadLetter(letter) | Incoming::Bodiless { refusal: letter, .. }) =
                    (self.job.strict, &item.incoming)
                {
                    end = Some(RunError::Strict(Box::new(letter.clone())));
                    let judged = next - remaining + at as u64;
                    batch.inputs.extend(self.files[source].as_ref().map(|file| file.entry(judged)));
                    break 'all;
                }
                self.summary.named_by_line += u64::from(named);
                self.summary.deletes += u64::from(matches!(item.incoming, Incoming::Delete(_)));
                batch.items.push(item);
                articles.push(raw);
                originals.push(original);
            }
            batch.inputs.extend(self.files[source].as_ref().map(|file| file.entry(next)));
            if let Some(line) = unfinished {
                watch.unfinished(&self.job.reading.sources[source].name(), line);
            }
            if failure.is_some() {
                end = failure;
                break;
            }
        }
        let (mut plan, mut write_set) = self.engine.plan(&*self.state, batch)?;
        // Before anything is written: room that cannot be made is found out now.
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
                        if self.job.only.is_empty() || self.job.only.iter().any(|only| only.takes(tagged)) {
                            self.summary.written += 1;
                            let article = article.as_deref().filter(|_| self.job.article);
                            json::Envelope { tagged, article }.write(&mut lines);
                        }
                    }
                    Output::DeadLetter(letter) => {
                        *self.summary.dead_letters.entry(letter.reason).or_default() += 1;
                        watch.dead_letter(letter);
                        json::write_dead_letter(letter, original.as_deref(), &mut letters);
                    }
                    // A file says what each article was when it came, and does not take it back.
                    Output::Tombstone { .. }
                    | Output::Notice { .. }
                    | Output::Cluster(_)
                    | Output::ClusterDeleted { .. } => {}
                }
            }
        }
        if let Some((name, input)) = self.sink.add(&lines)? {
            remember(&mut plan, &mut write_set, name, input);
        }
        if let Some(written) = self.letters.as_mut().filter(|_| !letters.is_empty())
            && let Some((name, input)) = written.add(&letters)?
        {
            remember(&mut plan, &mut write_set, name, input);
        }
        self.state.apply_own(write_set)?;
        if let Some(report) = &mut self.report {
            report.add(&plan, &articles, &*self.state)?;
        }
        end.map_or(Ok(()), Err)
    }
}

/// Adds the length of the output to the progress that a plan ends with.
fn remember(plan: &mut Plan, write_set: &mut WriteSet, name: &InputName, input: Input) {
    if let Some(Change::Progress(progress)) = plan.changes.last_mut() {
        progress.inputs.insert(name.clone(), input);
        write_set.set_progress(progress);
    }
}
