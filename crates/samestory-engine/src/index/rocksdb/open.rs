//! Opening a store: the directory, the column families and their RocksDB options, and the check of the
//! header.
//!
//! `Rocks::open` and the maintenance commands come through here. A directory that is not clearly a store of
//! this program, or was created with other settings, is refused and left untouched.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use rocksdb::{
    BlockBasedOptions, ColumnFamilyDescriptor, DB, DBCompressionType, DBRecoveryMode, Options, WriteBatch,
    WriteOptions,
};

use super::budget::Budget;
use super::cache::documents::{DocumentCache, ENTRY_BYTES};
use super::observe::StoreObserver;
use super::{Opened, failure};
use crate::index::format::key;
use crate::index::format::key::Family;
use crate::index::{Durability, Format, IndexSchemes, StoreError, TopicIdentity};

/// Options for opening a store.
#[derive(Clone)]
pub struct RocksOptions {
    /// The index schemes; a store created with others is refused.
    pub postings: IndexSchemes,
    /// What restores the store after a crash; with a changelog it keeps no WAL.
    pub durability: Durability,
    /// The identity of the changelog topic; a store that was built from another one is refused. `None` skips
    /// the check.
    pub changelog: Option<TopicIdentity>,
    /// The memory budget, shared with the other stores.
    pub budget: Budget,
    /// Postings of a language in memory before they are frozen into a segment. If those of all languages and of all stores
    /// that share the budget are twice as many, the largest languages are frozen earlier.
    pub postings_in_memory: usize,
    /// If damaged segments covered more documents of a language than this, opening the store is refused with
    /// [`StoreError::OtherBands`], and [`super::Rocks::reband`] builds them again. For callers that cannot wait.
    pub most_rebuilt_at_open: u64,
    /// Fills the store without postings; [`super::Rocks::refill`] sets it.
    #[doc(hidden)]
    pub unposted: bool,
    /// Receives the duration of every operation.
    pub observer: Option<StoreObserver>,
    /// Memtable size of a column family, in bytes.
    pub write_buffer: usize,
    /// Maximum number of open files, within the limit of the process.
    pub open_files: i32,
    /// Disables atomic flush, to prove that a test notices.
    #[cfg(feature = "faults")]
    pub without_atomic_flush: bool,
    /// Writes the position outside the batch, to prove that a test notices.
    #[cfg(feature = "faults")]
    pub position_beside_the_batch: bool,
}

impl RocksOptions {
    /// Options with the default sizes, and as many postings in memory as the budget has room for.
    pub fn new(postings: IndexSchemes, durability: Durability, budget: Budget) -> RocksOptions {
        RocksOptions {
            postings,
            durability,
            changelog: None,
            postings_in_memory: budget.shares.postings_of_a_language(),
            most_rebuilt_at_open: u64::MAX,
            budget,
            unposted: false,
            observer: None,
            write_buffer: 48 << 20,
            open_files: 512,
            #[cfg(feature = "faults")]
            without_atomic_flush: false,
            #[cfg(feature = "faults")]
            position_beside_the_batch: false,
        }
    }
}

pub(super) fn open(directory: &Path, options: &RocksOptions) -> Result<Opened, StoreError> {
    let format =
        Format::new(options.durability, options.postings.clone()).made_from(options.changelog.clone());
    let opened = open_unchecked(directory, options)?;
    let meta = opened.existing(Family::Meta)?;
    match opened.db.get_cf(&meta, key::FORMAT).map_err(|error| opened.failure(&error))? {
        Some(found) => format.accepts(&found, &opened.place)?,
        None => {
            opened.refuse_rows_without_a_format()?;
            opened.put_format(&format)?;
        }
    }
    drop(meta);
    // A crash can happen between the creation of a language's two column families.
    for language in opened.languages() {
        for family in Family::of_language(language) {
            opened.create(family, options)?;
        }
    }
    Ok(opened)
}

