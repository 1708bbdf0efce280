//! How the clients of the bus are set up. Every property that the guarantee rests on is set here, and only here.

use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

use crate::config::Bus;
use samestory_engine::model::EventTime;

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads raw articles, writes them where their language lives.
    Route,
    /// Reads routed articles, judges them.
    Match,
    /// Reads raw articles, judges them.
    Direct,
}

impl Role {
    /// As written in groups, transactions and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Route => "route",
            Role::Match => "match",
            Role::Direct => "direct",
        }
    }
}

/// One thread of one process.
#[derive(Clone, Debug)]
pub(crate) struct WorkerId {
    pub(crate) role: Role,
    pub(crate) number: u16,
}

impl WorkerId {
    /// Names its transactions and clients: the same after a restart, so that the new one fences the old.
    pub(crate) fn id(&self, bus: &Bus) -> String {
        let generation = if bus.generation > 1 { format!("-g{}", bus.generation) } else { String::new() };
        format!("{}{generation}-{}-{}-{}", bus.app, self.role.as_str(), bus.instance, self.number)
    }
}

/// The group of a role.
pub(crate) fn group(bus: &Bus, role: Role) -> String {
    group_of(bus, bus.generation, role)
}

/// The group of a role in a generation.
pub(crate) fn group_of(bus: &Bus, generation: u32, role: Role) -> String {
    match generation {
        0 | 1 => format!("{}.{}", bus.app, role.as_str()),
        later => format!("{}.g{later}.{}", bus.app, role.as_str()),
    }
}

/// The operator's properties over our defaults.
pub(crate) fn base(bus: &Bus, client_id: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    lay_over(&mut config, bus, client_id);
    config
}

/// The operator's properties over defaults of a client's own. Copying them out of another client's would not do: it
/// hands out passwords that are crossed out.
fn lay_over(config: &mut ClientConfig, bus: &Bus, client_id: &str) {
    config.set("bootstrap.servers", "localhost:9092");
    // A broker that is back should be found again in a second, not in ten.
    config.set("reconnect.backoff.max.ms", "1000");
    for (key, value) in &bus.properties {
        config.set(key, value.reveal());
    }
    config.set("client.id", client_id);
}

/// A property that the client library does not take. Its value is not told: it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kafka.\"{key}\": the client library refuses it: {why}")]
pub struct PropertyError {
    key: String,
    why: String,
}

/// Whether the client library takes the operator's properties. Asked before any client is made, whose own refusal would
/// repeat the value.
///
/// # Errors
/// Names the property.
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

/// Properties of producers only; a consumer would warn about them, and the reverse.
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
/// Properties of a group's members only. The library compares them with each other: one without the rest would be refused.
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

/// The member of the group that reads the input.
pub(crate) fn consumer(bus: &Bus, worker: &WorkerId) -> ClientConfig {
    let id = worker.id(bus);
    let mut config = ClientConfig::new();
    // What waits to be taken is bounded: the library's own limits would hold a gigabyte at eight partitions.
    config
        .set("queued.min.messages", "4000")
        .set("queued.max.messages.kbytes", "16384")
        .set("fetch.message.max.bytes", "1048576")
        .set("fetch.max.bytes", "8388608")
        .set("fetch.wait.max.ms", "100")
        .set("fetch.queue.backoff.ms", "20")
        // Where lag and readiness come from.
        .set("statistics.interval.ms", "2000");
    if !bus.broker_assigns {
        config.set("session.timeout.ms", "10000").set("heartbeat.interval.ms", "1000");
    }
    lay_over(&mut config, bus, &id);
    without(&mut config, PRODUCING);
    config
        .set("group.id", group(bus, worker.role))
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("isolation.level", "read_committed")
        // A lost offset is said aloud; the library must not choose another one.
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
        // Right after a commit the coordinator is still busy with the last transaction. The library's 100 ms between
        // two questions would be most of the time that a transaction takes.
        .set("retry.backoff.ms", "1")
        .set("retry.backoff.max.ms", "50")
        .set("linger.ms", "2")
        .set("batch.size", "1000000")
        .set("compression.type", "lz4");
    lay_over(&mut config, bus, &id);
    without(&mut config, CONSUMING);
    config
        .set("transactional.id", &id)
        .set("transaction.timeout.ms", timeout.to_string())
        .set("message.timeout.ms", (timeout * 9 / 10).to_string())
        .set("message.max.bytes", bus.topics.max_message_bytes.to_string())
        // As the Java client does: then tables of other programs that are keyed by article are partitioned alike.
        .set("partitioner", "murmur2_random");
    config
}

