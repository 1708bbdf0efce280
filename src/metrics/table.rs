//! The table of all metrics: name, kind, unit, labels and help text. `docs/metrics.md` is generated from it.
//!
//! A label takes its values from a closed list, never from an article, so no input can add a series.

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A value that only increases.
    Counter,
    /// A value at the time of the scrape.
    Gauge,
    /// A distribution, with the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

impl Kind {
    /// The name in a `# TYPE` line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        }
    }
}

/// A label and the closed list of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The label's name.
    pub name: &'static str,
    /// Its possible values, for the documentation.
    pub values: &'static str,
}

/// The definition of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// The name in the exposition.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: Kind,
    /// The unit of its values, for the documentation.
    pub unit: &'static str,
    /// The labels that distinguish its series.
    pub labels: &'static [Label],
    /// The meaning of the metric, and how to interpret it.
    pub help: &'static str,
}

const LANGUAGE: Label = Label { name: "language", values: "a code that `samestory languages` lists" };
const VERDICT: Label = Label { name: "verdict", values: "unique, near-duplicate, exact-duplicate" };
const FLAG: Label = Label {
    name: "flag",
    values: "short-text, no-text, unknown-language, language-mismatch, clamped-time, capped, expired, review, ahead-of-stream, digest, stray, kept-text",
};
const REASON: Label =
    Label { name: "reason", values: "the reasons of dead letters; docs/consumers.md lists them" };
const ROLE: Label = Label { name: "role", values: "route, match, direct" };
const OUTCOME: Label = Label { name: "outcome", values: "committed, aborted, unknown, fenced" };
const STEP: Label = Label { name: "step", values: "plan, send, commit, apply" };
const OPERATION: Label = Label { name: "operation", values: "read, write, flush" };
const JUDGED: Label = Label { name: "judged", values: "pairs, articles" };
const EVENT: Label = Label {
    name: "event",
    values: "expired, arrived-expired, deleted, unknown-delete, stale-forget, relocation-notice, forwarded-notice, unknown-notice, election, split, clamped-time, ahead-of-stream, stream-time-set, backfilled",
};
const CAUSE: Label = Label { name: "cause", values: "damaged, outside-the-log, too-old, other-topic" };
const PARTITION: Label =
    Label { name: "partition", values: "the partitions that are assigned to this process" };
const STATE: Label = Label {
    name: "state",
    values: "taking-over, no-space, state-unusable, restoring, running, unreadable, stopped",
};
const HOLDER: Label =
    Label { name: "language", values: "a code that `samestory languages` lists, or shared" };
const FAMILY: Label = Label { name: "family", values: "docs, bands, ids, expiry, clusters, meta" };
const BLOCK: Label = Label { name: "result", values: "hit, miss" };
const HANDED_OVER: Label = Label { name: "outcome", values: "delivered, refused" };
const ANSWER: Label = Label { name: "result", values: "accepted, refused, failed" };
const VERSION: Label = Label { name: "version", values: "the version of the program" };

/// From one millisecond to the longest duration of a transaction.
const SECONDS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// A read from memory takes microseconds, a flush or a stalled write seconds.
const STORE_SECONDS: &[f64] =
    &[0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];
const RECORDS: &[f64] = &[1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 5000.0];

/// From the time of one commit to an outage of an hour; 2 is the objective of docs/slo.md.
const AGES: &[f64] = &[0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0];

const fn counter(
    name: &'static str,
    unit: &'static str,
    labels: &'static [Label],
    help: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Counter, unit, labels, help }
}

const fn gauge(
    name: &'static str,
    unit: &'static str,
    labels: &'static [Label],
    help: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Gauge, unit, labels, help }
}

