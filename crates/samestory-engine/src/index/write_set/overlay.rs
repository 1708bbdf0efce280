//! The overlay: staged changes on top of committed state.
//!
//! The planner reads through an [`Overlay`] and sees its own changes at once; a store applies the resulting
//! [`WriteSet`] only after the commit. Stores apply changes through the same overlay, so an overlay always
//! reads as the store will.

use std::borrow::Cow;
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::lsh::BandKey;
use crate::model::{ArticleId, DocumentNumber, Lang};

use super::change::{Change, document_keys};
use super::pending::{Pending, PendingRow};
use super::staged_postings::CombinedBucket;
use crate::index::StoreError;
use crate::index::format::key;
use crate::index::format::key::{Family, POSTING};
use crate::index::format::value;
use crate::index::read::rows::{Order, PostingList, PostingLists, Span, Visit, scan_bucket};
use crate::index::read::view::View;
use crate::index::record::{Document, DocumentSummary, FileProgress, Progress, Residence};
use crate::index::scheme::IndexSchemes;

/// Staged changes, already turned into rows: applying them only writes them.
#[derive(Debug)]
pub struct WriteSet {
    version: u64,
    pending: Pending,
}

impl WriteSet {
    /// Adds the files that were written for a plan, which names `planned` as the progress. Their lengths are known only
    /// once the plan's outputs are on disk, and the state must record both at once.
    #[must_use]
    pub fn with_files(mut self, planned: Option<&Progress>, written: FileProgress) -> WriteSet {
        let mut progress = planned.cloned().unwrap_or_default();
        progress.files.extend(written);
        self.pending.progress(&progress);
        self
    }

    /// The key and value of a change's changelog record, as [`Change::encode`] returns them. `change` must be one of
    /// those that are staged here: the value of a document is what the store will write.
    pub fn encode<'a>(&'a self, change: &'a Change) -> (Vec<u8>, Option<Cow<'a, [u8]>>) {
        if let Change::Document(document) = change
            && let Some(staged) = self.pending.staged(document)
        {
            return (change.key().encode(), Some(Cow::Borrowed(staged.bytes())));
        }
        let (key, value) = change.encode();
        (key, value.map(Cow::Owned))
    }

    /// The staged rows, if the store is still at the version that they were computed for.
    pub(crate) fn pending(self, store: &impl View) -> Result<Pending, StoreError> {
        if self.version == store.version() {
            return Ok(self.pending);
        }
        Err(StoreError::Outdated { place: store.place().into() })
    }
}

/// Staged changes over a view; itself a view.
#[derive(Debug)]
pub struct Overlay<'a, B: ?Sized> {
    base: &'a B,
    pending: Pending,
}

