//! Ordered rows of bytes in families: all that a home for state has to offer. Meaning is added in [`super::view`].

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

/// Keys from `from` on, up to but not including `to`; to the family's end where there is no `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first key.
    pub from: Vec<u8>,
    /// The first key after it.
    pub to: Option<Vec<u8>>,
}

impl Span {
    /// Every key.
    pub fn all() -> Span {
        Span { from: Vec::new(), to: None }
    }

    /// Every key that begins like this.
    pub fn prefix(prefix: &[u8]) -> Span {
        let mut to = prefix.to_vec();
        while to.pop_if(|last| *last == u8::MAX).is_some() {}
        let to = to.split_last().map(|(&last, head)| [head, &[last + 1]].concat());
        Span { from: prefix.to_vec(), to }
    }

    /// Whether a key lies in it.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        *self.from <= *key && self.to.as_ref().is_none_or(|to| *key < **to)
    }
}

/// Which end to begin at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// With the least.
    Ascending,
    /// With the greatest.
    Descending,
}

/// Some document numbers, and whether more would have followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostingList {
    /// In the order asked for.
    pub numbers: Vec<DocumentNumber>,
    /// Whether the cap cut something off.
    pub more: bool,
}

/// Pages of several buckets. Where many ask for one bucket it is there once.
#[derive(Clone, Debug, Default)]
pub struct PostingLists {
    pages: Vec<PostingList>,
    /// For each key that was asked for, one more than the place of its page; 0 for an empty bucket.
    places: Vec<u32>,
}

impl PostingLists {
    /// So many empty buckets.
    pub(crate) fn empty(count: usize) -> PostingLists {
        PostingLists { pages: Vec::new(), places: vec![0; count] }
    }

    /// Adds a page and gives its place.
    pub(crate) fn add(&mut self, page: PostingList) -> u32 {
        self.pages.push(page);
        self.pages.len() as u32
    }

    /// Says which page a key has.
    pub(crate) fn set(&mut self, key: usize, place: u32) {
        self.places[key] = place;
    }

    /// The page of the key that was the n-th; nothing for an empty bucket.
    pub fn of(&self, key: usize) -> Option<&PostingList> {
        let place = *self.places.get(key)? as usize;
        self.pages.get(place.checked_sub(1)?)
    }
}

/// What a scan calls with each key and value; it says whether to go on.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// Ordered rows of bytes.
pub trait Rows {
    /// Its directory, or `memory`: for messages.
    fn place(&self) -> &str;

    /// How often it has been changed since it was opened.
    fn version(&self) -> u64;

    /// How its documents are posted.
    fn postings(&self) -> &IndexSchemes;

    /// The languages that have families, ascending.
    fn languages(&self) -> Vec<Lang>;

    /// The value of a key.
    ///
    /// # Errors
    /// The store could not be read. That is never the same as "not there".
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Visits the rows of a span until told to stop.
    ///
    /// # Errors
    /// The store could not be read; what was visited so far may not be all.
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

    /// Whether an id may be known, in any language; if not, that is certain.
    fn may_know(&self, _id: &ArticleId) -> bool {
        true
    }

    /// Documents by their numbers, in that order.
    ///
    /// # Errors
    /// As [`Rows::get`]; and if one cannot be read or is another's.
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

    /// Who stands for the clusters of these founders, in that order; nothing where a cluster has no row.
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

    /// Says which documents will be asked for soon, where reading them together is quicker.
    ///
    /// # Errors
    /// As [`Rows::get`].
    fn read_ahead(&self, _language: Lang, _numbers: Vec<DocumentNumber>) -> Result<(), StoreError> {
        Ok(())
    }

    /// The newest `cap` documents of each bucket.
    ///
    /// # Errors
    /// As [`Rows::scan`].
    fn pages(&self, language: Lang, keys: &[BandKey], cap: usize) -> Result<PostingLists, StoreError> {
        let mut pages = PostingLists::empty(keys.len());
        for (at, &key) in keys.iter().enumerate() {
            let place = pages.add(scan_bucket(self, language, key, None, cap)?);
            pages.set(at, place);
        }
        Ok(pages)
    }

    /// The newest `cap` documents of each bucket, in the order of the keys.
    ///
    /// # Errors
    /// As [`Rows::scan`].
    fn buckets(&self, language: Lang, keys: &[BandKey], cap: usize) -> Result<Vec<PostingList>, StoreError> {
        let pages = self.pages(language, keys, cap)?;
        Ok((0..keys.len()).map(|at| pages.of(at).cloned().unwrap_or_default()).collect())
    }
}

/// Reads a document from its bytes, and sees that it is the one that was asked for.
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

/// Who stands for a cluster, by its row.
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

/// Reads one bucket row by row, newest first; only documents older than `below`, if that is given.
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
        // Newest first: what is older than a document comes after it.
        Some(DocumentNumber(below)) => span.from = key::posting(key, DocumentNumber(below - 1)).to_vec(),
    }
    page(rows, Family::Bands(language), &span, Order::Ascending, cap, |key| {
        key::decode_posting(key).map(|(_, number)| number)
    })
}

/// Reads document numbers out of keys, up to a cap.
pub(crate) fn page<R: Rows + ?Sized>(
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
    fn pages(&self, language: Lang, keys: &[BandKey], cap: usize) -> Result<PostingLists, StoreError> {
        (**self).pages(language, keys, cap)
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
