//! Latency of the query API over HTTP, while the process is idle and while the store is filled at full speed
//! on all cores; and how much the queries slow down the filling.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use samestory::config::{Config, Settings};
use samestory::serve::{Library, serve_queries};
use samestory::status::StatusBoard;
use samestory_engine::index::{Durability, StoreRegistry};
use serde_json::{Value, json};

use crate::contenders::{self, Contender, Outcome};
use crate::feed::Feed;
use crate::stream::Stream;

const BATCH: usize = 500;
/// Articles inserted without queries, for comparison.
const ALONE: u64 = 20_000;
/// How long each kind of query is repeated.
const QUERY_TIME: Duration = Duration::from_secs(20);

/// The latencies of one kind of query, in milliseconds.
struct Latencies {
    question: &'static str,
    waits: Vec<f64>,
}

/// One row per kind of query, idle and working.
pub fn rows(full: bool) -> Outcome<Vec<Value>> {
    let size = if full { 1_000_000 } else { 100_000 };
    let directory = std::env::temp_dir().join(format!("samestory-bench-query-{}", std::process::id()));
    let rows = measure(&directory, size);
    std::fs::remove_dir_all(&directory)?;
    rows
}

fn measure(directory: &std::path::Path, size: u64) -> Outcome<Vec<Value>> {
    let mut ours = contenders::rocks(directory, Durability::Changelog { partition: 0 })?;
    let registry = Arc::new(StoreRegistry::default());
    registry.set_partition_count(1);
    let config = Config::try_from(Settings::default())?;
    let listen: SocketAddr = "127.0.0.1:0".parse()?;
    let guard = Arc::new(StatusBoard::new(Default::default())).guard("query");
    let address = serve_queries(listen, Library::new(config, Arc::clone(&registry)), guard)?;
    let stream = Arc::new(Stream::new());
    let prepare = ours.prepare();
    // Far more than will be taken; the rest is dropped.
    let mut feed = Feed::start(&stream, &prepare, 0, size * 2 + 10 * ALONE);
    let mut held = 0;
    let mut reported = Instant::now();
    while held < size {
        let batch = feed.take(BATCH);
        held += batch.len() as u64;
        ours.take(batch)?;
        if reported.elapsed() > Duration::from_secs(10) {
            reported = Instant::now();
            eprintln!("  filling: {held} of {size}");
        }
    }
    let started = Instant::now();
    let until = held + ALONE;
    while held < until {
        let batch = feed.take(BATCH);
        held += batch.len() as u64;
        ours.take(batch)?;
    }
    let alone = ALONE as f64 / started.elapsed().as_secs_f64();
    let shown = registry.register(0, ours.store());
    let mut rows = Vec::new();
    for busy in [false, true] {
        let stop = Arc::new(AtomicBool::new(false));
        let client = {
            let (stream, stop) = (Arc::clone(&stream), Arc::clone(&stop));
            thread::spawn(move || {
                let latencies = query(address, &stream, size);
                stop.store(true, Ordering::Relaxed);
                latencies.map_err(|error| error.to_string())
            })
        };
        let (started, mut taken) = (Instant::now(), 0);
        while !stop.load(Ordering::Relaxed) {
            if busy {
                let batch = feed.take(BATCH);
                taken += batch.len() as u64;
                ours.take(batch)?;
            } else {
                thread::sleep(Duration::from_millis(5));
            }
        }
        let rate = taken as f64 / started.elapsed().as_secs_f64();
        for Latencies { question, mut waits } in client.join().map_err(|_| "the client thread panicked")?? {
            waits.sort_unstable_by(f64::total_cmp);
            let at =
                |share: f64| (waits[((waits.len() - 1) as f64 * share) as usize] * 100.0).round() / 100.0;
            rows.push(json!({
                "name": format!("{question}, {size}, {}", if busy { "working" } else { "idle" }),
                "question": question,
                "articles": size,
                "working": busy,
                "questions": waits.len(),
                "p50_ms": at(0.5),
                "p99_ms": at(0.99),
                "max_ms": at(1.0),
                "articles_per_s": busy.then(|| rate.round()),
                "articles_per_s_alone": alone.round(),
            }));
        }
    }
    drop(shown);
    Ok(rows)
}

/// Sends queries one after the other, each kind for a while.
fn query(address: SocketAddr, stream: &Stream, size: u64) -> Outcome<Vec<Latencies>> {
    let mut seed = 7_u64;
    let mut chance = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut all = Vec::new();
    for question in ["similar", "check"] {
        let (started, mut waits) = (Instant::now(), Vec::new());
        while started.elapsed() < QUERY_TIME {
            let request = if question == "similar" {
                let n = chance(size);
                let path = format!("/api/v1/articles/site-{}%2Farticle-{n:08}/similar", n % 7);
                format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            } else {
                let mut text = String::new();
                // Articles that are not in the store; some are copies of one that is.
                stream.write(size * 3 + chance(size), &mut text);
                let body = json!({"language": "en", "body": text}).to_string();
                let length = body.len();
                format!(
                    "POST /api/v1/check HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
                )
            };
            let before = Instant::now();
            let mut connection = TcpStream::connect(address)?;
            connection.write_all(request.as_bytes())?;
            let mut answer = Vec::new();
            connection.read_to_end(&mut answer)?;
            waits.push(before.elapsed().as_secs_f64() * 1e3);
            if !answer.starts_with(b"HTTP/1.1 200") {
                return Err(String::from_utf8_lossy(&answer).into_owned().into());
            }
            // At most 200 queries per second: more than a person sends, but a service may.
            thread::sleep(Duration::from_millis(5));
        }
        all.push(Latencies { question, waits });
    }
    Ok(all)
}

pub fn print(rows: &[Value]) {
    println!(
        "\n{:<12} {:>9} {:<9} {:>9} {:>8} {:>8} {:>8} {:>12} {:>12}",
        "query", "articles", "stage", "queries", "p50 ms", "p99 ms", "max ms", "articles/s", "alone"
    );
    let text = |value: &Value| value.as_f64().map_or("–".to_owned(), |number| format!("{number}"));
    for row in rows {
        println!(
            "{:<12} {:>9} {:<9} {:>9} {:>8} {:>8} {:>8} {:>12} {:>12}",
            row["question"].as_str().unwrap_or_default(),
            text(&row["articles"]),
            if row["working"] == true { "working" } else { "idle" },
            text(&row["questions"]),
            text(&row["p50_ms"]),
            text(&row["p99_ms"]),
            text(&row["max_ms"]),
            text(&row["articles_per_s"]),
            text(&row["articles_per_s_alone"]),
        );
    }
    println!(
        "queries one after the other over HTTP, each on a new connection, while articles are generated, fingerprinted,\n\
         judged and applied on all cores (working) or not (idle); articles/s: judged during the queries; alone: without them"
    );
}
