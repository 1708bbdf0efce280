//! Settings of `[retry]`: how the stage repeats what has failed. Each kind of failure has a [`Backoff`], and those that may end
//! the worker or the process have a number of retries. The `after_*` functions decide; `kafka` carries out.

use std::time::Duration;

use super::check::duration;
use super::{ConfigError, RetrySettings, invalid};

/// The longest pause that is accepted: a worker that pauses must poll its group again within `max.poll.interval.ms`, which is
/// five minutes.
const LONGEST: Duration = Duration::from_secs(60);

/// Settings of `[retry]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// While no broker answers, or the login fails. Forever.
    pub broker: Backoff,
    /// Between attempts to take a partition over. Forever.
    pub takeover: Duration,
    /// While the schema registry does not answer. Forever.
    pub registry: Backoff,
    /// Between two attempts of a batch whose transaction was aborted.
    pub transaction: Backoff,
    /// Aborts in a row that are retried before the worker restarts with new clients.
    pub transaction_retries: u32,
    /// Between two restarts of a worker.
    pub worker: Backoff,
    /// Restarts in a row before the process exits.
    pub worker_restarts: u32,
    /// Between attempts to open a store again.
    pub store: Backoff,
    /// Store failures in a row that are retried before the process exits.
    pub store_retries: u32,
}

/// Pauses between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The pause after the first failure.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
    growth: Growth,
}

/// How pauses grow with the number of failures in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// 1, 2, 4, 8 …
    Doubling,
    /// 1, 4, 9, 16 …: short at first, because most aborts follow a rebalance and the next attempt succeeds.
    Squares,
    /// 1, 2, 3, 4 …
    Steps,
}

impl Backoff {
    /// The same pause after every failure.
    pub const fn every(pause: Duration) -> Backoff {
        Backoff { first: pause, longest: pause, growth: Growth::Doubling }
    }

    /// The pause after this many failures in a row, at least one.
    pub fn pause(&self, failures: u32) -> Duration {
        let failures = failures.max(1);
        let times = match self.growth {
            Growth::Doubling => 1 << (failures - 1).min(31),
            Growth::Squares => failures.saturating_mul(failures),
            Growth::Steps => failures,
        };
        self.first.saturating_mul(times).min(self.longest)
    }
}

impl Default for Retry {
    fn default() -> Retry {
        let backoff = |growth, first, longest| Backoff {
            first: Duration::from_millis(first),
            longest: Duration::from_millis(longest),
            growth,
        };
        Retry {
            broker: backoff(Growth::Doubling, 500, 500),
            takeover: Duration::from_millis(200),
            registry: backoff(Growth::Doubling, 200, 5_000),
            transaction: backoff(Growth::Squares, 5, 2_000),
            transaction_retries: 20,
            worker: backoff(Growth::Steps, 100, 2_000),
            worker_restarts: 20,
            // With these pauses between them, twelve failures take a little more than a minute.
            store: backoff(Growth::Doubling, 200, 10_000),
            store_retries: 12,
        }
    }
}

impl Retry {
    /// The pause before an aborted batch is sent again, or `None` if the worker must restart.
    pub fn after_abort(&self, aborts: u32) -> Option<Duration> {
        (aborts <= self.transaction_retries).then(|| self.transaction.pause(aborts))
    }

    /// The pause before a worker starts again, or `None` if the process must exit.
    pub fn after_restart(&self, restarts: u32) -> Option<Duration> {
        (restarts <= self.worker_restarts).then(|| self.worker.pause(restarts))
    }

    /// The pause before a store is opened again, or `None` if the process must exit.
    pub fn after_store_failure(&self, failures: u32) -> Option<Duration> {
        (failures <= self.store_retries).then(|| self.store.pause(failures))
    }

    pub(super) fn checked(written: &RetrySettings) -> Result<Retry, ConfigError> {
        let RetrySettings {
            broker,
            takeover,
            registry,
            transaction,
            transaction_retries,
            worker,
            worker_restarts,
            store,
            store_retries,
        } = written;
        let default = Retry::default();
        Ok(Retry {
            broker: pauses("retry.broker", broker.as_deref(), default.broker)?,
            takeover: match takeover {
                None => default.takeover,
                Some(text) => pause("retry.takeover", text)?,
            },
            registry: pauses("retry.registry", registry.as_deref(), default.registry)?,
            transaction: pauses("retry.transaction", transaction.as_deref(), default.transaction)?,
            transaction_retries: count(
                "retry.transaction_retries",
                *transaction_retries,
                default.transaction_retries,
            )?,
            worker: pauses("retry.worker", worker.as_deref(), default.worker)?,
            worker_restarts: count("retry.worker_restarts", *worker_restarts, default.worker_restarts)?,
            store: pauses("retry.store", store.as_deref(), default.store)?,
            store_retries: count("retry.store_retries", *store_retries, default.store_retries)?,
        })
    }
}

