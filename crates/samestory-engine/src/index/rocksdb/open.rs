//! Opening: the directory, the families, the settings of each, and the check of what the store was made with.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBCompressionType, DBRecoveryMode, LruCacheOptions,
    Options, SliceTransform, WriteBatch, WriteBufferManager, WriteOptions,
};

use super::{Opened, failure};
use crate::index::format::key;
use crate::index::format::key::{BUCKET, Family};
use crate::index::{Durability, Format, IndexSchemes, StoreError, TopicIdentity};

/// Memory that all stores of the process share.
#[derive(Clone)]
pub struct Budget {
    cache: Cache,
    write_buffers: WriteBufferManager,
}

impl Budget {
    /// So many bytes for blocks read, of which write buffers may take so many.
    pub fn new(cache: usize, write_buffers: usize) -> Budget {
        let mut options = LruCacheOptions::default();
        options.set_capacity(cache);
        // Few shards: what is larger than one is never kept.
        options.set_num_shard_bits(3);
        let cache = Cache::new_lru_cache_opts(&options);
        // Never stall: with many families a stalled writer can wait for a flush that waits for it.
        let write_buffers =
            WriteBufferManager::new_write_buffer_manager_with_cache(write_buffers, false, cache.clone());
        Budget { cache, write_buffers }
    }
}

impl Default for Budget {
    fn default() -> Budget {
        // Filters, indexes and what is kept decoded come on top of it: `samestory plan` says how much.
        Budget::new(crate::index::BUDGET_BYTES, 64 << 20)
    }
}

/// How to open a store.
#[derive(Clone)]
pub struct RocksOptions {
    /// How documents are posted; a store made with other ones is refused.
    pub postings: IndexSchemes,
    /// What makes it whole after a crash; with a changelog it keeps no log of its own.
    pub ahead: Durability,
    /// Which topic the changelog is; a store that was made from another one is refused. Nothing asks for nothing.
    pub changelog: Option<TopicIdentity>,
    /// Memory shared with the other stores.
    pub budget: Budget,
    /// Bytes that a family collects before they are written down.
    pub write_buffer: usize,
    /// Files kept open, of the process's limit.
    pub open_files: i32,
    /// A guard taken away, to see that its absence is noticed.
    #[cfg(feature = "faults")]
    pub without_atomic_flush: bool,
    /// A guard taken away, to see that its absence is noticed.
    #[cfg(feature = "faults")]
    pub position_beside_the_batch: bool,
}

impl RocksOptions {
    /// The usual sizes.
    pub fn new(postings: IndexSchemes, ahead: Durability, budget: Budget) -> RocksOptions {
        RocksOptions {
            postings,
            ahead,
            changelog: None,
            budget,
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
    let format = Format::new(options.ahead, options.postings.clone()).made_from(options.changelog.clone());
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
    // A crash can fall between the two families of a language.
    for language in opened.languages() {
        for family in Family::of(language) {
            opened.create(family, options)?;
        }
    }
    Ok(opened)
}

/// Opens without asking what the store was made with.
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
                remedy: "use the version of samestory that made it; `samestory state rebuild` says what else can be done",
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
        postings: options.postings.clone(),
        sieve: crate::index::rocksdb::cache::membership::MembershipFilter::default(),
        recent: crate::index::rocksdb::cache::documents::DocumentCache::new(
            crate::index::rocksdb::cache::documents::DOCUMENTS,
        ),
        standing: crate::index::rocksdb::cache::documents::DocumentCache::new(
            crate::index::rocksdb::cache::documents::CANONICALS,
        ),
        crowded: super::HotBucketCache::default(),
        version: 0.into(),
        blocks,
    })
}

/// Deletes a store and its directory. One that is open anywhere is refused.
///
/// # Errors
/// It is in use, or the file system refuses.
pub fn destroy(directory: &Path) -> Result<(), StoreError> {
    let place = directory.display().to_string();
    // It takes the lock of the store first.
    DB::destroy(&Options::default(), directory).map_err(|error| failure(&place, &error))?;
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(super::io_failure(&place, &error)),
        _ => Ok(()),
    }
}

