//! What comes in and what goes out, apart from how it is written in bytes.

#[cfg(feature = "avro")]
pub mod avro;
pub mod fields;
mod generation;
mod isolate;
pub mod json;
mod owner;
#[cfg(feature = "registry")]
pub mod registry;
pub mod schemas;
pub mod time;

pub use generation::GenerationEnd;
pub use isolate::isolate;
#[cfg(feature = "faults")]
pub use isolate::{PANIC_MARKER, leave_unguarded};
pub use owner::Owner;

use fields::DecodeFailure;

use samestory_engine::model::{Article, ArticleId};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An article was fetched, for the first time or again.
    Article(Box<Article>),
    /// An article without a body: an update of one whose text is known, or else refused for this.
    Bodiless(Box<Article>, DecodeFailure),
    /// An article is to be forgotten, in whatever language it is held.
    Delete(ArticleId),
}

impl Event {
    /// The article that it is about.
    pub fn id(&self) -> &ArticleId {
        match self {
            Event::Article(article) | Event::Bodiless(article, _) => &article.id,
            Event::Delete(id) => id,
        }
    }
}
