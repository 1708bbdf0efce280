//! The invariants that must hold at the end of a run. The oracle knows the fed records, reads the topics as
//! an independent consumer, and compares them with a replay: one undisturbed process, record by record, on an
//! in-memory store.
//!
//! It starts from the raw records and derives by itself what route must send to each partition; it takes only
//! the interleaving of the raw partitions from the routed topic.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use samestory::config::Config;
use samestory::kafka::tools::replay::{Read, Sent, TOO_LARGE_FOR_OUTPUT, replay};
use samestory::kafka::tools::route_model::{ExpectedEvent, RouteModel, What, events, is_silent};
use samestory_engine::index::Row as StateRow;
use samestory_engine::index::{
    Budget, Change, Durability, Memory, Rocks, RocksOptions, Store, StoreError, View,
};
use samestory_engine::model::ArticleId;

use crate::kafka::bus::{Isolation, Row};

use super::articles::Fate;
use super::example_consumer;
use super::scene::{Fed, INSTANCES, Scene};
use super::voices;

/// Everything that is wrong; empty after a good run.
pub(crate) type Findings = Vec<String>;

/// A partition and offset of the raw topic.
pub(crate) type RawPosition = (i32, i64);

/// Checks everything. All records must be processed, and all instances except 0 stopped.
pub(crate) fn check(scene: &mut Scene) -> Findings {
    let mut findings = Findings::new();
    let names = scene.config.bus.topics.clone();
    let read = |topic: &str| scene.broker.read(topic, Isolation::Committed);
    let raw_rows = read(&names.raw);
    let mut routed =
        |rows: Result<Vec<Row>, String>| rows.map_err(|why| findings.push(why)).unwrap_or_default();
    // In order, each with the records of its input. Before these offsets the previous generation published.
    let mut generations = vec![(scene.config.clone(), routed(scene.routed()))];
    let mut ends = read(&names.generations);
    ends.retain(|row| row.is_generation_end(&scene.config.bus.app));
    let published = first_published(&ends);
    if let Some((config, rows)) = scene.generation_before() {
        let mut rows = routed(rows);
        if scene.settings.direct {
            rows.retain(|row| row.offset < published.get(&row.partition).copied().unwrap_or(0));
        }
        generations.insert(0, (config.clone(), rows));
    }
    let changelog = read(&names.changelog);
    let mut outputs: Vec<(String, Row)> = Vec::new();
    for topic in [&names.unique, &names.near_duplicate, &names.clusters] {
        outputs.extend(read(topic).into_iter().map(|row| (topic.clone(), row)));
    }
    let dead = read(&names.dead_letter);
    add_records_fed_again(scene, &raw_rows);
    raw_topic_is_what_was_fed(scene, &raw_rows, &mut findings);
    let last_routed = &generations.last().unwrap().1;
    each_input_has_its_output(scene, last_routed, &outputs, &dead, &mut findings);
    let mut dead_positions: BTreeSet<RawPosition> =
        dead.iter().filter_map(|row| source(row, "__samestory.errors.")).collect();
    // Route did route these; match could not deliver them. A later generation judges them in silence, delivers nothing,
    // and stores them like any other.
    let refused: BTreeSet<RawPosition> = {
        let fed = scene.fed.lock().unwrap();
        let large = fed.iter().filter(|fed| fed.fate == Fate::Large).map(|fed| (fed.partition, fed.offset));
        let letters = dead.iter().filter(|row| was_refused(row));
        let letters = letters.filter_map(|row| source(row, "__samestory.errors."));
        large.chain(letters).filter(|place| dead_positions.remove(place)).collect()
    };
    let raw = |config: &Config| {
        let rows = raw_rows.iter().map(|row| (row.partition, as_read(row)));
        RouteModel::new(config, 3, rows, &dead_positions)
    };
    let mut expected = Vec::new();
    let mut states = Vec::new();
    for (number, (config, routed)) in generations.iter().enumerate() {
        let raw = (!scene.settings.direct).then(|| raw(config));
        let is_last = number + 1 == generations.len();
        if let Some(raw) = &raw {
            routed_is_what_raw_says(scene, raw, routed, is_last, &mut findings);
        }
        states.clear();
        let from = |partition: i32| match is_last {
            true => published.get(&partition).copied().unwrap_or(0),
            false => 0,
        };
        let mut notices = Vec::new();
        for partition in 0..3 {
            let rows = routed.iter().filter(|row| row.partition == partition).map(as_read);
            let rows: Result<Vec<Read>, String> = match &raw {
                Some(raw) => rows
                    .map(|row| raw.rerouted(partition, &row))
                    .collect::<Result<Vec<_>, _>>()
                    .map(|made| made.into_iter().flatten().map(|row| mark_refused(row, &refused)).collect()),
                None => Ok(rows
                    .map(|row| {
                        let is_refused = refused.contains(&(partition, row.offset));
                        Read { refused: is_refused && row.offset >= from(partition), ..row }
                    })
                    .collect()),
            };
            match rows.and_then(|rows| replay(config, partition, 3, rows)) {
                Ok((mut sent, state)) => {
                    // Notices and dead letters are checked separately.
                    notices.extend(sent.extract_if(.., |sent| sent.topic == config.bus.topics.routed));
                    sent.retain(|sent| sent.topic != names.dead_letter);
                    if scene.settings.direct {
                        let position = |sent: &Sent| source_in(&sent.headers, "samestory-");
                        sent.retain(|sent| position(sent).is_none_or(|(at, offset)| offset >= from(at)));
                    }
                    expected.push(sent);
                    states.push(state);
                }
                Err(error) => {
                    findings.push(format!("routed partition {partition} cannot be replayed: {error}"))
                }
            }
        }
        if raw.is_some() {
            voices::notices_are_those_of_the_replay(scene, &notices, routed, &mut findings);
        }
    }
    let partitions = i32::from(names.output_partitions);
    verdicts_are_those_of_the_replay(&expected, &outputs, &names.clusters, &mut findings);
    each_key_has_its_partition(&outputs, partitions, &mut findings);
    example_consumer::check(scene, &expected, &mut findings);
    let last = (!scene.settings.direct).then(|| raw(&scene.config));
    scene.stop(0);
    let stores: Vec<Memory> = (0..3).map(|partition| restored(scene, partition, &changelog)).collect();
    if let Some(raw) = &last {
        each_id_lives_in_one_partition(raw, &stores, &mut findings);
        voices::a_tombstone_deletes_no_live_article(scene, raw, &stores, &outputs, &mut findings);
    }
    for (partition, state) in (0..3).zip(&states) {
        let from_log = stores[partition as usize].dump().unwrap();
        compare(&format!("partition {partition}: changelog against replay"), &from_log, state, &mut findings);
        every_store_is_that_of_the_replay(scene, partition, &changelog, state, &mut findings);
    }
    findings
}