pub(super) const ARTICLES: Metric = counter(
    "samestory_articles_total",
    "articles",
    &[LANGUAGE, VERDICT],
    "Articles judged, counted when their transaction commits.",
);
pub(super) const FLAGS: Metric = counter(
    "samestory_flags_total",
    "articles",
    &[LANGUAGE, FLAG],
    "Verdicts that carry a flag. `capped` means that a match may have been missed.",
);
pub(super) const DEAD_LETTERS: Metric = counter(
    "samestory_dead_letters_total",
    "records",
    &[REASON],
    "Records that could not be judged and were copied unchanged to the dead-letter topic.",
);
pub(super) const RECORDS_READ: Metric = counter(
    "samestory_records_total",
    "records",
    &[ROLE],
    "Input records whose offsets were committed, including deletes, forgets and relocation notices.",
);
pub(super) const REPEATED: Metric = counter(
    "samestory_repeated_records_total",
    "records",
    &[ROLE],
    "Repetitions after route lost its committed offset: `match` counts articles and deletes that were routed again and \
     ignored, `route` counts dead letters that may have been written before.",
);
pub(super) const READ_ERRORS: Metric = counter(
    "samestory_read_errors_total",
    "errors",
    &[ROLE],
    "Failed attempts to decompress or parse a batch of the input.",
);
pub(super) const TRANSACTIONS: Metric = counter(
    "samestory_transactions_total",
    "transactions",
    &[ROLE, OUTCOME],
    "Transactions by outcome. After `aborted` the batch is retried; after `unknown` the worker claims its partitions \
     again; `fenced` means that another process uses the same transactional id.",
);
pub(super) const RESTARTS: Metric = counter(
    "samestory_worker_restarts_total",
    "times",
    &[ROLE],
    "Restarts of a worker with new clients. An occasional restart is normal, frequent restarts are not.",
);
pub(super) const FINGERPRINTS: Metric = counter(
    "samestory_fingerprints_total",
    "fingerprints",
    &[],
    "Fingerprints computed from raw articles by route (or by direct mode), also for a batch that is retried. \
     `rate(samestory_fingerprints_total[1m])` is fingerprints per second.",
);
pub(super) const CANDIDATES: Metric = counter(
    "samestory_candidates_total",
    "documents",
    &[],
    "Candidates that articles were compared with. Divided by the articles, this is the work per article.",
);
pub(super) const CAPPED: Metric = counter(
    "samestory_capped_buckets_total",
    "buckets",
    &[],
    "Hot buckets: lookups of a bucket with more documents than lsh.max_bucket, usually boilerplate that many articles share.",
);
pub(super) const EVENTS: Metric = counter(
    "samestory_state_events_total",
    "events",
    &[EVENT],
    "Changes to documents, clusters and stream time other than verdicts.",
);
pub(super) const SET_ASIDE: Metric = counter(
    "samestory_state_set_aside_total",
    "partitions",
    &[CAUSE],
    "States that were quarantined and rebuilt from the changelog.",
);
pub(super) const STORE_FAILURES: Metric = counter(
    "samestory_store_failures_total",
    "failures",
    &[],
    "Transient failures to read or write a state (a disk error, too many open files, no thread), after which it is closed \
     and reopened. After `retry.store_retries` in a row the process exits.",
);
pub(super) const RESTORES: Metric =
    counter("samestory_restores_total", "partitions", &[], "Restores of a partition that were started.");
pub(super) const RESTORED: Metric =
    counter("samestory_restored_records_total", "records", &[], "Changelog records read by restores.");
pub(super) const STEPS: Metric = Metric {
    name: "samestory_step_duration_seconds",
    kind: Kind::Histogram(SECONDS),
    unit: "seconds",
    labels: &[ROLE, STEP],
    help: "Duration of the steps of a turn: plan (decode, fingerprint, look up, judge), send, commit, apply.",
};
pub(super) const STORE_OPERATIONS: Metric = Metric {
    name: "samestory_store_duration_seconds",
    kind: Kind::Histogram(STORE_SECONDS),
    unit: "seconds",
    labels: &[OPERATION],
    help: "Duration of one operation of a state: `read` fetches the posting lists or the documents that up to 500 articles \
           of one language look up together, `write` is the changes of one batch (also of a restore), `flush` writes \
           memtables to disk, about once a minute.",
};
pub(super) const BATCHES: Metric = Metric {
    name: "samestory_batch_records",
    kind: Kind::Histogram(RECORDS),
    unit: "records",
    labels: &[ROLE],
    help: "Input records per transaction.",
};
pub(super) const VERDICT_AGE: Metric = Metric {
    name: "samestory_verdict_age_seconds",
    kind: Kind::Histogram(AGES),
    unit: "seconds",
    labels: &[],
    help: "Age of a verdict when its transaction has committed: the time since the timestamp of the raw record. It is the \
           time since arrival only if producers leave that timestamp to Kafka; docs/slo.md has the other cases.",
};
pub(super) const READY: Metric =
    gauge("samestory_ready", "0 or 1", &[], "1 if /readyz reports ready; if not, /readyz gives the reason.");
