//! Relocations between partitions of match that run at different speeds: consumers that treat a tombstone as a delete
//! must never lose a live article.
//!
//! Each partition is a [`Replay`], fed record by record. A relocation notice is appended to the log of its destination,
//! and every record on an output topic is collected in the order in which it is written.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::{Config, Settings, home};
use crate::kafka::route::decode::Decoder;
use crate::kafka::route::routing::{RouteOutput, Routing};
use crate::kafka::tools::replay::{Read, Replay};
use crate::kafka::tools::route_model::{events, is_notice};
use crate::kafka::turn::record::Record;
use samestory_engine::engine::EmptyUpdate;
use samestory_engine::index::{Document, OutputTopic, Residence, View, Whereabouts};
use samestory_engine::model::{ArticleId, EventTime, Position, TopicId};
use samestory_engine::text::language::find;

/// `und`, then three languages.
const PARTITIONS: i32 = 4;
const EN: i32 = 1;
const FR: i32 = 2;
const DE: i32 = 3;
const HOUR: i64 = 3_600_000;

/// A seeded generator of pseudo-random numbers.
struct SeededRandom(u64);

impl SeededRandom {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Seventy words that depend only on the number of the story: equal numbers give equal texts.
fn text(story: u64) -> String {
    const WORDS: [&str; 8] = ["harbour", "storm", "council", "bridge", "river", "school", "ferry", "market"];
    let mut order = SeededRandom(story + 1);
    let mut word = || format!("{}{}", WORDS[order.below(8) as usize], WORDS[order.below(8) as usize]);
    (0..70).map(|_| word()).collect::<Vec<_>>().join(" ")
}

/// A version of an article as the crawler writes it.
#[derive(Clone)]
struct SimulatedVersion {
    id: String,
    /// Language and story; `None` for a delete.
    article: Option<(&'static str, u64)>,
    /// Event time; `None` means now.
    fetched_at: Option<i64>,
    /// Bytes to add to the record besides the text.
    ballast: usize,
}

fn article(id: &str, language: &'static str, story: u64) -> SimulatedVersion {
    SimulatedVersion { id: id.to_owned(), article: Some((language, story)), fetched_at: None, ballast: 0 }
}

fn delete(id: &str) -> SimulatedVersion {
    SimulatedVersion { id: id.to_owned(), article: None, fetched_at: None, ballast: 0 }
}

/// A record on an output topic.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PublishedRecord {
    /// The partition that wrote it.
    writer: i32,
    topic: OutputTopic,
    id: String,
    /// Offset of the raw record.
    offset: i64,
    /// False for a tombstone.
    live: bool,
}

struct SimulatedBus {
    config: Config,
    routing: Routing,
    /// The next raw offset, and the time of the next raw record.
    next: i64,
    now: i64,
    logs: Vec<Vec<Read>>,
    /// Per partition: how far it has read its log, and the highest raw offset in what it has read.
    read_up_to: Vec<usize>,
    highest_read: Vec<i64>,
    matches: Vec<Replay>,
    published: Vec<PublishedRecord>,
    /// Relocation notices: sender and destination.
    notices: Vec<(usize, i32)>,
    is_single: bool,
}

impl SimulatedBus {
    fn new(settings: &str) -> SimulatedBus {
        const LANGUAGES: &str = "[language]\ntrust = \"declared\"\n[stage]\nlanguages = [\"en\", \"fr\", \"de\"]\n[match]\nretention = \"1h\"\n";
        let config = |settings: &str| -> Config {
            let settings: Settings = toml::from_str(settings).unwrap();
            Config::try_from(settings).unwrap()
        };
        // Limits of the output topics apply to match only: route gets settings without them.
        let routes = config(LANGUAGES);
        let config = config(&format!("{LANGUAGES}{settings}"));
        let routing = Routing {
            decoder: Decoder::new(&routes, true, None),
            languages: config.bus.languages.clone(),
            topic: config.bus.topics.raw.clone(),
            topic_id: TopicId::from_halves(7, 7),
            partitions: PARTITIONS,
            limit: usize::MAX,
            refuses_empty: config.engine.empty_update == EmptyUpdate::Refuse,
        };
        let count = PARTITIONS as usize;
        SimulatedBus {
            routing,
            next: 0,
            now: 1_772_000_000_000,
            logs: vec![Vec::new(); count],
            read_up_to: vec![0; count],
            highest_read: vec![-1; count],
            matches: (0..PARTITIONS).map(|at| Replay::new(&config, at, PARTITIONS)).collect(),
            published: Vec::new(),
            notices: Vec::new(),
            is_single: config.bus.topics.unique == config.bus.topics.near_duplicate,
            config,
        }
    }

