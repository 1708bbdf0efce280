//! Describes problems with the topics to the operator. `topics` finds them.

use std::collections::BTreeMap;
use std::fmt;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::wanted::Severity;
use crate::config::Bus;

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

/// Logs one line for each kind of problem, with all topics that have it.
pub(super) fn warn(problems: &[TopicProblem]) {
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
