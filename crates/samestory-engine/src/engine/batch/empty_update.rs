//! An update without a text. It says something of an article, its title perhaps, and nothing of the text: the text that is known
//! stays, unless the settings refuse such updates. An update like that never erases a fingerprint.

use std::sync::Arc;

use crate::index::{Change, Document, StoreError, View};
use crate::model::{DeadLetter, DeadLetterReason};
use crate::model::{Lang, Position};

use super::planner::Planner;
use super::stream_time as times;
use crate::engine::prepare::Prepared;
use crate::engine::settings::EmptyUpdate;

/// The text that an article is judged by.
pub(crate) enum Text {
    /// What came with it; that may be nothing.
    Own,
    /// The text that its document of this language has.
    Kept(Lang),
    /// There is none.
    Missing(DeadLetter),
}

impl<V: View> Planner<'_, V> {
    /// Which text an article is judged by. The refusal is that of an article without a body.
    pub(crate) fn text_kept(
        &self,
        position: &Position,
        article: &Prepared,
        refusal: Option<&DeadLetter>,
    ) -> Result<Text, StoreError> {
        if article.has_text() {
            return Ok(Text::Own);
        }
        let mut known = None;
        for language in self.state.languages_of(&article.id)? {
            let held = self.held(language, &article.id)?;
            let has_text = held.is_some_and(|held| self.is_live(&held) && held.fingerprint.tokens > 0);
            known = known.or(has_text.then_some(language));
        }
        Ok(match (known, refusal) {
            (None, None) => Text::Own,
            (None, Some(refusal)) => Text::Missing(refusal.clone()),
            (Some(language), _) if self.engine.settings().empty_update == EmptyUpdate::Keep => {
                Text::Kept(language)
            }
            (Some(_), Some(refusal)) => Text::Missing(refusal.clone()),
            (Some(_), None) => Text::Missing(DeadLetter {
                position: position.clone(),
                reason: DeadLetterReason::NoBody,
                message: "an update without a text (input.empty_update = refuse)".to_owned(),
            }),
        })
    }

    /// Takes over what an update says beside the text, and gives the document as it is then. The text is still read where it was.
    pub(crate) fn describe(&mut self, held: Document, article: &Prepared) -> Result<Document, StoreError> {
        let (published_at, _) = times::published(article.published_at);
        let document = Document {
            title: article.title.clone().or_else(|| held.title.clone()),
            host: article.host.clone().or_else(|| held.host.clone()),
            url: article.url.clone().or_else(|| held.url.clone()),
            published_at: published_at.or(held.published_at),
            ..held.clone()
        };
        if document != held {
            self.touch(held.language, held.cluster)?;
            self.change(Change::Document(Arc::new(document.clone())))?;
            self.retell(held.language, held.cluster)?;
        }
        Ok(document)
    }
}