impl<'a, B: View + ?Sized> Overlay<'a, B> {
    /// Creates an overlay without changes.
    pub fn new(base: &'a B) -> Overlay<'a, B> {
        Overlay { base, pending: Pending::default() }
    }

    /// Approximate memory of the staged rows. Commit early if it is large.
    pub fn bytes(&self) -> usize {
        self.pending.bytes
    }

    /// Stages a change: removes everything that its key holds, then adds the new value.
    ///
    /// # Errors
    /// The current value of the key could not be read; the change is not staged.
    pub fn stage(&mut self, change: &Change) -> Result<(), StoreError> {
        match change {
            Change::Document(document) => {
                self.stage_document(document.language, &document.id, Some(document))?
            }
            Change::NoDocument(language, id) => self.stage_document(*language, id, None)?,
            Change::Cluster(cluster) => {
                self.pending.cluster(cluster.id.language, cluster.id.number, Some(cluster));
            }
            Change::ClusterDeleted(language, founder) => self.pending.cluster(*language, *founder, None),
            Change::Progress(progress) => self.pending.progress(progress),
            Change::Residence(row) => self.stage_residence(&row.id, Some(row))?,
            Change::NoResidence(id) => self.stage_residence(id, None)?,
        }
        Ok(())
    }

    fn stage_residence(&mut self, id: &ArticleId, new: Option<&Residence>) -> Result<(), StoreError> {
        let old = self.residence(id)?;
        let expiry = |row: &Residence| key::residence_expiry(row.language, row.since, id);
        self.pending.replace(Family::Expiry, old.as_ref().map(expiry), new.map(expiry));
        if old.as_ref() != new {
            self.pending.row(Family::Ids, key::residence(id), new.map(value::encode_residence));
        }
        Ok(())
    }

    /// Turns the staged changes into a write set.
    pub fn into_write_set(self) -> WriteSet {
        WriteSet { version: self.base.version(), pending: self.pending }
    }

    fn stage_document(
        &mut self,
        language: Lang,
        id: &ArticleId,
        new: Option<&Arc<Document>>,
    ) -> Result<(), StoreError> {
        let old = match self.number_of(language, id)? {
            None => None,
            Some(number) => Some(self.document_of(language, number)?),
        };
        let (old, pending) = (old.as_deref(), &mut self.pending);
        // A document that was merely seen again keeps most of its rows, which are not written twice.
        if old.map(|old| old.number) != new.map(|new| new.number) {
            if let Some(old) = old {
                pending.document(language, old.number, None);
            }
            let number = new.map(|new| key::number(new.number).to_vec());
            pending.row(Family::Ids, key::id(id, language), number);
        }
        if let Some(new) = new.filter(|&new| old != Some(&**new)) {
            pending.document(language, new.number, Some(Arc::clone(new)));
        }
        let new = new.map(|new| &**new);
        let expiry = |document: &Document| key::expiry(language, document.last_seen, document.number);
        let member = |document: &Document| key::member(language, document.cluster, document.number);
        pending.replace(Family::Expiry, old.map(expiry), new.map(expiry));
        pending.replace(Family::Clusters, old.map(member), new.map(member));
        let postings = self.base.postings();
        let keys = |document: Option<&Document>| {
            document.map(|document| document_keys(document, postings)).unwrap_or_default()
        };
        let (old_keys, new_keys) = (keys(old), keys(new));
        let bands = pending.bands.entry(language).or_default();
        let (mut removed, mut added) = (old_keys.clone(), new_keys.clone());
        if !removed.is_empty() && !added.is_empty() {
            removed.retain(|key| new_keys.binary_search(key).is_err());
            added.retain(|key| old_keys.binary_search(key).is_err());
        }
        removed.into_iter().for_each(|(key, number)| bands.note(key, number, false));
        added.into_iter().for_each(|(key, number)| bands.note(key, number, true));
        pending.bytes += POSTING * 3 * (old_keys.len() + new_keys.len());
        Ok(())
    }

    /// The document that an id points to. If it is missing, its postings cannot be removed, so that is an
    /// error.
    fn document_of(&self, language: Lang, number: DocumentNumber) -> Result<Arc<Document>, StoreError> {
        self.shared_document(language, number)?.ok_or_else(|| StoreError::Corrupt {
            place: self.place().into(),
            detail: format!("docs:{language} document {number} is missing, but its id is not"),
        })
    }
}

impl<B: View + ?Sized> View for Overlay<'_, B> {
    fn place(&self) -> &str {
        self.base.place()
    }

    fn version(&self) -> u64 {
        self.base.version()
    }

    fn postings(&self) -> &IndexSchemes {
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
        self.pending.get(family, key).map_or_else(|| self.base.get(family, key), Ok)
    }

    fn scan(
        &self,
        family: Family,
        span: &Span,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        if matches!(family, Family::Bands(_)) && key::bucket_in(span).is_none() {
            return self.scan_postings(family, span, order, visit);
        }
        let mut pending = self.pending.span(family, span, order).into_iter().peekable();
        let mut flow = ControlFlow::Continue(());
        self.base.scan(family, span, order, &mut |key, value| {
            flow = merge(&mut pending, order, key, value, visit);
            flow
        })?;
        if flow.is_continue() {
            // The visitor may stop; nothing follows in either case.
            let _stopped = pending.try_for_each(|(key, value)| match value {
                Some(value) => visit(&key, &value),
                None => ControlFlow::Continue(()),
            });
        }
        Ok(())
    }

    fn get_many(&self, family: Family, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let pending: Vec<Option<Option<Vec<u8>>>> =
            keys.iter().map(|key| self.pending.get(family, key)).collect();
        let others = keys.iter().zip(&pending).filter(|(_, pending)| pending.is_none());
        let others: Vec<Vec<u8>> = others.map(|(key, _)| key.clone()).collect();
        let mut others = self.base.get_many(family, &others)?.into_iter();
        Ok(pending.into_iter().map(|pending| pending.unwrap_or_else(|| others.next().flatten())).collect())
    }

    fn may_know(&self, id: &ArticleId) -> bool {
        let prefix = key::id_prefix(id);
        let pending = || {
            let rows = self.pending.rows.get(&Family::Ids)?;
            let (key, _) = rows
                .range::<[u8], _>((std::ops::Bound::Included(&prefix[..]), std::ops::Bound::Unbounded))
                .next()?;
            Some(key.starts_with(&prefix))
        };
        pending() == Some(true) || self.base.may_know(id)
    }

