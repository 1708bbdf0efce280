//! Filling an empty store from its changelog, after [`Rocks::refill`]: the value of a record becomes a row as it is, without
//! an overlay, and postings are built at the end.
//!
//! A record is the whole state of its key. Among records that are written together only the last of each key counts, and the
//! rows that the store holds for the key are removed first. A compacted log and a full one therefore give the same rows, as
//! they do through an overlay.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use rocksdb::WriteBatch;

use super::{Opened, Rocks, RocksReader};
use crate::index::format::key;
use crate::index::format::key::Family;
use crate::index::read::view::View;
use crate::index::record::{Document, Residence};
use crate::index::write_set::change::{Change, ChangelogRecord};
use crate::index::{Store, StoreError};
use crate::model::{ArticleId, DocumentNumber, Lang};

/// A key, and the value to write; `None` for a row to remove.
type StagedRow<'r> = (Vec<u8>, Option<Cow<'r, [u8]>>);

/// Rows to write, by family.
#[derive(Default)]
struct Rows<'r>(BTreeMap<Family, Vec<StagedRow<'r>>>);

impl Rocks {
    /// Writes these records and the position after them, all or nothing.
    pub(super) fn fill(&mut self, records: &[ChangelogRecord], next: Option<u64>) -> Result<(), StoreError> {
        #[cfg(feature = "faults")]
        let next = self.written_beside(next)?;
        let languages: BTreeSet<Lang> =
            records.iter().filter_map(|record| record.change.language()).collect();
        languages.into_iter().try_for_each(|language| self.ensure_language(language))?;
        let records = last_of_each_key(records);
        let mut rows = Rows::default();
        // Before the membership filter learns of the new ids: most of them are not there yet, and are not looked for.
        rows.remove_held(&self.reader, &records)?;
        records.iter().for_each(|record| rows.add(record));
        rows.sort();
        let opened = self.opened();
        opened.sieve.insert_changes(records.iter().map(|record| &record.change));
        let _applying = opened.applying.lock().unwrap_or_else(PoisonError::into_inner);
        opened.write(opened.options.durability, || opened.batch_of(&rows, next))?;
        opened.version.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn last_of_each_key(records: &[ChangelogRecord]) -> Vec<&ChangelogRecord> {
    let mut last: HashMap<&[u8], usize> = HashMap::with_capacity(records.len());
    for (at, record) in records.iter().enumerate() {
        last.insert(&record.key, at);
    }
    let is_last = |&(at, record): &(usize, &ChangelogRecord)| last.get(&*record.key) == Some(&at);
    records.iter().enumerate().filter(is_last).map(|(_, record)| record).collect()
}

impl<'r> Rows<'r> {
    fn put(&mut self, (family, key): (Family, Vec<u8>), value: impl Into<Cow<'r, [u8]>>) {
        self.0.entry(family).or_default().push((key, Some(value.into())));
    }

    fn delete(&mut self, (family, key): (Family, Vec<u8>)) {
        self.0.entry(family).or_default().push((key, None));
    }

    /// Removes the rows that the store holds for the keys of these records.
    fn remove_held(&mut self, reader: &RocksReader, records: &[&ChangelogRecord]) -> Result<(), StoreError> {
        for document in held_documents(reader, records)? {
            DocumentKeys::of(&document).all().into_iter().for_each(|key| self.delete(key));
        }
        for record in records {
            let id = match &record.change {
                Change::Residence(residence) => &residence.id,
                Change::NoResidence(id) => id,
                _ => continue,
            };
            if let Some(held) = reader.residence(id)? {
                residence_keys(&held).into_iter().for_each(|key| self.delete(key));
            }
        }
        Ok(())
    }

    /// Adds the rows that follow from a record.
    fn add(&mut self, record: &'r ChangelogRecord) {
        let value = record.value.as_deref().unwrap_or_default();
        match &record.change {
            Change::Document(document) => {
                let DocumentKeys { row, id, expiry, member } = DocumentKeys::of(document);
                self.put(row, value);
                self.put(id, key::number(document.number).to_vec());
                [expiry, member].into_iter().for_each(|key| self.put(key, &[][..]));
            }
            Change::Cluster(cluster) => {
                self.put((Family::Clusters, key::cluster(cluster.id.language, cluster.id.number)), value);
            }
            Change::ClusterDeleted(language, founder) => {
                self.delete((Family::Clusters, key::cluster(*language, *founder)));
            }
            Change::Progress(_) => self.put((Family::Meta, key::POSITION.to_vec()), value),
            Change::Residence(residence) => {
                let [row, expiry] = residence_keys(residence);
                self.put(row, value);
                self.put(expiry, &[][..]);
            }
            // What the store held is removed already.
            Change::NoDocument(..) | Change::NoResidence(_) => {}
        }
    }

    /// Sorts the rows of each family, because ascending keys are inserted faster, and drops the removal of a row that is
    /// also written.
    fn sort(&mut self) {
        for rows in self.0.values_mut() {
            rows.sort_unstable_by(|a, b| (&a.0, a.1.is_none()).cmp(&(&b.0, b.1.is_none())));
            rows.dedup_by(|later, first| later.0 == first.0);
        }
    }
}

/// The keys of all rows of a document, except its postings.
struct DocumentKeys {
    row: (Family, Vec<u8>),
    id: (Family, Vec<u8>),
    expiry: (Family, Vec<u8>),
    member: (Family, Vec<u8>),
}

impl DocumentKeys {
    fn of(document: &Document) -> DocumentKeys {
        let (language, number) = (document.language, document.number);
        DocumentKeys {
            row: (Family::Documents(language), key::number(number).to_vec()),
            id: (Family::Ids, key::id(&document.id, language)),
            expiry: (Family::Expiry, key::expiry(language, document.last_seen, number)),
            member: (Family::Clusters, key::member(language, document.cluster, number)),
        }
    }

    fn all(self) -> [(Family, Vec<u8>); 4] {
        [self.row, self.id, self.expiry, self.member]
    }
}

fn residence_keys(residence: &Residence) -> [(Family, Vec<u8>); 2] {
    let expiry = key::residence_expiry(residence.language, residence.since, &residence.id);
    [(Family::Ids, key::residence(&residence.id)), (Family::Expiry, expiry)]
}

/// The documents that the store holds for the keys of these records, each key once.
fn held_documents(
    reader: &RocksReader,
    records: &[&ChangelogRecord],
) -> Result<Vec<Arc<Document>>, StoreError> {
    let of = |record: &&ChangelogRecord| match &record.change {
        Change::Document(document) => Some((document.language, document.id.clone())),
        Change::NoDocument(language, id) => Some((*language, id.clone())),
        _ => None,
    };
    let known: Vec<(Lang, ArticleId)> =
        records.iter().filter_map(of).filter(|(_, id)| reader.may_know(id)).collect();
    let keys: Vec<Vec<u8>> = known.iter().map(|(language, id)| key::id(id, *language)).collect();
    let mut numbers: BTreeMap<Lang, Vec<DocumentNumber>> = BTreeMap::new();
    for ((language, id), value) in known.iter().zip(reader.get_many(Family::Ids, &keys)?) {
        let number = value.map(|value| key::decode_number(&value)).transpose();
        let number =
            number.map_err(|error| StoreError::damaged(&reader.0.place, &format!("ids {id:?}"), &error))?;
        numbers.entry(*language).or_default().extend(number);
    }
    let mut held = Vec::new();
    for (language, numbers) in numbers {
        for (document, number) in reader.read_documents(language, &numbers)?.into_iter().zip(numbers) {
            held.push(document.ok_or_else(|| reader.missing_document(language, number))?);
        }
    }
    Ok(held)
}

impl RocksReader {
    fn missing_document(&self, language: Lang, number: DocumentNumber) -> StoreError {
        StoreError::Corrupt {
            place: self.0.place.clone(),
            detail: format!("docs:{language} document {number} is missing, but its id is not"),
        }
    }
}

impl Opened {
    fn batch_of(&self, rows: &Rows<'_>, changelog_next: Option<u64>) -> Result<WriteBatch, StoreError> {
        let bytes =
            |(key, value): &StagedRow<'_>| key.len() + value.as_ref().map_or(0, |value| value.len()) + 16;
        let mut batch = WriteBatch::with_capacity_bytes(rows.0.values().flatten().map(bytes).sum());
        for (&family, rows) in &rows.0 {
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

    /// Any other write would need postings.
    pub(super) fn is_being_filled(&self) -> StoreError {
        let detail = "it is being filled from its changelog and takes nothing else".into();
        StoreError::Unusable { place: self.place.clone(), detail }
    }
}
