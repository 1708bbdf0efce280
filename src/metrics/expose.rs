//! Renders a scrape: counters and histograms from the recorder, then gauges from the status board and the
//! system.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;

use samestory_eval::Accuracy;

use crate::status::{Member, PartitionState, StateLabel, StatusBoard};

use super::table::{self, Metric};

/// Answers `/metrics`.
#[derive(Clone)]
pub struct Scrape {
    counts: PrometheusHandle,
    board: Arc<StatusBoard>,
    /// The state directory, whose file system is reported.
    state: Option<PathBuf>,
    /// Start of the process in seconds since 1970.
    started: f64,
}

impl Scrape {
    /// Renders `counts` and `board`; `state` is the state directory, if the process has one.
    pub fn new(counts: PrometheusHandle, board: Arc<StatusBoard>, state: Option<PathBuf>) -> Scrape {
        Scrape { counts, board, state, started: now() }
    }

    /// Drains the histogram samples. Call it regularly: without scrapes they would pile up in memory.
    pub fn upkeep(&self) {
        self.counts.run_upkeep();
    }

    /// All metrics in the Prometheus text format.
    pub fn text(&self) -> String {
        let mut exposition = Exposition(self.counts.render());
        let workers = self.board.workers();
        let ready = self.board.reasons().is_empty();
        exposition.write(&table::READY, [(String::new(), f64::from(u8::from(ready)))]);
        let pause = self.board.pause();
        let roles: std::collections::BTreeSet<&str> = workers.iter().map(|member| member.role).collect();
        let is_paused =
            |role: &str| pause.as_ref().is_some_and(|pause| pause.roles.iter().any(|one| one == role));
        let paused =
            roles.iter().map(|role| (format!("role=\"{role}\""), f64::from(u8::from(is_paused(role)))));
        exposition.write(&table::PAUSED, paused);
        let caught_up = self.board.following().is_none_or(|following| following.caught_up);
        exposition.write(&table::CAUGHT_UP, [(String::new(), f64::from(u8::from(caught_up)))]);
        exposition.write(&table::LAG, lags(&workers));
        exposition.write(&table::UNPURGED, unpurged(&workers));
        exposition.write(&table::PARTITIONS, partitions(&workers));
        exposition.write(&table::RESTORE_SHARE, restores(&workers));
        let measured = self.board.accuracy();
        let judged = [("pairs", measured.pairs), ("articles", measured.articles)];
        exposition.write(&table::PRECISION, accuracies(judged, |accuracy| accuracy.precision.share));
        exposition.write(&table::RECALL, accuracies(judged, |accuracy| accuracy.recall.share));
        exposition.write(&table::JUDGED_COUNT, accuracies(judged, |accuracy| Some(accuracy.labels as f64)));
        exposition.write(&table::STATE_BYTES, sizes(&workers));
        if let Some((free, size)) = self.state.as_deref().and_then(space) {
            exposition.write(&table::DISK_FREE, [(String::new(), free)]);
            exposition.write(&table::DISK_SIZE, [(String::new(), size)]);
        }
        exposition.write(&table::BUILD, [(format!("version=\"{}\"", env!("CARGO_PKG_VERSION")), 1.0)]);
        exposition.write(&table::STARTED, [(String::new(), self.started)]);
        process(&mut exposition);
        exposition.0
    }
}

struct Exposition(String);

impl Exposition {
    /// Writes a metric; one without samples is omitted.
    fn write(&mut self, metric: &Metric, samples: impl IntoIterator<Item = (String, f64)>) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        // Writing to a string cannot fail.
        let (name, kind) = (metric.name, metric.kind.as_str());
        let _written = write!(self.0, "# HELP {name} {}\n# TYPE {name} {kind}\n", metric.help);
        for (labels, value) in samples {
            let _written = match labels.is_empty() {
                true => writeln!(self.0, "{name} {value}"),
                false => writeln!(self.0, "{name}{{{labels}}} {value}"),
            };
        }
        self.0.push('\n');
    }
}