/// Makes the directory, and tells whether a store is in it. Anything that might be one and is not is refused.
fn prepare(directory: &Path, place: &str) -> Result<bool, StoreError> {
    let unusable = |detail: String| StoreError::Unusable { place: place.into(), detail };
    if directory.exists() && !directory.is_dir() {
        return Err(unusable("it is not a directory".into()));
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    // Titles, addresses and fingerprints of articles are nobody else's business.
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
        // Left by a start that was cut off before the store existed, or by the file system.
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
            detail: format!("{} is there, but the file CURRENT is not", data.display()),
        }),
        (None, Some(stranger)) => Err(unusable(format!(
            "it holds {}, which is not state; choose an empty directory",
            stranger.display()
        ))),
        (None, None) => Ok(false),
    }
}

impl Opened {
    /// A store that has rows knows what it was made with: the first thing written is that.
    fn refuse_rows_without_a_format(&self) -> Result<(), StoreError> {
        for family in self.families() {
            let mut rows = self.db.raw_iterator_cf(&self.existing(family)?);
            rows.seek_to_first();
            rows.status().map_err(|error| self.failure(&error))?;
            if rows.valid() {
                let detail = format!("{} has rows, but there is no meta format", family.name());
                return Err(StoreError::Corrupt { place: self.place.clone(), detail });
            }
        }
        Ok(())
    }

    /// Writes down what the store is made with, and sees to it that it stays.
    pub(super) fn put_format(&self, format: &Format) -> Result<(), StoreError> {
        self.write(format.ahead, || {
            let mut batch = WriteBatch::default();
            batch.put_cf(&self.existing(Family::Meta)?, key::FORMAT, format.encode());
            Ok(batch)
        })?;
        self.flush()
    }
}

/// Where the changelog is the log, RocksDB keeps none. A write that would stall fails instead; [`Opened::write`] waits.
pub(super) fn writing(ahead: Durability) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_no_slowdown(true);
    options.disable_wal(matches!(ahead, Durability::Changelog { .. }));
    options
}

fn database_options(options: &RocksOptions) -> Options {
    let mut settings = Options::default();
    settings.create_missing_column_families(true);
    // Without this a crash leaves each family at another moment: the position ahead of its rows, or behind.
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
    // Hashes have no repeats to search for, only bits that are seldom set: a harder search finds nothing more.
    settings.set_bottommost_compression_options(-14, 1, 0, 0, true);
    // Every merge rewrites much of what is there. So it waits for many new tables, which filters keep look-ups out of, and
    // there is one level below them until that is large: a second one would be rewritten ten times over.
    settings.set_level_zero_file_num_compaction_trigger(12);
    // A write that must not wait cannot be slowed down, only stopped: each attempt would add to its own delay.
    settings.set_level_zero_slowdown_writes_trigger(60);
    settings.set_level_zero_stop_writes_trigger(60);
    settings.set_soft_pending_compaction_bytes_limit(256 << 30);
    settings.set_hard_pending_compaction_bytes_limit(256 << 30);
    settings.set_max_bytes_for_level_base(1 << 30);
    settings.set_level_compaction_dynamic_level_bytes(true);
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&options.budget.cache);
    table.set_bloom_filter(10.0, false);
    table.set_format_version(6);
    // Filters stay with their tables: in the cache, one larger than a shard would be read again at every look-up.
    table.set_cache_index_and_filter_blocks(false);
    if let Family::Documents(_) = family {
        // Documents come with ascending numbers, so their tables do not overlap and need no merging: packed for good at
        // once, they are moved down as they are.
        settings.set_compression_type(DBCompressionType::Zstd);
        settings.set_compression_options(-14, 1, 0, 0);
        // Two or three to a block: nothing else of it is wanted, and all of it is unpacked.
        table.set_block_size(2 << 10);
        // Those wanted again are kept ready to be compared, and who is looked for is there.
        table.disable_cache();
        settings.set_optimize_filters_for_hits(true);
    }
    if let Family::Bands(_) = family {
        // Six buckets are read for an article, each in another block: unpacking those took longer than finding them.
        settings.set_bottommost_compression_type(DBCompressionType::Lz4);
        // Buckets are looked up by prefix, rows never.
        settings.set_prefix_extractor(SliceTransform::create_fixed_prefix(BUCKET));
        table.set_whole_key_filtering(false);
        // The filter of all buckets has been asked before, so what is looked for is nearly always there: filters of the
        // last level, nine tenths of them all, would say so again.
        settings.set_optimize_filters_for_hits(true);
    }
    settings.set_block_based_table_factory(&table);
    settings
}