/// By raw partition, the first offset that the current generation publishes. Empty without an earlier generation.
fn first_published(ends: &[Row]) -> BTreeMap<i32, i64> {
    let Some(end) = ends.last() else { return BTreeMap::new() };
    let end: serde_json::Value = serde_json::from_slice(end.value.as_deref().unwrap()).unwrap();
    let next = end["next"].as_object().unwrap().iter();
    next.map(|(partition, next)| (partition.parse().unwrap(), next.as_i64().unwrap())).collect()
}

/// Marks a routed record if it carries an article that a topic refused.
fn mark_refused(row: Read, refused: &BTreeSet<RawPosition>) -> Read {
    if is_silent(row.value.as_deref().unwrap_or_default()) {
        return row;
    }
    let events = events(row.value.as_deref().unwrap_or_default()).unwrap_or_default();
    let article = events.iter().find(|event| event.what == What::Article);
    let is_refused = article.is_some_and(|event| refused.contains(&(event.partition, event.offset)));
    Read { refused: is_refused, ..row }
}

/// I3 for the stores on the disks of all instances: caught up with the changelog, each equals the state of
/// the replay.
fn every_store_is_that_of_the_replay(
    scene: &Scene,
    partition: i32,
    changelog: &[Row],
    state: &[StateRow],
    findings: &mut Findings,
) {
    for at in 0..INSTANCES {
        let directory = scene.partition_state(at, partition);
        // Instance 0 had every partition in the end.
        if at > 0 && !directory.exists() {
            continue;
        }
        let what = format!("partition {partition}, RocksDB of instance {at} against replay");
        match caught_up(scene, &directory, partition, changelog) {
            Ok(found) => compare(&what, &found, state, findings),
            // The instance has not opened the store since it was damaged, or since its restore was
            // interrupted.
            Err(StoreError::Corrupt { .. } | StoreError::OtherBands { .. }) if at > 0 => {
                scene.say(&format!("{what}: not opened since it was damaged"));
            }
            Err(error) => findings.push(format!("{what}: {error}")),
        }
    }
}