    /// Routes these versions in one batch.
    fn route(&mut self, versions: &[SimulatedVersion]) {
        self.route_as(versions, false);
    }

    fn route_as(&mut self, versions: &[SimulatedVersion], silent: bool) {
        let mut outbox = self.routing.outbox();
        outbox.set_silent(silent);
        let mut records = Vec::new();
        for version in versions {
            let value = version.article.map(|(language, story)| {
                let (id, body, fetched_at) = (&version.id, text(story), version.fetched_at.unwrap_or(self.now));
                let ballast = "x".repeat(version.ballast);
                format!(
                    r#"{{"id":"{id}","language":"{language}","fetched_at":{fetched_at},"body":"{body}","ballast":"{ballast}"}}"#
                )
            });
            records.push(Record {
                offset: self.next,
                time: Some(EventTime::from_millis(self.now)),
                key: Some(version.id.clone().into_bytes()),
                value: value.map(String::into_bytes),
                ..Record::default()
            });
            self.next += 1;
            self.now += 1;
        }
        self.routing.route(0, records, EventTime::from_millis(self.now), &mut outbox);
        for send in outbox.finish() {
            let RouteOutput::Routed { partition, key, value, headers, time } = send else {
                panic!("{send:?}")
            };
            let time = time.map(EventTime::millis);
            self.append(
                partition,
                Read { time, key: Some(key), value: Some(value), headers, ..Read::default() },
            );
        }
    }

    fn append(&mut self, partition: i32, read: Read) {
        let log = &mut self.logs[partition as usize];
        let offset = log.len() as i64;
        log.push(Read { offset, ..read });
    }

    /// Lets one partition read one record. Returns false if it has read its whole log.
    fn read_one(&mut self, at: usize) -> bool {
        let Some(read) = self.logs[at].get(self.read_up_to[at]).cloned() else { return false };
        self.read_up_to[at] += 1;
        for event in events(read.value.as_deref().unwrap()).unwrap() {
            self.highest_read[at] = self.highest_read[at].max(event.offset);
        }
        let time = read.time;
        for sent in self.matches[at].take(read).unwrap() {
            let names = &self.config.bus.topics;
            let topic = match sent.topic {
                topic if topic == names.routed => {
                    let to = sent.partition.unwrap();
                    assert!(is_notice(sent.value.as_deref().unwrap()).unwrap());
                    self.notices.push((at, to));
                    let (key, value, headers) = (sent.key, sent.value, sent.headers);
                    self.append(to, Read { time, key, value, headers, ..Read::default() });
                    continue;
                }
                topic if topic == names.unique => OutputTopic::Unique,
                topic if topic == names.near_duplicate => OutputTopic::NearDuplicate,
                _ => continue,
            };
            let (_, offset) = sent.headers.iter().find(|(name, _)| name == "samestory-offset").unwrap();
            let record = PublishedRecord {
                writer: at as i32,
                topic,
                id: String::from_utf8(sent.key.unwrap()).unwrap(),
                offset: String::from_utf8(offset.clone().unwrap()).unwrap().parse().unwrap(),
                live: sent.value.is_some(),
            };
            self.check_tombstone(&record);
            self.published.push(record);
        }
        true
    }

    /// Checks that no partition that knows of a move retracts what the new home has published: a partition may retract
    /// the topic of the newest version only if it has not yet read that the article moved away.
    fn check_tombstone(&self, record: &PublishedRecord) {
        let offset = |document: &Document| match document.position {
            Position::Topic { offset, .. } => offset,
            Position::File { .. } => panic!("a file"),
        };
        let documents = (0..PARTITIONS).filter_map(|at| Some((self.document(at, &record.id)?, at)));
        let Some((newest, home)) = documents.max_by_key(|(document, _)| offset(document)) else { return };
        // A tombstone for a version later than every stored one is right: that version is a delete or a dead letter.
        if !record.live
            && record.offset <= offset(&newest)
            && newest.outlet.and(record.topic) == newest.outlet
        {
            let highest_read = self.highest_read[record.writer as usize];
            // The writer has read a delete that the home has not read yet, and no later version.
            let gone = self.residence(record.writer, &record.id) == Some(Whereabouts::Gone);
            assert!(
                gone || home != record.writer && highest_read < offset(&newest),
                "{record:?} retracts an article that lives in {home}: {:?}",
                self.histories(&record.id)
            );
        }
    }

