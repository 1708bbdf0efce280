//! Compares the engine with an oracle over random histories: every output and the resulting state.
//!
//! The [`model`] is a second implementation of the verdict table and the rules for clusters, over plain maps,
//! with a full search instead of every index. [`histories`] generates articles that interact.

mod histories;
mod model;
mod write_set;

use std::collections::BTreeMap;
use std::env;

use samestory_engine::engine::{Batch, Engine, Item, Output, Plan};
use samestory_engine::index::{
    Change, Document, Durability, FileBeginning, FilePath, FilePosition, FileProgress, IndexSchemes, Memory,
    Store, View,
};
use samestory_engine::model::{DocumentNumber, EventTime, Lang};

use histories::{History, LANGUAGES};
use model::Model;

use crate::engine_fixture::id;

/// The seeds to test; `SAMESTORY_HISTORIES` asks for more.
fn seeds() -> std::ops::Range<u64> {
    let more = env::var("SAMESTORY_HISTORIES").ok().and_then(|count| count.parse().ok());
    0..more.unwrap_or(90)
}

fn store(postings: &IndexSchemes) -> Memory {
    Memory::new(postings.clone(), Durability::OwnWal)
}

fn plan(engine: &Engine, store: &Memory, items: &[Item], relocates: bool) -> Plan {
    let begins = FileBeginning { bytes: 0, hash: 0 };
    let position = FilePosition { next: items.len() as u64, begins };
    let inputs = BTreeMap::from([(FilePath::new("/history"), position)]);
    let files = FileProgress { inputs, ..FileProgress::default() };
    engine.plan(store, Batch { items: items.to_vec(), files, relocates, ..Batch::default() }).unwrap().0
}

fn outputs(plan: &Plan) -> Vec<Vec<Output>> {
    plan.decided.iter().map(|decided| decided.outputs.clone()).collect()
}

fn documents(store: &Memory, language: Lang) -> Vec<Document> {
    let numbers: Vec<DocumentNumber> =
        (0..store.counters(language).unwrap().next_number).map(DocumentNumber).collect();
    let mut documents: Vec<Document> =
        store.documents(language, &numbers).unwrap().into_iter().flatten().collect();
    documents.iter_mut().for_each(model::forgive_kept_confidence);
    documents
}

fn same_state(store: &Memory, model: &Model, seed: u64) {
    for name in (0..18).map(|number| id(&format!("a{number}"))) {
        assert_eq!(store.residence(&name).unwrap(), model.residences.get(&name).cloned(), "history {seed}");
    }
    for language in LANGUAGES.map(histories::language) {
        let ours = documents(store, language);
        assert_eq!(ours, model.documents(language), "history {seed}: documents of {language}");
        let counters = store.counters(language).unwrap();
        let votes: Vec<EventTime> = counters.votes.iter().map(|vote| vote.at).collect();
        assert_eq!(
            (counters.next_number, counters.stream_time),
            model.counters(language),
            "history {seed}: {language}"
        );
        assert_eq!(votes, model.ahead(language), "history {seed}: {language}");
        for document in &ours {
            let kept = store.cluster(language, document.cluster).unwrap();
            let expected = model.cluster(language, document.cluster);
            // A cluster of one: everything about it follows from its document.
            if kept.is_none() {
                assert_eq!((document.number, expected.size), (document.cluster, 1), "history {seed}");
                assert_eq!(expected.split_from, None, "history {seed}: {document:?}");
            } else {
                assert_eq!(kept, Some(expected), "history {seed}: cluster of {document:?}");
            }
        }
        for founder in 0..store.counters(language).unwrap().next_number {
            if store.cluster(language, DocumentNumber(founder)).unwrap().is_some() {
                let alive = ours.iter().any(|document| document.cluster.0 == founder);
                assert!(alive, "history {seed}: cluster {language} {founder} has no members left");
            }
        }
    }
}

