//! `samestory topics`: makes or checks the topics.

use clap::Parser;
use samestory::config::Config;
use samestory::kafka::TopicError;
use samestory::kafka::admin::topics;
use samestory::kafka::admin::topics::Severity;

use super::Failure;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory topics                 what the settings ask for
  samestory topics --create        make what is missing
  samestory topics --check         say what is wrong, and the command that corrects it
  samestory topics --fix           correct the settings of our own topics

--check looks at partitions, replicas and every setting that something rests on. An error is a setting that the guarantee rests
on: the stage does not start, and the exit code is 1. A warning is about durability, or about single articles. Advice is for the
topic that crawlers write. --fix leaves partitions, replicas and the crawlers' topic alone.")]
pub(super) struct Args {
    /// Make the topics that are missing
    #[arg(long)]
    create: bool,
    /// Correct the settings of our own topics
    #[arg(long)]
    fix: bool,
    /// Compare the topics with what they must be
    #[arg(long)]
    check: bool,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let bus = &config.bus;
    if args.create {
        let created = topics::create(bus)?;
        match created.topics.as_slice() {
            [] => println!("every topic exists"),
            topics => topics.iter().for_each(|name| println!("made {name}")),
        }
        if let Some(warning) = created.warning() {
            eprintln!("samestory: warning: {warning}");
        }
    }
    if args.fix {
        match topics::fix(bus)?.as_slice() {
            [] => println!("no setting needs to be corrected"),
            fixed => fixed.iter().for_each(|problem| println!("corrected: {problem}")),
        }
    }
    if args.check {
        let (problems, _) = topics::check(bus)?;
        for problem in &problems {
            eprintln!("{}: {problem}\n    {}", problem.severity().as_str(), problem.fix(bus));
        }
        let errors: Vec<_> =
            problems.iter().filter(|problem| problem.severity() == Severity::Error).cloned().collect();
        if !errors.is_empty() {
            return Err(TopicError::Wrong(errors).into());
        }
        println!("every topic is as it must be");
    }
    if !args.create && !args.check && !args.fix {
        // Without asking the broker: as in a cluster of three brokers or more.
        for topic in topics::wanted(bus, usize::MAX) {
            let settings = topic.at_creation(false).into_iter();
            let settings: Vec<String> = settings.map(|(key, value)| format!("{key}={value}")).collect();
            println!(
                "{:<28} {:>3} partitions  {} replicas  {}",
                topic.name,
                topic.partitions,
                topic.replication,
                settings.join(" ")
            );
        }
    }
    Ok(())
}
