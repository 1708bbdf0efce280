//! Removal of documents that expired or whose article changed its language.
//!
//! [`super::upsert`] calls this before it judges an article; [`super::relocation`] handles deletes and moves
//! to another partition. Every removal also takes the document out of its cluster.

use crate::index::{Change, Document, OutputTopic, Overdue, StoreError, View};
use crate::model::{ArticleId, Lang};

use super::planner::Planner;
use crate::engine::prepare::Prepared;

/// How many overdue documents and residences each article removes, at most. Each article adds at most one, so
/// a backlog shrinks.
const OVERDUE: usize = 4;

impl<V: View> Planner<'_, V> {
    pub(crate) fn remove_overdue(&mut self, language: Lang) -> Result<(), StoreError> {
        let Some(horizon) = self.horizon(language) else { return Ok(()) };
        // The lookup costs more than judging an article, so it is skipped while nothing can be overdue.
        if self.seen_since.get(&language).is_some_and(|since| since.is_none_or(|since| since > horizon)) {
            return Ok(());
        }
        let overdue = self.state.overdue(language, horizon, OVERDUE)?;
        if overdue.is_empty() {
            let since = self.state.longest_unseen(language)?;
            self.seen_since.insert(language, since);
        }
        let mut numbers = Vec::new();
        for overdue in overdue {
            match overdue {
                Overdue::Document(number) => numbers.push(number),
                Overdue::Residence(id) => self.change(Change::NoResidence(id))?,
            }
        }
        for document in self.state.documents(language, &numbers)?.into_iter().flatten() {
            self.remove(&document)?;
            self.stats.expired += 1;
        }
        Ok(())
    }

    /// Removes the article from every other language that holds it, since an article has one language.
    /// Returns the topics that may still hold a record of it, with the next revision.
    pub(crate) fn leave_other_languages(
        &mut self,
        article: &Prepared,
    ) -> Result<Vec<(OutputTopic, u32)>, StoreError> {
        let mut previous = Vec::new();
        for other in self.state.languages_of(&article.id)? {
            if other == article.language {
                continue;
            }
            if let Some(held) = self.held(other, &article.id)? {
                let live = self.is_live(&held);
                self.remove(&held)?;
                if live {
                    // Identity is language plus id, so revisions restart at zero.
                    previous.push((held.outlet, 0));
                } else {
                    self.stats.expired += 1;
                }
            }
        }
        Ok(previous)
    }

    /// The stored document of an id, expired or not.
    pub(crate) fn held(&self, language: Lang, id: &ArticleId) -> Result<Option<Document>, StoreError> {
        match self.state.number_of(language, id)? {
            Some(number) => self.state.document(language, number),
            None => Ok(None),
        }
    }

    pub(crate) fn remove(&mut self, document: &Document) -> Result<(), StoreError> {
        self.edit_cluster(document.language, document.cluster)?;
        self.change(Change::NoDocument(document.language, document.id.clone()))?;
        self.leave_cluster(document)
    }
}
