//! Filling a store from its changelog, after [`Rocks::refill`]: the values of the records become rows as they are, without
//! an overlay, and postings are built at the end.
//!
//! A record is the whole state of its key. Of several records of a key only the last counts, and what the store holds for the
//! key is removed first, so a compacted log and a full one give the same rows, as they do through an overlay.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use rocksdb::{BoundColumnFamily, WriteBatch};

use super::{Opened, Rocks, RocksReader};
use crate::index::format::key;
use crate::index::format::key::Family;
use crate::index::read::view::View;
use crate::index::record::{Document, Residence};
use crate::index::write_set::change::{Change, ChangelogRecord, ReplayError};
use crate::index::{Store, StoreError};

/// From this many records on, a second thread helps to decode them.
const MANY: usize = 64;

/// The changes of these records, in order.
pub(super) fn decoded(records: &[ChangelogRecord]) -> Result<Vec<Change>, ReplayError> {
    let decode = |records: &[ChangelogRecord]| -> Result<Vec<Change>, ReplayError> {
        records.iter().map(ChangelogRecord::change).collect()
    };
    if records.len() < MANY {
        return decode(records);
    }
    let (left, right) = records.split_at(records.len() / 2);
    thread::scope(|scope| {
        let started = thread::Builder::new().spawn_scoped(scope, move || decode(right));
        let mut changes = decode(left)?;
        let others = match started.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(others)) => others?,
            // If there is no thread, or it panicked, do the work on this one.
            _ => decode(right)?,
        };
        changes.extend(others);
        Ok(changes)
    })
}

/// The last record of a key, and what the store holds for that key.
struct Step<'a> {
    record: &'a ChangelogRecord,
    change: &'a Change,
    held: Held,
}

enum Held {
    /// Nothing that is to be removed.
    Nothing,
    Document(Arc<Document>),
    Residence(Box<Residence>),
}

impl Rocks {
    /// Writes these records and the position after them, all or nothing.
    pub(super) fn fill(
        &mut self,
        records: &[ChangelogRecord],
        changes: &[Change],
        next: Option<u64>,
    ) -> Result<(), StoreError> {
        #[cfg(feature = "faults")]
        let next = self.written_beside(next)?;
        let languages: BTreeSet<_> = changes.iter().filter_map(Change::language).collect();
        languages.into_iter().try_for_each(|language| self.ensure_language(language))?;
        let mut last: HashMap<&[u8], usize> = HashMap::with_capacity(records.len());
        for (at, record) in records.iter().enumerate() {
            last.insert(&record.key, at);
        }
        let (reader, opened) = (&self.reader, self.opened());
        // Before the filter of ids learns of the new ones: nearly all records are of an id that is not there yet.
        let mut steps = Vec::with_capacity(last.len());
        for (at, (record, change)) in records.iter().zip(changes).enumerate() {
            if last.get(&*record.key) == Some(&at) {
                steps.push(Step { record, change, held: held(reader, change)? });
            }
        }
        opened.sieve.insert_changes(steps.iter().map(|step| step.change));
        opened.write(opened.options.ahead, || opened.batch_of_records(&steps, next))?;
        opened.version.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// What a store holds for the key of a change, if any of it must be removed.
fn held(reader: &RocksReader, change: &Change) -> Result<Held, StoreError> {
    let (language, id) = match change {
        Change::Document(document) => (document.language, &document.id),
        Change::NoDocument(language, id) => (*language, id),
        Change::Residence(row) => return residence(reader, &row.id),
        Change::NoResidence(id) => return residence(reader, id),
        Change::Cluster(_) | Change::ClusterDeleted(..) | Change::Progress(_) => return Ok(Held::Nothing),
    };
    let Some(number) = reader.number_of(language, id)? else { return Ok(Held::Nothing) };
    let document = reader.read_documents(language, &[number])?.pop().flatten();
    document.map(Held::Document).ok_or_else(|| StoreError::Corrupt {
        place: reader.0.place.clone(),
        detail: format!("docs:{language} document {number} is missing, but its id is not"),
    })
}

fn residence(reader: &RocksReader, id: &crate::model::ArticleId) -> Result<Held, StoreError> {
    Ok(reader.residence(id)?.map_or(Held::Nothing, |row| Held::Residence(Box::new(row))))
}

/// A batch, and the column families that it has written to.
struct Filling<'o> {
    opened: &'o Opened,
    families: BTreeMap<Family, Arc<BoundColumnFamily<'o>>>,
    batch: WriteBatch,
}

impl<'o> Filling<'o> {
    fn family(&mut self, family: Family) -> Result<Arc<BoundColumnFamily<'o>>, StoreError> {
        if let Some(found) = self.families.get(&family) {
            return Ok(Arc::clone(found));
        }
        let found = self.opened.existing(family)?;
        self.families.insert(family, Arc::clone(&found));
        Ok(found)
    }

