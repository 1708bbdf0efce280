//! The registry at the start: our schemas must be there before anything is written with them, and the crawler's must
//! have the fields that settings name.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::config::{Config, InputFormat, OutputFormat};
use crate::formats::avro::{Schema, UnmappedField};
use crate::formats::registry::{Registry, RegistryError, Subject, SubjectStatus, value_subject};
use crate::status::StatusBoard;

use crate::kafka::matching::outgoing::OutputEncoding;

/// Why the stage does not start with this registry.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// Our schemas are not there.
    #[error(
        "{topic}: its schema is not registered under {subject}; `samestory schemas register` does it, or set registry.auto_register"
    )]
    Unregistered {
        /// The topic.
        topic: String,
        /// The subject.
        subject: String,
    },
    /// The registry refuses our schema.
    #[error("{subject}: {why}")]
    Refused {
        /// The subject.
        subject: String,
        /// What it says.
        why: String,
    },
    /// Paths that lead nowhere.
    #[error("{subject}: {}", list(.misfits))]
    Misfits {
        /// The subject whose schemas were looked at.
        subject: String,
        /// Each with the nearest.
        misfits: Vec<UnmappedField>,
    },
    /// The registry's own settings.
    #[error("{0}")]
    Settings(String),
}

fn list(misfits: &[UnmappedField]) -> String {
    misfits.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The registry of these settings.
pub(crate) fn registry(config: &Config) -> Result<Option<Arc<Registry>>, ValueError> {
    let registry = config.bus.registry.as_ref().map(Registry::new).transpose();
    Ok(registry.map_err(|error| ValueError::Settings(error.to_string()))?.map(Arc::new))
}

/// What a run does with values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StageIo {
    /// Whether it reads raw articles.
    pub(crate) reads: bool,
    /// Whether it writes verdicts.
    pub(crate) writes: bool,
}

/// Checks what must be right, and waits for a registry that is away. Nothing where it was told to stop before.
pub(crate) fn await_ready(
    config: &Config,
    registry: Option<&Registry>,
    does: StageIo,
    stop: &AtomicBool,
    board: &StatusBoard,
) -> Result<Option<OutputEncoding>, ValueError> {
    let Some(registry) = registry else { return Ok(Some(OutputEncoding::Json)) };
    let (mut pause, mut said) = (Duration::from_millis(200), None::<Instant>);
    while !stop.load(Ordering::Relaxed) {
        match ready(config, registry, does) {
            Ok(wire) => {
                board.awaits_registry(None);
                return Ok(Some(wire));
            }
            Err(Trouble::Refused(error)) => return Err(error),
            Err(Trouble::Away(why)) => {
                board.awaits_registry(Some(why.clone()));
                if said.is_none_or(|said| said.elapsed() > Duration::from_secs(60)) {
                    tracing::warn!("waiting for the schema registry: {why}");
                    said = Some(Instant::now());
                }
                let until = Instant::now() + pause;
                while Instant::now() < until && !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(20));
                }
                pause = (pause * 2).min(Duration::from_secs(5));
            }
        }
    }
    Ok(None)
}

enum Trouble {
    Away(String),
    Refused(ValueError),
}

fn ready(config: &Config, registry: &Registry, does: StageIo) -> Result<OutputEncoding, Trouble> {
    let bus = &config.bus;
    if does.reads && bus.formats.input != InputFormat::Json {
        let subject = value_subject(&bus.topics.raw);
        let misfits =
            misfits(config, registry, &subject).map_err(|error| Trouble::Away(error.to_string()))?;
        match misfits {
            None => tracing::info!(subject, "no schema is registered for it, so field paths are not checked"),
            Some(misfits) if misfits.is_empty() => {}
            Some(misfits) => return Err(Trouble::Refused(ValueError::Misfits { subject, misfits })),
        }
    }
    if !does.writes || bus.formats.output == OutputFormat::Json {
        return Ok(OutputEncoding::Json);
    }
    let mut ids = std::collections::BTreeMap::new();
    for subject in Subject::all(bus) {
        ids.insert(subject.topic.clone(), id(registry, subject)?);
    }
    let of = |topic: &str| ids.get(topic).copied().unwrap_or(0);
    Ok(OutputEncoding::Avro {
        unique: of(&bus.topics.unique),
        near_duplicate: of(&bus.topics.near_duplicate),
        clusters: of(&bus.topics.clusters),
    })
}

/// The id of a schema of ours.
fn id(registry: &Registry, subject: Subject) -> Result<u32, Trouble> {
    let away = |error: RegistryError| Trouble::Away(error.to_string());
    if let SubjectStatus::Registered(id) = registry.standing(&subject).map_err(away)? {
        return Ok(id);
    }
    if !registry.config().auto_register {
        let Subject { topic, name: subject, .. } = subject;
        return Err(Trouble::Refused(ValueError::Unregistered { topic, subject }));
    }
    registry.register(&subject).map_err(|error| match error {
        RegistryError::No(why) => Trouble::Refused(ValueError::Refused { subject: subject.name, why }),
        error => Trouble::Away(error.to_string()),
    })
}

/// Field paths that no version of the subject's schema has; nothing where it has no schema.
///
/// # Errors
/// The registry is in trouble.
pub fn misfits(
    config: &Config,
    registry: &Registry,
    subject: &str,
) -> Result<Option<Vec<UnmappedField>>, RegistryError> {
    /// Older ones are no longer on the topic.
    const VERSIONS: usize = 20;
    let latest = match registry.latest(subject) {
        Ok(latest) => latest,
        Err(RegistryError::No(why)) => {
            tracing::debug!("{why}");
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut misfits = latest.misfits(&config.fields);
    if misfits.is_empty() {
        return Ok(Some(misfits));
    }
    for version in registry.versions(subject)?.iter().rev().skip(1).take(VERSIONS) {
        match registry.version(subject, &version.to_string()) {
            Ok(earlier) => retain_unfit(&mut misfits, &earlier, config),
            Err(RegistryError::No(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(misfits))
}

/// A path fits if any version has it: several kinds of records may be on one topic.
fn retain_unfit(misfits: &mut Vec<UnmappedField>, earlier: &Schema, config: &Config) {
    let still = earlier.misfits(&config.fields);
    misfits.retain(|misfit| {
        still.iter().any(|other| (other.field, &other.path) == (misfit.field, &misfit.path))
    });
}
