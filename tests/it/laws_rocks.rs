//! State in RocksDB reads like state in memory, whatever happens to the process or the files.

use std::fs;
use std::ops::ControlFlow;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use samestory_engine::index::{
    Attestor, Budget, Change, Durability, IndexScheme, IndexSchemes, Order, Rocks, RocksOptions, Store,
    StoreError, View, verify,
};
use samestory_engine::model::DocumentNumber;

use crate::history::{
    HistoryStep, applied, assert_reads_like_the_model, batches, history, index_schemes, lang, progress, steps,
};

/// A directory that is deleted with the test.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let path = std::env::temp_dir().join(format!("samestory-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        Dir(path)
    }

    fn files(&self, extension: &str) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn options(durability: Durability) -> RocksOptions {
    RocksOptions::new(index_schemes(), durability, Budget::new(16 << 20))
}

const LOGGED: Durability = Durability::Changelog { partition: 3 };

/// A store and, where it follows a changelog, its attestor.
struct Logged {
    store: Rocks,
    attestor: Option<Attestor>,
}

impl Logged {
    fn open(directory: &Path, options: &RocksOptions) -> Result<Logged, StoreError> {
        let mut store = Rocks::open(directory, options)?;
        let attestor = store.attestor();
        Ok(Logged { store, attestor })
    }
}

impl Deref for Logged {
    type Target = Rocks;

    fn deref(&self) -> &Rocks {
        &self.store
    }
}

impl DerefMut for Logged {
    fn deref_mut(&mut self) -> &mut Rocks {
        &mut self.store
    }
}

fn apply_changes(Logged { store, attestor }: &mut Logged, changes: &[Change]) {
    match attestor {
        Some(attestor) => store.apply_changes(changes, &attestor.attest(0)).unwrap(),
        None => store.apply_own_changes(changes).unwrap(),
    }
}

