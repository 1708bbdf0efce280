//! Random histories of state, and a model to check them against: plain maps, searched from end to end.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use samestory_engine::fingerprint::{Fingerprint, LANES, fingerprint};
use samestory_engine::index::{
    Change, ChangeKey, Cluster, Counters, Document, Durability, FileBeginning, FilePosition, IndexScheme,
    IndexSchemes, Judgement, Memory, Order, OutputTopic, Overdue, PostingList, Progress, Residence,
    SimHashBands, Store, View, Whereabouts,
};
use samestory_engine::lsh::{BandKey, Banding};
use samestory_engine::model::{
    ArticleId, BoundedStr, ClusterId, DocumentNumber, EventTime, Fraction, Lang, MatchType, Position,
    VerdictKind,
};
use samestory_engine::text::language::LANGUAGES;

/// Few ids, languages, times and words, so that the steps of a history collide.
#[derive(Clone, Debug)]
pub(crate) struct HistoryStep {
    pub(crate) what: u8,
    pub(crate) lang: usize,
    pub(crate) id: u8,
    pub(crate) words: Vec<u8>,
    pub(crate) time: i64,
    pub(crate) cluster: u64,
    pub(crate) same_number: bool,
}

pub(crate) fn step() -> impl Strategy<Value = HistoryStep> {
    let words = proptest::collection::vec(0u8..3, 0..12);
    (0u8..10, 0usize..3, 0u8..5, words, -3i64..3, 0u64..3, any::<bool>()).prop_map(
        |(what, lang, id, words, time, cluster, same_number)| HistoryStep {
            what,
            lang,
            id,
            words,
            time,
            cluster,
            same_number,
        },
    )
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<HistoryStep>> {
    proptest::collection::vec(step(), 0..40)
}

pub(crate) fn index_schemes() -> IndexSchemes {
    let banding = Banding::new(32, 4, LANES).unwrap();
    let common = IndexScheme { minhash: Some(banding), simhash: SimHashBands::None, samples: 4, shortest: 4 };
    let other = IndexScheme { minhash: None, simhash: SimHashBands::Of64, samples: 0, shortest: 0 };
    IndexSchemes::new(common).with(lang(1), other)
}

pub(crate) fn lang(n: usize) -> Lang {
    LANGUAGES[n % LANGUAGES.len()].lang
}

pub(crate) fn id(n: u8) -> ArticleId {
    ArticleId::new(["a", "ab", "b", "a\u{0}", "née"][usize::from(n) % 5]).unwrap()
}

pub(crate) fn time(n: i64) -> EventTime {
    EventTime::from_millis(n)
}

fn text(words: &[u8]) -> String {
    words.iter().map(|word| ["storm", "river", "rises"][usize::from(*word)]).collect::<Vec<_>>().join(" ")
}

pub(crate) fn sketch(lang_index: usize, words: &[u8]) -> Fingerprint {
    fingerprint(&text(words), &LANGUAGES[lang_index % LANGUAGES.len()], 7)
}

fn document(step: &HistoryStep, number: DocumentNumber) -> Document {
    let odd = step.time % 2 != 0;
    Document {
        number,
        id: id(step.id),
        language: lang(step.lang),
        fingerprint: sketch(step.lang, &step.words),
        title: odd.then(|| BoundedStr::new("Storm")),
        host: (!odd).then(|| BoundedStr::new("example.org")),
        url: None,
        published_at: odd.then(|| time(step.time)),
        event_time: time(step.time),
        last_seen: time(step.time),
        position: match odd {
            true => Position::Topic { topic: BoundedStr::new("articles.raw"), partition: 1, offset: 9 },
            false => Position::File { file: BoundedStr::new("a.ndjson"), line: 3 },
        },
        cluster: DocumentNumber(step.cluster),
        revision: 2,
        outlet: OutputTopic::Unique,
        judgement: Judgement {
            verdict: VerdictKind::NearDuplicate,
            match_type: Some(MatchType::Near),
            is_part: odd,
            duplicate_of: odd.then_some(DocumentNumber(1)),
            similarity: Fraction::new(0.83),
            confidence: Fraction::new(0.97),
        },
        flags: 5,
    }
}

fn residence(step: &HistoryStep) -> Residence {
    Residence {
        id: id(step.id),
        language: lang(step.lang),
        since: time(step.time),
        position: Position::Topic { topic: BoundedStr::new("articles.raw"), partition: 2, offset: step.time },
        whereabouts: match step.cluster {
            0 => Whereabouts::Moved { to: 7 },
            1 => Whereabouts::Gone,
            _ => Whereabouts::Published(OutputTopic::NearDuplicate),
        },
    }
}

/// Turns steps into changes. A number belongs to one article forever: it is kept, or a new one is assigned.
pub(crate) fn history(steps: &[HistoryStep]) -> Vec<Change> {
    let mut numbers: BTreeMap<(Lang, ArticleId), DocumentNumber> = BTreeMap::new();
    let mut progress = Progress::default();
    steps
        .iter()
        .map(|step| {
            let key = (lang(step.lang), id(step.id));
            match step.what {
                0..4 => {
                    let counters = progress.languages.entry(key.0).or_default();
                    let kept = numbers.get(&key).copied().filter(|_| step.same_number);
                    let number = kept.unwrap_or(DocumentNumber(counters.next_number));
                    counters.next_number = counters.next_number.max(number.0 + 1);
                    numbers.insert(key, number);
                    Change::Document(Arc::new(document(step, number)))
                }
                4 => Change::NoDocument(key.0, key.1),
                5 => Change::Cluster(Box::new(Cluster {
                    id: ClusterId { language: key.0, partition: 3, number: DocumentNumber(step.cluster) },
                    canonical: DocumentNumber(step.cluster + 1),
                    size: 3,
                    first_seen: time(step.time),
                    last_seen: time(step.time),
                    split_from: step.same_number.then(|| ClusterId {
                        language: lang(step.lang),
                        partition: 3,
                        number: DocumentNumber(1),
                    }),
                    canonical_changed_from: step.same_number.then(|| id(step.id)),
                    hosts: ["a.org", "b.org"].map(BoundedStr::new).into_iter().collect(),
                })),
                6 => Change::ClusterDeleted(key.0, DocumentNumber(step.cluster)),
                8 => Change::Residence(Box::new(residence(step))),
                9 => Change::NoResidence(key.1),
                _ => {
                    let counters: &mut Counters = progress.languages.entry(key.0).or_default();
                    counters.stream_time = counters.stream_time.max(Some(time(step.time)));
                    let path = BoundedStr::new("/articles.ndjson");
                    progress.files.inputs.insert(path, file_position(step.cluster, step.same_number));
                    Change::Progress(progress.clone())
                }
            }
        })
        .collect()
}

fn file_position(next: u64, has_beginning: bool) -> FilePosition {
    let begins = FileBeginning { bytes: if has_beginning { 4096 } else { 0 }, hash: 7 };
    FilePosition { next, begins }
}

/// A position that counts batches.
#[cfg(feature = "rocksdb")]
pub(crate) fn progress(batches: u64) -> Change {
    let mut progress = Progress::default();
    progress.files.inputs.insert(BoundedStr::new("/batches"), file_position(batches, false));
    Change::Progress(progress)
}

/// The number of batches in such a position.
#[cfg(feature = "rocksdb")]
pub(crate) fn batches(progress: &Progress) -> u64 {
    progress.files.inputs.get(&BoundedStr::new("/batches")).map_or(0, |file| file.next)
}

pub(crate) fn memory() -> Memory {
    Memory::new(index_schemes(), Durability::OwnWal)
}

pub(crate) fn applied(changes: &[Change]) -> Memory {
    let mut store = memory();
    store.apply_own_changes(changes).unwrap();
    store
}

/// The result of compaction: the last record of each key, in log order.
pub(crate) fn compacted(changes: &[Change]) -> Vec<Change> {
    let last: BTreeMap<ChangeKey, usize> =
        changes.iter().enumerate().map(|(at, change)| (change.key(), at)).collect();
    changes
        .iter()
        .enumerate()
        .filter(|(at, change)| last[&change.key()] == *at)
        .map(|(_, change)| change.clone())
        .collect()
}

/// The model: plain maps.
#[derive(Default)]
struct Model {
    documents: BTreeMap<(Lang, ArticleId), Document>,
    clusters: BTreeMap<(Lang, DocumentNumber), Cluster>,
    residences: BTreeMap<ArticleId, Residence>,
    progress: Progress,
}

impl Model {
    fn after(changes: &[Change]) -> Model {
        let mut model = Model::default();
        for change in changes {
            match change.clone() {
                Change::Document(document) => {
                    let key = (document.language, document.id.clone());
                    model.documents.insert(key, Arc::unwrap_or_clone(document));
                }
                Change::NoDocument(lang, id) => drop(model.documents.remove(&(lang, id))),
                Change::Cluster(cluster) => {
                    model.clusters.insert((cluster.id.language, cluster.id.number), *cluster);
                }
                Change::ClusterDeleted(lang, founder) => drop(model.clusters.remove(&(lang, founder))),
                Change::Progress(progress) => model.progress = progress,
                Change::Residence(row) => drop(model.residences.insert(row.id.clone(), *row)),
                Change::NoResidence(id) => drop(model.residences.remove(&id)),
            }
        }
        model
    }

    fn documents_in(&self, lang: Lang) -> impl Iterator<Item = &Document> {
        self.documents.values().filter(move |document| document.language == lang)
    }

    fn posting_list(mut numbers: Vec<DocumentNumber>, order: Order, cap: usize) -> PostingList {
        numbers.sort_unstable();
        if order == Order::Descending {
            numbers.reverse();
        }
        let more = numbers.len() > cap;
        numbers.truncate(cap);
        PostingList { numbers, more }
    }
}

fn below(limit: Option<u64>, number: DocumentNumber) -> bool {
    limit.is_none_or(|limit| number.0 < limit)
}

/// Runs every query and compares the answers with a full search of the model.
pub(crate) fn assert_reads_like_the_model(
    view: &impl View,
    changes: &[Change],
    cap: usize,
    edge: Option<u64>,
) {
    let model = Model::after(changes);
    assert_eq!(view.progress().unwrap(), model.progress);
    for article in (0..5).map(id) {
        let mut holding: Vec<Lang> =
            model.documents.keys().filter(|key| key.1 == article).map(|key| key.0).collect();
        holding.sort_unstable();
        assert_eq!(view.languages_of(&article).unwrap(), holding);
        assert_eq!(view.residence(&article).unwrap(), model.residences.get(&article).cloned());
    }
    for lang in (0..3).map(lang) {
        assert_eq!(
            view.counters(lang).unwrap(),
            model.progress.languages.get(&lang).cloned().unwrap_or_default()
        );
        let numbers: Vec<DocumentNumber> = (0..45).map(DocumentNumber).collect();
        let expected: Vec<Option<Document>> = numbers
            .iter()
            .map(|&number| model.documents_in(lang).find(|document| document.number == number).cloned())
            .collect();
        assert_eq!(view.documents(lang, &numbers).unwrap(), expected);
        for article in (0..5).map(id) {
            let number = model.documents.get(&(lang, article.clone())).map(|document| document.number);
            assert_eq!(view.number_of(lang, &article).unwrap(), number);
        }
        let posting = *index_schemes().for_language(lang);
        let mut keys: Vec<BandKey> = changes
            .iter()
            .filter_map(|change| match change {
                Change::Document(document) if document.language == lang => {
                    Some(posting.keys(&document.fingerprint))
                }
                _ => None,
            })
            .flatten()
            .collect();
        keys.extend([BandKey { band: 0, hash: 0 }, BandKey { band: u16::MAX, hash: u64::MAX }]);
        let bucket = |key: BandKey, limit: Option<u64>| {
            let posted = |document: &&Document| posting.keys(&document.fingerprint).contains(&key);
            let numbers = model.documents_in(lang).filter(posted).map(|document| document.number);
            Model::posting_list(
                numbers.filter(|&number| below(limit, number)).collect(),
                Order::Descending,
                cap,
            )
        };
        let expected: Vec<PostingList> = keys.iter().map(|&key| bucket(key, None)).collect();
        assert_eq!(view.buckets(lang, &keys, cap).unwrap(), expected);
        for &key in &keys {
            assert_eq!(view.bucket(lang, key, edge.map(DocumentNumber), cap).unwrap(), bucket(key, edge));
        }
        for founder in (0..4).map(DocumentNumber) {
            assert_eq!(view.cluster(lang, founder).unwrap(), model.clusters.get(&(lang, founder)).cloned());
            for order in [Order::Ascending, Order::Descending] {
                let beyond = |number: DocumentNumber| match (order, edge) {
                    (_, None) => true,
                    (Order::Ascending, Some(edge)) => number.0 > edge,
                    (Order::Descending, Some(edge)) => number.0 < edge,
                };
                let of = model
                    .documents_in(lang)
                    .filter(|document| document.cluster == founder)
                    .map(|document| document.number);
                let expected = Model::posting_list(of.filter(|&number| beyond(number)).collect(), order, cap);
                let found = view.members(lang, founder, order, edge.map(DocumentNumber), cap).unwrap();
                assert_eq!(found, expected);
            }
        }
        for horizon in (-4..4).chain([i64::MIN, i64::MAX]).map(time) {
            let documents = model
                .documents_in(lang)
                .map(|document| (document.last_seen, Overdue::Document(document.number)));
            let residences = model.residences.values().filter(|row| row.language == lang);
            let residences = residences.map(|row| (row.since, Overdue::Residence(row.id.clone())));
            let mut due: Vec<(EventTime, Overdue)> =
                documents.chain(residences).filter(|(seen, _)| *seen <= horizon).collect();
            due.sort_unstable();
            let due: Vec<Overdue> = due.into_iter().take(cap).map(|(_, about)| about).collect();
            assert_eq!(view.overdue(lang, horizon, cap).unwrap(), due);
        }
    }
}
