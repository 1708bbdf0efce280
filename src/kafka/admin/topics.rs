//! Creates, checks and fixes the topics, for the `topics` command and at startup. `wanted` says how each topic must be.
//! The stage does not start with a topic that could break the guarantee.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::{Duration, Instant};

use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, ConfigResource, ConfigSource, NewTopic, ResourceSpecifier,
    TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::config::{Backoff, Bus, Mode};

use crate::kafka::client as clients;

use super::problem::warn;
pub use super::problem::{TopicError, TopicProblem};
use super::survey::{ClusterSurvey, is_transient, survey, survey_broker};
use super::wanted::Deviation;
pub use super::wanted::{Severity, TopicSetting, TopicSpec, wanted};
use crate::stop::{Poll, Polled, Stop};

/// Time limit of one request.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Kafka's default of `delete.retention.ms`.
const TOMBSTONES: Duration = Duration::from_secs(24 * 60 * 60);

/// The partition counts that a run needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionCounts {
    /// Partitions of the routed topic; 0 if there is none.
    pub routed: i32,
    /// Partitions of the changelog, which is also the number of stores.
    pub states: i32,
    /// How long the changelog keeps tombstones.
    pub tombstones: Duration,
}

/// The changes that [`create`] made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Names of the created topics.
    pub topics: Vec<String>,
    /// Replicas of each created topic.
    pub replication: u16,
    /// Brokers of the cluster.
    pub brokers: usize,
}

impl Created {
    /// A warning if the new topics have fewer than three replicas.
    pub fn warning(&self) -> Option<String> {
        let Created { topics, replication, brokers } = self;
        let few = *replication < super::wanted::replication(None, usize::MAX);
        (few && !topics.is_empty()).then(|| {
            format!(
                "the new topics have {replication} replica(s), and the cluster has {brokers} broker(s): a lost disk may lose \
                 committed articles and the state; use three brokers or more"
            )
        })
    }
}

/// Creates the missing topics. Existing topics stay as they are.
///
/// # Errors
/// The broker refuses, or does not answer.
pub fn create(bus: &Bus) -> Result<Created, TopicError> {
    let ClusterSurvey { brokers, topics: existing, .. } = survey(bus)?;
    let admin: AdminClient<DefaultClientContext> = clients::base(bus, "samestory-topics").create()?;
    let mut created = Vec::new();
    for spec in wanted(bus, brokers) {
        if existing.contains_key(&spec.name) {
            continue;
        }
        let raw = existing.get(&bus.topics.raw).map(|raw| raw.partitions);
        // In direct mode the changelog must have as many partitions as the raw topic.
        let follows = bus.mode == Mode::Direct && spec.name == bus.topics.changelog;
        let partitions = raw.filter(|_| follows).unwrap_or(spec.partitions);
        let outcome = match create_one(&admin, &spec, partitions, false)? {
            // The broker may be too old to know the two timestamp limits.
            Err(RDKafkaErrorCode::InvalidConfig) => create_one(&admin, &spec, partitions, true)?,
            outcome => outcome,
        };
        match outcome {
            Ok(()) => created.push(spec.name),
            Err(RDKafkaErrorCode::TopicAlreadyExists) => {}
            Err(code) => return Err(TopicError::Refused { topic: spec.name, code }),
        }
    }
    // A new topic is not known to every broker at once, and the next client may ask any of them.
    let poll = Poll {
        stop: None,
        backoff: Backoff::every(Duration::from_millis(50)),
        deadline: Some(Instant::now() + PATIENCE * 2),
    };
    if !created.is_empty() {
        let _known_or_late = poll.ask(|| {
            let known = survey(bus)?.addresses.iter().all(|address| {
                // A broker that does not answer is asked again until the deadline.
                let asked = survey_broker(bus, Some(address));
                asked.is_ok_and(|cluster| created.iter().all(|name| cluster.topics.contains_key(name)))
            });
            Ok::<_, TopicError>(if known { Polled::Final(()) } else { Polled::NotYet })
        })?;
    }
    Ok(Created {
        topics: created,
        replication: super::wanted::replication(bus.topics.replication, brokers),
        brokers,
    })
}

