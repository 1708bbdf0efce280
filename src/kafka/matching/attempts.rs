//! Retries of a failing store: how long the pauses are, and when the process gives up. `tasks` reports failures and
//! flushes. A successful flush resets the count, so only failures in a row end the process.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::kafka::faults::{Constant, FAULTS, Faults};

/// Most failures in a row before the process exits. With the pauses between them that is a little more than a minute.
const MAX_FAILURES: u32 = 12;
/// The first pause; each following pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Consecutive failures, by partition.
#[derive(Debug, Default)]
pub(crate) struct Attempts(BTreeMap<i32, u32>);

impl Attempts {
    /// Counts a failure. Returns the pause before the next attempt, or `None` after too many failures.
    pub(crate) fn failed(&mut self, partition: i32) -> Option<Duration> {
        let times = self.0.entry(partition).or_default();
        *times += 1;
        let most = FAULTS.value(Constant::StoreAttempts, MAX_FAILURES.into());
        let pause = FIRST_PAUSE.saturating_mul(1 << (*times - 1).min(16)).min(MAX_PAUSE);
        (u64::from(*times) <= most).then_some(pause)
    }

    /// Number of consecutive failures.
    pub(crate) fn times(&self, partition: i32) -> u32 {
        self.0.get(&partition).copied().unwrap_or(0)
    }

    /// Resets the count: a flush succeeded, or the partition was revoked.
    pub(crate) fn forget(&mut self, partition: i32) {
        self.0.remove(&partition);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // One failed disk read, or one moment without a free file handle, stopped a partition until the pod was restarted.
    #[test]
    fn a_failing_store_is_retried_for_about_a_minute_and_then_given_up() {
        let mut attempts = Attempts::default();
        let pauses: Vec<Duration> = std::iter::from_fn(|| attempts.failed(0)).collect();
        assert_eq!(pauses[..3], [200, 400, 800].map(Duration::from_millis));
        assert!(pauses.iter().all(|&pause| pause <= MAX_PAUSE));
        let all: Duration = pauses.iter().sum();
        assert!((60..100).contains(&all.as_secs()), "{all:?}");
        assert_eq!(attempts.failed(0), None, "it stays given up");
        assert_eq!(attempts.failed(1), Some(FIRST_PAUSE), "each partition has its own count");
        attempts.forget(0);
        assert_eq!(attempts.failed(0), Some(FIRST_PAUSE));
    }
}
