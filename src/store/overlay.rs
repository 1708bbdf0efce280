//! Pending changes over committed state. Reads see them at once; the store sees them only after a commit.
//!
//! A store applies changes by laying them over itself and then writing down what has become different. So an
//! overlay reads as the store will.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::iter::Peekable;
use std::ops::{Bound, ControlFlow};

use crate::lsh::BandKey;
use crate::model::{ArticleId, DocumentNumber, Lang};

use super::change::{Change, document_postings, document_rows};
use super::key::{self, Family, POSTING};
use super::postings::Postings;
use super::record::Document;
use super::rows::{Order, Page, Rows, Span, Visit, scan_bucket};
use super::view::View;
use super::{StoreError, value};

/// What has become different: rows to write, and rows to remove.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Postings by language; whether they are there now.
    pub(super) bands: BTreeMap<Lang, BTreeMap<[u8; POSTING], bool>>,
    /// All other rows; nothing where they are gone.
    pub(super) rows: BTreeMap<Family, BTreeMap<Vec<u8>, Option<Vec<u8>>>>,
    /// The buckets of those postings, as [`mark`]s. Only asked whether one is in it, so its order never shows.
    touched: HashSet<u64, BuildHasherDefault<Marked>>,
    pub(super) bytes: usize,
}

/// A number for a bucket. Two may share one: then a bucket is read row by row that need not be, and reads the same.
fn mark(key: BandKey) -> u64 {
    (key.hash ^ u64::from(key.band) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Marks are spread already.
#[derive(Default)]
struct Marked(u64);

impl Hasher for Marked {
    fn finish(&self) -> u64 {
        // The table goes by the highest bits and the lowest.
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 | u64::from(byte));
    }

    fn write_u64(&mut self, mark: u64) {
        self.0 = mark;
    }
}

/// Changes that were laid over a store, worked out: applying them is writing them down.
#[derive(Debug)]
pub struct Laid {
    version: u64,
    pending: Pending,
}

impl Laid {
    /// What to write, if the store is still the one it was worked out for.
    pub(super) fn pending(self, store: &impl Rows) -> Result<Pending, StoreError> {
        if self.version == store.version() {
            return Ok(self.pending);
        }
        Err(StoreError::Outdated { place: store.place().into() })
    }
}

/// Pending rows in order; nothing where they are gone.
type Ordered<'p> = Box<dyn DoubleEndedIterator<Item = (&'p [u8], Option<&'p [u8]>)> + 'p>;

/// Pending changes over a view; itself a view.
#[derive(Debug)]
pub struct Overlay<'a, B: ?Sized> {
    base: &'a B,
    pending: Pending,
}

