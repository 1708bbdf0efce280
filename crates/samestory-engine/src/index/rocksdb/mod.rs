//! The RocksDB store: one database per partition. Only this folder uses the `rocksdb` crate.
//!
//! [`open`] opens and checks a directory, [`read`] serves lookups through the caches in [`cache`], and
//! [`maintenance`] holds the operators' work. After a crash the store holds exactly the batches up to some
//! point: all column families are flushed together, and the position is a row like any other. Opening never
//! wipes anything.

mod bounded;
mod budget;
mod cache;
mod existing;
#[cfg(test)]
mod full_tests;
mod maintenance;
mod observe;
mod open;
mod postings;
mod read;
mod registry;
#[cfg(test)]
mod registry_tests;
mod snapshot;

use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

use rocksdb::{BoundColumnFamily, ErrorKind, WriteBatch};

use crate::lsh::BandKey;
use crate::model::{ArticleId, DocumentNumber, Lang};

use super::format::key;
use super::format::key::Family;
use super::read::rows::{Order, PostingLists, Span, Visit};
use super::read::view::View;
use super::record::{Document, DocumentSummary};
use super::scheme::IndexSchemes;
use super::write_set::change::Change;
use super::write_set::overlay::{Overlay, WriteSet};
use super::write_set::pending::Pending;
use super::{Attestor, Durability, Opening, Proven, Store, StoreError};

pub use budget::Budget;
pub use cache::blocks::BlockReads;
pub use maintenance::upkeep::{Inspection, LanguageInspection};
pub use observe::{StoreObserver, StoreOperation};
pub use open::{RocksOptions, destroy};
pub use postings::upkeep::{Rebanded, Watch};
pub use registry::{ReadLease, Registration, StoreRegistry};
pub use snapshot::Snapshot;

/// An index in a directory.
pub struct Rocks {
    // Dropped first, because these use the store.
    scan: cache::membership::Scan,
    upkeep: postings::upkeep::Upkeep,
    reader: RocksReader,
    opening: Opening,
    /// Why a batch could not be applied. Applying a later one would create a state that no log ever had.
    broken: Option<StoreError>,
}

/// A read handle for other threads while the store is being written. Each call sees a whole number of
/// batches; two calls may see different ones.
#[derive(Clone)]
pub struct RocksReader(Arc<Opened>);

struct Opened {
    db: bounded::Database,
    place: String,
    options: RocksOptions,
    postings: IndexSchemes,
    posting_tables: postings::PostingTables,
    /// Held while a write is applied, and by a snapshot while it is taken.
    applying: Mutex<()>,
    sieve: cache::membership::MembershipFilter,
    document_cache: cache::documents::DocumentCache<Arc<Document>>,
    /// Canonicals by founder; `None` if a cluster has no row.
    canonical_cache: cache::documents::DocumentCache<Option<DocumentNumber>>,
    summary_cache: cache::documents::DocumentCache<DocumentSummary>,
    row_cache: cache::rows::RowCache,
    version: AtomicU64,
    blocks: cache::blocks::Counted,
}

impl Rocks {
    /// Opens the state in a directory, or creates it if there is none.
    ///
    /// # Errors
    /// Nothing is ever wiped; see [`StoreError`] for the reaction to each. In particular, [`Rocks::reband`]
    /// resolves [`StoreError::OtherBands`].
    pub fn open(directory: &Path, options: &RocksOptions) -> Result<Rocks, StoreError> {
        let reader = RocksReader(Arc::new(open::open(directory, options)?));
        let damage = postings::upkeep::Damage::Rebuild { most: options.most_rebuilt_at_open };
        reader.load_postings(damage, &mut |_| ControlFlow::Continue(()))?;
        Ok(Rocks::with(reader))
    }

    fn with(reader: RocksReader) -> Rocks {
        Rocks {
            scan: cache::membership::Scan::start(reader.clone()),
            upkeep: postings::upkeep::Upkeep::default(),
            reader,
            opening: Opening::new(),
            broken: None,
        }
    }

