//! A partition's records → a batch to be planned: raw ones where they come by language, else what route has written.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::{Config, home};
use crate::formats::registry::Registry;
use samestory_engine::engine::{Batch, Incoming, Item, Prepared};
use samestory_engine::index::{Input, InputName, Progress};
use samestory_engine::model::Flag;
use samestory_engine::model::{BoundedStr, Lang, Position, TopicId};
use samestory_engine::text::language;

use super::outgoing::headers_dropped;
use crate::kafka::admin::control;
use crate::kafka::route::decode::Decoder;
use crate::kafka::route::payload::ArticleSlice;
use crate::kafka::route::recreated;
use crate::kafka::route::routed;
use crate::kafka::route::routed::{Carried, Forget, Routed};
use crate::kafka::turn::faults;
use crate::kafka::turn::record::Record;

/// Reads a partition's records.
#[derive(Clone, Debug)]
pub(crate) struct BatchReader {
    application: String,
    topic: String,
    /// The topic that positions of articles are on.
    raw_topic: String,
    languages: Vec<Lang>,
    /// Of the input.
    partitions: i32,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Raw, by language.
    Raw(Decoder),
    /// From route. A language that does not live in its partition is a disagreement about the map.
    Routed { fingerprints: u32 },
}

/// What cannot be read, and never will be: the partition stops.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreadable(String);

impl Unreadable {
    pub(crate) fn new(why: impl Into<String>) -> Unreadable {
        Unreadable(why.into())
    }
}

/// For each item of a batch, its record's place and where the article is in the record's value.
pub(crate) type Places = Vec<(usize, ArticleSlice)>;

/// A partition's records as a batch.
pub(crate) struct Taken {
    pub(crate) batch: Batch,
    pub(crate) places: Places,
    /// Articles and deletes that were judged before, and are left out.
    pub(crate) repeated: u64,
}

/// The idempotent receiver: articles and deletes at or below the highest raw offset that was judged for their raw
/// partition are repeats. Route commits in raw order, so an offset below it can only come again when route lost its own.
/// Forgets and relocation notices are not counted: each is compared with what is known of the article it is about.
struct Receiver<'a> {
    /// As the state has it.
    judged: &'a BTreeMap<(TopicId, i32), i64>,
    /// The highest of this batch.
    batch: BTreeMap<(TopicId, i32), i64>,
    repeated: u64,
}

impl Receiver<'_> {
    /// The id of another topic that was judged from, if there is one.
    fn same_topic(&self, carried: &Carried) -> Result<(), TopicId> {
        let mut known = self.judged.keys().chain(self.batch.keys()).map(|&(topic, _)| topic);
        known.find(|known| known.differs_from(carried.topic)).map_or(Ok(()), Err)
    }

    /// Takes note of an article or delete, unless it was judged before.
    fn is_new(&mut self, topic: TopicId, from: &Position) -> bool {
        let Position::Topic { partition, offset, .. } = *from else { return true };
        // Two ids that do not differ are of one topic, also where one of them is not known.
        let held = self.judged.iter().chain(&self.batch);
        let held = held.filter(|((known, at), _)| *at == partition && !known.differs_from(topic));
        if held.map(|(_, &highest)| highest).max().is_some_and(|highest| offset <= highest)
            && !faults::mutant("receiver-off")
        {
            self.repeated += 1;
            return false;
        }
        self.batch.insert((topic, partition), offset);
        true
    }
}

impl BatchReader {
    /// Raw articles, in so many partitions.
    pub(crate) fn raw(config: &Config, partitions: i32, registry: Option<&Arc<Registry>>) -> BatchReader {
        let (topic, languages) = (config.bus.topics.raw.clone(), config.bus.languages.clone());
        BatchReader {
            application: config.bus.app.clone(),
            raw_topic: topic.clone(),
            topic,
            languages,
            partitions,
            kind: Kind::Raw(Decoder::new(config, false, registry)),
        }
    }

