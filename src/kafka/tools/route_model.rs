//! The reference that tests compare route with: the routed records that raw records must lead to, computed without
//! route's own code. From the routed topic it takes only the order in which raw partitions were interleaved, and the
//! stamps. `replay` is the reference for match.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::{Config, home};
use samestory_engine::engine::Incoming;
use samestory_engine::model::{ArticleId, EventTime, Lang, Position};

use super::replay::Read;
use crate::kafka::admin::values;
use crate::kafka::route::decode::{Decoded, Decoder};
use crate::kafka::route::payload::PayloadEncoding;
use crate::kafka::route::routed;
use crate::kafka::route::routed::{Forgets, RawSource, RawTopic, RoutedEvent};
use crate::kafka::turn::record::Record;

/// One raw record as a routed partition sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExpectedEvent {
    /// The raw record's partition.
    pub partition: i32,
    /// The raw record's offset.
    pub offset: i64,
    /// The article's id.
    pub id: String,
    /// The partition's task with the article.
    pub what: What,
}

/// A partition's task with an article.
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

fn event(id: &ArticleId, from: &Position, what: What) -> ExpectedEvent {
    let (partition, offset) = match from {
        Position::Topic { partition, offset, .. } => (*partition, *offset),
        Position::File { .. } => (-1, -1),
    };
    ExpectedEvent { partition, offset, id: id.to_string(), what }
}

/// The events of a routed record, in order. A relocation notice has none: route does not write it.
///
/// # Errors
/// It cannot be read.
pub fn events(value: &[u8]) -> Result<Vec<ExpectedEvent>, String> {
    let routed_record = routed::decode(value).map_err(|error| error.to_string())?;
    let forget = |forget: &routed::Forget| event(&forget.id, &forget.from, What::Forget { to: forget.to });
    let mut events: Vec<ExpectedEvent> = routed_record.forgets.iter().map(forget).collect();
    events.extend(routed_record.event.and_then(|routed| match routed {
        RoutedEvent::Article { prepared, from, .. } => Some(event(&prepared.id, &from, What::Article)),
        RoutedEvent::Delete { id, from, .. } => Some(event(&id, &from, What::Delete)),
        RoutedEvent::Notice { .. } => None,
    }));
    Ok(events)
}

/// True if a routed record is a relocation notice.
///
/// # Errors
/// It cannot be read.
pub fn is_notice(value: &[u8]) -> Result<bool, String> {
    let routed_record = routed::decode(value).map_err(|error| error.to_string())?;
    Ok(matches!(routed_record.event, Some(RoutedEvent::Notice { .. })))
}

/// True if a routed record only builds state, because an earlier generation has published it.
pub fn is_silent(value: &[u8]) -> bool {
    routed::is_silent(value)
}

/// A version of an article.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArticleVersion {
    /// Offset of the raw record.
    pub offset: i64,
    /// The partition that is its home; `None` for a delete.
    pub home: Option<i32>,
    /// Time of the raw record in milliseconds since 1970.
    pub time: Option<i64>,
}

/// Raw records, and the routed records that they must lead to.
pub struct RouteModel {
    topic: String,
    languages: Vec<Lang>,
    /// Number of partitions of the routed topic.
    partitions: i32,
    /// By raw partition and offset; without dead letters.
    records: BTreeMap<(i32, i64), (Record, Decoded)>,
}

impl RouteModel {
    /// Decodes raw records, each with its partition. Those at `dead` became dead letters even if they can be decoded.
    /// If the schema registry is unavailable, Avro values count as dead letters too.
    pub fn new(
        config: &Config,
        partitions: i32,
        records: impl IntoIterator<Item = (i32, Read)>,
        dead: &BTreeSet<(i32, i64)>,
    ) -> RouteModel {
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
        RouteModel { records: records.collect(), languages: config.bus.languages.clone(), topic, partitions }
    }

    fn home(&self, language: Lang) -> i32 {
        home(&self.languages, language, self.partitions)
    }

    /// The events that must be routed, in order, by routed and raw partition. They do not depend on where batches end.
    pub fn expected(&self) -> BTreeMap<(i32, i32), Vec<ExpectedEvent>> {
        let mut expected: BTreeMap<(i32, i32), Vec<ExpectedEvent>> = BTreeMap::new();
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
    pub fn versions(&self) -> BTreeMap<String, Vec<ArticleVersion>> {
        let homes = self.homes();
        let mut versions: BTreeMap<String, Vec<ArticleVersion>> = BTreeMap::new();
        for (&(_, offset), (record, (incoming, _))) in &self.records {
            let (id, home) = match incoming {
                Incoming::Article(prepared) => (&prepared.id, Some(self.home(prepared.language))),
                Incoming::Delete(id) => (id, None),
                _ => continue,
            };
            if homes.contains_key(id.as_str()) {
                let version = ArticleVersion { offset, home, time: record.time.map(EventTime::millis) };
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
                // Without text it has no home: it is judged on its own, whichever partition knows an earlier text.
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
