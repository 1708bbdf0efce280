//! The write set computed while planning equals the changes, in memory and in RocksDB; and the caches of
//! RocksDB never show.

use samestory_engine::engine::{Batch, Engine, Item, Plan};
use samestory_engine::index::{Memory, Store, View, WriteSet};

use super::histories::History;
use super::{outputs, seeds, store};

fn sizes(seed: u64) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(seed as usize % 13 + 1), |size| Some(size * 7 % 31 + 1))
}

/// Plans a history in batches and applies the write sets; beside it a store in memory applies the changes.
fn apply(store: &mut impl Store, seed: u64, history: History) {
    let History { settings, postings, items, relocates } = history;
    let engine = Engine::new(settings);
    let mut plain: Memory = super::store(&postings);
    let (mut rest, mut sizes) = (&items[..], sizes(seed));
    while !rest.is_empty() {
        let (items, others) = rest.split_at(sizes.next().unwrap_or(1).min(rest.len()));
        let batch = || Batch { items: items.to_vec(), relocates, ..Batch::default() };
        let expected = engine.plan(&plain, batch()).unwrap().0;
        let (plan, write_set): (Plan, WriteSet) = engine.plan(store, batch()).unwrap();
        assert_eq!(outputs(&plan), outputs(&expected), "history {seed}");
        assert_eq!(plan.changes, expected.changes, "history {seed}");
        plain.apply_own_changes(&expected.changes).unwrap();
        store.apply_own(write_set).unwrap();
        rest = others;
    }
    assert_eq!(store.dump().unwrap(), plain.dump().unwrap(), "history {seed}");
}

/// Plans a long history in two batches of several pieces each; beside it a store in memory takes few items at
/// once.
fn decide_in_pieces(store: &mut impl Store, seed: u64) {
    let History { settings, postings, items, relocates } = History::long(seed);
    let engine = Engine::new(settings);
    let mut plain: Memory = super::store(&postings);
    for half in items.chunks(items.len() / 2) {
        let batch = |items: &[Item]| Batch { items: items.to_vec(), relocates, ..Batch::default() };
        let mut expected = Vec::new();
        for few in half.chunks(40) {
            let plan = engine.plan(&plain, batch(few)).unwrap().0;
            expected.extend(outputs(&plan));
            plain.apply_own_changes(&plan.changes).unwrap();
        }
        let (plan, write_set) = engine.plan(store, batch(half)).unwrap();
        assert!(outputs(&plan) == expected, "long history {seed}");
        store.apply_own(write_set).unwrap();
    }
    assert!(store.dump().unwrap() == plain.dump().unwrap(), "long history {seed}");
}

#[test]
fn pieces_that_are_read_in_parallel_are_decided_in_order() {
    for seed in 0..3 {
        decide_in_pieces(&mut store(&History::long(seed).postings), seed);
    }
}

#[test]
fn applying_the_write_set_equals_applying_the_changes() {
    for seed in seeds() {
        for history in [History::new(seed), History::crowded(seed)] {
            apply(&mut store(&history.postings), seed, history);
        }
    }
}

#[cfg(feature = "rocksdb")]
#[test]
fn the_caches_of_rocksdb_never_show() {
    use samestory_engine::index::{Budget, Durability, Rocks, RocksOptions};
    let directory = std::env::temp_dir().join(format!("samestory-{}-write-set", std::process::id()));
    for seed in seeds().take(20) {
        drop(std::fs::remove_dir_all(&directory));
        let history = if seed % 2 == 0 { History::new(seed) } else { History::crowded(seed) };
        let options = RocksOptions {
            postings_in_memory: [50, 300, 3000][seed as usize % 3],
            ..RocksOptions::new(history.postings.clone(), Durability::OwnWal, Budget::new(16 << 20))
        };
        let mut store = Rocks::open(&directory, &options).unwrap();
        // The membership filter is complete: from now on, keys that it lacks are not looked up.
        store.wait_for_filter();
        apply(&mut store, seed, history);
        if seed < 2 {
            let long = directory.with_extension("long");
            drop(std::fs::remove_dir_all(&long));
            let mut store = Rocks::open(&long, &options).unwrap();
            store.wait_for_filter();
            decide_in_pieces(&mut store, seed);
            drop(store);
            std::fs::remove_dir_all(&long).unwrap();
        }
        drop(store);
        // The same for a filter that was rebuilt from disk.
        let mut again = Rocks::open(&directory, &options).unwrap();
        let before = again.dump().unwrap();
        again.wait_for_filter();
        let ids = before.iter().filter(|row| row.family == "ids").map(|row| id_of(&row.key));
        for id in ids {
            let known =
                !again.languages_of(&id).unwrap().is_empty() || again.residence(&id).unwrap().is_some();
            assert!(known, "{id:?}");
        }
    }
    drop(std::fs::remove_dir_all(&directory));
}

#[cfg(feature = "rocksdb")]
fn id_of(key: &[u8]) -> samestory_engine::model::ArticleId {
    let length = usize::from(u16::from_be_bytes([key[0], key[1]]));
    samestory_engine::model::ArticleId::new(str::from_utf8(&key[2..2 + length]).unwrap()).unwrap()
}
