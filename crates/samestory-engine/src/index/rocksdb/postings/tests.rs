//! Tests of freezing at every point where a process can die, and of damaged segments.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::segment::SST_DIRECTORY;
use crate::index::format::key;
use crate::index::format::key::Family;
use crate::index::rocksdb::maintenance::upkeep::tests::{document, empty_store, temporary};
use crate::index::rocksdb::{Opened, Rocks, RocksOptions};
use crate::index::{
    Change, Durability, Memory, Order, Row, Span, Store, StoreError, View, all_filter_bytes, verify,
};
use crate::model::{ArticleId, DocumentNumber, Lang};
use crate::text::language::LANGUAGES;

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

    /// Closes the store. An empty one takes its place.
    fn close(&mut self) {
        let elsewhere = self.directory.with_extension("elsewhere");
        drop(std::fs::remove_dir_all(&elsewhere));
        self.rocks = Rocks::open(&elsewhere, &self.options).unwrap();
    }

    fn reopen(&mut self) {
        self.close();
        self.rocks = Rocks::open(&self.directory, &self.options).unwrap();
    }

    /// Opens the store again as its owner does: each read that meets a damaged segment says so, once.
    fn reopen_until_sound(&mut self) {
        for _ in 0..20 {
            self.reopen();
            match self.rocks.dump() {
                Ok(_) => return,
                Err(error) => assert!(matches!(error, StoreError::Stalled { .. }), "{error}"),
            }
        }
        panic!("it stays damaged");
    }

    fn segments(&self) -> u64 {
        self.rocks.reader().inspect().unwrap().languages.iter().map(|language| language.segments).sum()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(self.directory.with_extension("elsewhere")));
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
    pair.close();
    let options = pair.options.clone();
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
    // Without its data, with another filter, over another's documents, and with a row of another version.
    for damage in 0..4 {
        let reader = pair.rocks.reader();
        let opened = &reader.0;
        let (row, mut value) = first_coverage(opened);
        match damage {
            0 => {
                let id: [u8; 4] = *row.last_chunk().unwrap();
                opened.delete_segment(Lang::UND, u32::from_be_bytes(id)).unwrap();
            }
            1 => *value.last_mut().unwrap() ^= 1,
            2 => value[9] = 100,
            _ => value[0] = 9,
        }
        opened.db.put_cf(&opened.existing(Family::Meta).unwrap(), &row, value).unwrap();
        let findings = verify(&reader).unwrap().findings;
        assert!([1, 2].contains(&damage) || !findings.is_empty(), "damage {damage} is not found");
        drop(reader);
        pair.reopen();
        pair.assert_equal();
    }
    damage_rows(&pair.rocks);
    // While it is open: the engine's read fails in a way that lets the owner open it again.
    let Change::Document(one) = document(10) else { unreachable!() };
    let keys = pair.rocks.reader().0.postings.for_language(Lang::UND).keys(&one.fingerprint);
    let error = pair.rocks.buckets(Lang::UND, &keys, 9).unwrap_err();
    assert!(matches!(error, StoreError::Stalled { .. }), "{error}");
    pair.reopen_until_sound();
    pair.assert_equal();
    // So does a merge that meets the damage, before anything is committed on top of it.
    damage_rows(&pair.rocks);
    let mut next = 40;
    let error = loop {
        let refused = pair.rocks.apply_own_changes(&[document(next)]);
        if let Err(error) = refused.and_then(|()| pair.rocks.settle()) {
            break error;
        }
        next += 1;
        assert!(next < 200, "nothing was merged");
    };
    assert!(matches!(error, StoreError::Stalled { .. }), "{error}");
    pair.reopen_until_sound();
    let known = pair.rocks.documents(Lang::UND, &[DocumentNumber(next)]).unwrap();
    let last = if known[0].is_some() { next + 1 } else { next };
    pair.memory.apply_own_changes(&(40..last).map(document).collect::<Vec<_>>()).unwrap();
    pair.assert_equal();
}

/// The row of the first segment.
fn first_coverage(opened: &Opened) -> (Vec<u8>, Vec<u8>) {
    let mut first = None;
    opened
        .scan_rows(
            rocksdb::ReadOptions::default(),
            Family::Meta,
            &Span::prefix(key::SEGMENT),
            Order::Ascending,
            &mut |key, value| {
                first = Some((key.to_vec(), value.to_vec()));
                ControlFlow::Break(())
            },
        )
        .unwrap();
    first.unwrap()
}

/// Overwrites every row of postings, and forgets the cached ones. Filters and fences stay.
fn damage_rows(store: &Rocks) {
    let reader = store.reader();
    let bands = reader.0.existing(Family::Bands(Lang::UND)).unwrap();
    let mut rows = reader.0.db.raw_iterator_cf(&bands);
    rows.seek_to_first();
    let mut keys = Vec::new();
    while let Some(key) = rows.key() {
        keys.extend((key[4] != 0xff).then(|| key.to_vec()));
        rows.next();
    }
    drop(rows);
    keys.iter().for_each(|key| reader.0.db.put_cf(&bands, key, b"?").unwrap());
    reader.0.row_cache.clear();
}

