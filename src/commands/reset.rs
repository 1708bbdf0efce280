//! `samestory reset`: deletes states, internal topics and group offsets, so that the application starts again from the raw topic.

use clap::Parser;
use samestory::config::Config;
use samestory::kafka::admin::reset::{plan, reset};

use super::Failure;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory reset                       say what would be deleted, and delete nothing
  samestory reset --yes                 delete it, after every process has stopped

It deletes the changelog and the routed topic and creates them again, the committed offsets of the groups, and the state directories
below stage.state on this machine; delete those of other machines yourself. The raw topic, the outputs and the dead letters stay as
they are. Afterwards everything that the raw topic holds is judged and published again. To learn it without publishing it a second
time, set output.publish_from to the present before the start. A change of settings never needs a reset: see the table in
docs/operations.md.")]
pub(super) struct Args {
    /// Delete it; without this, only say what would be deleted
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let plan = plan(&config.bus)?;
    let verb = if args.yes { "delete" } else { "would delete" };
    for path in &plan.states {
        println!("{verb} state {}", path.display());
    }
    for group in &plan.groups {
        println!("{verb} the committed offsets of group {group}");
    }
    for topic in &plan.topics {
        println!("{verb} topic {topic}, and create it again");
    }
    if !args.yes {
        println!("nothing was deleted; --yes deletes it");
        return Ok(());
    }
    reset(&config.bus, &plan)?;
    println!("done: the next start reads {} from input.start", config.bus.topics.raw);
    Ok(())
}
