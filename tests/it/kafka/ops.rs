//! The stage as operators' tools see it: probes, readiness with its reasons, metrics; and clients that behave badly.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use samestory::metrics::{Kind, METRICS};
use samestory_engine::text::language::LANGUAGES;
use serde_json::{Value, json};

use super::broker::{breakable, shared};
use super::bus::Record;
use super::stage::{Bench, PATIENCE, Running};
use crate::web::{ask, get};

pub(super) fn readiness(address: &str) -> (u16, Value) {
    let (status, body) = get(address, "/readyz").unwrap();
    (status, serde_json::from_str(&body).unwrap())
}

pub(super) fn reasons(answer: &Value) -> BTreeSet<String> {
    let reasons = answer["reasons"].as_array().unwrap();
    reasons.iter().map(|reason| reason["reason"].as_str().unwrap().to_owned()).collect()
}

/// Waits until an answer of `/readyz` is accepted.
fn wait_until(running: &Running, address: &str, what: &str, will_do: impl Fn(u16, &Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        // The log says why a process has ended.
        let Some((status, body)) = get(address, "/readyz") else {
            panic!("no answer while waiting until it is {what}: {}", running.log());
        };
        let answer = serde_json::from_str(&body).unwrap();
        if will_do(status, &answer) {
            return answer;
        }
        assert!(Instant::now() < deadline, "never {what}, but {answer}; {}", running.log());
        thread::sleep(Duration::from_millis(20));
    }
}

fn wait_until_ready(running: &Running, address: &str) {
    let answer = wait_until(running, address, "ready", |status, _| status == 200);
    assert_eq!(answer, json!({"ready": true, "reasons": []}));
}

/// Every sample of a scrape: name, labels and value.
pub(super) fn scrape(address: &str) -> Vec<(String, String, f64)> {
    let (status, text) = get(address, "/metrics").unwrap();
    assert_eq!(status, 200);
    let sample = |line: &str| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        (name.to_owned(), labels.trim_end_matches('}').to_owned(), value.parse().unwrap())
    };
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(sample).collect()
}

pub(super) fn sum(samples: &[(String, String, f64)], name: &str, label: &str) -> f64 {
    let these = samples.iter().filter(|(found, labels, _)| found == name && labels.contains(label));
    these.map(|(_, _, value)| value).sum()
}

fn article(id: &str, language: &str, words: usize) -> Record {
    let text: Vec<String> = (0..words).map(|at| format!("{id}w{at}")).collect();
    let value = json!({"id": id, "language": language, "body": text.join(" ")}).to_string();
    Record { partition: Some(0), timestamp: Some(1_772_000_000_000), ..Record::new(id, &value) }
}

#[test]
fn a_stage_without_its_broker_is_live_and_reports_why_it_is_not_ready() {
    let broker = breakable();
    let bench = Bench::new(&broker, "probes", "", "");
    bench.produce(&[article("a", "en", 60)]);
    broker.kill();
    let mut running = bench.run(&[]);
    let address = running.address();
    assert_eq!(get(&address, "/healthz").unwrap().0, 200);
    let (status, answer) = readiness(&address);
    assert_eq!((status, reasons(&answer)), (503, BTreeSet::from(["starting".to_owned()])));
    broker.restart();
    wait_until_ready(&running, &address);
    bench.wait_for(&["unique"], 1, &running);
    broker.kill();
    wait_until(&running, &address, "aware that the broker is away", |status, answer| {
        status == 503 && reasons(answer).contains("broker-away")
    });
    assert_eq!(get(&address, "/healthz").unwrap().0, 200, "a restart would not bring the broker back");
    broker.restart();
    wait_until_ready(&running, &address);
    assert!(running.stop().success());
}

