//! How often a store that fails is opened again, and when that ends.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::kafka::turn::faults;

/// Failures in a row after which the process exits. With the pauses between them that is a little more than a minute.
const MOST: u32 = 12;
/// The first pause; each is twice as long as the one before.
const FIRST: Duration = Duration::from_millis(200);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(10);

/// Failures in a row, by partition.
#[derive(Debug, Default)]
pub(crate) struct Attempts(BTreeMap<i32, u32>);

impl Attempts {
    /// Takes note of a failure. How long to wait before the next attempt; nothing after too many.
    pub(crate) fn failed(&mut self, partition: i32) -> Option<Duration> {
        let times = self.0.entry(partition).or_default();
        *times += 1;
        let most = faults::number("SAMESTORY_STORE_ATTEMPTS", MOST.into());
        let pause = FIRST.saturating_mul(1 << (*times - 1).min(16)).min(LONGEST);
        (u64::from(*times) <= most).then_some(pause)
    }

    /// How often it has failed in a row.
    pub(crate) fn times(&self, partition: i32) -> u32 {
        self.0.get(&partition).copied().unwrap_or(0)
    }

    /// What was written is on the disk, or the partition is not ours any more.
    pub(crate) fn forget(&mut self, partition: i32) {
        self.0.remove(&partition);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // One failed read of a disk, or one moment without a file handle, stopped a partition until somebody restarted the pod.
    #[test]
    fn a_store_that_fails_is_tried_for_about_a_minute_and_then_given_up() {
        let mut attempts = Attempts::default();
        let pauses: Vec<Duration> = std::iter::from_fn(|| attempts.failed(0)).collect();
        assert_eq!(pauses[..3], [200, 400, 800].map(Duration::from_millis));
        assert!(pauses.iter().all(|&pause| pause <= LONGEST));
        let all: Duration = pauses.iter().sum();
        assert!((60..100).contains(&all.as_secs()), "{all:?}");
        assert_eq!(attempts.failed(0), None, "and it stays given up");
        assert_eq!(attempts.failed(1), Some(FIRST), "each partition for itself");
        attempts.forget(0);
        assert_eq!(attempts.failed(0), Some(FIRST));
    }
}
