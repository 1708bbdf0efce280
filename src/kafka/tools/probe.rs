//! Examines a raw topic before the stage is set up, for `samestory probe`: can its records be decoded, in which
//! languages are they, and how many articles repeat an earlier one? It runs the decoder and the engine on a store in
//! memory, joins no group and writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Offset, TopicPartitionList};

use crate::config::Config;
use crate::formats::fields::Field;
use crate::formats::json;
use samestory_engine::engine::{Batch, Incoming, Item, Output};
use samestory_engine::{
    DeadLetterReason, Deduplicator, Lang, LanguageSource, MatchType, StoreError, VerdictKind,
};

use crate::kafka::admin::values;
use crate::kafka::client as clients;
use crate::kafka::client::Quiet;
use crate::kafka::route::decode::Decoder;
use crate::kafka::turn::source::owned;

/// The result of a probe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probed {
    /// Number of partitions of the topic.
    pub partitions: usize,
    /// Approximate number of records in the topic: the sum of its offset ranges.
    pub held: i64,
    /// Number of records read.
    pub records: u64,
    /// Length of each value in bytes, ascending.
    pub sizes: Vec<usize>,
    /// Articles without a key.
    pub without_key: u64,
    /// Articles whose key is not their id.
    pub other_key: u64,
    /// Number of deletes.
    pub deletes: u64,
    /// Dead letters by reason: their number, and the message of the first one.
    pub failures: BTreeMap<DeadLetterReason, (u64, String)>,
    /// Number of articles by language.
    pub languages: BTreeMap<Lang, u64>,
    /// Articles whose language was detected from the text.
    pub detected: u64,
    /// Number of articles by verdict, compared with each other only.
    pub verdicts: BTreeMap<VerdictKind, u64>,
    /// Articles whose id occurred before.
    pub repeated_ids: u64,
    /// Number of distinct article ids.
    pub distinct_ids: u64,
    /// For each field, the paths or names under which it was found, and how often.
    pub sources: BTreeMap<Field, BTreeMap<String, u64>>,
    /// The path of every value, as `[input.fields]` writes it, with its type and how often it occurs.
    pub paths: BTreeMap<(String, &'static str), u64>,
}

/// Why a probe failed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// There is no such topic.
    #[error("topic {0} does not exist on this broker")]
    NoTopic(String),
    /// The broker is unreachable or refuses access.
    #[error("broker unreachable or access denied: {0}")]
    Broker(#[from] KafkaError),
    /// The schema registry is unreachable or refuses access.
    #[error("schema registry: {0}")]
    Registry(String),
    /// The store in memory failed, which is a bug.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads the newest records of a topic, at most `limit`, spread evenly over its partitions.
///
/// # Errors
/// See [`ProbeError`].
pub fn probe(config: &Config, topic: &str, limit: u64) -> Result<Probed, ProbeError> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let mut client = clients::surveyor(&config.bus, "samestory-probe");
    // librdkafka requires a group id; nothing is ever committed under it.
    client
        .set("group.id", format!("{}.probe", config.bus.app))
        .set("isolation.level", "read_committed")
        .set("enable.auto.offset.store", "false")
        .set("enable.partition.eof", "true")
        .set("auto.offset.reset", "earliest");
    let consumer: BaseConsumer<Quiet> = client.create_with_context(Quiet)?;
    let metadata = consumer.fetch_metadata(Some(topic), PATIENCE)?;
    let described = metadata.topics().first().filter(|described| described.error().is_none());
    let partitions: Vec<i32> = described
        .map_or_else(Vec::new, |described| described.partitions().iter().map(|part| part.id()).collect());
    if partitions.is_empty() {
        return Err(ProbeError::NoTopic(topic.to_owned()));
    }
    let mut probed = Probed { partitions: partitions.len(), ..Probed::default() };
    let share = i64::try_from(limit.div_ceil(partitions.len() as u64)).unwrap_or(i64::MAX);
    let mut list = TopicPartitionList::new();
    let mut open = 0;
    for partition in partitions {
        let (low, high) = consumer.fetch_watermarks(topic, partition, PATIENCE)?;
        probed.held += high - low;
        if high > low {
            list.add_partition_offset(topic, partition, Offset::Offset(low.max(high.saturating_sub(share))))?;
            open += 1;
        }
    }
    consumer.assign(&list)?;
    let mut judge = RecordJudge::new(config)?;
    let mut last_record = Instant::now();
    while open > 0 && probed.records < limit && last_record.elapsed() < PATIENCE {
        match consumer.poll(Duration::from_millis(200)) {
            Some(Ok(message)) => {
                last_record = Instant::now();
                let (partition, record) = owned(&message, usize::MAX);
                probed.records += 1;
                probed.sizes.push(record.value.as_ref().map_or(0, Vec::len));
                judge.examine(&mut probed, topic, partition, &record)?;
            }
            Some(Err(KafkaError::PartitionEOF(_))) => open -= 1,
            Some(Err(KafkaError::MessageConsumption(
                code @ (RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::GroupAuthorizationFailed),
            ))) => return Err(KafkaError::MessageConsumption(code).into()),
            Some(Err(_)) | None => {}
        }
    }
    probed.sizes.sort_unstable();
    Ok(probed)
}

