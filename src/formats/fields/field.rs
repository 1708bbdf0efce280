//! The fields of an article, and the names that crawlers usually give them. [`super::Fields`] looks a field up under
//! these names unless the settings name a path for it.

use std::fmt;

samestory_engine::listed! {
/// A field of an article that can be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// The article's id. Required.
    Id,
    /// The text. Required, but it may be empty.
    Body,
    /// The headline.
    Title,
    /// The address of the article.
    Url,
    /// The site of the article.
    Host,
    /// The declared language.
    Language,
    /// The declared content type.
    ContentType,
    /// When it was published.
    PublishedAt,
    /// When it was fetched: its event time.
    FetchedAt,
    /// True if the article is deleted.
    Deleted,
}
}

impl Field {
    /// Our name for the field, and the names that crawlers usually give it, in order of preference. A URL serves as the
    /// id if there is nothing better.
    pub(super) const fn names(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Field::Id => (
                "id",
                &["id", "_id", "article_id", "doc_id", "document_id", "uuid", "guid", "key", "url", "link"],
            ),
            Field::Body => (
                "body",
                &[
                    "body",
                    "text",
                    "content",
                    "article_body",
                    "body_text",
                    "article_text",
                    "full_text",
                    "main_text",
                    "article",
                    "story",
                    "html",
                    "body_html",
                    "paragraphs",
                    "content.text",
                    "content.body",
                    "article.body",
                    "article.text",
                    "content.html",
                ],
            ),
            Field::Title => {
                ("title", &["title", "headline", "head_line", "name", "subject", "article.title"])
            }
            Field::Url => ("url", &["url", "link", "canonical_url", "article_url", "permalink", "uri"]),
            Field::Host => {
                ("host", &["host", "hostname", "domain", "site", "source", "publisher", "source.name"])
            }
            Field::Language => {
                ("language", &["language", "lang", "locale", "language_code", "lang_code", "in_language"])
            }
            Field::ContentType => ("content_type", &["content_type", "mime_type", "mime", "media_type"]),
            Field::PublishedAt => (
                "published_at",
                &[
                    "published_at",
                    "published",
                    "pub_date",
                    "date_published",
                    "publish_date",
                    "published_date",
                    "date",
                ],
            ),
            Field::FetchedAt => (
                "fetched_at",
                &[
                    "fetched_at",
                    "crawled_at",
                    "fetched",
                    "crawled",
                    "crawl_date",
                    "fetch_time",
                    "crawl_time",
                    "retrieved_at",
                ],
            ),
            Field::Deleted => ("deleted", &["deleted", "_deleted", "is_deleted"]),
        }
    }

    /// Our name for the field.
    pub const fn name(self) -> &'static str {
        self.names().0
    }

    /// The field that we call by this name.
    pub fn from_name(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.name() == name)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// True if two names differ only in case and in `_`, `-` or spaces between words.
pub fn spelled_alike(a: &str, b: &str) -> bool {
    fn letters(name: &str) -> impl Iterator<Item = u8> {
        name.bytes().filter(|byte| !b"_- ".contains(byte)).map(|byte| byte.to_ascii_lowercase())
    }
    letters(a).eq(letters(b))
}