    fn shared_documents(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<Arc<Document>>>, StoreError> {
        let Some(pending) = self.pending.documents.get(&language) else {
            return self.base.shared_documents(language, numbers);
        };
        let others: Vec<DocumentNumber> =
            numbers.iter().copied().filter(|number| !pending.contains_key(number)).collect();
        let mut others = self.base.shared_documents(language, &others)?.into_iter();
        let document = |number| match pending.get(number) {
            Some(staged) => staged.as_ref().map(|staged| Arc::clone(&staged.document)),
            None => others.next().flatten(),
        };
        Ok(numbers.iter().map(document).collect())
    }

    fn summaries(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<DocumentSummary>>, StoreError> {
        let Some(pending) = self.pending.documents.get(&language) else {
            return self.base.summaries(language, numbers);
        };
        let others: Vec<DocumentNumber> =
            numbers.iter().copied().filter(|number| !pending.contains_key(number)).collect();
        let mut others = self.base.summaries(language, &others)?.into_iter();
        let summary = |number| match pending.get(number) {
            Some(staged) => staged.as_ref().map(|staged| staged.document.summary()),
            None => others.next().flatten(),
        };
        Ok(numbers.iter().map(summary).collect())
    }

    fn canonicals(
        &self,
        language: Lang,
        founders: &[DocumentNumber],
    ) -> Result<Vec<Option<DocumentNumber>>, StoreError> {
        let mut canonicals = self.base.canonicals(language, founders)?;
        if let Some(pending) = self.pending.canonicals.get(&language) {
            for (canonical, founder) in canonicals.iter_mut().zip(founders) {
                *canonical = pending.get(founder).copied().unwrap_or(*canonical);
            }
        }
        Ok(canonicals)
    }

    fn posting_lists(
        &self,
        language: Lang,
        keys: &[BandKey],
        cap: usize,
    ) -> Result<PostingLists, StoreError> {
        let mut lists = self.base.posting_lists(language, keys, cap)?;
        for (at, &key) in keys.iter().enumerate() {
            if let Cow::Owned(list) = self.staged_posting_list(language, key, lists.get(at), cap)? {
                let slot = lists.add(list);
                lists.set(at, slot);
            }
        }
        Ok(lists)
    }
}

impl<B: View + ?Sized> Overlay<'_, B> {
    /// A bucket's posting list with the staged postings applied to `base`, the list that the base store
    /// holds.
    ///
    /// # Errors
    /// As [`View::scan`].
    pub fn staged_posting_list<'p>(
        &self,
        language: Lang,
        key: BandKey,
        base: Option<&'p PostingList>,
        cap: usize,
    ) -> Result<Cow<'p, PostingList>, StoreError> {
        const EMPTY: &PostingList = &PostingList { numbers: Vec::new(), more: false };
        let base = base.unwrap_or(EMPTY);
        let combined = self
            .pending
            .bands
            .get(&language)
            .map_or(CombinedBucket::Base, |bands| bands.combine(key, base, cap));
        Ok(match combined {
            CombinedBucket::Base => Cow::Borrowed(base),
            CombinedBucket::PostingList(list) => Cow::Owned(list),
            CombinedBucket::Unknown => Cow::Owned(scan_bucket(self, language, key, None, cap)?),
        })
    }

    /// Postings of several buckets come in no particular order.
    fn scan_postings(
        &self,
        family: Family,
        span: &Span,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let mut flow = ControlFlow::Continue(());
        self.base.scan(family, span, order, &mut |key, value| {
            flow = match self.pending.get(family, key) {
                None => visit(key, value),
                Some(_) => ControlFlow::Continue(()),
            };
            flow
        })?;
        let mut added =
            self.pending.span(family, span, order).into_iter().filter(|(_, value)| value.is_some());
        if flow.is_continue() {
            // The visitor may stop; nothing follows in either case.
            let _stopped = added.try_for_each(|(key, _)| visit(&key, &[]));
        }
        Ok(())
    }

    /// The view under the staged changes.
    pub fn base(&self) -> &B {
        self.base
    }
}

/// Visits the staged rows that precede a base row, then the base row unless it is replaced or removed.
fn merge<'p>(
    pending: &mut Peekable<impl Iterator<Item = PendingRow<'p>>>,
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
        overlaid = *other == *key;
        if let Some(value) = value {
            visit(&other, &value)?;
        }
    }
    if overlaid { ControlFlow::Continue(()) } else { visit(key, value) }
}
