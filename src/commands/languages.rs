//! `samestory languages`: lists the language table, or measures on labelled articles how well homes keep copies together.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use samestory_engine::text::language::{LANGUAGES, Segmentation};
use samestory_eval::homes;
use samestory_eval::homes::HomeCounts;
use serde_json::{Value, json};

use super::{AnswerFormat, Failure};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  samestory languages
  samestory languages --format json | jq -r '.[].code'
  samestory languages --measure stream.ndjson

Languages with the same home share one partition and are compared with each other.")]
pub(super) struct Args {
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: AnswerFormat,
    /// Instead of listing, measure how well homes keep copies together, on NDJSON articles with id, lang and body, and with
    /// source_id in an edited copy
    #[arg(long, value_name = "FILE", num_args = 1..)]
    measure: Vec<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if !args.measure.is_empty() {
        return measure(args);
    }
    let mut out = io::stdout().lock();
    let unit = |segment| match segment {
        Segmentation::Words => "words",
        Segmentation::Characters => "characters",
    };
    match args.format {
        AnswerFormat::Json => {
            let rows: Vec<Value> = LANGUAGES
                .iter()
                .map(|row| {
                    json!({
                        "code": row.lang,
                        "home": row.home(),
                        "name": row.name,
                        "segment": unit(row.segment),
                        "shingle": row.shingle,
                    })
                })
                .collect();
            writeln!(out, "{:#}", Value::Array(rows))?;
        }
        AnswerFormat::Table => {
            writeln!(out, "{:<5} {:<5} {:<24} {:<15} sample", "code", "home", "name", "shingle")?;
            for row in LANGUAGES {
                let shingle = format!("{} {}", row.shingle, unit(row.segment));
                writeln!(
                    out,
                    "{:<5} {:<5} {:<24} {shingle:<15} {}",
                    row.lang,
                    row.home(),
                    row.name,
                    row.sample
                )?;
            }
        }
    }
    Ok(())
}

fn measure(args: &Args) -> Result<(), Failure> {
    let mut all = BTreeMap::new();
    for file in &args.measure {
        homes::measure(file, &mut all)?;
    }
    let mut out = io::stdout().lock();
    if let AnswerFormat::Json = args.format {
        writeln!(out, "{:#}", json!(all))?;
        return Ok(());
    }
    let fraction = |part: u32, of: u32| match of {
        0 => "–".to_owned(),
        of => format!("{:.4}", f64::from(part) / f64::from(of)),
    };
    let heads = ["language", "articles", "at home", "copies", "together", "extracts", "together", "coverage"];
    writeln!(out, "{}", heads.map(|head| format!("{head:>9}")).join(" "))?;
    for (language, homes) in &all {
        let HomeCounts { articles, at_home, copies, copies_together, extracts, extracts_together, coverage } =
            *homes;
        let cells = [
            language.clone(),
            articles.to_string(),
            fraction(at_home, articles),
            copies.to_string(),
            fraction(copies_together, copies),
            extracts.to_string(),
            fraction(extracts_together, extracts),
            format!("{coverage:.2}"),
        ];
        writeln!(out, "{}", cells.map(|cell| format!("{cell:>9}")).join(" "))?;
    }
    Ok(())
}
