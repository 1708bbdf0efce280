//! A look at a topic before anything is set up: can it be read, in which languages is it, how much repeats itself?
//!
//! Joins no group and writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Offset, TopicPartitionList};

use crate::config::Config;
use crate::formats::fields::Field;
use samestory_engine::engine::{Batch, Engine, Incoming, Item, Output};
use samestory_engine::index::{Durability, Memory, Store, StoreError};
use samestory_engine::model::DeadLetterReason;
use samestory_engine::model::{Lang, LanguageSource, Verdict};

use crate::kafka::admin::values;
use crate::kafka::client as clients;
use crate::kafka::client::Quiet;
use crate::kafka::route::decode::Decoder;
use crate::kafka::turn::source::owned;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probed {
    /// Partitions of the topic.
    pub partitions: usize,
    /// Records it holds, about.
    pub held: i64,
    /// Records read.
    pub records: u64,
    /// Bytes of each value, ascending.
    pub sizes: Vec<usize>,
    /// Records without a key.
    pub without_key: u64,
    /// Records whose key is not the article's id.
    pub other_key: u64,
    /// Deletes.
    pub deletes: u64,
    /// Dead letters by reason: how many, and what the first of them said.
    pub failures: BTreeMap<DeadLetterReason, (u64, String)>,
    /// Articles by language.
    pub languages: BTreeMap<Lang, u64>,
    /// Articles whose language had to be recognised from the text.
    pub detected: u64,
    /// Articles by verdict, among themselves.
    pub verdicts: BTreeMap<Verdict, u64>,
    /// Ids that came more than once.
    pub repeated_ids: u64,
    /// Different ids among the articles.
    pub distinct_ids: u64,
    /// For each field, the names it was found under and how often.
    pub sources: BTreeMap<Field, BTreeMap<String, u64>>,
}

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// There is no such topic.
    #[error("topic {0} does not exist on this broker")]
    NoTopic(String),
    /// The broker refuses or does not answer.
    #[error("the broker does not answer: {0}")]
    Broker(#[from] KafkaError),
    /// The schema registry refuses or does not answer.
    #[error("the schema registry: {0}")]
    Registry(String),
    /// A mistake in the program.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads the newest records of a topic, as many as `limit`, evenly over its partitions.
///
/// # Errors
/// See [`ProbeError`].
pub fn probe(config: &Config, topic: &str, limit: u64) -> Result<Probed, ProbeError> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let mut client = clients::surveyor(&config.bus, "samestory-probe");
    // The library wants a name to read under; nothing is ever committed under it.
    client
        .set("group.id", format!("{}.probe", config.bus.app))
        .set("isolation.level", "read_committed")
        .set("enable.auto.offset.store", "false")
        .set("enable.partition.eof", "true")
        .set("auto.offset.reset", "earliest");
    let consumer: BaseConsumer<Quiet> = client.create_with_context(Quiet)?;
    let metadata = consumer.fetch_metadata(Some(topic), PATIENCE)?;
    let partitions = metadata.topics().first().filter(|found| found.error().is_none());
    let partitions: Vec<i32> =
        partitions.map_or_else(Vec::new, |found| found.partitions().iter().map(|part| part.id()).collect());
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
    let mut judge = Desk::new(config)?;
    let mut heard = Instant::now();
    while open > 0 && probed.records < limit && heard.elapsed() < PATIENCE {
        match consumer.poll(Duration::from_millis(200)) {
            Some(Ok(message)) => {
                heard = Instant::now();
                let (partition, record) = owned(&message, usize::MAX);
                probed.records += 1;
                probed.sizes.push(record.value.as_ref().map_or(0, Vec::len));
                judge.look(&mut probed, topic, partition, &record)?;
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

/// The engine on a store in memory.
struct Desk {
    decoder: Decoder,
    engine: Engine,
    store: Memory,
    /// Hashes of the ids that have come.
    ids: BTreeSet<u64>,
}

impl Desk {
    fn new(config: &Config) -> Result<Desk, ProbeError> {
        let registry = values::registry(config).map_err(|error| ProbeError::Registry(error.to_string()))?;
        Ok(Desk {
            decoder: Decoder::new(config, true, registry.as_ref()),
            engine: Engine::new(config.engine.clone()),
            store: Memory::new(config.postings.clone(), Durability::OwnWal),
            ids: BTreeSet::new(),
        })
    }

    fn look(
        &mut self,
        probed: &mut Probed,
        topic: &str,
        partition: i32,
        record: &crate::kafka::turn::record::Record,
    ) -> Result<(), ProbeError> {
        let position = record.position(topic, partition);
        self.decoder.gather(std::iter::once(record)).map_err(ProbeError::Registry)?;
        let (incoming, _) = self.decoder.decode(record, &position);
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
        let plan = self.engine.plan(&self.store, Batch { items, ..Batch::default() })?.0;
        for output in plan.outputs() {
            if let Output::Tagged(tagged) = output {
                *probed.verdicts.entry(tagged.verdict).or_default() += 1;
                probed.repeated_ids += u64::from(
                    tagged.revision > 0
                        || tagged.match_type == Some(samestory_engine::model::MatchType::SameArticle),
                );
            }
        }
        // Nothing outside depends on this state.
        Ok(self.store.apply_own_changes(&plan.changes)?)
    }
}
