//! `samestory plan`: estimates disk, memory, partitions and replicas of a stage, and shows the formula behind each figure.
//! [`sizes`] has the arithmetic; this reads the arguments and prints the table.

mod sizes;

use std::io::{self, Write};

use clap::Parser;
use samestory::config::Config;
use samestory_engine::index::Retention;
use samestory_engine::model::Lang;
use samestory_engine::text::language;

use super::Failure;
use samestory::terminal::style::Style;
use sizes::{Needs, StageSizes, WORKER};

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory plan --articles 500000 --languages en=60,hi=25,bn=15
  samestory plan --articles 2000000 --days 30 --bytes 6000 --peak 4 --json
  samestory plan --articles 500000 --languages en=60,hi=25,bn=15 --partitions 2   with existing partitions

The figures extrapolate measurements from one machine (docs/operations.md has the formulas): a starting point, not a guarantee.")]
pub(super) struct Args {
    /// Articles per day
    #[arg(long, value_name = "N")]
    articles: f64,
    /// Days that an article is remembered [default: match.retention]
    #[arg(long, value_name = "N")]
    days: Option<f64>,
    /// Size of an article on the raw topic, in bytes
    #[arg(long, value_name = "N", default_value_t = 4000.0)]
    bytes: f64,
    /// Languages and their relative shares of the articles [default: one language]
    #[arg(long, value_name = "CODE=SHARE,…", value_delimiter = ',')]
    languages: Vec<String>,
    /// Fraction of articles that repeat earlier ones (`samestory probe` counts them)
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    duplicates: f64,
    /// Replicas of each topic [default: topics.replication, else 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=9))]
    replication: Option<u16>,
    /// Articles in the busiest hour, as a multiple of the average
    #[arg(long, value_name = "N", default_value_t = 3.0)]
    peak: f64,
    /// Partitions of match [default: as many as are useful]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    partitions: Option<u16>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Why a plan cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("--{option} {value}: {fix}")]
    Number { option: &'static str, value: f64, fix: &'static str },
    #[error("match.retention = forever has no end; say with --days how long to plan for")]
    Forever,
    #[error("--languages {0}: write codes and shares, as in en=60,hi=25,bn=15")]
    Fraction(String),
    #[error("--languages: {0} is listed twice")]
    Twice(Lang),
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let needs = needs(args, config)?;
    let sizes = needs.sizes();
    let mut out = io::stdout().lock();
    match args.json {
        true => writeln!(out, "{:#}", serde_json::json!({"needs": needs, "sizes": sizes}))?,
        false => out.write_all(table(&needs, &sizes, Style::for_stdout()).as_bytes())?,
    }
    Ok(())
}

fn needs(args: &Args, config: &Config) -> Result<Needs, Failure> {
    let number = |option, value: f64, least: f64, most: f64, fix| match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(PlanError::Number { option, value, fix }),
    };
    let days = match (args.days, config.language(Lang::UND).retention) {
        (Some(days), _) => days,
        (None, Retention::Millis(millis)) => millis as f64 / 86_400_000.0,
        (None, Retention::Forever) => return Err(PlanError::Forever.into()),
    };
    Ok(Needs {
        articles_per_day: number("articles", args.articles, 1.0, 1e12, "a day has from 1 to 10¹² articles")?,
        days: number("days", days, 1e-6, 36_500.0, "plan for more than 0 and at most 36,500 days")?,
        article_bytes: number("bytes", args.bytes, 1.0, 1e9, "an article has from 1 to 10⁹ bytes")?,
        duplicates: number("duplicates", args.duplicates, 0.0, 1.0, "a fraction is between 0 and 1")?,
        peak: number(
            "peak",
            args.peak,
            1.0,
            1000.0,
            "the busiest hour is from 1 to 1,000 times the average",
        )?,
        // The default of `samestory topics --create` in a cluster of three brokers or more.
        replication: args.replication.or(config.bus.topics.replication).unwrap_or(3),
        languages: shares(&args.languages)?,
        partitions: args.partitions,
        store_memory: config.store_memory,
    })
}

/// The languages and their shares, the largest first; the shares add up to one.
fn shares(written: &[String]) -> Result<Vec<(Lang, f64)>, Failure> {
    let mut shares: Vec<(Lang, f64)> = Vec::new();
    for one in written {
        let wrong = || PlanError::Fraction(one.clone());
        let (code, share) = one.split_once('=').ok_or_else(wrong)?;
        let share: f64 = share.trim().trim_end_matches('%').parse().map_err(|_| wrong())?;
        if !(share > 0.0 && share < 1e12) {
            return Err(wrong().into());
        }
        let row =
            language::find(code.trim()).ok_or_else(|| Failure::UnknownLanguage(code.trim().to_owned()))?;
        let home = row.home();
        if shares.iter().any(|&(known, _)| known == home) {
            return Err(PlanError::Twice(home).into());
        }
        shares.push((home, share));
    }
    if shares.is_empty() {
        shares.push((language::find("en").map_or(Lang::UND, |row| row.lang), 1.0));
    }
    let all: f64 = shares.iter().map(|&(_, share)| share).sum();
    shares.iter_mut().for_each(|(_, share)| *share /= all);
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(shares)
}

