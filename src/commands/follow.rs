//! `samestory follow`: verdicts as they arrive.

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
  samestory follow                          from now on, until Ctrl-C
  samestory follow --from-beginning --idle 5  everything there is, then end

Joins no consumer group and writes nothing.")]
pub(super) struct Args {
    /// Begin with the oldest verdict instead of the next
    #[arg(long)]
    from_beginning: bool,
    /// End when nothing has come for so many seconds
    #[arg(long, value_name = "SECONDS")]
    idle: Option<u64>,
    /// End after so many records
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
        return format!("{}  {key}", paint.bold("dead letter     "));
    }
    if record.is_tombstone {
        return format!("{}  {key}  (no longer on {})", paint.dim("gone            "), record.topic);
    }
    let says = |name: &str| record.header(name).map(printable).unwrap_or_default();
    let verdict = format!("{:<16}", says("verdict"));
    let language = says("language");
    match record.header("duplicate-of") {
        Some(of) => format!(
            "{}  {language:<3} {key}  = {}  ({}, similarity {})",
            paint.bold(&verdict),
            printable(of),
            says("match-type"),
            says("similarity")
        ),
        None => format!("{}  {language:<3} {key}", verdict),
    }
}
