//! Deletes articles and shows where something of them is left, for `samestory erase`. The deletes go through the raw topic like
//! a crawler's, so the stage removes the articles everywhere in its own transactions. Afterwards this reads what every
//! topic and every state directory within reach holds, record by record, and believes no index.
//!
//! What a record holds of an id is decided by bytes: a key that is the id, or a value or header that contains it the way
//! JSON, Avro or the changelog's layout writes a string. Article text that happens to name the id does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, ConfigResource, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::message::{Header, OwnedHeaders};
use serde::Serialize;

use crate::config::{Config, InputFormat, Mode};
use crate::formats::Owner;
use crate::formats::fields::Field;
use crate::formats::json;
use crate::kafka::admin::topics;
use crate::kafka::client as clients;
use crate::kafka::client::Role;
use crate::kafka::turn::record::Record;
use samestory_engine::index::{Budget, RocksReader, StoreError, View};
use samestory_engine::model::{ArticleId, EventTime};

use super::produce::Sender;
use super::scan::{ScanError, Scanner, broker_error, source};

/// What to do.
#[derive(Clone, Debug)]
pub struct EraseRequest {
    /// The ids.
    pub ids: Vec<ArticleId>,
    /// Write no deletes; only look.
    pub check_only: bool,
    /// State directories besides those below `stage.state`: of other machines, and copies.
    pub states: Vec<PathBuf>,
    /// How long to wait for the stage.
    pub wait: Duration,
}

/// Why articles could not be erased or looked for.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// A topic could not be read or written.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// A crawler's own delete event is needed.
    #[error(
        "a delete of this input is an event in the crawler's own format (input.fields maps the id or the mark): let the crawler write it, then run `samestory erase --check`"
    )]
    OwnEvents,
}

/// How much of an article is left in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Left {
    /// The article is current there: it is not erased.
    Current,
    /// Records that a tombstone or a later record follows. They go with compaction or retention.
    Superseded,
    /// Records that no tombstone follows: consumers were not told.
    Published,
    /// Records of other articles name the id. They go with compaction or retention.
    Named,
    /// The id alone, as a mark that it was deleted; kept for one retention.
    Mark,
    /// The place could not be read.
    Unknown,
}

/// What is left of an id in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The article.
    pub id: String,
    /// A topic, or a directory.
    pub place: String,
    /// How much is left.
    pub left: Left,
    /// Number of records or documents.
    pub count: u64,
    /// When the newest of them was written, as ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
    /// When it goes away, or what to do.
    pub until: String,
}

/// The result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Erased {
    /// Deletes that were written: id, raw partition and offset are in the raw topic.
    pub deletes: u64,
    /// The topics that were read to their ends.
    pub topics: Vec<String>,
    /// The state directories that were read, quarantined copies among them.
    pub states: Vec<String>,
    /// State directories that a running process works on. Nobody else can open them; they equal the changelog.
    pub states_in_use: Vec<String>,
    /// What is left.
    pub findings: Vec<Finding>,
}

impl Erased {
    /// The ids that are current somewhere, or may be.
    pub fn remaining(&self) -> BTreeSet<&str> {
        let remains =
            self.findings.iter().filter(|found| matches!(found.left, Left::Current | Left::Unknown));
        remains.map(|found| found.id.as_str()).collect()
    }
}

/// Writes the deletes, waits until the stage has applied them, and looks for what is left.
///
/// # Errors
/// See [`EraseError`].
pub fn erase(
    config: &Config,
    request: &EraseRequest,
    say: &mut dyn FnMut(&str),
) -> Result<Erased, EraseError> {
    let bus = &config.bus;
    let scanner = Scanner::new(bus, "samestory-erase")?;
    let mut erased = Erased::default();
    if !request.check_only {
        write_deletes(config, &scanner, &request.ids)?;
        erased.deletes = request.ids.len() as u64;
        say(&format!(
            "{} deletes written to {}; waiting until the stage has applied them",
            erased.deletes, bus.topics.raw
        ));
        let (_, raw) = scanner.ranges(&bus.topics.raw)?;
        match bus.mode {
            Mode::Direct => scanner.await_processed(Role::Direct, &bus.topics.raw, &raw, request.wait)?,
            Mode::Routed => {
                scanner.await_processed(Role::Route, &bus.topics.raw, &raw, request.wait)?;
                let (_, routed) = scanner.ranges(&bus.topics.routed)?;
                scanner.await_processed(Role::Match, &bus.topics.routed, &routed, request.wait)?;
            }
        }
    }
    look_into_topics(config, &scanner, &request.ids, &mut erased)?;
    for directory in directories(&bus.state, &request.states) {
        look_into_state(directory, &request.ids, &mut erased);
    }
    Ok(erased)
}

