//! Re-banding: rebuilds all postings from the stored fingerprints, for new bands or for a store that was
//! filled without postings.
//!
//! `samestory state rebuild` and the restore from the changelog use it. The postings are sorted in memory and
//! ingested as finished SST files: written one by one, each would pass a memtable and several compactions,
//! and postings are nine tenths of what a document writes.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rocksdb::{IngestExternalFileOptions, SstFileWriter};

use crate::index::format::key;
use crate::index::format::key::{Family, POSTING};
use crate::index::format::value::decode_document;
use crate::index::read::rows::{Order, Rows, Span};
use crate::index::read::view::View;
use crate::index::rocksdb::cache::membership as sieve;
use crate::index::rocksdb::open::{RocksOptions, family_options, open_unchecked};
use crate::index::rocksdb::{Opened, Rocks, RocksReader};
use crate::index::write_set::change::document_postings;
use crate::index::{Format, IndexScheme, IndexSchemes, Opening, SimHashBands, StoreError};
use crate::model::Lang;

/// Postings per sorted run: 64 MB of them.
const RUN: usize = if cfg!(test) { 100 } else { 2 << 20 };
/// Documents between two progress reports.
const STEP: u64 = 1000;
/// Where SST files are built: inside the store's directory, so that they need not be copied.
const SST_DIRECTORY: &str = "new-postings";

/// Progress of re-banding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebanded {
    /// The language being processed.
    pub language: Lang,
    /// Documents posted so far.
    pub documents: u64,
    /// Documents of the language.
    pub of: u64,
}

/// The progress callback; returns whether to continue.
pub type Watch<'a> = dyn FnMut(Rebanded) -> ControlFlow<()> + 'a;

/// A posting as two numbers that sort like its bytes, but faster.
type Sortable = (u128, u16);

fn sortable(posting: [u8; POSTING]) -> Sortable {
    let [head @ .., a, b] = posting;
    (u128::from_be_bytes(head), u16::from_be_bytes([a, b]))
}

fn bytes((head, tail): Sortable) -> [u8; POSTING] {
    let mut posting = [0; POSTING];
    posting[..16].copy_from_slice(&head.to_be_bytes());
    posting[16..].copy_from_slice(&tail.to_be_bytes());
    posting
}

impl Rocks {
    /// Opens an empty store to be filled without postings, which [`Rocks::reband`] builds at the end. Until
    /// then the store refuses to be opened normally.
    ///
    /// # Errors
    /// As [`Rocks::open`]; also if the store is not empty.
    pub fn refill(directory: &Path, options: &RocksOptions) -> Result<Rocks, StoreError> {
        // Each document is posted by content only; re-banding removes that posting with the others.
        let unposted =
            IndexScheme { minhash: None, simhash: SimHashBands::None, samples: 0, shortest: u32::MAX };
        let filling = RocksOptions { postings: IndexSchemes::new(unposted), ..options.clone() };
        let opened = open_unchecked(directory, &filling)?;
        let wanted =
            Format::new(options.ahead, options.postings.clone()).made_from(options.changelog.clone());
        opened.put_format(&Format { rebanding: true, ..wanted })?;
        let reader = RocksReader(Arc::new(opened));
        if reader.count(Family::Ids, &[])? > 0 {
            let detail = "it holds articles, but no position".into();
            return Err(StoreError::Corrupt { place: reader.place().into(), detail });
        }
        Ok(Rocks {
            scan: sieve::Scan::start(reader.clone()),
            reader,
            options: filling,
            opening: Opening::new(),
            broken: None,
        })
    }

