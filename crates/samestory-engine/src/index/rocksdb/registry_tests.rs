//! Tests of stores that are read while they are written, and withdrawn from their readers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::maintenance::upkeep::tests::{document, empty_store};
use super::{Rocks, StoreRegistry};
use crate::index::{Change, Store, View};
use crate::lsh::BandKey;
use crate::model::{ArticleId, DocumentNumber, Lang};

fn apply_changes(store: &mut Rocks, change: Change) {
    store.apply_own_changes(&[change]).unwrap();
}

/// A store with one document, and its buckets.
fn with_one(name: &str) -> (Rocks, PathBuf, Vec<BandKey>) {
    let (mut store, directory) = empty_store(name);
    store.wait_for_filter();
    let Change::Document(one) = document(0) else { unreachable!() };
    let keys = store.postings().for_language(Lang::UND).keys(&one.fingerprint);
    apply_changes(&mut store, Change::Document(one));
    (store, directory, keys)
}

fn id(number: u64) -> ArticleId {
    ArticleId::new(&format!("a{number}")).unwrap()
}

#[test]
fn a_snapshot_sees_one_point_in_time_whatever_is_written_meanwhile() {
    let (mut store, directory, keys) = with_one("moment");
    let registry = Arc::new(StoreRegistry::default());
    let registration = registry.register(0, &store);
    let lease = registry.lease();
    let before = lease.snapshots();
    apply_changes(&mut store, Change::NoDocument(Lang::UND, id(0)));
    apply_changes(&mut store, document(1));
    let after = lease.snapshots();
    let number = |n: u64| DocumentNumber(n);
    let named = |view: &super::Snapshot<'_>| {
        let pages = view.buckets(Lang::UND, &keys, 9).unwrap();
        let mut named: Vec<_> = pages.into_iter().flat_map(|page| page.numbers).collect();
        named.sort_unstable();
        named.dedup();
        named
    };
    // Every document that a bucket names exists, before and after.
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
    assert_eq!((lease.partitions(), lease.partition_count()), (vec![0], None));
    drop((before, after));
    drop((lease, registration, store));
    drop(std::fs::remove_dir_all(&directory));
}

#[test]
fn a_reader_of_a_withdrawn_store_fails_soon_and_does_not_delay_the_owner() {
    let (store, directory, keys) = with_one("withdrawn");
    let registry = Arc::new(StoreRegistry::default());
    registry.set_partition_count(2);
    let options = store.opened().options.clone();
    let registration = registry.register(1, &store);
    let lease = registry.lease();
    let reading = std::thread::spawn(move || {
        let views = lease.snapshots();
        let began = Instant::now();
        while views[0].buckets(Lang::UND, &keys, 9).is_ok() {
            assert!(began.elapsed() < Duration::from_secs(60));
        }
        assert!(lease.is_withdrawn());
    });
    std::thread::sleep(Duration::from_millis(20));
    let began = Instant::now();
    drop((registration, store));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(!registry.is_read(1) && registry.lease().partitions().is_empty());
    reading.join().unwrap();
    // No reader has it open any more.
    let store = Rocks::open(&directory, &options).unwrap();

    // A reader that does not finish in time is not waited for, and is known.
    let registration = registry.register(1, &store);
    let lease = registry.lease();
    let began = Instant::now();
    drop((registration, store));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(registry.is_read(1) && !registry.is_read(0));
    assert!(Rocks::open(&directory, &options).is_err(), "it is still open");
    drop(lease);
    assert!(!registry.is_read(1));
    drop(Rocks::open(&directory, &options).unwrap());
    drop(std::fs::remove_dir_all(&directory));
}
