//! `samestory pause`, `resume` and `drain`: the operator stops and continues the intake of all processes of an application.
//! The pause is a note on the generations topic, so it also holds for processes that start later.

use std::time::Duration;

use clap::{Parser, ValueEnum};
use samestory::config::{Config, Mode};
use samestory::kafka::Role;
use samestory::kafka::admin::notes;
use samestory::kafka::tools::drain::drain;

use super::Failure;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory pause --why \"broker upgrade\"   every process stops reading within two seconds
  samestory pause --role match               route continues
  samestory resume

Nothing is lost: records wait on their topics, and the processes stay in their groups. The pause outlives restarts. /readyz and
samestory ready show it under \"paused\" and still say ready, so that a rolling update does not hang; samestory_paused is its
metric. Verdicts do not depend on it. To also finish what has been read, use samestory drain.")]
pub(super) struct PauseArgs {
    /// Pause only this role [default: all]
    #[arg(long, value_enum)]
    role: Option<PausableRole>,
    /// The reason, which /readyz and the log show
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum PausableRole {
    Route,
    Match,
}

#[derive(Parser)]
#[command(after_help = "\
Example:
  samestory resume    every process reads on within two seconds")]
pub(super) struct ResumeArgs {}

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory drain                 before an upgrade that changes the routed layout, or before a generation ends
  samestory drain --wait 600 --why \"upgrade\"

It pauses the intake of raw records and waits until everything that was read is judged and published. Afterwards the stage is
paused; samestory resume continues.

Exit codes:
  0  everything that was read is published
  1  not within --wait: a match process is missing, or needs longer. The intake stays paused")]
pub(super) struct DrainArgs {
    /// How long to wait
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    wait: u64,
    /// The reason, which /readyz and the log show
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

pub(super) fn pause(args: &PauseArgs, config: &Config) -> Result<(), Failure> {
    let roles: &[Role] = match (config.bus.mode, args.role) {
        (Mode::Direct, None) => &[Role::Direct],
        (Mode::Direct, Some(_)) => return Err(samestory::kafka::RunError::NoSuchRole.into()),
        (Mode::Routed, None) => &[Role::Route, Role::Match],
        (Mode::Routed, Some(PausableRole::Route)) => &[Role::Route],
        (Mode::Routed, Some(PausableRole::Match)) => &[Role::Match],
    };
    let pause = notes::pause(&config.bus, roles, args.why.as_deref())?;
    println!("paused: {}; samestory resume continues", pause.roles.join(" and "));
    Ok(())
}

pub(super) fn resume(_: &ResumeArgs, config: &Config) -> Result<(), Failure> {
    match notes::paused(&config.bus)? {
        None => println!("not paused"),
        Some(pause) => {
            notes::resume(&config.bus)?;
            println!("resumed: {} (paused since {})", pause.roles.join(" and "), pause.since);
        }
    }
    Ok(())
}

pub(super) fn run_drain(args: &DrainArgs, config: &Config) -> Result<(), Failure> {
    let drained = drain(config, Duration::from_secs(args.wait), args.why.as_deref())?;
    println!(
        "drained: everything that was read is published, and the intake is paused; samestory resume continues"
    );
    for (partition, left) in drained.left.iter().filter(|(_, left)| **left > 0) {
        println!("  {} partition {partition}: up to {left} records wait", config.bus.topics.raw);
    }
    Ok(())
}
