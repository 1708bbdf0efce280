//! Prometheus metrics of the stage. Recording is a no-op until [`start`] installs the recorder.
//!
//! The stage counts through the functions here; metric names live only in `table`. Gauges are not recorded:
//! [`Scrape`] reads them from the [`StatusBoard`](crate::status::StatusBoard) at scrape time.

mod expose;
mod table;

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

pub use expose::Scrape;
pub use metrics_exporter_prometheus::BuildError as StartError;
pub use table::{Kind, Label, METRICS, Metric, markdown};

samestory_engine::listed! {
/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All its records are visible to `read_committed` consumers.
    Committed,
    /// None of its records will become visible.
    Aborted,
    /// The commit may or may not have happened.
    Unknown,
    /// Another producer uses the same transactional id.
    Fenced,
}
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Outcome::Committed => "committed",
            Outcome::Aborted => "aborted",
            Outcome::Unknown => "unknown",
            Outcome::Fenced => "fenced",
        }
    }
}

/// Installs the recorder. Call it once per process.
///
/// # Errors
/// A recorder is already installed.
pub fn start() -> Result<PrometheusHandle, StartError> {
    let mut builder = PrometheusBuilder::new();
    for metric in METRICS {
        if let Kind::Histogram(buckets) = metric.kind {
            builder = builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), buckets)?;
        }
    }
    let handle = builder.install_recorder()?;
    for metric in METRICS {
        match metric.kind {
            Kind::Counter => ::metrics::describe_counter!(metric.name, metric.help),
            Kind::Histogram(_) => ::metrics::describe_histogram!(metric.name, metric.help),
            // Rendered by `Scrape`.
            Kind::Gauge => {}
        }
    }
    Ok(handle)
}

/// Registers every series at zero. `rate()` over an absent series is empty, so otherwise the first increment,
/// such as the first dead letter of a week, would never fire an alert.
pub fn register_series(
    roles: &[&'static str],
    reasons: &[&'static str],
    causes: &[&'static str],
    operations: &[&'static str],
) {
    for &role in roles {
        for outcome in Outcome::ALL {
            transaction(role, outcome, 0);
        }
        restarted(role, 0);
        records(role, 0);
        repeated(role, 0);
        read_errors(role, 0);
    }
    reasons.iter().for_each(|reason| dead_letters(reason, 0));
    causes.iter().for_each(|cause| quarantined(cause, 0));
    // Registers the series; a sample would count.
    operations.iter().for_each(|operation| drop(store_histogram(operation)));
    fingerprints(0);
    compared(0, 0);
    blocks(0, 0);
    restores(0);
    restored(0);
    store_failures(0);
    verdict_ages(std::iter::empty());
}

/// Counts articles whose verdict was committed.
pub fn articles(language: &'static str, verdict: &'static str, count: u64) {
    ::metrics::counter!(table::ARTICLES.name, "language" => language, "verdict" => verdict).increment(count);
}

/// Counts a verdict with this flag.
pub fn flag(language: &'static str, flag: &'static str) {
    ::metrics::counter!(table::FLAGS.name, "language" => language, "flag" => flag).increment(1);
}

/// Counts records sent to the dead-letter topic.
pub fn dead_letters(reason: &'static str, count: u64) {
    ::metrics::counter!(table::DEAD_LETTERS.name, "reason" => reason).increment(count);
}

/// Counts records that were read again after route lost its committed offset.
pub fn repeated(role: &'static str, count: u64) {
    ::metrics::counter!(table::REPEATED.name, "role" => role).increment(count);
}

/// Counts computed fingerprints.
pub fn fingerprints(count: u64) {
    ::metrics::counter!(table::FINGERPRINTS.name).increment(count);
}

/// Counts candidates that articles were compared with, and lookups of hot buckets.
pub fn compared(candidates: u64, capped: u64) {
    ::metrics::counter!(table::CANDIDATES.name).increment(candidates);
    ::metrics::counter!(table::CAPPED.name).increment(capped);
}

/// Counts changes to documents, clusters and stream time other than verdicts.
pub fn events(event: &'static str, count: u64) {
    ::metrics::counter!(table::EVENTS.name, "event" => event).increment(count);
}

/// Counts block cache hits and misses.
pub fn blocks(hits: u64, misses: u64) {
    ::metrics::counter!(table::BLOCKS.name, "result" => "hit").increment(hits);
    ::metrics::counter!(table::BLOCKS.name, "result" => "miss").increment(misses);
}

/// Counts transactions by outcome.
pub fn transaction(role: &'static str, outcome: Outcome, count: u64) {
    ::metrics::counter!(table::TRANSACTIONS.name, "role" => role, "outcome" => outcome.as_str())
        .increment(count);
}

/// Records the size of a committed batch.
pub fn batch(role: &'static str, count: usize) {
    records(role, count as u64);
    ::metrics::histogram!(table::BATCHES.name, "role" => role).record(count as f64);
}

fn records(role: &'static str, count: u64) {
    ::metrics::counter!(table::RECORDS_READ.name, "role" => role).increment(count);
}

/// Counts failed attempts to read a batch of the input.
pub fn read_errors(role: &'static str, count: u64) {
    ::metrics::counter!(table::READ_ERRORS.name, "role" => role).increment(count);
}

/// Records the duration of one step of a turn.
pub fn step(role: &'static str, step: &'static str, took: Duration) {
    ::metrics::histogram!(table::STEPS.name, "role" => role, "step" => step).record(took.as_secs_f64());
}

/// Records the duration of one operation of a store.
pub fn store_operation(operation: &'static str, took: Duration) {
    store_histogram(operation).record(took.as_secs_f64());
}

fn store_histogram(operation: &'static str) -> ::metrics::Histogram {
    ::metrics::histogram!(table::STORE_OPERATIONS.name, "operation" => operation)
}

/// Records how old verdicts were when their transaction had committed. Registers the series even if there are none.
pub fn verdict_ages(ages: impl Iterator<Item = Duration>) {
    let histogram = ::metrics::histogram!(table::VERDICT_AGE.name);
    ages.for_each(|age| histogram.record(age.as_secs_f64()));
}

/// Counts restarts of a worker.
pub fn restarted(role: &'static str, count: u64) {
    ::metrics::counter!(table::RESTARTS.name, "role" => role).increment(count);
}

/// Counts quarantined states.
pub fn quarantined(cause: &'static str, count: u64) {
    ::metrics::counter!(table::SET_ASIDE.name, "cause" => cause).increment(count);
}

/// Counts transient failures of a store.
pub fn store_failures(count: u64) {
    ::metrics::counter!(table::STORE_FAILURES.name).increment(count);
}

/// Counts events that the webhook's server has accepted, and those that became dead letters.
pub fn webhook_events(delivered: usize, refused: usize) {
    for (outcome, count) in [("delivered", delivered), ("refused", refused)] {
        ::metrics::counter!(table::WEBHOOK_EVENTS.name, "outcome" => outcome).increment(count as u64);
    }
}

/// Records one request of the webhook.
pub fn webhook_attempt(result: &'static str, took: Duration) {
    ::metrics::histogram!(table::WEBHOOK_SECONDS.name, "result" => result).record(took.as_secs_f64());
}

/// Counts restores that were started.
pub fn restores(count: u64) {
    ::metrics::counter!(table::RESTORES.name).increment(count);
}

/// Counts changelog records read by restores.
pub fn restored(records: u64) {
    ::metrics::counter!(table::RESTORED.name).increment(records);
}
