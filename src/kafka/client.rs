//! Configuration of every Kafka client: those of the worker's turn, of recovery and of the admin commands. Every
//! property that the guarantee depends on is set here and only here, after the operator's, so that the operator's
//! cannot weaken it.

use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

use crate::config::Bus;
use samestory_engine::model::EventTime;

/// The role of a worker: it decides what the worker reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads raw articles and writes each to the partition of its language.
    Route,
    /// Reads routed articles and publishes verdicts.
    Match,
    /// Reads raw articles and publishes verdicts, without a routed topic.
    Direct,
}

impl Role {
    /// The name in group ids, transactional ids, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Route => "route",
            Role::Match => "match",
            Role::Direct => "direct",
        }
    }
}

/// Identifies a worker: one thread of one process.
#[derive(Clone, Debug)]
pub(crate) struct WorkerId {
    pub(crate) role: Role,
    pub(crate) number: u16,
}

impl WorkerId {
    /// The transactional id and client id. It is the same after a restart, so that the new producer fences the old one.
    pub(crate) fn id(&self, bus: &Bus) -> String {
        let generation = if bus.generation > 1 { format!("-g{}", bus.generation) } else { String::new() };
        format!("{}{generation}-{}-{}-{}", bus.app, self.role.as_str(), bus.instance, self.number)
    }
}

/// The consumer group of a role.
pub(crate) fn group(bus: &Bus, role: Role) -> String {
    group_of(bus, bus.generation, role)
}

/// The consumer group of a role in another generation.
pub(crate) fn group_of(bus: &Bus, generation: u32, role: Role) -> String {
    match generation {
        0 | 1 => format!("{}.{}", bus.app, role.as_str()),
        later => format!("{}.g{later}.{}", bus.app, role.as_str()),
    }
}

/// The properties that every client shares: our defaults, overridden by the operator's.
pub(crate) fn base(bus: &Bus, client_id: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    apply_shared(&mut config, bus, client_id);
    config
}

/// The address that clients of this application connect to, for messages.
pub(crate) fn address(bus: &Bus) -> String {
    bus.properties.get("bootstrap.servers").map_or("localhost:9092", |value| value.reveal()).to_owned()
}

/// Applies the shared defaults and the operator's properties over a client's own defaults. They cannot be copied from
/// another `ClientConfig`, which hands out masked passwords.
fn apply_shared(config: &mut ClientConfig, bus: &Bus, client_id: &str) {
    config.set("bootstrap.servers", "localhost:9092");
    // A broker that comes back is reconnected within a second instead of ten.
    config.set("reconnect.backoff.max.ms", "1000");
    for (key, value) in &bus.properties {
        config.set(key, value.reveal());
    }
    config.set("client.id", client_id);
}

/// A property under `[kafka]` that librdkafka rejects. The message hides the value, which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kafka.\"{key}\": librdkafka rejects it: {why}")]
pub struct PropertyError {
    key: String,
    why: String,
}

/// Checks that librdkafka accepts the operator's properties. It runs before any client is created, because a client's
/// own error would repeat the value.
///
/// # Errors
/// Names the first property that librdkafka rejects.
pub fn check_properties(bus: &Bus) -> Result<(), PropertyError> {
    for (key, value) in &bus.properties {
        let mut one = ClientConfig::new();
        one.set(key, value.reveal());
        if let Err(KafkaError::ClientConfig(_, why, ..)) = one.create_native_config() {
            let why = if value.reveal().is_empty() { why } else { why.replace(value.reveal(), "…") };
            return Err(PropertyError { key: key.clone(), why });
        }
    }
    Ok(())
}

/// Prefixes of producer properties. librdkafka warns if a consumer has one, and a producer a consumer's.
const PRODUCING: &[&str] = &[
    "batch.",
    "compression.",
    "delivery.",
    "linger.",
    "message.timeout.",
    "queue.buffering.",
    "queuing.",
    "retries",
    "retry.",
    "sticky.",
    "topic.metadata.propagation",
];
/// Prefixes of group member properties. librdkafka checks them against each other, so a client outside a group gets
/// none.
const MEMBERSHIP: &[&str] = &["heartbeat.", "max.poll.", "session."];
const CONSUMING: &[&str] = &[
    "check.crcs",
    "consume.",
    "fetch.",
    "heartbeat.",
    "max.partition.fetch.",
    "max.poll.",
    "queued.",
    "session.",
];

fn without(config: &mut ClientConfig, prefixes: &[&str]) {
    let keys: Vec<String> = config.config_map().keys().map(|key| (*key).to_owned()).collect();
    for key in keys {
        if prefixes.iter().any(|prefix| key.starts_with(prefix)) {
            config.remove(&key);
        }
    }
}

