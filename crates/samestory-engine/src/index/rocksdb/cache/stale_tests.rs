//! Tests that the membership filter is rebuilt: when the store is opened, and when most of what it knows has
//! been removed.

use crate::index::read::rows::Rows;
use crate::index::rocksdb::Rocks;
use crate::index::rocksdb::maintenance::upkeep::tests::{document, empty_store};
use crate::index::{Change, Store};
use crate::lsh::BandKey;
use crate::model::{ArticleId, Lang};

fn apply_changes(store: &mut Rocks, change: Change) {
    store.apply_own_changes(&[change]).unwrap();
}

fn remove(store: &mut Rocks, number: u64) {
    let id = ArticleId::new(&format!("a{number}")).unwrap();
    apply_changes(store, Change::NoDocument(Lang::UND, id));
}

fn buckets(store: &Rocks, number: u64) -> Vec<BandKey> {
    let Change::Document(document) = document(number) else { unreachable!() };
    store.postings().for_language(Lang::UND).keys(&document.fingerprint)
}

/// Every bucket of this document has it.
fn assert_found(store: &Rocks, number: u64) {
    let keys = buckets(store, number);
    let pages = store.buckets(Lang::UND, &keys, 9).unwrap();
    assert!(keys.len() > 30 && pages.iter().all(|page| page.numbers.iter().any(|found| found.0 == number)));
}

/// Of buckets that nobody is in, almost none is looked for.
fn assert_denied(store: &Rocks, number: u64, live: u64) {
    let shared = buckets(store, live);
    let keys: Vec<BandKey> = buckets(store, number).into_iter().filter(|key| !shared.contains(key)).collect();
    let perhaps = store.opened().sieve.singles(Lang::UND, &keys).iter().flatten().count();
    assert!(keys.len() > 10 && perhaps <= 2, "{perhaps} of {} are still looked for", keys.len());
}

#[test]
fn a_filter_of_what_has_gone_is_made_anew() {
    let (mut store, directory) = empty_store("stale");
    store.wait_for_filter();
    apply_changes(&mut store, document(0));
    let mut most = 0;
    for number in 1..200 {
        apply_changes(&mut store, document(number));
        remove(&mut store, number);
        store.wait_for_filter();
        assert_found(&store, 0);
        most = most.max(store.opened().sieve.keys().unwrap());
    }
    let taken_in = 200 * buckets(&store, 0).len();
    assert!(most > 1000 && most < taken_in / 2, "it grew to {most} keys of {taken_in}");
    drop(store);
    drop(std::fs::remove_dir_all(&directory));
}

#[test]
fn a_store_that_is_opened_filters_by_what_is_there() {
    let (mut store, directory) = empty_store("reopened");
    (0..20).for_each(|number| apply_changes(&mut store, document(number)));
    (1..20).for_each(|number| remove(&mut store, number));
    let options = store.options.clone();
    drop(store);
    let mut store = Rocks::open(&directory, &options).unwrap();
    // Right before the filter is complete, and after.
    assert_found(&store, 0);
    store.wait_for_filter();
    assert_found(&store, 0);
    assert_denied(&store, 7, 0);
    apply_changes(&mut store, document(20));
    assert_found(&store, 20);
    drop(store);
    drop(std::fs::remove_dir_all(&directory));
}