#[cfg(feature = "faults")]
#[test]
fn readiness_reports_the_progress_of_a_restore() {
    let bench = Bench::new(shared(), "restore-told", "", "[topics]\npartitions = 1\n");
    let articles: Vec<Record> = (0..3000).map(|n| article(&format!("a{n}"), "en", 8)).collect();
    bench.produce(&articles);
    let running = bench.run(&[]);
    bench.wait_for(&["unique", "near"], articles.len(), &running);
    assert!(running.stop().success());
    std::fs::remove_dir_all(bench.dir.join("state")).unwrap();
    let mut running = bench.run_with(&[], &[("SAMESTORY_SLEEP_AT", "restore:2:4000")]);
    let address = running.address();
    let answer = wait_until(&running, &address, "restoring", |_, answer| {
        let mut reasons = answer["reasons"].as_array().unwrap().iter();
        reasons.any(|reason| reason["reason"] == "restoring" && reason["records"].as_u64() > Some(0))
    });
    let restoring = answer["reasons"].as_array().unwrap();
    let restoring = restoring.iter().find(|reason| reason["reason"] == "restoring").unwrap();
    assert_eq!((&restoring["partition"], answer["ready"].as_bool()), (&json!(0), Some(false)));
    assert!(restoring["bytes"].as_u64() > restoring["records"].as_u64(), "{restoring}");
    assert!((1.0..100.0).contains(&restoring["percent"].as_f64().unwrap()), "{restoring}");
    assert!(restoring["seconds_left"].is_number(), "{restoring}");
    let samples = scrape(&address);
    let share = sum(&samples, "samestory_restore_progress_ratio", "partition=\"0\"");
    assert!(share > 0.0 && share < 1.0, "{share}");
    assert_eq!(sum(&samples, "samestory_restores_total", ""), 1.0);
    wait_until_ready(&running, &address);
    assert!(sum(&scrape(&address), "samestory_restored_records_total", "") >= 3000.0);
    assert!(running.stop().success());
}

#[test]
fn article_content_adds_no_series_and_counters_are_right() {
    const INVENTED: usize = 2000;
    let bench = Bench::new(shared(), "counted", "", "[topics]\npartitions = 1\n");
    let mut running = bench.run(&[]);
    let address = running.address();
    wait_until_ready(&running, &address);
    bench.produce(&[article("first", "x-first", 60), article("again", "en", 60)]);
    bench.produce(&[Record { partition: Some(0), ..Record::new("poison", "not json") }]);
    bench.wait_for(&["unique", "near", "dead"], 3, &running);
    let series = |samples: &[(String, String, f64)]| -> BTreeSet<(String, String)> {
        let counted = samples.iter().filter(|(name, _, _)| name.ends_with("_total"));
        counted.map(|(name, labels, _)| (name.clone(), labels.clone())).collect()
    };
    let before = series(&scrape(&address));
    let invented: Vec<Record> =
        (0..INVENTED).map(|n| article(&format!("i{n}"), &format!("x-{n}\"}} 1\nevil{n}"), 4)).collect();
    bench.produce(&invented);
    bench.wait_for(&["unique", "near", "dead"], 3 + invented.len(), &running);
    let deadline = Instant::now() + PATIENCE;
    let samples = loop {
        let samples = scrape(&address);
        let lags: Vec<f64> =
            samples.iter().filter(|(name, _, _)| name == "samestory_lag_records").map(|s| s.2).collect();
        if sum(&samples, "samestory_articles_total", "") == (INVENTED + 2) as f64 && lags == [0.0, 0.0] {
            break samples;
        }
        assert!(Instant::now() < deadline, "{samples:#?}");
        thread::sleep(Duration::from_millis(200));
    };
    // Short texts have a flag, which is one series per known language.
    let new: BTreeSet<_> = series(&samples).difference(&before).cloned().collect();
    assert!(new.len() <= 3, "{INVENTED} invented languages added {new:?}");
    let known: BTreeSet<&str> =
        LANGUAGES.iter().map(|row| row.lang.code()).chain(["und", "shared"]).collect();
    for (_, labels, _) in samples.iter().filter(|(_, labels, _)| labels.contains("language=\"")) {
        let language = labels.split_once("language=\"").unwrap().1.split('"').next().unwrap();
        assert!(known.contains(language), "{labels}");
    }
    assert_eq!(sum(&samples, "samestory_dead_letters_total", "reason=\"undecodable\""), 1.0);
    assert_eq!(sum(&samples, "samestory_records_total", "role=\"route\""), (INVENTED + 3) as f64);
    assert_eq!(sum(&samples, "samestory_flags_total", "unknown-language"), (INVENTED + 1) as f64);
    assert!(sum(&samples, "samestory_transactions_total", "outcome=\"committed\"") > 2.0);
    assert_eq!(sum(&samples, "samestory_ready", ""), 1.0);
    // One age for each verdict; the dead letter has none.
    assert_eq!(sum(&samples, "samestory_verdict_age_seconds_count", ""), (INVENTED + 2) as f64);
    // Every article got a fingerprint, and no other record. A batch that is retried counts twice.
    assert!(sum(&samples, "samestory_fingerprints_total", "") >= (INVENTED + 2) as f64);
    // Every metric of the table is exported, except those that exist only during failures, those of `samestory webhook run`, and
    // those of `metrics.judged`.
    let found: BTreeMap<String, f64> = samples.into_iter().map(|(name, _, value)| (name, value)).collect();
    let sometimes = ["samestory_restore_progress_ratio", "samestory_state_events_total"];
    let elsewhere =
        |name: &str| name.starts_with("samestory_webhook_") || name.starts_with("samestory_judged_");
    for metric in METRICS.iter().filter(|metric| !sometimes.contains(&metric.name) && !elsewhere(metric.name))
    {
        let name = match metric.kind {
            Kind::Histogram(_) => format!("{}_count", metric.name),
            Kind::Counter | Kind::Gauge => metric.name.to_owned(),
        };
        assert!(found.contains_key(&name), "no {name} in a scrape");
    }
    assert!(running.stop().success());
}