    /// What route has written to so many partitions.
    pub(crate) fn routed(config: &Config, partitions: i32) -> BatchReader {
        let (topic, languages) = (config.bus.topics.routed.clone(), config.bus.languages.clone());
        let fingerprints = Decoder::new(config, true, None).fingerprints();
        let application = config.bus.app.clone();
        let raw_topic = config.bus.topics.raw.clone();
        BatchReader {
            application,
            topic,
            raw_topic,
            languages,
            partitions,
            kind: Kind::Routed { fingerprints },
        }
    }

    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }

    pub(crate) fn is_routed(&self) -> bool {
        matches!(self.kind, Kind::Routed { .. })
    }

    /// Asks for what these records were written with.
    ///
    /// # Errors
    /// Somebody must be waited for.
    pub(crate) fn gather<'r>(&mut self, records: impl Iterator<Item = &'r Record>) -> Result<(), String> {
        match &mut self.kind {
            Kind::Raw(decoder) => decoder.gather(records),
            Kind::Routed { .. } => Ok(()),
        }
    }

    /// What was gathered for is decided.
    pub(crate) fn settle(&mut self) {
        if let Kind::Raw(decoder) = &mut self.kind {
            decoder.settle();
        }
    }

    /// The batch of a partition's records, without a position. A record whose article goes out in other bytes than its
    /// own has those from here on.
    pub(crate) fn batch(
        &self,
        partition: i32,
        records: &mut [Record],
        progress: &Progress,
    ) -> Result<Taken, Unreadable> {
        let mut batch = Batch::default();
        let mut places = Places::with_capacity(records.len());
        let mut receiver = Receiver { judged: &progress.raw, batch: BTreeMap::new(), repeated: 0 };
        match &self.kind {
            Kind::Raw(decoder) => {
                let place = |record: &Record| record.position(&self.topic, partition);
                let decoded = decoder.decode_all(records, place);
                for ((at, record), (incoming, payload)) in records.iter_mut().enumerate().zip(decoded) {
                    let mut incoming = control::read(record).unwrap_or(incoming);
                    if let Incoming::Article(prepared) = &mut incoming
                        && is_stray(record.key.as_deref(), prepared)
                    {
                        prepared.flags.push(Flag::Stray);
                    }
                    let (time, log_time) = (record.time, record.log_time);
                    batch.items.push(Item { position: place(record), time, log_time, incoming });
                    let mut placed = ArticleSlice::WHOLE;
                    if let Some((form, bytes)) = payload {
                        placed.form = form;
                        record.value = Some(bytes);
                    }
                    places.push((at, placed));
                }
            }
            Kind::Routed { fingerprints } => {
                for (at, record) in records.iter_mut().enumerate() {
                    let mut add = |position, time, log_time, incoming, placed| {
                        batch.items.push(Item { position, time, log_time, incoming });
                        places.push((at, placed));
                    };
                    let value = record.value.as_deref().unwrap_or_default();
                    let control = routed::decode_control(value);
                    let control =
                        control.map_err(|error| self.unreadable(partition, record, error.to_string()))?;
                    if let Some((language, at)) = control {
                        let set = Incoming::SetStreamTime { language, at };
                        add(record.position(&self.topic, partition), None, None, set, ArticleSlice::WHOLE);
                        continue;
                    }
                    let carried = self.read(partition, record, *fingerprints)?;
                    record.headers_dropped = headers_dropped(&record.headers);
                    // The routed topic may have refused the time that the raw record came with.
                    match &carried.routed {
                        Some(
                            Routed::Article { time, .. }
                            | Routed::Delete { time, .. }
                            | Routed::Notice { time, .. },
                        ) => record.time = *time,
                        None => {}
                    }
                    let record = &*record;
                    let stop = |why: String| self.unreadable(partition, record, why);
                    receiver
                        .same_topic(&carried)
                        .map_err(|other| stop(recreated(&self.raw_topic, carried.topic, other)))?;
                    for Forget { id, from, time, to } in carried.forgets {
                        let forget = Incoming::Forget { ids: vec![id], to, raw: carried.topic };
                        add(from, time, None, forget, ArticleSlice::WHOLE);
                    }
                    match carried.routed {
                        Some(Routed::Notice { notice, from, time }) => {
                            add(from, time, None, Incoming::Notice(notice), ArticleSlice::WHOLE);
                        }
                        Some(routed) if !receiver.is_new(carried.topic, routed.from()) => {}
                        Some(Routed::Article { prepared, from, time, stamp, placed }) => {
                            let incoming = record.unless_dead(Incoming::Article(prepared), &from);
                            add(from, time, stamp, incoming, placed);
                        }
                        Some(Routed::Delete { id, from, time, stamp }) => {
                            let incoming = record.unless_dead(Incoming::Delete(id), &from);
                            add(from, time, stamp, incoming, ArticleSlice::WHOLE);
                        }
                        None => {}
                    }
                }
            }
        }
        batch.inputs.extend(self.made_with());
        batch.raw = receiver.batch;
        batch.relocates = self.is_routed() && self.partitions > 1;
        Ok(Taken { batch, places, repeated: receiver.repeated })
    }

    fn unreadable(&self, partition: i32, record: &Record, why: String) -> Unreadable {
        Unreadable(format!("{} partition {partition} offset {}: {why}", self.topic, record.offset))
    }

    fn read(&self, partition: i32, record: &Record, fingerprints: u32) -> Result<Carried, Unreadable> {
        let stop = |why: String| self.unreadable(partition, record, why);
        let read = routed::decode(record.value.as_deref().unwrap_or_default());
        let read = read.map_err(|error| stop(error.to_string()))?;
        if let Some(Routed::Article { prepared, .. }) = &read.routed {
            let (language, home) = (prepared.language, self.home(prepared.language));
            if home != partition {
                return Err(stop(format!(
                    "an article in {language}, which lives in partition {home}: route has other settings in stage.languages, or another number of partitions"
                )));
            }
            if prepared.fingerprint.config != fingerprints {
                return Err(stop(
                    "a fingerprint made with other settings in [text]; give route and match the same, or begin a new generation".into(),
                ));
            }
        }
        Ok(read)
    }

    /// The hash of what fingerprints are made with.
    fn fingerprints(&self) -> u32 {
        match &self.kind {
            Kind::Raw(decoder) => decoder.fingerprints(),
            Kind::Routed { fingerprints } => *fingerprints,
        }
    }

    /// Whether state and output are to follow in silence.
    pub(crate) fn is_silent(&self, record: &Record) -> bool {
        self.is_routed() && routed::is_silent(record.value.as_deref().unwrap_or_default())
    }

    /// Whether state was made with settings that ours do not go on from: then what is to be said.
    pub(crate) fn misfit(&self, progress: &Progress) -> Option<String> {
        let checks = [
            Self::other_application,
            Self::other_partitions,
            Self::other_map,
            Self::other_table,
            Self::other_fingerprints,
        ];
        checks.into_iter().find_map(|check| check(self, progress))
    }

    /// Two applications on one changelog would each restore what the other wrote.
    fn other_application(&self, progress: &Progress) -> Option<String> {
        let written = progress.bus.as_ref()?.application.as_str();
        (written != self.application).then(|| {
            format!(
                "the changelog belongs to application \"{written}\", but stage.app is \"{}\"; put stage.app back, or \
                 give this application topics of its own in [topics]",
                self.application
            )
        })
    }

    /// Whether state was made of other fingerprints than ours, which cannot be compared: then what is to be said.
    fn other_fingerprints(&self, progress: &Progress) -> Option<String> {
        let made_with = progress.inputs.get(&fingerprints_name())?.next;
        (made_with != u64::from(self.fingerprints())).then(|| {
            format!(
                "this state holds fingerprints that were made with other settings in [text], and they cannot be \
                 compared; put the settings back, or {NEW_GENERATION}"
            )
        })
    }

    /// The settings that state is made with, kept with it.
    fn made_with(&self) -> impl Iterator<Item = (InputName, Input)> {
        let partitions = u64::try_from(self.partitions).unwrap_or(0);
        // In direct mode the producers' keys are the map, and only the number of partitions is known of it.
        let note = self.is_routed().then(|| BoundedStr::new(&codes(&self.languages).join(" ")));
        [
            (map_name(), Input { next: partitions, note }),
            (table_name(), Input { next: LANGUAGE_TABLE, note: None }),
            (fingerprints_name(), Input { next: u64::from(self.fingerprints()), note: None }),
        ]
        .into_iter()
    }

    fn home(&self, language: Lang) -> i32 {
        home(&self.languages, language, self.partitions)
    }

    /// Whether state was made for another number of partitions: then what is to be said.
    fn other_partitions(&self, progress: &Progress) -> Option<String> {
        let (made_for, ours) = (progress.inputs.get(&map_name())?.next, self.partitions);
        (i64::try_from(made_for) != Ok(i64::from(ours))).then(|| {
            format!(
                "this state was made for {made_for} partitions, but {} has {ours}: articles would come to other partitions than their earlier copies; partitions cannot be taken away, so {NEW_GENERATION}",
                self.topic
            )
        })
    }

    /// Whether state was made with another map than ours appends to: then what is to be said.
    fn other_map(&self, progress: &Progress) -> Option<String> {
        let note = progress.inputs.get(&map_name()).filter(|_| self.is_routed())?.note.as_ref();
        let theirs: Vec<&str> = note.map_or("", |note| note.as_str()).split_whitespace().collect();
        let ours = codes(&self.languages);
        let said = |what: String| {
            Some(format!(
                "{what}; put stage.languages back (appending a language that has no articles yet is safe), or {NEW_GENERATION}"
            ))
        };
        if !ours.starts_with(&theirs) {
            let (theirs, ours) = (theirs.join(" "), ours.join(" "));
            return said(format!(
                "this state was made with the languages \"{theirs}\", and the settings say \"{ours}\""
            ));
        }
        let partition = progress.bus.as_ref()?.partition;
        let moved = progress.languages.keys().find(|&&language| self.home(language) != partition)?;
        said(format!(
            "articles in {moved} live in partition {partition}, and the settings would move them to partition {}",
            self.home(*moved)
        ))
    }

    /// Whether the languages of state were told apart by another table than ours: then what is to be said.
    fn other_table(&self, progress: &Progress) -> Option<String> {
        let theirs = progress.inputs.get(&table_name())?.next;
        (theirs != LANGUAGE_TABLE).then(|| {
            format!(
                "this state was made with language table {theirs}, and this program has {LANGUAGE_TABLE}: articles may live in other partitions than their earlier copies; start the version that made it, or {NEW_GENERATION}"
            )
        })
    }
}

