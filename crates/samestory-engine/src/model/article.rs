//! An article as its crawler published it: the input of the engine. The formats decode records and lines into
//! it, and `prepare` reads it. Only the id is checked here; every other field is as untrusted as the crawl.

use serde::Serialize;

use super::{ArticleId, EventTime};

/// An article as its crawler published it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RawArticle {
    /// Identifies the article across its versions.
    pub id: ArticleId,
    /// The text, possibly with markup.
    pub body: String,
    /// Headline, for display and as evidence beside the text.
    pub title: Option<String>,
    /// Address it was fetched from.
    pub url: Option<String>,
    /// Site it was fetched from; derived from `url` if absent.
    pub host: Option<String>,
    /// Declared language, unchecked.
    pub language: Option<String>,
    /// Declared content type, unchecked.
    pub content_type: Option<String>,
    /// When the publisher says it appeared; ranks the members of a cluster.
    pub published_at: Option<EventTime>,
    /// When the crawler fetched it: the article's event time.
    pub fetched_at: Option<EventTime>,
}

impl RawArticle {
    /// The site it was fetched from: `host`, or the host in `url`. A blank value counts as absent.
    pub fn site(&self) -> Option<&str> {
        site(self.host.as_deref(), self.url.as_deref())
    }
}

/// `host`, or else the host in `url`. A blank value counts as absent.
pub fn site<'a>(host: Option<&'a str>, url: Option<&'a str>) -> Option<&'a str> {
    let is_present = |text: &&str| !text.trim().is_empty();
    host.filter(is_present).or_else(|| url.and_then(host_of).filter(is_present))
}

/// The host in a URL: after the scheme and the user, before the port and the path.
fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    // An IPv6 address has colons of its own, inside brackets.
    let end = match host.rfind(']') {
        Some(bracket) => bracket + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    Some(&host[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_derived_from_the_url() {
        for (url, host) in [
            ("https://news.example/a", Some("news.example")),
            ("http://user:secret@news.example:8080?x=/", Some("news.example")),
            ("https://[2001:db8::1]:443/", Some("[2001:db8::1]")),
            ("news.example/a", None),
            ("https:///a", None),
        ] {
            assert_eq!(site(None, Some(url)), host, "{url}");
            assert_eq!(site(Some(" "), Some(url)), host, "{url}");
            assert_eq!(site(Some("given.example"), Some(url)), Some("given.example"));
        }
    }
}