fn as_read(row: &Row) -> Read {
    let Row { offset, timestamp, key, value, headers, .. } = row.clone();
    Read { offset, time: timestamp, key, value, headers, refused: false }
}

/// Adds a finding with the number of errors and the first three, if there are any.
pub(super) fn report(findings: &mut Findings, what: &str, wrong: &[String]) {
    if !wrong.is_empty() {
        findings.push(format!(
            "{what}: {} times, first {}",
            wrong.len(),
            wrong[..wrong.len().min(3)].join("; ")
        ));
    }
}

pub(super) fn source(row: &Row, prefix: &str) -> Option<RawPosition> {
    source_in(&row.headers, prefix)
}

fn source_in(headers: &[(String, Option<Vec<u8>>)], prefix: &str) -> Option<RawPosition> {
    let header = |name: &str| {
        let (_, value) = headers.iter().find(|(key, _)| *key == format!("{prefix}{name}"))?;
        str::from_utf8(value.as_deref()?).ok()
    };
    Some((header("partition")?.parse().ok()?, header("offset")?.parse().ok()?))
}

/// True if a dead letter was made because the article's own topic would not take it: while output topics take less, that may be
/// any large record.
fn was_refused(letter: &Row) -> bool {
    let says = |name: &str, text: &str| {
        let header =
            letter.headers.iter().find(|(key, _)| *key == format!("__samestory.errors.exception.{name}"));
        let value = header.and_then(|(_, value)| str::from_utf8(value.as_deref()?).ok());
        value.is_some_and(|value| value.contains(text))
    };
    says("class.name", "undeliverable") || says("message", TOO_LARGE_FOR_OUTPUT)
}

/// Where all brokers were killed at once, the crawlers' client cannot know what was kept, starts again and writes a batch
/// again. Those are records like any other; each has a number of its own in a header.
fn add_records_fed_again(scene: &Scene, raw: &[Row]) {
    let number = |headers: &[(String, Option<Vec<u8>>)]| {
        headers.iter().find(|(key, _)| key == "traceparent").and_then(|(_, value)| value.clone())
    };
    let mut fed = scene.fed.lock().unwrap();
    let positions: BTreeSet<RawPosition> = fed.iter().map(|fed| (fed.partition, fed.offset)).collect();
    let again = raw.iter().filter(|row| !positions.contains(&(row.partition, row.offset)));
    let again: Vec<Fed> = again
        .filter_map(|row| {
            let first = fed.iter().find(|fed| number(&fed.record.headers) == number(&row.headers))?;
            let (partition, offset, record) = (row.partition, row.offset, first.record.clone());
            Some(Fed { partition, offset, record, fate: first.fate })
        })
        .collect();
    if !again.is_empty() {
        scene.say(&format!("{} records were fed again", again.len()));
    }
    fed.extend(again);
}

