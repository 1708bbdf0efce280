//! The cluster's brokers and topics as its metadata has them, and which of its errors a retry may cure. `topics` creates
//! and checks topics with it.

use std::collections::BTreeMap;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::topics::PATIENCE;
use crate::config::Bus;
use crate::kafka::client as clients;
use crate::kafka::client::Quiet;

/// The cluster according to its metadata.
pub(super) struct ClusterSurvey {
    pub(super) brokers: usize,
    /// Host and port of each broker.
    pub(super) addresses: Vec<String>,
    pub(super) topics: BTreeMap<String, ExistingTopic>,
}

pub(super) struct ExistingTopic {
    pub(super) partitions: i32,
    /// Replicas of the partition that has the fewest.
    pub(super) replicas: u16,
}

pub(super) fn survey(bus: &Bus) -> Result<ClusterSurvey, KafkaError> {
    survey_broker(bus, None)
}

/// Reads the metadata from one broker, or from any.
pub(super) fn survey_broker(bus: &Bus, address: Option<&str>) -> Result<ClusterSurvey, KafkaError> {
    let mut config = clients::surveyor(bus, "samestory-topics");
    if let Some(address) = address {
        config.set("bootstrap.servers", address);
    }
    let consumer: BaseConsumer<Quiet> = config.create_with_context(Quiet)?;
    let metadata = consumer.fetch_metadata(None, PATIENCE)?;
    let topics = metadata.topics().iter().filter(|topic| topic.error().is_none()).map(|topic| {
        let replicas = topic.partitions().iter().map(|partition| partition.replicas().len()).min();
        let replicas = u16::try_from(replicas.unwrap_or(0)).unwrap_or(u16::MAX);
        (topic.name().to_owned(), ExistingTopic { partitions: topic.partitions().len() as i32, replicas })
    });
    let addresses =
        metadata.brokers().iter().map(|broker| format!("{}:{}", broker.host(), broker.port())).collect();
    Ok(ClusterSurvey { brokers: metadata.brokers().len(), addresses, topics: topics.collect() })
}

/// True if a retry may succeed.
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
