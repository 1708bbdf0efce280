//! `samestory schemas`: our schemas in the registry, and the crawler's against the settings.

use clap::{Parser, Subcommand, ValueEnum};
use samestory::config::{Config, InputFormat, OutputFormat};
use samestory::formats::registry::{Registry, RegistryError, Subject, SubjectStatus, value_subject};
use samestory::formats::schemas;
use samestory::kafka as stream;

use super::Failure;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory schemas register           put the schemas of what samestory writes into the registry
  samestory schemas check              say what is missing or does not fit; exit code 1 if anything is
  samestory schemas print cluster      a schema, for a code generator
  samestory schemas print tagged-article --json-schema

The registry is that of [registry] in the settings. Registered schemas are held to BACKWARD: a reader with the newest
schema can read everything on the topic.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Register the schemas of the topics that samestory writes, and set their compatibility to BACKWARD
    Register,
    /// Compare the registry with what is needed: our schemas, and the paths of [input.fields] in the crawler's
    Check,
    /// Print a schema
    Print {
        /// Which
        name: Name,
        /// As JSON Schema, for values in JSON
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

/// Why the registry is not as it must be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SchemasError {
    #[error("registry.url is not set: there is no registry to talk to")]
    NoRegistry,
    #[error("the schema registry: {0}")]
    Registry(#[from] RegistryError),
    #[error("not as it must be; `samestory schemas register` registers what is missing")]
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

/// A registry that is just starting, or a network that just lost a packet, is asked again a few times.
fn patiently<T>(mut ask: impl FnMut() -> Result<T, RegistryError>) -> Result<T, SchemasError> {
    const TIMES: u32 = 4;
    let mut tried = 0;
    loop {
        tried += 1;
        match ask() {
            Err(RegistryError::Away(_)) if tried < TIMES => {
                std::thread::sleep(std::time::Duration::from_millis(250 << tried));
            }
            outcome => return Ok(outcome?),
        }
    }
}

fn register(config: &Config) -> Result<(), Failure> {
    let registry = registry(config)?;
    for subject in Subject::all(&config.bus) {
        let id = patiently(|| registry.register(&subject))?;
        println!("{} has id {id}, compatibility BACKWARD", subject.name);
    }
    Ok(())
}

fn check(config: &Config) -> Result<(), Failure> {
    let registry = registry(config)?;
    let mut wrong = false;
    for subject in Subject::all(&config.bus) {
        let said = match patiently(|| registry.standing(&subject))? {
            SubjectStatus::Registered(id) => format!("registered with id {id}"),
            SubjectStatus::Missing => {
                wrong |= config.bus.formats.output == OutputFormat::Avro;
                "not registered".to_owned()
            }
            SubjectStatus::Incompatible => {
                wrong = true;
                "not registered, and not compatible with the schema that is".to_owned()
            }
        };
        println!("{}: {said}", subject.name);
    }
    if config.bus.formats.input != InputFormat::Json {
        let subject = value_subject(&config.bus.topics.raw);
        match patiently(|| stream::misfits(config, &registry, &subject))? {
            None => println!("{subject}: no schema is registered, so field paths cannot be checked"),
            Some(misfits) if misfits.is_empty() => println!("{subject}: has every field that is asked for"),
            Some(misfits) => {
                wrong = true;
                misfits.iter().for_each(|misfit| println!("{subject}: {misfit}"));
            }
        }
    }
    match wrong {
        true => Err(SchemasError::Wrong.into()),
        false => Ok(()),
    }
}