    /// Lets a partition read its whole log.
    fn drain(&mut self, partition: i32) {
        while self.read_one(partition as usize) {}
    }

    /// Lets all partitions read, in this order, until no log has an unread record.
    fn settle(&mut self, order: &[i32]) {
        while (0..self.logs.len()).any(|at| self.read_up_to[at] < self.logs[at].len()) {
            (0..PARTITIONS).filter(|at| !order.contains(at)).for_each(|at| self.drain(at));
            order.iter().for_each(|&at| self.drain(at));
        }
    }

    /// Lets all partitions read a few records at a time, in random order.
    fn settle_randomly(&mut self, random: &mut SeededRandom) {
        while (0..self.logs.len()).any(|at| self.read_up_to[at] < self.logs[at].len()) {
            let (at, records) = (random.below(PARTITIONS as u64), 1 + random.below(6));
            for _ in 0..records {
                self.read_one(at as usize);
            }
        }
    }

    /// A topic as a consumer sees it that treats a tombstone as a delete: by id, the source offset.
    fn table(&self, topic: OutputTopic) -> BTreeMap<String, i64> {
        let mut table = BTreeMap::new();
        for record in self.published.iter().filter(|record| record.topic == topic) {
            match record.live {
                true => drop(table.insert(record.id.clone(), record.offset)),
                false => drop(table.remove(&record.id)),
            }
        }
        table
    }

    /// The same for a consumer that ignores records and tombstones with a lower source offset than it has seen.
    fn table_by_offset(&self, topic: OutputTopic) -> BTreeSet<String> {
        let mut last: BTreeMap<String, (i64, bool)> = BTreeMap::new();
        for record in self.published.iter().filter(|record| record.topic == topic) {
            let held = last.entry(record.id.clone()).or_insert((-1, false));
            if record.offset >= held.0 {
                *held = (record.offset, record.live);
            }
        }
        last.into_iter().filter(|(_, (_, live))| *live).map(|(id, _)| id).collect()
    }

    fn document(&self, at: i32, id: &str) -> Option<Document> {
        let (store, id) = (self.matches[at as usize].store(), ArticleId::new(id).unwrap());
        let language = *store.languages_of(&id).unwrap().first()?;
        store.document(language, store.number_of(language, &id).unwrap()?).unwrap()
    }

    fn residence(&self, at: i32, id: &str) -> Option<Whereabouts> {
        let row = self.matches[at as usize].store().residence(&ArticleId::new(id).unwrap()).unwrap();
        row.map(|Residence { whereabouts, .. }| whereabouts)
    }

    /// The ids that live on a topic according to the documents of all partitions.
    fn living(&self, topic: OutputTopic, ids: &BTreeSet<String>) -> BTreeSet<String> {
        let lives = |id: &&String| {
            let documents = (0..PARTITIONS).filter_map(|at| self.document(at, id));
            let documents: Vec<Document> = documents.collect();
            assert!(documents.len() <= 1, "{id} has two homes");
            documents.iter().any(|document| document.outlet.and(topic) == document.outlet)
        };
        ids.iter().filter(lives).cloned().collect()
    }

    /// Records and tombstones of an id on a topic, in order, with source offsets: `r7`, `t8`.
    fn history(&self, topic: OutputTopic, id: &str) -> String {
        let records = self.published.iter().filter(|record| record.topic == topic && record.id == id);
        let records =
            records.map(|record| format!("{}{}", if record.live { 'r' } else { 't' }, record.offset));
        records.collect::<Vec<_>>().join(" ")
    }

    fn histories(&self, id: &str) -> [String; 2] {
        [OutputTopic::Unique, OutputTopic::NearDuplicate].map(|topic| self.history(topic, id))
    }

