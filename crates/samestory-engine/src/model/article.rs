//! An article as its crawler sent it.

use serde::Serialize;

use super::{ArticleId, EventTime};

/// An article as its crawler sent it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Article {
    /// Its name.
    pub id: ArticleId,
    /// Its text, with whatever markup it has.
    pub body: String,
    /// For display.
    pub title: Option<String>,
    /// Where it was found.
    pub url: Option<String>,
    /// The site it was found on; told from the URL where it is not given.
    pub host: Option<String>,
    /// The language it claims, unchecked.
    pub language: Option<String>,
    /// The content type it claims, unchecked.
    pub content_type: Option<String>,
    /// Ranks canonicals.
    pub published_at: Option<EventTime>,
    /// Its event time.
    pub fetched_at: Option<EventTime>,
}

impl Article {
    /// The site it was found on: as given, or told from the URL. What is blank is not there.
    pub fn site(&self) -> Option<&str> {
        site(self.host.as_deref(), self.url.as_deref())
    }
}

/// The host as given, or that of a URL.
pub fn site<'a>(host: Option<&'a str>, url: Option<&'a str>) -> Option<&'a str> {
    let there = |text: &&str| !text.trim().is_empty();
    host.filter(there).or_else(|| url.and_then(host_of).filter(there))
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
    fn a_host_is_told_from_the_url() {
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
