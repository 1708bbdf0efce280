//! Re-banding: drops all postings and builds them again from the stored fingerprints, for new bands or for a store that was
//! filled without postings. `samestory state rebuild` and the restore from the changelog use it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::index::format::key;
use crate::index::format::key::Family;
use crate::index::rocksdb::open::{RocksOptions, open, open_unchecked};
use crate::index::rocksdb::postings::upkeep::{Damage, Upkeep};
use crate::index::rocksdb::{Rocks, RocksReader, Watch};
use crate::index::{Format, StoreError};

impl Rocks {
    /// Opens an empty store to be filled by [`Store::replay`](crate::index::Store::replay) without postings, which [`Rocks::reband`] builds at the end.
    /// Until then the store refuses to be opened normally, and any other write.
    ///
    /// # Errors
    /// As [`Rocks::open`]; also if the store is not empty.
    pub fn refill(directory: &Path, options: &RocksOptions) -> Result<Rocks, StoreError> {
        let opened = open_unchecked(directory, &RocksOptions { filled: true, ..options.clone() })?;
        let wanted =
            Format::new(options.ahead, options.postings.clone()).made_from(options.changelog.clone());
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
        Format::new(options.ahead, options.postings.clone()).made_from(options.changelog.clone());
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
            // Not as an open store: that would begin to read all ids for its filter.
            let settled = Upkeep::default().settle(&reader);
            settled.map_err(|error| reader.0.forget_damaged(error))?;
            reader.0.flush()?;
            reader.0.put_format(&wanted)?;
            Ok(true)
        }
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::index::read::view::View;
    use crate::index::rocksdb::maintenance::upkeep::tests::{document, empty_store, temporary};
    use crate::index::{
        Change, ChangelogRecord, Cluster, Document, Durability, Hosts, Progress, ReplayError, Residence,
        Store, Whereabouts, verify,
    };
    use crate::model::{ArticleId, BoundedStr, ClusterId, DocumentNumber, EventTime, Lang, Position};

    #[test]
    fn a_store_filled_without_postings_ends_up_like_one_filled_with_them() {
        let changes = eventful_log();
        let (mut wanted, beside) = empty_store("refill-wanted");
        wanted.apply_own_changes(&changes).unwrap();
        assert_eq!(wanted.changelog_next(), Ok(None));
        let compacted: Vec<Change> = {
            let mut keys = BTreeSet::new();
            let mut last: Vec<Change> =
                changes.iter().rev().filter(|change| keys.insert(change.key())).cloned().collect();
            last.reverse();
            last
        };
        assert!(compacted.len() + 10 < changes.len());
        for (log, chunk) in
            [(&changes, 1), (&changes, 7), (&changes, 1000), (&compacted, 7), (&compacted, 1000)]
        {
            let directory = temporary("refill");
            drop(std::fs::remove_dir_all(&directory));
            let options = RocksOptions {
                ahead: Durability::Changelog { partition: 0 },
                ..wanted.opened().options.clone()
            };
            let mut store = Rocks::refill(&directory, &options).unwrap();
            store.wait_for_filter();
            let attestor = store.attestor().unwrap();
            for some in records(log).chunks(chunk) {
                let next = some.last().unwrap().offset.unsigned_abs() + 1;
                store.replay(some, &attestor.attest(next)).unwrap();
                assert_eq!(store.changelog_next(), Ok(Some(next)), "the position is in the same batch");
            }
            drop(store);
            let refusal = Rocks::open(&directory, &options).err().unwrap();
            assert!(matches!(refusal, StoreError::OtherBands { .. }), "{refusal}");
            let store = Rocks::reband(&directory, &options, &mut |_| ControlFlow::Continue(())).unwrap();
            assert_eq!(
                store.dump().unwrap(),
                wanted.dump().unwrap(),
                "{} records in chunks of {chunk}",
                log.len()
            );
            assert_eq!(verify(&store).unwrap().findings, verify(&wanted).unwrap().findings);
            assert!(!directory.join("new-postings").exists());
            drop(store);
            let refusal = Rocks::refill(&directory, &options).err().unwrap();
            assert!(refusal.to_string().contains("it holds articles"), "{refusal}");
            drop(std::fs::remove_dir_all(&directory));
        }
        drop(wanted);
        drop(std::fs::remove_dir_all(&beside));
    }

