//! How documents go: expired, or because the article has changed its language. What is deleted or moves to another partition
//! is in [`super::relocation`].

use crate::index::{Change, Document, OutputTopic, Overdue, StoreError, View};
use crate::model::{ArticleId, Lang};

use super::planner::Planner;
use crate::engine::prepare::Prepared;

/// Overdue documents and residences that each article removes, at most. One comes in for each article, so a backlog shrinks.
const OVERDUE: usize = 4;

impl<V: View> Planner<'_, V> {
    pub(crate) fn remove_overdue(&mut self, language: Lang) -> Result<(), StoreError> {
        let Some(horizon) = self.horizon(language) else { return Ok(()) };
        // Looking takes longer than judging: it is known how long there is nothing to find.
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

    /// An article has one language. Where another held it, it leaves, and where it stood it may have to be withdrawn.
    pub(crate) fn leave_other_languages(
        &mut self,
        article: &Prepared,
    ) -> Result<Vec<(OutputTopic, u32)>, StoreError> {
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
    pub(crate) fn held(&self, language: Lang, id: &ArticleId) -> Result<Option<Document>, StoreError> {
        match self.state.number_of(language, id)? {
            Some(number) => self.state.document(language, number),
            None => Ok(None),
        }
    }

    pub(crate) fn remove(&mut self, document: &Document) -> Result<(), StoreError> {
        self.touch(document.language, document.cluster)?;
        self.change(Change::NoDocument(document.language, document.id.clone()))?;
        self.leave(document)
    }
}