/// Writes a delete for each id, to the raw partition of its newest known version, so that it follows that version.
fn write_deletes(config: &Config, scanner: &Scanner, ids: &[ArticleId]) -> Result<(), EraseError> {
    let (bus, topics) = (&config.bus, &config.bus.topics);
    let as_event = bus.mode == Mode::Direct || config.owner == Owner::Host;
    let is_mapped = [Field::Id, Field::Deleted].into_iter().any(|field| config.fields.is_configured(field));
    if as_event && (is_mapped || bus.formats.input == InputFormat::Avro) {
        return Err(EraseError::OwnEvents);
    }
    let (_, raw) = scanner.ranges(&topics.raw)?;
    let mut homes: BTreeMap<&[u8], (EventTime, i32)> = BTreeMap::new();
    let wanted: BTreeSet<&[u8]> = ids.iter().map(|id| id.as_str().as_bytes()).collect();
    let mut names = vec![&topics.unique, &topics.near_duplicate];
    names.dedup();
    for name in names {
        scanner.read_all(name, |_, record| {
            let id = record.key.as_deref().and_then(|key| wanted.get(key));
            if let (Some(&id), Some((topic, partition, _))) = (id, source(&record, "samestory-"))
                && topic == topics.raw
            {
                let at = record.time.unwrap_or(EventTime::from_millis(0));
                let newest = homes.entry(id).or_insert((at, partition));
                if at >= newest.0 {
                    *newest = (at, partition);
                }
            }
            Ok(())
        })?;
    }
    let broker = |error| broker_error(bus, error);
    let sender = Sender::new(bus, &topics.raw).map_err(broker)?;
    for id in ids {
        let (key, owner) = (id.as_str().as_bytes(), id.as_str().split('/').next().unwrap_or_default());
        let value = as_event.then(|| json::delete_event(id.as_str(), owner));
        let headers = match &config.owner {
            Owner::Header(name) => {
                Some(OwnedHeaders::new().insert(Header { key: name, value: Some(owner.as_bytes()) }))
            }
            Owner::Anyone | Owner::Host => None,
        };
        match bus.mode {
            // The key decides the partition, and only the producer knows its rule: every partition is told.
            Mode::Direct => {
                for &partition in raw.keys() {
                    let value = value.as_deref();
                    sender
                        .send_to(Some(partition), Some(key), value, None, headers.clone())
                        .map_err(broker)?;
                }
            }
            Mode::Routed => {
                let home = homes.get(key).map(|(_, partition)| *partition);
                sender.send_to(home, Some(key), value.as_deref(), None, headers).map_err(broker)?;
            }
        }
    }
    sender.finish().map_err(broker)?;
    Ok(())
}

/// The ways in which a record may hold an id.
struct Needles {
    id: ArticleId,
    /// As JSON writes it, in quotes.
    json: Vec<u8>,
    /// As Avro writes it, after its length.
    avro: Vec<u8>,
    /// As the changelog and routed records write it, after its length.
    own: Vec<u8>,
}

impl Needles {
    fn new(id: &ArticleId) -> Needles {
        let text = id.as_str();
        let mut avro = Vec::new();
        let mut length = text.len() << 1;
        loop {
            let byte = (length & 0x7f) as u8;
            length >>= 7;
            avro.push(if length > 0 { byte | 0x80 } else { byte });
            if length == 0 {
                break;
            }
        }
        avro.extend(text.as_bytes());
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes();
        Needles {
            id: id.clone(),
            json: json::quoted(text),
            avro,
            own: [&length[..], text.as_bytes()].concat(),
        }
    }

