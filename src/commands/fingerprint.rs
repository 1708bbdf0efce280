//! `samestory fingerprint`: prints the fingerprint of one text, and in JSON also the fingerprints of other systems that
//! `samestory-compat` computes.

use std::io::Write;
use std::path::PathBuf;

use samestory::compat;
use samestory::config::Config;
use samestory_engine::engine::compare::Rules;
use samestory_engine::fingerprint::{Fingerprint, config_hash, of_text};
use samestory_engine::text::Text;
use serde_json::{Value, json};

use super::input::TextArgs;
use super::{AnswerFormat, Failure};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  samestory fingerprint article.html
  curl -s https://example.org/ | samestory fingerprint -
  samestory fingerprint story.txt --language hi --format json | jq .content_hash")]
pub(super) struct Args {
    /// A text, HTML or Markdown file; - for standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    #[command(flatten)]
    text: TextArgs,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: AnswerFormat,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let input = args.text.read(&args.file, config)?;
    let print = of_text(&input.text, config_hash(&config.text));
    let mut out = samestory::terminal::stdout();
    match args.format {
        AnswerFormat::Json => {
            writeln!(out, "{:#}", as_json(&print, &input.text, &input.plain))?;
        }
        AnswerFormat::Table => {
            let language = &input.text.language;
            let rows = [
                ("text", input.name),
                ("language", format!("{} ({})", language.lang, language.source.as_str())),
                ("content", input.text.content_kind(print.tokens).as_str().to_owned()),
                ("tokens", print.tokens.to_string()),
                ("shingles", format!("{} distinct", print.shingles)),
                ("content hash", format!("{:032x}", print.content)),
                ("SimHash 64", format!("{:016x}", print.simhash64())),
                ("SimHash 128", format!("{:032x}", print.simhash)),
                (
                    "TLSH",
                    compat::tlsh::digest_text(&input.plain).unwrap_or_else(|error| format!("none: {error}")),
                ),
                ("MinHash", format!("{} … (128 lanes; all with --format json)", hex(&print.minhash[..4]))),
                ("numerals", format!("{} distinct", print.numerals.distinct())),
                ("scheme", print.scheme.number().to_string()),
                ("config", format!("{:04x}", print.config)),
                ("size", format!("{} bytes", print.encode().len())),
            ];
            for (name, value) in rows {
                writeln!(out, "{name:<13} {value}")?;
            }
            if let Some(note) = note(&print, Rules::SHORTEST) {
                writeln!(out, "\n{note}")?;
            }
        }
    }
    Ok(())
}

fn note(print: &Fingerprint, shortest: u32) -> Option<String> {
    match print.tokens {
        0 => Some("There is no text here: it is never matched with anything.".to_owned()),
        tokens if tokens < shortest => {
            Some(format!("Fewer than {shortest} tokens: only ever matched word for word."))
        }
        _ => None,
    }
}

fn hex(values: &[u16]) -> String {
    values.iter().map(|value| format!("{value:04x}")).collect::<Vec<_>>().join(" ")
}

fn as_json(print: &Fingerprint, text: &Text, plain: &str) -> Value {
    json!({
        "language": text.language.lang,
        "language_source": text.language.source,
        "content_kind": text.content_kind(print.tokens),
        "tokens": print.tokens,
        "shingles": print.shingles,
        "content_hash": format!("{:032x}", print.content),
        "simhash64": format!("{:016x}", print.simhash64()),
        "simhash128": format!("{:032x}", print.simhash),
        "minhash": print.minhash.as_slice(),
        "sample": print.sample.values(),
        "numerals": { "distinct": print.numerals.distinct(), "hashes": print.numerals.values() },
        "scheme": print.scheme.number(),
        "config": format!("{:04x}", print.config),
        "compat": {
            "simhash_fnv": compat::simhash::compute_simhash(plain),
            "simhash_fnv_unicode": compat::simhash::compute_simhash_unicode(plain),
            "txtfp_minhash": compat::txtfp::minhash(plain).map(|signature| {
                hex::encode(signature.to_bytes())
            }),
            "minhash_fnv": compat::fnv_minhash::compute_minhash(plain).map(|signature| {
                hex::encode(signature.to_bytes())
            }),
            "tlsh": compat::tlsh::digest_text(plain).ok(),
            "tlsh_error": compat::tlsh::digest_text(plain).err().map(|error| error.to_string()),
            "txtfp_simhash": compat::txtfp::simhash(plain).map(|hash| format!("{:016x}", hash.bits())),
        },
    })
}
