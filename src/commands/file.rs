//! `samestory file`

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use clap::ValueEnum;
use samestory::config::Config;
use samestory::files as local;
use samestory::files::{Format, InputSpec, Job, Only, RunError, Source, Summary, WholeFile};
use samestory::formats::fields::{Field, Fields};
use samestory::report::Report;
use samestory_engine::engine::{Engine, Preparer};
use samestory_engine::index::{Durability, Memory, Store};

use super::Failure;
use super::progress::Progress;

const EXAMPLES: &str = "\
Examples:
  samestory file articles.ndjson > tagged.ndjson
  samestory file articles.ndjson --output tagged.ndjson --html report.html
  samestory file *.csv.gz --field body=story_text --field id=nid --only unique
  zcat dump.json.gz | samestory file - --no-article | head
  samestory file articles.ndjson --pairs pairs.tsv > tagged.ndjson
  samestory file articles.ndjson --no-article --clusters clusters.ndjson > /dev/null
  samestory file march/*.ndjson --state state/ --output tagged.ndjson   # interrupted? run it again
  samestory file crawl.ndjson --dead-letters dead.ndjson > tagged.ndjson && jq -r .original dead.ndjson

Each article is written as one JSON object per line: its verdict, what it is a copy of, its cluster, and the
article as it came. What cannot be read is named on standard error with file and line, counted, and passed over;
--dead-letters keeps all of it, a JSON object per line: file, line, reason, message, and original, the line as it stands
(original_hex, in hexadecimal digits, where that is no text).

Files are written under a name ending in .partial-NUMBER and take their place when they are complete, so a run that fails leaves
an existing file as it was and says where the lines until then are. With --state an output is continued in place instead, and a
file that this state did not write is refused. A file that is also read, written twice, the settings, or part of the state is
refused before anything is written.

A line a<TAB>b<TAB>same in the file of --pairs makes the later of the two articles a duplicate of the earlier one (match type
reviewed); a<TAB>b<TAB>different keeps it out of the other's cluster. A state goes on with the pairs that it began with.

Articles need an id and a body. Usual names are understood (id, _id, guid …; body, text, content …; lang, language;
title, headline; published_at, date; url, link); --field names others: id, body, title, url, host, language,
content_type, published_at, fetched_at, deleted. Paths may lead into objects and lists: content.text, paragraphs[].text.
A table without a column for ids gets file:line as ids; --id line does the same for JSON.";

/// Judge the articles in files or from a pipe
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// NDJSON, a JSON array, CSV or TSV with a header, plain or compressed (gz, zst); - for standard input
    #[arg(required = true, value_name = "FILES")]
    files: Vec<PathBuf>,
    /// Write tagged articles to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write what cannot be judged to this file: where, why, and the line as it stands
    #[arg(long, value_name = "FILE")]
    dead_letters: Option<PathBuf>,
    /// Write a page that shows what was matched, side by side, most doubtful first
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the clusters of two articles or more to this file at the end, with all their members, a JSON object on each line
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    /// Keep state in this directory: later runs know these articles, and an interrupted run goes on
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Forget an article this long after it was last seen, by the articles' own time: 7d, 12h [default: forever]
    #[arg(long, value_name = "DURATION")]
    retention: Option<String>,
    /// Pairs that you have judged: two ids and `same` or `different` on each line, separated by tabs
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
    /// Write only these; may be several, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "VERDICT")]
    only: Vec<OnlyName>,
    /// Leave the article out: verdicts only
    #[arg(long)]
    no_article: bool,
    /// Where your articles keep a field, for example body=content.text; may be repeated
    #[arg(long, value_name = "FIELD=PATH", value_parser = mapping)]
    field: Vec<(Field, String)>,
    /// Where ids come from: the articles, or, where they have none, their file and line
    #[arg(long, value_enum, default_value = "field")]
    id: IdFrom,
    /// How the files are written; by default told from name and content
    #[arg(long, value_enum)]
    format: Option<FormatName>,
    /// Stop at the first record that cannot be judged
    #[arg(long)]
    strict: bool,
    /// Threads that fingerprint; verdicts do not depend on it [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// No progress and no summary
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnlyName {
    /// New texts
    Unique,
    /// Lightly changed or partial copies
    NearDuplicate,
    /// Word-for-word copies
    ExactDuplicate,
    /// Copies of either kind
    Duplicate,
    /// Articles that extend another or share its template
    Related,
    /// Articles flagged for review
    Review,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatName {
    /// A JSON object on each line
    Ndjson,
    /// A JSON array, or objects over several lines
    Json,
    /// A table with a header
    Csv,
    /// A table with a header, separated by tabs
    Tsv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum IdFrom {
    /// A field
    Field,
    /// A field, else file:line
    Line,
}

fn mapping(text: &str) -> Result<(Field, String), String> {
    let known = || Field::ALL.map(Field::name).join(", ");
    let (field, path) = text.split_once('=').ok_or("write FIELD=PATH, for example body=content.text")?;
    let field = Field::from_name(field)
        .ok_or_else(|| format!("there is no field \"{field}\"; there are {}", known()))?;
    Fields::default().with(field, path).map_err(|error| error.to_string())?;
    Ok((field, path.to_owned()))
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let start = Instant::now();
    let pairs = args.pairs.as_deref().map(local::read_pairs).transpose().map_err(RunError::from)?;
    let config = &config.for_files(args.retention.as_deref(), pairs.unwrap_or_default())?;
    let job = job(args, config);
    // Before anything is opened for writing, the state included.
    job.refuse_clashes().map_err(RunError::from)?;
    let total: Option<u64> = job.reading.sources.iter().map(|source| source.check().ok().flatten()).sum();
    let mut progress = Progress::new(total, args.quiet);
    for warning in &config.warnings {
        progress.note(warning);
    }
    let mut report = args.html.as_ref().map(|_| Report::new(&job.reading));
    // A page that cannot be written is better found out now than after an hour.
    let page = match &args.html {
        Some(path) => Some((path, WholeFile::create(path).map_err(|error| page_failure(path, error))?)),
        None => None,
    };
    let summary = match &args.state {
        None => {
            let mut state = Memory::new(config.postings.clone(), Durability::OwnWal);
            judge(&job, config, &mut state, report.as_mut(), &mut progress)
        }
        Some(directory) => {
            let mut state = open(directory, config)?;
            judge(&job, config, &mut state, report.as_mut(), &mut progress)
        }
    };
    let summary = match summary {
        Ok(summary) => summary,
        Err(failure) => {
            progress.clear();
            return Err(failure);
        }
    };
    if let (Some(report), Some((path, page))) = (report, page) {
        progress.say("writing the page");
        let html = report.render(&summary, &job.reading, &config.text);
        page.write(html.as_bytes()).map_err(|error| page_failure(path, error))?;
    }
    let files = [
        ("verdicts", &args.output),
        ("letters", &args.dead_letters),
        ("clusters", &args.clusters),
        ("report", &args.html),
    ];
    progress.finish(&summary, start.elapsed(), &files);
    Ok(())
}

fn judge(
    job: &Job,
    config: &Config,
    state: &mut impl Store,
    report: Option<&mut Report>,
    progress: &mut Progress,
) -> Result<Summary, Failure> {
    let engine = Engine::new(config.engine.clone());
    Ok(local::run(job, &engine, Preparer::new(config.text), state, report, progress)?)
}

fn job(args: &Args, config: &Config) -> Job {
    // What is said on the command line replaces what the settings say of that field.
    let mut fields = config.fields.clone();
    for (field, _) in &args.field {
        fields = fields.without(*field);
    }
    for (field, path) in &args.field {
        fields = fields.clone().with(*field, path).unwrap_or(fields);
    }
    let reading = InputSpec {
        sources: args.files.iter().map(|file| Source::new(file)).collect(),
        format: args.format.map(|format| match format {
            FormatName::Ndjson => Format::Ndjson,
            FormatName::Json => Format::Json,
            FormatName::Csv => Format::Csv,
            FormatName::Tsv => Format::Tsv,
        }),
        fields,
        owner: config.owner.clone(),
        name_by_line: args.id == IdFrom::Line,
        limit: config.max_record(),
    };
    let only = args.only.iter().map(|only| match only {
        OnlyName::Unique => Only::Unique,
        OnlyName::NearDuplicate => Only::NearDuplicate,
        OnlyName::ExactDuplicate => Only::ExactDuplicate,
        OnlyName::Duplicate => Only::Duplicate,
        OnlyName::Related => Only::Related,
        OnlyName::Review => Only::Review,
    });
    Job {
        reading,
        threads: args.threads.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN),
        strict: args.strict,
        only: only.collect(),
        article: !args.no_article,
        output: args.output.clone(),
        dead_letters: args.dead_letters.clone(),
        html: args.html.clone(),
        clusters: args.clusters.clone(),
        pairs: args.pairs.clone(),
        settings: config.file.clone(),
        state: args.state.clone(),
    }
}

fn page_failure(path: &Path, error: std::io::Error) -> Failure {
    Failure::Page { path: path.to_owned(), error }
}

#[cfg(not(feature = "rocksdb"))]
fn open(_directory: &Path, _config: &Config) -> Result<Memory, Failure> {
    Err(Failure::NoState)
}

#[cfg(feature = "rocksdb")]
fn open(directory: &Path, config: &Config) -> Result<samestory_engine::index::Rocks, Failure> {
    use samestory_engine::index::{Budget, Rocks, RocksOptions};
    let options = RocksOptions::new(config.postings.clone(), Durability::OwnWal, Budget::default());
    Ok(Rocks::open(directory, &options).map_err(local::RunError::from)?)
}