    fn is_key(&self, record: &Record, kind: TopicKind) -> bool {
        let Some(key) = record.key.as_deref() else { return false };
        match kind {
            TopicKind::Articles | TopicKind::Clusters => key == self.id.as_str().as_bytes(),
            TopicKind::Changelog => {
                changelog_id(key).is_some_and(|(_, id)| id == self.id.as_str().as_bytes())
            }
        }
    }

    /// Whether value or headers name the id.
    fn is_named(&self, record: &Record, kind: TopicKind) -> bool {
        let value = record.value.as_deref().unwrap_or_default();
        let in_value = match kind {
            TopicKind::Changelog => contains(value, &self.own),
            TopicKind::Articles | TopicKind::Clusters if value.first() == Some(&0) => {
                contains(value, &self.avro)
            }
            TopicKind::Articles | TopicKind::Clusters => {
                contains(value, &self.json) || contains(value, &self.own)
            }
        };
        let ours = record.headers.iter().filter(|(name, _)| name.starts_with("samestory-"));
        let mut headers = ours.filter_map(|(_, value)| value.as_deref());
        in_value || headers.any(|value| value == self.id.as_str().as_bytes() || contains(value, &self.json))
    }
}

/// The kind and id of a changelog key that holds an id: `1 · u8 length · language · id` a document, `4 · id` a residence.
fn changelog_id(key: &[u8]) -> Option<(u8, &[u8])> {
    match key.split_first()? {
        (1, rest) => {
            let (&length, rest) = rest.split_first()?;
            Some((1, rest.get(usize::from(length)..)?))
        }
        (4, id) => Some((4, id)),
        _ => None,
    }
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(bytes, needle).is_some()
}

/// How the keys of a topic name articles.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TopicKind {
    Articles,
    Clusters,
    Changelog,
}

/// What a topic holds of one id.
#[derive(Default)]
struct Held {
    /// By key, whether the last record of each key that is the id has a value, and the key's kind in the changelog.
    current: BTreeMap<Vec<u8>, bool>,
    /// Records with a value whose key is the id, and the newest of them.
    own: (u64, Option<EventTime>),
    /// Records with other keys that name the id; in a compacted topic by whether they are their key's last.
    named: BTreeMap<Vec<u8>, (u64, bool)>,
    newest_name: Option<EventTime>,
}

fn look_into_topics(
    config: &Config,
    scanner: &Scanner,
    ids: &[ArticleId],
    erased: &mut Erased,
) -> Result<(), EraseError> {
    let topics = &config.bus.topics;
    let needles: Vec<Needles> = ids.iter().map(Needles::new).collect();
    let mut places = vec![(&topics.changelog, TopicKind::Changelog), (&topics.clusters, TopicKind::Clusters)];
    for name in [&topics.unique, &topics.near_duplicate, &topics.dead_letter, &topics.raw] {
        if !places.iter().any(|(known, _)| *known == name) {
            places.push((name, TopicKind::Articles));
        }
    }
    if config.bus.mode == Mode::Routed {
        places.push((&topics.routed, TopicKind::Articles));
    }
    for (topic, kind) in places {
        let mut held: Vec<Held> = needles.iter().map(|_| Held::default()).collect();
        scanner.read_all(topic, |partition, record| {
            let key = || [&partition.to_be_bytes()[..], record.key.as_deref().unwrap_or_default()].concat();
            for (needle, held) in needles.iter().zip(&mut held) {
                if needle.is_key(&record, kind) {
                    held.current.insert(key(), record.value.is_some());
                    if record.value.is_some() {
                        held.own.0 += 1;
                        held.own.1 = held.own.1.max(record.time);
                    }
                } else if needle.is_named(&record, kind) {
                    let named = held.named.entry(key()).or_default();
                    *named = (named.0 + 1, true);
                    held.newest_name = held.newest_name.max(record.time);
                } else if kind != TopicKind::Articles
                    && let Some(named) = held.named.get_mut(&key())
                {
                    named.1 = false;
                }
            }
            Ok(())
        })?;
        erased.topics.push(topic.clone());
        let until = keeps(config, topic)?;
        for (needle, held) in needles.iter().zip(held) {
            erased.findings.extend(findings(config, topic, kind, needle, &held, &until));
        }
    }
    Ok(())
}

