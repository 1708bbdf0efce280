//! How documents go: expired, deleted, forgotten, or because the article has changed its language.

use crate::model::{ArticleId, EventTime, Lang, Position};
use crate::store::{Change, Document, Outlet, StoreError, View};

use super::plan::Output;
use super::planner::Planner;
use super::prepare::Prepared;

/// Overdue documents that each article removes, at most. One comes in for each article, so a backlog shrinks.
const OVERDUE: usize = 4;

/// Why a document goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    Deleted,
    Forgotten,
}

impl<V: View> Planner<'_, V> {
    pub(super) fn remove_overdue(&mut self, language: Lang) -> Result<(), StoreError> {
        let Some(horizon) = self.horizon(language) else { return Ok(()) };
        // Looking takes longer than judging: it is known how long there is nothing to find.
        if self.seen_since.get(&language).is_some_and(|since| since.is_none_or(|since| since > horizon)) {
            return Ok(());
        }
        let overdue = self.state.overdue(language, horizon, OVERDUE)?.numbers;
        if overdue.is_empty() {
            let since = self.state.longest_unseen(language)?;
            self.seen_since.insert(language, since);
        }
        for document in self.state.documents(language, &overdue)?.into_iter().flatten() {
            self.remove(&document)?;
            self.stats.expired += 1;
        }
        Ok(())
    }

    /// An article has one language. Where another held it, it leaves, and where it stood it may have to be withdrawn.
    pub(super) fn leave_other_languages(
        &mut self,
        article: &Prepared,
    ) -> Result<Vec<(Outlet, u32)>, StoreError> {
        let mut left = Vec::new();
        for other in self.state.languages_of(&article.id)? {
            if other == article.language {
                continue;
            }
            if let Some(held) = self.held(other, &article.id)? {
                let live = self.is_live(&held);
                self.remove(&held)?;
                if live {
                    // Identity is language and id: it begins anew.
                    left.push((held.outlet, 0));
                } else {
                    self.stats.expired += 1;
                }
            }
        }
        Ok(left)
    }

    /// The document of an id, expired or not.
    pub(super) fn held(&self, language: Lang, id: &ArticleId) -> Result<Option<Document>, StoreError> {
        match self.state.number_of(language, id)? {
            Some(number) => self.state.document(language, number),
            None => Ok(None),
        }
    }

    pub(super) fn remove(&mut self, document: &Document) -> Result<(), StoreError> {
        self.touch(document.language, document.cluster)?;
        self.change(Change::NoDocument(document.language, document.id.clone()))?;
        self.leave(document)
    }

    pub(super) fn remove_ids(
        &mut self,
        ids: &[ArticleId],
        position: &Position,
        time: Option<EventTime>,
        why: Gone,
    ) -> Result<Vec<Output>, StoreError> {
        let mut outputs = Vec::new();
        for id in ids {
            let (mut known, mut now) = (false, time);
            for language in self.state.languages_of(id)? {
                let Some(held) = self.held(language, id)? else { continue };
                if why == Gone::Forgotten && is_before(position, &held.position) {
                    self.stats.stale_forgets += 1;
                    continue;
                }
                let live = self.is_live(&held);
                self.remove(&held)?;
                *(if live { &mut self.stats.deleted } else { &mut self.stats.expired }) += 1;
                known |= live;
                now = now.or(self.stream_time(language));
            }
            if known && self.publishes(now) {
                // To both: an article that came again unchanged stands on either.
                let null = |outlet| Output::Null { id: id.clone(), outlet };
                outputs.extend([Outlet::Unique, Outlet::NearDuplicate].map(null));
            }
            self.stats.unknown_deletes += u64::from(!known && why == Gone::Deleted);
        }
        Ok(outputs)
    }
}

/// Whether a forget is older than the document, or as old: then the article came here again after it had moved away, and
/// the forget is a repeat. Records of different raw partitions have no order, and count as they arrive.
fn is_before(forget: &Position, document: &Position) -> bool {
    use Position::Topic;
    match (forget, document) {
        (
            Topic { topic, partition, offset },
            Topic { topic: held_topic, partition: held_partition, offset: held_offset },
        ) => (topic, partition) == (held_topic, held_partition) && offset <= held_offset,
        _ => false,
    }
}