/// The consumer that reads a worker's input as a group member.
pub(crate) fn consumer(bus: &Bus, worker: &WorkerId) -> ClientConfig {
    let id = worker.id(bus);
    let mut config = ClientConfig::new();
    // Bounds the prefetch queues: librdkafka's defaults would hold a gigabyte at eight partitions.
    config
        .set("queued.min.messages", "4000")
        .set("queued.max.messages.kbytes", "16384")
        .set("fetch.message.max.bytes", "1048576")
        .set("fetch.max.bytes", "8388608")
        .set("fetch.wait.max.ms", "100")
        .set("fetch.queue.backoff.ms", "20")
        // Lag and readiness come from the statistics.
        .set("statistics.interval.ms", "2000");
    if !bus.broker_assigns {
        config.set("session.timeout.ms", "10000").set("heartbeat.interval.ms", "1000");
    }
    apply_shared(&mut config, bus, &id);
    without(&mut config, PRODUCING);
    config
        .set("group.id", group(bus, worker.role))
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("isolation.level", "read_committed")
        // An offset that the log does not hold must be an error; librdkafka must not pick another one silently.
        .set("auto.offset.reset", "error");
    match bus.broker_assigns {
        true => config.set("group.protocol", "consumer"),
        false => config.set("partition.assignment.strategy", "cooperative-sticky"),
    };
    if bus.static_membership {
        config.set("group.instance.id", &id);
    }
    config
}

/// The producer of a worker's transactions.
pub(crate) fn producer(bus: &Bus, worker: &WorkerId) -> ClientConfig {
    let id = worker.id(bus);
    let timeout = bus.transaction_timeout.as_millis();
    let mut config = ClientConfig::new();
    config
        // Right after a commit the coordinator is still busy with the last transaction. librdkafka's default backoff of
        // 100 ms would be most of the time that a transaction takes.
        .set("retry.backoff.ms", "1")
        .set("retry.backoff.max.ms", "50")
        .set("linger.ms", "2")
        .set("batch.size", "1000000")
        .set("compression.type", "lz4");
    apply_shared(&mut config, bus, &id);
    without(&mut config, CONSUMING);
    config
        .set("transactional.id", &id)
        .set("transaction.timeout.ms", timeout.to_string())
        .set("message.timeout.ms", (timeout * 9 / 10).to_string())
        .set("message.max.bytes", bus.topics.max_message_bytes.to_string())
        // As the Java client does: our outputs are then co-partitioned with other programs' tables keyed by article.
        .set("partitioner", "murmur2_random");
    config
}

/// The consumer that reads a changelog partition: committed records only, with checksums verified.
pub(crate) fn restorer(bus: &Bus, worker: &WorkerId) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("queued.min.messages", "20000")
        .set("queued.max.messages.kbytes", "32768")
        // A full queue stops fetching for this time: a second by librdkafka's default, and the queue is empty long before.
        .set("fetch.queue.backoff.ms", "5")
        .set("fetch.max.bytes", "16777216")
        // The transaction marker after the last record shows only in an empty response, which the broker delays by this
        // time: half a second for each partition by librdkafka's default.
        .set("fetch.wait.max.ms", "20");
    apply_shared(&mut config, bus, &format!("{}-restore", worker.id(bus)));
    without(&mut config, PRODUCING);
    without(&mut config, MEMBERSHIP);
    config
        // It joins no group, but librdkafka requires an id.
        .set("group.id", format!("{}.restore", group(bus, worker.role)))
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("isolation.level", "read_committed")
        .set("auto.offset.reset", "error")
        .set("enable.partition.eof", "true")
        .set("check.crcs", "true");
    config
}

/// The consumer that delivers verdicts over HTTP. It is a group of its own, with at-least-once offsets.
pub(crate) fn webhook(bus: &Bus, start: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("queued.min.messages", "1000")
        .set("queued.max.messages.kbytes", "8192")
        .set("fetch.wait.max.ms", "100");
    apply_shared(&mut config, bus, &format!("{}-webhook-{}", bus.app, bus.instance));
    without(&mut config, PRODUCING);
    config
        .set("group.id", format!("{}.webhook", bus.app))
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("isolation.level", "read_committed")
        .set("auto.offset.reset", start);
    if bus.broker_assigns {
        config.set("group.protocol", "consumer");
    }
    config
}