pub(super) const PAUSED: Metric = gauge(
    "samestory_paused",
    "0 or 1",
    &[ROLE],
    "1 while an operator has paused the role with `samestory pause` or `samestory drain`.",
);
pub(super) const CAUGHT_UP: Metric = gauge(
    "samestory_generation_caught_up",
    "0 or 1",
    &[],
    "0 while a new generation reads records that the old one has published, 1 once every partition of this process has caught \
     up, and if there is no old generation. End the old generation when this is 1 on every process and match has no lag.",
);
pub(super) const LAG: Metric = gauge(
    "samestory_lag_records",
    "records",
    &[ROLE, PARTITION],
    "Records of a partition that are not committed yet, including records that cannot be read. Absent while a partition is \
     being restored.",
);
pub(super) const UNPURGED: Metric = gauge(
    "samestory_unpurged_records",
    "records",
    &[PARTITION],
    "Routed records below the committed offset that the broker still has after a purge, which runs about every 30 seconds. \
     Normally 0; if it stays larger, deletes fail and the brokers' disks fill.",
);
pub(super) const PARTITIONS: Metric = gauge(
    "samestory_partitions",
    "partitions",
    &[ROLE, STATE],
    "Partitions that are assigned to this process.",
);
pub(super) const RESTORE_SHARE: Metric = gauge(
    "samestory_restore_progress_ratio",
    "ratio",
    &[PARTITION],
    "Progress of a restore; present only during one.",
);
pub(super) const PRECISION: Metric = gauge(
    "samestory_judged_precision_ratio",
    "ratio",
    &[JUDGED],
    "Of what samestory calls the same text in the file of `metrics.judged`, the fraction that people call the same. It is \
     measured at start and when the file changes, and absent without a file, or while it cannot be read. It depends on how \
     many different pairs the file has: compare it with earlier values only.",
);
pub(super) const RECALL: Metric = gauge(
    "samestory_judged_recall_ratio",
    "ratio",
    &[JUDGED],
    "Of what people call the same text in the file of `metrics.judged`, the fraction that samestory calls the same.",
);
pub(super) const JUDGED_COUNT: Metric = gauge(
    "samestory_judged_labels",
    "labels",
    &[JUDGED],
    "Pairs labelled same or different, and articles with an expected verdict, in the file of `metrics.judged`. Two wrong \
     verdicts mean little among twenty labels and much among a thousand.",
);
pub(super) const STATE_BYTES: Metric = gauge(
    "samestory_state_bytes",
    "bytes",
    &[HOLDER, FAMILY],
    "State on disk, measured about once a minute. `shared` is the part that all languages share.",
);
pub(super) const BLOCKS: Metric = counter(
    "samestory_state_blocks_total",
    "blocks",
    &[BLOCK],
    "Block cache lookups: `hit` was in memory, `miss` was read from disk. Updated about once a minute; decoded documents in \
     the document cache need no block.",
);
pub(super) const DISK_FREE: Metric = gauge(
    "samestory_disk_available_bytes",
    "bytes",
    &[],
    "Free space on the file system that holds the state.",
);
pub(super) const DISK_SIZE: Metric =
    gauge("samestory_disk_size_bytes", "bytes", &[], "Size of the file system that holds the state.");
pub(super) const BUILD: Metric =
    gauge("samestory_build_info", "always 1", &[VERSION], "The version of the program.");
pub(super) const CPU: Metric =
    counter("process_cpu_seconds_total", "seconds", &[], "CPU time used by the process.");
pub(super) const MEMORY: Metric =
    gauge("process_resident_memory_bytes", "bytes", &[], "Resident memory of the process.");
pub(super) const FILES: Metric = gauge("process_open_fds", "files", &[], "Open files of the process.");
pub(super) const MAX_FILES: Metric =
    gauge("process_max_fds", "files", &[], "Limit of open files of the process.");
pub(super) const THREADS: Metric = gauge("process_threads", "threads", &[], "Threads of the process.");
pub(super) const STARTED: Metric =
    gauge("process_start_time_seconds", "seconds since 1970", &[], "Start time of the process.");

