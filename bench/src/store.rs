//! Check-and-insert from raw text, at several store sizes.
//!
//! Each contender runs in its own process, one after the other, so that memory can be attributed to it. The
//! store is filled as the product does it: fingerprints on all cores, verdicts in order on one thread, 2,000
//! articles per batch. The last stretch of the stream before each size is timed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::contenders::{self, Contender, Gaoya, Outcome, Taken, Txtfp};
use crate::feed::{Feed, Texts};
use crate::stream::Stream;

/// Articles per batch, as in the Kafka stage.
const BATCH: usize = 2000;
/// Lookups that are timed one by one.
const LOOK_UPS: u64 = 4000;
pub const QUICK: &[u64] = &[10_000, 100_000];
pub const FULL: &[u64] = &[10_000, 100_000, 1_000_000];

const CONTENDERS: &[(&str, &str)] = &[
    ("memory", "samestory in memory"),
    #[cfg(feature = "disk")]
    ("rocks", "samestory in RocksDB, changelog in Kafka"),
    #[cfg(feature = "disk")]
    ("rocks-log", "samestory in RocksDB, own WAL"),
    ("txtfp", "txtfp and its index in memory"),
    ("gaoya", "gaoya and its index in memory"),
];

/// Runs all contenders, or only those named, and returns their rows.
pub fn rows(full: bool, only: &[String]) -> Outcome<Vec<Value>> {
    let mut rows = Vec::new();
    for (name, _) in CONTENDERS.iter().filter(|(name, _)| only.is_empty() || only.iter().any(|o| o == name)) {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("contender").arg(name).args(full.then_some("full")).stderr(Stdio::inherit());
        let output = command.output()?;
        if !output.status.success() {
            return Err(format!("{name}: {}", output.status).into());
        }
        for line in str::from_utf8(&output.stdout)?.lines() {
            rows.push(serde_json::from_str(line)?);
        }
    }
    Ok(rows)
}

/// Runs in the contender's own process, and prints one line of JSON per size. A given directory is kept, and
/// a store in it is filled further instead of from the start.
#[cfg_attr(not(feature = "disk"), allow(unused_variables, reason = "only stores on disk are kept"))]
pub fn contend(name: &str, sizes: &[u64], kept: Option<&Path>) -> Outcome<()> {
    let title = CONTENDERS.iter().find(|(other, _)| *other == name).map_or(name, |(_, title)| title);
    #[cfg(feature = "disk")]
    if let Some(ahead) = match name {
        "rocks" => Some(samestory_engine::index::Durability::Changelog { partition: 0 }),
        "rocks-log" => Some(samestory_engine::index::Durability::OwnWal),
        _ => None,
    } {
        if let Some(kept) = kept {
            return grow(title, contenders::rocks(kept, ahead)?, sizes);
        }
        let directory = std::env::temp_dir().join(format!("samestory-bench-{}", std::process::id()));
        let outcome =
            contenders::rocks(&directory, ahead).and_then(|contender| grow(title, contender, sizes));
        std::fs::remove_dir_all(&directory)?;
        return outcome;
    }
    match name {
        "memory" => grow(title, contenders::memory()?, sizes),
        "txtfp" => grow(title, Txtfp::new()?, sizes),
        "gaoya" => grow(title, Gaoya::new()?, sizes),
        _ => Err(format!("no contender is called {name}").into()),
    }
}

fn grow(title: &str, mut contender: impl Contender, sizes: &[u64]) -> Outcome<()> {
    let stream = Arc::new(Stream::new());
    let prepare = contender.prepare();
    let start = Instant::now();
    let mut held = contender.held()?;
    for &size in sizes {
        // Time the last fifth of a small store, and the last twentieth of a large one.
        let timed = (size / 5).min(50_000).min(size - held.min(size));
        let mut reported = Instant::now();
        let mut feed = Feed::start(&stream, &prepare, held, size - timed);
        while held < size - timed {
            let batch = feed.take(BATCH);
            held += batch.len() as u64;
            contender.take(batch)?;
            if reported.elapsed() > Duration::from_secs(10) {
                reported = Instant::now();
                eprintln!("  {title}: {held} of {size}, {:.0} s", start.elapsed().as_secs_f64());
            }
        }
        let texts = Arc::new(Texts::new(&stream, held, size));
        let (started, from, cpu_before, own_before) = (Instant::now(), held, cpu(), own_cpu());
        let (mut taken, mut verdicts) = (Taken::default(), Duration::ZERO);
        let mut feed = Feed::from_texts(&texts, &prepare, held, size);
        while held < size {
            let batch = feed.take(BATCH);
            held += batch.len() as u64;
            let before = Instant::now();
            let more = contender.take(batch)?;
            verdicts += before.elapsed();
            taken =
                Taken { candidates: taken.candidates + more.candidates, copies: taken.copies + more.copies };
        }
        let (seconds, count) = (started.elapsed().as_secs_f64(), (held - from) as f64);
        let (used, own) = (cpu() - cpu_before, own_cpu() - own_before);
        let resident = status("VmRSS:").map(|kib| kib - texts.bytes() as f64 / 1024.0);
        drop(texts);
        contender.flush()?;
        let disk = contender.directory().map(settled_bytes).transpose()?;
        let mut waits = Vec::new();
        let mut feed = Feed::start(&stream, &prepare, size, size + LOOK_UPS);
        for article in feed.take(LOOK_UPS as usize) {
            let before = Instant::now();
            std::hint::black_box(contender.look_up(&article)?);
            waits.push(before.elapsed().as_secs_f64() * 1e3);
        }
        waits.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
        let row = json!({
            "name": format!("{title}, {size}"),
            "contender": title,
            "articles": size,
            "articles_per_s": (count / seconds).round(),
            "verdict_us": rounded(verdicts.as_secs_f64() * 1e6 / count, 1),
            "own_cpu_us": rounded(own * 1e6 / count, 1),
            "cpu_us": rounded(used * 1e6 / count, 1),
            "candidates": (taken.candidates > 0).then(|| rounded(taken.candidates as f64 / count, 2)),
            "copies": rounded(taken.copies as f64 / count, 3),
            "look_up_p50_ms": rounded(at(0.5), 4),
            "look_up_p99_ms": rounded(at(0.99), 4),
            "disk_kib": disk.map(|disk| rounded(disk as f64 / 1024.0 / held as f64, 3)),
            "resident_mb": resident.map(|kib| (kib * 1024.0 / 1e6).round()),
        });
        eprintln!("  {title}: {size}: {:.0} articles/s", count / seconds);
        println!("{row}");
    }
    Ok(())
}