#[cfg(feature = "faults")]
#[test]
fn operations_of_the_state_are_timed_batch_by_batch() {
    const ARTICLES: usize = 400;
    let bench = Bench::new(shared(), "timed", "", "[topics]\npartitions = 1\n");
    let mut running = bench.run_with(&[], &[("SAMESTORY_FLUSH_MS", "200")]);
    let address = running.address();
    // The first batch of a language finds no posting lists; those after it do.
    for copy in 0..2 {
        let articles: Vec<Record> = (0..ARTICLES / 2)
            .map(|at| Record {
                key: Some(format!("{copy}-{at}").into()),
                ..article(&format!("a{at}"), "en", 60)
            })
            .collect();
        bench.produce(&articles);
        bench.wait_for(&["unique", "near"], articles.len() * (copy + 1), &running);
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let samples = scrape(&address);
        let count = |operation: &str| {
            let label = format!("operation=\"{operation}\"");
            sum(&samples, "samestory_store_duration_seconds_count", &label)
        };
        let counts = ["read", "write", "flush"].map(count);
        if counts.iter().all(|&count| count >= 1.0) {
            // Fewer than articles: an operation is a batch.
            assert!(counts[0] < ARTICLES as f64 && counts[1] < ARTICLES as f64, "{counts:?}");
            assert!(sum(&samples, "samestory_fingerprints_total", "") >= ARTICLES as f64);
            break;
        }
        assert!(Instant::now() < deadline, "{counts:?}: {}", running.log());
        thread::sleep(Duration::from_millis(100));
    }
    assert!(running.stop().success());
}

/// Waits until a series of `samestory_judged_…` has this value; `None` if it must be absent.
fn wait_for_accuracy(running: &Running, address: &str, name: &str, expected: Option<f64>) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let samples = scrape(address);
        let label = "judged=\"pairs\"";
        let found = samples.iter().find(|(series, labels, _)| series == name && labels == label);
        let found = found.map(|(_, _, value)| *value);
        if found == expected {
            return;
        }
        assert!(Instant::now() < deadline, "{name} is {found:?}, not {expected:?}: {}", running.log());
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn accuracy_on_judged_articles_is_exported_and_follows_the_files() {
    let mut bench = Bench::without_topics(shared(), "judged", "", "");
    let (path, pairs) = (bench.dir.join("mine.ndjson"), bench.dir.join("mine.pairs.tsv"));
    bench.write("", &format!("[metrics]\njudged = {path:?}\n"));
    assert!(bench.samestory(&["topics", "--create"]).0.success());
    let (status, printed) = bench.samestory(&["run"]);
    assert_eq!(status.code(), Some(2), "{printed}");
    assert!(printed.contains("metrics.judged = ") && printed.contains("mine.ndjson"), "{printed}");

    let line = |id: &str, text: &str| {
        let words: Vec<String> = (0..80).map(|at| format!("{text}w{at}")).collect();
        format!("{}\n", json!({"id": id, "lang": "en", "body": words.join(" ")}))
    };
    std::fs::write(&path, line("a", "same") + &line("b", "same") + &line("c", "other")).unwrap();
    std::fs::write(&pairs, "id1\tid2\tlabel\na\tb\tsame\na\tc\tdifferent\n").unwrap();
    let mut running = bench.run(&[]);
    let address = running.address();
    wait_for_accuracy(&running, &address, "samestory_judged_recall_ratio", Some(1.0));
    wait_for_accuracy(&running, &address, "samestory_judged_precision_ratio", Some(1.0));
    wait_for_accuracy(&running, &address, "samestory_judged_labels", Some(2.0));
    // Somebody adds a pair that samestory misses.
    std::fs::write(&pairs, "id1\tid2\tlabel\na\tb\tsame\na\tc\tdifferent\nb\tc\tsame\n").unwrap();
    wait_for_accuracy(&running, &address, "samestory_judged_recall_ratio", Some(0.5));
    wait_for_accuracy(&running, &address, "samestory_judged_precision_ratio", Some(1.0));
    std::fs::remove_file(&path).unwrap();
    wait_for_accuracy(&running, &address, "samestory_judged_recall_ratio", None);
    assert!(running.log().contains("accuracy not measured: metrics.judged"), "{}", running.log());
    // The judged articles are apart from the bus, and their file is no condition of its work.
    bench.produce(&[article("a", "en", 60)]);
    bench.wait_for(&["unique"], 1, &running);
    assert_eq!(sum(&scrape(&address), "samestory_articles_total", ""), 1.0);
    assert!(running.stop().success());
}

