//! `samestory eval` measures verdicts on labelled articles; `samestory tune` chooses `min_confidence` for one language. Both
//! judge in memory and only write the files that their arguments name.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use samestory::config::Config;
use samestory_engine::text::language;
use samestory_eval::{Report, RunOptions, Set, evidence, run, tune};

use super::{AnswerFormat, Failure};

const EXAMPLES: &str = "\
Examples:
  samestory eval stream.ndjson     articles labelled with `cluster`, or with `source_id` and `expect`
  samestory eval news.ndjson       labels in news.pairs.tsv or news.jaccard.tsv beside it
  samestory eval stream.ndjson --ignore-language --save report.json

Each file is judged separately, in its order and in memory. docs/labelled-data.md describes the formats.";

/// Measure precision and recall on labelled articles
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// NDJSON files of labelled articles, with lists of pairs beside them
    #[arg(required = true, value_name = "LABELLED")]
    files: Vec<PathBuf>,
    /// Ignore the declared language of the articles
    #[arg(long)]
    ignore_language: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: AnswerFormat,
    /// Also write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Write the evidence of the labelled pairs to this file, as TSV for `make fit`
    #[arg(long, value_name = "FILE")]
    evidence: Option<PathBuf>,
}

/// Choose min_confidence for a language on labelled articles
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  samestory tune stream.ndjson --language hi
  samestory tune stream.ndjson --language hi --output hi.toml

Half of the labelled pairs choose the value, the other half measure it. The report goes to standard error, the settings to
standard output.")]
pub(super) struct TuneArgs {
    /// NDJSON files of labelled articles, with lists of pairs beside them
    #[arg(required = true, value_name = "LABELLED")]
    files: Vec<PathBuf>,
    /// Code of the language, as in `samestory languages`
    #[arg(long, short, value_name = "CODE")]
    language: String,
    /// Write the settings to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let engine_options = config.options();
    let options = RunOptions { ignore_language: args.ignore_language };
    let mut runs = Vec::new();
    let mut rows = String::new();
    for file in &args.files {
        let set = Set::read(file)?;
        if args.evidence.is_some() {
            evidence::rows(&engine_options, &set, options, &mut rows)?;
        }
        let run = run::run(&engine_options, &set, options)?;
        runs.push((set, run));
    }
    if let Some(path) = &args.evidence {
        save(path, &format!("{}\n{rows}", evidence::header()))?;
    }
    let report = Report::new(&runs);
    if let Some(path) = &args.save {
        save(path, &format!("{:#}\n", serde_json::json!(report)))?;
    }
    let mut out = samestory::terminal::stdout();
    match args.format {
        AnswerFormat::Json => writeln!(out, "{:#}", serde_json::json!(report))?,
        AnswerFormat::Table => write!(out, "{report}")?,
    }
    Ok(())
}

pub(super) fn tune(args: &TuneArgs, config: &Config) -> Result<(), Failure> {
    let language =
        language::find(&args.language).ok_or_else(|| Failure::UnknownLanguage(args.language.clone()))?;
    let engine_options = config.options();
    let mut pairs = Vec::new();
    for file in &args.files {
        pairs.extend(tune::pairs(&engine_options, &Set::read(file)?, language.home())?);
    }
    let code = language.lang.code();
    let tuned = tune::tune(&pairs, config.language(language.home()));
    let mut out = io::stderr().lock();
    writeln!(out, "{code}: chosen on {} pairs, measured on {} others:\n", tuned.pairs.0, tuned.pairs.1)?;
    let same = pairs.iter().filter(|pair| pair.same).count();
    writeln!(out, "{same} of all pairs are the same text, {} are different texts.", pairs.len() - same)?;
    for choice in &tuned.choices {
        let mark = if choice.min_confidence == tuned.min_confidence { "→" } else { " " };
        let f1 = choice.f1.map_or("–".to_owned(), |f1| format!("{f1:.4}"));
        let (precision, recall) = (choice.precision.to_string(), choice.recall.to_string());
        writeln!(
            out,
            "{mark} {:.2}  F1 {f1:<7} precision {precision:<44} recall {recall}",
            choice.min_confidence
        )?;
    }
    let edges = [tuned.choices.first(), tuned.choices.last()];
    if edges.iter().flatten().any(|choice| choice.min_confidence == tuned.min_confidence) {
        writeln!(
            out,
            "\nThe chosen value is the first or last one tried, so these pairs do not determine it. Add pairs of similar\nbut different texts before you use it."
        )?;
    }
    writeln!(out, "\n{} verdicts would change:", tuned.flips.len())?;
    for (old, new, before, after, same) in &tuned.flips {
        let truth = if *same { "the same text" } else { "different texts" };
        writeln!(out, "  {old}  {new}  {} → {}  ({truth})", before.as_str(), after.as_str())?;
    }
    drop(out);
    let error = tuned.calibration.expected_error;
    let settings = format!(
        "[languages.{code}]\nmin_confidence = {:.2}\n# Calibration error on the pairs that did not choose it: {error:.4}\n",
        tuned.min_confidence
    );
    match &args.output {
        Some(path) => save(path, &settings),
        None => Ok(io::stdout().write_all(settings.as_bytes())?),
    }
}

fn save(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::Save { path: path.into(), error })
}
