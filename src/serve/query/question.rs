//! The questions of the query API, how they are forwarded to a peer, and how the answers of several peers are
//! merged.

use std::cmp::Ordering;
use std::fmt::Write;

use axum::body::Bytes;
use axum::http::Method;
use serde_json::Value;

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

    /// Merges the answers of several processes. The result does not depend on their order.
    pub(super) fn merge(&self, answers: Vec<Value>) -> Option<Value> {
        match self {
            Question::Similar(_, params) => merge_rankings(answers, params.limit),
            Question::Check(_) => answers.into_iter().max_by(|a, b| {
                let duplicate = |value: &Value| value["verdict"] != "unique";
                let number = |value: &Value, key: &str| value[key].as_f64().unwrap_or(0.0);
                let by = |key| number(a, key).total_cmp(&number(b, key));
                duplicate(a)
                    .cmp(&duplicate(b))
                    .then(by("similarity"))
                    .then(by("candidates"))
                    .then(tie_break(a, b))
            }),
            // An id may exist in several languages: prefer the one seen last.
            Question::Article(_) | Question::Fingerprint(_) | Question::Cluster(_) => {
                let seen = |value: &Value| value["last_seen"].as_str().unwrap_or_default().to_owned();
                answers.into_iter().max_by(|a, b| seen(a).cmp(&seen(b)).then(tie_break(a, b)))
            }
        }
    }
}

/// An arbitrary but stable order to break ties.
fn tie_break(a: &Value, b: &Value) -> Ordering {
    a.to_string().cmp(&b.to_string())
}

fn merge_rankings(answers: Vec<Value>, limit: usize) -> Option<Value> {
    let mut answers = answers.into_iter();
    let mut merged = answers.next()?;
    let mut all: Vec<Value> = Vec::new();
    let rest = answers.map(|mut answer| answer["similar"].take());
    for mut ranking in [merged["similar"].take()].into_iter().chain(rest) {
        all.append(ranking.as_array_mut().unwrap_or(&mut Vec::new()));
    }
    let score = |one: &Value| one["similarity_score"].as_f64().unwrap_or(0.0);
    all.sort_by(|a, b| score(b).total_cmp(&score(a)).then_with(|| tie_break(&a["id"], &b["id"])));
    let mut named = std::collections::BTreeSet::new();
    all.retain(|one| named.insert(one["id"].to_string()));
    all.truncate(limit);
    merged["similar"] = all.into();
    Some(merged)
}

/// Percent-encodes an id, so that it stays one segment of the path whatever it contains.
fn encoded(id: &str) -> String {
    let mut path = String::with_capacity(id.len() * 3);
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() {
            path.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _written = write!(path, "%{byte:02X}");
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn one(id: &str, score: f64) -> Value {
        json!({"id": id, "similarity_score": score})
    }

    #[test]
    fn rankings_are_merged_without_repeating_an_article() {
        let question = Question::Similar("x".into(), SimilarParams { limit: 3, min_score: 0.0 });
        let here = json!({"similar": [one("a", 0.9), one("b", 0.2)], "unanswered": []});
        let there = json!({"similar": [one("c", 0.5), one("a", 0.4), one("d", 0.1)], "unanswered": []});
        let expected = json!([one("a", 0.9), one("c", 0.5), one("b", 0.2)]);
        assert_eq!(question.merge(vec![here.clone(), there.clone()]).unwrap()["similar"], expected);
        assert_eq!(question.merge(vec![there, here]).unwrap()["similar"], expected);
        assert_eq!(question.merge(Vec::new()), None);
    }

    #[test]
    fn the_most_similar_verdict_wins_and_a_duplicate_wins_over_unique() {
        let question = Question::Check(Bytes::new());
        let stranger = json!({"verdict": "unique", "similarity": 0.0, "candidates": 0});
        let close = json!({"verdict": "unique", "similarity": 0.4, "candidates": 7});
        let copy = json!({"verdict": "near-duplicate", "similarity": 0.3, "candidates": 1});
        assert_eq!(question.merge(vec![close.clone(), stranger.clone()]).unwrap(), close);
        assert_eq!(question.merge(vec![stranger, copy.clone(), close]).unwrap(), copy);
    }

    #[test]
    fn an_id_stays_one_segment_of_the_path() {
        assert_eq!(encoded("a/../ü?#%"), "a%2F%2E%2E%2F%C3%BC%3F%23%25");
    }
}
