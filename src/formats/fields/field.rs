//! Our fields, and the names they usually have elsewhere.

use std::fmt;

samestory_engine::listed! {
/// What of an article can be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// Its name. Required.
    Id,
    /// Its text. Required; it may be empty.
    Body,
    /// Its headline.
    Title,
    /// Where it was found.
    Url,
    /// The site it was found on.
    Host,
    /// The language it claims.
    Language,
    /// The content type it claims.
    ContentType,
    /// When it was published.
    PublishedAt,
    /// When it was fetched: its event time.
    FetchedAt,
    /// Whether it is to be forgotten.
    Deleted,
}
}

impl Field {
    /// Our name for it, and the names it usually has, in order of preference.
    ///
    /// An address names an article as well as anything, where there is nothing better.
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

    /// Our name for it.
    pub const fn name(self) -> &'static str {
        self.names().0
    }

    /// The field of that name, in our words.
    pub fn from_name(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.name() == name)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whether two names differ only in case and in what joins their words.
pub fn spelled_alike(a: &str, b: &str) -> bool {
    fn letters(name: &str) -> impl Iterator<Item = u8> {
        name.bytes().filter(|byte| !b"_- ".contains(byte)).map(|byte| byte.to_ascii_lowercase())
    }
    letters(a).eq(letters(b))
}