fn pauses(key: &str, written: Option<&[String]>, default: Backoff) -> Result<Backoff, ConfigError> {
    let Some(written) = written else { return Ok(default) };
    let fix = "use two durations of 1ms to 60s, the shorter first, such as [\"200ms\", \"10s\"]";
    let [first, longest] = written else { return Err(invalid(key, format!("{written:?}"), fix)) };
    let backoff = Backoff { first: pause(key, first)?, longest: pause(key, longest)?, ..default };
    if backoff.first > backoff.longest {
        return Err(invalid(key, format!("{written:?}"), fix));
    }
    Ok(backoff)
}

fn pause(key: &str, text: &str) -> Result<Duration, ConfigError> {
    let pause = Duration::from_millis(duration(key, text)?);
    if pause > LONGEST {
        return Err(invalid(key, text, "use a duration of 1ms to 60s"));
    }
    Ok(pause)
}

fn count(key: &str, written: Option<u32>, default: u32) -> Result<u32, ConfigError> {
    match written {
        Some(0) => Err(invalid(key, 0, "use a number, at least 1")),
        written => Ok(written.unwrap_or(default)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, refusal};
    use super::*;

    fn millis(pauses: impl Iterator<Item = Duration>) -> Vec<u128> {
        pauses.map(|pause| pause.as_millis()).collect()
    }

    // These were constants before they were settings. An installation that sets nothing must not notice.
    #[test]
    fn without_settings_the_pauses_are_those_of_the_former_constants() {
        let retry = config("").unwrap().bus.retry;
        let first = |backoff: Backoff| millis((1..=8).map(|failures| backoff.pause(failures)));
        assert_eq!(first(retry.broker), [500; 8]);
        assert_eq!(retry.takeover, Duration::from_millis(200));
        assert_eq!(first(retry.registry), [200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
        assert_eq!(first(retry.transaction), [5, 20, 45, 80, 125, 180, 245, 320]);
        assert_eq!(first(retry.worker), [100, 200, 300, 400, 500, 600, 700, 800]);
        assert_eq!(first(retry.store), [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!((retry.transaction_retries, retry.worker_restarts, retry.store_retries), (20, 20, 12));
        assert_eq!(retry.transaction.pause(u32::MAX), Duration::from_secs(2));
        assert_eq!(retry.worker.pause(u32::MAX), Duration::from_secs(2));
        assert_eq!(retry.store.pause(u32::MAX), Duration::from_secs(10));
    }

    #[test]
    fn every_kind_of_failure_follows_its_own_settings() {
        let retry = config(
            "[retry]\nbroker = [\"1s\", \"4s\"]\ntakeover = \"7ms\"\nregistry = [\"3ms\", \"5ms\"]\n\
             transaction = [\"2ms\", \"9ms\"]\ntransaction_retries = 4\nworker = [\"11ms\", \"30ms\"]\nworker_restarts = 3\n\
             store = [\"1ms\", \"4ms\"]\nstore_retries = 2",
        );
        let retry = retry.unwrap().bus.retry;
        assert_eq!(millis((1..=4).map(|failures| retry.broker.pause(failures))), [1000, 2000, 4000, 4000]);
        assert_eq!(retry.takeover, Duration::from_millis(7));
        assert_eq!(millis((1..=3).map(|failures| retry.registry.pause(failures))), [3, 5, 5]);
        assert_eq!(millis((1..=9).map_while(|aborts| retry.after_abort(aborts))), [2, 8, 9, 9]);
        assert_eq!(millis((1..=9).map_while(|restarts| retry.after_restart(restarts))), [11, 22, 30]);
        assert_eq!(millis((1..=9).map_while(|failures| retry.after_store_failure(failures))), [1, 2]);
    }

    #[test]
    fn values_that_cannot_work_are_refused() {
        for (line, expected) in [
            ("broker = [\"1s\"]", "retry.broker"),
            ("broker = [\"2s\", \"1s\"]", "the shorter first"),
            ("registry = [\"0s\", \"1s\"]", "retry.registry"),
            ("transaction = [\"5ms\", \"61s\"]", "1ms to 60s"),
            ("transaction_retries = 0", "retry.transaction_retries = 0"),
            ("worker = [\"soon\", \"1s\"]", "retry.worker = soon"),
            ("worker_restarts = 0", "at least 1"),
            ("store = []", "retry.store"),
            ("store_retries = 0", "retry.store_retries"),
            ("takeover = \"2m\"", "retry.takeover = 2m"),
        ] {
            let refusal = refusal(&format!("[retry]\n{line}"));
            assert!(refusal.contains(expected), "{line}: {refusal}");
        }
    }
}