/// Paths of values that are counted.
const MOST_PATHS: usize = 500;

/// Decodes records and judges their articles, in memory.
struct RecordJudge {
    decoder: Decoder,
    dedup: Deduplicator,
    /// Hashes of the ids seen so far.
    ids: BTreeSet<u64>,
}

impl RecordJudge {
    fn new(config: &Config) -> Result<RecordJudge, ProbeError> {
        let registry = values::registry(config).map_err(|error| ProbeError::Registry(error.to_string()))?;
        Ok(RecordJudge {
            decoder: Decoder::new(config, true, registry.as_ref()),
            dedup: Deduplicator::in_memory(config.options()),
            ids: BTreeSet::new(),
        })
    }

    fn examine(
        &mut self,
        probed: &mut Probed,
        topic: &str,
        partition: i32,
        record: &crate::kafka::turn::record::Record,
    ) -> Result<(), ProbeError> {
        let position = record.position(topic, partition);
        self.decoder.load_schemas(std::iter::once(record)).map_err(ProbeError::Registry)?;
        let (incoming, _) = self.decoder.decode(record, &position);
        if let Some(value) = self.decoder.as_json(record) {
            for path in json::paths(&value) {
                // A topic with ids as field names has no end of paths.
                if probed.paths.len() < MOST_PATHS || probed.paths.contains_key(&path) {
                    *probed.paths.entry(path).or_default() += 1;
                }
            }
        }
        match &incoming {
            Incoming::Article(article) => {
                if self.ids.insert(xxhash_rust::xxh3::xxh3_64(article.id.as_str().as_bytes())) {
                    probed.distinct_ids += 1;
                }
                for (field, source) in self.decoder.sources(record) {
                    *probed.sources.entry(field).or_default().entry(source).or_default() += 1;
                }
                *probed.languages.entry(article.language).or_default() += 1;
                probed.detected += u64::from(article.language_source == LanguageSource::Text);
                match &record.key {
                    None => probed.without_key += 1,
                    Some(key) => probed.other_key += u64::from(key != article.id.as_str().as_bytes()),
                }
            }
            Incoming::Delete(_) => probed.deletes += 1,
            Incoming::DeadLetter(letter) | Incoming::Bodiless { refusal: letter, .. } => {
                let (count, _) =
                    probed.failures.entry(letter.reason).or_insert_with(|| (0, letter.message.clone()));
                *count += 1;
            }
            Incoming::Forget { .. }
            | Incoming::Notice(_)
            | Incoming::Undelivered { .. }
            | Incoming::SetStreamTime { .. } => {}
        }
        let items = vec![Item { position, time: record.time, log_time: record.log_time, incoming }];
        // Nothing outside depends on this state.
        let plan = self.dedup.run(Batch { items, ..Batch::default() })?;
        for output in plan.outputs() {
            if let Output::Tagged(tagged) = output {
                *probed.verdicts.entry(tagged.kind).or_default() += 1;
                let repeated = tagged.revision > 0 || tagged.match_type == Some(MatchType::SameArticle);
                probed.repeated_ids += u64::from(repeated);
            }
        }
        Ok(())
    }
}
