//! `samestory compare`: judges two texts as if only the older had been seen before, and shows the passages in common. It
//! stores nothing.

use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;

use samestory::compat::tlsh::{self, Band, TlshError};
use samestory::config::Config;
use samestory_engine::ContentKind;
use samestory_engine::engine::compare::{Comparison, Relation};
use samestory_engine::fingerprint::{config_hash, of_text};
use samestory_engine::text::language;
use samestory_engine::text::language::Language;
use samestory_engine::text::passages::{Passage, common_passages};
use serde_json::{Value, json};

use super::input::{Input, TextArgs};
use super::{AnswerFormat, Failure};
use samestory::terminal::style::{Style, printable};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  samestory compare morning.txt evening.txt
  curl -s https://example.org/story | samestory compare morning.html -
  samestory compare a.txt b.txt --format json | jq .verdict
  samestory compare --exit-code a.txt b.txt > /dev/null && echo the same")]
pub(super) struct Args {
    /// The older text: a file, or - for standard input
    a: PathBuf,
    /// The newer text: a file, or - for standard input if the older is a file
    b: PathBuf,
    #[command(flatten)]
    text: TextArgs,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: AnswerFormat,
    /// Confidence from which the newer text is a duplicate, 0 to 1 [default: 0.5, or the settings]
    #[arg(long, value_name = "NUMBER")]
    pub(super) threshold: Option<f64>,
    /// Exit with 3 if the newer text is not a duplicate of the older
    #[arg(long)]
    exit_code: bool,
}

/// Two texts and their comparison.
struct ComparedPair<'a> {
    a: &'a Input,
    b: &'a Input,
    pair: Comparison,
    /// The language whose rules cut both texts into shingles.
    language: &'static Language,
    /// True if their homes differ; such articles are never compared.
    different_homes: bool,
    content_kinds: [ContentKind; 2],
    config: u32,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    if [&args.a, &args.b].iter().all(|name| name.as_os_str() == "-") {
        return Err(Failure::OneInput);
    }
    let (a, b) = (args.text.read(&args.a, config)?, args.text.read(&args.b, config)?);
    let hash = config_hash(&config.text);
    let language = language::row(b.text.language.home);
    let (old, new) = (of_text(&a.text, hash), of_text(&b.text, hash));
    let mut pair = config.language(language.lang).compare_alone(&old, &new);
    let content_kinds = [a.text.content_kind(old.tokens), b.text.content_kind(new.tokens)];
    let different_homes = a.text.language.home != b.text.language.home;
    if different_homes {
        pair.relation = Relation::Different;
    }
    let compared =
        ComparedPair { a: &a, b: &b, pair, language, different_homes, content_kinds, config: hash };
    let passages = common_passages(&a.plain, &b.plain, language);
    let mut out = samestory::terminal::stdout();
    match args.format {
        AnswerFormat::Json => writeln!(out, "{:#}", as_json(&compared, &passages))?,
        AnswerFormat::Table => table(&mut out, &compared, &passages, config)?,
    }
    if args.exit_code && !compared.pair.relation.is_duplicate() {
        return Err(Failure::NotTheSame);
    }
    Ok(())
}

/// Verdict and match type of the newer text, if the older one were the only earlier article.
fn verdict(relation: Relation) -> (&'static str, Option<&'static str>) {
    match relation {
        Relation::Exact => ("exact-duplicate", Some("exact")),
        Relation::Near => ("near-duplicate", Some("near")),
        Relation::Rewritten => ("near-duplicate", Some("rewritten")),
        Relation::Partial => ("near-duplicate", Some("partial")),
        _ => ("unique", None),
    }
}

/// The TLSH distance of the two texts, which no verdict depends on.
fn tlsh_distance(compared: &ComparedPair<'_>) -> Result<u32, TlshError> {
    tlsh::distance(&tlsh::digest_text(&compared.a.plain)?, &tlsh::digest_text(&compared.b.plain)?)
}

fn as_json(compared: &ComparedPair<'_>, passages: &[Passage]) -> Value {
    let pair = &compared.pair;
    let (verdict, match_type) = verdict(pair.relation);
    let tlsh = match tlsh_distance(compared) {
        Ok(distance) => {
            let band = Band::for_distance(distance);
            json!({ "distance": distance, "band": band.range(), "meaning": band })
        }
        Err(error) => json!({ "distance": null, "error": error.to_string() }),
    };
    let related = !pair.relation.is_duplicate() && pair.relation != Relation::Different;
    json!({
        "verdict": verdict,
        "match_type": match_type,
        "related": related.then_some(pair.relation),
        "similarity": pair.similarity,
        "containment": { "a_in_b": round(pair.containment_of_old), "b_in_a": round(pair.containment) },
        "numerals": pair.numerals.map(round),
        "simhash_distance": pair.distance,
        "tlsh": tlsh,
        "languages": { "a": compared.a.text.language.lang, "b": compared.b.text.language.lang },
        "content_kinds": { "a": compared.content_kinds[0], "b": compared.content_kinds[1] },
        "config": format!("{:08x}", compared.config),
        "passages": passages.iter().map(|passage| json!({
            "a": [passage.a.start, passage.a.end],
            "b": [passage.b.start, passage.b.end],
            "tokens": passage.tokens,
            "text": &compared.b.plain[passage.b.clone()],
        })).collect::<Vec<_>>(),
    })
}

