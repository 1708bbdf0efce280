//! An event: one published verdict, as its headers tell it. Every output format has the same headers, so nothing has to be
//! decoded; a title is added where the value is JSON.

use serde::Serialize;
use serde_json::Value;

use crate::config::WebhookEvent;

/// The longest title and URL that are passed on, in characters.
const LONGEST: usize = 500;

/// One published verdict or tombstone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerdictEvent {
    /// `topic/partition/offset`: the same whenever the event is sent again, so that a receiver can ignore repetitions.
    pub id: String,
    /// `verdict` or `retracted`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The article's id.
    pub article_id: String,
    /// `unique`, `near-duplicate` or `exact-duplicate`; absent for a retraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// How the texts match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_type: Option<String>,
    /// The best match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<String>,
    /// The cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The article that represents the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canonical_id: Option<String>,
    /// Estimated similarity, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
    /// Calibrated probability that an editor would agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Language of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// How often the article's content has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Flags of the verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Headline, if the value is JSON and has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Address, if the value is JSON and has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A record of an output topic.
#[derive(Clone, Copy, Debug)]
pub struct Published<'a> {
    /// The topic, partition and offset.
    pub position: (&'a str, i32, i64),
    /// The key: the article's id.
    pub key: &'a [u8],
    /// The headers.
    pub headers: &'a [(String, Option<Vec<u8>>)],
    /// The value; `None` is a tombstone.
    pub value: Option<&'a [u8]>,
}

impl Published<'_> {
    /// The event that this record is, if it is one of `wanted`.
    pub fn event(&self, wanted: &[WebhookEvent]) -> Option<VerdictEvent> {
        let wants = |event| wanted.contains(&event);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let header = |name: &str| {
            let found = self.headers.iter().find(|(key, _)| key.strip_prefix("samestory-") == Some(name));
            found.and_then(|(_, value)| value.as_deref()).map(text).filter(|value| !value.is_empty())
        };
        let flags: Vec<String> = header("flags")
            .map(|flags| flags.split(',').map(|flag| flag.trim().to_owned()).collect())
            .unwrap_or_default();
        let verdict = header("verdict");
        let is_wanted = match (self.value, verdict.as_deref()) {
            (None, _) => wants(WebhookEvent::Retracted),
            (Some(_), Some(verdict)) => {
                let verdicts =
                    [WebhookEvent::Unique, WebhookEvent::NearDuplicate, WebhookEvent::ExactDuplicate];
                verdicts.into_iter().any(|kind| kind.as_str() == verdict && wants(kind))
                    || (wants(WebhookEvent::Review) && flags.iter().any(|flag| flag == "review"))
            }
            // Not a record of ours.
            (Some(_), None) => false,
        };
        if !is_wanted {
            return None;
        }
        let number = |name| header(name).and_then(|value| value.parse().ok());
        let (topic, partition, offset) = self.position;
        let (title, url) = self.value.map_or((None, None), title_and_url);
        Some(VerdictEvent {
            id: format!("{topic}/{partition}/{offset}"),
            kind: if self.value.is_none() { "retracted" } else { "verdict" },
            article_id: text(self.key),
            verdict: verdict.filter(|_| self.value.is_some()),
            match_type: header("match-type"),
            duplicate_of: header("duplicate-of"),
            cluster_id: header("cluster"),
            canonical_id: header("canonical"),
            similarity: number("similarity"),
            confidence: number("confidence"),
            language: header("language"),
            revision: header("revision").and_then(|value| value.parse().ok()),
            flags,
            title,
            url,
        })
    }
}

/// Title and URL in a JSON envelope or a JSON article.
fn title_and_url(value: &[u8]) -> (Option<String>, Option<String>) {
    let Ok(value) = serde_json::from_slice::<Value>(value) else { return (None, None) };
    let article = value.get("article").unwrap_or(&value);
    let text = |name: &str| {
        let text = article.get(name)?.as_str()?.trim();
        Some(text.chars().take(LONGEST).collect::<String>()).filter(|text| !text.is_empty())
    };
    (text("title"), text("url"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> Vec<(String, Option<Vec<u8>>)> {
        pairs
            .iter()
            .map(|(name, value)| (format!("samestory-{name}"), Some(value.as_bytes().to_vec())))
            .collect()
    }

    fn event(pairs: &[(&str, &str)], value: Option<&[u8]>, wanted: &[WebhookEvent]) -> Option<VerdictEvent> {
        let headers = headers(pairs);
        Published { position: ("t", 2, 17), key: b"a1", headers: &headers, value }.event(wanted)
    }

    #[test]
    fn only_wanted_records_are_events() {
        use WebhookEvent::{ExactDuplicate, NearDuplicate, Retracted, Review, Unique};
        let near: &[_] = &[("verdict", "near-duplicate")];
        let flagged: &[_] = &[("verdict", "unique"), ("flags", "short-text,review")];
        let value = Some(&b"{}"[..]);
        assert!(event(near, value, &[NearDuplicate]).is_some());
        assert!(event(near, value, &[ExactDuplicate, Unique, Review, Retracted]).is_none());
        assert!(event(flagged, value, &[Review]).is_some());
        assert!(event(near, None, &[NearDuplicate]).is_none());
        assert_eq!(event(near, None, &[Retracted]).unwrap().kind, "retracted");
        assert!(event(&[], value, &[Unique, NearDuplicate, ExactDuplicate, Review, Retracted]).is_none());
    }

    #[test]
    fn an_event_says_what_the_headers_say() {
        let pairs = [
            ("verdict", "near-duplicate"),
            ("duplicate-of", "a0"),
            ("similarity", "0.83"),
            ("confidence", "high"),
            ("revision", "2"),
        ];
        let value = br#"{"verdict":"near-duplicate","article":{"title":" The bridge ","url":7}}"#;
        let event = event(&pairs, Some(value), &[WebhookEvent::NearDuplicate]).unwrap();
        assert_eq!((event.id.as_str(), event.article_id.as_str()), ("t/2/17", "a1"));
        assert_eq!((event.similarity, event.confidence, event.revision), (Some(0.83), None, Some(2)));
        assert_eq!((event.title.as_deref(), event.url), (Some("The bridge"), None));
        let written = serde_json::to_value(&event.duplicate_of).unwrap();
        assert_eq!(written, "a0");
    }

    #[test]
    fn values_of_any_bytes_are_passed_over() {
        for value in [&b"\x00\x00\x00\x00\x07avro"[..], b"", b"[1", b"\xff", b"[]"] {
            let event = event(&[("verdict", "unique")], Some(value), &[WebhookEvent::Unique]).unwrap();
            assert_eq!((event.title, event.url), (None, None));
        }
    }
}
