//! Updates without a text: they may change the metadata of an article, for example its title, but not its
//! text.
//!
//! [`super::upsert`] asks which text to judge by. By default the known text is kept; `input.empty_update =
//! refuse` sends such updates to the dead-letter topic. Either way, an update without a text never erases a
//! fingerprint.

use std::sync::Arc;

use crate::index::{Change, Document, StoreError, View};
use crate::model::{DeadLetter, DeadLetterReason};
use crate::model::{Lang, Position};

use super::planner::Planner;
use super::stream_time as times;
use crate::engine::prepare::Prepared;
use crate::engine::settings::EmptyUpdate;

/// The text that an article is judged by.
pub(crate) enum TextSource {
    /// The article's own text, which may be empty.
    Own,
    /// The text of its stored document in this language.
    Kept(Lang),
    /// There is no text, or the settings refuse the update.
    Missing(DeadLetter),
}

impl<V: View> Planner<'_, V> {
    /// Which text an article is judged by. `refusal` is the dead letter of an article without a body.
    pub(crate) fn text_source(
        &self,
        position: &Position,
        article: &Prepared,
        refusal: Option<&DeadLetter>,
    ) -> Result<TextSource, StoreError> {
        if article.has_text() {
            return Ok(TextSource::Own);
        }
        let mut known = None;
        for language in self.state.languages_of(&article.id)? {
            let held = self.held(language, &article.id)?;
            let has_text = held.is_some_and(|held| self.is_live(&held) && held.fingerprint.tokens > 0);
            known = known.or(has_text.then_some(language));
        }
        Ok(match (known, refusal) {
            (None, None) => TextSource::Own,
            (None, Some(refusal)) => TextSource::Missing(refusal.clone()),
            (Some(language), _) if self.engine.settings().empty_update == EmptyUpdate::Keep => {
                TextSource::Kept(language)
            }
            (Some(_), Some(refusal)) => TextSource::Missing(refusal.clone()),
            (Some(_), None) => TextSource::Missing(DeadLetter {
                position: position.clone(),
                reason: DeadLetterReason::NoBody,
                message: "an update without a text (input.empty_update = refuse)".to_owned(),
            }),
        })
    }

    /// Applies the metadata of an update and returns the updated document. The fingerprint and the raw
    /// position stay those of the version that brought the text.
    pub(crate) fn update_metadata(
        &mut self,
        held: Document,
        article: &Prepared,
    ) -> Result<Document, StoreError> {
        let (published_at, _) = times::published(article.published_at);
        let document = Document {
            title: article.title.clone().or_else(|| held.title.clone()),
            host: article.host.clone().or_else(|| held.host.clone()),
            url: article.url.clone().or_else(|| held.url.clone()),
            published_at: published_at.or(held.published_at),
            ..held.clone()
        };
        if document != held {
            self.edit_cluster(held.language, held.cluster)?;
            self.change(Change::Document(Arc::new(document.clone())))?;
            self.republish_cluster(held.language, held.cluster)?;
        }
        Ok(document)
    }
}
