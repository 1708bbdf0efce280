//! The one trait for reading the index: documents, clusters, residences and progress.
//!
//! A store, a snapshot or an overlay implements ordered byte rows in column families ([`View::get`],
//! [`View::scan`]), and overrides a default method where it can answer faster. The engine, the query API and the
//! state commands read through the rest. Results come in a defined order, so no answer depends on where the
//! rows are stored.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::lsh::BandKey;
use crate::model::{ArticleId, ClusterId, DocumentNumber, EventTime, Lang};

use super::rows::{
    Order, PostingList, PostingLists, Row, Span, Visit, canonical, decode_own, scan_bucket, scan_numbers,
};
use crate::index::StoreError;
use crate::index::format::bytes::DecodeError;
use crate::index::format::key;
use crate::index::format::key::{Family, IdRow, Overdue};
use crate::index::format::value;
use crate::index::record::{Cluster, Counters, Document, DocumentSummary, Progress, Residence};
use crate::index::scheme::IndexSchemes;

/// The contents of an index as a reader sees them: a store, a snapshot, or an overlay.
///
/// # Errors
/// Every method fails if the store cannot be read or holds invalid data. An error never means that something
/// is absent.
pub trait View {
    /// Its directory, or `memory`; used in messages.
    fn place(&self) -> &str;

    /// How many write sets have been applied since it was opened.
    fn version(&self) -> u64;

    /// The index schemes of its documents.
    fn postings(&self) -> &IndexSchemes;

    /// The languages that have column families, ascending.
    fn languages(&self) -> Vec<Lang>;