pub(super) const WEBHOOK_EVENTS: Metric = counter(
    "samestory_webhook_events_total",
    "events",
    &[HANDED_OVER],
    "Events of `samestory webhook run`: those that its server accepted, and those that it refused, which became dead letters.",
);
pub(super) const WEBHOOK_SECONDS: Metric = Metric {
    name: "samestory_webhook_seconds",
    kind: Kind::Histogram(SECONDS),
    unit: "seconds",
    labels: &[ANSWER],
    help: "Duration of one request of the webhook. `refused` is a response other than 2xx, `failed` is no response.",
};

/// All metrics, in the order of `docs/metrics.md`.
pub const METRICS: &[Metric] = &[
    READY,
    PAUSED,
    CAUGHT_UP,
    LAG,
    UNPURGED,
    PARTITIONS,
    RESTORE_SHARE,
    RESTORES,
    RESTORED,
    SET_ASIDE,
    STORE_FAILURES,
    ARTICLES,
    FLAGS,
    DEAD_LETTERS,
    RECORDS_READ,
    REPEATED,
    READ_ERRORS,
    FINGERPRINTS,
    CANDIDATES,
    CAPPED,
    EVENTS,
    TRANSACTIONS,
    RESTARTS,
    STEPS,
    STORE_OPERATIONS,
    BATCHES,
    WEBHOOK_EVENTS,
    WEBHOOK_SECONDS,
    VERDICT_AGE,
    PRECISION,
    RECALL,
    JUDGED_COUNT,
    STATE_BYTES,
    BLOCKS,
    DISK_FREE,
    DISK_SIZE,
    BUILD,
    CPU,
    MEMORY,
    FILES,
    MAX_FILES,
    THREADS,
    STARTED,
];

/// Renders `docs/metrics.md`.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Metrics\n\nServed at `/metrics` of `[http] listen`. Generated from `src/metrics/table.rs`; a test keeps it \
         current.\nLabels take their values from closed lists, so no article can add a series.\n\n\
         | name | kind | unit | labels | meaning |\n|---|---|---|---|---|\n",
    );
    for metric in METRICS {
        let labels: Vec<&str> = metric.labels.iter().map(|label| label.name).collect();
        let (name, kind, unit) = (metric.name, metric.kind.as_str(), metric.unit);
        text += &format!("| `{name}` | {kind} | {unit} | {} | {} |\n", labels.join(", "), metric.help);
    }
    text += "\n## Labels\n\n| label | values |\n|---|---|\n";
    let mut listed: Vec<Label> = Vec::new();
    let all = || METRICS.iter().flat_map(|metric| metric.labels);
    for label in all() {
        if listed.contains(label) {
            continue;
        }
        listed.push(*label);
        text += &format!("| `{}`", label.name);
        if all().any(|other| other.name == label.name && other != label) {
            let metrics = METRICS.iter().filter(|metric| metric.labels.contains(label));
            let names: Vec<String> = metrics.map(|metric| format!("`{}`", metric.name)).collect();
            text += &format!(" of {}", names.join(", "));
        }
        text += &format!(" | {} |\n", label.values);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::metrics::Outcome;
    use crate::status::StateLabel;

    use super::*;

    #[test]
    fn names_follow_the_prometheus_conventions() {
        let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len(), "a name is used twice");
        for Metric { name, kind, help, .. } in METRICS {
            assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
            assert!(help.ends_with('.') && !help.contains('|'), "{name}");
            assert!(name.starts_with("samestory_") || name.starts_with("process_"), "{name}");
        }
    }

    #[test]
    fn every_operation_of_a_store_is_a_label_value() {
        let operations = samestory_engine::index::StoreOperation::ALL.map(|operation| operation.as_str());
        assert_eq!(OPERATION.values, operations.join(", "));
    }

    // A hand-kept list misses the latest addition: a metric that is not in the table has no help text and no
    // line in the document.
    #[test]
    fn every_metric_and_every_label_value_is_listed() {
        let declared = include_str!("table.rs").matches("\npub(super) const ").count();
        assert_eq!(METRICS.len(), declared);
        for state in StateLabel::ALL.map(StateLabel::as_str) {
            assert!(STATE.values.split(", ").any(|value| value == state), "{state}");
        }
        for outcome in Outcome::ALL.map(Outcome::as_str) {
            assert!(OUTCOME.values.split(", ").any(|value| value == outcome), "{outcome}");
        }
    }
}
