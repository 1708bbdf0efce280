//! The storage interface: ordered byte rows in column families.
//!
//! Memory, RocksDB, snapshots and overlays implement [`Rows`]; [`super::view`] decodes the rows into records.
//! A failed read is always an error and never looks like an absent row.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::lsh::BandKey;
use crate::model::{ArticleId, DocumentNumber, Lang};

use crate::index::StoreError;
use crate::index::format::bytes::DecodeError;
use crate::index::format::key;
use crate::index::format::key::Family;
use crate::index::format::value;
use crate::index::record::Document;
use crate::index::scheme::IndexSchemes;

/// A half-open range of keys: from `from` up to but not including `to`, or to the end of the family if `to`
/// is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first key.
    pub from: Vec<u8>,
    /// The first key after the range.
    pub to: Option<Vec<u8>>,
}

impl Span {
    /// Every key.
    pub fn all() -> Span {
        Span { from: Vec::new(), to: None }
    }

    /// Every key that starts with this prefix.
    pub fn prefix(prefix: &[u8]) -> Span {
        let mut to = prefix.to_vec();
        while to.pop_if(|last| *last == u8::MAX).is_some() {}
        let to = to.split_last().map(|(&last, head)| [head, &[last + 1]].concat());
        Span { from: prefix.to_vec(), to }
    }

    /// Whether the range contains a key.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        *self.from <= *key && self.to.as_ref().is_none_or(|to| *key < **to)
    }
}

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Smallest key first.
    Ascending,
    /// Largest key first.
    Descending,
}

/// A posting list: document numbers up to a cap, and whether there are more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostingList {
    /// Document numbers in the requested order.
    pub numbers: Vec<DocumentNumber>,
    /// Whether the cap cut any off.
    pub more: bool,
}

/// The posting lists of several buckets. A bucket that is requested several times is stored once.
#[derive(Clone, Debug, Default)]
pub struct PostingLists {
    lists: Vec<PostingList>,
    /// For each requested key, one plus the index of its list; 0 for an empty bucket.
    slots: Vec<u32>,
}

impl PostingLists {
    /// Posting lists for this many buckets, all empty.
    pub(crate) fn empty(count: usize) -> PostingLists {
        PostingLists { lists: Vec::new(), slots: vec![0; count] }
    }

    /// Adds a posting list and returns its slot for [`PostingLists::set`].
    pub(crate) fn add(&mut self, list: PostingList) -> u32 {
        self.lists.push(list);
        self.lists.len() as u32
    }

    /// Assigns a slot to a key.
    pub(crate) fn set(&mut self, key: usize, slot: u32) {
        self.slots[key] = slot;
    }

    /// The posting list of the n-th requested key; `None` for an empty bucket.
    pub fn get(&self, key: usize) -> Option<&PostingList> {
        let slot = *self.slots.get(key)? as usize;
        self.lists.get(slot.checked_sub(1)?)
    }
}

/// The callback of a scan: receives each key and value, and returns whether to continue.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// Ordered byte rows in column families.
pub trait Rows {
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
    /// As [`Rows::get`].
    fn get_many(&self, family: Family, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        keys.iter().map(|key| self.get(family, key)).collect()
    }

    /// Whether there may be a document of an id in any language; `false` is certain.
    fn may_know(&self, _id: &ArticleId) -> bool {
        true
    }

    /// Whether there may be a residence of an id; `false` is certain.
    fn may_reside(&self, _id: &ArticleId) -> bool {
        true
    }

    /// Documents by number, in the given order.
    ///
    /// # Errors
    /// As [`Rows::get`]; also if a document cannot be decoded or has another number than its key.
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

    /// The canonicals of the clusters with these founders, in order; `None` for a cluster without a row.
    ///
    /// # Errors
    /// As [`Rows::get`].
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
    /// As [`Rows::get`].
    fn read_ahead(&self, _language: Lang, _numbers: Vec<DocumentNumber>) -> Result<(), StoreError> {
        Ok(())
    }

    /// The newest `cap` documents of each bucket, each distinct bucket once.
    ///
    /// # Errors
    /// As [`Rows::scan`].
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
    /// As [`Rows::scan`].
    fn buckets(&self, language: Lang, keys: &[BandKey], cap: usize) -> Result<Vec<PostingList>, StoreError> {
        let lists = self.posting_lists(language, keys, cap)?;
        Ok((0..keys.len()).map(|at| lists.get(at).cloned().unwrap_or_default()).collect())
    }
}