/// A history in which every document gets a new number.
fn long_history(length: u8) -> Vec<Change> {
    let step = |n: u8| HistoryStep {
        what: [0, 1, 2, 0, 5, 7, 4][usize::from(n) % 7],
        lang: usize::from(n) % 2,
        id: n % 5,
        words: (0..12).map(|at| (n.wrapping_mul(31).wrapping_add(at) >> (at % 3)) % 3).collect(),
        time: i64::from(n % 5),
        cluster: u64::from(n % 3),
        same_number: n.is_multiple_of(3),
    };
    history(&(0..length).map(step).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rocksdb_reads_like_memory(steps in steps(), size in 1usize..9, cap in 0usize..4, edge in proptest::option::of(0u64..6), logged in any::<bool>(), frozen in 1usize..200) {
        let dir = Dir::new("equal");
        let changes = history(&steps);
        let durability = if logged { LOGGED } else { Durability::OwnWal };
        // Postings are frozen into segments after a few documents: what is frozen when never shows.
        let options = RocksOptions { postings_in_memory: frozen, ..options(durability) };
        let mut store = Logged::open(&dir.0, &options).unwrap();
        for (n, batch) in changes.chunks(size).enumerate() {
            apply_changes(&mut store, batch);
            match n % 4 {
                1 => store.flush().unwrap(),
                2 => store.settle().unwrap(),
                3 => {
                    store.flush().unwrap();
                    drop(store);
                    store = Logged::open(&dir.0, &options).unwrap();
                }
                _ => {}
            }
        }
        let expected = applied(&changes).dump().unwrap();
        prop_assert_eq!(&store.dump().unwrap(), &expected);
        assert_reads_like_the_model(&*store, &changes, cap, edge);
        drop(store);
        let mut store = Logged::open(&dir.0, &options).unwrap();
        prop_assert_eq!(&*store.dump().unwrap(), &expected);
        assert_reads_like_the_model(&store.reader(), &changes, cap, edge);
        prop_assert_eq!(verify(&*store).unwrap().findings, Vec::<String>::new());
        store.compact().unwrap();
        prop_assert_eq!(&*store.dump().unwrap(), &expected);
        assert_reads_like_the_model(&*store, &changes, cap, edge);
    }
}

#[test]
fn a_store_in_use_is_refused_at_once() {
    let dir = Dir::new("in-use");
    let _first = Logged::open(&dir.0, &options(LOGGED)).unwrap();
    let refusal = Logged::open(&dir.0, &options(LOGGED)).err().unwrap();
    assert!(matches!(refusal, StoreError::InUse { .. }), "{refusal}");
    assert!(refusal.to_string().contains(&dir.0.display().to_string()), "{refusal}");
}

#[test]
fn anything_but_a_state_directory_is_refused_and_left_alone() {
    let dir = Dir::new("strangers");
    fs::create_dir_all(&dir.0).unwrap();
    let file = dir.0.join("articles.ndjson");
    fs::write(&file, "{}").unwrap();
    for path in [dir.0.clone(), file.clone(), file.join("state")] {
        let refusal = Logged::open(&path, &options(LOGGED)).err().unwrap();
        assert!(matches!(refusal, StoreError::Unusable { .. }), "{refusal}");
        assert!(refusal.to_string().contains(&path.display().to_string()), "{refusal}");
    }
    assert_eq!(fs::read_dir(&dir.0).unwrap().count(), 1, "nothing was created");
}

#[test]
fn a_start_interrupted_before_the_first_write_is_completed() {
    let dir = Dir::new("cut-off");
    fs::create_dir_all(&dir.0).unwrap();
    for file in ["LOCK", "LOG", "MANIFEST-000001", "000001.dbtmp"] {
        fs::write(dir.0.join(file), "").unwrap();
    }
    Logged::open(&dir.0, &options(LOGGED)).unwrap();
}

fn filled(dir: &Dir) -> Vec<Change> {
    let changes = long_history(60);
    let mut store = Logged::open(&dir.0, &options(LOGGED)).unwrap();
    apply_changes(&mut store, &changes);
    changes
}

fn copy(from: &Path, to: &Path) {
    drop(fs::remove_dir_all(to));
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// Reads everything, or returns the error.
fn everything(dir: &Path) -> Result<usize, StoreError> {
    let store = Logged::open(dir, &options(LOGGED))?;
    Ok(store.dump()?.len())
}

/// The queries of the engine for every document of a history: its number, the document, and its buckets.
fn answers(dir: &Path, changes: &[Change]) -> Vec<Result<String, StoreError>> {
    let mut store = match Logged::open(dir, &options(LOGGED)) {
        Ok(store) => store,
        Err(refusal) => return vec![Err(refusal)],
    };
    store.wait_for_filter();
    let documents = changes.iter().filter_map(|change| match change {
        Change::Document(document) => Some(document),
        _ => None,
    });
    documents
        .flat_map(|document| {
            let language = document.language;
            let keys = index_schemes().for_language(language).keys(&document.fingerprint);
            let horizon = document.last_seen;
            [
                store.number_of(language, &document.id).map(|found| format!("{found:?}")),
                store.documents(language, &[document.number]).map(|found| format!("{found:?}")),
                store.buckets(language, &keys, 3).map(|found| format!("{found:?}")),
                store
                    .members(language, document.cluster, Order::Descending, None, 9)
                    .map(|found| format!("{found:?}")),
                store.overdue(language, horizon, 9).map(|found| format!("{found:?}")),
            ]
        })
        .collect()
}

#[test]
fn a_damaged_file_is_reported_and_never_read_as_missing() {
    let (sound, damaged) = (Dir::new("sound"), Dir::new("damaged"));
    let changes = filled(&sound);
    let rows = everything(&sound.0).unwrap();
    let truth = answers(&sound.0, &changes);
    let mut noticed = 0;
    for file in sound.files("sst") {
        let length = fs::metadata(&file).unwrap().len() as usize;
        for damage in 0..6 {
            copy(&sound.0, &damaged.0);
            let target = damaged.0.join(file.file_name().unwrap());
            let mut bytes = fs::read(&target).unwrap();
            match damage {
                0 => bytes.truncate(length / 2),
                1 => bytes.clear(),
                2 => fs::remove_file(&target).unwrap(),
                // The data is at the front of the file.
                _ => bytes[(damage - 3) * 7 + 2] ^= 0x10,
            }
            if damage != 2 {
                fs::write(&target, bytes).unwrap();
            }
            match everything(&damaged.0) {
                Err(StoreError::Corrupt { place, .. }) => {
                    assert_eq!(place, damaged.0.display().to_string());
                    noticed += 1;
                }
                Err(other) => panic!("{} damage {damage}: {other}", file.display()),
                Ok(read) => assert_eq!(read, rows, "{} damage {damage}", file.display()),
            }
            for (answer, truth) in answers(&damaged.0, &changes).iter().zip(&truth) {
                let silent = answer.is_ok() && answer != truth;
                assert!(!silent, "{} damage {damage}: {answer:?} is not {truth:?}", file.display());
            }
        }
    }
    assert!(noticed >= 6 * 5, "{noticed} damages were noticed");
    assert_eq!(everything(&sound.0), Ok(rows));
}

#[test]
fn a_store_without_its_current_file_is_damaged_and_not_recreated() {
    let dir = Dir::new("current");
    filled(&dir);
    fs::remove_file(dir.0.join("CURRENT")).unwrap();
    let tables = dir.files("sst").len();
    let refusal = everything(&dir.0).unwrap_err();
    assert!(matches!(refusal, StoreError::Corrupt { .. }), "{refusal}");
    assert_eq!(dir.files("sst").len(), tables);
}

#[test]
fn a_store_of_another_log_or_scheme_is_refused_by_name() {
    let dir = Dir::new("foreign");
    filled(&dir);
    for other in [Durability::Changelog { partition: 4 }, Durability::OwnWal] {
        let refusal = Logged::open(&dir.0, &options(other)).err().unwrap();
        assert!(matches!(refusal, StoreError::Foreign { what: "log", .. }), "{refusal}");
    }
    everything(&dir.0).unwrap();
}

#[test]
fn other_bands_are_refused_and_rebanding_equals_building_with_them() {
    let dir = Dir::new("reband");
    let changes = filled(&dir);
    let mut options = options(LOGGED);
    options.postings =
        IndexSchemes::new(IndexScheme { samples: 9, ..*index_schemes().for_language(lang(0)) });
    let refusal = Logged::open(&dir.0, &options).err().unwrap();
    assert!(matches!(refusal, StoreError::OtherBands { .. }), "{refusal}");
    assert!(refusal.to_string().contains("`samestory state rebuild`"), "{refusal}");
    everything(&dir.0).expect("a refusal changes nothing");

    let cut_off = std::panic::catch_unwind(|| {
        drop(Rocks::reband(&dir.0, &options, &mut |_| panic!("the lights went out")));
    });
    assert!(cut_off.is_err());
    for asked in [&options, &self::options(LOGGED)] {
        let refusal = Logged::open(&dir.0, asked).err().unwrap();
        assert!(refusal.to_string().contains("unfinished"), "{refusal}");
    }

    let mut reports = Vec::new();
    let mut watch = |done| {
        reports.push(done);
        ControlFlow::Continue(())
    };
    let store = Rocks::reband(&dir.0, &options, &mut watch).unwrap();
    assert!(reports.iter().all(|done| done.documents == done.of && done.of > 0), "{reports:?}");
    assert_eq!(reports.len(), 2);
    let mut always = samestory_engine::index::Memory::new(options.postings.clone(), Durability::OwnWal);
    always.apply_own_changes(&changes).unwrap();
    assert_eq!(store.dump().unwrap(), always.dump().unwrap());
    assert_eq!(verify(&store).unwrap().findings, Vec::<String>::new());
}

/// The content of a store, as changes.
fn contents(store: &Rocks) -> Vec<Change> {
    let mut changes = Vec::new();
    for language in store.languages() {
        let mut keep = |document| {
            changes.push(Change::Document(Arc::new(document)));
            ControlFlow::Continue(())
        };
        store.each_document(language, &mut keep).unwrap();
        let clusters =
            (0..500).filter_map(|founder| store.cluster(language, DocumentNumber(founder)).unwrap());
        changes.extend(clusters.map(|cluster| Change::Cluster(Box::new(cluster))));
    }
    changes.push(Change::Progress(store.progress().unwrap()));
    changes
}

/// An upgrade: this version opens the old state and continues with it as with its own.
#[test]
fn a_kept_state_continues_like_one_of_this_version() {
    let kept = kept_state();
    let (old, new) = (Dir::new("kept-old"), Dir::new("kept-new"));
    copy(&kept, &old.0);
    let mut upgraded = Logged::open(&old.0, &kept_options()).unwrap();
    let mut made = Logged::open(&new.0, &kept_options()).unwrap();
    apply_changes(&mut made, &contents(&upgraded));
    assert_eq!(printed(&upgraded), printed(&made));
    for batch in long_history(180).chunks(7) {
        apply_changes(&mut upgraded, batch);
        apply_changes(&mut made, batch);
        assert_eq!(printed(&upgraded), printed(&made));
    }
    upgraded.flush().unwrap();
    drop(upgraded);
    let again = Logged::open(&old.0, &kept_options()).unwrap();
    assert_eq!(printed(&again), printed(&made));
    assert_eq!(verify(&*again).unwrap().findings, Vec::<String>::new());
}

#[test]
fn inspecting_counts_the_rows() {
    let dir = Dir::new("inspect");
    let changes = filled(&dir);
    let mut store = Logged::open(&dir.0, &options(LOGGED)).unwrap();
    // Removed rows spoil the estimate of postings until they are compacted away.
    store.compact().unwrap();
    let seen = store.reader().inspect().unwrap();
    let documents = store.dump().unwrap().iter().filter(|row| row.family.starts_with("docs:")).count();
    assert_eq!(seen.languages.iter().map(|language| language.documents).sum::<u64>(), documents as u64);
    assert!(seen.languages.iter().all(|language| language.postings > 0 && language.clusters > 0), "{seen:?}");
    assert!(seen.bytes > 0);
    assert_eq!(seen.progress, applied(&changes).progress().unwrap());
    assert_eq!(seen.format.unwrap().durability, LOGGED);
}

/// Not a test by itself: the process that the next one kills.
#[test]
fn a_process_that_is_killed() {
    let Ok(dir) = std::env::var("SAMESTORY_TEST_KILLED") else { return };
    let (dir, ahead) = dir.split_once('|').unwrap();
    let mut options = options(if ahead == "logged" { LOGGED } else { Durability::OwnWal });
    // So small that the memtables of all column families fill up all the time, each at its own pace.
    options.write_buffer = 64 << 10;
    options.postings_in_memory = 100;
    let mut store = Logged::open(Path::new(dir), &options).unwrap();
    for (n, change) in endless().enumerate() {
        apply_changes(&mut store, &change);
        println!("\napplied {}", n + 1);
    }
}

/// Batches of a document and the position that counts it.
fn endless() -> impl Iterator<Item = Vec<Change>> {
    (0u64..).map(|n| {
        let words =
            (0..12).map(|at| ((n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (2 * at)) % 3) as u8).collect();
        let step = HistoryStep {
            what: 0,
            lang: 0,
            id: 0,
            words,
            time: n as i64,
            cluster: n % 7,
            same_number: false,
        };
        let Some(Change::Document(mut document)) = history(&[step]).pop() else { unreachable!() };
        let own = std::sync::Arc::make_mut(&mut document);
        own.number = samestory_engine::model::DocumentNumber(n);
        own.id = samestory_engine::model::ArticleId::new(&format!("a{}", n % 5000)).unwrap();
        vec![Change::Document(document), progress(n + 1)]
    })
}

#[test]
fn only_complete_batches_survive_a_kill() {
    for ahead in ["logged", "itself"] {
        let mut survived = 0;
        for round in 0..4 {
            let dir = Dir::new(&format!("killed-{ahead}"));
            let mut child = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["laws_rocks::a_process_that_is_killed", "--exact", "--nocapture"])
                .env("SAMESTORY_TEST_KILLED", format!("{}|{ahead}", dir.0.display()))
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let out = std::io::BufReader::new(child.stdout.take().unwrap());
            let lines = std::io::BufRead::lines(out).map_while(Result::ok);
            let mut applied_batches =
                lines.filter_map(|line| line.strip_prefix("applied ")?.parse::<u64>().ok());
            let kill_at = 300 + 170 * round;
            assert_eq!(applied_batches.find(|&count| count == kill_at), Some(kill_at));
            child.kill().unwrap();
            child.wait().unwrap();
            let acknowledged = applied_batches.last().unwrap_or(kill_at);
            let mut options = options(if ahead == "logged" { LOGGED } else { Durability::OwnWal });
            options.postings_in_memory = 100;
            let logs: Vec<u64> =
                dir.files("log").iter().map(|log| fs::metadata(log).unwrap().len()).collect();
            let store = Logged::open(&dir.0, &options).unwrap();
            let batches = batches(&store.progress().unwrap());
            let expected: Vec<Change> = endless().take(batches as usize).flatten().collect();
            assert_eq!(
                store.dump().unwrap(),
                applied(&expected).dump().unwrap(),
                "{ahead} after {batches} batches"
            );
            match options.durability {
                // Its own WAL has everything that it reported as applied.
                Durability::OwnWal => assert!(batches >= acknowledged, "{batches} of {acknowledged} batches"),
                // It has no WAL; the changelog restores what is missing.
                Durability::Changelog { .. } => assert!(logs.iter().all(|log| *log == 0), "{logs:?}"),
            }
            survived += batches;
        }
        assert!(survived > 0, "{ahead}: nothing was ever written down, so nothing was shown");
    }
}

/// The options of the kept states. Like their bytes, they never change.
fn kept_options() -> RocksOptions {
    RocksOptions {
        postings: IndexSchemes::new(*index_schemes().for_language(lang(0))),
        // So few that the kept state has segments.
        postings_in_memory: 100,
        ..options(LOGGED)
    }
}

fn printed(store: &Rocks) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let rows = store.dump().unwrap();
    rows.iter().map(|row| format!("{} {} {}\n", row.family, hex(&row.key), hex(&row.value))).collect()
}