impl<'a, B: Rows + ?Sized> Overlay<'a, B> {
    /// Nothing is pending yet.
    pub fn new(base: &'a B) -> Overlay<'a, B> {
        Overlay { base, pending: Pending::default() }
    }

    /// About how much memory the pending rows take. Commit early when it is large.
    pub fn bytes(&self) -> usize {
        self.pending.bytes
    }

    /// Lays a change over what is there: first everything that its key holds is removed, then the new is put.
    ///
    /// # Errors
    /// What the key holds could not be read. The change is not laid over.
    pub fn lay(&mut self, change: &Change) -> Result<(), StoreError> {
        match change {
            Change::Document(document) => {
                self.lay_document(document.language, &document.id, Some(document))?
            }
            Change::NoDocument(language, id) => self.lay_document(*language, id, None)?,
            Change::Cluster(cluster) => {
                let key = key::cluster(cluster.id.language, cluster.id.number);
                self.pending.row(Family::Clusters, key, Some(value::encode_cluster(cluster)));
            }
            Change::NoCluster(language, founder) => {
                self.pending.row(Family::Clusters, key::cluster(*language, *founder), None);
            }
            Change::Progress(progress) => {
                let value = value::encode_progress(progress);
                self.pending.row(Family::Meta, key::POSITION.to_vec(), Some(value));
            }
        }
        Ok(())
    }

    /// What was laid over, to be applied as it is.
    pub fn into_laid(self) -> Laid {
        Laid { version: self.base.version(), pending: self.pending }
    }

    fn lay_document(
        &mut self,
        language: Lang,
        id: &ArticleId,
        new: Option<&Document>,
    ) -> Result<(), StoreError> {
        let old = match self.number_of(language, id)? {
            None => None,
            Some(number) => Some(self.document_of(language, number)?),
        };
        let rows = |document: Option<&Document>| document.map(document_rows).unwrap_or_default();
        let (old_rows, mut new_rows) = (rows(old.as_ref()), rows(new));
        for ((family, key), value) in old_rows {
            match new_rows.get(&(family, key.clone())) {
                None => self.pending.row(family, key, None),
                // A document that is only seen again keeps most of its rows: those are not written twice.
                Some(same) if *same == value => drop(new_rows.remove(&(family, key))),
                Some(_) => {}
            }
        }
        for ((family, key), value) in new_rows {
            self.pending.row(family, key, Some(value));
        }
        let postings = self.base.postings();
        let keys = |document: Option<&Document>| {
            document.map(|document| document_postings(document, postings)).unwrap_or_default()
        };
        let (old_keys, new_keys) = (keys(old.as_ref()), keys(new));
        let bands = self.pending.bands.entry(language).or_default();
        let gone = old_keys.iter().filter(|key| new_keys.binary_search(key).is_err()).map(|key| (key, false));
        let come = new_keys.iter().filter(|key| old_keys.binary_search(key).is_err()).map(|key| (key, true));
        for (&key, there) in gone.chain(come) {
            bands.insert(key, there);
            self.pending.touched.insert(mark(key::bucket_of(&key)));
        }
        self.pending.bytes += POSTING * 2 * (old_keys.len() + new_keys.len());
        Ok(())
    }

    /// The document that an id points to. If it is missing, its postings cannot be removed: that is damage.
    fn document_of(&self, language: Lang, number: DocumentNumber) -> Result<Document, StoreError> {
        self.document(language, number)?.ok_or_else(|| StoreError::Corrupt {
            place: self.place().into(),
            detail: format!("docs:{language} document {number} is missing, but its id is not"),
        })
    }
}

impl Pending {
    /// The buckets that postings are put in.
    #[cfg(feature = "rocksdb")]
    pub(super) fn buckets(&self) -> impl Iterator<Item = (Lang, BandKey)> {
        let put =
            self.bands.iter().flat_map(|(&language, bands)| bands.iter().map(move |row| (language, row)));
        put.filter(|(_, (_, there))| **there).map(|(language, (key, _))| (language, key::bucket_of(key)))
    }

    fn row(&mut self, family: Family, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len) + 64;
        self.rows.entry(family).or_default().insert(key, value);
    }

    /// The pending rows of a span in that order.
    fn span<'p>(&'p self, family: Family, span: &Span, order: Order) -> Ordered<'p> {
        let rows: Ordered<'p> = match family {
            Family::Bands(language) => {
                let rows = self.bands.get(&language).map(|bands| bands.range(posting_bounds(span)));
                Box::new(rows.into_iter().flatten().map(|(key, there)| (&key[..], there.then_some(&[][..]))))
            }
            _ => {
                let rows = self.rows.get(&family).map(|rows| rows.range::<[u8], _>(bounds(span)));
                Box::new(rows.into_iter().flatten().map(|(key, value)| (&key[..], value.as_deref())))
            }
        };
        match order {
            Order::Ascending => rows,
            Order::Descending => Box::new(rows.rev()),
        }
    }
}

/// A span as the bounds of a range; an empty one where the end lies before the beginning.
pub(super) fn bounds(span: &Span) -> (Bound<&[u8]>, Bound<&[u8]>) {
    match &span.to {
        Some(to) if *to < span.from => (Bound::Included(&span.from), Bound::Excluded(&span.from)),
        Some(to) => (Bound::Included(&span.from), Bound::Excluded(to)),
        None => (Bound::Included(&span.from), Bound::Unbounded),
    }
}