    /// Waits until no postings are being frozen or merged, and none need be. Only measurements and tests need this.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn settle(&mut self) -> Result<(), StoreError> {
        self.upkeep.settle(&self.reader).map_err(|error| self.reader.0.forget_damaged(error))
    }

    /// Waits until the membership filter is complete. Only measurements need this: until then lookups are
    /// slower but return the same.
    pub fn wait_for_filter(&mut self) {
        self.scan.wait();
    }

    /// A read handle for other threads. The directory stays in use until the last handle is dropped.
    pub fn reader(&self) -> RocksReader {
        self.reader.clone()
    }

    fn opened(&self) -> &Opened {
        &self.reader.0
    }

    fn write_unbroken(&mut self, write_set: WriteSet, next: Option<u64>) -> Result<(), StoreError> {
        #[cfg(feature = "faults")]
        let next = self.written_beside(next)?;
        let pending = write_set.pending(self)?;
        // A restore meets languages in the middle of a log; a turn has seen to it before it committed.
        for &language in pending.bands.keys() {
            self.ensure_language(language)?;
        }
        // Before it is written: an id must never be there without the filter knowing.
        self.opened().sieve.insert(&pending);
        let (batch, tables) = std::thread::scope(|scope| {
            let (upkeep, opened) = (&mut self.upkeep, &*self.reader.0);
            let mut stage = || match opened.options.unposted {
                true => Ok(Default::default()),
                false => upkeep
                    .staged(opened, postings::Staged::new(&pending, &opened.postings))
                    .map_err(|error| opened.forget_damaged(error)),
            };
            let batch = || opened.batch(&pending, next);
            // Without a thread there is still this one.
            match std::thread::Builder::new().spawn_scoped(scope, batch) {
                Ok(batch) => {
                    let staged = stage();
                    let batch = batch.join().unwrap_or_else(|_| opened.batch(&pending, next));
                    (batch, staged)
                }
                Err(_) => (opened.batch(&pending, next), stage()),
            }
        });
        let (tables, meta) = tables?;
        let opened = self.opened();
        let batch = Cell::new(Some(batch?));
        // After a stall the batch is made once more: RocksDB has consumed the first.
        let make = || {
            let mut batch = batch.take().map_or_else(|| opened.batch(&pending, next), Ok)?;
            opened.add_meta(&mut batch, &meta)?;
            Ok(batch)
        };
        let applying = opened.applying.lock().unwrap_or_else(PoisonError::into_inner);
        opened.write(opened.options.durability, make)?;
        opened.posting_tables.replace(tables);
        drop(applying);
        opened.note(&pending);
        opened.version.fetch_add(1, Ordering::Relaxed);
        if !opened.options.unposted {
            self.upkeep.start(&self.reader)?;
        }
        if self.opened().sieve.is_stale(self.opened()) || self.opened().sieve.is_due() {
            self.scan = cache::membership::Scan::start(self.reader());
        }
        Ok(())
    }

    /// An injected fault: writes the position outside the batch, so that it is durable before the rows that
    /// it covers.
    #[cfg(feature = "faults")]
    fn written_beside(&self, next: Option<u64>) -> Result<Option<u64>, StoreError> {
        let Some(at) = next.filter(|_| self.opened().options.position_beside_the_batch) else {
            return Ok(next);
        };
        self.opened().write(self.opened().options.durability, || {
            let mut batch = WriteBatch::default();
            batch.put_cf(&self.opened().existing(Family::Meta)?, key::CHANGELOG, at.to_be_bytes());
            Ok(batch)
        })?;
        self.opened().flush()?;
        Ok(None)
    }
}

impl Opened {
    /// The staged rows. Postings are none of them: they follow from the documents.
    fn batch(&self, pending: &Pending, changelog_next: Option<u64>) -> Result<WriteBatch, StoreError> {
        let mut batch = WriteBatch::with_capacity_bytes(pending.bytes);
        for (&language, documents) in &pending.documents {
            let family = self.existing(Family::Documents(language))?;
            for (&number, document) in documents {
                let key = key::number(number);
                match document {
                    Some(staged) => batch.put_cf(&family, key, staged.bytes()),
                    None => batch.delete_cf(&family, key),
                }
            }
        }
        for (&family, rows) in &pending.rows {
            let family = self.existing(family)?;
            for (key, value) in rows {
                match value {
                    Some(value) => batch.put_cf(&family, key, value),
                    None => batch.delete_cf(&family, key),
                }
            }
        }
        if let Some(next) = changelog_next {
            batch.put_cf(&self.existing(Family::Meta)?, key::CHANGELOG, next.to_be_bytes());
        }
        Ok(batch)
    }
}

