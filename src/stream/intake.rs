//! A partition's records → a batch to be planned: raw ones where they come by language, else what route has written.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::{Config, home};
use crate::detect::{Batch, Incoming, Item};
use crate::model::{Cut, Lang, Position, TopicId};
use crate::registry::Registry;
use crate::store::{Input, InputName, Progress};

use super::control;
use super::decode::Decoder;
use super::faults;
use super::outgoing::headers_dropped;
use super::payload::Placed;
use super::record::Record;
use super::route::recreated;
use super::routed::{self, Carried, Forget, Routed};

/// Reads a partition's records.
#[derive(Clone, Debug)]
pub(super) struct Intake {
    application: String,
    topic: String,
    /// The topic that positions of articles are on.
    raw_topic: String,
    languages: Vec<Lang>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Raw, by language.
    Raw(Decoder),
    /// From route. A language that does not live in its partition is a disagreement about the map.
    Routed { partitions: i32, fingerprints: u32 },
}

/// What cannot be read, and never will be: the partition stops.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unreadable(String);

impl Unreadable {
    pub(super) fn new(why: impl Into<String>) -> Unreadable {
        Unreadable(why.into())
    }
}

/// For each item of a batch, its record's place and where the article is in the record's value.
pub(super) type Places = Vec<(usize, Placed)>;

/// A partition's records as a batch.
pub(super) struct Taken {
    pub(super) batch: Batch,
    pub(super) places: Places,
    /// Articles and deletes that were judged before, and are left out.
    pub(super) repeated: u64,
}

/// The idempotent receiver: articles and deletes at or below the highest raw offset that was judged for their raw
/// partition are repeats. Route commits in raw order, so an offset below it can only come again when route lost its own.
/// Forgets are not counted: each is compared with the document it is about.
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

impl Intake {
    /// Raw articles.
    pub(super) fn raw(config: &Config, registry: Option<&Arc<Registry>>) -> Intake {
        let (topic, languages) = (config.bus.topics.raw.clone(), config.bus.languages.clone());
        Intake {
            application: config.bus.app.clone(),
            raw_topic: topic.clone(),
            topic,
            languages,
            kind: Kind::Raw(Decoder::new(config, false, registry)),
        }
    }

    /// What route has written to so many partitions.
    pub(super) fn routed(config: &Config, partitions: i32) -> Intake {
        let (topic, languages) = (config.bus.topics.routed.clone(), config.bus.languages.clone());
        let fingerprints = Decoder::new(config, true, None).fingerprints();
        let application = config.bus.app.clone();
        let raw_topic = config.bus.topics.raw.clone();
        Intake { application, topic, raw_topic, languages, kind: Kind::Routed { partitions, fingerprints } }
    }

    pub(super) fn topic(&self) -> &str {
        &self.topic
    }

    pub(super) fn is_routed(&self) -> bool {
        matches!(self.kind, Kind::Routed { .. })
    }

