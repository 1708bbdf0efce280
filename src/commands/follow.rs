//! `samestory follow`: prints one line per published verdict, tombstone or dead letter. It joins no consumer group and reads
//! only committed records.

use std::io::{self, Write};
use std::time::Duration;

use clap::Parser;
use samestory::config::Config;
use samestory::kafka::tools::follow::{FollowedRecord, follow};

use super::Failure;
use samestory::terminal::style::{Style, printable};

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory follow                            new verdicts, until Ctrl-C
  samestory follow --from-beginning --idle 5  all verdicts, then exit

It joins no consumer group and writes nothing.")]
pub(super) struct Args {
    /// Start with the oldest verdict instead of the next one
    #[arg(long)]
    from_beginning: bool,
    /// Exit when no record has arrived for this many seconds
    #[arg(long, value_name = "SECONDS")]
    idle: Option<u64>,
    /// Exit after this many records
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let topics = &config.bus.topics;
    let mut names = vec![topics.unique.as_str(), topics.near_duplicate.as_str(), topics.dead_letter.as_str()];
    names.dedup();
    let idle = args.idle.map(Duration::from_secs);
    let (mut shown, mut failed) = (0, Ok(()));
    let paint = Style::for_stdout();
    follow(&config.bus, &names, args.from_beginning, idle, &mut |record| {
        let line = line(&record, &topics.dead_letter, paint);
        failed = writeln!(samestory::terminal::stdout(), "{line}").and_then(|()| io::stdout().flush());
        shown += 1;
        failed.is_ok() && args.count.is_none_or(|count| shown < count)
    })?;
    Ok(failed?)
}

fn line(record: &FollowedRecord, dead_letters: &str, paint: Style) -> String {
    let key = printable(&record.key);
    if record.topic == dead_letters {
        let error = |name: &str| record.error_header(name).map(printable).unwrap_or_default();
        let (reason, message) = (error("exception.class.name"), error("exception.message"));
        let from = format!("{} {}:{}", error("topic"), error("partition"), error("offset"));
        return format!("{}  {key}  {reason}: {message}  (from {from})", paint.bold("dead letter     "));
    }
    if record.is_tombstone {
        return format!("{}  {key}  (no longer on {})", paint.dim("gone            "), record.topic);
    }
    let header = |name: &str| record.header(name).map(printable).unwrap_or_default();
    let verdict = format!("{:<16}", header("verdict"));
    let language = header("language");
    match record.header("duplicate-of") {
        Some(original) => format!(
            "{}  {language:<3} {key}  = {}  ({}, similarity {})",
            paint.bold(&verdict),
            printable(original),
            header("match-type"),
            header("similarity")
        ),
        None => format!("{}  {language:<3} {key}", verdict),
    }
}
