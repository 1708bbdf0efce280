//! `samestory dead-letters`: lists dead letters with their reasons, and sends them to the raw topic again. The work is in
//! `kafka::tools::dead_letters`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use samestory::config::Config;
use samestory::kafka::tools::dead_letters::{DeadLetterFilter, StoredDeadLetter, list, replay};
use samestory::terminal::style::printable;
use samestory_engine::model::EventTime;
use serde_json::json;

use super::reconcile::time_of;
use super::{AnswerFormat, Failure};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  samestory dead-letters list
  samestory dead-letters replay --reason too-large --dry-run")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Print dead letters with their reasons
    #[command(after_help = "\
Examples:
  samestory dead-letters list                                   all, and how many there are of each reason
  samestory dead-letters list --reason undecodable --limit 10
  samestory dead-letters list --since 2026-03-02 --format json  NDJSON, for programs

It joins no consumer group and writes nothing.")]
    List(ListArgs),
    /// Send dead letters to the raw topic again, after their cause is removed
    #[command(after_help = "\
Examples:
  samestory dead-letters replay --reason unknown-schema --dry-run   say what would be sent
  samestory dead-letters replay --reason unknown-schema             after the schema was registered
  samestory dead-letters replay --at 0:17 --at 3:4                  two letters of the dead-letter topic

A letter goes back to the partition that it came from, with the same bytes, key, headers and timestamp, and the header
samestory-replayed. It is judged as if it arrived now: if a newer version of the article has arrived meanwhile, the replayed one
replaces it. A second replay sends the letters a second time. A letter whose value was too large to be copied cannot be replayed.
If the cause remains, the record becomes a dead letter again.")]
    Replay(ReplayArgs),
}

#[derive(clap::Args)]
struct FilterArgs {
    /// Only letters with this reason, for example no-body; repeatable
    #[arg(long, value_name = "REASON")]
    reason: Vec<String>,
    /// Only the letter at this position of the dead-letter topic; repeatable
    #[arg(long, value_name = "PARTITION:OFFSET", value_parser = place)]
    at: Vec<(i32, i64)>,
    /// Only letters with this timestamp or a later one
    #[arg(long, value_name = "TIME", value_parser = time_of)]
    since: Option<EventTime>,
    /// Only letters with this key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl FilterArgs {
    fn filter(&self) -> DeadLetterFilter {
        let (reasons, at) = (self.reason.clone(), self.at.clone());
        DeadLetterFilter { reasons, at, since: self.since, key: self.key.clone() }
    }
}

#[derive(clap::Args)]
struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Print at most this many; the totals count all
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: AnswerFormat,
}

#[derive(clap::Args)]
struct ReplayArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Replay every letter of the topic
    #[arg(long)]
    all: bool,
    /// Print what would be sent, and send nothing
    #[arg(long)]
    dry_run: bool,
}

fn place(text: &str) -> Result<(i32, i64), String> {
    let parsed = text
        .split_once(':')
        .and_then(|(partition, offset)| Some((partition.parse().ok()?, offset.parse().ok()?)));
    parsed.ok_or_else(|| "write PARTITION:OFFSET, for example 0:17".to_owned())
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    match &args.command {
        Command::List(args) => show(args, config),
        Command::Replay(args) => send(args, config),
    }
}

fn show(args: &ListArgs, config: &Config) -> Result<(), Failure> {
    let mut out = samestory::terminal::stdout();
    let (mut reasons, mut shown, mut failed) = (BTreeMap::<String, u64>::new(), 0, Ok(()));
    list(config, &args.filter.filter(), |letter| {
        *reasons.entry(letter.reason.clone()).or_default() += 1;
        if shown < args.limit && failed.is_ok() {
            shown += 1;
            failed = match args.format {
                AnswerFormat::Json => writeln!(out, "{}", as_json(letter)),
                AnswerFormat::Table => writeln!(out, "{}", line(letter)),
            };
        }
    })?;
    failed?;
    let total: u64 = reasons.values().sum();
    if total > shown {
        eprintln!("… and {} more; --limit prints more of them", total - shown);
    }
    let counted: Vec<String> =
        reasons.iter().map(|(reason, count)| format!("{count} {}", printable(reason))).collect();
    let counted = if counted.is_empty() { String::new() } else { format!(": {}", counted.join(", ")) };
    eprintln!("{total} dead letters on {}{counted}", config.bus.topics.dead_letter);
    Ok(out.flush()?)
}

fn send(args: &ReplayArgs, config: &Config) -> Result<(), Failure> {
    let filter = &args.filter;
    let chosen =
        !filter.reason.is_empty() || !filter.at.is_empty() || filter.since.is_some() || filter.key.is_some();
    if !chosen && !args.all {
        return Err(Failure::ReplayWhat);
    }
    let mut out = samestory::terminal::stdout();
    let mut failed: io::Result<()> = Ok(());
    let done = replay(config, &filter.filter(), args.dry_run, |letter, sends| {
        if failed.is_ok() {
            let what = match (sends, args.dry_run) {
                (false, _) => "cannot be replayed",
                (true, true) => "would be sent",
                (true, false) => "sent",
            };
            failed = writeln!(out, "{what:<18}  {}", line(letter));
        }
    })?;
    failed?;
    let verb = if args.dry_run { "would be sent" } else { "sent" };
    eprintln!("{} dead letters {verb} to {}", done.sent, config.bus.topics.raw);
    if done.incomplete > 0 {
        eprintln!("{} were too large to be copied: their source has to send them again", done.incomplete);
    }
    if done.from_elsewhere > 0 {
        eprintln!("{} do not come from {}", done.from_elsewhere, config.bus.topics.raw);
    }
    Ok(out.flush()?)
}

fn line(letter: &StoredDeadLetter) -> String {
    let from = letter.from.as_ref().map(|(topic, partition, offset)| format!("{topic} {partition}:{offset}"));
    format!(
        "{}:{}  {:<14}  {}  from {}  {}",
        letter.partition,
        letter.offset,
        printable(&letter.reason),
        printable(letter.key.as_deref().unwrap_or("(no key)")),
        printable(&from.unwrap_or_else(|| "an unknown position".to_owned())),
        printable(&letter.message),
    )
}

fn as_json(letter: &StoredDeadLetter) -> serde_json::Value {
    let from = letter
        .from
        .as_ref()
        .map(|(topic, partition, offset)| json!({"topic": topic, "partition": partition, "offset": offset}));
    json!({
        "partition": letter.partition,
        "offset": letter.offset,
        "time": letter.time.map(|time| time.to_string()),
        "key": letter.key,
        "bytes": letter.bytes,
        "reason": letter.reason,
        "stage": letter.stage,
        "message": letter.message,
        "from": from,
        "can_be_replayed": from.is_some() && !letter.is_incomplete,
    })
}