/// In direct mode the key of a record decides its partition. Where it names another language than the text has, copies of the
/// article under the right key are somewhere else. A key that names no language says nothing.
fn is_stray(key: Option<&[u8]>, prepared: &Prepared) -> bool {
    let named = key.and_then(|key| str::from_utf8(key).ok()).and_then(language::find);
    named.is_some_and(|row| row.home() != prepared.language) && prepared.fingerprint.tokens > 0
}

/// The version of the table that tells languages apart.
const LANGUAGE_TABLE: u64 = language::TABLE_VERSION as u64;

const NEW_GENERATION: &str = "start a new generation with the next number in stage.generation, which builds its state from the raw topic";

fn codes(languages: &[Lang]) -> Vec<&'static str> {
    languages.iter().map(|lang| lang.code()).collect()
}

fn fingerprints_name() -> InputName {
    InputName::new("text.fingerprints")
}

fn map_name() -> InputName {
    InputName::new("stage.languages")
}

fn table_name() -> InputName {
    InputName::new("language.table")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::kafka::route::routed::{Forgets, RawTopic, Source};
    use samestory_engine::index::{BusPosition, Counters, TopicName};
    use samestory_engine::model::ArticleId;

    fn intake(languages: &str, partitions: i32) -> BatchReader {
        let settings: Settings = toml::from_str(&format!("[stage]\nlanguages = {languages}")).unwrap();
        BatchReader::routed(&Config::try_from(settings).unwrap(), partitions)
    }

    /// What a partition of a stage with these settings has written, after articles in these languages.
    fn written(made: &BatchReader, partition: i32, arrived: &[&str]) -> Progress {
        let language = |code: &&str| samestory_engine::text::language::find(code).unwrap().lang;
        Progress {
            bus: Some(BusPosition {
                application: TopicName::new(&made.application),
                cluster: None,
                changelog: None,
                topic: TopicName::new(made.topic()),
                topic_id: None,
                partition,
                next: 1,
                leader_epoch: None,
            }),
            inputs: made.made_with().collect(),
            languages: arrived.iter().map(|code| (language(code), Counters::default())).collect(),
            ..Progress::default()
        }
    }

    // The map was compared as text, and it ended with the whole table: appending a language, which the documentation calls
    // safe, was refused. The way out that was named, `state rebuild`, said "done" and changed nothing.
    #[test]
    fn appending_a_language_is_accepted_and_any_other_change_is_refused() {
        let made = intake("[\"en\", \"hi\"]", 3);
        let progress = written(&made, 1, &["en"]);
        assert_eq!(made.misfit(&progress), None);
        assert_eq!(made.misfit(&Progress::default()), None);
        assert_eq!(intake("[\"en\", \"hi\", \"bn\"]", 3).misfit(&progress), None);
        for other in ["[\"hi\", \"en\"]", "[\"en\"]", "[]", "[\"en\", \"bn\", \"hi\"]"] {
            let said = intake(other, 3).misfit(&progress).unwrap();
            for part in ["put stage.languages back", "und en hi", "new generation"] {
                assert!(said.contains(part) && !said.contains("state rebuild"), "{other}: {said}");
            }
        }
        assert!(intake("[\"en\", \"hi\"]", 4).misfit(&progress).unwrap().contains("made for 3 partitions"));
    }

    #[test]
    fn appending_a_language_that_has_articles_elsewhere_is_refused_by_name() {
        let made = intake("[\"en\"]", 3);
        let (bengali, appended) =
            (samestory_engine::text::language::find("bn").unwrap().lang, "[\"en\", \"bn\"]");
        let (before, after) = (made.home(bengali), intake(appended, 3).home(bengali));
        assert_ne!(before, after, "choose another language for this test");
        let said = intake(appended, 3).misfit(&written(&made, before, &["bn"])).unwrap();
        assert!(said.contains(&format!("articles in bn live in partition {before}")), "{said}");
        assert_eq!(intake(appended, 3).misfit(&written(&made, 1, &["en"])), None);
    }

    // In direct mode nothing was recorded of the partitions: after some were added, the copies of an article came to other
    // partitions than the article, and were unique.
    #[test]
    fn a_direct_state_made_for_another_number_of_partitions_is_refused() {
        let direct = |partitions| {
            let settings: Settings = toml::from_str("[stage]\nmode = \"direct\"").unwrap();
            BatchReader::raw(&Config::try_from(settings).unwrap(), partitions, None)
        };
        let progress = written(&direct(2), 1, &["en", "hi"]);
        assert_eq!(direct(2).misfit(&progress), None);
        let said = direct(3).misfit(&progress).unwrap();
        for part in ["made for 2 partitions", "articles.raw has 3", "new generation"] {
            assert!(said.contains(part), "{said}");
        }
    }

    // Nothing tied a language to a partition: an article under the key of another language was compared with nobody who could
    // have been its copy, and no word said so.
    #[test]
    fn an_article_under_the_key_of_another_language_is_flagged() {
        let settings: Settings = toml::from_str("[stage]\nmode = \"direct\"").unwrap();
        let intake = BatchReader::raw(&Config::try_from(settings).unwrap(), 2, None);
        let flagged = |key: Option<&str>, body: &str| {
            let value = format!(r#"{{"id": "a1", "body": "{body}"}}"#).into_bytes();
            let key = key.map(|key| key.as_bytes().to_vec());
            let mut records = [Record { key, value: Some(value), ..Record::default() }];
            let taken = intake.batch(0, &mut records, &Progress::default()).unwrap();
            let [Item { incoming: Incoming::Article(prepared), .. }] = &taken.batch.items[..] else {
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
        assert!(!flagged(Some("hi"), ""), "no text, no copies");
    }

    #[test]
    fn a_state_made_with_another_language_table_is_refused() {
        let made = intake("[\"en\"]", 3);
        let mut progress = written(&made, 1, &["en"]);
        progress.inputs.insert(table_name(), Input { next: LANGUAGE_TABLE + 1, note: None });
        let told = format!("language table {}, and this program has {LANGUAGE_TABLE}", LANGUAGE_TABLE + 1);
        assert!(made.misfit(&progress).unwrap().contains(&told));
    }

    #[test]
    fn languages_are_spread_in_their_order() {
        let languages = &intake("[\"en\", \"hi\"]", 2).languages;
        let home_of = |code| home(languages, samestory_engine::text::language::find(code).unwrap().lang, 2);
        assert_eq!((home(languages, Lang::UND, 2), home_of("en"), home_of("hi")), (0, 1, 0));
    }

    /// Deletes at these raw offsets, each from this raw topic and partition 0.
    fn deletes(topic: TopicId, offsets: &[i64]) -> Vec<Record> {
        let delete = |&offset: &i64| {
            let id = ArticleId::new(&format!("a{offset}")).unwrap();
            let source = Source { partition: 0, offset, time: None, stamp: None };
            let mut forgets = Forgets::default();
            forgets.push(&id, source, 1);
            let topic = RawTopic { name: "articles.raw", id: topic };
            let value = Some(routed::encode_delete(&id, topic, &forgets, source));
            Record { offset, value, ..Record::default() }
        };
        offsets.iter().map(delete).collect()
    }

    #[test]
    fn a_delete_that_was_judged_is_ignored_and_its_forgets_are_not() {
        let intake = intake("[\"en\"]", 2);
        let ours = TopicId::from_halves(1, 2);
        let mut progress = Progress { raw: BTreeMap::from([((ours, 0), 5)]), ..Progress::default() };
        // A broker that does not say ids is not another broker.
        for topic in [ours, TopicId::UNKNOWN] {
            let taken = intake.batch(1, &mut deletes(topic, &[4, 5, 6, 6, 9]), &progress).unwrap();
            assert_eq!((taken.repeated, taken.places.len(), taken.batch.items.len()), (3, 7, 7));
            assert_eq!(taken.batch.raw, BTreeMap::from([((topic, 0), 9)]));
        }
        let other = TopicId::from_halves(3, 4);
        let stopped = intake.batch(1, &mut deletes(other, &[9]), &progress).err().unwrap().to_string();
        for part in [&ours.to_string(), &other.to_string(), "stage.generation"] {
            assert!(stopped.contains(part), "{stopped}");
        }
        // Nothing was judged yet, and one batch has both.
        progress.raw.clear();
        let mut both = [deletes(ours, &[1]), deletes(other, &[2])].concat();
        assert!(intake.batch(1, &mut both, &progress).is_err());
    }
}