    /// Rebuilds all postings from the stored fingerprints according to the options, and opens the store.
    ///
    /// If it is interrupted, the store says so when it is opened, and the next attempt starts from the
    /// beginning.
    ///
    /// # Errors
    /// As [`Rocks::open`]; a store of another format or fingerprint scheme cannot be re-banded.
    pub fn reband(
        directory: &Path,
        options: &RocksOptions,
        watch: &mut Watch<'_>,
    ) -> Result<Rocks, StoreError> {
        let mut wanted =
            Format::new(options.ahead, options.postings.clone()).made_from(options.changelog.clone());
        let opened = open_unchecked(directory, options)?;
        let found = opened.db.get_cf(&opened.existing(Family::Meta)?, key::FORMAT);
        match found.map_err(|error| opened.failure(&error))? {
            // An empty store: nothing to rebuild.
            None => {}
            Some(found) => match wanted.accepts(&found, &opened.place) {
                Ok(()) => {}
                Err(StoreError::OtherBands { .. }) => {
                    // The caller may not know which topic the store was built from; the store must not forget
                    // it.
                    let made_from = Format::decode(&found).ok().and_then(|found| found.changelog);
                    wanted.changelog = wanted.changelog.or(made_from);
                    // First mark the postings as untrustworthy.
                    opened.put_format(&Format { rebanding: true, ..wanted.clone() })?;
                    let sst_directory = opened.sst_directory(directory)?;
                    let reader = RocksReader(Arc::new(opened));
                    let mut languages = Rows::languages(&reader).into_iter();
                    let rebuilt = languages.try_for_each(|language| {
                        reader.reband_language(language, options, &sst_directory, watch)
                    });
                    // Also after a failure: on a full disk an unfinished SST file would take the space that
                    // opening needs.
                    drop(std::fs::remove_dir_all(&sst_directory));
                    rebuilt?;
                    reader.0.flush()?;
                    reader.0.put_format(&wanted)?;
                }
                Err(other) => return Err(other),
            },
        }
        Rocks::open(directory, options)
    }
}

impl Opened {
    /// Creates an empty directory for SST files.
    fn sst_directory(&self, directory: &Path) -> Result<PathBuf, StoreError> {
        let sst_directory = directory.join(SST_DIRECTORY);
        // Left by an interrupted attempt.
        drop(std::fs::remove_dir_all(&sst_directory));
        let created = std::fs::create_dir(&sst_directory);
        created
            .map(|()| sst_directory)
            .map_err(|error| crate::index::rocksdb::io_failure(&self.place, &error))
    }

    fn unusable(&self, detail: String) -> StoreError {
        StoreError::Unusable { place: self.place.clone(), detail }
    }

    /// Writes each run of postings to an SST file and ingests it into the family.
    fn ingest(
        &self,
        family: Family,
        options: &RocksOptions,
        sst_directory: &Path,
        runs: &Receiver<Vec<Sortable>>,
    ) -> Result<(), StoreError> {
        let failure = |error: rocksdb::Error| self.failure(&error);
        let (handle, settings) = (self.existing(family)?, family_options(family, options));
        let mut ingesting = IngestExternalFileOptions::default();
        ingesting.set_move_files(true);
        for mut run in runs {
            run.sort_unstable();
            let path = sst_directory.join("run.sst");
            let mut table = SstFileWriter::create(&settings);
            table.open(&path).map_err(failure)?;
            for posting in run {
                table.put(bytes(posting), []).map_err(failure)?;
            }
            table.finish().map_err(failure)?;
            self.db
                .ingest_external_file_cf_opts(&handle, &ingesting, vec![path])
                .map_err(|error| self.failure(&error))?;
        }
        Ok(())
    }
}

