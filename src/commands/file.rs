//! `samestory file`: turns its arguments into a [`Job`], runs it over a store in memory or in a directory, and reports progress.
//! The run itself, and where it resumes, is in `samestory::files`. Every output path is checked before anything is opened for writing.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Instant, SystemTime};

use clap::ValueEnum;
use samestory::config::Config;
use samestory::files;
use samestory::files::{
    FileFormat, FileRunError, InputSpec, Job, Only, OutputFormat, Source, Summary, TextEncoding, WholeFile,
};
use samestory::formats::fields::{Field, Fields};
use samestory::report::{About, HtmlReport};
use samestory_engine::engine::{Algorithm, Engine, Preparer};
use samestory_engine::index::{Durability, Memory, Store};
use samestory_engine::model::EventTime;

use super::Failure;
use super::progress::RunProgress;

const EXAMPLES: &str = "\
Examples:
  samestory file articles.ndjson > tagged.ndjson
  samestory file articles.csv --output tagged.csv --html report.html
  samestory file newsapi.json --records articles --field body=content --output tagged.ndjson.gz
  samestory file *.csv.gz --field body=story_text --field id=nid --only unique
  zcat dump.json.gz | samestory file - --no-article | head
  samestory file articles.ndjson --pairs pairs.tsv > tagged.ndjson
  samestory file articles.ndjson --no-article --clusters clusters.ndjson > /dev/null
  samestory file march/*.ndjson --state state/ --output tagged.ndjson   # resumes after an interruption
  samestory file crawl.ndjson --dead-letters dead.ndjson > tagged.ndjson && jq -r .original dead.ndjson

Each article becomes one JSON object per line: its verdict, the article that it repeats, its cluster, and the original article.
The name of the output chooses its format: .csv, .tsv and .parquet have the input's columns with verdict, match_type, duplicate_of,
similarity, confidence and cluster_id beside them; every other name is NDJSON; .gz and .zst compress. --to says it for standard
output. --clusters takes the same names; its tables have one row per member.

The first line of a run says how each input is read: format, encoding, and which column became which field.

A record that cannot be judged is counted and skipped; the first of each kind is reported with file and line. --dead-letters keeps
all of them, one JSON object per line: file, line, reason, message, and original (or original_hex, if the line is not UTF-8). A run
that could judge nothing, or that refused more than --max-errors of its records, writes its output and exits with 1.

Output files are written under a name ending in .partial-NUMBER and renamed when they are complete, so a failed run leaves an
existing file untouched and says where its partial output is. With --state, the output is continued in place instead, and a
file that this state did not write is refused. Overwriting an input, the settings, a part of the state, or another output is
refused before anything is written.

In the file of --pairs, a line a<TAB>b<TAB>same makes the later of the two articles a duplicate of the earlier one (match type
reviewed), and a<TAB>b<TAB>different keeps it out of the other's cluster. A state keeps the pairs that it was created with.

Articles need an id and a body. The usual names are understood (id, _id, guid …; body, text, content …; lang, language;
title, headline; published_at, date; url, link). --field maps other names to id, body, title, url, host, language,
content_type, published_at, fetched_at and deleted. A path can lead into objects and arrays: content.text, paragraphs[].text.
An input without ids gets file:line as ids: a table without an id column, or JSON whose first record has none. --id line does
it for every record without an id.";

/// Judge the articles in files or from a pipe
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// NDJSON, JSON, CSV or TSV with a header, plain or compressed (gz, zst), Parquet or Arrow; - for standard input
    #[arg(required = true, value_name = "FILES")]
    files: Vec<PathBuf>,
    /// Write tagged articles to this file instead of standard output; its name chooses the format: .csv, .parquet, .ndjson.gz
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the output [default: from its name, else ndjson]
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<ToName>,
    /// Write records that cannot be judged to this file: file, line, reason and the original line
    #[arg(long, value_name = "FILE")]
    dead_letters: Option<PathBuf>,
    /// Write an HTML report that shows matched articles side by side, the most doubtful first
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the clusters with two or more members to this file, NDJSON or CSV by its name
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    /// Keep state in this directory: later runs know these articles, and an interrupted run resumes
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Confidence from which an article is a duplicate, 0 to 1: higher keeps more apart [default: 0.5, or the settings]
    #[arg(long, value_name = "NUMBER")]
    pub(super) threshold: Option<f64>,
    /// Forget an article this long after it was last seen, in event time: 7d, 12h [default: forever]
    #[arg(long, value_name = "DURATION")]
    retention: Option<String>,
    /// File of pairs that you have judged: two ids and `same` or `different` per line, separated by tabs
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
    /// Write only these verdicts; separate several with commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "VERDICT")]
    only: Vec<OnlyName>,
    /// Write verdicts without the articles
    #[arg(long)]
    no_article: bool,
    /// Path of a field in your articles, for example body=content.text; repeatable
    #[arg(long, value_name = "FIELD=PATH", value_parser = parse_field)]
    field: Vec<(Field, String)>,
    /// Source of ids: a field of the article, or its file and line if it has none
    #[arg(long, value_enum, default_value = "field")]
    id: IdFrom,
    /// Format of the files [default: detected from name and content]
    #[arg(long, value_enum)]
    format: Option<FormatName>,
    /// Keys under which a JSON file has its records, separated by dots: articles, response.results
    #[arg(long, value_name = "KEY")]
    records: Option<String>,
    /// Character encoding of the files: windows-1252, shift_jis, gbk, … [default: UTF-8, or guessed]
    #[arg(long, value_name = "NAME", value_parser = parse_encoding)]
    encoding: Option<TextEncoding>,
    /// Stop at the first record that cannot be judged
    #[arg(long)]
    strict: bool,
    /// Exit with 1 if more than this percentage of the records could not be judged
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = parse_percent)]
    max_errors: f64,
    /// Threads for fingerprinting; verdicts do not depend on it [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Print neither progress nor a summary
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnlyName {
    /// Articles whose text is new
    Unique,
    /// Changed or partial copies
    NearDuplicate,
    /// Identical texts
    ExactDuplicate,
    /// Near and exact duplicates
    Duplicate,
    /// Articles related to another without repeating it
    Related,
    /// Articles flagged for review
    Review,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatName {
    /// One JSON object per line
    Ndjson,
    /// A JSON array, or objects that span several lines
    Json,
    /// Comma-separated values with a header
    Csv,
    /// Tab-separated values with a header
    Tsv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ToName {
    /// One JSON object per line: the verdict with the article
    Ndjson,
    /// The input's columns and those of the verdict, separated by commas
    Csv,
    /// The same, separated by tabs
    Tsv,
    /// The same as Apache Parquet
    #[cfg(feature = "parquet")]
    Parquet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum IdFrom {
    /// A field of the article
    Field,
    /// A field of the article, else file:line
    Line,
}

fn parse_encoding(text: &str) -> Result<TextEncoding, String> {
    TextEncoding::parse(text).ok_or_else(|| {
        "use a name such as utf-8, latin1, windows-1252, windows-1251, shift_jis, euc-jp, gbk, big5 or euc-kr"
            .to_owned()
    })
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    let number = number.ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "use a percentage from 0 to 100".to_owned())
}

fn parse_field(text: &str) -> Result<(Field, String), String> {
    let known = || Field::ALL.map(Field::name).join(", ");
    let (field, path) = text.split_once('=').ok_or("write FIELD=PATH, for example body=content.text")?;
    let field = Field::from_name(field)
        .ok_or_else(|| format!("there is no field \"{field}\"; the fields are {}", known()))?;
    Fields::default().with(field, path).map_err(|error| error.to_string())?;
    Ok((field, path.to_owned()))
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let start = Instant::now();
    let pairs = args.pairs.as_deref().map(files::read_pairs).transpose().map_err(FileRunError::from)?;
    let mut config = config.for_files(args.retention.as_deref(), pairs.unwrap_or_default())?;
    let job = job(args, &config)?;
    // The report shows why; the output has it only if the settings ask for it.
    config.engine.evidence |= args.html.is_some();
    let config = &config;
    // Comes before anything is opened for writing, the state included.
    job.refuse_clashes().map_err(FileRunError::from)?;
    let total: Option<u64> = job.reading.sources.iter().map(|source| source.check().ok().flatten()).sum();
    let mut progress = RunProgress::new(total, args.quiet, args.output.clone(), args.state.is_some());
    for warning in &config.warnings {
        progress.note(warning);
    }
    let mut report = args.html.as_ref().map(|_| HtmlReport::new(&job.reading));
    // Opened first, so that an unwritable path fails now and not after an hour.
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
        progress.say("writing the report");
        let html = report.render(&summary, &job.reading, &config.text, &about(args, config));
        page.write(html.as_bytes()).map_err(|error| page_failure(path, error))?;
    }
    let files = [
        ("verdicts", &args.output),
        ("letters", &args.dead_letters),
        ("clusters", &args.clusters),
        ("report", &args.html),
    ];
    progress.finish(&summary, start.elapsed(), &files);
    let refused = summary.refused() * 100.0;
    if let Some((name, line)) = summary.truncated {
        return Err(Failure::Truncated { name, line });
    }
    match () {
        () if summary.judged_nothing() => Err(Failure::NothingJudged { records: summary.dead() }),
        () if refused > args.max_errors => Err(Failure::TooManyRefused {
            refused: summary.dead(),
            percent: refused,
            allowed: args.max_errors,
        }),
        () => Ok(()),
    }
}

/// The report's facts about the run: the day, and the settings that differ from run to run.
#[allow(clippy::disallowed_methods, reason = "the day that the report names does not influence verdicts")]
fn about(args: &Args, config: &Config) -> About {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = EventTime::from_millis(i64::try_from(now.as_millis()).unwrap_or_default()).to_string();
    let rules = &config.engine.default.rules;
    let decides = match config.engine.default.algorithm {
        Algorithm::Combined => format!("duplicates from confidence {:.2}", rules.min_confidence),
        Algorithm::Minhash => format!("minhash, duplicates from similarity {:.2}", rules.threshold),
        Algorithm::Simhash64 | Algorithm::Simhash128 => "simhash".to_owned(),
    };
    let retention = args.retention.as_deref().unwrap_or("forever");
    About {
        made_on: now.chars().take("2026-03-02".len()).collect(),
        settings: format!("{decides}, retention {retention}, settings {:08x}", config.engine.config),
    }
}

/// Has the first Ctrl-C end the run after the current batch, and the second one end the process.
fn stop_on_signals() -> std::io::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

fn judge(
    job: &Job,
    config: &Config,
    state: &mut impl Store,
    report: Option<&mut HtmlReport>,
    progress: &mut RunProgress,
) -> Result<Summary, Failure> {
    let engine = Engine::new(config.engine.clone());
    Ok(files::run(job, &engine, Preparer::new(config.text.clone()), state, report, progress)?)
}

fn job(args: &Args, config: &Config) -> Result<Job, Failure> {
    // Paths from the command line replace all paths of the same field in the settings.
    let mut fields = config.fields.clone();
    for (field, _) in &args.field {
        fields = fields.without(*field);
    }
    for (field, path) in &args.field {
        fields = fields.clone().with(*field, path).unwrap_or(fields);
    }
    let by_name = |path: &Option<PathBuf>| match path {
        Some(path) => OutputFormat::by_name(path),
        None => Ok(OutputFormat::Ndjson),
    };
    let to = match args.to {
        None => by_name(&args.output)?,
        Some(ToName::Ndjson) => OutputFormat::Ndjson,
        Some(ToName::Csv) => OutputFormat::Csv,
        Some(ToName::Tsv) => OutputFormat::Tsv,
        #[cfg(feature = "parquet")]
        Some(ToName::Parquet) => OutputFormat::Parquet,
    };
    let sources = args.files.iter().map(|file| Source::new(file)).collect();
    let reading = InputSpec {
        format: args.format.map(|format| match format {
            FormatName::Ndjson => FileFormat::Ndjson,
            FormatName::Json => FileFormat::Json,
            FormatName::Csv => FileFormat::Csv,
            FormatName::Tsv => FileFormat::Tsv,
        }),
        encoding: args.encoding,
        records: args.records.as_ref().map(|keys| keys.split('.').map(str::to_owned).collect()),
        wait_for_columns: to != OutputFormat::Ndjson,
        name_by_line: args.id == IdFrom::Line,
        ..InputSpec::new(sources, fields, config.owner.clone(), config.max_record())
    };
    let only = args.only.iter().map(|only| match only {
        OnlyName::Unique => Only::Unique,
        OnlyName::NearDuplicate => Only::NearDuplicate,
        OnlyName::ExactDuplicate => Only::ExactDuplicate,
        OnlyName::Duplicate => Only::Duplicate,
        OnlyName::Related => Only::Related,
        OnlyName::Review => Only::Review,
    });
    Ok(Job {
        reading,
        threads: args.threads.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN),
        strict: args.strict,
        only: only.collect(),
        article: !args.no_article,
        evidence: config.engine.evidence,
        to,
        clusters_to: by_name(&args.clusters)?,
        stop: stop_on_signals()?,
        output: args.output.clone(),
        dead_letters: args.dead_letters.clone(),
        html: args.html.clone(),
        clusters: args.clusters.clone(),
        pairs: args.pairs.clone(),
        settings: config.file.clone(),
        state: args.state.clone(),
    })
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
    use samestory_engine::fingerprint::config_hash;
    use samestory_engine::index::{Budget, Rocks, RocksOptions, View};
    let options =
        RocksOptions::new(config.postings.clone(), Durability::OwnWal, Budget::new(config.store_memory));
    let state = Rocks::open(directory, &options).map_err(files::FileRunError::from)?;
    let place = directory.display().to_string();
    state.accepts_fingerprints(config_hash(&config.text), &place).map_err(files::FileRunError::from)?;
    Ok(state)
}
