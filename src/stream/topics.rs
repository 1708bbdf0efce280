//! The topics: made with the right partition counts and settings, and checked before anything is read.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::config::{Bus, Mode};

use super::clients::{self, Quiet};

/// How long a question about topics may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Kafka's own default.
const TOMBSTONES: Duration = Duration::from_secs(24 * 60 * 60);

/// A topic as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// How many partitions it gets.
    pub partitions: i32,
    /// How it is set up.
    pub settings: BTreeMap<&'static str, String>,
    /// Others may have made it as they like.
    pub foreign: bool,
}

/// What is wrong with a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicProblem {
    /// It does not exist.
    Missing {
        /// Which.
        topic: String,
    },
    /// Two topics that belong together differ.
    Partitions {
        /// Which.
        topic: String,
        /// What it has.
        found: i32,
        /// The topic it must be like.
        like: String,
        /// What that has.
        expected: i32,
    },
    /// A setting that the guarantee rests on.
    Setting {
        /// Which topic.
        topic: String,
        /// Which setting.
        key: &'static str,
        /// As it is.
        found: String,
        /// As it must be.
        expected: String,
    },
}

impl fmt::Display for TopicProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopicProblem::Missing { topic } => write!(f, "topic {topic} does not exist"),
            TopicProblem::Partitions { topic, found, like, expected } => {
                write!(
                    f,
                    "topic {topic} has {found} partitions, but {like} has {expected}; they must be the same"
                )
            }
            TopicProblem::Setting { topic, key, found, expected } => {
                write!(f, "topic {topic} has {key}={found}; it must be {expected}")
            }
        }
    }
}

/// Why the topics cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TopicError {
    /// Each with what it is about.
    #[error("{}; `samestory topics --check` lists what is wrong, `samestory topics --create` makes what is missing (what exists and is not listed, this user may not see: docs/security.md)", list(.0))]
    Wrong(Vec<TopicProblem>),
    /// The broker refuses or does not answer.
    #[error("topics: {0}")]
    Broker(#[from] KafkaError),
    /// The broker refuses to make one.
    #[error("topic {topic} cannot be made: {code}")]
    Refused {
        /// Which.
        topic: String,
        /// What the broker said.
        code: RDKafkaErrorCode,
    },
}