/// A state directory is kept for every format version: it opens, or is refused by name.
///
/// To keep one of a new version, name a directory that does not exist in `SAMESTORY_KEEP_STATE`; its files
/// `LOG` and `OPTIONS-*` need not be kept.
#[test]
fn a_kept_state_still_opens_and_reads_the_same() {
    if let Ok(new) = std::env::var("SAMESTORY_KEEP_STATE") {
        let mut store = Logged::open(Path::new(&new), &kept_options()).unwrap();
        for batch in long_history(60).chunks(7) {
            apply_changes(&mut store, batch);
            store.settle().unwrap();
        }
        store.flush().unwrap();
        fs::write(format!("{new}.dump"), printed(&store)).unwrap();
        return;
    }
    let kept = kept_state();
    let dir = Dir::new("kept");
    copy(&kept, &dir.0);
    let store = Logged::open(&dir.0, &kept_options()).unwrap();
    assert_eq!(printed(&store), fs::read_to_string(kept.with_extension("dump")).unwrap());
    assert_eq!(verify(&*store).unwrap().findings, Vec::<String>::new());
}

/// The kept state of the current format. Until a release it may be regenerated under the same number.
fn kept_state() -> std::path::PathBuf {
    let version = samestory_engine::index::VERSION;
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/state/v{version}"))
}

/// Positions in format 1 are bare numbers, so such a state cannot name the topic it was built from; postings in format 2 are
/// rows.
#[test]
fn a_state_of_an_older_format_is_refused_by_name_and_left_unchanged() {
    for version in 1..samestory_engine::index::VERSION {
        let dir = Dir::new("older-format");
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/state/v{version}"));
        copy(&kept, &dir.0);
        let refused = Logged::open(&dir.0, &kept_options()).map(|_| ()).unwrap_err().to_string();
        let versions = format!("format version {version}, but {}", samestory_engine::index::VERSION);
        assert!(refused.contains(&versions) && refused.contains("`samestory state rebuild`"), "{refused}");
        for entry in fs::read_dir(&kept).unwrap() {
            let name = entry.unwrap().file_name();
            if Path::new(&name).extension().is_some_and(|extension| extension == "sst") {
                assert!(dir.0.join(&name).exists(), "{} is gone", name.display());
            }
        }
    }
}
