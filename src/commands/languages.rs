//! `samestory languages`

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use samestory_engine::text::language::{LANGUAGES, Segment};
use samestory_eval::homes;
use samestory_eval::homes::Homes;
use serde_json::{Value, json};

use super::{Failure, Format};

#[derive(clap::Args)]
pub(super) struct Args {
    /// How to print it
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Measure instead how well homes hold copies together, on files with one JSON article a line: id, lang, body, and
    /// source_id in an edited copy
    #[arg(long, value_name = "FILE", num_args = 1..)]
    measure: Vec<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if !args.measure.is_empty() {
        return measure(args);
    }
    let mut out = io::stdout().lock();
    let cut = |segment| match segment {
        Segment::Words => "words",
        Segment::Characters => "characters",
    };
    match args.format {
        Format::Json => {
            let rows: Vec<Value> = LANGUAGES
                .iter()
                .map(|row| {
                    json!({
                        "code": row.lang,
                        "home": row.home(),
                        "name": row.name,
                        "segment": cut(row.segment),
                        "shingle": row.shingle,
                    })
                })
                .collect();
            writeln!(out, "{:#}", Value::Array(rows))?;
        }
        Format::Table => {
            writeln!(out, "{:<5} {:<5} {:<24} {:<15} sample", "code", "home", "name", "shingle")?;
            for row in LANGUAGES {
                let shingle = format!("{} {}", row.shingle, cut(row.segment));
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
    if let Format::Json = args.format {
        writeln!(out, "{:#}", json!(all))?;
        return Ok(());
    }
    let share = |part: u32, of: u32| match of {
        0 => "–".to_owned(),
        of => format!("{:.4}", f64::from(part) / f64::from(of)),
    };
    let heads = ["language", "articles", "at home", "copies", "together", "extracts", "together", "coverage"];
    writeln!(out, "{}", heads.map(|head| format!("{head:>9}")).join(" "))?;
    for (language, homes) in &all {
        let Homes { articles, at_home, copies, copies_together, extracts, extracts_together, coverage } =
            *homes;
        let cells = [
            language.clone(),
            articles.to_string(),
            share(at_home, articles),
            copies.to_string(),
            share(copies_together, copies),
            extracts.to_string(),
            share(extracts_together, extracts),
            format!("{coverage:.2}"),
        ];
        writeln!(out, "{}", cells.map(|cell| format!("{cell:>9}")).join(" "))?;
    }
    Ok(())
}
