//! Stores that are read while they are worked on, and taken back from those who read them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::maintenance::upkeep::tests::{document, made};
use super::{Rocks, StoreRegistry};
use crate::index::read::rows::Rows;
use crate::index::{Change, Store, View};
use crate::lsh::BandKey;
use crate::model::{ArticleId, DocumentNumber, Lang};

fn apply_changes(store: &mut Rocks, change: Change) {
    store.apply_own_changes(&[change]).unwrap();
}

/// A store with one document, and its buckets.
fn with_one(name: &str) -> (Rocks, PathBuf, Vec<BandKey>) {
    let (mut store, directory) = made(name);
    store.wait_for_filter();
    let Change::Document(one) = document(0) else { unreachable!() };
    let keys = store.postings().of(Lang::UND).keys(&one.fingerprint);
    apply_changes(&mut store, Change::Document(one));
    (store, directory, keys)
}

fn id(number: u64) -> ArticleId {
    ArticleId::new(&format!("a{number}")).unwrap()
}

#[test]
fn whatever_is_written_meanwhile_a_question_sees_one_moment() {
    let (mut store, directory, keys) = with_one("moment");
    let shelf = Arc::new(StoreRegistry::default());
    let shown = shelf.show(0, &store);
    let loan = shelf.borrow();
    let before = loan.snapshots();
    apply_changes(&mut store, Change::NoDocument(Lang::UND, id(0)));
    apply_changes(&mut store, document(1));
    let after = loan.snapshots();
    let number = |n: u64| DocumentNumber(n);
    let named = |view: &super::Snapshot<'_>| {
        let pages = view.buckets(Lang::UND, &keys, 9).unwrap();
        let mut named: Vec<_> = pages.into_iter().flat_map(|page| page.numbers).collect();
        named.sort_unstable();
        named.dedup();
        named
    };
    // Whoever is named by a bucket is there, before and after.
    assert!(named(&before[0]).contains(&number(0)) && !named(&before[0]).contains(&number(1)));
    assert!(!named(&after[0]).contains(&number(0)));
    for view in [&before[0], &after[0]] {
        for number in named(view) {
            assert!(view.document(Lang::UND, number).unwrap().is_some(), "{number}");
        }
    }
    assert_eq!(before[0].number_of(Lang::UND, &id(0)), Ok(Some(number(0))));
    assert_eq!(after[0].number_of(Lang::UND, &id(0)), Ok(None));
    assert_eq!(after[0].number_of(Lang::UND, &id(1)), Ok(Some(number(1))));
    assert_eq!((loan.partitions(), loan.of()), (vec![0], None));
    drop((before, after));
    drop((loan, shown, store));
    drop(std::fs::remove_dir_all(&directory));
}

#[test]
fn who_still_reads_a_store_that_is_taken_back_fails_soon_and_holds_nobody_up_for_long() {
    let (store, directory, keys) = with_one("taken-back");
    let shelf = Arc::new(StoreRegistry::default());
    shelf.holds_some_of(2);
    let options = store.options.clone();
    let shown = shelf.show(1, &store);
    let loan = shelf.borrow();
    let reading = std::thread::spawn(move || {
        let views = loan.snapshots();
        let began = Instant::now();
        while views[0].buckets(Lang::UND, &keys, 9).is_ok() {
            assert!(began.elapsed() < Duration::from_secs(60));
        }
        assert!(loan.is_withdrawn());
    });
    std::thread::sleep(Duration::from_millis(20));
    let began = Instant::now();
    drop((shown, store));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(!shelf.is_read(1) && shelf.borrow().partitions().is_empty());
    reading.join().unwrap();
    // Nobody has it open any more.
    let store = Rocks::open(&directory, &options).unwrap();

    // One that does not come back in time is not waited for, and is known.
    let shown = shelf.show(1, &store);
    let loan = shelf.borrow();
    let began = Instant::now();
    drop((shown, store));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(shelf.is_read(1) && !shelf.is_read(0));
    assert!(Rocks::open(&directory, &options).is_err(), "it is still open");
    drop(loan);
    assert!(!shelf.is_read(1));
    drop(Rocks::open(&directory, &options).unwrap());
    drop(std::fs::remove_dir_all(&directory));
}