pub fn print(rows: &[Value]) {
    println!(
        "\n{:<40} {:>9} {:>10} {:>8} {:>8} {:>8} {:>6} {:>7} {:>9} {:>9} {:>8} {:>7}",
        "check and insert, 400 words",
        "articles",
        "articles/s",
        "verdict",
        "own CPU",
        "CPU",
        "cand.",
        "copies",
        "p50 ms",
        "p99 ms",
        "KiB each",
        "RSS MB"
    );
    let text = |value: &Value| value.as_f64().map_or("–".to_owned(), |number| format!("{number}"));
    for row in rows {
        println!(
            "{:<40} {:>9} {:>10} {:>8} {:>8} {:>8} {:>6} {:>7} {:>9} {:>9} {:>8} {:>7}",
            row["contender"].as_str().unwrap_or_default(),
            text(&row["articles"]),
            text(&row["articles_per_s"]),
            text(&row["verdict_us"]),
            text(&row["own_cpu_us"]),
            text(&row["cpu_us"]),
            text(&row["candidates"]),
            text(&row["copies"]),
            text(&row["look_up_p50_ms"]),
            text(&row["look_up_p99_ms"]),
            text(&row["disk_kib"]),
            text(&row["resident_mb"]),
        );
    }
    let rate = |contender: &Value, articles: u64| {
        let same = |row: &&Value| row["contender"] == *contender && row["articles"] == articles;
        rows.iter().find(same).and_then(|row| row["articles_per_s"].as_f64())
    };
    for row in rows.iter().filter(|row| row["articles"] == FULL[2]) {
        if let (Some(before), Some(after)) =
            (rate(&row["contender"], FULL[1]), rate(&row["contender"], FULL[2]))
        {
            let fall = 100.0 * (1.0 - after / before);
            println!(
                "{}: {fall:.0} % slower from {} to {} articles",
                row["contender"].as_str().unwrap_or_default(),
                FULL[1],
                FULL[2]
            );
        }
    }
    println!(
        "verdict: wall-clock µs per article of the one thread that judges and applies; own CPU: CPU µs of that thread, the\n\
         better figure on a busy machine; CPU: µs on all cores, including fingerprints and background work; cand.:\n\
         candidates per article; copies: fraction judged a copy (0.2 of the stream are copies); p50, p99: one lookup;\n\
         RSS: the process without the texts that were generated beforehand."
    );
}

pub fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

/// The bytes of all files in a directory once compaction has ended, or after a minute.
fn settled_bytes(directory: &Path) -> Outcome<u64> {
    let mut before = bytes(directory)?;
    for _ in 0..30 {
        std::thread::sleep(Duration::from_secs(2));
        let now = bytes(directory)?;
        if now == before {
            break;
        }
        before = now;
    }
    Ok(before)
}

/// Bytes of all files in a directory.
pub fn bytes(directory: &Path) -> Outcome<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(directory)? {
        // Compaction may delete a file at any time.
        sum += entry?.metadata().map_or(0, |metadata| metadata.len());
    }
    Ok(sum)
}

/// A field of `/proc/self/status` in KiB; none on systems without it.
pub fn status(key: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix(key))?.split_whitespace().next()?.parse().ok()
}

/// CPU seconds of this thread; 0 on systems without `/proc`.
fn own_cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// CPU seconds of this process over all threads; 0 on systems without `/proc`.
pub fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
