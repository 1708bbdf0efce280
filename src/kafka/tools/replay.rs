//! The reference that tests compare the stage with: what one undisturbed process publishes for a partition's records.
//! It works record by record on a store in memory, without batches, broker or RocksDB.
//!
//! [`Raw`] computes the routed records that raw records must lead to, without route's own code. From the routed topic
//! it takes only the order in which raw partitions were interleaved, and the stamps.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::config::{Config, Mode, home};
use crate::formats::registry::Registry;
use samestory_engine::Deduplicator;
use samestory_engine::engine::Incoming;
use samestory_engine::index::{BusPosition, Memory, Row, Store, TopicName, View};
use samestory_engine::model::{ArticleId, EventTime, Lang, Position};

use crate::kafka::admin::limits::Limits;
use crate::kafka::admin::values;
use crate::kafka::matching::intake::{BatchReader, ItemOrigin};
use crate::kafka::matching::outgoing::{Original, OutputEncoding, Writer};
use crate::kafka::route::decode::{Decoded, Decoder};
use crate::kafka::route::payload::PayloadEncoding;
use crate::kafka::route::routed;
use crate::kafka::route::routed::{Forgets, RawSource, RawTopic, RoutedEvent};
use crate::kafka::turn::record::{Copied, Fate, Record};

/// A record of the input topic, as an ordinary consumer read it.
#[derive(Clone, Debug, Default)]
pub struct Read {
    /// Offset in the input topic.
    pub offset: i64,
    /// Record time in milliseconds since 1970.
    pub time: Option<i64>,
    /// The record's key.
    pub key: Option<Vec<u8>>,
    /// The record's value; `None` for a tombstone.
    pub value: Option<Vec<u8>>,
    /// Headers in order.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// Whether a topic refused the output of this record, so that it became a dead letter.
    pub refused: bool,
}

impl From<Read> for Record {
    fn from(read: Read) -> Record {
        let Read { offset, time, key, value, headers, refused } = read;
        let fate = refused.then(|| Fate::Undeliverable { why: String::new(), copy: Copied::Whole });
        let time = time.map(EventTime::from_millis);
        Record { offset, time, key, value, headers, fate, ..Record::default() }
    }
}

/// A record that the stage must publish.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sent {
    /// The destination topic.
    pub topic: String,
    /// The partition of a relocation notice; other records are partitioned by key.
    pub partition: Option<i32>,
    /// The record's key.
    pub key: Option<Vec<u8>>,
    /// The record's value; `None` for a tombstone.
    pub value: Option<Vec<u8>>,
    /// Headers in order.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// Record time in milliseconds since 1970; `None` if it is the time of sending.
    pub time: Option<i64>,
}

/// Replays the records of a partition. Returns everything that must be published, except the changelog, and the final
/// state.
///
/// # Errors
/// A record cannot be read.
pub fn replay(
    config: &Config,
    partition: i32,
    partitions: i32,
    records: Vec<Read>,
) -> Result<(Vec<Sent>, Vec<Row>), String> {
    let registry = values::registry(config).map_err(|error| error.to_string())?;
    let mut replay = Replay::reading(config, partition, partitions, registry.as_ref());
    let mut sent = Vec::new();
    for read in records {
        sent.extend(replay.take(read)?);
    }
    Ok((sent, replay.state()?))
}

/// One undisturbed process with one partition, fed record by record.
pub struct Replay {
    application: String,
    partition: i32,
    intake: BatchReader,
    dedup: Deduplicator,
    writer: Writer,
}

impl Replay {
    /// Starts with an empty state, without a schema registry.
    pub fn new(config: &Config, partition: i32, partitions: i32) -> Replay {
        Replay::reading(config, partition, partitions, None)
    }

    fn reading(config: &Config, partition: i32, partitions: i32, registry: Option<&Arc<Registry>>) -> Replay {
        let intake = match config.bus.mode {
            Mode::Direct => BatchReader::raw(config, partitions, registry),
            Mode::Routed => BatchReader::routed(config, partitions),
        };
        let writer = Writer {
            topics: config.bus.topics.clone(),
            form: config.bus.value,
            wire: OutputEncoding::Json,
            limits: Arc::new(Limits::of_settings(&config.bus.topics)),
        };
        let dedup = Deduplicator::in_memory(config.options());
        Replay { application: config.bus.app.clone(), partition, intake, dedup, writer }
    }

