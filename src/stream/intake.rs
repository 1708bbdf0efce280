//! A partition's records → a batch to be planned: raw ones where they come by language, else what route has written.

use std::sync::Arc;

use crate::config::{Config, home};
use crate::detect::{Batch, Incoming, Item};
use crate::model::{Cut, Lang};
use crate::registry::Registry;
use crate::store::{Input, InputName, Progress};

use super::decode::Decoder;
use super::payload::Placed;
use super::record::Record;
use super::routed::{self, Routed};

/// Reads a partition's records.
#[derive(Clone, Debug)]
pub(super) struct Intake {
    topic: String,
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

impl Intake {
    /// Raw articles.
    pub(super) fn raw(config: &Config, registry: Option<&Arc<Registry>>) -> Intake {
        let (topic, languages) = (config.bus.topics.raw.clone(), config.bus.languages.clone());
        Intake { topic, languages, kind: Kind::Raw(Decoder::new(config, false, registry)) }
    }

    /// What route has written to so many partitions.
    pub(super) fn routed(config: &Config, partitions: i32) -> Intake {
        let (topic, languages) = (config.bus.topics.routed.clone(), config.bus.languages.clone());
        let fingerprints = Decoder::new(config, true, None).fingerprints();
        Intake { topic, languages, kind: Kind::Routed { partitions, fingerprints } }
    }

    pub(super) fn topic(&self) -> &str {
        &self.topic
    }

    pub(super) fn is_routed(&self) -> bool {
        matches!(self.kind, Kind::Routed { .. })
    }

    /// What a partition's position is kept under.
    pub(super) fn name(&self, partition: i32) -> InputName {
        InputName::new(&format!("{}/{partition}", self.topic))
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

    /// The batch of a partition's records, after which it is read on from `next`. A record whose article goes out in
    /// other bytes than its own has those from here on.
    pub(super) fn batch(
        &self,
        partition: i32,
        records: &mut [Record],
        next: i64,
    ) -> Result<(Batch, Places), Unreadable> {
        let mut batch = Batch::default();
        let mut places = Places::with_capacity(records.len());
        for (at, record) in records.iter_mut().enumerate() {
            match &self.kind {
                Kind::Raw(decoder) => {
                    let position = record.position(&self.topic, partition);
                    let (incoming, payload) = decoder.decode(record, &position);
                    batch.items.push(Item { position, time: record.time, incoming });
                    let mut placed = Placed::WHOLE;
                    if let Some((form, bytes)) = payload {
                        placed.form = form;
                        record.value = Some(bytes);
                    }
                    places.push((at, placed));
                }
                Kind::Routed { partitions, fingerprints } => {
                    let item =
                        |from, time, incoming, place| (Item { position: from, time, incoming }, (at, place));
                    let mut add = |(item, place)| {
                        batch.items.push(item);
                        places.push(place);
                    };
                    match self.read(partition, record, *partitions, *fingerprints)? {
                        Routed::Article { prepared, from, time, placed: value } => {
                            add(item(from, time, Incoming::Article(prepared), value));
                        }
                        Routed::Delete { id, from, time } => {
                            add(item(from, time, Incoming::Delete(id), Placed::WHOLE));
                        }
                        Routed::Forget { ids, time } => {
                            for (id, from) in ids {
                                add(item(from, time, Incoming::Forget(vec![id]), Placed::WHOLE));
                            }
                        }
                    }
                }
            }
        }
        let next = Input { next: u64::try_from(next).unwrap_or(0), note: None };
        batch.inputs.insert(self.name(partition), next);
        batch.inputs.extend(self.map());
        let made_with = Input { next: u64::from(self.fingerprints()), note: None };
        batch.inputs.insert(fingerprints_name(), made_with);
        Ok((batch, places))
    }

    fn read(
        &self,
        partition: i32,
        record: &Record,
        partitions: i32,
        fingerprints: u32,
    ) -> Result<Routed, Unreadable> {
        let stop = |why: String| {
            Unreadable(format!("{} partition {partition} offset {}: {why}", self.topic, record.offset))
        };
        let read = routed::decode(record.value.as_deref().unwrap_or_default());
        let read = read.map_err(|error| stop(error.to_string()))?;
        if let Routed::Article { prepared, .. } = &read {
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

    /// Whether state was made of other fingerprints than ours, which cannot be compared: then what is to be said.
    pub(super) fn other_fingerprints(&self, progress: &Progress) -> Option<String> {
        let made_with = progress.inputs.get(&fingerprints_name())?.next;
        (made_with != u64::from(self.fingerprints())).then(|| {
            "stopped: this state holds fingerprints that were made with other settings in [text], and they cannot be \
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
    pub(super) fn other_map(&self, progress: &Progress) -> Option<String> {
        let Kind::Routed { partitions, .. } = self.kind else { return None };
        let written = progress.inputs.get(&map_name())?;
        let ours = self.languages_in_order();
        let theirs = written.note.as_ref().map_or("", |note| note.as_str());
        if i64::try_from(written.next) == Ok(i64::from(partitions)) && ours.starts_with(theirs) {
            return None;
        }
        Some(format!(
            "stopped: this state was made with the languages \"{theirs}\" on {} partitions, the settings say \"{ours}\" on {partitions}; put stage.languages back (appending is safe), or make the state anew with `samestory state rebuild`",
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
}
