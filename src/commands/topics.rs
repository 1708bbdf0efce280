//! `samestory topics`: prints, creates, checks or fixes the topics that the settings name. The rules are in
//! `kafka::admin::topics`; this prints their findings.

use clap::Parser;
use samestory::config::Config;
use samestory::kafka::TopicError;
use samestory::kafka::admin::topics;
use samestory::kafka::admin::topics::Severity;

use super::Failure;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory topics                 print the topics that the settings ask for
  samestory topics --create        create missing topics
  samestory topics --check         report what is wrong, and the command that corrects it
  samestory topics --fix           correct the settings of samestory's own topics

--check compares partitions, replicas and every relevant setting. An error is a setting that exactly-once depends on: the stage
does not start, and the exit code is 1. A warning concerns durability or single articles. Advice concerns the topic that crawlers
write to. --fix does not change partitions, replicas or the crawlers' topic.")]
pub(super) struct Args {
    /// Create missing topics
    #[arg(long)]
    create: bool,
    /// Correct the settings of samestory's own topics
    #[arg(long)]
    fix: bool,
    /// Compare the topics with the settings
    #[arg(long)]
    check: bool,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let bus = &config.bus;
    if args.create {
        let created = topics::create(bus)?;
        match created.topics.as_slice() {
            [] => println!("every topic exists"),
            topics => topics.iter().for_each(|name| println!("created {name}")),
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
        println!("every topic is correct");
    }
    if !args.create && !args.check && !args.fix {
        // The broker is not asked, so this assumes a cluster of three brokers or more.
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
