//! `samestory clusters`: lists or exports the current clusters from the clusters topic.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use samestory::config::Config;
use samestory::kafka::tools::clusters::each;
use samestory::terminal::style::printable;
use serde::Deserialize;

use super::Failure;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  samestory clusters list
  samestory clusters export --output clusters.ndjson")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Print the current clusters, one line each
    #[command(after_help = "\
Examples:
  samestory clusters list
  samestory clusters list --min-size 10 --limit 50")]
    List(ListArgs),
    /// Write the current clusters as NDJSON
    #[command(after_help = "\
Examples:
  samestory clusters export > clusters.ndjson
  samestory clusters export --min-size 3 --output clusters.ndjson

Each line is the last record of a cluster on the clusters topic, as JSON, also if the topic holds Avro: schemas/cluster.schema.json.
The command joins no consumer group and writes nothing to Kafka.")]
    Export(ExportArgs),
}

#[derive(clap::Args)]
struct ListArgs {
    /// Only clusters with at least this many members
    #[arg(long, value_name = "N", default_value_t = 2)]
    min_size: u64,
    /// Print at most this many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
}

#[derive(clap::Args)]
struct ExportArgs {
    /// Only clusters with at least this many members
    #[arg(long, value_name = "N", default_value_t = 2)]
    min_size: u64,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    match &args.command {
        Command::List(args) => list(args, config),
        Command::Export(args) => export(args, config),
    }
}

/// What the commands read of a cluster record. A field that is missing is shown as nothing.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ListedCluster {
    cluster_id: String,
    canonical_id: String,
    size: u64,
    first_seen: String,
    last_seen: String,
    members: Vec<ListedMember>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListedMember {
    id: String,
    title: Option<String>,
}

impl ListedCluster {
    /// The title of the canonical, if it is among the members and has one.
    fn title(&self) -> &str {
        let canonical = self.members.iter().find(|member| member.id == self.canonical_id);
        canonical.and_then(|member| member.title.as_deref()).unwrap_or_default()
    }
}

fn list(args: &ListArgs, config: &Config) -> Result<(), Failure> {
    let mut out = samestory::terminal::stdout();
    let (mut shown, mut failed) = (0, Ok(()));
    let total = each(config, |line| {
        let cluster: ListedCluster = serde_json::from_slice(line).unwrap_or_default();
        if cluster.size < args.min_size || shown >= args.limit || failed.is_err() {
            return failed.is_ok();
        }
        shown += 1;
        let [id, first, last, canonical, title] = [
            &cluster.cluster_id,
            &cluster.first_seen,
            &cluster.last_seen,
            &cluster.canonical_id,
            cluster.title(),
        ]
        .map(printable);
        let size = cluster.size;
        failed = writeln!(out, "{id:<14} {size:>5}  {first} to {last}  {canonical}  {title}");
        failed.is_ok()
    })?;
    failed?;
    eprintln!("{shown} of {total} clusters on {}", config.bus.topics.clusters);
    Ok(())
}

fn export(args: &ExportArgs, config: &Config) -> Result<(), Failure> {
    let mut out: Box<dyn Write> = match &args.output {
        None => Box::new(io::stdout().lock()),
        Some(path) => {
            let mut options = std::fs::File::options();
            let options = samestory::files::for_output(options.write(true).create(true).truncate(true));
            let file = options.open(path);
            Box::new(file.map_err(|error| Failure::Save { path: path.clone(), error })?)
        }
    };
    let mut out = BufWriter::new(&mut out);
    let (mut written, mut failed) = (0_u64, Ok(()));
    each(config, |line| {
        let cluster: ListedCluster = serde_json::from_slice(line).unwrap_or_default();
        if cluster.size >= args.min_size {
            written += 1;
            failed = out.write_all(line).and_then(|()| out.write_all(b"\n"));
        }
        failed.is_ok()
    })?;
    let failure = |error| match &args.output {
        Some(path) => Failure::Save { path: path.clone(), error },
        None => Failure::Output(error),
    };
    failed.and_then(|()| out.flush()).map_err(failure)?;
    eprintln!("{written} clusters");
    Ok(())
}
