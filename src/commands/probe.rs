//! `samestory probe`: reads the newest records of a topic with the current settings and reports what the stage would make of
//! them. It joins no consumer group and writes nothing.

use clap::Parser;
use samestory::config::Config;
use samestory::kafka::tools::probe::{Probed, probe};
use samestory_engine::model::VerdictKind;

use super::Failure;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory probe articles.raw                    the newest 1000 records
  samestory probe crawl.v2 --limit 20000 --config samestory.toml

The report shows which records cannot be read and why, the path where each field was found, the paths of all values, nested
ones too, as [input.fields] writes them, the number of distinct ids, the
languages, the sizes of articles, and how many repeat each other. The command joins no consumer group and writes nothing.")]
pub(super) struct Args {
    /// The topic to read
    topic: String,
    /// How many of its newest records to read
    #[arg(long, default_value_t = 1000)]
    limit: u64,
}

/// Paths of values that a report lists.
const PATHS: usize = 40;

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let probed = probe(config, &args.topic, args.limit)?;
    print!("{}", samestory::terminal::escaped(&report(&args.topic, &probed)));
    Ok(())
}

fn report(topic: &str, probed: &Probed) -> String {
    let mut out = format!(
        "{topic}: {} partitions, about {} records; read the newest {}\n",
        probed.partitions, probed.held, probed.records
    );
    let mut line = |name: &str, text: String| out.push_str(&format!("  {name:<14} {text}\n"));
    let percent = |count: u64, of: u64| format!("{count} ({:.1} %)", count as f64 * 100.0 / of.max(1) as f64);
    let articles: u64 = probed.languages.values().sum();
    let failures: u64 = probed.failures.values().map(|(count, _)| count).sum();
    line("articles", percent(articles, probed.records));
    if probed.deletes > 0 {
        line("deletes", percent(probed.deletes, probed.records));
    }
    line("cannot be read", percent(failures, probed.records));
    for (reason, (count, message)) in &probed.failures {
        line("", format!("{count} × {}, for example: {message}", reason.as_str()));
    }
    for (field, names) in &probed.sources {
        let mut names: Vec<_> = names.iter().collect();
        names.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let shown: Vec<String> = names
            .iter()
            .take(4)
            .map(|(name, count)| format!("{name} {}", percent(**count, articles)))
            .collect();
        line(field.name(), format!("from {}", shown.join(", ")));
    }
    let mut paths: Vec<_> = probed.paths.iter().collect();
    paths.sort_by_key(|(path, count)| (std::cmp::Reverse(**count), (*path).clone()));
    for (at, ((path, kind), count)) in paths.iter().take(PATHS).enumerate() {
        let name = if at == 0 { "values" } else { "" };
        line(name, format!("{path} ({kind}) in {}", percent(**count, probed.records)));
    }
    if paths.len() > PATHS {
        line("", format!("… and {} other paths", paths.len() - PATHS));
    }
    if articles > 0 {
        line("distinct ids", percent(probed.distinct_ids, articles));
    }
    if articles >= 10 && probed.distinct_ids * 2 < articles {
        let advice = "few: most articles are versions of others; is input.fields.id the article's id?";
        line("", advice.to_owned());
    }
    if probed.without_key > 0 {
        line(
            "without a key",
            format!(
                "{}; key records by article id, or versions may be judged out of order",
                percent(probed.without_key, articles)
            ),
        );
    }
    if probed.other_key > 0 {
        line(
            "another key",
            format!(
                "{} have a key that is not their id, so a tombstone deletes nothing",
                percent(probed.other_key, articles)
            ),
        );
    }
    let size = |percentile: usize| {
        let at = (probed.sizes.len() * percentile / 100).min(probed.sizes.len().saturating_sub(1));
        probed.sizes.get(at).copied().unwrap_or(0)
    };
    line("bytes", format!("half below {}, 99 % below {}, largest {}", size(50), size(99), size(100)));
    let mut languages: Vec<_> = probed.languages.iter().collect();
    languages.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let shown: Vec<String> =
        languages.iter().take(12).map(|(lang, count)| format!("{lang} {count}")).collect();
    line("languages", format!("{} ({} detected from the text)", shown.join(", "), probed.detected));
    let copies = probed.verdicts.iter().filter(|(verdict, _)| **verdict != VerdictKind::Unique);
    let copies: u64 = copies.map(|(_, count)| count).sum();
    line(
        "repeat others",
        format!("{} of the records read; a longer history finds more", percent(copies, articles)),
    );
    out
}