impl Store for Rocks {
    fn ensure_language(&mut self, language: Lang) -> Result<(), StoreError> {
        // If a flush has failed since the last turn, the next write would fail too, but only after its
        // commit.
        self.opened().check_background()?;
        let opened = &self.reader.0;
        self.upkeep.check(opened).map_err(|error| opened.forget_damaged(error))?;
        for family in Family::of_language(language) {
            self.opened().create(family, &self.opened().options)?;
        }
        Ok(())
    }

    fn attestor(&mut self) -> Option<Attestor> {
        self.opening.attestor(self.reader.0.options.durability)
    }

    fn opened_with(&self) -> (Durability, u64) {
        (self.opened().options.durability, self.opening.number)
    }

    fn stage(&mut self, changes: &[Change]) -> Result<WriteSet, StoreError> {
        let mut overlay = Overlay::new(&*self);
        let staged = changes.iter().try_for_each(|change| overlay.stage(change));
        staged.map(|()| overlay.into_write_set()).map_err(|error| self.broken.get_or_insert(error).clone())
    }

    fn write(&mut self, write_set: WriteSet, proven: Proven) -> Result<(), StoreError> {
        match self.broken {
            None => {
                let reader = self.reader.clone();
                let write = || self.write_unbroken(write_set, proven.changelog_next);
                let written = reader.0.timed(StoreOperation::Write, write);
                written.map_err(|error| self.broken.insert(error).clone())
            }
            Some(ref error) => Err(error.clone()),
        }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        #[cfg(feature = "faults")]
        if self.opened().options.without_atomic_flush {
            return self.opened().flush_one_by_one();
        }
        self.opened().timed(StoreOperation::Flush, || self.opened().flush())
    }
}

impl Opened {
    /// Updates the caches after a write.
    fn note(&self, pending: &Pending) {
        let documents = || {
            pending.documents.iter().flat_map(|(&language, documents)| {
                documents.iter().map(move |(&number, staged)| {
                    ((language, number), staged.as_ref().map(|staged| &staged.document))
                })
            })
        };
        self.document_cache.written(documents().map(|(key, document)| (key, document.cloned())));
        let summary = |document: &Arc<Document>| document.summary();
        self.summary_cache.written(documents().map(|(key, document)| (key, document.map(summary))));
        let canonicals = pending.canonicals.iter().flat_map(|(&language, canonicals)| {
            canonicals.iter().map(move |(&founder, &canonical)| ((language, founder), Some(canonical)))
        });
        self.canonical_cache.written(canonicals);
    }

    fn family(&self, family: Family) -> Option<Arc<BoundColumnFamily<'_>>> {
        self.db.cf_handle(&family.name())
    }

    fn existing(&self, family: Family) -> Result<Arc<BoundColumnFamily<'_>>, StoreError> {
        self.family(family).ok_or_else(|| StoreError::Corrupt {
            place: self.place.clone(),
            detail: format!("column family {} is missing", family.name()),
        })
    }

    fn create(&self, family: Family, options: &RocksOptions) -> Result<(), StoreError> {
        if self.family(family).is_some() {
            return Ok(());
        }
        let created = self.db.create_cf(family.name(), &open::family_options(family, options));
        created.map_err(|error| self.failure(&error))
    }

    /// The existing column families: the common ones, then two for each language.
    fn families(&self) -> Vec<Family> {
        let languages = self.languages().into_iter().flat_map(Family::of_language);
        Family::COMMON.into_iter().chain(languages).filter(|&family| self.family(family).is_some()).collect()
    }

    fn languages(&self) -> Vec<Lang> {
        let mut languages: Vec<Lang> = crate::text::language::LANGUAGES.iter().map(|row| row.lang).collect();
        languages.retain(|&language| self.family(Family::Documents(language)).is_some());
        languages.sort_unstable();
        languages
    }

    /// What RocksDB may do at any time without atomic flush: flush one family now and another one later.
    #[cfg(feature = "faults")]
    fn flush_one_by_one(&self) -> Result<(), StoreError> {
        for family in self.families().into_iter().filter_map(|family| self.family(family)) {
            self.db.flush_cf(&family).map_err(|error| self.failure(&error))?;
            std::thread::sleep(std::time::Duration::from_millis(60));
        }
        Ok(())
    }

    fn failure(&self, error: &rocksdb::Error) -> StoreError {
        failure(&self.place, error)
    }
}

/// Messages of the operating system about missing space.
const NO_SPACE: &[&str] = &["No space left", "quota exceeded", "File too large"];