    /// Asks for what these records were written with.
    ///
    /// # Errors
    /// Somebody must be waited for.
    pub(super) fn gather<'r>(&mut self, records: impl Iterator<Item = &'r Record>) -> Result<(), String> {
        match &mut self.kind {
            Kind::Raw(decoder) => decoder.gather(records),
            Kind::Routed { .. } => Ok(()),
        }
    }

    /// What was gathered for is decided.
    pub(super) fn settle(&mut self) {
        if let Kind::Raw(decoder) = &mut self.kind {
            decoder.settle();
        }
    }

    /// The batch of a partition's records, without a position. A record whose article goes out in other bytes than its
    /// own has those from here on.
    pub(super) fn batch(
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
                    let incoming = control::read(record).unwrap_or(incoming);
                    let (time, log_time) = (record.time, record.log_time);
                    batch.items.push(Item { position: place(record), time, log_time, incoming });
                    let mut placed = Placed::WHOLE;
                    if let Some((form, bytes)) = payload {
                        placed.form = form;
                        record.value = Some(bytes);
                    }
                    places.push((at, placed));
                }
            }
            Kind::Routed { partitions, fingerprints } => {
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
                        add(record.position(&self.topic, partition), None, None, set, Placed::WHOLE);
                        continue;
                    }
                    let carried = self.read(partition, record, *partitions, *fingerprints)?;
                    record.headers_dropped = headers_dropped(&record.headers);
                    // The routed topic may have refused the time that the raw record came with.
                    if let Some(Routed::Article { time, .. } | Routed::Delete { time, .. }) = &carried.routed
                    {
                        record.time = *time;
                    }
                    let record = &*record;
                    let stop = |why: String| self.unreadable(partition, record, why);
                    receiver
                        .same_topic(&carried)
                        .map_err(|other| stop(recreated(&self.raw_topic, carried.topic, other)))?;
                    for Forget { id, from, time, .. } in carried.forgets {
                        add(from, time, None, Incoming::Forget(vec![id]), Placed::WHOLE);
                    }
                    match carried.routed {
                        Some(routed) if !receiver.is_new(carried.topic, routed.from()) => {}
                        Some(Routed::Article { prepared, from, time, stamp, placed }) => {
                            let incoming = record.unless_dead(Incoming::Article(prepared), &from);
                            add(from, time, stamp, incoming, placed);
                        }
                        Some(Routed::Delete { id, from, time, stamp }) => {
                            let incoming = record.unless_dead(Incoming::Delete(id), &from);
                            add(from, time, stamp, incoming, Placed::WHOLE);
                        }
                        None => {}
                    }
                }
            }
        }
        batch.inputs.extend(self.map());
        let made_with = Input { next: u64::from(self.fingerprints()), note: None };
        batch.inputs.insert(fingerprints_name(), made_with);
        batch.raw = receiver.batch;
        Ok(Taken { batch, places, repeated: receiver.repeated })
    }

    fn unreadable(&self, partition: i32, record: &Record, why: String) -> Unreadable {
        Unreadable(format!("{} partition {partition} offset {}: {why}", self.topic, record.offset))
    }

    fn read(
        &self,
        partition: i32,
        record: &Record,
        partitions: i32,
        fingerprints: u32,
    ) -> Result<Carried, Unreadable> {
        let stop = |why: String| self.unreadable(partition, record, why);
        let read = routed::decode(record.value.as_deref().unwrap_or_default());
        let read = read.map_err(|error| stop(error.to_string()))?;
        if let Some(Routed::Article { prepared, .. }) = &read.routed {
            let (language, home) = (prepared.language, home(&self.languages, prepared.language, partitions));
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
            Kind::Routed { fingerprints, .. } => *fingerprints,
        }
    }

    /// Whether state and output are to follow in silence.
    pub(super) fn is_silent(&self, record: &Record) -> bool {
        self.is_routed() && routed::is_silent(record.value.as_deref().unwrap_or_default())
    }

    /// Whether state was made with settings that ours do not go on from: then what is to be said.
    pub(super) fn misfit(&self, progress: &Progress) -> Option<String> {
        let other_application = self.other_application(progress);
        other_application.or_else(|| self.other_map(progress)).or_else(|| self.other_fingerprints(progress))
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
            "this state holds fingerprints that were made with other settings in [text], and they cannot be \
             compared; put the settings back, or begin a new generation with the next number in stage.generation"
                .into()
        })
    }

    /// The map of languages to partitions, kept with the state: it was made with this one.
    fn map(&self) -> Option<(InputName, Input)> {
        let Kind::Routed { partitions, .. } = self.kind else { return None };
        let note = Some(Cut::new(&self.languages_in_order()));
        Some((map_name(), Input { next: u64::try_from(partitions).unwrap_or(0), note }))
    }

    fn languages_in_order(&self) -> String {
        self.languages.iter().map(|lang| lang.code()).collect::<Vec<_>>().join(" ")
    }

    /// Whether state was made with another map than ours appends to: then what is to be said.
    fn other_map(&self, progress: &Progress) -> Option<String> {
        let Kind::Routed { partitions, .. } = self.kind else { return None };
        let written = progress.inputs.get(&map_name())?;
        let ours = self.languages_in_order();
        let theirs = written.note.as_ref().map_or("", |note| note.as_str());
        if i64::try_from(written.next) == Ok(i64::from(partitions)) && ours.starts_with(theirs) {
            return None;
        }
        Some(format!(
            "this state was made with the languages \"{theirs}\" on {} partitions, the settings say \"{ours}\" on {partitions}; put stage.languages back (appending is safe), or make the state anew with `samestory state rebuild`",
            written.next
        ))
    }
}

fn fingerprints_name() -> InputName {
    InputName::new("text.fingerprints")
}

fn map_name() -> InputName {
    InputName::new("stage.languages")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::model::ArticleId;
    use crate::stream::routed::{Forgets, RawTopic, Source};

    fn intake(languages: &str, partitions: i32) -> Intake {
        let settings: Settings = toml::from_str(&format!("[stage]\nlanguages = {languages}")).unwrap();
        Intake::routed(&Config::try_from(settings).unwrap(), partitions)
    }

    #[test]
    fn state_made_with_another_map_is_refused() {
        let made = intake("[\"en\", \"hi\"]", 3);
        let progress = Progress { inputs: made.map().into_iter().collect(), ..Progress::default() };
        assert_eq!(made.other_map(&progress), None);
        assert_eq!(made.other_map(&Progress::default()), None);
        let said = intake("[\"hi\", \"en\"]", 3).other_map(&progress).unwrap();
        assert!(said.contains("stage.languages") && said.contains("und en hi"), "{said}");
        assert!(intake("[\"en\", \"hi\"]", 4).other_map(&progress).is_some());
    }

    #[test]
    fn languages_are_spread_in_their_order() {
        let languages = &intake("[\"en\", \"hi\"]", 2).languages;
        let home_of = |code| home(languages, crate::text::language::find(code).unwrap().lang, 2);
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