// The pause was a constant of half a second.
#[test]
fn an_absent_broker_is_asked_again_after_the_pause_of_the_settings() {
    let broker = breakable();
    let bench = Bench::new(&broker, "patient", "", "[retry]\nbroker = [\"15s\", \"15s\"]\n");
    broker.kill();
    let mut running = bench.run(&[]);
    let address = running.address();
    running.wait_for_log("broker unreachable, retrying");
    let unreachable = Instant::now();
    broker.restart();
    wait_until_ready(&running, &address);
    assert!(unreachable.elapsed() > Duration::from_secs(14), "{:?}", unreachable.elapsed());
    assert!(running.stop().success());
}

#[test]
fn badly_behaved_clients_are_bounded_and_do_not_stop_verdicts() {
    let bench = Bench::new(shared(), "rude", "", "[topics]\npartitions = 1\n");
    let mut running = bench.run(&[]);
    let address = running.address();
    wait_until_ready(&running, &address);
    for (request, expected) in [
        ("GET /../../etc/passwd HTTP/1.1\r\nhost: s\r\nconnection: close\r\n\r\n".to_owned(), Some(404)),
        ("POST /healthz HTTP/1.1\r\nhost: s\r\nconnection: close\r\n\r\n".to_owned(), Some(405)),
        (format!("GET /{} HTTP/1.1\r\nhost: s\r\n\r\n", "x".repeat(100_000)), None),
        ("\0\x01nonsense\r\n\r\n".to_owned(), Some(400)),
    ] {
        let status = ask(&address, request.as_bytes()).map(|(status, _)| status);
        match expected {
            Some(_) => assert_eq!(status, expected, "{request:.40}"),
            None => assert!(status.is_none_or(|status| status >= 400), "{status:?}"),
        }
    }
    // A thousand clients that send nothing or half a request.
    let mut silent = Vec::new();
    for n in 0..1000 {
        if let Ok(mut stream) = TcpStream::connect(&address) {
            if n % 2 == 0 {
                let _half = stream.write_all(b"GET /heal");
            }
            silent.push(stream);
        }
    }
    let articles: Vec<Record> = (0..300).map(|n| article(&format!("a{n}"), "en", 60)).collect();
    bench.produce(&articles);
    bench.wait_for(&["unique", "near"], articles.len(), &running);
    // They are disconnected after a while, although none of them left by itself.
    let deadline = Instant::now() + PATIENCE;
    while get(&address, "/healthz").is_none() {
        assert!(Instant::now() < deadline, "nobody else is served: {}", running.log());
        thread::sleep(Duration::from_millis(200));
    }
    drop(silent);
    assert!(running.stop().success());
}

#[test]
fn a_port_in_use_is_reported_at_startup() {
    let bench = Bench::new(shared(), "taken", "", "");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let config = std::fs::read_to_string(bench.config()).unwrap();
    std::fs::write(bench.config(), config.replace("127.0.0.1:0", &address)).unwrap();
    let mut running = bench.run(&[]);
    assert_eq!(running.wait().code(), Some(2));
    let printed = running.log();
    assert!(printed.contains(&format!("http.listen = {address}")) && printed.contains("off"), "{printed}");
}
