//! `samestory config`: checks the settings, prints the effective ones, or prints the reference. It runs before [`Config`] is
//! loaded, so it can report settings that no other command accepts.

use std::io::Write;
use std::path::Path;

use clap::{Parser, Subcommand};
use samestory::config::{Config, Layers, reference};

use super::Failure;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory --config samestory.toml config check     exit code 2, and the fix, if a setting is wrong
  samestory --set match.threshold=0.6 config print   the effective settings: defaults, file, environment, --set
  samestory config reference                         every setting, as in docs/configuration.md")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Check the settings, and print warnings
    #[command(after_help = "\
Example:
  samestory --config samestory.toml config check --without-secrets")]
    Check {
        /// Do not read the files and variables that hold secrets
        #[arg(long)]
        without_secrets: bool,
    },
    /// Print the effective settings as TOML; secrets are never shown
    #[command(after_help = "\
Example:
  SAMESTORY__MATCH__THRESHOLD=0.6 samestory config print")]
    Print {
        /// Hide values that may be secret (always on)
        #[arg(long)]
        redacted: bool,
    },
    /// Print the settings behind the `config` hash of a verdict
    #[command(after_help = "\
Examples:
  samestory config show 9f2c41d0     the settings that a verdict with \"config\":\"9f2c41d0\" was judged under
  samestory config show              those that a stage with the current settings would use

They are found if they are the current ones, or if a stage that used them could write to samestory.generations. The hash is
computed from the text under covers, so the answer can be checked.")]
    Show {
        /// The hash, eight hexadecimal digits [default: that of the current settings]
        hash: Option<String>,
    },
    /// Print every setting with its default, as Markdown
    #[command(after_help = "\
Example:
  samestory config reference > configuration.md")]
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
        Action::Show { hash } => show(hash.as_deref(), &Config::load_with(file, set)?)?,
        Action::Reference => reference::markdown(),
    };
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

fn show(hash: Option<&str>, config: &Config) -> Result<String, Failure> {
    let options = config.options();
    let current = format!("{:08x}", options.hash());
    let wanted = hash.unwrap_or(&current).to_ascii_lowercase();
    if wanted == current {
        let head = format!("# config {current}: the current settings\n# covers: {}\n", options.describe());
        return Ok(head + &config.decisive);
    }
    noted(&wanted, config)
}

#[cfg(feature = "kafka")]
fn noted(hash: &str, config: &Config) -> Result<String, Failure> {
    samestory::kafka::check_properties(&config.bus)?;
    let topic = &config.bus.topics.generations;
    let note = samestory::kafka::admin::notes::settings(&config.bus, hash)?;
    let note = note.ok_or_else(|| Failure::NoSuchConfig(hash.to_owned(), topic.clone()))?;
    let (version, since) = (note.version, note.since);
    let head =
        format!("# config {hash}: first used {since} by samestory {version}\n# covers: {}\n", note.covers);
    Ok(head + &note.settings)
}

#[cfg(not(feature = "kafka"))]
fn noted(_: &str, _: &Config) -> Result<String, Failure> {
    Err(Failure::NotBuilt { command: "config show", lacks: "Kafka" })
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
        "the settings are valid: {file}, {} from the environment, {} from --set\n",
        layers.environment.len(),
        layers.set.len()
    );
    for warning in layers.warnings.iter().chain(&config.warnings) {
        text += &format!("warning: {warning}\n");
    }
    Ok(text)
}
