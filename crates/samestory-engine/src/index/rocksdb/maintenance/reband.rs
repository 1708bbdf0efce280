//! Re-banding: drops all postings and builds them again from the stored fingerprints, for new bands or for a store that was
//! filled without postings. `samestory state rebuild` and the restore from the changelog use it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::index::format::key;
use crate::index::format::key::Family;
use crate::index::rocksdb::open::{RocksOptions, open, open_unchecked};
use crate::index::rocksdb::postings::upkeep::Damage;
use crate::index::rocksdb::{Rocks, RocksReader, Watch};
use crate::index::{Format, IndexScheme, IndexSchemes, SimHashBands, StoreError};

impl Rocks {
    /// Opens an empty store to be filled without postings, which [`Rocks::reband`] builds at the end. Until
    /// then the store refuses to be opened normally.
    ///
    /// # Errors
    /// As [`Rocks::open`]; also if the store is not empty.
    pub fn refill(directory: &Path, options: &RocksOptions) -> Result<Rocks, StoreError> {
        // Staging a document for nothing but its content takes a third of the time that all its postings take.
        let content_only =
            IndexScheme { minhash: None, simhash: SimHashBands::None, samples: 0, shortest: u32::MAX };
        let postings = IndexSchemes::new(content_only);
        let opened =
            open_unchecked(directory, &RocksOptions { postings, unposted: true, ..options.clone() })?;
        let wanted =
            Format::new(options.durability, options.postings.clone()).made_from(options.changelog.clone());
        opened.put_format(&Format { rebanding: true, ..wanted })?;
        let reader = RocksReader(Arc::new(opened));
        if reader.count(Family::Ids, &[])? > 0 {
            let detail = "it holds articles, but no position".into();
            return Err(StoreError::Corrupt { place: reader.0.place.clone(), detail });
        }
        Ok(Rocks::with(reader))
    }

    /// Rebuilds all postings from the stored fingerprints according to the options, and opens the store. If the postings
    /// have the right bands, only damaged segments are built again, however many documents they cover.
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
        let rebuilt = rebuild_postings(directory, options, watch)?;
        let reader = RocksReader(Arc::new(open(directory, options)?));
        // What has just been built is not reported a second time.
        let load = reader.load_postings(Damage::Rebuild { most: u64::MAX }, &mut |done| match rebuilt {
            true => ControlFlow::Continue(()),
            false => watch(done),
        });
        load?;
        Ok(Rocks::with(reader))
    }
}

/// Rebuilds all postings if they have other bands than the options, and returns whether they had. The store is closed
/// afterwards.
fn rebuild_postings(
    directory: &Path,
    options: &RocksOptions,
    watch: &mut Watch<'_>,
) -> Result<bool, StoreError> {
    let mut wanted =
        Format::new(options.durability, options.postings.clone()).made_from(options.changelog.clone());
    let opened = open_unchecked(directory, options)?;
    let found = opened.db.get_cf(&opened.existing(Family::Meta)?, key::FORMAT);
    // An empty store: nothing to rebuild.
    let Some(found) = found.map_err(|error| opened.failure(&error))? else { return Ok(false) };
    match wanted.accepts(&found, &opened.place) {
        Ok(()) => Ok(false),
        Err(StoreError::OtherBands { .. }) => {
            // The caller may not know which topic the store was built from; the store must not forget it.
            let made_from = Format::decode(&found).ok().and_then(|found| found.changelog);
            wanted.changelog = wanted.changelog.or(made_from);
            // First mark the postings as untrustworthy.
            opened.put_format(&Format { rebanding: true, ..wanted.clone() })?;
            opened.drop_postings()?;
            let reader = RocksReader(Arc::new(opened));
            reader.load_postings(Damage::Rebuild { most: u64::MAX }, watch)?;
            let mut store = Rocks::with(reader);
            store.settle()?;
            store.opened().flush()?;
            store.opened().put_format(&wanted)?;
            Ok(true)
        }
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::read::view::View;
    use crate::index::rocksdb::maintenance::upkeep::tests::{document, empty_store};
    use crate::index::{Store, verify};

    #[test]
    fn a_store_filled_without_postings_ends_up_like_one_filled_with_them() {
        let changes: Vec<_> = (0..40).map(document).collect();
        let (mut wanted, beside) = empty_store("refill-wanted");
        wanted.apply_own_changes(&changes).unwrap();
        let (store, directory) = empty_store("refill");
        let options = store.opened().options.clone();
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
        assert!(!directory.join("new-postings").exists());
        drop(store);
        let refusal = Rocks::refill(&directory, &options).err().unwrap();
        assert!(refusal.to_string().contains("it holds articles"), "{refusal}");
        drop(wanted);
        [directory, beside].iter().for_each(|directory| drop(std::fs::remove_dir_all(directory)));
    }

    #[test]
    fn an_interrupted_reband_leaves_a_store_that_says_so() {
        let (mut store, directory) = empty_store("reband-stopped");
        let options = store.opened().options.clone();
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