    /// Judges the next record. Returns the records that must be published for it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn take(&mut self, read: Read) -> Result<Vec<Sent>, String> {
        let (next, partition) = (u64::try_from(read.offset + 1).unwrap_or(0), self.partition);
        self.take_record(read.into(), next, partition)
    }

    fn take_record(&mut self, record: Record, next: u64, partition: i32) -> Result<Vec<Sent>, String> {
        let mut records = [record];
        let silent = self.intake.is_silent(&records[0]);
        let progress = self.dedup.store().progress().map_err(|error| error.to_string())?;
        self.intake.load_schemas(records.iter())?;
        let read = self.intake.batch(partition, &mut records, &progress);
        self.intake.evict_schemas();
        let mut read = read.map_err(|error| error.to_string())?;
        self.writer.fit_all(&mut read.items, &mut records);
        // Topic ids and leader epochs come from a broker, which a replay does not have.
        let (batch, origins) = read.into_batch(BusPosition {
            application: TopicName::new(&self.application),
            cluster: None,
            changelog: None,
            topic: TopicName::new(self.intake.topic()),
            topic_id: None,
            partition,
            next,
            leader_epoch: None,
        });
        let plan = self.dedup.plan(batch).map_err(|error| error.to_string())?.0;
        let mut out = Vec::new();
        for (decided, ItemOrigin { slice, .. }) in origins.of_decisions(&plan).filter(|_| !silent) {
            self.writer.decided(decided, Original { record: &records[0], slice }, &mut out);
        }
        let sent = out.into_iter().map(|out| Sent {
            topic: out.topic.to_owned(),
            partition: out.partition,
            key: out.key.map(Cow::into_owned),
            value: out.value.map(Cow::into_owned),
            headers: out.headers,
            time: out.time.map(EventTime::millis),
        });
        let sent = sent.collect();
        // Applied change by change, as a restore applies the changelog.
        let store = self.dedup.store_mut();
        store.apply_own_changes(&plan.changes).map_err(|error| error.to_string())?;
        Ok(sent)
    }

    /// The current state.
    pub fn store(&self) -> &Memory {
        self.dedup.store()
    }

    /// All rows of the current state.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn state(&self) -> Result<Vec<Row>, String> {
        self.dedup.store().dump().map_err(|error| error.to_string())
    }
}

/// One raw record as a routed partition sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// The raw record's partition.
    pub partition: i32,
    /// The raw record's offset.
    pub offset: i64,
    /// The article's id.
    pub id: String,
    /// What the partition has to do with the article.
    pub what: What,
}

/// What a partition has to do with an article.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Judge it.
    Article,
    /// Delete it.
    Delete,
    /// Forget it: it lives in another partition now.
    Forget {
        /// That partition.
        to: i32,
    },
}

fn event(id: &ArticleId, from: &Position, what: What) -> Event {
    let (partition, offset) = match from {
        Position::Topic { partition, offset, .. } => (*partition, *offset),
        Position::File { .. } => (-1, -1),
    };
    Event { partition, offset, id: id.to_string(), what }
}

/// The events of a routed record, in order. A relocation notice has none: route does not write it.
///
/// # Errors
/// It cannot be read.
pub fn events(value: &[u8]) -> Result<Vec<Event>, String> {
    let routed_record = routed::decode(value).map_err(|error| error.to_string())?;
    let forget = |forget: &routed::Forget| event(&forget.id, &forget.from, What::Forget { to: forget.to });
    let mut events: Vec<Event> = routed_record.forgets.iter().map(forget).collect();
    events.extend(routed_record.event.and_then(|routed| match routed {
        RoutedEvent::Article { prepared, from, .. } => Some(event(&prepared.id, &from, What::Article)),
        RoutedEvent::Delete { id, from, .. } => Some(event(&id, &from, What::Delete)),
        RoutedEvent::Notice { .. } => None,
    }));
    Ok(events)
}