fn findings(
    config: &Config,
    topic: &str,
    kind: TopicKind,
    needle: &Needles,
    held: &Held,
    until: &str,
) -> Vec<Finding> {
    let finding = |left, count, newest: Option<EventTime>, until: &str| Finding {
        id: needle.id.to_string(),
        place: topic.to_owned(),
        left,
        count,
        newest: newest.map(|time| time.to_string()),
        until: until.to_owned(),
    };
    let mut found = Vec::new();
    let is_mark = |key: &[u8]| kind == TopicKind::Changelog && key.get(4) == Some(&4);
    let current = held.current.iter().filter(|(key, has_value)| **has_value && !is_mark(key)).count() as u64;
    let marks = held.current.iter().filter(|(key, has_value)| **has_value && is_mark(key)).count() as u64;
    // The crawlers' records, and dead letters, are followed by nothing that samestory writes.
    let is_retracted = [&config.bus.topics.raw, &config.bus.topics.dead_letter, &config.bus.topics.routed]
        .iter()
        .all(|other| *other != topic);
    if current > 0 && is_retracted {
        let advice = match kind {
            TopicKind::Changelog => {
                "the state holds the article: delete it again, or another version has arrived since"
            }
            _ => {
                "no tombstone follows: another version has arrived since, or the article had expired before it was deleted"
            }
        };
        let is_output = kind == TopicKind::Articles;
        let left = if is_output { Left::Published } else { Left::Current };
        let advice = if is_output { format!("{advice}; {until}") } else { advice.to_owned() };
        found.push(finding(left, held.own.0, held.own.1, &advice));
    } else if held.own.0 > marks {
        found.push(finding(Left::Superseded, held.own.0 - marks, held.own.1, until));
    }
    if marks > 0 {
        found.push(finding(
            Left::Mark,
            marks,
            None,
            "the id without its text; it expires after one retention (match.retention)",
        ));
    }
    let named: u64 = held.named.values().map(|(count, _)| count).sum();
    if named > 0 {
        let last = held.named.values().filter(|(_, last)| *last).count();
        let until = match kind {
            TopicKind::Articles => until.to_owned(),
            _ => format!("{last} of them current, until their cluster changes again; {until}"),
        };
        found.push(finding(Left::Named, named, held.newest_name, &until));
    }
    found
}

/// How long a topic keeps its records, from its settings.
fn keeps(config: &Config, topic: &str) -> Result<String, ScanError> {
    let broker = |error| broker_error(&config.bus, error);
    let admin: AdminClient<DefaultClientContext> =
        clients::base(&config.bus, "samestory-erase-settings").create().map_err(broker)?;
    let options = AdminOptions::new().request_timeout(Some(Duration::from_secs(10)));
    let asked = topics::block_on(admin.describe_configs(&[ResourceSpecifier::Topic(topic)], &options));
    let Some(Ok(settings)) = asked.map_err(broker)?.into_iter().next() else {
        return Ok("this user may not read the topic's settings".to_owned());
    };
    Ok(described(&settings))
}