fn create_one(
    admin: &AdminClient<DefaultClientContext>,
    spec: &TopicSpec,
    partitions: i32,
    old_broker: bool,
) -> Result<Result<(), RDKafkaErrorCode>, KafkaError> {
    let replication = TopicReplication::Fixed(i32::from(spec.replication));
    let mut topic = NewTopic::new(&spec.name, partitions, replication);
    for (key, value) in spec.at_creation(old_broker) {
        topic = topic.set(key, value);
    }
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    let answers = block_on(admin.create_topics([&topic], &options))?;
    Ok(answers.into_iter().try_for_each(|answer| answer.map(|_| ()).map_err(|(_, code)| code)))
}

/// Checks the topics, and returns their problems and what a run needs to know about them.
///
/// # Errors
/// The broker does not answer.
pub fn check(bus: &Bus) -> Result<(Vec<TopicProblem>, PartitionCounts), TopicError> {
    let ClusterSurvey { brokers, topics: existing, .. } = survey(bus)?;
    let mut problems = Vec::new();
    let specs = wanted(bus, brokers);
    for topic in specs.iter().filter(|topic| !existing.contains_key(&topic.name)) {
        problems.push(TopicProblem::Missing { topic: topic.name.clone() });
    }
    let count = |topic: &str| existing.get(topic).map_or(0, |topic| topic.partitions);
    let input = if bus.mode == Mode::Routed { &bus.topics.routed } else { &bus.topics.raw };
    if let (Some(changelog), Some(input_topic)) = (existing.get(&bus.topics.changelog), existing.get(input))
        && changelog.partitions != input_topic.partitions
    {
        let (topic, like) = (bus.topics.changelog.clone(), input.clone());
        let (found, expected) = (changelog.partitions, input_topic.partitions);
        problems.push(TopicProblem::Partitions { topic, found, like, expected });
    }
    let mut counts = PartitionCounts {
        routed: count(&bus.topics.routed),
        states: count(&bus.topics.changelog),
        tombstones: TOMBSTONES,
    };
    if problems.is_empty() {
        let admin: AdminClient<DefaultClientContext> = clients::base(bus, "samestory-topics").create()?;
        for topic in &specs {
            let replicas = existing.get(&topic.name).map_or(0, |existing| existing.replicas);
            check_settings(&admin, topic, (replicas, brokers), &mut problems, &mut counts, bus)?;
        }
    }
    Ok((problems, counts))
}

/// Checks the settings and replicas of one topic. Settings that this user may not read are skipped with a warning.
fn check_settings(
    admin: &AdminClient<DefaultClientContext>,
    topic: &TopicSpec,
    (replicas, brokers): (u16, usize),
    problems: &mut Vec<TopicProblem>,
    counts: &mut PartitionCounts,
    bus: &Bus,
) -> Result<(), TopicError> {
    // A single replica is worth a warning even if it was configured.
    let expected = topic.replication.max(2);
    if !topic.foreign && replicas < expected {
        let topic = topic.name.clone();
        problems.push(TopicProblem::Replication { topic, found: replicas, expected, brokers });
    }
    let answer = match describe(admin, &topic.name)? {
        Ok(answer) => answer,
        // The stage does not need the right to read the settings of the crawlers' topic.
        Err(code) if topic.foreign => {
            tracing::debug!(topic = topic.name, %code, "topic settings cannot be read");
            return Ok(());
        }
        Err(code) => {
            tracing::warn!(topic = topic.name, %code, "topic settings cannot be read, so they are not checked");
            return Ok(());
        }
    };
    let found = |key: &str| answer.get(key).and_then(|entry| entry.value.clone());
    for Deviation { key, found, expected, severity, why } in topic.deviations(found, replicas) {
        let topic = topic.name.clone();
        problems.push(TopicProblem::Setting { topic, key, found, expected, severity, why });
    }
    if topic.name == bus.topics.changelog
        && let Some(Ok(millis)) = found("delete.retention.ms").map(|text| text.parse())
    {
        counts.tombstones = Duration::from_millis(millis);
    }
    Ok(())
}

