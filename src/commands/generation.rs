//! `samestory generation end`: writes the generation-end record of the old state generation, after which the new one publishes.
//! The work is in `kafka::recovery::generations::end`.

use std::time::Duration;

use samestory::config::Config;
use samestory::formats::GenerationEnd;
use samestory::kafka::recovery::generations::end::{EndRequest, Ended, end};
use samestory::stop::Stop;

use super::Failure;

const HELP: &str = "\
Stop the processes of the old generation first (after a kill, wait until their session times out, about ten seconds). The
command joins their consumer groups, waits until all partitions are assigned to it, and writes the final offsets to the topic
samestory.generations. From then on the new generation publishes from these offsets, and processes of the old one refuse every
partition. It is safe to run again: a generation that has already ended is reported, with exit code 0.

In mode routed, route is ended first. Routed articles that are not judged yet block the end: run the old generation with
--role match until they are, or pass --accept-repeats. The new generation then publishes them, and repeats articles in between
that the old one has already published; the report counts them.

Examples:
  samestory --config new.toml generation end        the generation before stage.generation
  samestory generation end --generation 1 --timeout 300

Exit codes:
  0  the generation has ended, now or before
  1  it has not ended: other processes hold partitions, or articles are not judged yet";

#[derive(clap::Args)]
#[command(after_help = "\
Example:
  samestory --config new.toml generation end")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// End a state generation whose processes are stopped
    #[command(after_help = HELP)]
    End(EndArgs),
}

#[derive(clap::Args)]
struct EndArgs {
    /// Generation to end [default: the one before stage.generation]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    generation: Option<u32>,
    /// How long to wait for partitions that other processes hold
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
    /// End even if the new generation will publish some articles a second time
    #[arg(long)]
    accept_repeats: bool,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let Command::End(args) = &args.command;
    let stop = Stop::default();
    stop.on_signals()?;
    let request = EndRequest {
        generation: args.generation,
        timeout: Duration::from_secs(args.timeout),
        accept_repeats: args.accept_repeats,
    };
    let mut say = |line: &str| eprintln!("{line}");
    let (end, when) = match end(&config.bus, &request, &stop, &mut say)? {
        Ended::Now(end) => (end, "has ended"),
        Ended::Before(end) => (end, "has ended already"),
    };
    print!("{}", report(&end, when));
    Ok(())
}

fn report(end: &GenerationEnd, when: &str) -> String {
    let mut text = format!("generation {} {when} ({})\n", end.generation, end.ended_at);
    for (partition, next) in &end.next {
        text += &format!("  {} partition {partition}: published up to offset {next}\n", end.topic);
    }
    if end.repeats > 0 {
        text += &format!("  up to {} records are published a second time\n", end.repeats);
    }
    text
}
