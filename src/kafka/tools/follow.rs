//! Verdicts as they arrive, for people who look on. Joins no group.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{Offset, TopicPartitionList};

use crate::config::Bus;

use crate::kafka::client as clients;
use crate::kafka::client::Quiet;
use crate::kafka::turn::source::owned;

/// One record of an output topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Where it stands.
    pub topic: String,
    /// Its key.
    pub key: String,
    /// Whether it takes something back.
    pub null: bool,
    headers: Vec<(String, String)>,
}

impl Seen {
    /// A header by its name, without the `samestory-` that all of them begin with.
    pub fn says(&self, name: &str) -> Option<&str> {
        let ours = |(key, _): &&(String, String)| key.strip_prefix("samestory-") == Some(name);
        self.headers.iter().find(ours).map(|(_, value)| value.as_str())
    }
}

/// Shows what is on these topics to `visit` until it has seen enough, or nothing has come for `idle`.
///
/// # Errors
/// The broker refuses or does not answer.
pub fn follow(
    bus: &Bus,
    topics: &[&str],
    from_beginning: bool,
    idle: Option<Duration>,
    visit: &mut dyn FnMut(Seen) -> bool,
) -> Result<(), KafkaError> {
    let mut config = clients::surveyor(bus, "samestory-follow");
    // The library wants a name to read under; nothing is ever committed under it.
    config
        .set("group.id", format!("{}.follow", bus.app))
        .set("isolation.level", "read_committed")
        .set("enable.auto.offset.store", "false")
        .set("auto.offset.reset", "earliest")
        .set("fetch.wait.max.ms", "100");
    let consumer: BaseConsumer<Quiet> = config.create_with_context(Quiet)?;
    let mut list = TopicPartitionList::new();
    let start = if from_beginning { Offset::Beginning } else { Offset::End };
    for topic in topics {
        let metadata = consumer.fetch_metadata(Some(topic), Duration::from_secs(10))?;
        for found in metadata.topics() {
            for partition in found.partitions() {
                list.add_partition_offset(topic, partition.id(), start)?;
            }
        }
    }
    consumer.assign(&list)?;
    let mut heard = Instant::now();
    while idle.is_none_or(|idle| heard.elapsed() < idle) {
        let Some(Ok(message)) = consumer.poll(Duration::from_millis(200)) else { continue };
        heard = Instant::now();
        let (_, record) = owned(&message, usize::MAX);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let seen = Seen {
            topic: rdkafka::Message::topic(&message).to_owned(),
            key: record.key.as_deref().map(text).unwrap_or_default(),
            null: record.value.is_none(),
            headers: record
                .headers
                .into_iter()
                .map(|(name, value)| (name, text(&value.unwrap_or_default())))
                .collect(),
        };
        if !visit(seen) {
            break;
        }
    }
    Ok(())
}
