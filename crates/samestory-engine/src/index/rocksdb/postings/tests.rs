//! Tests of freezing at every point where a process can die, and of damaged segments.

use std::path::Path;

use crate::index::format::key;
use crate::index::format::key::Family;
use crate::index::rocksdb::maintenance::upkeep::tests::{document, empty_store, temporary};
use crate::index::rocksdb::{Rocks, RocksOptions};
use crate::index::{Change, Durability, Memory, Row, Rows, Store, StoreError, View, verify};
use crate::model::{ArticleId, Lang};

/// A store that freezes after a few documents, and one in memory beside it.
struct Pair {
    rocks: Rocks,
    memory: Memory,
    options: RocksOptions,
    directory: std::path::PathBuf,
}

impl Pair {
    fn new(name: &str) -> Pair {
        let (store, directory) = empty_store(name);
        let options = RocksOptions { postings_in_memory: 100, ..store.opened().options.clone() };
        drop(store);
        let rocks = Rocks::open(&directory, &options).unwrap();
        let memory = Memory::new(options.postings.clone(), Durability::OwnWal);
        Pair { rocks, memory, options, directory }
    }

    fn apply(&mut self, changes: &[Change]) {
        self.rocks.apply_own_changes(changes).unwrap();
        self.memory.apply_own_changes(changes).unwrap();
    }

    fn assert_equal(&self) {
        assert_equal(&self.rocks, &self.memory);
    }

    fn reopen(&mut self) {
        self.rocks = Rocks::open(&temporary("nowhere"), &self.options).unwrap();
        self.rocks = Rocks::open(&self.directory, &self.options).unwrap();
        drop(std::fs::remove_dir_all(temporary("nowhere")));
    }

