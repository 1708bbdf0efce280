//! Bytes ↔ events. [`json`] and `avro` parse records and write outputs, [`fields`] maps a crawler's field names to
//! ours, and `registry` fetches the schemas of Avro values. A record that cannot be decoded is a [`DecodeFailure`],
//! which becomes a dead letter; it never stops the program.

#[cfg(feature = "avro")]
pub mod avro;
pub mod fields;
mod generation;
mod isolate;
pub mod json;
mod notes;
mod owner;
#[cfg(feature = "registry")]
pub mod registry;
pub mod schemas;
pub mod time;

pub use generation::GenerationEnd;
pub use isolate::isolate;
#[cfg(feature = "faults")]
pub use isolate::{PANIC_MARKER, leave_unguarded};
pub use notes::{Pause, SettingsNote};
pub use owner::Owner;

use fields::DecodeFailure;

use samestory_engine::model::{ArticleId, RawArticle};

/// A decoded input record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A new article or a new version of one.
    Article(Box<RawArticle>),
    /// An article without a body field. It updates an article whose text is known; otherwise it is a dead letter with
    /// this failure.
    Bodiless(Box<RawArticle>, DecodeFailure),
    /// The article is deleted, whatever its language.
    Delete(ArticleId),
}

impl Event {
    /// The id of the article.
    pub fn id(&self) -> &ArticleId {
        match self {
            Event::Article(article) | Event::Bodiless(article, _) => &article.id,
            Event::Delete(id) => id,
        }
    }
}
