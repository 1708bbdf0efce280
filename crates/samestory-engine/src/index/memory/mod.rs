//! The in-memory store: for quick starts and pure-Rust builds, and the simple model that tests compare
//! RocksDB with.
//!
//! It implements [`Store`] and [`View`] like the RocksDB store and gives the same answers; nothing survives the
//! process.

mod buckets;

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::lsh::BandKey;
use crate::model::{DocumentNumber, Lang};

use super::format::key;
use super::format::key::Family;
use super::format::value;
use super::read::rows::{Order, PostingLists, Span, Visit};
use super::read::view::View;
use super::record::{Document, DocumentSummary};
use super::scheme::IndexSchemes;
use super::write_set::overlay::WriteSet;
use super::write_set::pending::{Canonicals, Pending, bounds};
use super::write_set::staged_postings::Spread;
use super::{Attestor, Durability, Opening, Proven, Store, StoreError};
use buckets::Buckets;

/// Only looked up or sorted before use, so its order does not matter.
type Documents = HashMap<DocumentNumber, Arc<Document>, BuildHasherDefault<Spread>>;

/// An index in memory that ends with the process.
#[derive(Debug, Clone)]
pub struct Memory {
    postings: IndexSchemes,
    durability: Durability,
    opening: Opening,
    version: u64,
    bands: BTreeMap<Lang, Buckets>,
    /// Decoded documents: they are read far more often than written.
    documents: BTreeMap<Lang, Documents>,
    /// The canonicals from the cluster rows, decoded.
    canonicals: BTreeMap<Lang, Canonicals>,
    rows: BTreeMap<Family, BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Memory {
    /// Creates an empty store.
    pub fn new(postings: IndexSchemes, durability: Durability) -> Memory {
        let (bands, documents, canonicals, rows) = Default::default();
        Memory {
            postings,
            durability,
            opening: Opening::new(),
            version: 0,
            bands,
            documents,
            canonicals,
            rows,
        }
    }

    fn write_pending(&mut self, pending: Pending) {
        for (language, bands) in pending.bands {
            let ours = self.bands.entry(language).or_default();
            let entries = bands.entries_in_order();
            entries.for_each(|(key, number, present)| ours.set(key, number, present));
        }
        for (language, documents) in pending.documents {
            let ours = self.documents.entry(language).or_default();
            for (number, document) in documents {
                let _old = match document {
                    Some(staged) => ours.insert(number, staged.document),
                    None => ours.remove(&number),
                };
            }
        }
        for (language, canonicals) in pending.canonicals {
            let ours = self.canonicals.entry(language).or_default();
            for (founder, canonical) in canonicals {
                let _old = match canonical {
                    Some(_) => ours.insert(founder, canonical),
                    None => ours.remove(&founder),
                };
            }
        }
        for (family, rows) in pending.rows {
            let ours = self.rows.entry(family).or_default();
            for (key, value) in rows {
                let _old = match value {
                    Some(value) => ours.insert(key, value),
                    None => ours.remove(&key),
                };
            }
        }
    }
}

impl Store for Memory {
    fn ensure_language(&mut self, language: Lang) -> Result<(), StoreError> {
        self.bands.entry(language).or_default();
        Ok(())
    }

    fn attestor(&mut self) -> Option<Attestor> {
        self.opening.attestor(self.durability)
    }

    fn opened_with(&self) -> (Durability, u64) {
        (self.durability, self.opening.number)
    }

    fn write(&mut self, write_set: WriteSet, proven: Proven) -> Result<(), StoreError> {
        let pending = write_set.pending(self)?;
        self.write_pending(pending);
        self.version += 1;
        if let Some(next) = proven.changelog_next {
            let meta = self.rows.entry(Family::Meta).or_default();
            meta.insert(key::CHANGELOG.to_vec(), next.to_be_bytes().to_vec());
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

fn visit_all<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    mut rows: impl DoubleEndedIterator<Item = (K, V)>,
    order: Order,
    visit: &mut Visit<'_>,
) {
    let mut visit = |(key, value): (K, V)| visit(key.as_ref(), value.as_ref());
    let _stopped: ControlFlow<()> = match order {
        Order::Ascending => rows.try_for_each(&mut visit),
        Order::Descending => rows.rev().try_for_each(&mut visit),
    };
}

impl View for Memory {
    fn place(&self) -> &str {
        "memory"
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn postings(&self) -> &IndexSchemes {
        &self.postings
    }

    fn languages(&self) -> Vec<Lang> {
        self.bands.keys().copied().collect()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(match family {
            Family::Bands(language) => key::decode_posting(key)
                .ok()
                .filter(|&(key, number)| {
                    self.bands.get(&language).is_some_and(|bands| bands.contains(key, number))
                })
                .map(|_| Vec::new()),
            Family::Documents(language) => key::decode_number(key)
                .ok()
                .and_then(|number| self.documents.get(&language)?.get(&number))
                .map(|document| value::encode_document(document)),
            _ => self.rows.get(&family).and_then(|rows| rows.get(key)).cloned(),
        })
    }

    fn scan(
        &self,
        family: Family,
        span: &Span,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        match family {
            Family::Bands(language) => {
                let postings = self.bands.get(&language).map(|bands| bands.span(span)).unwrap_or_default();
                visit_all(postings.iter().map(|key| (key, [])), order, visit);
            }
            Family::Documents(language) => {
                let rows = self.documents.get(&language).into_iter().flatten();
                let rows = rows.map(|(&number, document)| (key::number(number), document));
                let mut rows: Vec<_> = rows.filter(|(key, _)| span.holds(key)).collect();
                rows.sort_unstable_by_key(|&(key, _)| key);
                let rows = rows.into_iter().map(|(key, document)| (key, value::encode_document(document)));
                visit_all(rows, order, visit);
            }
            _ => {
                if let Some(rows) = self.rows.get(&family) {
                    visit_all(rows.range::<[u8], _>(bounds(span)), order, visit);
                }
            }
        }
        Ok(())
    }

    fn shared_documents(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<Arc<Document>>>, StoreError> {
        let documents = self.documents.get(&language);
        Ok(numbers.iter().map(|number| documents?.get(number).cloned()).collect())
    }

    fn summaries(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<DocumentSummary>>, StoreError> {
        let documents = self.documents.get(&language);
        Ok(numbers.iter().map(|number| Some(documents?.get(number)?.summary())).collect())
    }

    fn canonicals(
        &self,
        language: Lang,
        founders: &[DocumentNumber],
    ) -> Result<Vec<Option<DocumentNumber>>, StoreError> {
        let canonicals = self.canonicals.get(&language);
        Ok(founders.iter().map(|founder| *canonicals?.get(founder)?).collect())
    }

    fn posting_lists(
        &self,
        language: Lang,
        keys: &[BandKey],
        cap: usize,
    ) -> Result<PostingLists, StoreError> {
        let mut lists = PostingLists::empty(keys.len());
        let Some(bands) = self.bands.get(&language) else { return Ok(lists) };
        for (at, &key) in keys.iter().enumerate() {
            if let Some(list) = bands.posting_list(key, cap) {
                let slot = lists.add(list);
                lists.set(at, slot);
            }
        }
        Ok(lists)
    }
}