/// The same for keys of one length: a shorter bound filled with zeros parts them just so.
pub(super) fn posting_bounds(span: &Span) -> (Bound<[u8; POSTING]>, Bound<[u8; POSTING]>) {
    let filled = |bound: &[u8]| {
        let mut key = [0; POSTING];
        let length = bound.len().min(POSTING);
        key[..length].copy_from_slice(&bound[..length]);
        key
    };
    let (from, to) = bounds(span);
    (from.map(filled), to.map(filled))
}

impl<B: Rows + ?Sized> Rows for Overlay<'_, B> {
    fn place(&self) -> &str {
        self.base.place()
    }

    fn version(&self) -> u64 {
        self.base.version()
    }

    fn postings(&self) -> &Postings {
        self.base.postings()
    }

    fn languages(&self) -> Vec<Lang> {
        let mut languages = self.base.languages();
        languages.extend(self.pending.bands.keys());
        languages.sort_unstable();
        languages.dedup();
        languages
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let pending = match family {
            Family::Bands(language) => <&[u8; POSTING]>::try_from(key)
                .ok()
                .and_then(|key| self.pending.bands.get(&language)?.get(key))
                .map(|there| there.then(Vec::new)),
            _ => self.pending.rows.get(&family).and_then(|rows| rows.get(key)).cloned(),
        };
        pending.map_or_else(|| self.base.get(family, key), Ok)
    }

    fn scan(
        &self,
        family: Family,
        span: &Span,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let mut pending = self.pending.span(family, span, order).peekable();
        let mut flow = ControlFlow::Continue(());
        self.base.scan(family, span, order, &mut |key, value| {
            flow = merge(&mut pending, order, key, value, visit);
            flow
        })?;
        if flow.is_continue() {
            // Breaking off is the visitor's business; there is nothing after this.
            let _stopped = pending.try_for_each(|(key, value)| match value {
                Some(value) => visit(key, value),
                None => ControlFlow::Continue(()),
            });
        }
        Ok(())
    }

    fn get_many(&self, family: Family, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let Some(rows) = self.pending.rows.get(&family) else { return self.base.get_many(family, keys) };
        let others: Vec<Vec<u8>> = keys.iter().filter(|key| !rows.contains_key(*key)).cloned().collect();
        let mut others = self.base.get_many(family, &others)?.into_iter();
        let value = |key| rows.get(key).cloned().unwrap_or_else(|| others.next().flatten());
        Ok(keys.iter().map(value).collect())
    }

    fn buckets(&self, language: Lang, keys: &[BandKey], cap: usize) -> Result<Vec<Page>, StoreError> {
        // Most buckets have nothing pending; the store may answer those together.
        let others: Vec<BandKey> =
            keys.iter().copied().filter(|&key| !self.pending.touched.contains(&mark(key))).collect();
        let mut others = others.iter().zip(self.base.buckets(language, &others, cap)?).peekable();
        let mut answer = |&key: &BandKey| match others.next_if(|(other, _)| **other == key) {
            Some((_, page)) => Ok(page),
            None => scan_bucket(self, language, key, None, cap),
        };
        keys.iter().map(&mut answer).collect()
    }
}

/// Visits the pending rows that come before a row of the base, then the row, unless that is overlaid or gone.
fn merge<'p>(
    pending: &mut Peekable<impl Iterator<Item = (&'p [u8], Option<&'p [u8]>)>>,
    order: Order,
    key: &[u8],
    value: &[u8],
    visit: &mut Visit<'_>,
) -> ControlFlow<()> {
    let due = |other: &[u8]| match order {
        Order::Ascending => other <= key,
        Order::Descending => other >= key,
    };
    let mut overlaid = false;
    while let Some((other, value)) = pending.next_if(|(other, _)| due(other)) {
        overlaid = other == key;
        if let Some(value) = value {
            visit(other, value)?;
        }
    }
    if overlaid { ControlFlow::Continue(()) } else { visit(key, value) }
}