/// Opens a store without checking its header.
pub(super) fn open_unchecked(directory: &Path, options: &RocksOptions) -> Result<Opened, StoreError> {
    let place = directory.display().to_string();
    let exists = prepare(directory, &place)?;
    let mut settings = database_options(options);
    settings.create_if_missing(!exists);
    let blocks = crate::index::rocksdb::cache::blocks::Counted::by(&mut settings);
    let mut families: BTreeSet<Family> = Family::COMMON.into();
    if exists {
        let names = DB::list_cf(&settings, directory).map_err(|error| failure(&place, &error))?;
        for name in names.iter().filter(|name| *name != "default") {
            families.insert(Family::from_name(name).map_err(|error| StoreError::Foreign {
                place: place.clone(),
                what: "column family",
                found: format!("{name:?} ({error})"),
                expected: "only those of this version".into(),
                remedy: "use the version of samestory that created it, or see what `samestory state rebuild` suggests",
            })?);
        }
    }
    let descriptors = families
        .into_iter()
        .map(|family| ColumnFamilyDescriptor::new(family.name(), family_options(family, options)));
    let db = DB::open_cf_descriptors(&settings, directory, descriptors)
        .map_err(|error| failure(&place, &error))?;
    Ok(Opened {
        db: super::bounded::Database::new(db),
        place,
        options: options.clone(),
        posting_tables: super::postings::PostingTables::new(options.budget.clone()),
        applying: std::sync::Mutex::default(),
        postings: options.postings.clone(),
        sieve: crate::index::rocksdb::cache::membership::MembershipFilter::default(),
        document_cache: DocumentCache::new(options.budget.room_for(ENTRY_BYTES)),
        canonical_cache: DocumentCache::new(options.budget.room_for(ENTRY_BYTES)),
        summary_cache: DocumentCache::new(options.budget.room_for_summaries()),
        row_cache: crate::index::rocksdb::cache::rows::RowCache::new(options.budget.clone()),
        version: 0.into(),
        blocks,
    })
}

/// Deletes a store and its directory. Refuses if any process has it open.
///
/// # Errors
/// The store is in use, or the file system refuses.
pub fn destroy(directory: &Path) -> Result<(), StoreError> {
    let place = directory.display().to_string();
    // RocksDB takes the store's lock first.
    DB::destroy(&Options::default(), directory).map_err(|error| failure(&place, &error))?;
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(super::io_failure(&place, &error)),
        _ => Ok(()),
    }
}

/// Creates the directory if needed, and returns whether it contains a store. Refuses a directory that
/// contains anything else.
fn prepare(directory: &Path, place: &str) -> Result<bool, StoreError> {
    let unusable = |detail: String| StoreError::Unusable { place: place.into(), detail };
    if directory.exists() && !directory.is_dir() {
        return Err(unusable("it is not a directory".into()));
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    // Titles, URLs and fingerprints of articles are private.
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(|error| super::io_failure(place, &error))?;
    let entries = std::fs::read_dir(directory).map_err(|error| super::io_failure(place, &error))?;
    let mut strangers = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| super::io_failure(place, &error))?.file_name();
        if name == "CURRENT" {
            return Ok(true);
        }
        // Left by a start that was interrupted before the store existed, or by the file system.
        let harmless = ["LOCK", "LOG", "IDENTITY", "MANIFEST", "OPTIONS", "lost+found"];
        let temporary = Path::new(&name).extension() == Some(OsStr::new("dbtmp"));
        if !temporary && !harmless.iter().any(|start| name.to_string_lossy().starts_with(start)) {
            strangers.push(name);
        }
    }
    let data = |name: &&std::ffi::OsString| {
        Path::new(name).extension().is_some_and(|extension| extension == "sst" || extension == "log")
    };
    match (strangers.iter().find(data), strangers.first()) {
        (Some(data), _) => Err(StoreError::Corrupt {
            place: place.into(),
            detail: format!("{} exists, but the file CURRENT is missing", data.display()),
        }),
        (None, Some(stranger)) => Err(unusable(format!(
            "it holds {}, which is not state; choose an empty directory",
            stranger.display()
        ))),
        (None, None) => Ok(false),
    }
}

impl Opened {
    /// Refuses a store that has rows but no header: the header is written first.
    fn refuse_rows_without_a_format(&self) -> Result<(), StoreError> {
        for family in self.families() {
            let mut rows = self.db.raw_iterator_cf(&self.existing(family)?);
            rows.seek_to_first();
            rows.status().map_err(|error| self.failure(&error))?;
            if rows.valid() {
                let detail = format!("{} has rows, but the row meta format is missing", family.name());
                return Err(StoreError::Corrupt { place: self.place.clone(), detail });
            }
        }
        Ok(())
    }