    /// Articles that are new, sent again, updated, deleted, moved away and back; clusters that change and go.
    fn eventful_log() -> Vec<Change> {
        let id = |number: u64| ArticleId::new(&format!("a{number}")).unwrap();
        let with = |number: u64, edit: &dyn Fn(&mut Document)| {
            let Change::Document(document) = document(number) else { unreachable!() };
            let mut document = Arc::unwrap_or_clone(document);
            edit(&mut document);
            Change::Document(Arc::new(document))
        };
        let residence = |number: u64, since: i64, whereabouts| {
            let position = Position::File { file: BoundedStr::new("a"), line: number };
            let (language, since) = (Lang::UND, EventTime::from_millis(since));
            Change::Residence(Box::new(Residence { id: id(number), language, since, position, whereabouts }))
        };
        let cluster = |number: u64, size| {
            Change::Cluster(Box::new(Cluster {
                id: ClusterId { language: Lang::UND, partition: 0, number: DocumentNumber(number) },
                canonical: DocumentNumber(number),
                size,
                first_seen: EventTime::from_millis(0),
                last_seen: EventTime::from_millis(size as i64),
                split_from: None,
                canonical_changed_from: None,
                hosts: Hosts::default(),
            }))
        };
        let mut log: Vec<Change> = (0..40).map(document).collect();
        for round in 1..4 {
            // Seen again: the same number.
            log.extend((0..10).map(|number| {
                with(number, &|document: &mut Document| {
                    document.last_seen = EventTime::from_millis(1000 * round)
                })
            }));
            // Updated: another number, and perhaps another cluster.
            log.extend((10..20).map(|number| {
                with(100 * round as u64 + number, &|document: &mut Document| {
                    document.id = id(number);
                    document.cluster = DocumentNumber(number % 3);
                })
            }));
            log.extend((20..25).map(|number| Change::NoDocument(Lang::UND, id(number))));
            log.extend(
                (20..25).map(|number| residence(number, round, Whereabouts::Moved { to: round as i32 })),
            );
            log.extend((0..3).map(|number| cluster(number, round as u64)));
            log.push(Change::Progress(Progress::default()));
        }
        log.extend([20, 21].map(|number| Change::NoResidence(id(number))));
        log.extend(
            [20, 21].map(|number| with(500 + number, &|document: &mut Document| document.id = id(number))),
        );
        log.push(residence(22, 9, Whereabouts::Gone));
        log.push(Change::NoDocument(Lang::UND, id(77)));
        log.push(Change::NoResidence(id(78)));
        log.push(Change::ClusterDeleted(Lang::UND, DocumentNumber(2)));
        log
    }

    fn records(log: &[Change]) -> Vec<ChangelogRecord> {
        let record = |(offset, change): (i64, &Change)| {
            let (key, value) = change.encode();
            ChangelogRecord { offset, key, value }
        };
        (0..).zip(log).map(record).collect()
    }

    #[test]
    fn a_store_that_is_being_filled_takes_records_alone() {
        let (store, beside) = empty_store("filling-options");
        let options =
            RocksOptions { ahead: Durability::Changelog { partition: 0 }, ..store.opened().options.clone() };
        drop(store);
        let directory = temporary("filling");
        drop(std::fs::remove_dir_all(&directory));
        let mut store = Rocks::refill(&directory, &options).unwrap();
        let attestor = store.attestor().unwrap();
        let mut damaged = records(&[document(0), document(1)]);
        damaged[1].value = Some(b"damaged".to_vec());
        let refusal = store.replay(&damaged, &attestor.attest(2)).unwrap_err();
        assert!(matches!(refusal, ReplayError::Foreign { offset: 1, .. }), "{refusal}");
        assert_eq!(store.number_of(Lang::UND, &ArticleId::new("a0").unwrap()), Ok(None), "all or nothing");
        let refusal = store.apply_changes(&[document(0)], &attestor.attest(1)).unwrap_err();
        assert!(refusal.to_string().contains("being filled"), "{refusal}");
        drop(store);
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
