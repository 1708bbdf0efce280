//! Creates, checks and fixes the topics, for the `topics` command and at startup. `wanted` says how each topic must be.
//! The stage does not start with a topic that could break the guarantee.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::time::{Duration, Instant};

use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, ConfigResource, ConfigSource, NewTopic, ResourceSpecifier,
    TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::config::{Bus, Mode};

use crate::kafka::client as clients;
use crate::kafka::client::Quiet;

use super::wanted::Deviation;
pub use super::wanted::{Setting, Severity, TopicSpec, wanted};
use crate::stop::{Answer, Poll, Stop};

/// Time limit of one request.
const PATIENCE: Duration = Duration::from_secs(5);
/// Kafka's default of `delete.retention.ms`.
const TOMBSTONES: Duration = Duration::from_secs(24 * 60 * 60);

/// A problem with a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicProblem {
    /// The topic does not exist.
    Missing {
        /// Name of the topic.
        topic: String,
    },
    /// Two topics that must have the same number of partitions do not.
    Partitions {
        /// Name of the topic.
        topic: String,
        /// Its number of partitions.
        found: i32,
        /// The topic that it must match.
        like: String,
        /// The number of partitions of that topic.
        expected: i32,
    },
    /// The topic has fewer replicas than the cluster allows, or only one.
    Replication {
        /// Name of the topic.
        topic: String,
        /// Its replicas.
        found: u16,
        /// The replicas that it should have.
        expected: u16,
        /// The brokers of the cluster.
        brokers: usize,
    },
    /// A setting deviates.
    Setting {
        /// Name of the topic.
        topic: String,
        /// Kafka's name for the setting.
        key: &'static str,
        /// Its value.
        found: String,
        /// The value that it must have.
        expected: String,
        /// How severe the deviation is.
        severity: Severity,
        /// Why the setting matters.
        why: &'static str,
    },
}

impl TopicProblem {
    /// How severe the problem is.
    pub fn severity(&self) -> Severity {
        match self {
            TopicProblem::Missing { .. } | TopicProblem::Partitions { .. } => Severity::Error,
            TopicProblem::Replication { .. } => Severity::Warning,
            TopicProblem::Setting { severity, .. } => *severity,
        }
    }

    /// The command that resolves it.
    pub fn fix(&self, bus: &Bus) -> String {
        let servers = bus.properties.get("bootstrap.servers").map_or("HOST:9092", |servers| servers.reveal());
        // Kafka's own tools read credentials from a file.
        let login = match bus.properties.contains_key("security.protocol") {
            true => " --command-config client.properties",
            false => "",
        };
        let tool = |name: &str| format!("{name} --bootstrap-server {servers}{login}");
        match self {
            TopicProblem::Missing { .. } => "samestory topics --create".to_owned(),
            TopicProblem::Partitions { topic, .. } => {
                format!(
                    "docs/operations.md says how to start over with {topic}; Kafka cannot remove partitions"
                )
            }
            TopicProblem::Replication { expected, brokers, .. } if usize::from(*expected) > *brokers => {
                format!("add brokers to the cluster: it has {brokers}")
            }
            TopicProblem::Replication { .. } => format!(
                "{} --reassignment-json-file plan.json --execute   # docs/operations.md makes plan.json",
                tool("kafka-reassign-partitions.sh")
            ),
            TopicProblem::Setting { topic, key, expected, severity, .. } => {
                let command = format!(
                    "{} --alter --entity-type topics --entity-name {topic} --add-config {key}={expected}",
                    tool("kafka-configs.sh")
                );
                match severity {
                    Severity::Advice => command,
                    Severity::Warning | Severity::Error => {
                        format!("{command}   # or: samestory topics --fix")
                    }
                }
            }
        }
    }
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
            TopicProblem::Replication { topic, found, expected, .. } => {
                let replicas = if *found == 1 { "replica" } else { "replicas" };
                write!(
                    f,
                    "topic {topic} has {found} {replicas}; it should have {expected}, or one lost disk loses the topic"
                )
            }
            TopicProblem::Setting { topic, key, found, expected, severity, why } => {
                let must = if *severity == Severity::Error { "must" } else { "should" };
                write!(f, "topic {topic} has {key}={found}; it {must} be {expected}: {why}")
            }
        }
    }
}

/// Why the topics cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TopicError {
    /// Problems that keep the stage from starting.
    #[error("{}; `samestory topics --check` lists all problems, `samestory topics --create` creates missing topics, `samestory topics --fix` corrects settings (a topic that exists but is not found may be hidden from this user: docs/security.md)", list(.0))]
    Wrong(Vec<TopicProblem>),
    /// The broker refused the request or did not answer.
    #[error("topics: {0}")]
    Broker(#[from] KafkaError),
    /// The broker refused to create or change a topic.
    #[error("the broker refuses to create or change topic {topic}: {code}")]
    Refused {
        /// Name of the topic.
        topic: String,
        /// The broker's answer.
        code: RDKafkaErrorCode,
    },
}