/// Two workers of a role can report the same partition only during a handover; the larger lag is used then.
fn lags(workers: &[Member]) -> BTreeMap<String, f64> {
    let mut lags = BTreeMap::new();
    for member in workers {
        for (partition, &lag) in &member.lags {
            let labels = format!("role=\"{}\",partition=\"{partition}\"", member.role);
            let known = lags.entry(labels).or_insert(0.0_f64);
            *known = known.max(lag as f64);
        }
    }
    lags
}

/// Only partitions assigned now: other processes report theirs.
fn unpurged(workers: &[Member]) -> BTreeMap<String, f64> {
    let mut records = BTreeMap::new();
    for member in workers.iter().filter(|member| member.role == "match") {
        for partition in member.partitions.keys() {
            let count = member.unpurged.get(partition).copied().unwrap_or(0);
            records.insert(format!("partition=\"{partition}\""), count as f64);
        }
    }
    records
}

fn partitions(workers: &[Member]) -> BTreeMap<String, f64> {
    let mut counts = BTreeMap::new();
    for member in workers {
        // Every state, so that no series disappears when its count is zero.
        for state in StateLabel::ALL.map(StateLabel::as_str) {
            counts.entry(format!("role=\"{}\",state=\"{state}\"", member.role)).or_insert(0.0);
        }
        for state in member.partitions.values() {
            let state = state.state().as_str();
            *counts.entry(format!("role=\"{}\",state=\"{state}\"", member.role)).or_insert(0.0) += 1.0;
        }
    }
    counts
}

fn restores(workers: &[Member]) -> BTreeMap<String, f64> {
    let partitions = workers.iter().flat_map(|member| &member.partitions);
    let restoring = partitions.filter_map(|(partition, state)| match state {
        PartitionState::Restoring(restore) => Some((format!("partition=\"{partition}\""), restore.share())),
        _ => None,
    });
    restoring.collect()
}

/// One sample for each kind of label that the file has. Without a single trial there is no fraction.
fn accuracies(
    judged: [(&str, Option<Accuracy>); 2],
    value: impl Fn(Accuracy) -> Option<f64>,
) -> Vec<(String, f64)> {
    let sample =
        |(kind, accuracy): (&str, Option<Accuracy>)| Some((format!("judged=\"{kind}\""), value(accuracy?)?));
    judged.into_iter().filter_map(sample).collect()
}

fn sizes(workers: &[Member]) -> BTreeMap<String, f64> {
    let mut sizes = BTreeMap::new();
    for state in workers.iter().flat_map(|member| member.partitions.values()) {
        if let PartitionState::Running(of) = state {
            for (language, family, bytes) in of.iter() {
                let labels = format!("language=\"{language}\",family=\"{family}\"");
                *sizes.entry(labels).or_insert(0.0) += *bytes as f64;
            }
        }
    }
    sizes
}

/// Free and total bytes of the file system of a directory, which may not exist yet.
fn space(directory: &std::path::Path) -> Option<(f64, f64)> {
    let existing = directory.ancestors().find(|path| path.exists()).unwrap_or_else(|| ".".as_ref());
    let stats = rustix::fs::statvfs(existing).ok()?;
    let bytes = |blocks: u64| blocks as f64 * stats.f_frsize as f64;
    Some((bytes(stats.f_bavail), bytes(stats.f_blocks)))
}

/// Metrics of this process from `/proc`; none on systems without it.
fn process(exposition: &mut Exposition) {
    let one = |value: f64| [(String::new(), value)];
    if let Some((user, system)) = fs::read_to_string("/proc/self/stat").ok().and_then(|stat| ticks(&stat)) {
        let seconds = (user + system) as f64 / rustix::param::clock_ticks_per_second() as f64;
        exposition.write(&table::CPU, one(seconds));
    }
    if let Ok(status) = fs::read_to_string("/proc/self/status") {
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<f64>().ok()
        };
        exposition
            .write(&table::MEMORY, number("VmRSS:").map(|kilobytes| (String::new(), kilobytes * 1024.0)));
        exposition.write(&table::THREADS, number("Threads:").map(|threads| (String::new(), threads)));
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        exposition.write(&table::FILES, one(files.count() as f64));
    }
    if let Ok(limits) = fs::read_to_string("/proc/self/limits") {
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let most = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        exposition.write(&table::MAX_FILES, most.map(|most| (String::new(), most)));
    }
}