/// The test's own premise: the raw topic holds the crawlers' records at their reported offsets, and nothing
/// else.
fn raw_topic_is_what_was_fed(scene: &Scene, raw: &[Row], findings: &mut Findings) {
    let fed = scene.fed.lock().unwrap();
    let mut by_position: BTreeMap<RawPosition, _> =
        fed.iter().map(|fed| ((fed.partition, fed.offset), fed)).collect();
    let known = by_position.len();
    let mut wrong = Vec::new();
    for row in raw {
        let fed = by_position.remove(&(row.partition, row.offset));
        if fed.is_none_or(|fed| (&fed.record.key, &fed.record.value) != (&row.key, &row.value)) {
            wrong.push(format!("{}/{} {}", row.partition, row.offset, start_of(&row.value)));
        }
    }
    wrong.extend(by_position.keys().map(|position| format!("{position:?} is missing")));
    if known != fed.len() {
        wrong.push(format!("{} records at {known} offsets", fed.len()));
    }
    report(findings, "void: the raw topic is not what was fed", &wrong);
}

/// I1: every input has exactly one tagged article or dead letter, and a delete reaches every partition once.
fn each_input_has_its_output(
    scene: &Scene,
    routed: &[Row],
    outputs: &[(String, Row)],
    dead: &[Row],
    findings: &mut Findings,
) {
    let names = &scene.config.bus.topics;
    let mut tagged: BTreeMap<RawPosition, usize> = BTreeMap::new();
    let mut letters: BTreeMap<RawPosition, Vec<&Row>> = BTreeMap::new();
    let mut tombstones: BTreeMap<(RawPosition, &str, Option<&[u8]>), usize> = BTreeMap::new();
    let mut strangers = Vec::new();
    for (topic, row) in outputs.iter().filter(|(topic, _)| *topic != names.clusters) {
        let Some(position) = source(row, "samestory-") else {
            strangers.push(format!("{topic} {}/{}", row.partition, row.offset));
            continue;
        };
        match row.value {
            Some(_) => *tagged.entry(position).or_default() += 1,
            None => *tombstones.entry((position, topic, row.key.as_deref())).or_default() += 1,
        }
    }
    for row in dead {
        match source(row, "__samestory.errors.") {
            Some(position) => letters.entry(position).or_default().push(row),
            None => strangers.push(format!("dead letter {}/{}", row.partition, row.offset)),
        }
    }
    report(findings, "no source position", &strangers);
    let twice = tombstones.iter().filter(|(_, count)| **count > 1);
    report(
        findings,
        "a tombstone twice",
        &twice
            .map(|((position, topic, key), _)| {
                format!("{position:?} {topic} {}", key.unwrap_or_default().escape_ascii())
            })
            .collect::<Vec<_>>(),
    );
    let (articles, deletes) = match scene.settings.direct {
        true => Default::default(),
        false => count_routed(scene, routed, findings),
    };
    let (mut wrong, mut bytes, mut unrouted) = (Vec::new(), Vec::new(), Vec::new());
    let fed = scene.fed.lock().unwrap();
    for fed in fed.iter() {
        let position = (fed.partition, fed.offset);
        let count = tagged.remove(&position).unwrap_or(0);
        let own = letters.remove(&position).unwrap_or_default();
        let right = match fed.fate {
            Fate::Tagged => (count, own.len()) == (1, 0),
            // Route that lost its committed offsets may write dead letters again.
            Fate::Dead if scene.lost_offsets => count == 0 && !own.is_empty(),
            Fate::TaggedOrDead if scene.lost_offsets => count + own.len().min(1) == 1,
            Fate::Dead => (count, own.len()) == (0, 1),
            Fate::TaggedOrDead | Fate::Large => count + own.len() == 1,
            Fate::Delete => (count, own.len()) == (0, 0),
        };
        if !right {
            wrong.push(format!(
                "{position:?} ({:?}, {}) has {count} articles and {} dead letters",
                fed.fate,
                start_of(&fed.record.value),
                own.len()
            ));
        }
        let refused = own.iter().filter(|letter| was_refused(letter)).count();
        for letter in own {
            let dropped = letter.headers.iter().any(|(key, _)| key.ends_with("value.dropped.bytes"));
            if !dropped && letter.value != fed.record.value || letter.key != fed.record.key {
                bytes.push(format!("{position:?}"));
            }
        }
        let deleted = deletes.get(&position).copied().unwrap_or(0);
        let routed = articles.get(&position).copied().unwrap_or(0);
        let right = match fed.fate {
            _ if scene.settings.direct => true,
            Fate::Tagged | Fate::Large => (routed, deleted) == (1, 0),
            Fate::Dead => (routed, deleted) == (0, 0),
            Fate::TaggedOrDead => (routed, deleted) == (count + refused, 0),
            Fate::Delete => (routed, deleted) == (0, 3),
        };
        if !right {
            unrouted.push(format!("{position:?} ({:?})", fed.fate));
        }
    }
    report(findings, "not exactly one output", &wrong);
    report(findings, "a dead letter differs from its input", &bytes);
    report(findings, "not routed exactly once", &unrouted);
    let more = tagged.keys().chain(letters.keys()).map(|position| format!("{position:?}"));
    report(findings, "output without an input", &more.collect::<Vec<_>>());
}

