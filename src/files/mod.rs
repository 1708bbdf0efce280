//! Runs the engine on files and pipes, without a broker.
//!
//! `stage` reads and fingerprints articles ahead; [`run`] judges them batch by batch, in input order. A
//! batch is planned, its verdicts are written and synced, and only then is it applied to the state. A run
//! interrupted at any moment therefore resumes where state and output agree (`resume`).
//!
//! - `job`: what to run, and who is told; `clash` refuses outputs that would overwrite a file of the run
//! - bytes in: `source` opens, `encoding` decodes, `records` splits (`lines`, `array`, `walk`, `table`, `columnar`)
//! - bytes out: `output_format` encodes (`columns` decides the columns), `output_file` chooses a `sink`; `clusters`

mod array;
mod clash;
mod clusters;
#[cfg(feature = "parquet")]
mod columnar;
mod columns;
mod compress;
mod control;
mod encoding;
mod job;
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
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::formats::json;
use samestory_engine::engine::{Batch, Engine, Incoming, Output, Preparer};
use samestory_engine::index::{Change, FileProgress, Store};

use crate::report::HtmlReport;
use columns::{FileColumns, columns_of_files, continue_columns};
use output_file::OutputFile;
use output_format::Encoder;
use resume::Identity;
use stage::{NextChunk, PreparedChunk, PreparedRecord, Stage};

pub use clash::ClashError;
pub use control::set_stream_time;
pub use encoding::TextEncoding;
pub use job::{FileRunError, Job, Only, Watch, letter_line};
pub use output_format::{OutputFormat, OutputFormatError, VERDICT_COLUMNS};
pub use pairs::{PairsError, read_pairs};
pub use read_as::ReadAs;
pub use records::FileFormat;
pub use replace::{WholeFile, for_output};
pub use sink::SinkError;
pub use source::{Source, SourceError};
pub use stage::{InputSpec, each_record};
pub use summary::{Refusals, Summary, VerdictCounts, thousands};

/// Verdicts per sync. Syncing a file takes milliseconds, a verdict tens of microseconds.
const SYNC_EVERY: usize = 1024;

/// How long to wait for an input before looking whether the run should stop.
const LOOK_UP: Duration = Duration::from_millis(100);

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
    report: Option<&mut HtmlReport>,
    watch: &mut dyn Watch,
) -> Result<Summary, FileRunError> {
    for source in &job.reading.sources {
        source.check()?;
    }
    if job.reading.sources.iter().filter(|source| matches!(source, Source::Pipe)).count() > 1 {
        return Err(FileRunError::Pipes);
    }
    job.refuse_clashes()?;
    let mut before = state.progress()?;
    let pairs = pairs::list(&engine.settings().constraints);
    resume::refuse_other_pairs(job, &before, pairs)?;
    let files = resume::identify(job, &before)?;
    let mut encoder = Encoder::new(job.to, job.article, job.evidence);
    if job.state.is_some() && job.to.is_whole() {
        return Err(FileRunError::Whole);
    }
    let file_columns = if job.to.has_columns() { Some(columns_of_files(&job.reading)?) } else { None };
    let (mut sink, mut letters) = output_file::open(job, &before.files)?;
    if let Some(known) = &file_columns
        && known.is_all
    {
        encoder.set_columns(&known.columns, known.id.as_deref(), false);
        continue_columns(job, &sink, known, &mut encoder)?;
    }
    let clusters = job.clusters.as_deref().map(OutputFile::create).transpose()?;
    resume::register(state, &mut before, pairs.filter(|_| job.state.is_some()), &mut sink, letters.as_mut())?;
    let starts = resume::starts(&files);
    let judged_before = starts.iter().map(|start| start.skip).sum();
    let mut run = FileRun {
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
    let FileRun { sink, letters, summary, mut encoder, .. } = run;
    if let Err(error) = outcome {
        let mut sink = sink;
        if job.to.is_whole() && sink.partial().is_some() {
            // Without its end, the partial file could not be read. The run has failed already, perhaps for want of space.
            let mut end = Vec::new();
            let _written = encoder.finish(&mut end).is_ok() && sink.add(&end).is_ok();
        }
        for partial in [Some(sink), letters].into_iter().flatten().filter_map(OutputFile::keep) {
            watch.partial(&partial);
        }
        return Err(error);
    }
    let mut end = Vec::new();
    encoder.finish(&mut end).map_err(|error| FileRunError::Encode { error })?;
    sink.finish(&end)?;
    letters.map_or(Ok(()), |letters| letters.finish(&[]))?;
    let left_out = encoder.left_out();
    if !left_out.is_empty() {
        watch.left_out(&left_out);
    }
    Ok(summary)
}

/// What is kept of a record until its verdict is written.
struct Kept {
    /// The article's JSON as read.
    article: Option<Box<RawValue>>,
    /// The bytes in the file, for a record that becomes a dead letter.
    original: Option<Vec<u8>>,
}

struct FileRun<'a, S> {
    job: &'a Job,
    engine: &'a Engine,
    state: &'a mut S,
    report: Option<&'a mut HtmlReport>,
    files: Vec<Option<Identity>>,
    sink: OutputFile,
    encoder: Encoder,
    file_columns: Option<FileColumns>,
    letters: Option<OutputFile>,
    summary: Summary,
}

impl<S: Store> FileRun<'_, S> {
    fn judge_all(&mut self, stage: &mut Stage, watch: &mut dyn Watch) -> Result<(), FileRunError> {
        loop {
            if self.job.stop.load(Ordering::Relaxed) {
                self.state.flush()?;
                watch.interrupted(&self.summary, self.sink.partial());
                return Err(FileRunError::Interrupted);
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
                read_as.id_column().filter(|id| known.columns.is_empty() || known.id.as_deref() == Some(id));
            known.add(&read_as.columns);
            self.encoder.set_columns(&known.columns, id, self.sink.length > 0);
        }
    }

    /// One batch: plan, write, sync, apply.
    fn judge(&mut self, ready: Vec<PreparedChunk>, watch: &mut dyn Watch) -> Result<(), FileRunError> {
        let mut batch = Batch::default();
        let mut records = Vec::new();
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
                    end = Some(FileRunError::Strict(Box::new(letter.clone())));
                    let judged = next - remaining + at as u64;
                    batch.files.inputs.extend(self.files[source].as_ref().map(|file| file.position(judged)));
                    break 'all;
                }
                self.summary.named_by_line += u64::from(named_by_line);
                self.summary.deletes += u64::from(matches!(item.incoming, Incoming::Delete(_)));
                batch.items.push(item);
                records.push(Kept { article: raw, original });
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
        // The plan decides every item of the batch, in its order.
        for (decided, record) in plan.decided.iter().zip(&records) {
            for output in &decided.outputs {
                match output {
                    Output::Tagged(tagged) => {
                        self.summary.count(tagged);
                        if self.job.only.is_empty() || self.job.only.iter().any(|only| only.matches(tagged)) {
                            self.summary.written += 1;
                            let encoded = self.encoder.add(tagged, record.article.as_deref(), &mut lines);
                            encoded.map_err(|error| FileRunError::Encode { error })?;
                        }
                    }
                    Output::DeadLetter(letter) => {
                        self.summary.refuse(letter);
                        watch.dead_letter(letter);
                        json::write_dead_letter(letter, record.original.as_deref(), &mut letters);
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
            for (decided, record) in plan.decided.iter().zip(&records) {
                report.add(&decided.outputs, record.article.as_deref(), &*self.state)?;
            }
        }
        end.map_or(Ok(()), Err)
    }
}