/// User and system CPU ticks of `/proc/self/stat`. The process name before them may contain blanks and
/// brackets.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[allow(clippy::disallowed_methods, reason = "the start time of the process does not influence verdicts")]
fn now() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{Joining, Restore};

    #[test]
    fn a_process_name_may_contain_brackets_and_blanks() {
        let stat = "42 (a) b) c) S 1 42 42 0 -1 4194560 100 0 0 0 17 5 0 0 20 0 3 0 100 1 1";
        assert_eq!(ticks(stat), Some((17, 5)));
        assert_eq!(ticks(""), None);
    }

    #[test]
    fn accuracy_is_exported_while_it_is_known() {
        use crate::status::Measured;
        use samestory_eval::score::Rate;
        let board = Arc::new(StatusBoard::new(Default::default()));
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let scrape = Scrape::new(recorder.handle(), Arc::clone(&board), None);
        assert!(!scrape.text().contains("samestory_judged_"));
        // Nothing was called the same: no precision.
        let pairs = Accuracy { labels: 5, precision: Rate::new(0, 0), recall: Rate::new(0, 4) };
        let articles = Accuracy { labels: 8, precision: Rate::new(3, 4), recall: Rate::new(3, 6) };
        board.measured(Measured { pairs: Some(pairs), articles: Some(articles) });
        let text = scrape.text();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("samestory_judged_")).collect();
        assert_eq!(
            lines,
            [
                "samestory_judged_precision_ratio{judged=\"articles\"} 0.75",
                "samestory_judged_recall_ratio{judged=\"pairs\"} 0",
                "samestory_judged_recall_ratio{judged=\"articles\"} 0.5",
                "samestory_judged_labels{judged=\"pairs\"} 5",
                "samestory_judged_labels{judged=\"articles\"} 8",
            ]
        );
        board.measured(Measured::default());
        assert!(!scrape.text().contains("samestory_judged_"));
    }

    #[test]
    fn series_of_revoked_partitions_disappear() {
        let board = Arc::new(StatusBoard::new(Default::default()));
        board.started();
        board.begins("w", "match", Joining::Waiting);
        board.assigned("w");
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let scrape = Scrape::new(recorder.handle(), Arc::clone(&board), Some("/no/such/place".into()));
        let sizes = Arc::new(vec![("en", "docs", 10), ("shared", "ids", 3)]);
        let restore = Restore { done: 1, of: 4, ..Restore::default() };
        let partitions = [
            (0, PartitionState::Running(Arc::clone(&sizes))),
            (1, PartitionState::Running(sizes)),
            (2, PartitionState::Restoring(restore)),
        ];
        board.reports("w", partitions, BTreeMap::from([(0, 17)]), false);
        let text = scrape.text();
        for line in [
            "samestory_ready 0",
            "samestory_lag_records{role=\"match\",partition=\"0\"} 17",
            "samestory_partitions{role=\"match\",state=\"running\"} 2",
            "samestory_partitions{role=\"match\",state=\"stopped\"} 0",
            "samestory_restore_progress_ratio{partition=\"2\"} 0.25",
            "samestory_state_bytes{language=\"en\",family=\"docs\"} 20",
            "# TYPE process_cpu_seconds_total counter",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line:?} in\n{text}");
        }
        assert!(text.contains("\nsamestory_disk_available_bytes "), "{text}");
        board.reports("w", [], BTreeMap::new(), false);
        let text = scrape.text();
        assert!(text.contains("samestory_ready 1\n"));
        for gone in ["lag_records", "restore_progress", "state_bytes"] {
            assert!(!text.contains(gone), "{gone}");
        }
    }
}