    /// The value of a key.
    ///
    /// # Errors
    /// The store could not be read. That never means that the row is absent.
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Visits the rows of a range until the visitor stops. Postings come in order within one bucket; those of several
    /// buckets come in no particular order.
    ///
    /// # Errors
    /// The store could not be read; the rows visited so far may be incomplete.
    fn scan(
        &self,
        family: Family,
        span: &Span,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError>;

    /// The values of several keys.
    ///
    /// # Errors
    /// As [`View::get`].
    fn get_many(&self, family: Family, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        keys.iter().map(|key| self.get(family, key)).collect()
    }

    /// True if an id may be known in any language; `false` is certain.
    fn may_know(&self, _id: &ArticleId) -> bool {
        true
    }

    /// Documents by number, in the given order.
    ///
    /// # Errors
    /// As [`View::get`]; also if a document cannot be decoded or has another number than its key.
    fn shared_documents(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<Arc<Document>>>, StoreError> {
        let family = Family::Documents(language);
        let keys: Vec<Vec<u8>> = numbers.iter().map(|&number| key::number(number).to_vec()).collect();
        let values = self.get_many(family, &keys)?;
        let decode = |(value, &number): (Option<Vec<u8>>, &DocumentNumber)| {
            value.map(|value| decode_own(self.place(), language, number, &value)).transpose()
        };
        values.into_iter().zip(numbers).map(decode).collect()
    }

    /// What a lookup needs of documents that it does not compare, in the order of their numbers.
    ///
    /// # Errors
    /// As [`View::shared_documents`].
    fn summaries(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<DocumentSummary>>, StoreError> {
        let documents = self.shared_documents(language, numbers)?;
        Ok(documents.iter().map(|document| document.as_deref().map(Document::summary)).collect())
    }

    /// The canonicals of the clusters with these founders, in order; `None` for a cluster without a row.
    ///
    /// # Errors
    /// As [`View::get`].
    fn canonicals(
        &self,
        language: Lang,
        founders: &[DocumentNumber],
    ) -> Result<Vec<Option<DocumentNumber>>, StoreError> {
        founders.iter().map(|&founder| canonical(self, language, founder)).collect()
    }

    /// Announces documents that will be needed soon, for stores that read many at once faster.
    ///
    /// # Errors
    /// As [`View::get`].
    fn read_ahead(&self, _language: Lang, _numbers: Vec<DocumentNumber>) -> Result<(), StoreError> {
        Ok(())
    }

    /// The newest `cap` documents of each bucket, each distinct bucket once.
    ///
    /// # Errors
    /// As [`View::scan`].
    fn posting_lists(
        &self,
        language: Lang,
        keys: &[BandKey],
        cap: usize,
    ) -> Result<PostingLists, StoreError> {
        let mut lists = PostingLists::empty(keys.len());
        for (at, &key) in keys.iter().enumerate() {
            let slot = lists.add(scan_bucket(self, language, key, None, cap)?);
            lists.set(at, slot);
        }
        Ok(lists)
    }

    /// The newest `cap` documents of each bucket, in the order of the keys.
    ///
    /// # Errors
    /// As [`View::scan`].
    fn buckets(&self, language: Lang, keys: &[BandKey], cap: usize) -> Result<Vec<PostingList>, StoreError> {
        let lists = self.posting_lists(language, keys, cap)?;
        Ok((0..keys.len()).map(|at| lists.get(at).cloned().unwrap_or_default()).collect())
    }

    /// A document by number.
    fn document(&self, language: Lang, number: DocumentNumber) -> Result<Option<Document>, StoreError> {
        Ok(self.documents(language, &[number])?.pop().flatten())
    }

    /// Documents by number, in the given order.
    fn documents(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<Document>>, StoreError> {
        let documents = self.shared_documents(language, numbers)?;
        Ok(documents.into_iter().map(|document| document.map(Arc::unwrap_or_clone)).collect())
    }

    /// A shared, read-only document by number.
    fn shared_document(
        &self,
        language: Lang,
        number: DocumentNumber,
    ) -> Result<Option<Arc<Document>>, StoreError> {
        Ok(self.shared_documents(language, &[number])?.pop().flatten())
    }

    /// Visits every document of a language, lowest number first, until the visitor stops.
    fn each_document(
        &self,
        language: Lang,
        visit: &mut dyn FnMut(Document) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let family = Family::Documents(language);
        let mut damage = None;
        self.scan(family, &Span::all(), Order::Ascending, &mut |key, value| match value::decode_document(
            language, value,
        ) {
            Ok(document) => visit(document),
            Err(error) => {
                damage = Some(self.damage(family, &format!("{}", key.escape_ascii()), &error));
                ControlFlow::Break(())
            }
        })?;
        damage.map_or(Ok(()), Err)
    }

    /// Refuses an index whose fingerprints were computed under settings with another hash: they cannot be compared. The newest
    /// document of each language answers for all. `place` is where the index is.
    ///
    /// # Errors
    /// [`StoreError::Foreign`], or the index cannot be read.
    fn accepts_fingerprints(&self, config: u32, place: &str) -> Result<(), StoreError> {
        for &language in self.progress()?.languages.keys() {
            let (family, mut newest) = (Family::Documents(language), None);
            self.scan(family, &Span::all(), Order::Descending, &mut |_, value| {
                newest = Some(value::decode_document(language, value));
                ControlFlow::Break(())
            })?;
            // A damaged row is reported by whoever reads it.
            if let Some(Ok(document)) = newest
                && document.fingerprint.config != config
            {
                return Err(StoreError::Foreign {
                    place: place.to_owned(),
                    what: "fingerprints of the settings",
                    found: format!("{:08x}", document.fingerprint.config),
                    expected: format!("{config:08x}"),
                    remedy: "put [text], language.trust and the `shingle` of the languages back, or start with a new state",
                });
            }
        }
        Ok(())
    }

    /// The number of an article's document.
    fn number_of(&self, language: Lang, id: &ArticleId) -> Result<Option<DocumentNumber>, StoreError> {
        if !self.may_know(id) {
            return Ok(None);
        }
        let value = self.get(Family::Ids, &key::id(id, language))?;
        let number = value.map(|value| key::decode_number(&value)).transpose();
        number.map_err(|error| self.damage(Family::Ids, &format!("{id:?}"), &error))
    }

    /// The languages that hold a document of this id, ascending. A delete knows only the id.
    fn languages_of(&self, id: &ArticleId) -> Result<Vec<Lang>, StoreError> {
        if !self.may_know(id) {
            return Ok(Vec::new());
        }
        let mut keys = Vec::new();
        self.scan(Family::Ids, &Span::prefix(&key::id_prefix(id)), Order::Ascending, &mut |key, _| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        })?;
        let mut languages = Vec::new();
        for key in &keys {
            match key::decode_id(key) {
                Ok(IdRow::Document(_, language)) => languages.push(language),
                Ok(IdRow::Residence(_)) => {}
                Err(error) => return Err(self.damage(Family::Ids, &format!("{id:?}"), &error)),
            }
        }
        languages.sort_unstable();
        Ok(languages)
    }

    /// The residence of an id, expired or not.
    fn residence(&self, id: &ArticleId) -> Result<Option<Residence>, StoreError> {
        if !self.may_know(id) {
            return Ok(None);
        }
        let value = self.get(Family::Ids, &key::residence(id))?;
        let row = value.map(|value| value::decode_residence(id.clone(), &value)).transpose();
        row.map_err(|error| self.damage(Family::Ids, &format!("residence {id:?}"), &error))
    }

    /// The newest `cap` documents of a bucket that are older than `below`. Used to read further when some are
    /// expired.
    fn bucket(
        &self,
        language: Lang,
        key: BandKey,
        below: Option<DocumentNumber>,
        cap: usize,
    ) -> Result<PostingList, StoreError> {
        scan_bucket(self, language, key, below, cap)
    }

    /// A cluster by its founder's number.
    fn cluster(&self, language: Lang, founder: DocumentNumber) -> Result<Option<Cluster>, StoreError> {
        let value = self.get(Family::Clusters, &key::cluster(language, founder))?;
        let cluster = value.map(|value| value::decode_cluster(language, founder, &value)).transpose();
        cluster.map_err(|error| self.damage(Family::Clusters, &format!("{language} {founder}"), &error))
    }

    /// The founders of all clusters of a language that have a row, oldest first.
    fn founders(&self, language: Lang) -> Result<Vec<DocumentNumber>, StoreError> {
        let prefix = key::clusters(language);
        let founder = |key: &[u8]| key::decode_number(key.get(prefix.len()..).unwrap_or_default());
        let span = Span::prefix(&prefix);
        Ok(scan_numbers(self, Family::Clusters, &span, Order::Ascending, usize::MAX, founder)?.numbers)
    }

    /// The id of a document's cluster. A cluster of one has no row, so its id follows from the document;
    /// `None` if a row is missing.
    fn cluster_of(&self, document: &Document) -> Result<Option<ClusterId>, StoreError> {
        match self.cluster(document.language, document.cluster)? {
            Some(cluster) => Ok(Some(cluster.id)),
            None if document.cluster == document.number => {
                Ok(Some(document.founds(self.progress()?.partition())))
            }
            None => Ok(None),
        }
    }

    /// The first `cap` members of a cluster in this order of their numbers, starting after `after`.
    fn members(
        &self,
        language: Lang,
        founder: DocumentNumber,
        order: Order,
        after: Option<DocumentNumber>,
        cap: usize,
    ) -> Result<PostingList, StoreError> {
        let prefix = key::members(language, founder);
        let mut span = Span::prefix(&prefix);
        if let Some(after) = after {
            let edge = key::member(language, founder, after);
            match order {
                // The smallest key that is greater than this one.
                Order::Ascending => span.from = [&edge[..], &[0]].concat(),
                Order::Descending => span.to = Some(edge),
            }
        }
        scan_numbers(self, Family::Clusters, &span, order, cap, |key| {
            key::decode_number(key.get(prefix.len()..).unwrap_or_default())
        })
    }

    /// The `cap` documents and residences of a language that were last seen longest ago, at or before
    /// `horizon`.
    fn overdue(&self, language: Lang, horizon: EventTime, cap: usize) -> Result<Vec<Overdue>, StoreError> {
        let from = key::language_prefix(language);
        let span = Span { from, to: Some(key::expiry_end(language, horizon)) };
        let (mut found, mut damage) = (Vec::new(), None);
        self.scan(Family::Expiry, &span, Order::Ascending, &mut |key, _| {
            if found.len() == cap {
                return ControlFlow::Break(());
            }
            match key::decode_expiry(key) {
                Ok((_, _, about)) => found.push(about),
                Err(error) => damage = Some(self.damage(Family::Expiry, "row", &error)),
            }
            if damage.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        damage.map_or(Ok(found), Err)
    }

    /// When the longest-unseen document or residence of a language was last seen.
    fn longest_unseen(&self, language: Lang) -> Result<Option<EventTime>, StoreError> {
        let mut first = None;
        let span = Span::prefix(&key::language_prefix(language));
        self.scan(Family::Expiry, &span, Order::Ascending, &mut |key, _| {
            first = Some(key::decode_expiry(key).map(|(_, time, _)| time));
            ControlFlow::Break(())
        })?;
        first.transpose().map_err(|error| self.damage(Family::Expiry, "first row", &error))
    }

    /// How far the partition has been processed.
    fn progress(&self) -> Result<Progress, StoreError> {
        let value = self.get(Family::Meta, key::POSITION)?;
        let progress = value.map_or(Ok(Progress::default()), |value| value::decode_progress(&value));
        progress.map_err(|error| self.damage(Family::Meta, "position", &error))
    }

    /// The counters of a language.
    fn counters(&self, language: Lang) -> Result<Counters, StoreError> {
        Ok(self.progress()?.languages.get(&language).cloned().unwrap_or_default())
    }

    /// The changelog offset to resume from; `None` if there is no changelog or nothing has been read from it.
    fn changelog_next(&self) -> Result<Option<u64>, StoreError> {
        let value = self.get(Family::Meta, key::CHANGELOG)?;
        let next = value.map(|value| key::decode_number(&value)).transpose();
        let next = next.map_err(|error| self.damage(Family::Meta, "changelog", &error))?;
        Ok(next.map(|DocumentNumber(next)| next))
    }

    /// The encoded [`crate::index::Format`] that the store was created with; `None` in memory.
    fn format(&self) -> Result<Option<Vec<u8>>, StoreError> {
        self.get(Family::Meta, key::FORMAT)
    }

    /// Every row that the log determines, sorted. Two stores with equal dumps hold the same state.
    ///
    /// Rows that belong to one copy only, its format and its changelog offset, are left out.
    fn dump(&self) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        let languages = self.languages();
        for family in languages.into_iter().flat_map(Family::of_language).chain(Family::COMMON) {
            self.scan(family, &Span::all(), Order::Ascending, &mut |key, value| {
                if family != Family::Meta || key == key::POSITION {
                    rows.push(Row { family: family.name(), key: key.to_vec(), value: value.to_vec() });
                }
                ControlFlow::Continue(())
            })?;
        }
        rows.sort_unstable();
        Ok(rows)
    }

    #[doc(hidden)]
    fn damage(&self, family: Family, row: &str, error: &DecodeError) -> StoreError {
        StoreError::damaged(self.place(), &format!("{} {row}", family.name()), error)
    }
}
