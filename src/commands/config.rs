//! `samestory config`: are the settings right, which hold in the end, and which there are.

use std::io::Write;
use std::path::Path;

use clap::{Parser, Subcommand};
use samestory::config::{Config, Layers, reference};

use super::Failure;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory --config samestory.toml config check     exit code 2 and what to correct, where something is wrong
  samestory --set match.threshold=0.6 config print   what holds in the end: defaults, file, environment, --set
  samestory config reference                         every setting, as in docs/configuration.md")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Say whether the settings are right
    Check {
        /// Do not look into the files and variables that hold secrets
        #[arg(long)]
        without_secrets: bool,
    },
    /// Print the settings that hold in the end; what may be secret is never shown
    Print {
        /// Leave out what may be secret; there is no other way
        #[arg(long)]
        redacted: bool,
    },
    /// Print what can be set
    Reference,
}

pub(super) fn run(args: &Args, file: Option<&Path>, set: &[String]) -> Result<(), Failure> {
    let text = match &args.action {
        Action::Check { without_secrets } => check(&Layers::read(file, set)?, *without_secrets)?,
        Action::Print { redacted: _ } => {
            let layers = Layers::read(file, set)?;
            Config::try_from(layers.settings()?.without_secrets())?;
            layers.redacted()
        }
        Action::Reference => reference::markdown(),
    };
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

fn check(layers: &Layers, without_secrets: bool) -> Result<String, Failure> {
    let settings = layers.settings()?;
    let config = Config::try_from(if without_secrets { settings.without_secrets() } else { settings })?;
    #[cfg(feature = "kafka")]
    if !without_secrets {
        samestory::kafka::check_properties(&config.bus)?;
    }
    let file = layers.file.as_deref().map_or_else(|| "no file".into(), |file| file.display().to_string());
    let mut text = format!(
        "settings are right: {file}, {} from the environment, {} from --set\n",
        layers.environment.len(),
        layers.set.len()
    );
    for warning in &config.warnings {
        text += &format!("warning: {warning}\n");
    }
    Ok(text)
}
