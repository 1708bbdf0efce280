//! `samestory languages`

use std::io::{self, Write};

use samestory::text::language::{LANGUAGES, Segment};
use serde_json::{Value, json};

use super::{Failure, Format};

#[derive(clap::Args)]
pub(super) struct Args {
    /// How to print it
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
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
                    json!({"code": row.lang, "name": row.name, "segment": cut(row.segment), "shingle": row.shingle})
                })
                .collect();
            writeln!(out, "{:#}", Value::Array(rows))?;
        }
        Format::Table => {
            writeln!(out, "{:<5} {:<24} {:<15} sample", "code", "name", "shingle")?;
            for row in LANGUAGES {
                let shingle = format!("{} {}", row.shingle, cut(row.segment));
                writeln!(out, "{:<5} {:<24} {shingle:<15} {}", row.lang, row.name, row.sample)?;
            }
        }
    }
    Ok(())
}
