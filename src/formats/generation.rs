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
        topic: &str,
        next: BTreeMap<i32, i64>,
        repeats: u64,
        ended_at: EventTime,
    ) -> GenerationEnd {
        GenerationEnd {
            layout: LAYOUT,
            app: app.to_owned(),
            generation,
            topic: topic.to_owned(),
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

    /// The first offset of a raw partition that the generation has not published: 0 for a partition added later.
    pub fn next(&self, partition: i32) -> i64 {
        self.next.get(&partition).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_readable_json_and_other_layouts_are_refused() {
        let next = BTreeMap::from([(0, 90), (11, 7)]);
        let end = GenerationEnd::new(("news", 1), "articles.raw", next, 3, EventTime::from_millis(0));
        let value = String::from_utf8(end.encode()).unwrap();
        assert_eq!(
            value,
            r#"{"layout":1,"app":"news","generation":1,"topic":"articles.raw","next":{"0":90,"11":7},"repeats":3,"ended_at":"1970-01-01T00:00:00Z"}"#
        );
        assert_eq!(end.key(), "news/1");
        assert_eq!(GenerationEnd::decode(value.as_bytes()).unwrap(), end);
        assert_eq!((end.next(11), end.next(5)), (7, 0));
        let newer = value.replace(r#""layout":1"#, r#""layout":2"#);
        assert!(GenerationEnd::decode(newer.as_bytes()).unwrap_err().contains("layout 2"));
        assert!(GenerationEnd::decode(b"ended").is_err());
    }
}