fn describe(
    admin: &AdminClient<DefaultClientContext>,
    topic: &str,
) -> Result<Result<ConfigResource, RDKafkaErrorCode>, KafkaError> {
    let options = AdminOptions::new().request_timeout(Some(PATIENCE));
    let answers = block_on(admin.describe_configs(&[ResourceSpecifier::Topic(topic)], &options))?;
    Ok(answers.into_iter().next().unwrap_or(Err(RDKafkaErrorCode::UnknownTopicOrPartition)))
}

/// Corrects the settings of our own topics that [`check`] complains about, and returns those problems. Replication,
/// partitions and the crawlers' topic stay as they are.
///
/// # Errors
/// The broker refuses, or does not answer.
pub fn fix(bus: &Bus) -> Result<Vec<TopicProblem>, TopicError> {
    let (problems, _) = check(bus)?;
    let admin: AdminClient<DefaultClientContext> = clients::base(bus, "samestory-topics").create()?;
    let mut wrong: BTreeMap<&str, Vec<&TopicProblem>> = BTreeMap::new();
    for problem in &problems {
        if let TopicProblem::Setting { topic, severity: Severity::Warning | Severity::Error, .. } = problem {
            wrong.entry(topic.as_str()).or_default().push(problem);
        }
    }
    for (topic, problems) in &wrong {
        let refused = |code| TopicError::Refused { topic: (*topic).to_owned(), code };
        let answer = describe(&admin, topic)?.map_err(refused)?;
        let mut alter = AlterConfig::new(ResourceSpecifier::Topic(topic));
        // This request replaces all settings of a topic, so the topic's other overrides are sent along.
        for entry in answer.entries.iter().filter(|entry| entry.source == ConfigSource::DynamicTopic) {
            alter = alter.set(&entry.name, entry.value.as_deref().unwrap_or_default());
        }
        for problem in problems {
            if let TopicProblem::Setting { key, expected, .. } = problem {
                alter = alter.set(key, expected);
            }
        }
        let options = AdminOptions::new().request_timeout(Some(PATIENCE));
        for answer in block_on(admin.alter_configs([&alter], &options))? {
            answer.map_err(|(_, code)| refused(code))?;
        }
    }
    Ok(wrong.into_values().flatten().cloned().collect())
}

/// Checks the topics at startup, and waits while the broker is unreachable. Returns `None` if the process is to stop.
///
/// # Errors
/// A problem with a topic could break the guarantee, or the broker refuses to answer.
pub(crate) fn await_checked(bus: &Bus, stop: &Stop) -> Result<Option<PartitionCounts>, TopicError> {
    let mut logged = false;
    Poll::until_stopped(stop, bus.retry.broker).ask(|| match check(bus) {
        Ok((problems, counts)) => {
            let (errors, rest): (Vec<_>, Vec<_>) =
                problems.into_iter().partition(|problem| problem.severity() == Severity::Error);
            if !errors.is_empty() {
                return Err(TopicError::Wrong(errors));
            }
            warn(&rest);
            Ok(Polled::Final(counts))
        }
        Err(TopicError::Broker(error)) if is_transient(&error) => {
            if !std::mem::replace(&mut logged, true) {
                tracing::warn!(%error, "broker unreachable, retrying");
            }
            Ok(Polled::NotYet)
        }
        Err(error) => Err(error),
    })
}

/// Waits for a response to the admin client.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    // Responses come from librdkafka's own thread, so no async runtime is needed.
    futures_executor::block_on(future)
}