fn list(problems: &[TopicProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What a run needs to know of the topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Partitions of the routed topic; 0 where there is none.
    pub routed: i32,
    /// Partitions of the changelog: so many states there are.
    pub states: i32,
    /// How long the changelog keeps tombstones.
    pub tombstones: Duration,
}

/// All topics of these settings, as they must be.
pub fn wanted(bus: &Bus) -> Vec<Wanted> {
    let names = &bus.topics;
    let (inner, outer) = (i32::from(names.partitions), i32::from(names.output_partitions));
    let largest = ("max.message.bytes", names.max_message_bytes.to_string());
    let topic = |name: &str, partitions, settings: &[(&'static str, &str)]| Wanted {
        name: name.to_owned(),
        partitions,
        settings: settings
            .iter()
            .map(|&(key, value)| (key, value.to_owned()))
            .chain([largest.clone()])
            .collect(),
        foreign: false,
    };
    let mut all = vec![Wanted { foreign: true, ..topic(&names.raw, inner, &[("cleanup.policy", "delete")]) }];
    if bus.mode == Mode::Routed {
        // Kept until match deletes it, with the times that articles came with.
        let settings =
            [("cleanup.policy", "delete"), ("retention.ms", "-1"), ("message.timestamp.type", "CreateTime")];
        all.push(topic(&names.routed, inner, &settings));
    }
    all.push(topic(&names.changelog, inner, &[("cleanup.policy", "compact")]));
    all.push(topic(&names.unique, outer, &[("cleanup.policy", "delete")]));
    if names.near_duplicate != names.unique {
        all.push(topic(&names.near_duplicate, outer, &[("cleanup.policy", "delete")]));
    }
    all.push(topic(&names.clusters, outer, &[("cleanup.policy", "compact")]));
    all.push(topic(&names.dead_letter, outer, &[("cleanup.policy", "delete")]));
    all
}

/// Makes what is missing, and says what it made. What exists is left as it is.
///
/// # Errors
/// The broker refuses, or does not answer.
pub fn create(bus: &Bus) -> Result<Vec<String>, TopicError> {
    let existing = partitions(bus)?;
    let admin: AdminClient<DefaultClientContext> = clients::base(bus, "samestory-topics").create()?;
    let mut made = Vec::new();
    for wanted in wanted(bus) {
        if existing.contains_key(&wanted.name) {
            continue;
        }
        let raw = existing.get(&bus.topics.raw).copied();
        // In direct mode the changelog goes along with the raw topic, however many partitions that has.
        let follows = bus.mode == Mode::Direct && wanted.name == bus.topics.changelog;
        let partitions = raw.filter(|_| follows).unwrap_or(wanted.partitions);
        let mut topic = NewTopic::new(
            &wanted.name,
            partitions,
            TopicReplication::Fixed(i32::from(bus.topics.replication)),
        );
        for (key, value) in &wanted.settings {
            topic = topic.set(key, value);
        }
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
        for outcome in block_on(admin.create_topics([&topic], &options))? {
            match outcome {
                Ok(name) => made.push(name),
                Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
                Err((topic, code)) => return Err(TopicError::Refused { topic, code }),
            }
        }
    }
    // What is made is not known everywhere at once; whoever is told that it is made will use it.
    let deadline = Instant::now() + PATIENCE * 2;
    while Instant::now() < deadline {
        let existing = partitions(bus)?;
        if made.iter().all(|name| existing.contains_key(name)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(made)
}

/// What is wrong with the topics.
///
/// # Errors
/// The broker does not answer.
pub fn check(bus: &Bus) -> Result<(Vec<TopicProblem>, Counts), TopicError> {
    let existing = partitions(bus)?;
    let mut problems = Vec::new();
    let wanted = wanted(bus);
    for topic in wanted.iter().filter(|topic| !existing.contains_key(&topic.name)) {
        problems.push(TopicProblem::Missing { topic: topic.name.clone() });
    }
    let input = if bus.mode == Mode::Routed { &bus.topics.routed } else { &bus.topics.raw };
    if let (Some(&found), Some(&expected)) = (existing.get(&bus.topics.changelog), existing.get(input))
        && found != expected
    {
        let (topic, like) = (bus.topics.changelog.clone(), input.clone());
        problems.push(TopicProblem::Partitions { topic, found, like, expected });
    }
    let count = |topic: &str| existing.get(topic).copied().unwrap_or(0);
    let mut counts = Counts {
        routed: count(&bus.topics.routed),
        states: count(&bus.topics.changelog),
        tombstones: TOMBSTONES,
    };
    if problems.is_empty() {
        settings(bus, &wanted, &mut problems, &mut counts)?;
    }
    Ok((problems, counts))
}

/// Compares the settings that matter. Where we may not read them, that is said and believed.
fn settings(
    bus: &Bus,
    wanted: &[Wanted],
    problems: &mut Vec<TopicProblem>,
    counts: &mut Counts,
) -> Result<(), TopicError> {
    let admin: AdminClient<DefaultClientContext> = clients::base(bus, "samestory-topics").create()?;
    let ours: Vec<&Wanted> = wanted.iter().filter(|topic| !topic.foreign).collect();
    let resources: Vec<ResourceSpecifier<'_>> =
        ours.iter().map(|topic| ResourceSpecifier::Topic(&topic.name)).collect();
    let options = AdminOptions::new().request_timeout(Some(PATIENCE));
    let answers = block_on(admin.describe_configs(&resources, &options))?;
    for (topic, answer) in ours.iter().zip(answers) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(code) => {
                tracing::warn!(topic = topic.name, %code, "its settings cannot be read, so they are not checked");
                continue;
            }
        };
        let found = |key: &str| answer.get(key).and_then(|entry| entry.value.clone()).unwrap_or_default();
        for (&key, expected) in &topic.settings {
            let is = found(key);
            let right = match key {
                "max.message.bytes" => is.parse::<u64>().unwrap_or(0) >= expected.parse().unwrap_or(u64::MAX),
                _ => is == *expected,
            };
            if !right {
                let (topic, expected) = (topic.name.clone(), expected.clone());
                problems.push(TopicProblem::Setting { topic, key, found: is, expected });
            }
        }
        if topic.name == bus.topics.changelog
            && let Ok(millis) = found("delete.retention.ms").parse()
        {
            counts.tombstones = Duration::from_millis(millis);
        }
    }
    Ok(())
}

/// Checks the topics, and waits for a broker that is away.
///
/// # Errors
/// They are not as they must be. Nothing where it was told to stop before the broker answered.
pub(super) fn await_checked(bus: &Bus, stop: &Arc<AtomicBool>) -> Result<Option<Counts>, TopicError> {
    let mut said = false;
    while !stop.load(Ordering::Relaxed) {
        match check(bus) {
            Ok((problems, counts)) if problems.is_empty() => return Ok(Some(counts)),
            Ok((problems, _)) => return Err(TopicError::Wrong(problems)),
            Err(TopicError::Broker(error)) if is_transient(&error) => {
                if !std::mem::replace(&mut said, true) {
                    tracing::warn!(%error, "the broker does not answer; it is tried again and again");
                }
                std::thread::sleep(Duration::from_millis(500));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

pub(super) fn is_transient(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    let code = match error {
        // The library's own question leaves these out.
        KafkaError::AdminOp(code) => Some(*code),
        error => error.rdkafka_error_code(),
    };
    matches!(
        code,
        Some(
            Code::BrokerTransportFailure
                | Code::OperationTimedOut
                | Code::AllBrokersDown
                | Code::Resolve
                | Code::RequestTimedOut
                | Code::LeaderNotAvailable
                | Code::NotController
                | Code::TimedOutQueue
        )
    )
}

/// Partitions of every topic that exists.
fn partitions(bus: &Bus) -> Result<BTreeMap<String, i32>, KafkaError> {
    let consumer: BaseConsumer<Quiet> =
        clients::surveyor(bus, "samestory-topics").create_with_context(Quiet)?;
    let metadata = consumer.fetch_metadata(None, PATIENCE)?;
    let existing = metadata.topics().iter().filter(|topic| topic.error().is_none());
    Ok(existing.map(|topic| (topic.name().to_owned(), topic.partitions().len() as i32)).collect())
}

/// Waits for an answer of the administrative client.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    // The answers come from the library's own thread; nothing here needs a runtime.
    futures_executor::block_on(future)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_that_is_slow_to_answer_is_waited_for_whoever_asks() {
        let slow = RDKafkaErrorCode::OperationTimedOut;
        assert!(is_transient(&KafkaError::AdminOp(slow)));
        assert!(is_transient(&KafkaError::MetadataFetch(slow)));
        assert!(!is_transient(&KafkaError::AdminOp(RDKafkaErrorCode::TopicAuthorizationFailed)));
    }
}