impl RocksReader {
    fn reband_language(
        &self,
        language: Lang,
        options: &RocksOptions,
        sst_directory: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<(), StoreError> {
        let opened = &*self.0;
        let [_, bands] = Family::of(language);
        if opened.family(bands).is_some() {
            opened.db.drop_cf(&bands.name()).map_err(|error| opened.failure(&error))?;
        }
        opened.create(bands, options)?;
        // One thread reads and computes while the other sorts and writes.
        let (runs, sorted) = sync_channel(1);
        std::thread::scope(|scope| {
            let ingest = move || opened.ingest(bands, options, sst_directory, &sorted);
            let ingested =
                std::thread::Builder::new().name("new-postings".into()).spawn_scoped(scope, ingest);
            let ingested = ingested.map_err(|error| opened.unusable(error.to_string()))?;
            let posted = self.post(language, &options.postings, &runs, watch);
            drop(runs);
            let ingested =
                ingested.join().unwrap_or_else(|_| Err(opened.unusable("a thread panicked".into())));
            // If the receiver failed, the sender only knows that the channel closed; so the receiver's error
            // comes first.
            ingested.and(posted)
        })
    }

    /// Sends the postings of all documents, in runs.
    fn post(
        &self,
        language: Lang,
        postings: &IndexSchemes,
        runs: &SyncSender<Vec<Sortable>>,
        watch: &mut Watch<'_>,
    ) -> Result<(), StoreError> {
        let [documents, _] = Family::of(language);
        let of = self.documents_of(language)?;
        let interrupted = || self.0.unusable("rebuilding its postings was interrupted".into());
        let (mut run, mut done, mut outcome) = (Vec::with_capacity(RUN), 0, Ok(()));
        let mut post = |key: &[u8], value: &[u8]| -> Result<(), StoreError> {
            let document = decode_document(language, value)
                .map_err(|error| self.damage(documents, &format!("{}", key.escape_ascii()), &error))?;
            run.extend(document_postings(&document, postings).into_iter().map(sortable));
            if run.len() >= RUN {
                let full = std::mem::replace(&mut run, Vec::with_capacity(RUN));
                runs.send(full).map_err(|_| interrupted())?;
            }
            done += 1;
            if done % STEP == 0 && watch(Rebanded { language, documents: done, of }).is_break() {
                return Err(interrupted());
            }
            Ok(())
        };
        self.scan(documents, &Span::all(), Order::Ascending, &mut |key, value| {
            outcome = post(key, value);
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        outcome?;
        if !run.is_empty() {
            runs.send(run).map_err(|_| interrupted())?;
        }
        match watch(Rebanded { language, documents: done, of }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(interrupted()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::rocksdb::maintenance::upkeep::tests::{document, empty_store};
    use crate::index::{Store, verify};

    #[test]
    fn a_store_filled_without_postings_ends_up_like_one_filled_with_them() {
        let changes: Vec<_> = (0..40).map(document).collect();
        let (mut wanted, beside) = empty_store("refill-wanted");
        wanted.apply_own_changes(&changes).unwrap();
        let (store, directory) = empty_store("refill");
        let options = store.options.clone();
        drop(store);
        let mut store = Rocks::refill(&directory, &options).unwrap();
        for some in changes.chunks(7) {
            store.apply_own_changes(some).unwrap();
        }
        drop(store);
        let refusal = Rocks::open(&directory, &options).err().unwrap();
        assert!(matches!(refusal, StoreError::OtherBands { .. }), "{refusal}");
        let store = Rocks::reband(&directory, &options, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(store.dump().unwrap(), wanted.dump().unwrap());
        assert_eq!(verify(&store).unwrap().findings, Vec::<String>::new());
        assert!(!directory.join(SST_DIRECTORY).exists());
        drop(store);
        let refusal = Rocks::refill(&directory, &options).err().unwrap();
        assert!(refusal.to_string().contains("it holds articles"), "{refusal}");
        drop(wanted);
        [directory, beside].iter().for_each(|directory| drop(std::fs::remove_dir_all(directory)));
    }

    #[test]
    fn an_interrupted_reband_leaves_a_store_that_says_so() {
        let (mut store, directory) = empty_store("reband-stopped");
        let options = store.options.clone();
        store.apply_own_changes(&(0..3).map(document).collect::<Vec<_>>()).unwrap();
        store.reader().distrust_postings().unwrap();
        drop(store);
        let stopped = Rocks::reband(&directory, &options, &mut |_| ControlFlow::Break(())).err().unwrap();
        assert!(stopped.to_string().contains("interrupted"), "{stopped}");
        let refusal = Rocks::open(&directory, &options).err().unwrap();
        assert!(matches!(refusal, StoreError::OtherBands { .. }), "{refusal}");
        drop(std::fs::remove_dir_all(&directory));
    }
}
