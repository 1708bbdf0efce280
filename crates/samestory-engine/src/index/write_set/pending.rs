//! The rows of a write set: what to write and what to delete.
//!
//! [`super::overlay`] fills it and reads through it, and stores write it out. Documents stay decoded until
//! they are written to the changelog or a store, since they are read more often.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use crate::fingerprint::MAX_BYTES;
use crate::model::{DocumentNumber, Lang};

use super::staged_postings::{Bands, Spread};
use crate::index::format::key;
use crate::index::format::key::Family;
use crate::index::format::value;
use crate::index::read::rows::{Order, Span};
use crate::index::record::{Cluster, Document, Progress};

/// Staged rows.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Staged postings by language.
    pub(crate) bands: BTreeMap<Lang, Bands>,
    /// Documents by language; `None` for a removed one.
    pub(crate) documents: BTreeMap<Lang, BTreeMap<DocumentNumber, Option<StagedDocument>>>,
    /// Canonicals of clusters, also recorded in the cluster rows; `None` if the row was removed. It is only
    /// looked up or merged, so its order does not matter.
    pub(crate) canonicals: BTreeMap<Lang, Canonicals>,
    /// All other rows; `None` for a removed one.
    pub(crate) rows: BTreeMap<Family, BTreeMap<Vec<u8>, Option<Vec<u8>>>>,
    /// Approximate memory of everything staged.
    pub(crate) bytes: usize,
}

/// The canonical of each cluster by founder; `None` if the cluster has no row.
pub(crate) type Canonicals = HashMap<DocumentNumber, Option<DocumentNumber>, BuildHasherDefault<Spread>>;

/// A staged row; `None` as value if it was removed.
pub(crate) type PendingRow<'p> = (Cow<'p, [u8]>, Option<Cow<'p, [u8]>>);

/// A staged document. It is encoded when its bytes are first asked for, and only once: the changelog and the store get
/// the same bytes.
#[derive(Debug)]
pub(crate) struct StagedDocument {
    pub(crate) document: Arc<Document>,
    bytes: OnceLock<Vec<u8>>,
}

impl StagedDocument {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get_or_init(|| value::encode_document(&self.document))
    }
}

impl Pending {
    pub(crate) fn row(&mut self, family: Family, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len) + 64;
        self.rows.entry(family).or_default().insert(key, value);
    }

    /// Replaces one row without a value by another; does nothing if they are equal.
    pub(crate) fn replace(&mut self, family: Family, old: Option<Vec<u8>>, new: Option<Vec<u8>>) {
        if old != new {
            if let Some(old) = old {
                self.row(family, old, None);
            }
            if let Some(new) = new {
                self.row(family, new, Some(Vec::new()));
            }
        }
    }

    /// Stages the position record.
    pub(crate) fn progress(&mut self, progress: &Progress) {
        self.row(Family::Meta, key::POSITION.to_vec(), Some(value::encode_progress(progress)));
    }

    /// Stages a cluster's row, or its removal.
    pub(crate) fn cluster(&mut self, language: Lang, founder: DocumentNumber, cluster: Option<&Cluster>) {
        let canonicals = self.canonicals.entry(language).or_default();
        canonicals.insert(founder, cluster.map(|cluster| cluster.canonical));
        self.row(Family::Clusters, key::cluster(language, founder), cluster.map(value::encode_cluster));
    }

    pub(crate) fn document(
        &mut self,
        language: Lang,
        number: DocumentNumber,
        document: Option<Arc<Document>>,
    ) {
        self.bytes += if document.is_some() { MAX_BYTES + 256 } else { 64 };
        let staged = document.map(|document| StagedDocument { document, bytes: OnceLock::new() });
        self.documents.entry(language).or_default().insert(number, staged);
    }

    /// The staged row of exactly this document.
    pub(crate) fn staged(&self, document: &Arc<Document>) -> Option<&StagedDocument> {
        let staged = self.documents.get(&document.language)?.get(&document.number)?.as_ref()?;
        Arc::ptr_eq(&staged.document, document).then_some(staged)
    }

    /// The staged value of a key, if there is one; `Some(None)` means removed.
    pub(crate) fn get(&self, family: Family, key: &[u8]) -> Option<Option<Vec<u8>>> {
        match family {
            Family::Bands(language) => {
                let (bucket, number) = key::decode_posting(key).ok()?;
                let present = self.bands.get(&language)?.get(bucket, number)?;
                Some(present.then(Vec::new))
            }
            Family::Documents(language) => {
                let document = self.documents.get(&language)?.get(&key::decode_number(key).ok()?)?;
                Some(document.as_ref().map(|staged| staged.bytes().to_vec()))
            }
            _ => self.rows.get(&family)?.get(key).cloned(),
        }
    }

    /// The staged rows of a range, in order.
    pub(crate) fn span(&self, family: Family, span: &Span, order: Order) -> Vec<PendingRow<'_>> {
        let mut rows: Vec<PendingRow<'_>> = match family {
            Family::Bands(language) => {
                let Some(bands) = self.bands.get(&language) else { return Vec::new() };
                let rows = match key::bucket_in(span) {
                    Some(bucket) => bands.sorted_bucket(bucket),
                    None => bands.sorted(),
                };
                let inside = rows.into_iter().filter(|(key, _)| span.holds(key));
                inside
                    .map(|(key, present)| (Cow::from(key.to_vec()), present.then_some(Cow::from(&[][..]))))
                    .collect()
            }
            Family::Documents(language) => {
                let rows = self.documents.get(&language).into_iter().flatten();
                let rows = rows.map(|(&number, document)| (key::number(number), document));
                let inside = rows.filter(|(key, _)| span.holds(key));
                inside
                    .map(|(key, document)| {
                        (Cow::from(key.to_vec()), document.as_ref().map(|staged| Cow::from(staged.bytes())))
                    })
                    .collect()
            }
            _ => {
                let rows = self.rows.get(&family).map(|rows| rows.range::<[u8], _>(bounds(span)));
                rows.into_iter()
                    .flatten()
                    .map(|(key, value)| (Cow::from(key), value.as_ref().map(Cow::from)))
                    .collect()
            }
        };
        if order == Order::Descending {
            rows.reverse();
        }
        rows
    }
}

/// A [`Span`] as range bounds; empty if the end lies before the start.
pub(crate) fn bounds(span: &Span) -> (Bound<&[u8]>, Bound<&[u8]>) {
    match &span.to {
        Some(to) if *to < span.from => (Bound::Included(&span.from), Bound::Excluded(&span.from)),
        Some(to) => (Bound::Included(&span.from), Bound::Excluded(to)),
        None => (Bound::Included(&span.from), Bound::Unbounded),
    }
}
