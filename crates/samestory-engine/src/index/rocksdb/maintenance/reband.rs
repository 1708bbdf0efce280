//! Re-banding: drops all postings and builds them again from the stored fingerprints, for new bands or for a store that was
//! filled without postings. `samestory state rebuild` and the restore from the changelog use it.

use std::path::Path;
use std::sync::Arc;

use crate::index::format::key;
use crate::index::format::key::Family;
use crate::index::rocksdb::open::{RocksOptions, open, open_unchecked};
use crate::index::rocksdb::postings::upkeep::{Damage, Upkeep};
use crate::index::rocksdb::{Rocks, RocksReader, Watch};
use crate::index::{Format, StoreError};

impl Rocks {
    /// Opens an empty store to be filled by [`Store::replay`](crate::index::Store::replay) without postings, which
    /// [`Rocks::reband`] builds at the end. Until then the store refuses any other write, and to be opened normally.
    ///
    /// # Errors
    /// As [`Rocks::open`]; also if the store is not empty.
    pub fn refill(directory: &Path, options: &RocksOptions) -> Result<Rocks, StoreError> {
        let opened = open_unchecked(directory, &RocksOptions { unposted: true, ..options.clone() })?;
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
        if let Some(rebuilt) = rebuilt(directory, options, watch)? {
            return Ok(rebuilt);
        }
        let reader = RocksReader(Arc::new(open(directory, options)?));
        reader.load_postings(Damage::Rebuild { most: u64::MAX }, watch)?;
        Ok(Rocks::with(reader))
    }
}

/// The store with all postings built again, if it has other bands than the options. It stays open: to open it again would
/// post those documents once more whose postings stay in memory.
fn rebuilt(
    directory: &Path,
    options: &RocksOptions,
    watch: &mut Watch<'_>,
) -> Result<Option<Rocks>, StoreError> {
    let mut wanted =
        Format::new(options.durability, options.postings.clone()).made_from(options.changelog.clone());
    let opened = open_unchecked(directory, options)?;
    let found = opened.db.get_cf(&opened.existing(Family::Meta)?, key::FORMAT);
    // An empty store: nothing to rebuild.
    let Some(found) = found.map_err(|error| opened.failure(&error))? else { return Ok(None) };
    match wanted.accepts(&found, &opened.place) {
        Ok(()) => Ok(None),
        Err(StoreError::OtherBands { .. }) => {
            // The caller may not know which topic the store was built from; the store must not forget it.
            let made_from = Format::decode(&found).ok().and_then(|found| found.changelog);
            wanted.changelog = wanted.changelog.or(made_from);
            // First mark the postings as untrustworthy.
            opened.put_format(&Format { rebanding: true, ..wanted.clone() })?;
            opened.drop_postings()?;
            let (reader, mut upkeep) = (RocksReader(Arc::new(opened)), Upkeep::default());
            reader.load_postings(Damage::Rebuild { most: u64::MAX }, watch)?;
            let settled = upkeep.settle(&reader).and_then(|()| upkeep.delete_replaced(&reader));
            settled.map_err(|error| reader.0.forget_damaged(error))?;
            reader.0.flush()?;
            reader.0.put_format(&wanted)?;
            Ok(Some(Rocks { upkeep, ..Rocks::with(reader) }))
        }
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::index::read::view::View;
    use crate::index::rocksdb::maintenance::upkeep::tests::{document, empty_store, temporary};
    use crate::index::{Change, ChangelogRecord, Durability, Store, verify};

    fn records(changes: &[Change]) -> Vec<ChangelogRecord> {
        let record = |change: &Change| {
            let (key, value) = change.encode();
            ChangelogRecord::decode(key, value).unwrap()
        };
        changes.iter().map(record).collect()
    }

    fn logged_options() -> RocksOptions {
        let (store, directory) = empty_store("logged-options");
        let durability = Durability::Changelog { partition: 0 };
        let options = RocksOptions { durability, ..store.opened().options.clone() };
        drop(store);
        drop(std::fs::remove_dir_all(directory));
        options
    }

    fn empty_directory(name: &str) -> std::path::PathBuf {
        let directory = temporary(name);
        drop(std::fs::remove_dir_all(&directory));
        directory
    }

    #[test]
    fn a_store_filled_without_postings_ends_up_like_one_filled_with_them() {
        let changes: Vec<_> = (0..40).map(document).collect();
        let (mut wanted, beside) = empty_store("refill-wanted");
        wanted.apply_own_changes(&changes).unwrap();
        let (options, directory) = (logged_options(), empty_directory("refill"));
        let mut store = Rocks::refill(&directory, &options).unwrap();
        let attestor = store.attestor().unwrap();
        for some in changes.chunks(7) {
            store.replay(records(some), &attestor.attest(1)).unwrap();
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

    // A plan that was applied to it would be without postings until somebody built them.
    #[test]
    fn a_store_that_is_being_filled_takes_nothing_but_records() {
        let (options, directory) = (logged_options(), empty_directory("filling"));
        let mut store = Rocks::refill(&directory, &options).unwrap();
        let attestor = store.attestor().unwrap();
        store.replay(records(&[document(0)]), &attestor.attest(1)).unwrap();
        let refusal = store.apply_changes(&[document(1)], &attestor.attest(2)).unwrap_err();
        assert!(refusal.to_string().contains("being filled"), "{refusal}");
        drop(store);
        drop(std::fs::remove_dir_all(&directory));
    }

    #[test]
    fn a_proof_for_another_store_fills_nothing() {
        let (options, directory) = (logged_options(), empty_directory("filling-unproven"));
        let mut store = Rocks::refill(&directory, &options).unwrap();
        let attestor = store.attestor().unwrap();
        drop(store);
        let mut store = Rocks::refill(&directory, &options).unwrap();
        let refusal = store.replay(records(&[document(0)]), &attestor.attest(1)).unwrap_err();
        assert!(matches!(refusal, StoreError::Unproven { .. }), "{refusal}");
        assert_eq!((store.dump().unwrap(), store.changelog_next()), (Vec::new(), Ok(None)));
        drop(store);
        drop(std::fs::remove_dir_all(&directory));
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