fn described(settings: &ConfigResource) -> String {
    let of = |name: &str| {
        let entry = settings.entries.iter().find(|entry| entry.name == name)?;
        entry.value.clone()
    };
    let days = |name: &str| match of(name).and_then(|value| value.parse::<i64>().ok()) {
        None => "an unknown time".to_owned(),
        Some(i64::MAX | ..0) => "ever".to_owned(),
        Some(millis) if millis < 3_600_000 => format!("{} seconds", millis / 1000),
        Some(millis) if millis < 2 * 86_400_000 => format!("{} hours", millis / 3_600_000),
        Some(millis) => format!("{} days", millis / 86_400_000),
    };
    let policy = of("cleanup.policy").unwrap_or_default();
    let mut text = Vec::new();
    if policy.contains("compact") {
        text.push(format!(
            "compaction removes them: max.compaction.lag.ms bounds when (now: for {})",
            days("max.compaction.lag.ms")
        ));
    }
    if policy.contains("delete") {
        text.push(format!(
            "kept for {} (retention.ms), and until their segment is rolled",
            days("retention.ms")
        ));
    }
    text.join("; ")
}

/// The state directories below `stage.state`, quarantined copies among them, and those that the caller names.
fn directories(state: &Path, more: &[PathBuf]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(state).into_iter().flatten().filter_map(Result::ok);
    let is_store = |path: &PathBuf| path.join("CURRENT").is_file();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_store).collect();
    for path in more {
        let inner = std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
        found.extend(inner.map(|entry| entry.path()).filter(is_store));
        if is_store(path) || !path.is_dir() {
            found.push(path.clone());
        }
    }
    found.sort();
    found.dedup();
    found
}

fn look_into_state(directory: PathBuf, ids: &[ArticleId], erased: &mut Erased) {
    let place = directory.display().to_string();
    let mark = "the id without its text; it expires after one retention (match.retention)";
    let current =
        "no process works on this state: delete the directory, or start the stage that it belongs to";
    let mut finding = |id: &ArticleId, left, until: String| {
        let (id, place) = (id.to_string(), directory.display().to_string());
        erased.findings.push(Finding { id, place, left, count: 1, newest: None, until });
    };
    match state_holds(&directory, ids) {
        Ok(held) => {
            for (id, held) in ids.iter().zip(held) {
                match held {
                    (true, _) => finding(id, Left::Current, current.to_owned()),
                    (false, true) => finding(id, Left::Mark, mark.to_owned()),
                    (false, false) => {}
                }
            }
            erased.states.push(place);
        }
        // It follows the changelog, and match has committed the deletes.
        Err(StoreError::InUse { .. }) => erased.states_in_use.push(place),
        Err(error) => {
            ids.iter().for_each(|id| finding(id, Left::Unknown, format!("cannot be read: {error}")));
            erased.states.push(place);
        }
    }
}

/// For each id, whether the state holds a document of it, and whether it holds a mark.
fn state_holds(directory: &Path, ids: &[ArticleId]) -> Result<Vec<(bool, bool)>, StoreError> {
    let store = RocksReader::existing(directory, &Budget::default())?;
    let held = |id: &ArticleId| Ok((!store.languages_of(id)?.is_empty(), store.residence(id)?.is_some()));
    ids.iter().map(held).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_as_each_format_writes_it_and_not_inside_other_words() {
        let needles = Needles::new(&ArticleId::new("a\"7").unwrap());
        let with = |value: &[u8]| Record { value: Some(value.to_vec()), ..Record::default() };
        let named = |value: &[u8], kind| needles.is_named(&with(value), kind);
        assert!(named(br#"{"duplicate_of":"a\"7"}"#, TopicKind::Articles));
        assert!(!named(br#"{"duplicate_of":"a\"70"}"#, TopicKind::Articles));
        assert!(named(b"\0\0\0\0\x01\x06a\"7", TopicKind::Articles));
        assert!(named(b"..\x03\0a\"7..", TopicKind::Changelog));
        assert!(!named(b"..\x04\0a\"7x", TopicKind::Changelog));
    }

    #[test]
    fn the_id_of_a_changelog_key_follows_kind_and_language() {
        assert_eq!(changelog_id(b"\x01\x02ena1"), Some((1, &b"a1"[..])));
        assert_eq!(changelog_id(b"\x04a1"), Some((4, &b"a1"[..])));
        assert_eq!(changelog_id(b"\x03"), None);
        assert_eq!(changelog_id(b"\x01\x09en"), None);
    }
}