/// Reads a changelog partition: only what is committed, every byte checked.
pub(crate) fn restorer(bus: &Bus, worker: &WorkerId) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("queued.min.messages", "20000")
        .set("queued.max.messages.kbytes", "32768")
        .set("fetch.max.bytes", "16777216")
        // The marker behind the last record shows only in an empty answer. The broker holds that back for so long: half a
        // second for each partition by librdkafka's default.
        .set("fetch.wait.max.ms", "20");
    lay_over(&mut config, bus, &format!("{}-restore", worker.id(bus)));
    without(&mut config, PRODUCING);
    without(&mut config, MEMBERSHIP);
    config
        // Reads by itself; the library wants a name all the same.
        .set("group.id", format!("{}.restore", group(bus, worker.role)))
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("isolation.level", "read_committed")
        .set("auto.offset.reset", "error")
        .set("enable.partition.eof", "true")
        .set("check.crcs", "true");
    config
}

/// Asks for ends of partitions. It must see what is not decided yet: a reader of committed records alone would be
/// told the last stable offset, and a store restored to that misses what is committed behind an open transaction.
pub(crate) fn surveyor(bus: &Bus, client_id: &str) -> ClientConfig {
    let mut config = base(bus, client_id);
    without(&mut config, PRODUCING);
    without(&mut config, MEMBERSHIP);
    config.set("isolation.level", "read_uncommitted").set("enable.auto.commit", "false");
    config
}

/// Reads one partition to find out what the worker's consumer cannot read, with the same limits.
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

/// For clients whose errors come back from the calls that ask them something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "client");
    }
}

impl ConsumerContext for Quiet {}

/// The library's own log: what it says matters to those who look for a fault. What the operator has to know is said
/// by whoever called it.
pub(crate) fn log(level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
            tracing::error!(facility, "client library: {message}");
        }
        _ => tracing::debug!(facility, "client library: {message}"),
    }
}

/// The offset that an answer gives for a partition; nothing where it gives none.
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

/// The offset of the first record at or after a time; nothing where there is none.
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

/// What is left until then, in whole milliseconds: for the rest of one the library turns in circles.
pub(crate) fn left_until(deadline: Instant) -> Duration {
    let left = deadline.saturating_duration_since(Instant::now()).as_millis();
    Duration::from_millis(left.try_into().unwrap_or(u64::MAX))
}

/// How long a question to the broker may take before the worker does something else.
pub(crate) const PATIENCE: Duration = Duration::from_millis(1500);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ALIASES, Config, Settings};

    #[test]
    fn every_client_has_the_password_that_was_written() {
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

    // The table of second names is copied from librdkafka's documentation; this asks librdkafka itself.
    #[test]
    fn second_names_are_those_of_the_client_library() {
        for (alias, name) in ALIASES {
            let value = match *name {
                "enable.auto.commit" => "true",
                "compression.type" => "lz4",
                "sasl.mechanism" => "PLAIN",
                "acks" => "1",
                "bootstrap.servers" => "k:1",
                // Needs libcurl, which this build does without.
                name if name.starts_with("sasl.oauthbearer") => continue,
                _ => "77",
            };
            let mut config = ClientConfig::new();
            config.set(*alias, value);
            assert_eq!(config.create_native_config().unwrap().get(name).unwrap(), value, "{alias}");
        }
    }

    #[test]
    fn clients_that_are_in_no_group_do_not_mind_what_its_members_are_told() {
        let written = "[kafka]\n\"max.poll.interval.ms\" = 7000\n\"session.timeout.ms\" = 6000";
        let settings: Settings = toml::from_str(written).unwrap();
        let bus = Config::try_from(settings).unwrap().bus;
        let worker = WorkerId { role: Role::Match, number: 0 };
        for config in [consumer(&bus, &worker), restorer(&bus, &worker), surveyor(&bus, "survey")] {
            config.create_with_context::<_, BaseConsumer<Quiet>>(Quiet).unwrap();
        }
    }
}
