//! A partition's records → a batch for the engine. [`BatchReader`] decodes raw records in direct mode and routed
//! records otherwise, and skips what was judged before; `compatibility` checks that state and settings belong together. A record that it
//! cannot read stops the partition, because skipping it would lose an article.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::Config;
use crate::formats::registry::Registry;
use samestory_engine::engine::{Batch, Decided, Incoming, Item, Plan, Prepared};
use samestory_engine::index::{BuiltWith, BusPosition, Progress};
use samestory_engine::model::{Flag, Position, TopicId};
use samestory_engine::text::language;

use super::compatibility::StateSettings;
use super::outgoing::headers_dropped;
use crate::kafka::admin::control;
use crate::kafka::faults::{FAULTS, Faults, Mutant};
use crate::kafka::route::decode::Decoder;
use crate::kafka::route::payload::ArticleSlice;
use crate::kafka::route::recreated;
use crate::kafka::route::routed;
use crate::kafka::route::routed::{Forget, RoutedEvent, RoutedRecord};
use crate::kafka::turn::record::Record;

/// Turns a partition's records into batches.
#[derive(Clone, Debug)]
pub(crate) struct BatchReader {
    /// The topic that positions of articles refer to.
    raw_topic: String,
    settings: StateSettings,
    kind: InputKind,
}

#[derive(Clone, Debug)]
enum InputKind {
    /// Direct mode: raw records, which producers partition by language.
    Raw(Box<Decoder>),
    /// Routed mode: records from route.
    Routed,
}

/// A record or a state that this process can never read: the partition stops.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreadable(String);

impl Unreadable {
    pub(crate) fn new(why: impl Into<String>) -> Unreadable {
        Unreadable(why.into())
    }
}

/// An item of a batch, and where it comes from.
pub(crate) struct ReadItem {
    pub(crate) item: Item,
    pub(crate) origin: ItemOrigin,
}

/// Where an item of a batch comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ItemOrigin {
    /// The index of its record.
    pub(crate) record: usize,
    /// Where the article is in the record's value.
    pub(crate) slice: ArticleSlice,
}

/// A partition's records as the items of a batch.
pub(crate) struct ReadBatch {
    pub(crate) items: Vec<ReadItem>,
    /// The highest raw offset per raw partition among the articles and deletes.
    pub(crate) raw: BTreeMap<(TopicId, i32), i64>,
    /// Number of articles and deletes that were skipped because they had been judged before.
    pub(crate) repeated: u64,
    built_with: BuiltWith,
    relocates: bool,
}

impl ReadBatch {
    /// The batch for the engine, which ends at this position, and the origin of each of its items.
    pub(crate) fn into_batch(self, bus: BusPosition) -> (Batch, ItemOrigins) {
        let (items, origins) = self.items.into_iter().map(|read| (read.item, read.origin)).unzip();
        let batch = Batch {
            items,
            bus: Some(bus),
            built_with: Some(self.built_with),
            raw: self.raw,
            relocates: self.relocates,
            ..Batch::default()
        };
        (batch, ItemOrigins(origins))
    }
}

/// The origin of each item of a batch.
pub(crate) struct ItemOrigins(Vec<ItemOrigin>);

impl ItemOrigins {
    /// The decisions of the batch's plan, each with the origin of its item: the engine decides every item, in order.
    pub(crate) fn of_decisions<'p>(&self, plan: &'p Plan) -> impl Iterator<Item = (&'p Decided, ItemOrigin)> {
        debug_assert_eq!(plan.decided.len(), self.0.len(), "one decision per item");
        plan.decided.iter().zip(self.0.iter().copied())
    }
}

/// The idempotent receiver: articles and deletes at or below the highest judged offset of their raw partition are
/// repeats. Route commits in raw order, so a lower offset appears again only if route lost its committed offset.
/// Forgets and relocation notices are not skipped: each is compared with what the state knows about its article.
struct Receiver<'a> {
    /// Highest judged offsets, from the state.
    judged: &'a BTreeMap<(TopicId, i32), i64>,
    /// Highest offsets of this batch.
    batch: BTreeMap<(TopicId, i32), i64>,
    repeated: u64,
}