/// Whether a routed record is a relocation notice.
///
/// # Errors
/// It cannot be read.
pub fn is_notice(value: &[u8]) -> Result<bool, String> {
    let routed_record = routed::decode(value).map_err(|error| error.to_string())?;
    Ok(matches!(routed_record.event, Some(RoutedEvent::Notice { .. })))
}

/// Whether a routed record only builds state, because an earlier generation has published it.
pub fn is_silent(value: &[u8]) -> bool {
    routed::is_silent(value)
}

/// A version of an article.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Offset of the raw record.
    pub offset: i64,
    /// The partition that is its home; `None` for a delete.
    pub home: Option<i32>,
    /// Time of the raw record in milliseconds since 1970.
    pub time: Option<i64>,
}

/// Raw records, and the routed records that they must lead to.
pub struct Raw {
    topic: String,
    languages: Vec<Lang>,
    /// Number of partitions of the routed topic.
    partitions: i32,
    /// By raw partition and offset; without dead letters.
    records: BTreeMap<(i32, i64), (Record, Decoded)>,
}

impl Raw {
    /// Decodes raw records, each with its partition. Those at `dead` became dead letters even if they can be decoded.
    /// If the schema registry is unavailable, Avro values count as dead letters too.
    pub fn new(
        config: &Config,
        partitions: i32,
        records: impl IntoIterator<Item = (i32, Read)>,
        dead: &BTreeSet<(i32, i64)>,
    ) -> Raw {
        let registry = values::registry(config).ok().flatten();
        let mut decoder = Decoder::new(config, true, registry.as_ref());
        let topic = config.bus.topics.raw.clone();
        let records =
            records.into_iter().filter(|(partition, read)| !dead.contains(&(*partition, read.offset)));
        let records: Vec<(i32, Record)> =
            records.map(|(partition, read)| (partition, Record::from(read))).collect();
        if let Err(error) = decoder.load_schemas(records.iter().map(|(_, record)| record)) {
            tracing::error!(error, "schema registry unavailable; Avro records count as dead letters");
        }
        let records = records.into_iter().filter_map(|(partition, record)| {
            let decoded = decoder.decode(&record, &record.position(&topic, partition));
            let judged = !matches!(decoded.0, Incoming::DeadLetter(_));
            judged.then_some(((partition, record.offset), (record, decoded)))
        });
        Raw { records: records.collect(), languages: config.bus.languages.clone(), topic, partitions }
    }

    fn home(&self, language: Lang) -> i32 {
        home(&self.languages, language, self.partitions)
    }

    /// The events that must be routed, in order, by routed and raw partition. They do not depend on where batches end.
    pub fn expected(&self) -> BTreeMap<(i32, i32), Vec<Event>> {
        let mut expected: BTreeMap<(i32, i32), Vec<Event>> = BTreeMap::new();
        for (&(partition, _), (record, (incoming, _))) in &self.records {
            let from = record.position(&self.topic, partition);
            for routed in 0..self.partitions {
                let event = match incoming {
                    Incoming::Article(prepared) => {
                        let to = self.home(prepared.language);
                        if to != routed && !prepared.has_text() {
                            continue;
                        }
                        let what = if to == routed { What::Article } else { What::Forget { to } };
                        event(&prepared.id, &from, what)
                    }
                    Incoming::Delete(id) => event(id, &from, What::Delete),
                    _ => continue,
                };
                expected.entry((routed, partition)).or_default().push(event);
            }
        }
        expected
    }

    /// The versions of each id in raw order. Ids that occur in several raw partitions or without text are left out: their
    /// versions have no order, or no home.
    pub fn versions(&self) -> BTreeMap<String, Vec<Version>> {
        let homes = self.homes();
        let mut versions: BTreeMap<String, Vec<Version>> = BTreeMap::new();
        for (&(_, offset), (record, (incoming, _))) in &self.records {
            let (id, home) = match incoming {
                Incoming::Article(prepared) => (&prepared.id, Some(self.home(prepared.language))),
                Incoming::Delete(id) => (id, None),
                _ => continue,
            };
            if homes.contains_key(id.as_str()) {
                let version = Version { offset, home, time: record.time.map(EventTime::millis) };
                versions.entry(id.to_string()).or_default().push(version);
            }
        }
        versions
    }

