//! `samestory erase`: deletes articles through the raw topic and proves that they are gone. The work is in
//! `kafka::tools::erase`; docs/erasure.md explains the report to a data-protection officer.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use samestory::config::Config;
use samestory::kafka::tools::erase::{EraseRequest, Erased, Left, erase};
use samestory::terminal::style::printable;
use samestory_engine::model::ArticleId;

use super::{AnswerFormat, Failure};

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory erase a17 a18                     write the deletes, wait, and show what is left
  samestory erase --file ids.txt --format json > proof.json
  samestory erase --check a17                 only look again, for example after a week
  samestory erase --check a17 --state /backup/state

The deletes go to the raw topic, as a crawler's would; the stage must be running, or the command waits in vain. Then every topic is
read to its end, and so is every state directory below stage.state, quarantined copies included, except those that a running process has open. The state of other machines is
read with --state on those machines; until then the changelog, which every state follows, is the proof for them.

Exit codes:
  0  no id is current in the changelog, the clusters or a state; what the retention of topics still holds is listed
  1  an id is current somewhere, a place could not be read, or the stage did not apply the deletes in time")]
pub(super) struct Args {
    /// Ids of articles
    #[arg(required_unless_present = "file")]
    ids: Vec<String>,
    /// Read ids from a file, one per line; - is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Write no deletes; only show what is left
    #[arg(long)]
    check: bool,
    /// Also read this state directory, or the directory that contains several; repeatable
    #[arg(long, value_name = "DIR")]
    state: Vec<PathBuf>,
    /// How long to wait for the stage
    #[arg(long, value_name = "SECONDS", default_value_t = 180)]
    wait: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: AnswerFormat,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let mut written = args.ids.clone();
    if let Some(path) = &args.file {
        let failed = |error| Failure::Ids { path: path.clone(), error };
        let lines: Vec<String> = match path.as_os_str() == "-" {
            true => std::io::stdin().lock().lines().collect::<Result<_, _>>().map_err(failed)?,
            false => std::fs::read_to_string(path).map_err(failed)?.lines().map(str::to_owned).collect(),
        };
        written.extend(lines.into_iter().filter(|line| !line.is_empty()));
    }
    let mut ids = Vec::new();
    for id in written {
        let id = ArticleId::new(&id).map_err(|error| Failure::NotAnId { id: printable(&id), error })?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let request = EraseRequest {
        ids,
        check_only: args.check,
        states: args.state.clone(),
        wait: Duration::from_secs(args.wait),
    };
    let erased = erase(config, &request, &mut |line| eprintln!("{line}"))?;
    let mut out = samestory::terminal::stdout();
    match args.format {
        AnswerFormat::Json => writeln!(out, "{}", serde_json::json!(erased))?,
        AnswerFormat::Table => write!(out, "{}", report(&request.ids, &erased))?,
    }
    match erased.remaining().len() {
        0 => Ok(()),
        remain => Err(Failure::NotErased { remain, ids: request.ids.len() }),
    }
}

fn report(ids: &[ArticleId], erased: &Erased) -> String {
    let mut text = format!("read to the end: {}\n", erased.topics.join(", "));
    text += &match erased.states.len() {
        0 if !erased.states_in_use.is_empty() => String::new(),
        0 => "no state directory on this machine: for the states, the changelog is the proof\n".to_owned(),
        _ => format!("state directories: {}\n", erased.states.join(", ")),
    };
    if !erased.states_in_use.is_empty() {
        let states = erased.states_in_use.join(", ");
        text += &format!("in use by a running process, which follows the changelog: {states}\n");
    }
    let mut findings = BTreeMap::<&str, Vec<_>>::new();
    for found in &erased.findings {
        findings.entry(&found.id).or_default().push(found);
    }
    let remaining = erased.remaining();
    for id in ids {
        let verdict = match remaining.contains(id.as_str()) {
            true => "NOT erased",
            false => "erased from the changelog, the clusters and every state that was read",
        };
        text += &format!("{}: {verdict}\n", printable(id.as_str()));
        for found in findings.get(id.as_str()).into_iter().flatten() {
            let left = match found.left {
                Left::Current => "current",
                Left::Superseded => "followed by a tombstone",
                Left::Published => "not retracted",
                Left::Named => "of other articles that name it",
                Left::Mark => "mark of the delete",
                Left::Unknown => "unknown",
            };
            let newest = found.newest.as_deref().map(|time| format!(", newest {time}")).unwrap_or_default();
            text += &format!("  {}: {} {left}{newest}; {}\n", found.place, found.count, found.until);
        }
    }
    text
}