/// (routed partition, raw partition) → events in order.
type RoutedEvents = BTreeMap<(i32, i32), Vec<ExpectedEvent>>;

/// The events of each routed partition without repetitions, and the repetitions. A partition receives each
/// raw record at most once, so the offsets of one raw partition's events increase.
fn routed_events(routed: &[Row]) -> (RoutedEvents, Vec<String>) {
    let mut by_partition = RoutedEvents::new();
    let mut repeats = Vec::new();
    for row in routed {
        for event in events(row.value.as_deref().unwrap()).unwrap() {
            let earlier = by_partition.entry((row.partition, event.partition)).or_default();
            match earlier.last() {
                Some(last) if last.offset >= event.offset => {
                    repeats.push(format!("{event:?} on routed {}/{}", row.partition, row.offset));
                }
                _ => earlier.push(event),
            }
        }
    }
    (by_partition, repeats)
}

/// How often each raw record was routed, as an article and as a delete.
fn count_routed(
    scene: &Scene,
    routed: &[Row],
    findings: &mut Findings,
) -> (BTreeMap<RawPosition, usize>, BTreeMap<RawPosition, usize>) {
    let (mut articles, mut deletes) = (BTreeMap::new(), BTreeMap::new());
    let (routed, repeats) = routed_events(routed);
    match scene.lost_offsets {
        true if repeats.is_empty() => findings.push("void: nothing was routed again".into()),
        true => {}
        false => report(findings, "routed again or out of order", &repeats),
    }
    for event in routed.values().flatten() {
        let count = match event.what {
            What::Article => &mut articles,
            What::Delete => &mut deletes,
            What::Forget { .. } => continue,
        };
        *count.entry((event.partition, event.offset)).or_default() += 1;
    }
    (articles, deletes)
}

/// The routed sequence of each raw partition is a function of the raw records: it shows no batch boundary and
/// no fault. A generation that has ended received only the first records.
fn routed_is_what_raw_says(
    scene: &Scene,
    raw: &RouteModel,
    routed: &[Row],
    is_last: bool,
    findings: &mut Findings,
) {
    let (mut routed, _) = routed_events(routed);
    let mut wrong = Vec::new();
    for (key, mut expected) in raw.expected() {
        let found = routed.remove(&key).unwrap_or_default();
        if !is_last {
            expected.truncate(found.len());
        }
        if found != expected {
            let at = found.iter().zip(&expected).position(|(found, expected)| found != expected);
            let at = at.unwrap_or(found.len().min(expected.len()));
            let (found_at, expected_at) = (found.get(at), expected.get(at));
            wrong.push(format!(
                "routed partition {}, raw partition {}, event {at}: {found_at:?}, not {expected_at:?}",
                key.0, key.1
            ));
        }
    }
    wrong.extend(routed.keys().map(|key| format!("{key:?}: nothing was fed")));
    report(findings, "the routed sequence does not follow from the raw records", &wrong);
    let moves =
        raw.expected().into_values().flatten().filter(|event| matches!(event.what, What::Forget { .. }));
    scene.say(&format!("{} forgets", moves.count()));
}