/// Classifies an error of RocksDB by the reaction that it needs. An unknown kind counts as damage, never as
/// an absent row.
fn failure(place: &str, error: &rocksdb::Error) -> StoreError {
    let (place, detail) = (place.to_owned(), error.to_string());
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| detail.contains(phrase));
    match error.kind() {
        ErrorKind::Corruption | ErrorKind::Unknown | ErrorKind::NotFound => {
            StoreError::Corrupt { place, detail }
        }
        ErrorKind::IOError if says(&["lock file", "lock hold"]) => StoreError::InUse { place },
        ErrorKind::IOError | ErrorKind::Incomplete if says(NO_SPACE) => StoreError::Full { place, detail },
        // The store is intact: background work is late, or was stopped by closing.
        ErrorKind::Incomplete
        | ErrorKind::ShutdownInProgress
        | ErrorKind::TimedOut
        | ErrorKind::Aborted
        | ErrorKind::Busy
        | ErrorKind::TryAgain => StoreError::Stalled { place, detail },
        ErrorKind::IOError => StoreError::Failing { place, detail },
        _ => StoreError::Unusable { place, detail },
    }
}

/// The same for an error of the file system.
fn io_failure(place: &str, error: &io::Error) -> StoreError {
    let (place, detail) = (place.to_owned(), error.to_string());
    match is_no_space(error) {
        true => StoreError::Full { place, detail },
        false if may_pass(error) => StoreError::Failing { place, detail },
        false => StoreError::Unusable { place, detail },
    }
}

/// Whether an operating system error is unrelated to the path, so that the same call may succeed later.
fn may_pass(error: &io::Error) -> bool {
    // EIO, EAGAIN, ENOMEM, ENFILE, EMFILE, ETIMEDOUT, ESTALE: the standard library has no error kinds for
    // most of them.
    matches!(error.raw_os_error(), Some(5 | 11 | 12 | 23 | 24 | 110 | 116))
}

fn is_no_space(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Checks that there is room beside a store's directory for it to be opened and written, by writing 1 MiB.
///
/// # Errors
/// There is no room: [`StoreError::Full`].
pub fn check_room(directory: &Path) -> Result<(), StoreError> {
    let mut name = directory.file_name().unwrap_or_default().to_owned();
    name.push(".room");
    let probe = directory.with_file_name(name);
    let written = fs::write(&probe, vec![0; 1 << 20]);
    // If it cannot be removed, the next check overwrites it.
    let _removed = fs::remove_file(&probe);
    match written {
        Err(error) if is_no_space(&error) => Err(io_failure(&directory.display().to_string(), &error)),
        // Any other problem shows when the store is opened.
        _ => Ok(()),
    }
}

impl View for Rocks {
    fn place(&self) -> &str {
        self.reader.place()
    }
    fn version(&self) -> u64 {
        self.reader.version()
    }
    fn postings(&self) -> &IndexSchemes {
        self.reader.postings()
    }
    fn languages(&self) -> Vec<Lang> {
        self.reader.languages()
    }
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.reader.get(family, key)
    }
    fn scan(
        &self,
        family: Family,
        span: &Span,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let scanned = self.reader.scan(family, span, order, visit);
        scanned.map_err(|error| self.opened().forget_damaged(error))
    }
    fn get_many(&self, family: Family, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.reader.get_many(family, keys)
    }
    fn may_know(&self, id: &ArticleId) -> bool {
        self.reader.may_know(id)
    }
    fn shared_documents(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<Arc<Document>>>, StoreError> {
        self.reader.shared_documents(language, numbers)
    }
    fn summaries(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<DocumentSummary>>, StoreError> {
        self.reader.summaries(language, numbers)
    }
    fn canonicals(
        &self,
        language: Lang,
        founders: &[DocumentNumber],
    ) -> Result<Vec<Option<DocumentNumber>>, StoreError> {
        self.reader.canonicals(language, founders)
    }
    fn read_ahead(&self, language: Lang, numbers: Vec<DocumentNumber>) -> Result<(), StoreError> {
        self.reader.read_ahead(language, numbers)
    }
    fn posting_lists(
        &self,
        language: Lang,
        keys: &[BandKey],
        cap: usize,
    ) -> Result<PostingLists, StoreError> {
        let lists = self.reader.posting_lists(language, keys, cap);
        lists.map_err(|error| self.opened().forget_damaged(error))
    }
}