    /// The home of each id's last version; `None` if that was a delete. Ids that occur in several raw partitions or
    /// without text are left out: their versions have no order, or no home.
    pub fn homes(&self) -> BTreeMap<String, Option<i32>> {
        let mut homes: BTreeMap<String, (BTreeSet<i32>, Option<i32>)> = BTreeMap::new();
        for (&(partition, _), (_, (incoming, _))) in &self.records {
            let (id, home) = match incoming {
                // Without text it has no home: it is judged by itself, whichever partition knows an earlier text.
                Incoming::Article(prepared) if !prepared.has_text() => {
                    homes.entry(prepared.id.to_string()).or_default().0.extend([partition, -1]);
                    continue;
                }
                Incoming::Article(prepared) => (&prepared.id, Some(self.home(prepared.language))),
                Incoming::Delete(id) => (id, None),
                _ => continue,
            };
            let held = homes.entry(id.to_string()).or_default();
            held.0.insert(partition);
            held.1 = home;
        }
        let one = homes.into_iter().filter(|(_, (partitions, _))| partitions.len() == 1);
        one.map(|(id, (_, home))| (id, home)).collect()
    }

    /// The routed record as it must be: each of its events rebuilt from its raw record, in the same order. Relocation
    /// notices are returned unchanged, because route does not write them.
    ///
    /// # Errors
    /// An event does not follow from its raw record.
    pub fn rerouted(&self, partition: i32, routed: &Read) -> Result<Vec<Read>, String> {
        let value = routed.value.as_deref().unwrap_or_default();
        let routed_record = routed::decode(value).map_err(|error| error.to_string())?;
        let stamp = match &routed_record.event {
            Some(RoutedEvent::Article { stamp, .. } | RoutedEvent::Delete { stamp, .. }) => *stamp,
            Some(RoutedEvent::Notice { .. }) => return Ok(vec![routed.clone()]),
            None => None,
        };
        let topic = RawTopic { name: &self.topic, id: routed_record.topic };
        let made = events(value)?.into_iter().map(|event| {
            let unknown =
                || format!("no raw record at {}/{} leads to {event:?}", event.partition, event.offset);
            let (record, (incoming, payload)) =
                self.records.get(&(event.partition, event.offset)).ok_or_else(unknown)?;
            let (time, offset) = (record.time, record.offset);
            let source = RawSource { partition: event.partition, offset, time, stamp };
            let none = Forgets::default();
            let (id, mut value) = match incoming {
                Incoming::Article(prepared) if self.home(prepared.language) == partition => {
                    let (encoding, value) = match payload {
                        Some((encoding, bytes)) => (*encoding, bytes.as_slice()),
                        None => (PayloadEncoding::Own, record.value.as_deref().unwrap_or_default()),
                    };
                    let value = routed::encode_article(prepared, topic, &none, source, encoding, value);
                    (&prepared.id, value)
                }
                Incoming::Article(prepared) => {
                    let mut forgets = Forgets::default();
                    forgets.push(&prepared.id, source, self.home(prepared.language));
                    (&prepared.id, routed::encode_forgets(topic, &forgets))
                }
                Incoming::Delete(id) => (id, routed::encode_delete(id, topic, &none, source)),
                _ => return Err(unknown()),
            };
            if events(&value)? != [event.clone()] {
                return Err(unknown());
            }
            if routed::is_silent(routed.value.as_deref().unwrap_or_default()) {
                routed::silence(&mut value);
            }
            Ok(Read {
                offset: routed.offset,
                time: time.map(EventTime::millis),
                key: Some(id.as_str().into()),
                value: Some(value),
                headers: record.headers.clone(),
                refused: false,
            })
        });
        made.collect()
    }
}