/// An article is stored only in the partition of its last version.
fn each_id_lives_in_one_partition(raw: &RouteModel, stores: &[Memory], findings: &mut Findings) {
    let mut wrong = Vec::new();
    for (id, home) in raw.homes() {
        let name = ArticleId::new(&id).unwrap();
        for (partition, store) in (0..).zip(stores) {
            let languages = store.languages_of(&name).unwrap();
            // It may have expired there.
            let most = usize::from(home == Some(partition));
            if languages.len() > most {
                wrong.push(format!(
                    "{id} is in partition {partition} as {languages:?}, its last version went to {home:?}"
                ));
            }
        }
    }
    report(findings, "an article is stored outside the partition of its last version", &wrong);
}

/// I2: the same records as the replay, byte for byte and equally often, those of one routed partition in its
/// order.
fn verdicts_are_those_of_the_replay(
    expected: &[Vec<Sent>],
    outputs: &[(String, Row)],
    clusters: &str,
    findings: &mut Findings,
) {
    // The positions of each distinct record.
    let mut found: BTreeMap<Sent, Vec<(String, i32, i64)>> = BTreeMap::new();
    for (topic, row) in outputs {
        let Row { partition, offset, key, value, headers, timestamp } = row.clone();
        // Cluster records carry the time they were sent; the others keep that of their article.
        let time = timestamp.filter(|_| topic != clusters);
        let sent = Sent { topic: topic.clone(), partition: None, key, value, headers, time };
        found.entry(sent).or_default().push((topic.clone(), partition, offset));
    }
    let mut makers: BTreeMap<&Sent, BTreeSet<usize>> = BTreeMap::new();
    for (maker, sent) in expected.iter().enumerate() {
        for sent in sent {
            makers.entry(sent).or_default().insert(maker);
        }
    }
    let (mut missing, mut disorder) = (Vec::new(), Vec::new());
    for (partition, sent) in expected.iter().enumerate() {
        let mut last: BTreeMap<(String, i32), i64> = BTreeMap::new();
        for record in sent {
            let positions = found.get_mut(record).filter(|positions| !positions.is_empty());
            let Some(positions) = positions else {
                missing.push(format!("routed partition {partition}: {}", shown(record)));
                continue;
            };
            let (topic, at, offset) = positions.remove(0);
            // Two partitions may write identical records (tombstones for one delete), whose order cannot be
            // checked.
            if makers[record].len() == 1
                && last.insert((topic, at), offset).is_some_and(|before| before > offset)
            {
                disorder.push(format!("routed partition {partition}: {}", shown(record)));
            }
        }
    }
    let more = found.iter().filter(|(_, positions)| !positions.is_empty());
    let more: Vec<String> =
        more.map(|(sent, positions)| format!("{} at {:?}", shown(sent), positions[0])).collect();
    report(findings, "in the replay but not on the topics", &missing);
    report(findings, "on the topics but not in the replay", &more);
    report(findings, "out of order", &disorder);
}

/// Each record is in the partition that the Java client's partitioner chooses, so that readers can join our
/// topics with their own.
fn each_key_has_its_partition(outputs: &[(String, Row)], partitions: i32, findings: &mut Findings) {
    let elsewhere = |(_, row): &&(String, Row)| {
        let key = row.key.as_deref().unwrap_or_default();
        i32::try_from(murmur2(key) & 0x7fff_ffff).unwrap() % partitions != row.partition
    };
    let wrong = outputs.iter().filter(elsewhere);
    let wrong: Vec<String> =
        wrong.map(|(topic, row)| format!("{topic} {}/{}", row.partition, row.offset)).collect();
    report(findings, "in another partition than its key's", &wrong);
}