    fn put(&mut self, family: Family, key: impl AsRef<[u8]>, value: &[u8]) -> Result<(), StoreError> {
        let family = self.family(family)?;
        self.batch.put_cf(&family, key, value);
        Ok(())
    }

    fn delete(&mut self, family: Family, key: impl AsRef<[u8]>) -> Result<(), StoreError> {
        let family = self.family(family)?;
        self.batch.delete_cf(&family, key);
        Ok(())
    }

    /// Puts or deletes the row of a key, as the record says.
    fn row(&mut self, family: Family, key: impl AsRef<[u8]>, step: &Step<'_>) -> Result<(), StoreError> {
        match &step.record.value {
            Some(value) => self.put(family, key, value),
            None => self.delete(family, key),
        }
    }

    fn step(&mut self, step: &Step<'_>) -> Result<(), StoreError> {
        match &step.held {
            Held::Nothing => {}
            Held::Document(old) => {
                self.delete(Family::Documents(old.language), key::number(old.number))?;
                self.delete(Family::Ids, key::id(&old.id, old.language))?;
                self.delete(Family::Expiry, key::expiry(old.language, old.last_seen, old.number))?;
                self.delete(Family::Clusters, key::member(old.language, old.cluster, old.number))?;
            }
            Held::Residence(old) => {
                self.delete(Family::Expiry, key::residence_expiry(old.language, old.since, &old.id))?;
            }
        }
        match step.change {
            Change::Document(new) => {
                let language = new.language;
                self.row(Family::Documents(language), key::number(new.number), step)?;
                self.put(Family::Ids, key::id(&new.id, language), &key::number(new.number))?;
                self.put(Family::Expiry, key::expiry(language, new.last_seen, new.number), &[])?;
                self.put(Family::Clusters, key::member(language, new.cluster, new.number), &[])
            }
            Change::NoDocument(..) => Ok(()),
            Change::Cluster(cluster) => {
                self.row(Family::Clusters, key::cluster(cluster.id.language, cluster.id.number), step)
            }
            Change::ClusterDeleted(language, founder) => {
                self.row(Family::Clusters, key::cluster(*language, *founder), step)
            }
            Change::Progress(_) => self.row(Family::Meta, key::POSITION, step),
            Change::Residence(row) => {
                self.put(Family::Expiry, key::residence_expiry(row.language, row.since, &row.id), &[])?;
                self.row(Family::Ids, key::residence(&row.id), step)
            }
            Change::NoResidence(id) => self.row(Family::Ids, key::residence(id), step),
        }
    }
}

impl Opened {
    fn batch_of_records(&self, steps: &[Step<'_>], next: Option<u64>) -> Result<WriteBatch, StoreError> {
        let bytes: usize =
            steps.iter().map(|step| 200 + step.record.value.as_ref().map_or(0, Vec::len)).sum();
        let batch = WriteBatch::with_capacity_bytes(bytes);
        let mut filling = Filling { opened: self, families: BTreeMap::new(), batch };
        steps.iter().try_for_each(|step| filling.step(step))?;
        if let Some(next) = next {
            filling.put(Family::Meta, key::CHANGELOG, &next.to_be_bytes())?;
        }
        Ok(filling.batch)
    }

    /// Any other write would need postings.
    pub(super) fn is_being_filled(&self) -> StoreError {
        let detail = "it is being filled from its changelog and takes nothing else".into();
        StoreError::Unusable { place: self.place.clone(), detail }
    }
}