    /// Routes articles that advance the stream time of a language by at least an hour and a half.
    fn let_time_pass(&mut self, language: &'static str) {
        self.now += 3 * HOUR / 2;
        let story = 1_000_000 + self.next as u64;
        let others: Vec<SimulatedVersion> =
            (0..6).map(|n| article(&format!("later-{story}-{n}"), language, story + n)).collect();
        self.route(&others);
    }
}

#[test]
fn languages_live_where_these_tests_expect_them() {
    let bus = SimulatedBus::new("");
    let at = |code| home(&bus.config.bus.languages, find(code).unwrap().lang, PARTITIONS);
    assert_eq!(["en", "fr", "de"].map(at), [EN, FR, DE]);
}

// An update moved an article to another language and so to another partition. The old partition wrote tombstones after
// the new one had published the article: a KTable or a Connect sink deleted a live article.
#[test]
fn the_former_home_writes_no_tombstone() {
    for order in [[EN, FR], [FR, EN]] {
        let mut bus = SimulatedBus::new("");
        bus.route(&[article("other", "fr", 2), article("x", "en", 1)]);
        bus.settle(&order);
        // First to the same output topic, then to the other one.
        bus.route(&[article("x", "fr", 3)]);
        bus.settle(&order);
        assert_eq!(bus.histories("x"), ["r1 r2", ""], "{order:?}");
        assert_eq!(bus.residence(EN, "x"), Some(Whereabouts::Moved { to: FR }));
        assert_eq!(bus.notices, [(EN as usize, FR)]);
        bus.route(&[article("y", "en", 4), article("z", "en", 5)]);
        bus.settle(&order);
        bus.route(&[article("y", "fr", 2)]);
        bus.settle(&order);
        assert_eq!(bus.histories("y"), ["r3 t5", "r5"], "the new home retracts it");
        let tombstone = bus.published.iter().find(|record| !record.live).unwrap();
        assert_eq!(tombstone.writer, FR, "{order:?}");
    }
}

#[test]
fn an_article_that_moves_back_stays_published() {
    for order in [[EN, FR], [FR, EN]] {
        let mut bus = SimulatedBus::new("");
        bus.route(&[article("other", "fr", 2), article("x", "en", 1)]);
        bus.settle(&order);
        for (round, offset) in [(0, 2), (1, 4)] {
            bus.route(&[article("x", "fr", 2)]);
            bus.settle(&order);
            bus.route(&[article("x", "en", 10 + round)]);
            bus.settle(&order);
            assert_eq!(
                bus.table(OutputTopic::Unique).get("x"),
                Some(&(offset + 1)),
                "{:?}",
                bus.histories("x")
            );
            assert_eq!(bus.table(OutputTopic::NearDuplicate).get("x"), None, "{:?}", bus.histories("x"));
        }
        assert_eq!(
            (bus.residence(EN, "x"), bus.residence(FR, "x")),
            (None, Some(Whereabouts::Moved { to: EN }))
        );
    }
}

/// Both moves are in one batch of route, and the partition in the middle reads last, or first.
#[test]
fn a_notice_follows_an_article_that_moves_twice_in_one_batch() {
    for order in [[EN, FR], [FR, EN]] {
        let mut bus = SimulatedBus::new("");
        bus.route(&[article("other", "fr", 2), article("x", "en", 1)]);
        bus.settle(&order);
        bus.route(&[article("x", "fr", 2), article("x", "en", 3)]);
        bus.settle(&order);
        // The notice reaches the middle partition after the second move, which sends it back.
        assert_eq!(bus.histories("x"), ["r1 r3", "r2 t3"], "{order:?}");
        assert!(bus.notices.contains(&(FR as usize, EN)));
    }
}

#[test]
fn a_notice_is_forwarded_to_the_current_home() {
    let mut bus = SimulatedBus::new("");
    bus.route(&[article("other", "de", 2), article("x", "en", 1)]);
    bus.settle(&[EN, FR, DE]);
    bus.route(&[article("x", "fr", 3)]);
    bus.route(&[article("x", "de", 2)]);
    // The middle partition reads both moves before the first one reads anything.
    [FR, DE, EN, FR, DE].into_iter().for_each(|at| bus.drain(at));
    assert_eq!(bus.notices, [(FR as usize, DE), (EN as usize, FR), (FR as usize, DE)]);
    // One tombstone for the first home's record, one for the second home's.
    assert_eq!(bus.histories("x"), ["r1 r2 t3 t2", "r3"]);
    assert_eq!(bus.residence(EN, "x"), Some(Whereabouts::Moved { to: DE }), "it knows the current home");
}

#[test]
fn a_delete_during_a_move_leaves_nothing_published() {
    for order in [[EN, FR], [FR, EN]] {
        let mut bus = SimulatedBus::new("");
        bus.route(&[article("other", "fr", 2)]);
        bus.settle(&order);
        // The first home publishes the article after the second one has deleted it.
        bus.route(&[article("x", "en", 1), article("x", "fr", 2), delete("x")]);
        bus.settle(&order);
        for topic in [OutputTopic::Unique, OutputTopic::NearDuplicate] {
            assert_eq!(bus.table(topic).get("x"), None, "{order:?}: {:?}", bus.histories("x"));
        }
        assert_eq!(
            (bus.residence(EN, "x"), bus.residence(FR, "x")),
            (Some(Whereabouts::Gone), Some(Whereabouts::Gone))
        );
        assert!(bus.document(EN, "x").is_none() && bus.document(FR, "x").is_none());
    }
}

#[test]
fn a_relocated_version_that_is_a_dead_letter_retracts_the_old_one() {
    for order in [[EN, FR], [FR, EN]] {
        let mut bus = SimulatedBus::new("[topics]\nmax_message_bytes = 100000\n");
        bus.route(&[article("x", "en", 1)]);
        bus.settle(&order);
        bus.route(&[SimulatedVersion { ballast: 60_000, ..article("x", "fr", 2) }]);
        bus.settle(&order);
        assert_eq!(bus.histories("x"), ["r0 t1", ""], "{order:?}");
        assert_eq!(bus.residence(FR, "x"), Some(Whereabouts::Gone));
        // A later version can be published again.
        bus.route(&[article("x", "fr", 2)]);
        bus.settle(&order);
        assert_eq!(bus.histories("x"), ["r0 t1 r2", ""]);
        assert_eq!(bus.residence(FR, "x"), None);
        // A dead letter for an article that lives in this partition retracts nothing.
        bus.route(&[SimulatedVersion { ballast: 60_000, ..article("x", "fr", 5) }]);
        bus.settle(&order);
        assert_eq!(bus.table(OutputTopic::Unique).get("x"), Some(&2));
    }
}

#[test]
fn an_article_that_arrives_expired_is_remembered_as_published() {
    for order in [[EN, FR], [FR, EN]] {
        let mut bus = SimulatedBus::new("");
        bus.let_time_pass("fr");
        bus.let_time_pass("en");
        let other = bus.next;
        bus.route(&[article("other", "fr", 2), article("x", "en", 1)]);
        bus.settle(&order);
        let old = Some(bus.now - 5 * HOUR);
        bus.route(&[SimulatedVersion { fetched_at: old, ..article("x", "fr", 2) }]);
        bus.settle(&order);
        let (first, second) = (other + 1, other + 2);
        let moved = [format!("r{first} t{second}"), format!("r{second}")];
        assert_eq!(bus.histories("x"), moved, "{order:?}");
        assert_eq!(bus.residence(FR, "x"), Some(Whereabouts::Published(OutputTopic::NearDuplicate)));
        assert!(bus.document(FR, "x").is_none());
        // When it moves again, its record there is retracted too.
        bus.route(&[article("x", "en", 7)]);
        bus.settle(&order);
        let [unique, near] = bus.histories("x");
        assert_eq!(unique, format!("{} r{}", moved[0], second + 1));
        assert_eq!(near, format!("r{second} t{}", second + 1));
        assert_eq!(bus.residence(FR, "x"), Some(Whereabouts::Moved { to: EN }));
        // A delete also retracts an article that was published but not stored.
        bus.route(&[SimulatedVersion { fetched_at: old, ..article("x", "fr", 2) }]);
        bus.settle(&order);
        bus.route(&[delete("x")]);
        bus.settle(&order);
        let tables =
            [OutputTopic::Unique, OutputTopic::NearDuplicate].map(|topic| bus.table(topic).contains_key("x"));
        assert_eq!(tables, [false, false], "{:?}", bus.histories("x"));
    }
}

#[test]
fn a_silent_record_sends_no_notice() {
    let mut bus = SimulatedBus::new("");
    bus.route_as(&[article("other", "fr", 2), article("x", "en", 1), article("x", "fr", 3)], true);
    bus.settle(&[EN, FR]);
    assert_eq!((bus.published.len(), bus.notices.len()), (0, 0), "the old generation has published it");
    assert_eq!(bus.residence(EN, "x"), Some(Whereabouts::Moved { to: FR }));
    // The first record that is not silent moves the article that the old generation published.
    bus.route(&[article("x", "en", 2)]);
    bus.settle(&[EN, FR]);
    assert_eq!(bus.notices, [(FR as usize, EN)]);
    assert_eq!(bus.histories("x"), ["r3", ""], "the output topic is the same");
    bus.route(&[article("x", "fr", 2)]);
    bus.settle(&[EN, FR]);
    assert_eq!(bus.histories("x"), ["r3 t4", "r4"]);
}

#[test]
fn versions_before_publish_from_retract_nothing() {
    let from = 1_772_000_000_000 + 10 * HOUR;
    let mut bus = SimulatedBus::new("[output]\npublish_from = \"2026-02-25T16:13:20Z\"\n");
    assert_eq!(bus.config.engine.publish_from, Some(EventTime::from_millis(from)));
    bus.route(&[article("x", "en", 1), article("x", "fr", 3), article("x", "en", 4)]);
    bus.settle(&[EN, FR]);
    assert_eq!(
        (bus.published.len(), bus.notices.len()),
        (0, 0),
        "an unpublished article needs no retraction"
    );
    bus.now = from + HOUR;
    bus.route(&[article("other", "fr", 2), article("y", "en", 5)]);
    bus.settle(&[EN, FR]);
    // A late version from before that time is not published, and the published record stays.
    bus.now = from - HOUR / 4;
    let late = bus.next;
    bus.route(&[article("y", "fr", 6)]);
    bus.settle(&[EN, FR]);
    assert_eq!(bus.histories("y"), ["r4", ""]);
    assert_eq!(
        bus.document(FR, "y").unwrap().outlet,
        OutputTopic::Unique,
        "the new home is responsible for it now"
    );
    bus.now = from + HOUR;
    bus.route(&[article("y", "fr", 2)]);
    bus.settle(&[EN, FR]);
    assert_eq!(bus.histories("y"), [format!("r4 t{}", late + 1), format!("r{}", late + 1)]);
}

#[test]
fn on_a_single_topic_only_deleted_articles_are_retracted() {
    for order in [[EN, FR], [FR, EN]] {
        let mut bus =
            SimulatedBus::new("[output]\ntopics = \"single\"\n[topics]\nmax_message_bytes = 100000\n");
        assert!(bus.is_single);
        bus.route(&[article("other", "fr", 2), article("x", "en", 1), article("y", "en", 4)]);
        bus.settle(&order);
        bus.route(&[article("x", "fr", 2), SimulatedVersion { ballast: 60_000, ..article("y", "fr", 3) }]);
        bus.settle(&order);
        assert_eq!(bus.history(OutputTopic::Unique, "x"), "r1 r3", "{order:?}");
        assert_eq!(bus.history(OutputTopic::Unique, "y"), "r2 t4", "{order:?}");
    }
}

#[test]
fn residences_expire_with_their_language() {
    let mut bus = SimulatedBus::new("");
    bus.let_time_pass("en");
    bus.let_time_pass("fr");
    bus.route(&[article("x", "en", 1), article("y", "en", 2), article("z", "en", 3)]);
    bus.settle(&[EN, FR]);
    bus.route(&[article("x", "fr", 3), delete("y")]);
    [FR, EN].into_iter().for_each(|at| bus.drain(at));
    assert_eq!(bus.residence(EN, "x"), Some(Whereabouts::Moved { to: FR }));
    assert_eq!(bus.residence(EN, "y"), Some(Whereabouts::Gone));
    // The retention passes in the new home before it reads the notice.
    bus.let_time_pass("fr");
    let last = bus.logs[FR as usize].len();
    let log = &mut bus.logs[FR as usize];
    let at = log.iter().position(|read| is_notice(read.value.as_deref().unwrap()).unwrap()).unwrap();
    let notice = log.remove(at);
    log.push(notice);
    assert_eq!(log.len(), last);
    bus.let_time_pass("en");
    let before = bus.published.len();
    bus.settle(&[EN, FR]);
    assert_eq!((bus.residence(EN, "x"), bus.residence(EN, "y")), (None, None));
    assert!(
        bus.published[before..].iter().all(|record| record.id.starts_with("later")),
        "the residences have expired"
    );
}

/// A partition may send its notices again.
#[test]
fn a_repeated_notice_changes_nothing() {
    let mut bus = SimulatedBus::new("");
    let moves = ["en", "fr", "de", "fr", "en", "de"];
    bus.route(&[article("other", "fr", 2), article("more", "de", 2)]);
    for (story, language) in (1..).zip(moves) {
        bus.route(&[article("x", language, 1 + story % 3)]);
        bus.settle(&[EN, FR, DE]);
    }
    let ids = BTreeSet::from(["x".to_owned()]);
    let living = [OutputTopic::Unique, OutputTopic::NearDuplicate].map(|topic| bus.living(topic, &ids));
    for at in 0..PARTITIONS {
        let notices = bus.logs[at as usize].clone().into_iter();
        let notices = notices.filter(|read| is_notice(read.value.as_deref().unwrap()).unwrap());
        for notice in notices.collect::<Vec<_>>() {
            bus.append(at, notice);
        }
    }
    bus.settle(&[DE, FR, EN]);
    let tables = [OutputTopic::Unique, OutputTopic::NearDuplicate]
        .map(|topic| bus.table(topic).into_keys().filter(|id| id == "x").collect::<BTreeSet<_>>());
    assert_eq!(tables, living, "{:?}", bus.histories("x"));
}

/// A random version of an article. There are few texts, so both unique articles and duplicates occur.
fn random_version(random: &mut SeededRandom, id: u64) -> SimulatedVersion {
    let id = format!("a{id}");
    match random.below(8) {
        0 => delete(&id),
        _ => article(&id, ["en", "fr", "de"][random.below(3) as usize], random.below(12)),
    }
}

/// One move per article and round, partitions at any speed: after each round a consumer that treats a tombstone as a
/// delete is right.
#[test]
fn no_tombstone_deletes_a_live_article_at_any_speed() {
    let ids: BTreeSet<String> = (0..10).map(|id| format!("a{id}")).collect();
    for seed in 0..40 {
        let mut random = SeededRandom(seed);
        let mut bus = SimulatedBus::new("");
        for round in 0..25 {
            let versions: Vec<SimulatedVersion> = (0..10).map(|id| random_version(&mut random, id)).collect();
            let versions: Vec<SimulatedVersion> =
                versions.into_iter().filter(|_| random.below(3) > 0).collect();
            let cut = random.below(versions.len() as u64 + 1) as usize;
            bus.route(&versions[..cut]);
            bus.route(&versions[cut..]);
            bus.settle_randomly(&mut random);
            for topic in [OutputTopic::Unique, OutputTopic::NearDuplicate] {
                let table: BTreeSet<String> = bus.table(topic).into_keys().collect();
                assert_eq!(table, bus.living(topic, &ids), "seed {seed}, round {round}, {topic:?}");
            }
        }
        assert!(bus.notices.len() > 30, "{} notices", bus.notices.len());
    }
}

/// A partition may lag behind several moves. Then it may publish or retract a version that another partition has replaced
/// ([`SimulatedBus::check_tombstone`] checks that only a lagging partition does), and consumers recognise it by the source offset.
#[test]
fn the_source_offset_identifies_records_of_a_lagging_partition() {
    let ids: BTreeSet<String> = (0..6).map(|id| format!("a{id}")).collect();
    let mut forwarded = 0;
    for seed in 100..140 {
        let mut random = SeededRandom(seed);
        let mut bus = SimulatedBus::new("");
        for _ in 0..12 {
            let versions: Vec<SimulatedVersion> = (0..random.below(12))
                .map(|_| {
                    let id = random.below(6);
                    random_version(&mut random, id)
                })
                .collect();
            bus.route(&versions);
            for _ in 0..random.below(30) {
                let at = random.below(PARTITIONS as u64);
                bus.read_one(at as usize);
            }
        }
        bus.settle_randomly(&mut random);
        forwarded += bus.notices.len();
        for topic in [OutputTopic::Unique, OutputTopic::NearDuplicate] {
            assert_eq!(bus.table_by_offset(topic), bus.living(topic, &ids), "seed {seed}, {topic:?}");
        }
    }
    assert!(forwarded > 500, "{forwarded} notices");
}