impl Receiver<'_> {
    /// Refuses a record from a raw topic other than the one judged so far; the error is that topic's id.
    fn same_topic(&self, routed_record: &RoutedRecord) -> Result<(), TopicId> {
        let mut known = self.judged.keys().chain(self.batch.keys()).map(|&(topic, _)| topic);
        known.find(|known| known.differs_from(routed_record.topic)).map_or(Ok(()), Err)
    }

    /// True if an article or delete has not been judged before. If so, its offset is recorded.
    fn is_new(&mut self, topic: TopicId, from: &Position) -> bool {
        let Position::Topic { partition, offset, .. } = *from else { return true };
        // An unknown id does not differ from any other: brokers may not report ids.
        let held = self.judged.iter().chain(&self.batch);
        let held = held.filter(|((known, at), _)| *at == partition && !known.differs_from(topic));
        if held.map(|(_, &highest)| highest).max().is_some_and(|highest| offset <= highest)
            && !FAULTS.has(Mutant::ReceiverOff)
        {
            self.repeated += 1;
            return false;
        }
        self.batch.insert((topic, partition), offset);
        true
    }
}

impl BatchReader {
    /// For direct mode: reads the raw topic, which has this many partitions.
    pub(crate) fn raw(config: &Config, partitions: i32, registry: Option<&Arc<Registry>>) -> BatchReader {
        let decoder = Decoder::new(config, false, registry);
        let settings = StateSettings {
            application: config.bus.app.clone(),
            topic: config.bus.topics.raw.clone(),
            languages: None,
            partitions,
            fingerprints: decoder.fingerprints(),
        };
        BatchReader { raw_topic: settings.topic.clone(), settings, kind: InputKind::Raw(Box::new(decoder)) }
    }

    /// For routed mode: reads the routed topic, which has this many partitions.
    pub(crate) fn routed(config: &Config, partitions: i32) -> BatchReader {
        let settings = StateSettings {
            application: config.bus.app.clone(),
            topic: config.bus.topics.routed.clone(),
            languages: Some(config.bus.languages.clone()),
            partitions,
            fingerprints: Decoder::new(config, true, None).fingerprints(),
        };
        BatchReader { raw_topic: config.bus.topics.raw.clone(), settings, kind: InputKind::Routed }
    }

    pub(crate) fn topic(&self) -> &str {
        &self.settings.topic
    }

    pub(crate) fn is_routed(&self) -> bool {
        matches!(self.kind, InputKind::Routed)
    }

    /// The settings that the state depends on.
    pub(crate) fn settings(&self) -> &StateSettings {
        &self.settings
    }

