//! An article to insert, built step by step.

use crate::error::Error;
use crate::model::{ArticleId, EventTime, RawArticle};

/// An article: its id, its text and what else is known of it. Only the text is compared; the title is evidence beside it.
///
/// ```
/// use samestory_engine::Article;
/// let article = Article::new("a1", "The ferry runs again from Monday.").title("Ferry runs again").host("news.example");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Article {
    id: String,
    body: String,
    title: Option<String>,
    url: Option<String>,
    host: Option<String>,
    language: Option<String>,
    content_type: Option<String>,
    published_at: Option<EventTime>,
    fetched_at: Option<EventTime>,
}

impl Article {
    /// An article with an id of 1 to 512 bytes and a body: plain text, HTML or Markdown.
    pub fn new(id: impl Into<String>, body: impl Into<String>) -> Article {
        Article {
            id: id.into(),
            body: body.into(),
            title: None,
            url: None,
            host: None,
            language: None,
            content_type: None,
            published_at: None,
            fetched_at: None,
        }
    }

    /// Its headline.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Article {
        Article { title: Some(title.into()), ..self }
    }

    /// Its address. The host is taken from it unless one is given.
    #[must_use]
    pub fn url(self, url: impl Into<String>) -> Article {
        Article { url: Some(url.into()), ..self }
    }

    /// The site that published it.
    #[must_use]
    pub fn host(self, host: impl Into<String>) -> Article {
        Article { host: Some(host.into()), ..self }
    }

    /// The language that its source declares, as a BCP 47 tag. It is reported; the text alone decides where it is compared.
    #[must_use]
    pub fn language(self, tag: impl Into<String>) -> Article {
        Article { language: Some(tag.into()), ..self }
    }

    /// `text/html`, `text/markdown` or `text/plain`. Without it, HTML is recognised.
    #[must_use]
    pub fn content_type(self, content_type: impl Into<String>) -> Article {
        Article { content_type: Some(content_type.into()), ..self }
    }

    /// When it was published, in milliseconds since 1970. It ranks canonicals under some policies.
    #[must_use]
    pub fn published_at(self, millis: i64) -> Article {
        Article { published_at: Some(EventTime::from_millis(millis)), ..self }
    }

    /// When it was fetched, in milliseconds since 1970: its event time, which retention counts from.
    #[must_use]
    pub fn fetched_at(self, millis: i64) -> Article {
        Article { fetched_at: Some(EventTime::from_millis(millis)), ..self }
    }

    pub(crate) fn into_raw(self) -> Result<RawArticle, Error> {
        Ok(RawArticle {
            id: ArticleId::new(&self.id).map_err(Error::Id)?,
            body: self.body,
            title: self.title,
            url: self.url,
            host: self.host,
            language: self.language,
            content_type: self.content_type,
            published_at: self.published_at,
            fetched_at: self.fetched_at,
        })
    }
}