// A large damaged segment takes minutes to build. The thread that polls Kafka must not do it.
#[test]
fn a_large_damaged_segment_is_left_to_those_who_can_wait() {
    let mut pair = Pair::new("large-damage");
    pair.apply(&(0..60).map(document).collect::<Vec<_>>());
    pair.rocks.compact().unwrap();
    pair.apply(&[document(60)]);
    let reader = pair.rocks.reader();
    let (row, mut value) = first_coverage(&reader.0);
    *value.last_mut().unwrap() ^= 1;
    reader.0.db.put_cf(&reader.0.existing(Family::Meta).unwrap(), &row, value).unwrap();
    drop(reader);
    pair.options.most_rebuilt_at_open = 59;
    pair.close();
    for _ in 0..2 {
        let refused = Rocks::open(&pair.directory, &pair.options).err().unwrap();
        assert!(matches!(refused, StoreError::OtherBands { .. }), "{refused}");
    }
    let options = pair.options.clone();
    pair.rocks = Rocks::reband(&pair.directory, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    pair.assert_equal();
    pair.reopen();
    pair.assert_equal();
}

#[test]
fn segments_without_documents_are_dropped() {
    let mut pair = Pair::new("no-documents");
    pair.apply(&(0..20).map(document).collect::<Vec<_>>());
    pair.rocks.settle().unwrap();
    assert!(pair.segments() > 0);
    let reader = pair.rocks.reader();
    for family in [Family::Documents(Lang::UND), Family::Ids, Family::Expiry, Family::Clusters] {
        let handle = reader.0.existing(family).unwrap();
        reader.0.db.delete_range_cf(&handle, vec![0], vec![0xff; 40]).unwrap();
    }
    drop(reader);
    pair.memory = Memory::new(pair.options.postings.clone(), Durability::OwnWal);
    pair.reopen();
    assert_eq!(pair.segments(), 0);
    pair.apply(&(20..40).map(document).collect::<Vec<_>>());
    pair.assert_equal();
    pair.reopen();
    pair.assert_equal();
}

#[test]
fn a_budget_smaller_than_one_document_freezes_every_write() {
    let mut pair = Pair::new("no-budget");
    pair.options.postings_in_memory = 0;
    pair.reopen();
    for number in 0..30 {
        pair.apply(&[document(number)]);
        pair.rocks.settle().unwrap();
        assert_eq!(pair.rocks.reader().0.posting_tables.in_memory.load(Ordering::Relaxed), 0);
    }
    pair.apply(&[gone(3), rewritten(5, 105)]);
    pair.assert_equal();
    pair.reopen();
    pair.assert_equal();
}

/// Documents of many languages, so few of each that none fills its memory.
#[test]
fn many_languages_share_the_memory_for_postings() {
    let mut pair = Pair::new("many-languages");
    pair.options.postings_in_memory = 3200;
    pair.reopen();
    for number in 0..600 {
        let Change::Document(mut one) = document(number) else { unreachable!() };
        let language = LANGUAGES[number as usize % 57].lang;
        let of = std::sync::Arc::make_mut(&mut one);
        (of.language, of.number) = (language, DocumentNumber(number / 57));
        (of.id, of.cluster) = (ArticleId::new(&format!("m{number}")).unwrap(), of.number);
        pair.apply(&[Change::Document(one)]);
        pair.rocks.settle().unwrap();
        let in_memory = pair.rocks.reader().0.posting_tables.in_memory.load(Ordering::Relaxed);
        assert!(in_memory <= 2 * 3200, "{in_memory} postings in memory");
    }
    assert!(pair.segments() > 0);
    pair.assert_equal();
}

#[test]
fn filters_take_as_much_memory_as_a_plan_says() {
    let mut pair = Pair::new("filters");
    pair.apply(&(0..300).map(document).collect::<Vec<_>>());
    pair.rocks.compact().unwrap();
    let postings = pair.rocks.reader().inspect().unwrap().languages[0].postings;
    let planned = all_filter_bytes(postings) as usize;
    let taken = pair.rocks.reader().posting_memory();
    assert!(planned > 5_000 && (planned..=planned + 32).contains(&taken), "{taken} bytes, not {planned}");
}

// The rows of removed documents stayed for ever, though no segment held any of them.
#[test]
fn what_is_known_of_removed_documents_ends_with_their_postings() {
    let mut pair = Pair::new("removed-rows");
    for number in 0..300 {
        pair.apply(&[document(number * 500)]);
        if number >= 20 {
            pair.apply(&[gone((number - 20) * 500)]);
        }
        pair.rocks.settle().unwrap();
    }
    let reader = pair.rocks.reader();
    let rows = reader.count(Family::Meta, key::REMOVED).unwrap();
    assert!(rows <= 8, "{rows} rows of removed documents, and postings of 20 are left");
    drop(reader);
    pair.assert_equal();
    pair.reopen();
    pair.assert_equal();
}

#[test]
fn freezing_that_fails_stops_the_store_before_the_next_commit() {
    let mut pair = Pair::new("cannot-freeze");
    // Where SST files are built there is a file: the directory cannot be made.
    let obstacle = pair.directory.join(SST_DIRECTORY);
    std::fs::write(&obstacle, b"").unwrap();
    let mut next = 0;
    while pair.rocks.ensure_language(Lang::UND).is_ok() {
        let applied = pair.rocks.apply_own_changes(&[document(next)]);
        if applied.is_err() {
            break;
        }
        next += 1;
        assert!(next < 1000, "nothing was frozen");
    }
    pair.memory.apply_own_changes(&(0..next).map(document).collect::<Vec<_>>()).unwrap();
    std::fs::remove_file(&obstacle).unwrap();
    pair.reopen();
    pair.rocks.settle().unwrap();
    assert!(pair.segments() > 0);
    pair.assert_equal();
}

/// What a process that dies now would leave on disk, opened, and its rows.
fn image_of(directory: &Path, copy: &Path, options: &RocksOptions) -> (Rocks, Vec<Row>) {
    for _ in 0..20 {
        copy_files(directory, copy);
        // Or the process dies while it builds the next file.
        std::fs::create_dir_all(copy.join(SST_DIRECTORY)).unwrap();
        std::fs::write(copy.join(SST_DIRECTORY).join("99.sst"), b"half of a file").unwrap();
        let image = Rocks::open(copy, options).and_then(|image| Ok((image.dump()?, image)));
        match image {
            Ok((found, image)) => return (image, found),
            // RocksDB deleted a file while others were copied: no process leaves that. Its message decides, because builds
            // of RocksDB differ in whether they call it damage.
            Err(error) if error.to_string().contains("No such file") => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("a file is missing in every copy");
}

fn copy_files(directory: &Path, copy: &Path) {
    drop(std::fs::remove_dir_all(copy));
    std::fs::create_dir_all(copy).unwrap();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.path().is_file() && entry.file_name() != "LOCK" {
            // It may be gone by now.
            drop(std::fs::copy(entry.path(), copy.join(entry.file_name())));
        }
    }
}

// The store is copied after each step of freezing: as it is on disk, which is all that a killed process leaves. It opens as
// it was at the position that it holds.
#[test]
fn a_process_that_dies_at_any_step_of_freezing_leaves_a_store_that_opens() {
    let directory = temporary("dies");
    drop(std::fs::remove_dir_all(&directory));
    let (store, other) = empty_store("dies-options");
    let durability = Durability::Changelog { partition: 0 };
    let options = RocksOptions { postings_in_memory: 100, durability, ..store.opened().options.clone() };
    drop(store);
    let mut rocks = Rocks::open(&directory, &options).unwrap();
    let attestor = rocks.attestor().unwrap();
    let mut memory = Memory::new(options.postings.clone(), Durability::OwnWal);
    let mut at_position = vec![rows(&memory)];
    let (mut opened_with_segments, mut images) = (0, 0);
    let copy = temporary("dies-copy");
    for number in 0..40u64 {
        let change = match number % 5 {
            3 => gone(number / 2),
            4 => rewritten(number - 4, number + 100),
            _ => document(number),
        };
        rocks.apply_changes(std::slice::from_ref(&change), &attestor.attest(number + 1)).unwrap();
        memory.apply_own_changes(&[change]).unwrap();
        at_position.push(rows(&memory));
        for step in 1..4 {
            match step {
                // The job has ended: its file is ingested, and no row names it.
                1 => rocks.upkeep.collect(&rocks.reader.0, true).unwrap(),
                // The row is written, and perhaps not flushed.
                2 if number % 3 == 0 => rocks.upkeep.finish(&rocks.reader).unwrap(),
                3 if number % 4 == 0 => rocks.flush().unwrap(),
                _ => continue,
            }
            let (image, found) = image_of(&directory, &copy, &options);
            let next = image.changelog_next().unwrap().unwrap_or(0);
            assert_eq!(found, at_position[next as usize], "after {number}, step {step}");
            assert_eq!(verify(&image).unwrap().findings, Vec::<String>::new());
            assert!(!copy.join(SST_DIRECTORY).exists());
            images += 1;
            opened_with_segments +=
                u32::from(image.reader().0.posting_tables.all().values().any(|table| table.counts().0 > 0));
            drop(image);
            std::fs::remove_dir_all(&copy).unwrap();
        }
    }
    assert!(images > 50 && opened_with_segments > 20, "{opened_with_segments} of {images} had segments");
    drop(rocks);
    [directory, other].iter().for_each(|directory| drop(std::fs::remove_dir_all(directory)));
}