/// The hash by which Kafka's Java client chooses partitions.
fn murmur2(bytes: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ u32::try_from(bytes.len()).unwrap();
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        let mut k = u32::from_le_bytes(word.try_into().unwrap()).wrapping_mul(M);
        k = (k ^ (k >> 24)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let last = rest.iter().rev().fold(0_u32, |last, byte| (last << 8) | u32::from(*byte));
        hash = (hash ^ last).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

fn start_of(bytes: &Option<Vec<u8>>) -> String {
    let text = bytes.as_deref().map_or("null".into(), String::from_utf8_lossy);
    text.chars().take(160).collect()
}

fn shown(sent: &Sent) -> String {
    let headers = sent.headers.iter().filter(|(key, _)| key.starts_with("samestory-"));
    let headers: Vec<String> =
        headers.map(|(key, value)| format!("{}={}", &key[10..], start_of(value))).collect();
    format!("{} {} {} {}", sent.topic, start_of(&sent.key), start_of(&sent.value), headers.join(" "))
}

/// I3: a store restored from the changelog alone.
fn restored(scene: &Scene, partition: i32, changelog: &[Row]) -> Memory {
    let mut store = Memory::new(scene.config.postings.clone(), Durability::OwnWal);
    for row in changelog.iter().filter(|row| row.partition == partition) {
        let change = Change::decode(row.key.as_deref().unwrap_or_default(), row.value.as_deref()).unwrap();
        store.apply_own_changes(&[change]).unwrap();
    }
    store
}

/// The rows of a store on disk after a restore from its changelog position to the end.
fn caught_up(
    scene: &Scene,
    directory: &Path,
    partition: i32,
    changelog: &[Row],
) -> Result<Vec<StateRow>, StoreError> {
    let durability = Durability::Changelog { partition };
    let options = RocksOptions::new(scene.config.postings.clone(), durability, Budget::default());
    let mut store = Rocks::open(directory, &options)?;
    let next = i64::try_from(store.changelog_next()?.unwrap_or(0)).unwrap();
    let rest: Vec<Change> = changelog
        .iter()
        .filter(|row| row.partition == partition && row.offset >= next)
        .map(|row| Change::decode(row.key.as_deref().unwrap_or_default(), row.value.as_deref()).unwrap())
        .collect();
    let attestor = store.attestor().unwrap();
    let end = u64::try_from(changelog.iter().map(|row| row.offset + 1).max().unwrap_or(0)).unwrap();
    for some in rest.chunks(500) {
        store.apply_changes(some, &attestor.attest(end))?;
    }
    store.dump()
}

/// A row's value; the position record without the ids and epochs that only the broker knows.
fn without_ids(row: &StateRow) -> Vec<u8> {
    let progress = (row.family == "meta").then(|| Change::decode(b"\x03", Some(&row.value)));
    let Some(Ok(Change::Progress(mut progress))) = progress else { return row.value.clone() };
    if let Some(position) = &mut progress.bus {
        (position.cluster, position.changelog, position.topic_id) = (None, None, None);
        position.leader_epoch = None;
    }
    Change::Progress(progress).encode().1.unwrap()
}

fn compare(what: &str, found: &[StateRow], wanted: &[StateRow], findings: &mut Findings) {
    let keyed = |rows: &[StateRow]| -> BTreeMap<(String, Vec<u8>), Vec<u8>> {
        rows.iter().map(|row| ((row.family.clone(), row.key.clone()), without_ids(row))).collect()
    };
    let (found, wanted) = (keyed(found), keyed(wanted));
    let name = |(family, key): &(String, Vec<u8>)| format!("{family} {}", key.escape_ascii());
    let less: Vec<String> = wanted.keys().filter(|key| !found.contains_key(*key)).map(name).collect();
    let more: Vec<String> = found.keys().filter(|key| !wanted.contains_key(*key)).map(name).collect();
    let other = found.iter().filter(|(key, value)| wanted.get(*key).is_some_and(|wanted| wanted != *value));
    let other: Vec<String> = other.map(|(key, _)| name(key)).collect();
    report(findings, &format!("{what}: rows missing"), &less);
    report(findings, &format!("{what}: rows too many"), &more);
    report(findings, &format!("{what}: rows that differ"), &other);
}