    /// Fetches the writer schemas of these records.
    ///
    /// # Errors
    /// The schema registry is unavailable: keep the records and retry.
    pub(crate) fn load_schemas<'r>(
        &mut self,
        records: impl Iterator<Item = &'r Record>,
    ) -> Result<(), String> {
        match &mut self.kind {
            InputKind::Raw(decoder) => decoder.load_schemas(records),
            InputKind::Routed => Ok(()),
        }
    }

    /// Decodes records of the next batch while this one commits. Routed records take little decoding.
    pub(crate) fn decode_ahead(&self, waiting: &BTreeMap<i32, Vec<Record>>) {
        if let InputKind::Raw(decoder) = &self.kind {
            let records = waiting.iter().flat_map(|(&partition, records)| {
                records.iter().map(move |record| (record, record.position(self.topic(), partition)))
            });
            decoder.decode_ahead(records);
        }
    }

    /// Called once the batch is planned: the schema cache may evict entries.
    pub(crate) fn evict_schemas(&mut self) {
        if let InputKind::Raw(decoder) = &mut self.kind {
            decoder.evict_schemas();
        }
    }

    /// Reads a batch. If a payload replaces the record's own bytes in the output, it
    /// replaces the record's value here.
    pub(crate) fn batch(
        &self,
        partition: i32,
        records: &mut [Record],
        progress: &Progress,
    ) -> Result<ReadBatch, Unreadable> {
        let mut items = Vec::with_capacity(records.len());
        let mut receiver = Receiver { judged: &progress.raw, batch: BTreeMap::new(), repeated: 0 };
        match &self.kind {
            InputKind::Raw(decoder) => {
                let position = |record: &Record| record.position(self.topic(), partition);
                let decoded = decoder.decode_all(records, position);
                // One decoded value per record.
                for ((at, record), (incoming, payload)) in records.iter_mut().enumerate().zip(decoded) {
                    let mut incoming = control::read(record).unwrap_or(incoming);
                    if let Incoming::Article(prepared) = &mut incoming
                        && is_stray(record.key.as_deref(), prepared)
                    {
                        prepared.flags.push(Flag::Stray);
                    }
                    let (time, log_time) = (record.time, record.log_time);
                    let item = Item { position: position(record), time, log_time, incoming };
                    let mut slice = ArticleSlice::WHOLE;
                    if let Some((encoding, bytes)) = payload {
                        slice.encoding = encoding;
                        record.value = Some(bytes);
                    }
                    items.push(ReadItem { item, origin: ItemOrigin { record: at, slice } });
                }
            }
            InputKind::Routed => {
                for (at, record) in records.iter_mut().enumerate() {
                    let mut add = |position, time, log_time, incoming, slice| {
                        let item = Item { position, time, log_time, incoming };
                        items.push(ReadItem { item, origin: ItemOrigin { record: at, slice } });
                    };
                    let value = record.value.as_deref().unwrap_or_default();
                    let control = routed::decode_control(value);
                    let control =
                        control.map_err(|error| self.unreadable(partition, record, error.to_string()))?;
                    if let Some((language, at)) = control {
                        let set = Incoming::SetStreamTime { language, at };
                        add(record.position(self.topic(), partition), None, None, set, ArticleSlice::WHOLE);
                        continue;
                    }
                    let routed_record = self.read(partition, record)?;
                    record.headers_dropped = headers_dropped(&record.headers);
                    // The routed topic may have refused the raw record's time, so it is taken from the value.
                    match &routed_record.event {
                        Some(
                            RoutedEvent::Article { time, .. }
                            | RoutedEvent::Delete { time, .. }
                            | RoutedEvent::Notice { time, .. },
                        ) => record.time = *time,
                        None => {}
                    }
                    let record = &*record;
                    let stop = |why: String| self.unreadable(partition, record, why);
                    receiver
                        .same_topic(&routed_record)
                        .map_err(|other| stop(recreated(&self.raw_topic, routed_record.topic, other)))?;
                    for Forget { id, from, time, to } in routed_record.forgets {
                        let forget = Incoming::Forget { ids: vec![id], to, raw: routed_record.topic };
                        add(from, time, None, forget, ArticleSlice::WHOLE);
                    }
                    match routed_record.event {
                        Some(RoutedEvent::Notice { notice, from, time }) => {
                            add(from, time, None, Incoming::Notice(notice), ArticleSlice::WHOLE);
                        }
                        Some(routed) if !receiver.is_new(routed_record.topic, routed.from()) => {}
                        Some(RoutedEvent::Article { prepared, from, time, stamp, slice }) => {
                            let incoming = record.unless_dead(Incoming::Article(prepared), &from);
                            add(from, time, stamp, incoming, slice);
                        }
                        Some(RoutedEvent::Delete { id, from, time, stamp }) => {
                            let incoming = record.unless_dead(Incoming::Delete(id), &from);
                            add(from, time, stamp, incoming, ArticleSlice::WHOLE);
                        }
                        None => {}
                    }
                }
            }
        }
        Ok(ReadBatch {
            items,
            raw: receiver.batch,
            repeated: receiver.repeated,
            built_with: self.settings.recorded(),
            relocates: self.is_routed() && self.settings.partitions > 1,
        })
    }

    fn unreadable(&self, partition: i32, record: &Record, why: String) -> Unreadable {
        Unreadable(format!("{} partition {partition} offset {}: {why}", self.topic(), record.offset))
    }

    fn read(&self, partition: i32, record: &Record) -> Result<RoutedRecord, Unreadable> {
        let stop = |why: String| self.unreadable(partition, record, why);
        let read = routed::decode(record.value.as_deref().unwrap_or_default());
        let read = read.map_err(|error| stop(error.to_string()))?;
        if let Some(RoutedEvent::Article { prepared, .. }) = &read.event {
            let (language, home) = (prepared.language, self.settings.home(prepared.language));
            if home != partition {
                return Err(stop(format!(
                    "an article in {language}, whose home is partition {home}: route has other settings in stage.languages, or saw another number of partitions; give all processes the same settings"
                )));
            }
            if prepared.fingerprint.config != self.settings.fingerprints {
                return Err(stop(
                    "a fingerprint computed with other settings in [text], language.trust or the `shingle` of a language; give route and match the same settings, or start a new generation".into(),
                ));
            }
        }
        Ok(read)
    }

    /// True if the record only updates state and nothing is published for it.
    pub(crate) fn is_silent(&self, record: &Record) -> bool {
        self.is_routed() && routed::is_silent(record.value.as_deref().unwrap_or_default())
    }
}

