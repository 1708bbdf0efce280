//! Opens an existing store as it was created, for commands that do not know its settings.
//!
//! The `state` commands use it to inspect, verify and rebuild. It never creates a store where there is none.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use rocksdb::{DB, Options, ReadOptions, properties};

use super::budget::Budget;
use super::open::{RocksOptions, open_unchecked};
use super::postings::upkeep::Damage;
use super::{RocksReader, failure};
use crate::fingerprint::Scheme;
use crate::index::format::key::Family;
use crate::index::read::rows::{Order, Span};
use crate::index::read::view::View;
use crate::index::{Durability, Format, IndexScheme, IndexSchemes, SimHashBands, StoreError};
use crate::model::Lang;

impl RocksReader {
    /// Opens the store in a directory, whatever bands and log it was created with and whether or not its
    /// bands are complete. The directory stays in use until the last handle is dropped.
    ///
    /// # Errors
    /// There is no store, or it is damaged, in use, or another program's.
    pub fn existing(directory: &Path, budget: &Budget) -> Result<RocksReader, StoreError> {
        let place = directory.display().to_string();
        find(directory, &place)?;
        // The index schemes are not known yet, and opening does not need them.
        let none = IndexScheme { minhash: None, simhash: SimHashBands::None, samples: 0, shortest: 0 };
        let options = RocksOptions::new(IndexSchemes::new(none), Durability::OwnWal, budget.clone());
        let mut reader = RocksReader(Arc::new(open_unchecked(directory, &options)?));
        let format = match View::format(&reader)? {
            None => None,
            Some(bytes) => match Format::decode(&bytes) {
                Ok(format) => Some(format),
                Err(_) => {
                    let known = Format::new(Durability::OwnWal, options.postings.clone());
                    known.accepts(&bytes, &place)?;
                    None
                }
            },
        };
        if let (Some(format), Some(opened)) = (format, Arc::get_mut(&mut reader.0)) {
            opened.postings = format.postings;
        }
        // A crash can happen between the creation of a language's two column families.
        for language in reader.languages() {
            for family in Family::of_language(language) {
                reader.0.create(family, &options)?;
            }
        }
        if reader.has_postings()? {
            reader.load_postings(Damage::Keep, &mut |_| ControlFlow::Continue(()))?;
        }
        Ok(reader)
    }

    /// Whether its postings can be read: they are complete, and this version can read its fingerprints.
    fn has_postings(&self) -> Result<bool, StoreError> {
        let format = View::format(self)?.and_then(|bytes| Format::decode(&bytes).ok());
        Ok(format.is_some_and(|format| !format.rebanding && format.scheme == Scheme::CURRENT.number()))
    }

    /// Marks the postings as unusable until [`super::Rocks::reband`] has rebuilt them.
    ///
    /// # Errors
    /// The mark could not be written.
    pub fn distrust_postings(&self) -> Result<(), StoreError> {
        let format = View::format(self)?.map(|bytes| Format::decode(&bytes)).transpose();
        match format.map_err(|error| self.damage(Family::Meta, "format", &error))? {
            Some(format) => self.0.put_format(&Format { rebanding: true, ..format }),
            None => Ok(()),
        }
    }

    /// The approximate number of rows.
    pub fn rows_estimate(&self) -> u64 {
        let rows = |family| {
            let handle = self.0.family(family)?;
            self.0.db.property_int_value_cf(&handle, properties::ESTIMATE_NUM_KEYS).ok().flatten()
        };
        self.0.families().into_iter().filter_map(rows).sum()
    }

    /// Counts the postings of a language: about a second for five million.
    ///
    /// # Errors
    /// The postings could not be read.
    pub fn count_postings(&self, language: Lang) -> Result<u64, StoreError> {
        let mut count = 0;
        self.scan(Family::Bands(language), &Span::all(), Order::Ascending, &mut |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    /// Bytes on disk per column family.
    pub fn sizes(&self) -> Vec<(Family, u64)> {
        let size = |family| {
            let handle = self.0.family(family)?;
            self.0.db.property_int_value_cf(&handle, properties::LIVE_SST_FILES_SIZE).ok().flatten()
        };
        let families = self.0.families().into_iter();
        families.map(|family| (family, size(family).unwrap_or_default())).collect()
    }

    /// Hits and misses of the block cache and of the cache of segment rows, since the last call.
    pub fn blocks(&self) -> super::BlockReads {
        let (blocks, (hits, misses)) = (self.0.blocks.since(), self.0.row_cache.counts());
        super::BlockReads { hits: blocks.hits + hits, misses: blocks.misses + misses }
    }

    /// Bytes of memory that the postings take: those of the newest documents, and the filters of the others.
    pub fn posting_memory(&self) -> usize {
        self.0.posting_tables.all().values().map(|table| table.bytes()).sum()
    }

    /// Lists the damage in every SST file: a scan of a family stops at the first damage, and there may be
    /// more.
    ///
    /// # Errors
    /// The store cannot be read at all.
    pub fn damages(&self) -> Result<Vec<String>, StoreError> {
        let files = self.0.db.live_files().map_err(|error| self.0.failure(&error))?;
        let mut damages = BTreeSet::new();
        for file in files {
            let Ok(family) = Family::from_name(&file.column_family_name) else { continue };
            let to = file.end_key.map(|end| [&end[..], &[0]].concat());
            let span = Span { from: file.start_key.unwrap_or_default(), to };
            // From both ends: data behind the first damage may be damaged too.
            for order in [Order::Ascending, Order::Descending] {
                let read = self.0.scan_rows(ReadOptions::default(), family, &span, order, &mut |_, _| {
                    ControlFlow::Continue(())
                });
                match read {
                    Err(StoreError::Corrupt { detail, .. }) => {
                        damages.insert(format!("{}: {detail}", family.name()));
                    }
                    other => other?,
                }
            }
        }
        Ok(damages.into_iter().collect())
    }
}

/// Checks, as far as possible without opening it, that the directory contains a store of this program.
fn find(directory: &Path, place: &str) -> Result<(), StoreError> {
    let unusable = |detail: String| StoreError::Unusable { place: place.into(), detail };
    if !directory.is_dir() {
        let what = if directory.exists() { "it is not a directory" } else { "there is no such directory" };
        return Err(unusable(what.into()));
    }
    if !directory.join("CURRENT").exists() {
        let entries = std::fs::read_dir(directory).map_err(|error| unusable(error.to_string()))?;
        let mut names = entries.filter_map(|entry| entry.ok().map(|entry| entry.file_name()));
        return Err(
            match names.find(|name| Path::new(name).extension().is_some_and(|found| found == "sst")) {
                None => unusable("there is no state in it".into()),
                Some(data) => StoreError::Corrupt {
                    place: place.into(),
                    detail: format!("{} exists, but the file CURRENT is missing", data.display()),
                },
            },
        );
    }
    let names = DB::list_cf(&Options::default(), directory).map_err(|error| failure(place, &error))?;
    if names.contains(&Family::Meta.name()) {
        Ok(())
    } else {
        Err(unusable("it holds the database of another program".into()))
    }
}
