//! `samestory reconcile`: compares a range of the raw topic with the output topics. The comparison is in
//! `kafka::tools::reconcile`; this prints its result and turns it into an exit code.

use std::io::Write;
use std::time::Duration;

use clap::Parser;
use samestory::config::Config;
use samestory::formats::time;
use samestory::kafka::tools::reconcile::{ReconcileRequest, Reconciled, reconcile};
use samestory_engine::model::EventTime;

use super::{AnswerFormat, Failure};

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory reconcile                                    everything that the topics still hold
  samestory reconcile --since 2026-03-02T00:00:00Z       since midnight
  samestory reconcile --partition 3 --from 1000 --to 2000
  samestory reconcile --since 2026-03-02 --format json | jq .gaps

Every record of the raw topic must have exactly one tagged article or dead letter; a delete has its tombstones, each once, and
none if its id is not known. The command reads only committed records, waits until the stage has judged what it has read, and
names the offsets that are wrong. Records whose outputs may have been deleted by retention are counted and not judged. It joins
no consumer group, writes nothing, and can run beside the stage.

Exit codes:
  0  every record has what it must have, once
  1  there is a gap or a double, or the topics could not be compared")]
pub(super) struct Args {
    /// Compare only this partition of the raw topic
    #[arg(long, value_name = "N")]
    partition: Option<i32>,
    /// The first offset
    #[arg(long, value_name = "OFFSET", requires = "partition")]
    from: Option<i64>,
    /// The first offset that is not compared any more
    #[arg(long, value_name = "OFFSET", requires = "partition")]
    to: Option<i64>,
    /// Compare records with this timestamp or a later one
    #[arg(long, value_name = "TIME", value_parser = time_of)]
    since: Option<EventTime>,
    /// Compare records with an earlier timestamp
    #[arg(long, value_name = "TIME", value_parser = time_of)]
    until: Option<EventTime>,
    /// How long to wait until the stage has judged what it has read
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
    /// How many gaps and doubles to name
    #[arg(long, value_name = "N", default_value_t = 20)]
    list: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = AnswerFormat::Table)]
    format: AnswerFormat,
}

/// Parses a time of the command line.
pub(super) fn time_of(text: &str) -> Result<EventTime, String> {
    time::parse(text).ok_or_else(|| "write a time such as 2026-03-02T06:00:00Z".to_owned())
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let request = ReconcileRequest {
        partition: args.partition,
        from: args.from,
        to: args.to,
        since: args.since,
        until: args.until,
        wait: Duration::from_secs(args.wait),
    };
    let found = reconcile(config, &request)?;
    let mut out = samestory::terminal::stdout();
    match args.format {
        AnswerFormat::Json => writeln!(out, "{}", serde_json::json!(found))?,
        AnswerFormat::Table => write!(out, "{}", report(&found, args.list))?,
    }
    match found.is_exact() {
        true => Ok(()),
        false => Err(Failure::NotExact { gaps: found.gap_count, doubles: found.double_count }),
    }
}

fn report(found: &Reconciled, list: usize) -> String {
    let mut text = String::new();
    for range in &found.ranges {
        text += &format!(
            "{} partition {}: offsets {} to {}\n",
            found.topic,
            range.partition,
            range.from,
            range.to - 1
        );
    }
    let mut line = |name: &str, count: u64, note: &str| {
        text += &format!("  {name:<22} {count:>12}{}{note}\n", if note.is_empty() { "" } else { "  " });
    };
    line("records", found.records, "");
    line("tagged articles", found.tagged, "");
    line("dead letters", found.dead_letters, "");
    let unknown = found.deletes - found.deletes_published;
    line("deletes", found.deletes, &format!("{unknown} of them of ids that were not known, or had expired"));
    line("tombstones", found.tombstones, "of deletes, and of articles that left a topic");
    for (name, count, note) in [
        ("control records", found.control, ""),
        ("before publish_from", found.before_publish_from, ""),
        ("not provable", found.unprovable, "as old as outputs that retention has deleted"),
        ("outputs without input", found.without_input, "their raw records are compacted or deleted"),
    ] {
        if count > 0 {
            line(name, count, note);
        }
    }
    line("gaps", found.gap_count, "");
    line("doubles", found.double_count, "");
    for gap in found.gaps.iter().take(list) {
        let key = gap.key.as_deref().map(|key| format!(" (key {key})")).unwrap_or_default();
        text += &format!(
            "gap: {} partition {} offset {}{key}: nothing was published\n",
            found.topic, gap.partition, gap.offset
        );
    }
    for double in found.doubles.iter().take(list) {
        let outputs = double
            .outputs
            .iter()
            .map(|at| format!("{} partition {} offset {}", at.topic, at.partition, at.offset));
        let outputs = outputs.collect::<Vec<_>>().join(", ");
        text += &format!(
            "double: {} partition {} offset {}: {outputs}\n",
            found.topic, double.partition, double.offset
        );
    }
    let named = found.gaps.len().min(list) + found.doubles.len().min(list);
    let left = (found.gap_count + found.double_count).saturating_sub(named as u64);
    if left > 0 {
        text += &format!("… and {left} more; --list names more of them\n");
    }
    text
}