    fn segments(&self) -> u64 {
        self.rocks.reader().inspect().unwrap().languages.iter().map(|language| language.segments).sum()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

fn rows(store: &impl View) -> Vec<Row> {
    store.dump().unwrap()
}

fn assert_equal(rocks: &Rocks, memory: &Memory) {
    assert_eq!(rows(rocks), rows(memory));
    assert_eq!(verify(rocks).unwrap().findings, Vec::<String>::new());
    let scheme = *rocks.reader().0.postings.for_language(Lang::UND);
    for number in (0..80).step_by(7) {
        let Change::Document(document) = document(number) else { unreachable!() };
        let keys = scheme.keys(&document.fingerprint);
        for cap in [0, 1, 5, 1000] {
            let (ours, theirs) =
                (rocks.buckets(Lang::UND, &keys, cap), memory.buckets(Lang::UND, &keys, cap));
            assert_eq!(ours, theirs);
            for &key in keys.iter().take(9) {
                let below = Some(crate::model::DocumentNumber(number));
                assert_eq!(
                    rocks.bucket(Lang::UND, key, below, cap),
                    memory.bucket(Lang::UND, key, below, cap)
                );
            }
        }
    }
}

fn gone(number: u64) -> Change {
    Change::NoDocument(Lang::UND, ArticleId::new(&format!("a{number}")).unwrap())
}

/// A document with the number and the id of one and the text of another.
fn rewritten(number: u64, text: u64) -> Change {
    let (Change::Document(mut one), Change::Document(other)) = (document(number), document(text)) else {
        unreachable!()
    };
    std::sync::Arc::make_mut(&mut one).fingerprint = other.fingerprint.clone();
    Change::Document(one)
}

#[test]
fn what_is_frozen_never_shows() {
    let mut pair = Pair::new("frozen");
    for number in 0..60 {
        pair.apply(&[document(number)]);
        match number % 6 {
            2 => pair.apply(&[gone(number / 2)]),
            3 => pair.apply(&[rewritten(number / 3, number + 100)]),
            4 => pair.apply(&[rewritten(number, number + 100), rewritten(number, number + 200)]),
            5 => pair.apply(&[document(number / 2)]),
            _ => {}
        }
        if number % 10 == 9 {
            pair.assert_equal();
        }
    }
    pair.rocks.settle().unwrap();
    assert!(pair.segments() > 0);
    pair.assert_equal();
    pair.reopen();
    pair.assert_equal();
    pair.rocks.compact().unwrap();
    assert_eq!(pair.segments(), 1);
    pair.assert_equal();
    pair.reopen();
    pair.apply(&(60..70).map(document).collect::<Vec<_>>());
    pair.assert_equal();
}

#[test]
fn the_number_of_segments_grows_with_the_logarithm_and_the_removed_leave_them() {
    let mut pair = Pair::new("tiers");
    for number in 0..600 {
        pair.apply(&[document(number)]);
        pair.rocks.settle().unwrap();
    }
    let many = pair.segments();
    assert!((2..20).contains(&many), "{many} segments");
    for number in 0..570 {
        pair.apply(&[gone(number)]);
    }
    pair.rocks.settle().unwrap();
    pair.assert_equal();
    let postings = pair.rocks.reader().inspect().unwrap().languages[0].postings;
    assert!(postings < 3 * 30 * 40, "{postings} postings of 30 documents");
    // The same documents, updated over and over.
    for round in 0..10 {
        for number in 570..600 {
            let id = 10_000 + round * 30 + number;
            let Change::Document(mut next) = document(id) else { unreachable!() };
            std::sync::Arc::make_mut(&mut next).id = ArticleId::new(&format!("a{number}")).unwrap();
            pair.apply(&[Change::Document(next)]);
        }
        pair.rocks.settle().unwrap();
        let postings = pair.rocks.reader().inspect().unwrap().languages[0].postings;
        assert!(postings < 4 * 30 * 40, "{postings} postings of 30 documents");
        assert!(pair.segments() < 10);
    }
    pair.assert_equal();
}

// A job's result counts only once the next write has recorded it. If the process dies before, its file belongs to no
// segment and is deleted.
#[test]
fn a_file_that_no_write_has_recorded_is_deleted_and_its_documents_stay_in_memory() {
    let mut pair = Pair::new("orphan");
    pair.apply(&(0..8).map(document).collect::<Vec<_>>());
    // The job has run, and nothing was written after it.
    let files = |directory: &Path| {
        std::fs::read_dir(directory)
            .unwrap()
            .filter(|entry| {
                entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "sst")
            })
            .count()
    };
    pair.rocks.upkeep.check(&pair.rocks.reader.0).unwrap();
    let options = pair.options.clone();
    pair.rocks = Rocks::open(&temporary("orphan-other"), &options).unwrap();
    let crowded = RocksOptions { postings_in_memory: usize::MAX, ..options.clone() };
    let store = Rocks::open(&pair.directory, &crowded).unwrap();
    assert_eq!(store.reader().inspect().unwrap().languages[0].segments, 0);
    assert_equal(&store, &pair.memory);
    let live = store.reader().0.db.live_files().unwrap();
    assert!(
        live.iter().all(|file| file.column_family_name != "bands:und"),
        "{} files",
        files(&pair.directory)
    );
    drop(store);
    drop(std::fs::remove_dir_all(temporary("orphan-other")));
}

#[test]
fn a_segment_that_is_damaged_or_does_not_belong_there_is_built_again() {
    let mut pair = Pair::new("damaged-segment");
    pair.apply(&(0..20).map(document).collect::<Vec<_>>());
    pair.rocks.settle().unwrap();
    pair.apply(&(20..40).map(document).collect::<Vec<_>>());
    pair.apply(&[gone(3), rewritten(5, 105), gone(25)]);
    pair.rocks.settle().unwrap();
    let segments = pair.segments();
    assert!(segments > 1);
    // Without its data, with another filter, and over another's documents.
    for damage in 0..3 {
        let opened = &pair.rocks.reader().0;
        let meta = opened.existing(Family::Meta).unwrap();
        let mut first = opened.db.raw_iterator_cf(&meta);
        first.seek(key::SEGMENT);
        let (row, mut value) = first.item().map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap();
        drop(first);
        match damage {
            0 => {
                let id: [u8; 4] = *row.last_chunk().unwrap();
                let bands = opened.existing(Family::Bands(Lang::UND)).unwrap();
                let next = (u32::from_be_bytes(id) + 1).to_be_bytes();
                opened.db.delete_file_in_range_cf(&bands, id, next).unwrap();
            }
            1 => {
                *value.last_mut().unwrap() ^= 1;
                opened.db.put_cf(&meta, &row, value).unwrap();
            }
            _ => {
                value[9] = 100;
                opened.db.put_cf(&meta, &row, value).unwrap();
            }
        }
        drop(meta);
        let findings = verify(&pair.rocks.reader()).unwrap().findings;
        assert!(damage > 0 || !findings.is_empty());
        pair.reopen();
        pair.assert_equal();
    }
    // While it is open: the engine's read fails in a way that lets the owner open it again.
    let opened = &pair.rocks.reader().0;
    let bands = opened.existing(Family::Bands(Lang::UND)).unwrap();
    let mut rows = opened.db.raw_iterator_cf(&bands);
    rows.seek_to_first();
    let broken: Vec<Vec<u8>> = std::iter::from_fn(|| {
        let key = rows.key().filter(|key| key[4] != 0xff).map(<[u8]>::to_vec);
        rows.next();
        key
    })
    .collect();
    drop(rows);
    broken.iter().for_each(|key| opened.db.put_cf(&bands, key, b"?").unwrap());
    drop(bands);
    let Change::Document(one) = document(10) else { unreachable!() };
    let keys = opened.postings.for_language(Lang::UND).keys(&one.fingerprint);
    let error = pair.rocks.buckets(Lang::UND, &keys, 9).unwrap_err();
    assert!(matches!(error, StoreError::Stalled { .. }), "{error}");
    pair.reopen();
    pair.assert_equal();
}