/// Decodes a document and checks that it has the expected number.
pub(crate) fn decode_own(
    place: &str,
    language: Lang,
    number: DocumentNumber,
    bytes: &[u8],
) -> Result<Arc<Document>, StoreError> {
    let own = value::decode_document(language, bytes).and_then(|document| match document.number == number {
        true => Ok(Arc::new(document)),
        false => Err(DecodeError::Value("a number that is not its key")),
    });
    let row = || format!("{} document {number}", Family::Documents(language).name());
    own.map_err(|error| StoreError::damaged(place, &row(), &error))
}

/// The canonical according to a cluster's row.
pub(crate) fn canonical<R: Rows + ?Sized>(
    rows: &R,
    language: Lang,
    founder: DocumentNumber,
) -> Result<Option<DocumentNumber>, StoreError> {
    let Some(value) = rows.get(Family::Clusters, &key::cluster(language, founder))? else { return Ok(None) };
    match value::decode_cluster(language, founder, &value) {
        Ok(cluster) => Ok(Some(cluster.canonical)),
        Err(error) => {
            Err(StoreError::damaged(rows.place(), &format!("clusters {language} {founder}"), &error))
        }
    }
}

/// Reads one bucket row by row, newest first; only documents older than `below`, if given.
pub(crate) fn scan_bucket<R: Rows + ?Sized>(
    rows: &R,
    language: Lang,
    key: BandKey,
    below: Option<DocumentNumber>,
    cap: usize,
) -> Result<PostingList, StoreError> {
    let mut span = Span::prefix(&key::bucket(key));
    match below {
        None => {}
        Some(DocumentNumber(0)) => return Ok(PostingList::default()),
        // Keys are newest first, so older documents follow.
        Some(DocumentNumber(below)) => span.from = key::posting(key, DocumentNumber(below - 1)).to_vec(),
    }
    scan_numbers(rows, Family::Bands(language), &span, Order::Ascending, cap, |key| {
        key::decode_posting(key).map(|(_, number)| number)
    })
}

/// Reads document numbers from the keys of a range, up to a cap.
pub(crate) fn scan_numbers<R: Rows + ?Sized>(
    rows: &R,
    family: Family,
    span: &Span,
    order: Order,
    cap: usize,
    number: impl Fn(&[u8]) -> Result<DocumentNumber, crate::index::DecodeError>,
) -> Result<PostingList, StoreError> {
    let mut found = PostingList::default();
    let mut damage = None;
    rows.scan(family, span, order, &mut |key, _| {
        if found.numbers.len() == cap {
            found.more = true;
            return ControlFlow::Break(());
        }
        match number(key) {
            Ok(number) => found.numbers.push(number),
            Err(error) => damage = Some(StoreError::damaged(rows.place(), &family.name(), &error)),
        }
        if damage.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    damage.map_or(Ok(found), Err)
}

impl<R: Rows + ?Sized> Rows for &R {
    fn place(&self) -> &str {
        (**self).place()
    }
    fn version(&self) -> u64 {
        (**self).version()
    }
    fn postings(&self) -> &IndexSchemes {
        (**self).postings()
    }
    fn languages(&self) -> Vec<Lang> {
        (**self).languages()
    }
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        (**self).get(family, key)
    }
    fn scan(
        &self,
        family: Family,
        span: &Span,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        (**self).scan(family, span, order, visit)
    }
    fn get_many(&self, family: Family, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        (**self).get_many(family, keys)
    }
    fn may_know(&self, id: &ArticleId) -> bool {
        (**self).may_know(id)
    }
    fn may_reside(&self, id: &ArticleId) -> bool {
        (**self).may_reside(id)
    }
    fn shared_documents(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<Arc<Document>>>, StoreError> {
        (**self).shared_documents(language, numbers)
    }
    fn canonicals(
        &self,
        language: Lang,
        founders: &[DocumentNumber],
    ) -> Result<Vec<Option<DocumentNumber>>, StoreError> {
        (**self).canonicals(language, founders)
    }
    fn read_ahead(&self, language: Lang, numbers: Vec<DocumentNumber>) -> Result<(), StoreError> {
        (**self).read_ahead(language, numbers)
    }
    fn posting_lists(
        &self,
        language: Lang,
        keys: &[BandKey],
        cap: usize,
    ) -> Result<PostingLists, StoreError> {
        (**self).posting_lists(language, keys, cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_the_next_begins() {
        assert_eq!(Span::prefix(b"a\xff\xff").to, Some(b"b".to_vec()));
        assert_eq!(Span::prefix(b"ab").to, Some(b"ac".to_vec()));
        assert_eq!(Span::prefix(b"\xff\xff").to, None);
        assert_eq!(Span::prefix(b""), Span::all());
    }
}
