//! The questions of the query API, and how they are forwarded to a peer.

use axum::body::Bytes;
use axum::http::Method;
use percent_encoding::{NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

use super::SimilarParams;

/// A question to the state.
#[derive(Clone, Debug)]
pub(super) enum Question {
    /// The verdict and metadata of an article.
    Article(String),
    /// The fingerprint of an article.
    Fingerprint(String),
    /// The articles similar to an article.
    Similar(String, SimilarParams),
    /// A cluster and its members.
    Cluster(String),
    /// The verdict that an article, sent as JSON, would get.
    Check(Bytes),
}

impl Question {
    /// The HTTP request that asks a peer this question.
    pub(super) fn request(&self) -> (Method, String, Bytes) {
        let get = |path: String| (Method::GET, path, Bytes::new());
        match self {
            Question::Article(id) => get(format!("/api/v1/articles/{}", encoded(id))),
            Question::Fingerprint(id) => get(format!("/api/v1/articles/{}/fingerprint", encoded(id))),
            Question::Similar(id, SimilarParams { limit, min_score }) => {
                get(format!("/api/v1/articles/{}/similar?limit={limit}&min_score={min_score}", encoded(id)))
            }
            Question::Cluster(id) => get(format!("/api/v1/clusters/{}", encoded(id))),
            Question::Check(body) => (Method::POST, "/api/v1/check".into(), body.clone()),
        }
    }

    /// How many similar articles are wanted at most.
    pub(super) fn limit(&self) -> Option<usize> {
        match self {
            Question::Similar(_, params) => Some(params.limit),
            _ => None,
        }
    }
}

/// Percent-encodes an id, so that it stays one segment of the path whatever it contains.
fn encoded(id: &str) -> PercentEncode<'_> {
    utf8_percent_encode(id, NON_ALPHANUMERIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_stays_one_segment_of_the_path() {
        assert_eq!(encoded("a/../ü?#%").to_string(), "a%2F%2E%2E%2F%C3%BC%3F%23%25");
    }
}