/// The client that asks for watermarks. It must read uncommitted: a `read_committed` client gets the last stable offset
/// instead of the high watermark, and a store restored to that misses what is committed after an open transaction.
pub(crate) fn surveyor(bus: &Bus, client_id: &str) -> ClientConfig {
    let mut config = base(bus, client_id);
    without(&mut config, PRODUCING);
    without(&mut config, MEMBERSHIP);
    config.set("isolation.level", "read_uncommitted").set("enable.auto.commit", "false");
    config
}

/// The consumer that examines a batch which the worker's consumer cannot read, with the same limits.
pub(crate) fn probe(bus: &Bus, worker: &str) -> ClientConfig {
    let mut config = surveyor(bus, &format!("{worker}-probe"));
    config
        .set("group.id", format!("{worker}-probe"))
        .set("isolation.level", "read_committed")
        .set("auto.offset.reset", "error")
        .set("enable.partition.eof", "true")
        .set("fetch.wait.max.ms", "100");
    config
}

/// The context of clients whose errors are returned by the calls themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "client error");
    }
}

impl ConsumerContext for Quiet {}

/// Forwards librdkafka's own log, at debug unless it is critical: the caller logs what the operator has to know.
pub(crate) fn log(level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
            tracing::error!(facility, "librdkafka: {message}");
        }
        _ => tracing::debug!(facility, "librdkafka: {message}"),
    }
}

/// The offset of a partition in an answer, if it has one.
pub(crate) fn offset_in(
    answer: &TopicPartitionList,
    topic: &str,
    partition: i32,
) -> Result<Option<i64>, KafkaError> {
    let element = answer.find_partition(topic, partition);
    match element.map(|element| (element.error(), element.offset())) {
        Some((Err(error), _)) => Err(error),
        Some((Ok(()), Offset::Offset(offset))) => Ok(Some(offset)),
        _ => Ok(None),
    }
}

/// The offset of the first record at or after a time, if there is one.
pub(crate) fn offset_at<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    topic: &str,
    partition: i32,
    time: EventTime,
) -> Result<Option<i64>, KafkaError> {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, partition, Offset::Offset(time.millis()))?;
    offset_in(&consumer.offsets_for_times(list, PATIENCE)?, topic, partition)
}

/// The time left until the deadline, in whole milliseconds: librdkafka busy-waits for a fraction of one.
pub(crate) fn left_until(deadline: Instant) -> Duration {
    let left = deadline.saturating_duration_since(Instant::now()).as_millis();
    Duration::from_millis(left.try_into().unwrap_or(u64::MAX))
}

/// How long a request to the broker may block the worker.
pub(crate) const PATIENCE: Duration = Duration::from_millis(1500);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ALIASES, Config, Settings};

    #[test]
    fn every_client_gets_the_configured_password() {
        let written = "[kafka]\n\"sasl.password\" = \"open sesame\"";
        let settings: Settings = toml::from_str(written).unwrap();
        let bus = Config::try_from(settings).unwrap().bus;
        let worker = WorkerId { role: Role::Match, number: 0 };
        for config in
            [consumer(&bus, &worker), producer(&bus, &worker), restorer(&bus, &worker), surveyor(&bus, "")]
        {
            assert_eq!(config.get("sasl.password"), Some("open sesame"));
        }
    }

    // The alias table is copied from librdkafka's documentation; this test asks librdkafka itself.
    #[test]
    fn aliases_are_those_of_librdkafka() {
        for (alias, name) in ALIASES {
            let value = match *name {
                "enable.auto.commit" => "true",
                "compression.type" => "lz4",
                "sasl.mechanism" => "PLAIN",
                "acks" => "1",
                "bootstrap.servers" => "k:1",
                // Needs libcurl, which this build does not link.
                name if name.starts_with("sasl.oauthbearer") => continue,
                _ => "77",
            };
            let mut config = ClientConfig::new();
            config.set(*alias, value);
            assert_eq!(config.create_native_config().unwrap().get(name).unwrap(), value, "{alias}");
        }
    }

    #[test]
    fn clients_outside_a_group_do_not_get_group_member_properties() {
        let written = "[kafka]\n\"max.poll.interval.ms\" = 7000\n\"session.timeout.ms\" = 6000";
        let settings: Settings = toml::from_str(written).unwrap();
        let bus = Config::try_from(settings).unwrap().bus;
        let worker = WorkerId { role: Role::Match, number: 0 };
        for config in [consumer(&bus, &worker), restorer(&bus, &worker), surveyor(&bus, "survey")] {
            config.create_with_context::<_, BaseConsumer<Quiet>>(Quiet).unwrap();
        }
    }
}
