//! Which partitions somebody holds, of how many: what tells "there is no such article" from "nobody knows".

use std::collections::BTreeSet;

use axum::http::{HeaderMap, HeaderValue};

/// Names the partitions that an answer to a peer was made from.
const PARTITIONS: &str = "samestory-partitions";
/// How many there are anywhere.
const OF: &str = "samestory-partition-count";
/// More than this nobody has.
const MOST: i32 = 100_000;

/// Partitions that were asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) partitions: BTreeSet<i32>,
    /// How many there are anywhere, once that is known.
    pub(super) of: Option<i32>,
}

impl Held {
    /// What these and those hold together.
    pub(super) fn add(&mut self, other: &Held) {
        self.partitions.extend(&other.partitions);
        self.of = self.of.max(other.of);
    }

    /// The partitions that were not asked; nothing can be said before it is known how many there are.
    pub(super) fn absent(&self) -> Option<Vec<i32>> {
        self.of.map(|of| (0..of).filter(|partition| !self.partitions.contains(partition)).collect())
    }

    /// Whether this partition was asked; where it does not matter which, all of them.
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

    /// Who does not say what it holds is taken to hold nothing.
    pub(super) fn read(headers: &HeaderMap) -> Held {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let number = |text: &str| text.parse().ok().filter(|number| (0..=MOST).contains(number));
        Held {
            partitions: text(PARTITIONS).unwrap_or_default().split(',').filter_map(number).collect(),
            of: text(OF).and_then(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(partitions: &[i32], of: Option<i32>) -> Held {
        Held { partitions: partitions.iter().copied().collect(), of }
    }

    #[test]
    fn what_is_held_reads_as_it_was_written() {
        for held in [held(&[], None), held(&[], Some(2)), held(&[0, 3, 11], Some(12))] {
            let mut headers = HeaderMap::new();
            held.write(&mut headers);
            assert_eq!(Held::read(&headers), held);
        }
        let mut strange = HeaderMap::new();
        strange.insert(PARTITIONS, HeaderValue::from_static("1,-2,x,,99999999999"));
        strange.insert(OF, HeaderValue::from_static("-1"));
        assert_eq!(Held::read(&strange), held(&[1], None));
    }

    #[test]
    fn only_all_partitions_are_all() {
        let mut some = held(&[0, 2], Some(3));
        assert_eq!(some.absent(), Some(vec![1]));
        assert!(!some.covers(None) && some.covers(Some(2)) && !some.covers(Some(1)));
        some.add(&held(&[1], None));
        assert!(some.covers(None));
        // Before the broker has said how many there are, nothing is everything.
        assert!(!held(&[0], None).covers(None));
    }
}
