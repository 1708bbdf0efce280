//! The conditions of a run, kept beside its results: a figure means nothing without the version and the machine, nor beside
//! other programs that take the processors.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Map, Value, json};

/// A run that is being measured.
pub(crate) struct Run {
    began: Instant,
    /// CPU seconds of the whole machine at the start.
    busy: Option<f64>,
}

impl Run {
    pub(crate) fn begin() -> Run {
        Run { began: Instant::now(), busy: busy() }
    }

    /// Writes the conditions of the results in `part`.json. `own` is the CPU seconds of all processes that belong to the run.
    pub(crate) fn end(self, results: &Path, part: &str, own: f64) -> Result<(), Box<dyn std::error::Error>> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let elapsed = self.began.elapsed().as_secs_f64();
        let others = self.busy.zip(busy()).map(|(before, now)| {
            let share = (now - before - own).max(0.0) / (elapsed * cores as f64);
            (share * 1000.0).round() / 1000.0
        });
        let path = results.join("conditions.json");
        let mut all: Map<String, Value> = match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text)?,
            Err(_) => Map::new(),
        };
        let of_part = json!({ "commit": commit(), "cores": cores, "cpu": processor(), "others": others });
        all.insert(part.to_owned(), of_part);
        fs::write(path, serde_json::to_string_pretty(&all)?)?;
        Ok(())
    }
}

/// CPU seconds of this process and of its children that have ended.
pub(crate) fn own_and_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (11..15).map(ticks).sum::<f64>() / TICKS
}

const TICKS: f64 = 100.0;

/// CPU seconds that all programs have used since the machine started; none on systems without `/proc`.
fn busy() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let fields = stat.lines().next()?.split_whitespace().skip(1);
    let ticks: Vec<f64> = fields.map(str::parse).collect::<Result<_, _>>().ok()?;
    // User, nice and system; idle and waiting; interrupts, and what the host took.
    let (worked, waited) = (ticks.get(..3)?, ticks.get(5..8)?);
    Some(worked.iter().chain(waited).sum::<f64>() / TICKS)
}

fn commit() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut git = Command::new("git");
    let output =
        git.arg("-C").arg(root).args(["describe", "--always", "--dirty", "--exclude", "*"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn processor() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let model = info.lines().find_map(|line| line.strip_prefix("model name"))?;
    Some(model.trim_start_matches([' ', '\t', ':']).to_owned())
}
