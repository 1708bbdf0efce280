//! Retries of a failing store. `tasks` reports failures and flushes; `[retry]` says how long the pauses are and when the process
//! gives up. A successful flush resets the count, so only failures in a row end the process.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::config::Retry;

/// Consecutive failures, by partition.
#[derive(Debug)]
pub(crate) struct Attempts {
    retry: Retry,
    failures: BTreeMap<i32, u32>,
}

impl Attempts {
    pub(crate) fn new(retry: Retry) -> Attempts {
        Attempts { retry, failures: BTreeMap::new() }
    }

    /// Counts a failure. Returns the pause before the next attempt, or `None` after too many failures.
    pub(crate) fn failed(&mut self, partition: i32) -> Option<Duration> {
        let failures = self.failures.entry(partition).or_default();
        *failures += 1;
        self.retry.after_store_failure(*failures)
    }

    /// Number of consecutive failures.
    pub(crate) fn times(&self, partition: i32) -> u32 {
        self.failures.get(&partition).copied().unwrap_or(0)
    }

    /// Resets the count: a flush succeeded, or the partition was revoked.
    pub(crate) fn forget(&mut self, partition: i32) {
        self.failures.remove(&partition);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // One failed disk read, or one moment without a free file handle, stopped a partition until the pod was restarted.
    #[test]
    fn a_failing_store_is_retried_for_about_a_minute_and_then_given_up() {
        let mut attempts = Attempts::new(Retry::default());
        let pauses: Vec<Duration> = std::iter::from_fn(|| attempts.failed(0)).collect();
        assert_eq!(pauses[..3], [200, 400, 800].map(Duration::from_millis));
        let all: Duration = pauses.iter().sum();
        assert!((60..100).contains(&all.as_secs()), "{all:?}");
        assert_eq!(attempts.failed(0), None, "it stays given up");
        assert_eq!(attempts.failed(1), Some(pauses[0]), "each partition has its own count");
        attempts.forget(0);
        assert_eq!(attempts.failed(0), Some(pauses[0]));
    }
}
