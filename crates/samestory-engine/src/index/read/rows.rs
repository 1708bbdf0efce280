//! The parts of a read: key ranges, raw rows, posting lists, and the decoding that several implementations of
//! [`View`] share.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::lsh::BandKey;
use crate::model::{DocumentNumber, Lang};

use super::view::View;
use crate::index::StoreError;
use crate::index::format::bytes::DecodeError;
use crate::index::format::key;
use crate::index::format::key::Family;
use crate::index::format::value;
use crate::index::record::Document;

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

/// A raw row of a store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The name of its column family.
    pub family: String,
    /// Key bytes.
    pub key: Vec<u8>,
    /// Value bytes.
    pub value: Vec<u8>,
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
pub(crate) fn canonical<V: View + ?Sized>(
    view: &V,
    language: Lang,
    founder: DocumentNumber,
) -> Result<Option<DocumentNumber>, StoreError> {
    let Some(value) = view.get(Family::Clusters, &key::cluster(language, founder))? else { return Ok(None) };
    match value::decode_cluster(language, founder, &value) {
        Ok(cluster) => Ok(Some(cluster.canonical)),
        Err(error) => {
            Err(StoreError::damaged(view.place(), &format!("clusters {language} {founder}"), &error))
        }
    }
}

/// Reads one bucket row by row, newest first; only documents older than `below`, if given.
pub(crate) fn scan_bucket<V: View + ?Sized>(
    view: &V,
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
    scan_numbers(view, Family::Bands(language), &span, Order::Ascending, cap, |key| {
        key::decode_posting(key).map(|(_, number)| number)
    })
}

/// Reads document numbers from the keys of a range, up to a cap.
pub(crate) fn scan_numbers<V: View + ?Sized>(
    view: &V,
    family: Family,
    span: &Span,
    order: Order,
    cap: usize,
    number: impl Fn(&[u8]) -> Result<DocumentNumber, crate::index::DecodeError>,
) -> Result<PostingList, StoreError> {
    let mut found = PostingList::default();
    let mut damage = None;
    view.scan(family, span, order, &mut |key, _| {
        if found.numbers.len() == cap {
            found.more = true;
            return ControlFlow::Break(());
        }
        match number(key) {
            Ok(number) => found.numbers.push(number),
            Err(error) => damage = Some(StoreError::damaged(view.place(), &family.name(), &error)),
        }
        if damage.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    damage.map_or(Ok(found), Err)
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
