//! Check-and-insert from raw text, at several sizes of the store.
//!
//! Each contender runs in a process of its own, one after the other, so that its memory is its own. There the store is
//! filled as the program would: fingerprints on all cores, verdicts in order on one thread, 2,000 articles a batch.
//! Just before each size a stretch of the stream is timed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::contenders::{self, Contender, Gaoya, Outcome, Taken, Txtfp};
use crate::feed::{Feed, Texts};
use crate::stream::Stream;

/// Articles of a batch: what the stage on the bus takes together.
const BATCH: usize = 2000;
/// Look-ups that are timed one by one.
const LOOK_UPS: u64 = 4000;
pub const QUICK: &[u64] = &[10_000, 100_000];
pub const FULL: &[u64] = &[10_000, 100_000, 1_000_000];

const CONTENDERS: &[(&str, &str)] = &[
    ("memory", "samestory in memory"),
    #[cfg(feature = "disk")]
    ("rocks", "samestory in RocksDB, log on the bus"),
    #[cfg(feature = "disk")]
    ("rocks-log", "samestory in RocksDB, own log"),
    ("txtfp", "txtfp and its index in memory"),
    ("gaoya", "gaoya and its index in memory"),
];

/// Runs every contender, or those named, and gives their rows.
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

/// In the contender's own process: one line of JSON for each size. A directory that is named is kept, and what it
/// holds already is not made again.
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
        // The last fifth of a small store and the last twentieth of a large one.
        let timed = (size / 5).min(50_000).min(size - held.min(size));
        let mut said = Instant::now();
        let mut feed = Feed::start(&stream, &prepare, held, size - timed);
        while held < size - timed {
            let batch = feed.take(BATCH);
            held += batch.len() as u64;
            contender.take(batch)?;
            if said.elapsed() > Duration::from_secs(10) {
                said = Instant::now();
                eprintln!("  {title}: {held} of {size}, {:.0} s", start.elapsed().as_secs_f64());
            }
        }
        let texts = Arc::new(Texts::new(&stream, held, size));
        let (began, from, cpu_before, own_before) = (Instant::now(), held, cpu(), own_cpu());
        let (mut taken, mut verdicts) = (Taken::default(), Duration::ZERO);
        let mut feed = Feed::made(&texts, &prepare, held, size);
        while held < size {
            let batch = feed.take(BATCH);
            held += batch.len() as u64;
            let before = Instant::now();
            let more = contender.take(batch)?;
            verdicts += before.elapsed();
            taken =
                Taken { candidates: taken.candidates + more.candidates, copies: taken.copies + more.copies };
        }
        let (seconds, count) = (began.elapsed().as_secs_f64(), (held - from) as f64);
        let (used, own) = (cpu() - cpu_before, own_cpu() - own_before);
        let resident = status("VmRSS:").map(|kib| kib - texts.bytes() as f64 / 1024.0);
        drop(texts);
        contender.settle()?;
        let disk = contender.directory().map(settled).transpose()?;
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
                "{}: from {} to {} articles it gets slower by {fall:.0} %",
                row["contender"].as_str().unwrap_or_default(),
                FULL[1],
                FULL[2]
            );
        }
    }
    println!(
        "verdict: µs that pass while the one thread that judges and applies is at it; own CPU: µs that this thread computes\n\
         meanwhile, on a machine with other work the better figure; CPU: µs on all cores, fingerprints and work in the\n\
         background included; cand.: documents compared with; copies: share called so, of 0.2 that are; p50, p99: one\n\
         look-up; RSS: the process without the texts that were made beforehand."
    );
}

fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

/// Bytes of all files in a directory once work in the background has ended; after a minute, as they are.
fn settled(directory: &Path) -> Outcome<u64> {
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
fn bytes(directory: &Path) -> Outcome<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(directory)? {
        // A file may go away while it is looked at.
        sum += entry?.metadata().map_or(0, |metadata| metadata.len());
    }
    Ok(sum)
}

/// A figure of this process in KiB, where the system tells.
fn status(key: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix(key))?.split_whitespace().next()?.parse().ok()
}

/// Seconds of processor time that this thread has used; 0 where the system does not tell.
fn own_cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Seconds of processor time that this process has used, all threads together; 0 where the system does not tell.
pub fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