    /// Writes the header and flushes it.
    pub(super) fn put_format(&self, format: &Format) -> Result<(), StoreError> {
        self.write(format.durability, || {
            let mut batch = WriteBatch::default();
            batch.put_cf(&self.existing(Family::Meta)?, key::FORMAT, format.encode());
            Ok(batch)
        })?;
        self.flush()
    }
}

/// Write options: no WAL if there is a changelog, and a write that would stall fails instead, because
/// [`Opened::write`] does the waiting.
pub(super) fn write_options(durability: Durability) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_no_slowdown(true);
    options.disable_wal(matches!(durability, Durability::Changelog { .. }));
    options
}

fn database_options(options: &RocksOptions) -> Options {
    let mut settings = Options::default();
    settings.create_missing_column_families(true);
    // Otherwise a crash leaves each column family at a different point: the position ahead of its rows, or
    // behind them.
    settings.set_atomic_flush(true);
    #[cfg(feature = "faults")]
    settings.set_atomic_flush(!options.without_atomic_flush);
    settings.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    settings.set_write_buffer_manager(&options.budget.write_buffers);
    settings.set_max_open_files(options.open_files);
    settings.set_max_background_jobs(2);
    settings.set_keep_log_file_num(4);
    settings.set_max_log_file_size(4 << 20);
    settings
}

pub(super) fn family_options(family: Family, options: &RocksOptions) -> Options {
    let mut settings = Options::default();
    settings.set_write_buffer_size(options.write_buffer);
    settings.set_compression_type(DBCompressionType::Lz4);
    settings.set_bottommost_compression_type(DBCompressionType::Zstd);
    // Hashes contain no repetition to search for, only bits that are rarely set, so a higher level gains
    // nothing.
    settings.set_bottommost_compression_options(-14, 1, 0, 0, true);
    // Every compaction rewrites much of the existing data. So it waits for many new SST files, whose filters
    // keep lookups out of them, and there is one level below until that is large: a second level would be
    // rewritten ten times over.
    settings.set_level_zero_file_num_compaction_trigger(12);
    // Our writes must not wait, so they cannot be slowed down, only stopped: each retry would add to its own
    // delay.
    settings.set_level_zero_slowdown_writes_trigger(60);
    settings.set_level_zero_stop_writes_trigger(60);
    settings.set_soft_pending_compaction_bytes_limit(256 << 30);
    settings.set_hard_pending_compaction_bytes_limit(256 << 30);
    settings.set_max_bytes_for_level_base(1 << 30);
    settings.set_level_compaction_dynamic_level_bytes(true);
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&options.budget.cache);
    if !matches!(family, Family::Bands(_)) {
        table.set_bloom_filter(10.0, false);
    }
    table.set_format_version(6);
    // Filters stay in memory with their SST files: in the block cache, one larger than a shard would be read
    // again at every lookup.
    table.set_cache_index_and_filter_blocks(false);
    if let Family::Documents(_) = family {
        // Documents arrive with ascending numbers, so their SST files do not overlap and need no compaction.
        // Compressed fully at once, they are moved down unchanged.
        settings.set_compression_type(DBCompressionType::Zstd);
        settings.set_compression_options(-14, 1, 0, 0);
        // Two or three documents per block: a lookup wants only one of them but decompresses all.
        table.set_block_size(2 << 10);
        // Documents that are needed again are cached decoded, and a document that is looked up nearly always
        // exists.
        table.disable_cache();
        settings.set_optimize_filters_for_hits(true);
    }
    if let Family::Bands(_) = family {
        // Hashes and numbers at their width: nothing is left to compress. Each row is a block of its own.
        settings.set_compression_type(DBCompressionType::None);
        settings.set_bottommost_compression_type(DBCompressionType::None);
        table.set_block_size(1 << 10);
        // Rows are cached by their number, without a search for the key.
        table.disable_cache();
        // Segments have filters of their own, never overlap, and are replaced as a whole.
        settings.set_disable_auto_compactions(true);
    }
    settings.set_block_based_table_factory(&table);
    settings
}