fn round(fraction: f64) -> f64 {
    (fraction * 10_000.0).round() / 10_000.0
}

fn table(
    out: &mut impl Write,
    compared: &ComparedPair<'_>,
    passages: &[Passage],
    config: &Config,
) -> io::Result<()> {
    let (paint, pair) = (Style::for_stdout(), &compared.pair);
    let rules = config.rules(compared.language.lang);
    writeln!(out, "{}\n", paint.bold(&sentence(compared)))?;
    let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
    let numerals = pair.numerals.map_or("no numbers to compare".to_owned(), |fraction| {
        format!("{} of the smaller set is in the other", percent(fraction))
    });
    let tlsh = match tlsh_distance(compared) {
        Ok(distance) => {
            let band = Band::for_distance(distance);
            format!("distance {distance}, {band} ({})", band.range())
        }
        Err(error) => format!("none: {error}"),
    };
    let (verdict, match_type) = verdict(pair.relation);
    let rows = [
        ("verdict", match_type.map_or(verdict.to_owned(), |kind| format!("{verdict} ({kind})"))),
        (
            "similarity",
            format!("{} (near-duplicate from {})", percent(pair.similarity), percent(rules.threshold)),
        ),
        ("old in new", percent(pair.containment_of_old)),
        (
            "new in old",
            format!("{} (a part from {})", percent(pair.containment), percent(rules.containment_threshold)),
        ),
        ("numbers", numerals),
        ("SimHash", format!("{} of 128 bits differ", pair.distance)),
        ("TLSH", tlsh),
        ("language", format!("{} / {}", compared.a.text.language.lang, compared.b.text.language.lang)),
    ];
    for (name, value) in rows {
        writeln!(out, "  {name:<11} {value}")?;
    }
    if passages.is_empty() {
        return writeln!(out, "\nNo passage in common.");
    }
    writeln!(out, "\n{} in common, longest first:", plural(passages.len(), "passage"))?;
    let mut longest: Vec<&Passage> = passages.iter().collect();
    longest.sort_by_key(|passage| (std::cmp::Reverse(passage.tokens), passage.b.start));
    for passage in longest.iter().take(SHOWN) {
        let tokens = paint.dim(&format!("{:>5} tokens", passage.tokens));
        writeln!(out, "  {tokens}  {}", in_context(&compared.b.plain, &passage.b, paint))?;
    }
    if longest.len() > SHOWN {
        writeln!(out, "  … and {} shorter (all with --format json)", longest.len() - SHOWN)?;
    }
    Ok(())
}

/// How many passages a table shows.
const SHOWN: usize = 8;

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn sentence(compared: &ComparedPair<'_>) -> String {
    let (a, b) = (&compared.a.name, &compared.b.name);
    match compared.pair.relation {
        Relation::Exact => format!("{b} is the same text as {a}."),
        Relation::Near => format!("{b} is a near-duplicate of {a}."),
        Relation::Rewritten => {
            format!("{b} is {a} in other words: a near-duplicate.")
        }
        Relation::Partial => format!("{b} is a near-duplicate of {a}: one lies mostly inside the other."),
        Relation::Extends => {
            format!("{b} contains {a} and adds more than it repeats: it is unique.")
        }
        Relation::SameTemplate => {
            format!("{b} has the form of {a} with other facts: it is unique.")
        }
        Relation::FollowUp => format!("{b} reports other news of the same story as {a}: it is unique."),
        Relation::SameFurniture => format!("{b} and {a} have only page furniture in common."),
        Relation::Different if compared.different_homes => {
            format!("{b} and {a} are in different languages, so they are never compared.")
        }
        Relation::Different => format!("{b} is a different text from {a}."),
    }
}

/// A passage with a few characters of context; the middle of a long one is left out.
fn in_context(text: &str, passage: &Range<usize>, paint: Style) -> String {
    const AROUND: usize = 24;
    const LONGEST: usize = 160;
    let before: String = text[..passage.start].chars().rev().take(AROUND).collect();
    let before: String = before.chars().rev().collect();
    let after: String = text[passage.end..].chars().take(AROUND).collect();
    let inside: Vec<char> = text[passage.clone()].chars().collect();
    let inside: String = if inside.len() > LONGEST {
        let half = LONGEST / 2;
        inside[..half]
            .iter()
            .chain(" … ".chars().collect::<Vec<_>>().iter())
            .chain(&inside[inside.len() - half..])
            .collect()
    } else {
        inside.into_iter().collect()
    };
    format!(
        "{}{}{}",
        paint.dim(&printable(&before)),
        paint.common(&printable(&inside)),
        paint.dim(&printable(&after))
    )
}
