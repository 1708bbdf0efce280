//! `samestory topics`: makes or checks the topics.

use clap::Parser;
use samestory::config::Config;
use samestory::stream::{TopicError, topics};

use super::Failure;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory topics                 what the settings ask for
  samestory topics --create        make what is missing
  samestory topics --check         say what is wrong; exit code 1 if anything is")]
pub(super) struct Args {
    /// Make the topics that are missing
    #[arg(long)]
    create: bool,
    /// Compare the topics with what they must be
    #[arg(long)]
    check: bool,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let bus = &config.bus;
    if args.create {
        let made = topics::create(bus)?;
        match made.as_slice() {
            [] => println!("every topic exists"),
            made => made.iter().for_each(|name| println!("made {name}")),
        }
    }
    if args.check {
        let (problems, _) = topics::check(bus)?;
        if !problems.is_empty() {
            return Err(TopicError::Wrong(problems).into());
        }
        println!("every topic is as it must be");
    }
    if !args.create && !args.check {
        for topic in topics::wanted(bus) {
            let settings: Vec<String> =
                topic.settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
            println!("{:<28} {:>3} partitions  {}", topic.name, topic.partitions, settings.join(" "));
        }
    }
    Ok(())
}