#[test]
fn the_engine_decides_like_the_oracle() {
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in seeds() {
        let History { settings, postings, items, relocates } = History::new(seed);
        let engine = Engine::new(settings.clone());
        let mut memory = store(&postings);
        let mut model = Model::new(settings, postings, relocates);
        for (at, item) in items.iter().enumerate() {
            let expected = model.decide(item);
            let plan = plan(&engine, &memory, std::slice::from_ref(item), relocates);
            let mut decided = outputs(&plan).remove(0);
            model::forgive_confidence(&mut decided, &engine.settings().review);
            assert_eq!(decided, expected, "history {seed}, item {at}: {item:?}");
            memory.apply_own_changes(&plan.changes).unwrap();
        }
        same_state(&memory, &model, seed);
        for (what, count) in model.seen {
            *seen.entry(what).or_default() += count;
        }
    }
    // Cases that never occur are not tested.
    let rows = [
        "exact",
        "near",
        "rewritten",
        "partial",
        "extends",
        "same-template",
        "unique",
        "same-article",
        "short-text",
        "no-text",
        "update",
        "moved",
        "delete",
        "unknown delete",
        "forget",
        "stale forget",
        "relocation notice",
        "notice: lives here",
        "notice: not published",
        "notice: moved on",
        "notice: gone",
        "notice: published, not stored",
        "notice: unknown",
        "residence: moved",
        "residence: gone",
        "residence: published",
        "residence replaced",
        "residence removed",
        "residence expired",
        "undelivered",
        "language change",
        "overdue removed",
        "expired at read",
        "arrived expired",
        "promotion",
        "split",
        "joined",
        "cluster gone",
        "clamped",
        "ahead of stream",
        "stream time set",
        "backfilled",
        "seen later",
        "tie",
        "dead letter",
        "text kept",
        "empty update refused",
        "no body",
        "reviewed",
        "kept apart",
    ];
    let rare: Vec<_> = rows.iter().map(|row| (*row, seen.get(row).copied().unwrap_or(0))).collect();
    println!("{rare:?}");
    let missing: Vec<_> = rare.iter().filter(|(_, count)| *count < 5).collect();
    assert!(missing.is_empty(), "rarely or never occurred: {missing:?}");
}

#[test]
fn splitting_a_batch_anywhere_changes_nothing() {
    let histories = seeds().flat_map(|seed| [(seed, History::new(seed)), (seed, History::crowded(seed))]);
    for (seed, History { settings, postings, items, relocates }) in histories {
        let engine = Engine::new(settings);
        let mut whole = store(&postings);
        let at_once = plan(&engine, &whole, &items, relocates);
        whole.apply_own_changes(&at_once.changes).unwrap();
        assert!(matches!(at_once.changes.last(), Some(Change::Progress(_))));
        let mut pieces = store(&postings);
        let (mut in_pieces, mut log) = (Vec::new(), Vec::new());
        let mut rest = &items[..];
        let mut size = seed as usize % 7 + 1;
        while !rest.is_empty() {
            let (batch, others) = rest.split_at(size.min(rest.len()));
            let plan = plan(&engine, &pieces, batch, relocates);
            in_pieces.extend(outputs(&plan));
            pieces.apply_own_changes(&plan.changes).unwrap();
            log.extend(plan.changes);
            rest = others;
            size = size * 5 % 11 + 1;
        }
        assert_eq!(outputs(&at_once), in_pieces, "history {seed}");
        let without_position = |store: &Memory| {
            let mut rows = store.dump().unwrap();
            rows.retain(|row| row.family != "meta");
            (rows, store.progress().unwrap().languages)
        };
        assert_eq!(without_position(&whole), without_position(&pieces), "history {seed}");
        // And the log alone restores the same state.
        let read_back = |change: &Change| {
            let (key, value) = change.encode();
            Change::decode(&key, value.as_deref()).unwrap()
        };
        let mut restored = store(&postings);
        let log: Vec<Change> = log.iter().map(read_back).collect();
        restored.apply_own_changes(&log).unwrap();
        assert_eq!(restored.dump().unwrap(), pieces.dump().unwrap(), "history {seed}");
    }
}
