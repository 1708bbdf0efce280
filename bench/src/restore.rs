//! Restores a store on disk from a changelog: record by record, as a store that has fallen behind does, and
//! from an empty directory, where posting lists are built at the end.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use samestory_engine::Deduplicator;
use samestory_engine::engine::Batch;
use samestory_engine::index::{Budget, Change, Durability, Rocks, RocksOptions, Store};
use serde_json::{Value, json};

use crate::contenders::{self, Contender, Outcome};
use crate::feed::Feed;
use crate::store::cpu;
use crate::stream::Stream;

/// Records per batch, as in the stage.
const CHUNK: usize = 2000;
const AHEAD: Durability = Durability::Changelog { partition: 0 };

/// The key and value of a changelog record.
type Record = (Vec<u8>, Option<Vec<u8>>);

/// Rounds of each way of restoring, in turn; the best of each counts.
const ROUNDS: usize = 3;

/// Measures both ways of restoring.
pub fn rows(articles: u64) -> Outcome<Vec<Value>> {
    let log = log(articles)?;
    eprintln!("restoring {} records", log.len());
    let options = RocksOptions::new(contenders::options()?.schemes, AHEAD, Budget::default());
    let directory = std::env::temp_dir().join(format!("samestory-bench-{}", std::process::id()));
    let mut ways = [("record by record", false), ("from nothing", true)].map(|way| (way, f64::MAX, f64::MAX));
    for _ in 0..ROUNDS {
        for ((_, from_nothing), least_seconds, least_cpu) in &mut ways {
            let (started, cpu_before) = (Instant::now(), cpu());
            restore(&directory, &options, &log, *from_nothing)?;
            *least_seconds = least_seconds.min(started.elapsed().as_secs_f64());
            *least_cpu = least_cpu.min(cpu() - cpu_before);
            std::fs::remove_dir_all(&directory)?;
        }
    }
    let row = |((name, _), seconds, used): ((&str, bool), f64, f64)| {
        json!({
            "name": format!("restore {name}, {articles}"),
            "articles": articles,
            "records": log.len(),
            "articles_per_s": (articles as f64 / seconds).round(),
            "cpu_us": (used * 1e7 / articles as f64).round() / 10.0,
        })
    };
    Ok(ways.map(row).to_vec())
}

pub fn print(rows: &[Value]) {
    println!("\n{:<40} {:>10} {:>10} {:>12}", "changelog → store", "records", "articles/s", "CPU µs each");
    for row in rows {
        println!(
            "{:<40} {:>10} {:>10} {:>12}",
            row["name"].as_str().unwrap_or_default(),
            row["records"],
            row["articles_per_s"],
            row["cpu_us"]
        );
    }
}

/// The changelog that a stage would have written for these articles, after compaction.
fn log(articles: u64) -> Outcome<Vec<Record>> {
    let mut dedup = Deduplicator::in_memory(contenders::options()?);
    let (stream, prepare) = (Arc::new(Stream::new()), contenders::memory()?.prepare());
    let mut feed = Feed::start(&stream, &prepare, 0, articles);
    let mut newest: BTreeMap<Vec<u8>, (usize, Option<Vec<u8>>)> = BTreeMap::new();
    let (mut held, mut at) = (0, 0);
    while held < articles {
        let items = feed.take(500);
        held += items.len() as u64;
        let plan = dedup.run(Batch { items, ..Batch::default() })?;
        for change in &plan.changes {
            let (key, value) = change.encode();
            at += 1;
            newest.insert(key, (at, value));
        }
    }
    let mut log: Vec<(usize, Record)> =
        newest.into_iter().map(|(key, (at, value))| (at, (key, value))).collect();
    log.sort_unstable();
    Ok(log.into_iter().map(|(_, record)| record).collect())
}

fn restore(directory: &Path, options: &RocksOptions, log: &[Record], from_nothing: bool) -> Outcome<()> {
    let mut store = match from_nothing {
        true => Rocks::refill(directory, options)?,
        false => Rocks::open(directory, options)?,
    };
    let attestor = store.attestor().ok_or("the store follows a changelog")?;
    for records in log.chunks(CHUNK) {
        let changes: Result<Vec<Change>, _> =
            records.iter().map(|(key, value)| Change::decode(key, value.as_deref())).collect();
        store.apply_changes(&changes?, &attestor.attest(0))?;
    }
    if from_nothing {
        drop(store);
        store = Rocks::reband(directory, options, &mut |_| ControlFlow::Continue(()))?;
    }
    store.flush()?;
    Ok(())
}
