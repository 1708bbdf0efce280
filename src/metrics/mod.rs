//! What the stage counts, and how it is told to Prometheus. Counting costs nothing while nobody has [started](start) it.
//!
//! Whoever counts calls a function here; the names are in [`table`] and nowhere else. What is a state and not a count
//! is written out from the [`StatusBoard`](crate::status::StatusBoard) at the moment somebody asks.

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
    /// All of it is visible.
    Committed,
    /// Nothing of it is.
    Aborted,
    /// Nobody can say.
    Unknown,
    /// Somebody else has our name.
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

/// Starts counting, once in the life of a process.
///
/// # Errors
/// Somebody counts already.
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
            // Written out by ourselves.
            Kind::Gauge => {}
        }
    }
    Ok(handle)
}

/// Counters begin at nought and not at the first time: a rate over something that was not there is nothing, and the
/// first dead letter of a week would raise no alarm.
pub fn begin(roles: &[&'static str], reasons: &[&'static str], causes: &[&'static str]) {
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
    causes.iter().for_each(|cause| set_aside(cause, 0));
    compared(0, 0);
    blocks(0, 0);
    restores(0);
    restored(0);
    store_failures(0);
}

/// Articles with this verdict were committed.
pub fn articles(language: &'static str, verdict: &'static str, count: u64) {
    ::metrics::counter!(table::ARTICLES.name, "language" => language, "verdict" => verdict).increment(count);
}

/// A verdict carries this flag.
pub fn flag(language: &'static str, flag: &'static str) {
    ::metrics::counter!(table::FLAGS.name, "language" => language, "flag" => flag).increment(1);
}

/// Records went to the dead-letter topic.
pub fn dead_letters(reason: &'static str, count: u64) {
    ::metrics::counter!(table::DEAD_LETTERS.name, "reason" => reason).increment(count);
}

/// Records came again after route had lost its committed offset.
pub fn repeated(role: &'static str, count: u64) {
    ::metrics::counter!(table::REPEATED.name, "role" => role).increment(count);
}

/// Articles were compared with so many documents; so many buckets were too full.
pub fn compared(candidates: u64, capped: u64) {
    ::metrics::counter!(table::CANDIDATES.name).increment(candidates);
    ::metrics::counter!(table::CAPPED.name).increment(capped);
}

/// Something happened to documents or clusters.
pub fn events(event: &'static str, count: u64) {
    ::metrics::counter!(table::EVENTS.name, "event" => event).increment(count);
}

/// Blocks of state were in memory, or not.
pub fn blocks(hits: u64, misses: u64) {
    ::metrics::counter!(table::BLOCKS.name, "result" => "hit").increment(hits);
    ::metrics::counter!(table::BLOCKS.name, "result" => "miss").increment(misses);
}

/// A transaction ended.
pub fn transaction(role: &'static str, outcome: Outcome, count: u64) {
    ::metrics::counter!(table::TRANSACTIONS.name, "role" => role, "outcome" => outcome.as_str())
        .increment(count);
}

/// Records of the input are done with, committed together.
pub fn batch(role: &'static str, count: usize) {
    records(role, count as u64);
    ::metrics::histogram!(table::BATCHES.name, "role" => role).record(count as f64);
}

fn records(role: &'static str, count: u64) {
    ::metrics::counter!(table::RECORDS_READ.name, "role" => role).increment(count);
}

/// Batches of the input could not be read.
pub fn read_errors(role: &'static str, count: u64) {
    ::metrics::counter!(table::READ_ERRORS.name, "role" => role).increment(count);
}

/// A step of a turn took so long.
pub fn step(role: &'static str, step: &'static str, took: Duration) {
    ::metrics::histogram!(table::STEPS.name, "role" => role, "step" => step).record(took.as_secs_f64());
}

/// A worker began anew.
pub fn restarted(role: &'static str, count: u64) {
    ::metrics::counter!(table::RESTARTS.name, "role" => role).increment(count);
}

/// A state was set aside.
pub fn set_aside(cause: &'static str, count: u64) {
    ::metrics::counter!(table::SET_ASIDE.name, "cause" => cause).increment(count);
}

/// A store failed in a way that may pass.
pub fn store_failures(count: u64) {
    ::metrics::counter!(table::STORE_FAILURES.name).increment(count);
}

/// Restores were begun.
pub fn restores(count: u64) {
    ::metrics::counter!(table::RESTORES.name).increment(count);
}

/// Restores have read so many records more.
pub fn restored(records: u64) {
    ::metrics::counter!(table::RESTORED.name).increment(records);
}