fn table(needs: &Needs, sizes: &StageSizes, paint: Style) -> String {
    let mut text = format!(
        "{} articles per day for {} days: {}\n",
        count(needs.articles_per_day),
        count(needs.days),
        paint.bold(&format!("{} remembered", count(sizes.remembered_articles)))
    );
    let mut section = |title: &str, rows: &[(&str, String, String)]| {
        text += &format!("\n{}\n", paint.bold(title));
        for (what, value, how) in rows {
            text += &format!("  {what:<28} {value:>10}   {}\n", paint.dim(how));
        }
    };
    let copies = needs.replication;
    section(
        "disk",
        &[
            ("state", bytes(sizes.state_bytes), "2 KiB per remembered article".into()),
            (
                "volumes, in total",
                bytes(sizes.volume_bytes),
                "twice that: compaction, quarantined states".into(),
            ),
            ("changelog topic", bytes(sizes.changelog_bytes), format!("1 kB per article × {copies} copies")),
            (
                "raw topic, per day",
                bytes(sizes.raw_bytes_per_day),
                format!("{} per article × {copies} copies", bytes(needs.article_bytes)),
            ),
            (
                "unique, per day",
                bytes(sizes.unique_bytes_per_day),
                "article and 0.2 kB of verdict, × copies".into(),
            ),
            (
                "near-duplicate, per day",
                bytes(sizes.near_duplicate_bytes_per_day),
                format!("{} of the articles", percent(needs.duplicates)),
            ),
            (
                "routed, per hour of backlog",
                bytes(sizes.routed_bytes_per_hour_of_waiting),
                "at the busiest hour; zero while match keeps up".into(),
            ),
        ],
    );
    section(
        "partitions and processes",
        &[
            (
                "topics.partitions",
                sizes.partitions.to_string(),
                match needs.partitions {
                    Some(_) => "as given".into(),
                    None => "one per language, one for the rest; at least 4".into(),
                },
            ),
            (
                "match replicas, at most",
                sizes.match_replicas.to_string(),
                "a language lives in one partition; more are spares".into(),
            ),
            (
                "busiest partition",
                percent(sizes.busiest_partition),
                format!(
                    "of all articles, so all workers together do {:.1} times the work of one",
                    1.0 / sizes.busiest_partition
                ),
            ),
            (
                "articles per second, peak",
                count(sizes.peak_articles_per_second),
                format!("{} times the average", needs.peak),
            ),
            (
                "busiest match worker",
                percent(sizes.busiest_worker_load),
                format!("of {} per second, measured with one worker", count(WORKER)),
            ),
            (
                "route workers, at least",
                sizes.route_workers.to_string(),
                "stateless: at most as many as the raw topic has partitions".into(),
            ),
        ],
    );
    section(
        "memory and time",
        &[
            (
                "one process for everything",
                bytes(sizes.memory_bytes_of_one_process),
                format!(
                    "150 MB, store.memory ({}), 17 bytes per article, filters beyond that",
                    bytes(needs.store_memory as f64)
                ),
            ),
            (
                "each of those replicas",
                bytes(sizes.memory_bytes_of_each_replica),
                "the same, with the busiest partition".into(),
            ),
            (
                "of that, outside the budget",
                bytes(sizes.memory_bytes_of_each_replica_outside_the_budget),
                "the process, and what grows with remembered articles".into(),
            ),
            (
                "volume of each replica",
                bytes(sizes.volume_bytes_of_each_replica),
                "for the busiest partition".into(),
            ),
            (
                "restore of that partition",
                time(sizes.restore_seconds_of_the_busiest_partition),
                "9,200 articles per second, only if its disk is lost".into(),
            ),
        ],
    );
    if needs.languages.len() > 1 {
        let codes: Vec<String> =
            needs.languages.iter().map(|(language, _)| format!("\"{language}\"")).collect();
        text += &format!(
            "\n[stage]\nlanguages = [{}]     # one partition per language, as far as partitions go\n",
            codes.join(", ")
        );
    }
    if sizes.busiest_worker_load > 0.7 {
        text += "\nThe busiest partition is close to the limit of one worker, or beyond it. A language cannot be split: measure it\n\
                 on your machines (make bench-kafka) before you rely on this.\n";
    }
    text
}

fn bytes(bytes: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if value < 9.95 && unit > 0 {
        format!("{value:.1} {}", units[unit])
    } else {
        format!("{value:.0} {}", units[unit])
    }
}

/// A number with thousands separators; small fractions keep one decimal.
fn count(number: f64) -> String {
    if number < 10.0 && number.fract() != 0.0 {
        return format!("{number:.1}");
    }
    let digits = format!("{number:.0}");
    let digits_left = |at: usize| digits.len() - at;
    let separated = digits.char_indices().map(|(at, digit)| match at > 0 && digits_left(at) % 3 == 0 {
        true => format!(",{digit}"),
        false => digit.to_string(),
    });
    separated.collect()
}

fn percent(share: f64) -> String {
    let share = share * 100.0;
    if share < 9.95 { format!("{share:.1} %") } else { format!("{share:.0} %") }
}

fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 90.0 => format!("{seconds:.0} s"),
        seconds if seconds < 5400.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}
