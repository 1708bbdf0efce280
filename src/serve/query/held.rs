//! The partitions that an answer covers, and how many there are in total. Together they distinguish "no such
//! article" from "not every partition was searched"; peers exchange them in two response headers.

use std::collections::BTreeSet;

use axum::http::{HeaderMap, HeaderValue};

/// Lists the partitions that an answer to a peer covers.
const PARTITIONS: &str = "samestory-partitions";
/// The total number of partitions.
const OF: &str = "samestory-partition-count";
/// The largest partition number accepted from a peer.
const MAX_PARTITIONS: i32 = 100_000;

/// The partitions that were searched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HeldPartitions {
    pub(super) partitions: BTreeSet<i32>,
    /// The total number of partitions, once it is known.
    pub(super) of: Option<i32>,
}

impl HeldPartitions {
    /// Adds the partitions of another answer.
    pub(super) fn add(&mut self, other: &HeldPartitions) {
        self.partitions.extend(&other.partitions);
        self.of = self.of.max(other.of);
    }

    /// The partitions that were not searched; none while the total is unknown.
    pub(super) fn absent(&self) -> Option<Vec<i32>> {
        self.of.map(|of| (0..of).filter(|partition| !self.partitions.contains(partition)).collect())
    }

    /// True if this partition was searched; for `None`, if all of them were.
    pub(super) fn covers(&self, partition: Option<i32>) -> bool {
        match partition {
            Some(partition) => self.partitions.contains(&partition),
            None => self.absent().is_some_and(|absent| absent.is_empty()),
        }
    }

    pub(super) fn write(&self, headers: &mut HeaderMap) {
        let partitions: Vec<String> = self.partitions.iter().map(i32::to_string).collect();
        let text = |text: String| HeaderValue::from_str(&text).ok();
        if let Some(partitions) = text(partitions.join(",")) {
            headers.insert(PARTITIONS, partitions);
        }
        if let Some(of) = self.of.and_then(|of| text(of.to_string())) {
            headers.insert(OF, of);
        }
    }

    /// Reads the headers of a peer's response. A peer without them counts as holding nothing.
    pub(super) fn read(headers: &HeaderMap) -> HeldPartitions {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let number = |text: &str| text.parse().ok().filter(|number| (0..=MAX_PARTITIONS).contains(number));
        HeldPartitions {
            partitions: text(PARTITIONS).unwrap_or_default().split(',').filter_map(number).collect(),
            of: text(OF).and_then(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(partitions: &[i32], of: Option<i32>) -> HeldPartitions {
        HeldPartitions { partitions: partitions.iter().copied().collect(), of }
    }

    #[test]
    fn headers_round_trip() {
        for held in [held(&[], None), held(&[], Some(2)), held(&[0, 3, 11], Some(12))] {
            let mut headers = HeaderMap::new();
            held.write(&mut headers);
            assert_eq!(HeldPartitions::read(&headers), held);
        }
        let mut malformed = HeaderMap::new();
        malformed.insert(PARTITIONS, HeaderValue::from_static("1,-2,x,,99999999999"));
        malformed.insert(OF, HeaderValue::from_static("-1"));
        assert_eq!(HeldPartitions::read(&malformed), held(&[1], None));
    }

    #[test]
    fn an_answer_covers_everything_only_with_all_partitions() {
        let mut some = held(&[0, 2], Some(3));
        assert_eq!(some.absent(), Some(vec![1]));
        assert!(!some.covers(None) && some.covers(Some(2)) && !some.covers(Some(1)));
        some.add(&held(&[1], None));
        assert!(some.covers(None));
        // While the total is unknown, no set of partitions is complete.
        assert!(!held(&[0], None).covers(None));
    }
}