/// True if a record of direct mode is in the wrong partition. There the key decides the partition, so if it names another
/// language than the text's, copies of the article under the right key are elsewhere. A key that names no language proves
/// nothing.
fn is_stray(key: Option<&[u8]>, prepared: &Prepared) -> bool {
    let named = key.and_then(|key| str::from_utf8(key).ok()).and_then(language::find);
    named.is_some_and(|row| row.home() != prepared.language) && prepared.fingerprint.tokens > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::kafka::route::routed::{Forgets, RawSource, RawTopic};
    use samestory_engine::model::ArticleId;

    // In direct mode nothing tied a language to a partition: an article under the key of another language was never
    // compared with its copies, and nothing reported it.
    #[test]
    fn an_article_under_the_key_of_another_language_is_flagged() {
        let settings: Settings = toml::from_str("[stage]\nmode = \"direct\"").unwrap();
        let reader = BatchReader::raw(&Config::try_from(settings).unwrap(), 2, None);
        let flagged = |key: Option<&str>, body: &str| {
            let value = format!(r#"{{"id": "a1", "body": "{body}"}}"#).into_bytes();
            let key = key.map(|key| key.as_bytes().to_vec());
            let mut records = [Record { key, value: Some(value), ..Record::default() }];
            let taken = reader.batch(0, &mut records, &Progress::default()).unwrap();
            let [ReadItem { item: Item { incoming: Incoming::Article(prepared), .. }, .. }] =
                &taken.items[..]
            else {
                panic!("not an article")
            };
            prepared.flags.contains(&Flag::Stray)
        };
        let english = "The council has decided that the old bridge over the river will be closed from May, and that the \
                       new one will not be open before the end of the year.";
        assert!(!flagged(Some("en"), english));
        assert!(flagged(Some("hi"), english));
        for key in [None, Some("a1"), Some("\u{0}")] {
            assert!(!flagged(key, english), "{key:?} names no language");
        }
        assert!(!flagged(Some("hi"), ""), "without text it has no copies");
    }

    fn reader(languages: &str, partitions: i32) -> BatchReader {
        let settings: Settings = toml::from_str(&format!("[stage]\nlanguages = {languages}")).unwrap();
        BatchReader::routed(&Config::try_from(settings).unwrap(), partitions)
    }

    /// Deletes at these offsets of partition 0 of this raw topic, each with one forget.
    fn deletes(topic: TopicId, offsets: &[i64]) -> Vec<Record> {
        let delete = |&offset: &i64| {
            let id = ArticleId::new(&format!("a{offset}")).unwrap();
            let source = RawSource { partition: 0, offset, time: None, stamp: None };
            let mut forgets = Forgets::default();
            forgets.push(&id, source, 1);
            let topic = RawTopic { name: "articles.raw", id: topic };
            let value = Some(routed::encode_delete(&id, topic, &forgets, source));
            Record { offset, value, ..Record::default() }
        };
        offsets.iter().map(delete).collect()
    }

    #[test]
    fn a_repeated_delete_is_skipped_but_its_forgets_are_not() {
        let reader = reader("[\"en\"]", 2);
        let ours = TopicId::from_halves(1, 2);
        let mut progress = Progress { raw: BTreeMap::from([((ours, 0), 5)]), ..Progress::default() };
        // A broker that reports no topic ids does not count as another topic.
        for topic in [ours, TopicId::UNKNOWN] {
            let taken = reader.batch(1, &mut deletes(topic, &[4, 5, 6, 6, 9]), &progress).unwrap();
            assert_eq!((taken.repeated, taken.items.len()), (3, 7));
            assert_eq!(taken.raw, BTreeMap::from([((topic, 0), 9)]));
        }
        let other = TopicId::from_halves(3, 4);
        let stopped = reader.batch(1, &mut deletes(other, &[9]), &progress).err().unwrap().to_string();
        for part in [&ours.to_string(), &other.to_string(), "stage.generation"] {
            assert!(stopped.contains(part), "{stopped}");
        }
        // Nothing has been judged yet, but one batch holds records of both topics.
        progress.raw.clear();
        let mut both = [deletes(ours, &[1]), deletes(other, &[2])].concat();
        assert!(reader.batch(1, &mut both, &progress).is_err());
    }
}
