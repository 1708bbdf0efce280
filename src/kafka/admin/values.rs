//! Startup checks against the schema registry, for [`run`](crate::kafka::run) and the `schemas` and `probe` commands.
//! Our schemas must be registered before anything is written with them, and the crawlers' must have the configured
//! fields.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{Config, InputFormat, ValueFormat};
use crate::formats::avro::{Schema, UnmappedField};
use crate::formats::registry::{Registry, RegistryError, Subject, SubjectStatus, value_subject};
use crate::status::StatusBoard;
use crate::stop::{Poll, Polled, Stop};

use crate::kafka::matching::outgoing::OutputEncoding;

/// Why the stage cannot start with this schema registry.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// The schema of an output topic is not registered.
    #[error(
        "{topic}: its schema is not registered under {subject}; run `samestory schemas register`, or set registry.auto_register"
    )]
    Unregistered {
        /// The output topic.
        topic: String,
        /// The subject of its schema.
        subject: String,
    },
    /// The registry refuses a schema of ours.
    #[error("{subject}: {why}")]
    Refused {
        /// The subject of the schema.
        subject: String,
        /// The registry's answer.
        why: String,
    },
    /// Configured field paths that no schema of the subject has.
    #[error("{subject}: {}", list(.misfits))]
    Misfits {
        /// The subject whose schemas were checked.
        subject: String,
        /// The paths, each with the nearest existing one.
        misfits: Vec<UnmappedField>,
    },
    /// The settings under `[registry]` are wrong.
    #[error("{0}")]
    Settings(String),
}

fn list(misfits: &[UnmappedField]) -> String {
    misfits.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The client of the configured schema registry, if there is one.
pub(crate) fn registry(config: &Config) -> Result<Option<Arc<Registry>>, ValueError> {
    let registry = config.bus.registry.as_ref().map(Registry::new).transpose();
    Ok(registry.map_err(|error| ValueError::Settings(error.to_string()))?.map(Arc::new))
}

/// Which values the roles of a run read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StageIo {
    /// A role reads raw articles.
    pub(crate) reads: bool,
    /// A role writes verdicts.
    pub(crate) writes: bool,
}

/// Checks the schemas, and waits while the registry is unreachable. Returns `None` if the process is to stop.
pub(crate) fn await_ready(
    config: &Config,
    registry: Option<&Registry>,
    io: StageIo,
    stop: &Stop,
    board: &StatusBoard,
) -> Result<Option<OutputEncoding>, ValueError> {
    let Some(registry) = registry else { return Ok(Some(OutputEncoding::Json)) };
    let mut logged = None::<Instant>;
    Poll::until_stopped(stop, config.bus.retry.registry).ask(|| match check(config, registry, io) {
        Ok(encoding) => {
            board.awaits_registry(None);
            Ok(Polled::Final(encoding))
        }
        Err(NotChecked::Refused(error)) => Err(error),
        Err(NotChecked::Away(why)) => {
            board.awaits_registry(Some(why.clone()));
            if logged.is_none_or(|logged| logged.elapsed() > Duration::from_secs(60)) {
                tracing::warn!("waiting for the schema registry: {why}");
                logged = Some(Instant::now());
            }
            Ok(Polled::NotYet)
        }
    })
}

/// Why the checks did not pass.
enum NotChecked {
    /// The registry is unreachable or fails: retry.
    Away(String),
    /// The stage must not start.
    Refused(ValueError),
}

fn check(config: &Config, registry: &Registry, io: StageIo) -> Result<OutputEncoding, NotChecked> {
    let bus = &config.bus;
    if io.reads && bus.formats.input != InputFormat::Json {
        let subject = value_subject(&bus.topics.raw);
        let misfits =
            misfits(config, registry, &subject).map_err(|error| NotChecked::Away(error.to_string()))?;
        match misfits {
            None => tracing::info!(subject, "no schema is registered, field paths are not checked"),
            Some(misfits) if misfits.is_empty() => {}
            Some(misfits) => return Err(NotChecked::Refused(ValueError::Misfits { subject, misfits })),
        }
    }
    if !io.writes || bus.formats.output == ValueFormat::Json {
        return Ok(OutputEncoding::Json);
    }
    let mut ids = std::collections::BTreeMap::new();
    for subject in Subject::all(bus) {
        ids.insert(subject.topic.clone(), schema_id(registry, subject)?);
    }
    let id = |topic: &str| ids.get(topic).copied().unwrap_or(0);
    Ok(OutputEncoding::Avro {
        unique: id(&bus.topics.unique),
        near_duplicate: id(&bus.topics.near_duplicate),
        clusters: id(&bus.topics.clusters),
    })
}

/// The id of one of our schemas. Registers the schema first, if the settings allow that.
fn schema_id(registry: &Registry, subject: Subject) -> Result<u32, NotChecked> {
    let away = |error: RegistryError| NotChecked::Away(error.to_string());
    if let SubjectStatus::Registered(id) = registry.status(&subject).map_err(away)? {
        return Ok(id);
    }
    if !registry.config().auto_register {
        let Subject { topic, name: subject, .. } = subject;
        return Err(NotChecked::Refused(ValueError::Unregistered { topic, subject }));
    }
    registry.register(&subject).map_err(|error| match error {
        RegistryError::No(why) => NotChecked::Refused(ValueError::Refused { subject: subject.name, why }),
        error => NotChecked::Away(error.to_string()),
    })
}

/// The configured field paths that no version of the subject's schema has, or `None` if it has no schema.
///
/// # Errors
/// The registry is unreachable or fails.
pub fn misfits(
    config: &Config,
    registry: &Registry,
    subject: &str,
) -> Result<Option<Vec<UnmappedField>>, RegistryError> {
    /// Records of older versions are assumed to have left the topic.
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
            Ok(earlier) => retain_missing(&mut misfits, &earlier, config),
            Err(RegistryError::No(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(misfits))
}

/// Keeps the paths that this version lacks too. One version with the path is enough: a topic may carry several kinds of
/// records.
fn retain_missing(misfits: &mut Vec<UnmappedField>, earlier: &Schema, config: &Config) {
    let missing = earlier.misfits(&config.fields);
    misfits.retain(|misfit| {
        missing.iter().any(|other| (other.field, &other.path) == (misfit.field, &misfit.path))
    });
}
