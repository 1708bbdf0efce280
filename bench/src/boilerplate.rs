//! Copies of one text, such as a cookie wall or an error page that a crawler sends again and again. The cost
//! of a copy must not depend on how many there are.

use std::path::Path;
use std::time::Instant;

use samestory_engine::index::Durability;
use serde_json::{Value, json};

use crate::contenders::{self, Contender, Outcome};
use crate::stream::Stream;

/// Articles per batch, as in the Kafka stage.
const BATCH: u64 = 2000;

/// Measures the last batch before each size, in a store on disk.
pub fn rows(full: bool) -> Outcome<Vec<Value>> {
    let directory = std::env::temp_dir().join(format!("samestory-bench-copies-{}", std::process::id()));
    let sizes: &[u64] = if full { &[2_000, 10_000, 50_000, 100_000] } else { &[2_000, 10_000, 50_000] };
    let rows = copies(&directory, sizes);
    std::fs::remove_dir_all(&directory)?;
    rows
}

fn copies(directory: &Path, sizes: &[u64]) -> Outcome<Vec<Value>> {
    let mut text = String::new();
    Stream::new().write(0, &mut text);
    let mut contender = contenders::rocks(directory, Durability::Changelog { partition: 0 })?;
    let prepare = contender.prepare();
    let (mut rows, mut held) = (Vec::new(), 0);
    for &size in sizes {
        let mut micros = 0.0;
        while held < size {
            let to = size.min(held + BATCH);
            let batch: Vec<_> = (held..to).map(|n| prepare(n, &text)).collect();
            let started = Instant::now();
            contender.take(batch)?;
            micros = started.elapsed().as_secs_f64() * 1e6 / (to - held) as f64;
            held = to;
        }
        let memory = contender.store().reader().posting_memory();
        rows.push(json!({
            "name": format!("copies of one text, {size}"),
            "articles": size,
            "verdict_us": micros.round(),
            "postings_kib": memory / 1024,
        }));
    }
    Ok(rows)
}

pub fn print(rows: &[Value]) {
    println!("\n{:<40} {:>10} {:>20}", "copies of one text", "µs each", "KiB of postings");
    for row in rows {
        let name = row["name"].as_str().unwrap_or_default();
        println!("{name:<40} {:>10} {:>20}", row["verdict_us"], row["postings_kib"]);
    }
}
