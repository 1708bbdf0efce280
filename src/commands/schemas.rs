//! `samestory schemas`: registers or prints the schemas of the output topics, and checks them and the paths of `[input.fields]`
//! against the schema registry.

use clap::{Parser, Subcommand, ValueEnum};
use samestory::config::{Config, InputFormat, ValueFormat};
use samestory::formats::registry::{Registry, RegistryError, Subject, SubjectStatus, value_subject};
use samestory::formats::schemas;
use samestory::kafka;

use super::Failure;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory schemas register           register the schemas of the output topics
  samestory schemas check              exit code 1 if a schema is missing or incompatible
  samestory schemas print cluster      print a schema, for a code generator
  samestory schemas print tagged-article --json-schema

[registry] in the settings names the registry. Registered subjects get the compatibility BACKWARD: a reader with the newest
schema can read every record on the topic.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Register the schemas of the output topics with compatibility BACKWARD
    #[command(after_help = "\
Example:
  samestory --config samestory.toml schemas register")]
    Register,
    /// Check the output schemas, and the paths of [input.fields] in the crawler's schema
    #[command(after_help = "\
Example:
  samestory --config samestory.toml schemas check")]
    Check,
    /// Print a schema
    #[command(after_help = "\
Example:
  samestory schemas print tagged-article --json-schema")]
    Print {
        /// The schema
        name: Name,
        /// Print JSON Schema instead of Avro
        #[arg(long)]
        json_schema: bool,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Name {
    RawArticle,
    TaggedArticle,
    Cluster,
    Change,
}

/// Why the registry cannot be used as it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SchemasError {
    #[error("registry.url is not set; set it to the URL of a schema registry")]
    NoRegistry,
    #[error("the schema registry: {0}")]
    Registry(#[from] RegistryError),
    #[error(
        "the registry does not match the settings; `samestory schemas register` registers missing schemas"
    )]
    Wrong,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    match args.command {
        Command::Print { name, json_schema } => {
            let schema = match name {
                Name::RawArticle => schemas::RAW_ARTICLE,
                Name::TaggedArticle => schemas::TAGGED_ARTICLE,
                Name::Cluster => schemas::CLUSTER,
                Name::Change => schemas::CHANGE,
            };
            match json_schema {
                true => print!("{}", schemas::json_schema(schema)),
                false => print!("{schema}"),
            }
            Ok(())
        }
        Command::Register => register(config),
        Command::Check => check(config),
    }
}

fn registry(config: &Config) -> Result<Registry, SchemasError> {
    let settings = config.bus.registry.as_ref().ok_or(SchemasError::NoRegistry)?;
    Ok(Registry::new(settings)?)
}

/// Retries a few times, because a registry may be starting or a packet may be lost.
fn with_retries<T>(mut ask: impl FnMut() -> Result<T, RegistryError>) -> Result<T, SchemasError> {
    const ATTEMPTS: u32 = 4;
    let mut attempt = 0;
    loop {
        attempt += 1;
        match ask() {
            Err(RegistryError::Away(_)) if attempt < ATTEMPTS => {
                std::thread::sleep(std::time::Duration::from_millis(250 << attempt));
            }
            outcome => return Ok(outcome?),
        }
    }
}

fn register(config: &Config) -> Result<(), Failure> {
    let registry = registry(config)?;
    for subject in Subject::all(&config.bus) {
        let id = with_retries(|| registry.register(&subject))?;
        println!("{} has id {id}, compatibility BACKWARD", subject.name);
    }
    Ok(())
}

fn check(config: &Config) -> Result<(), Failure> {
    let registry = registry(config)?;
    let mut wrong = false;
    for subject in Subject::all(&config.bus) {
        let status = match with_retries(|| registry.status(&subject))? {
            SubjectStatus::Registered(id) => format!("registered with id {id}"),
            SubjectStatus::Missing => {
                wrong |= config.bus.formats.output == ValueFormat::Avro;
                "not registered".to_owned()
            }
            SubjectStatus::Incompatible => {
                wrong = true;
                "not registered, and incompatible with the registered schema".to_owned()
            }
        };
        println!("{}: {status}", subject.name);
    }
    if config.bus.formats.input != InputFormat::Json {
        let subject = value_subject(&config.bus.topics.raw);
        match with_retries(|| kafka::misfits(config, &registry, &subject))? {
            None => println!("{subject}: no schema is registered, so field paths cannot be checked"),
            Some(unmapped) if unmapped.is_empty() => println!("{subject}: has every field of [input.fields]"),
            Some(unmapped) => {
                wrong = true;
                unmapped.iter().for_each(|field| println!("{subject}: {field}"));
            }
        }
    }
    match wrong {
        true => Err(SchemasError::Wrong.into()),
        false => Ok(()),
    }
}