fn list(problems: &[TopicProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What a run needs to know about the topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Partitions of the routed topic; 0 if there is none.
    pub routed: i32,
    /// Partitions of the changelog, which is also the number of stores.
    pub states: i32,
    /// How long the changelog keeps tombstones.
    pub tombstones: Duration,
}

/// What [`create`] did.
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
    let Cluster { brokers, topics: existing, .. } = survey(bus)?;
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
        pause: Duration::from_millis(50),
        longest: Duration::from_millis(50),
        deadline: Some(Instant::now() + PATIENCE * 2),
    };
    if !created.is_empty() {
        let _known_or_late = poll.ask(|| {
            let known = survey(bus)?.addresses.iter().all(|address| {
                // A broker that does not answer is asked again until the deadline.
                let asked = survey_broker(bus, Some(address));
                asked.is_ok_and(|cluster| created.iter().all(|name| cluster.topics.contains_key(name)))
            });
            Ok::<_, TopicError>(if known { Answer::Final(()) } else { Answer::NotYet })
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
pub fn check(bus: &Bus) -> Result<(Vec<TopicProblem>, Counts), TopicError> {
    let Cluster { brokers, topics: existing, .. } = survey(bus)?;
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
    let mut counts = Counts {
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
    counts: &mut Counts,
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
pub(crate) fn await_checked(bus: &Bus, stop: &Stop) -> Result<Option<Counts>, TopicError> {
    let mut logged = false;
    Poll::until_stopped(stop).ask(|| match check(bus) {
        Ok((problems, counts)) => {
            let (errors, rest): (Vec<_>, Vec<_>) =
                problems.into_iter().partition(|problem| problem.severity() == Severity::Error);
            if !errors.is_empty() {
                return Err(TopicError::Wrong(errors));
            }
            warn(&rest);
            Ok(Answer::Final(counts))
        }
        Err(TopicError::Broker(error)) if is_transient(&error) => {
            if !std::mem::replace(&mut logged, true) {
                tracing::warn!(%error, "broker unreachable, retrying");
            }
            Ok(Answer::NotYet)
        }
        Err(error) => Err(error),
    })
}

/// Logs one line for each kind of problem, with all topics that have it.
fn warn(problems: &[TopicProblem]) {
    let mut kinds: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for problem in problems.iter().filter(|problem| problem.severity() == Severity::Warning) {
        let (kind, topic) = match problem {
            TopicProblem::Replication { topic, found, expected, .. } => {
                (format!("replicas: {found}, should be {expected}"), topic)
            }
            TopicProblem::Setting { topic, key, found, expected, .. } => {
                (format!("{key}={found}, should be {expected}"), topic)
            }
            TopicProblem::Missing { topic } | TopicProblem::Partitions { topic, .. } => {
                (problem.to_string(), topic)
            }
        };
        kinds.entry(kind).or_default().push(topic);
    }
    for (kind, topics) in kinds {
        tracing::warn!(topics = topics.join(","), "{kind} (`samestory topics --check` explains)");
    }
}

/// Whether a retry may succeed.
pub(crate) fn is_transient(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    let code = match error {
        // `rdkafka_error_code` leaves these out.
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
                // While leaders and coordinators move, and while the client drops its handle of a broker that went.
                | Code::DestroyBroker
                | Code::NotLeaderForPartition
                | Code::BrokerNotAvailable
                | Code::ReplicaNotAvailable
                | Code::NetworkException
                | Code::CoordinatorLoadInProgress
                | Code::CoordinatorNotAvailable
                | Code::NotCoordinator
                | Code::KafkaStorageError
                | Code::ListenerNotFound
                | Code::FencedLeaderEpoch
                | Code::UnknownLeaderEpoch
                | Code::OffsetNotAvailable
        )
    )
}

/// The cluster according to its metadata.
struct Cluster {
    brokers: usize,
    /// Host and port of each broker.
    addresses: Vec<String>,
    topics: BTreeMap<String, Existing>,
}

struct Existing {
    partitions: i32,
    /// Replicas of the partition that has the fewest.
    replicas: u16,
}

fn survey(bus: &Bus) -> Result<Cluster, KafkaError> {
    survey_broker(bus, None)
}

/// Reads the metadata from one broker, or from any.
fn survey_broker(bus: &Bus, address: Option<&str>) -> Result<Cluster, KafkaError> {
    let mut config = clients::surveyor(bus, "samestory-topics");
    if let Some(address) = address {
        config.set("bootstrap.servers", address);
    }
    let consumer: BaseConsumer<Quiet> = config.create_with_context(Quiet)?;
    let metadata = consumer.fetch_metadata(None, PATIENCE)?;
    let topics = metadata.topics().iter().filter(|topic| topic.error().is_none()).map(|topic| {
        let replicas = topic.partitions().iter().map(|partition| partition.replicas().len()).min();
        let replicas = u16::try_from(replicas.unwrap_or(0)).unwrap_or(u16::MAX);
        (topic.name().to_owned(), Existing { partitions: topic.partitions().len() as i32, replicas })
    });
    let addresses =
        metadata.brokers().iter().map(|broker| format!("{}:{}", broker.host(), broker.port())).collect();
    Ok(Cluster { brokers: metadata.brokers().len(), addresses, topics: topics.collect() })
}

/// Waits for a response to the admin client.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    // Responses come from librdkafka's own thread, so no async runtime is needed.
    futures_executor::block_on(future)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_transient_for_every_kind_of_request() {
        let slow = RDKafkaErrorCode::OperationTimedOut;
        assert!(is_transient(&KafkaError::AdminOp(slow)));
        assert!(is_transient(&KafkaError::MetadataFetch(slow)));
        assert!(!is_transient(&KafkaError::AdminOp(RDKafkaErrorCode::TopicAuthorizationFailed)));
    }

    // A process that was started while brokers failed over ended: the fault test met these two.
    #[test]
    fn a_leader_that_moves_while_a_process_starts_is_waited_for() {
        for met in [RDKafkaErrorCode::OffsetNotAvailable, RDKafkaErrorCode::DestroyBroker] {
            assert!(is_transient(&KafkaError::MetadataFetch(met)));
        }
    }
}
