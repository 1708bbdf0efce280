//! The generation-end record on the topic `samestory.generations`: up to which offsets a generation has published. It
//! is JSON, so that an operator can read it with any Kafka tool. It is written once per generation and never changed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use samestory_engine::model::EventTime;

/// Layout of the value. Any other number is refused.
const LAYOUT: u32 = 1;

/// The final offsets of a generation, written when it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationEnd {
    layout: u32,
    /// The application, `stage.app`.
    pub app: String,
    /// The number of the generation, `stage.generation`.
    pub generation: u32,
    /// Name of the raw topic.
    pub topic: String,
    /// Its id: in another topic of that name the offsets mean nothing. Absent if the broker reported none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic_id: Option<String>,
    /// By raw partition, the first offset that the generation has not published.
    pub next: BTreeMap<i32, i64>,
    /// Upper bound of the records that the next generation publishes again, as the operator accepted.
    pub repeats: u64,
    /// When the generation ended, as ISO 8601. Informational.
    pub ended_at: String,
}

impl GenerationEnd {
    /// Creates the record that ends a generation.
    pub fn new(
        (app, generation): (&str, u32),
        (topic, topic_id): (&str, Option<String>),
        next: BTreeMap<i32, i64>,
        repeats: u64,
        ended_at: EventTime,
    ) -> GenerationEnd {
        GenerationEnd {
            layout: LAYOUT,
            app: app.to_owned(),
            generation,
            topic: topic.to_owned(),
            topic_id,
            next,
            repeats,
            ended_at: ended_at.to_string(),
        }
    }

    /// The record's key: `app/generation`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.app, self.generation)
    }

    /// Encodes the record's value.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes a record's value.
    ///
    /// # Errors
    /// The value is not JSON of this layout; the message says where.
    pub fn decode(value: &[u8]) -> Result<GenerationEnd, String> {
        let end: GenerationEnd = serde_json::from_slice(value).map_err(|error| error.to_string())?;
        match end.layout {
            LAYOUT => Ok(end),
            other => Err(format!("layout {other}; this version reads layout {LAYOUT}")),
        }
    }

    /// True if it is of another topic than the one with this id. An unknown id is not compared.
    pub fn is_of_another(&self, topic_id: Option<&str>) -> bool {
        self.topic_id.as_deref().zip(topic_id).is_some_and(|(then, now)| then != now)
    }

    /// The first offset of a raw partition that the generation has not published, in the topic that has this id. A partition
    /// that it did not know was added later, and a topic that it did not know was created later: all of it is left.
    pub fn next(&self, partition: i32, topic_id: Option<&str>) -> i64 {
        let next = self.next.get(&partition).filter(|_| !self.is_of_another(topic_id));
        next.copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The final offsets were bare numbers. After the raw topic had been deleted and created again, the next generation took the
    // first records of the new topic in silence: they were judged and never published.
    #[test]
    fn in_a_topic_that_was_created_again_nothing_is_published_yet() {
        let raw = ("articles.raw", Some("id-1".to_owned()));
        let next = BTreeMap::from([(0, 90)]);
        let end = GenerationEnd::new(("news", 1), raw, next, 0, EventTime::from_millis(0));
        assert_eq!((end.next(0, Some("id-1")), end.next(0, Some("id-2"))), (90, 0));
    }

    #[test]
    fn the_record_is_readable_json_and_other_layouts_are_refused() {
        let next = BTreeMap::from([(0, 90), (11, 7)]);
        let raw = ("articles.raw", Some("id-1".to_owned()));
        let end = GenerationEnd::new(("news", 1), raw, next, 3, EventTime::from_millis(0));
        let value = String::from_utf8(end.encode()).unwrap();
        assert_eq!(
            value,
            r#"{"layout":1,"app":"news","generation":1,"topic":"articles.raw","topic_id":"id-1","next":{"0":90,"11":7},"repeats":3,"ended_at":"1970-01-01T00:00:00Z"}"#
        );
        assert_eq!(end.key(), "news/1");
        assert_eq!(GenerationEnd::decode(value.as_bytes()).unwrap(), end);
        assert_eq!((end.next(11, Some("id-1")), end.next(5, Some("id-1"))), (7, 0));
        let before = GenerationEnd::decode(value.replace(r#""topic_id":"id-1","#, "").as_bytes()).unwrap();
        assert_eq!(
            (before.topic_id.clone(), before.next(11, Some("id-2")), end.next(11, None)),
            (None, 7, 7)
        );
        let newer = value.replace(r#""layout":1"#, r#""layout":2"#);
        assert!(GenerationEnd::decode(newer.as_bytes()).unwrap_err().contains("layout 2"));
        assert!(GenerationEnd::decode(b"ended").is_err());
    }
}
