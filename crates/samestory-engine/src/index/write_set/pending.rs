//! What has become different: rows to write, and rows to remove.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::ops::Bound;
use std::sync::Arc;

use crate::fingerprint::MAX_BYTES;
use crate::model::{DocumentNumber, Lang};

use super::staged_postings::{Bands, Spread};
use crate::index::format::key;
use crate::index::format::key::Family;
use crate::index::format::value;
use crate::index::read::rows::{Order, Span};
use crate::index::record::{Cluster, Document};

/// What has become different.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Postings by language.
    pub(crate) bands: BTreeMap<Lang, Bands>,
    /// Documents by language; nothing where they are gone. They become bytes when they are written.
    pub(crate) documents: BTreeMap<Lang, BTreeMap<DocumentNumber, Option<Arc<Document>>>>,
    /// Who stands for clusters, which their rows say too; nothing where the row is gone. Only ever asked for one, or
    /// put where order does not show.
    pub(crate) canonicals: BTreeMap<Lang, Canonicals>,
    /// All other rows; nothing where they are gone.
    pub(crate) rows: BTreeMap<Family, BTreeMap<Vec<u8>, Option<Vec<u8>>>>,
    /// About how much memory they take.
    pub(crate) bytes: usize,
}

/// By founder, who stands for a cluster; nothing where it has no row.
pub(crate) type Canonicals = HashMap<DocumentNumber, Option<DocumentNumber>, BuildHasherDefault<Spread>>;

/// A row in order; nothing where it is gone.
pub(crate) type PendingRow<'p> = (Cow<'p, [u8]>, Option<Cow<'p, [u8]>>);

impl Pending {
    pub(crate) fn row(&mut self, family: Family, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len) + 64;
        self.rows.entry(family).or_default().insert(key, value);
    }

    /// A row without a value takes the place of another; the same one stays.
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

    /// A cluster is this now; nothing where it has no row any more.
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
        self.documents.entry(language).or_default().insert(number, document);
    }

    /// Whether a key is pending, and with what value.
    pub(crate) fn get(&self, family: Family, key: &[u8]) -> Option<Option<Vec<u8>>> {
        match family {
            Family::Bands(language) => {
                let (bucket, number) = key::decode_posting(key).ok()?;
                let there = self.bands.get(&language)?.get(bucket, number)?;
                Some(there.then(Vec::new))
            }
            Family::Documents(language) => {
                let document = self.documents.get(&language)?.get(&key::decode_number(key).ok()?)?;
                Some(document.as_deref().map(value::encode_document))
            }
            _ => self.rows.get(&family)?.get(key).cloned(),
        }
    }

    /// The pending rows of a span in that order.
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
                    .map(|(key, there)| (Cow::from(key.to_vec()), there.then_some(Cow::from(&[][..]))))
                    .collect()
            }
            Family::Documents(language) => {
                let rows = self.documents.get(&language).into_iter().flatten();
                let rows = rows.map(|(&number, document)| (key::number(number), document));
                let inside = rows.filter(|(key, _)| span.holds(key));
                let bytes = |document: &Arc<Document>| Cow::from(value::encode_document(document));
                inside
                    .map(|(key, document)| (Cow::from(key.to_vec()), document.as_ref().map(bytes)))
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

/// A span as the bounds of a range; an empty one where the end lies before the beginning.
pub(crate) fn bounds(span: &Span) -> (Bound<&[u8]>, Bound<&[u8]>) {
    match &span.to {
        Some(to) if *to < span.from => (Bound::Included(&span.from), Bound::Excluded(&span.from)),
        Some(to) => (Bound::Included(&span.from), Bound::Excluded(to)),
        None => (Bound::Included(&span.from), Bound::Unbounded),
    }
}
