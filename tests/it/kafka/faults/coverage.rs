//! Counts from the logs what the processes went through: a run in which nothing happened has tested nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Names of the counters, and the log message prefix that each one counts.
const SIGNS: [(&str, &str); 8] = [
    ("aborts", "a transaction was aborted"),
    ("losses", "restarting the worker"),
    ("restores", "restored"),
    ("wipes", "state quarantined"),
    ("assignments", "assigned"),
    ("revocations", "revoked"),
    ("partitions stopped", "stopped: "),
    ("partitions waiting", "stopped for now"),
];

/// The faults of a run: how often each was drawn, and how often it left its expected trace. A fault without a
/// trace has tested nothing.
#[derive(Default)]
pub(crate) struct Ledger {
    faults: BTreeMap<&'static str, (usize, usize)>,
    excused: BTreeMap<&'static str, usize>,
}

impl Ledger {
    pub(crate) fn drawn(&mut self, fault: &'static str) {
        self.faults.entry(fault).or_default().0 += 1;
    }

    pub(crate) fn was_drawn(&self, fault: &str) -> bool {
        self.faults.contains_key(fault)
    }

    pub(crate) fn traced(&mut self, fault: &'static str) {
        self.faults.entry(fault).or_default().1 += 1;
    }

    /// Records a fault that needs no other trace.
    pub(crate) fn done(&mut self, fault: &'static str) {
        self.drawn(fault);
        self.traced(fault);
    }

    /// Records a process that ended because of a known bug elsewhere.
    pub(crate) fn excused(&mut self, why: &'static str) {
        *self.excused.entry(why).or_default() += 1;
    }

    /// One line per fault.
    pub(crate) fn table(&self) -> String {
        let line = |(fault, (drawn, traced)): (&&str, &(usize, usize))| {
            format!("{fault}: {drawn} drawn, {traced} traced")
        };
        let mut lines: Vec<String> = self.faults.iter().map(line).collect();
        lines.extend(self.excused.iter().map(|(why, times)| format!("process restarted, {why}: {times}")));
        lines.join("\n            ")
    }

    /// Faults that were drawn but never left their trace.
    pub(crate) fn untraced(&self) -> Vec<&'static str> {
        self.faults.iter().filter(|(_, (_, traced))| *traced == 0).map(|(fault, _)| *fault).collect()
    }
}

/// Counts by counter name.
pub(crate) type Counts = BTreeMap<&'static str, usize>;

/// Counts over all logs of a directory; deaths at fault points are counted by point.
pub(crate) fn count(logs: &Path) -> (Counts, BTreeMap<String, usize>) {
    let mut counts: Counts = SIGNS.iter().map(|(name, _)| (*name, 0)).collect();
    let mut deaths = BTreeMap::new();
    for entry in fs::read_dir(logs).unwrap() {
        for line in fs::read_to_string(entry.unwrap().path()).unwrap().lines() {
            if let Some(rest) = line.strip_prefix("samestory: dies at ") {
                let point = rest.split(':').next().unwrap_or_default();
                *deaths.entry(point.to_owned()).or_default() += 1;
            }
            let Ok(entry) = serde_json::from_str::<serde_json::Value>(line) else { continue };
            let message = entry["message"].as_str().unwrap_or_default();
            for (name, sign) in SIGNS {
                if message.starts_with(sign) {
                    *counts.entry(name).or_default() += 1;
                }
            }
        }
    }
    (counts, deaths)
}

/// The last lines of every log, to find the cause of a failure.
pub(crate) fn tails(logs: &Path, lines: usize) -> String {
    let mut out = String::new();
    let mut paths: Vec<_> = fs::read_dir(logs).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let all: Vec<&str> = text.lines().collect();
        out += &format!("--- {}\n", path.file_name().unwrap().to_string_lossy());
        for line in &all[all.len().saturating_sub(lines)..] {
            out += &format!("{}\n", line.chars().take(400).collect::<String>());
        }
    }
    out
}
