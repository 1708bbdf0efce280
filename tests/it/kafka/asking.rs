//! The query API of a running stage: one process, and several that answer as one even while some of them do not respond.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::broker::shared;
use super::bus::Record;
use super::days::{articles, assert_each_judged_once, into_two_partitions, outputs};
use super::stage::{Bench, PATIENCE, Running};
use crate::serve::{ask_rudely, ask_slowly, fits};
use crate::web::ask;

/// In the order of `stage.languages`: with three partitions each language has its own.
const LANGUAGES: [&str; 3] = ["en", "de", "fr"];

fn body(story: usize) -> String {
    let word = |at: usize| (story * 1000 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    (0..80).map(|at| format!("w{}", word(at))).collect::<Vec<_>>().join(" ")
}

fn article(id: &str, language: &str, story: usize) -> Record {
    let value = json!({"id": id, "language": language, "title": id, "body": body(story)}).to_string();
    Record { partition: Some(0), timestamp: Some(1_772_000_000_000), ..Record::new(id, &value) }
}

/// Sends a request with the token and these extra header lines.
fn asked(address: &str, method: &str, path: &str, head: &str, body: &str) -> (u16, Value) {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer open sesame\r\n\
         content-length: {length}\r\n{head}\r\n{body}"
    );
    let (status, answer) = ask(address, request.as_bytes()).expect("an answer");
    (status, serde_json::from_str(&answer).unwrap())
}

fn get(address: &str, path: &str) -> (u16, Value) {
    asked(address, "GET", path, "", "")
}

/// Repeats a request until the answer is accepted.
fn ask_until(address: &str, path: &str, running: &Running, will_do: impl Fn(u16, &Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (status, answer) = get(address, path);
        if will_do(status, &answer) {
            return answer;
        }
        assert!(Instant::now() < deadline, "{path}: {status} {answer}; {}", running.log());
        thread::sleep(Duration::from_millis(100));
    }
}

/// Three processes that are peers of each other, and a fourth address where nobody answers.
fn three<'b>(bench: &Bench<'b>) -> (Vec<Running>, Vec<String>) {
    std::fs::write(bench.dir.join("token"), "open sesame").unwrap();
    let ports: Vec<TcpListener> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<String> = ports.iter().map(|port| port.local_addr().unwrap().to_string()).collect();
    drop(ports);
    let token = format!("http.token={{ file = {:?} }}", bench.dir.join("token"));
    let peers = format!("http.peers={addresses:?}");
    let start = |(at, address): (usize, &String)| {
        let query = format!("http.query={address}");
        let set = ["--set", &query, "--set", &peers, "--set", &token, "--set", "http.peer_timeout=500ms"];
        bench.run_as(&format!("p{at}"), &set)
    };
    let mut running: Vec<Running> = addresses.iter().enumerate().map(start).collect();
    running.iter_mut().for_each(|running| drop(running.query()));
    (running, addresses)
}

#[test]
fn three_processes_answer_as_one_and_name_those_that_do_not() {
    let languages = format!("languages = {LANGUAGES:?}\n");
    let bench = Bench::new(shared(), "asking", &languages, "[topics]\npartitions = 3\n");
    let mut records = Vec::new();
    for (at, language) in LANGUAGES.iter().enumerate() {
        records.push(article(&format!("{language}/first"), language, at * 10));
        records.push(article(&format!("{language}/copy"), language, at * 10));
        records.push(article(&format!("{language}/other"), language, at * 10 + 1));
    }
    bench.produce(&records);
    let (mut running, addresses) = three(&bench);
    bench.wait_for(&["unique", "near"], records.len(), &running[0]);
    // Find the owner of an article: only that process knows it without forwarding.
    let alone = |address: &str, path: &str| asked(address, "GET", path, "samestory-forwarded: 1\r\n", "");
    let deadline = Instant::now() + PATIENCE;
    let owners: BTreeMap<&str, usize> = loop {
        let owner = |language: &&'static str| {
            let path = format!("/api/v1/articles/{language}%2Ffirst");
            let owners: Vec<usize> = (0..3).filter(|&at| alone(&addresses[at], &path).0 == 200).collect();
            (owners.len() == 1).then(|| (*language, owners[0]))
        };
        let owners: Option<BTreeMap<&str, usize>> = LANGUAGES.iter().map(owner).collect();
        let apart = |owners: &BTreeMap<&str, usize>| {
            owners.values().collect::<std::collections::BTreeSet<_>>().len() == 3
        };
        if let Some(owners) = owners.filter(apart) {
            break owners;
        }
        assert!(Instant::now() < deadline, "{}", running[0].log());
        thread::sleep(Duration::from_millis(200));
    };
    let (_, document) = get(&addresses[0], "/api/v1/openapi.json");
    for language in LANGUAGES {
        let copy = get(&addresses[0], &format!("/api/v1/articles/{language}%2Fcopy")).1;
        let cluster = copy["cluster_id"].as_str().unwrap().replace('/', "%2F");
        for (path, kind) in [
            (format!("/api/v1/articles/{language}%2Fcopy"), "/api/v1/articles/{id}"),
            (format!("/api/v1/articles/{language}%2Fcopy/similar"), "/api/v1/articles/{id}/similar"),
            (format!("/api/v1/articles/{language}%2Fcopy/fingerprint"), "/api/v1/articles/{id}/fingerprint"),
            (format!("/api/v1/clusters/{cluster}"), "/api/v1/clusters/{id}"),
        ] {
            let answers: Vec<(u16, Value)> = addresses.iter().map(|address| get(address, &path)).collect();
            assert_eq!(answers[0].0, 200, "{path}: {answers:?}");
            assert!(answers.iter().all(|answer| *answer == answers[0]), "{path}: {answers:?}");
            fits(&document, kind, "get", &answers[0]);
        }
        for address in &addresses {
            let similar = get(address, &format!("/api/v1/articles/{language}%2Fcopy/similar")).1;
            assert_eq!(similar["similar"][0]["id"], format!("{language}/first"), "{similar}");
            let story = LANGUAGES.iter().position(|other| *other == language).unwrap() * 10;
            let text = json!({"language": language, "body": body(story)}).to_string();
            let checked = asked(address, "POST", "/api/v1/check", "", &text);
            assert_eq!((checked.0, &checked.1["verdict"]), (200, &json!("exact-duplicate")), "{checked:?}");
            let text = json!({"language": language, "body": body(99)}).to_string();
            let checked = asked(address, "POST", "/api/v1/check", "", &text);
            assert_eq!((checked.0, &checked.1["verdict"]), (200, &json!("unique")), "{checked:?}");
        }
    }
    // The two articles are in two processes.
    let pair = json!({"a": {"id": "en/first"}, "b": {"id": "de/first"}}).to_string();
    let explained = asked(&addresses[owners["fr"]], "POST", "/api/v1/explain", "", &pair);
    fits(&document, "/api/v1/explain", "post", &explained);
    assert_eq!((explained.0, &explained.1["relation"]), (200, &json!("different")), "{explained:?}");
    assert!(explained.1["passages_reason"].as_str().unwrap().contains(".raw, partition 0"), "{explained:?}");
    let nobody = get(&addresses[0], "/api/v1/articles/nobody");
    assert_eq!((nobody.0, &nobody.1["code"]), (404, &json!("unknown")), "all were asked: {nobody:?}");

    // One process is stopped, but the kernel still accepts its connections.
    let silent = owners["de"];
    let others: Vec<usize> = (0..3).filter(|&at| at != silent).collect();
    running[silent].signal("STOP");
    for &at in &others {
        let began = Instant::now();
        let gone = get(&addresses[at], "/api/v1/articles/de%2Ffirst");
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        assert_eq!((gone.0, &gone.1["code"]), (503, &json!("incomplete")), "{gone:?}");
        assert_eq!(gone.1["unanswered"], json!([addresses[silent]]), "{gone:?}");
        assert_eq!(gone.1["absent_partitions"], json!([2]), "{gone:?}");
        fits(&document, "/api/v1/articles/{id}", "get", &gone);
        let nobody = get(&addresses[at], "/api/v1/articles/nobody");
        assert_eq!(nobody.0, 503, "it may be where nobody could be asked: {nobody:?}");
        for language in ["en", "fr"] {
            let there = get(&addresses[at], &format!("/api/v1/articles/{language}%2Ffirst"));
            assert_eq!(there.0, 200, "{there:?}");
            let text = json!({"language": language, "body": body(99)}).to_string();
            let checked = asked(&addresses[at], "POST", "/api/v1/check", "", &text);
            assert_eq!((checked.0, &checked.1["verdict"]), (200, &json!("unique")), "{checked:?}");
        }
        let text = json!({"language": "de", "body": body(99)}).to_string();
        let checked = asked(&addresses[at], "POST", "/api/v1/check", "", &text);
        assert_eq!(checked.0, 503, "whether it is unique nobody can say: {checked:?}");
    }
    // The others take over its partition and its state. A peer that still does not answer is named on request.
    for &at in &others {
        let path = "/api/v1/articles/de%2Ffirst";
        ask_until(&addresses[at], path, &running[at], |status, _| status == 200);
    }
    for &at in &others {
        let began = Instant::now();
        let nobody = get(&addresses[at], "/api/v1/articles/nobody");
        assert_eq!(nobody.0, 404, "every partition was asked: {nobody:?}");
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    }
    running[silent].signal("CONT");

    // One process is killed: its address refuses connections.
    let dead = others[0];
    running.remove(dead).kill();
    let left = addresses[others[1]].clone();
    let began = Instant::now();
    let mut named = false;
    while began.elapsed() < PATIENCE {
        let asking = Instant::now();
        let answers = ["nobody", "en%2Ffirst", "de%2Ffirst", "fr%2Ffirst"]
            .map(|id| get(&left, &format!("/api/v1/articles/{id}")));
        assert!(asking.elapsed() < Duration::from_secs(8), "{:?}", asking.elapsed());
        named |= answers.iter().any(|(_, answer)| answer["unanswered"] == json!([addresses[dead]]));
        if answers.iter().map(|(status, _)| *status).eq([404, 200, 200, 200]) {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    assert!(named, "the dead one was never named");
    assert!(began.elapsed() < PATIENCE, "nobody took over");
}

#[test]
fn a_process_without_peers_names_the_partitions_that_it_does_not_hold() {
    let languages = format!("languages = {LANGUAGES:?}\n");
    let bench = Bench::new(shared(), "alone", &languages, "[topics]\npartitions = 2\n");
    // The number of partitions comes from the broker; nothing is known before.
    bench.produce(&[article("en/first", "en", 1), article("de/first", "de", 2)]);
    let mut one = bench.run_as("one", &[]);
    let address = one.query();
    ask_until(&address, "/api/v1/articles/nobody", &one, |status, answer| {
        assert!(status == 404 || answer["code"] == "incomplete", "{answer}");
        status == 404
    });
    bench.wait_for(&["unique"], 2, &one);
    let two = bench.run_as("two", &[]);
    let answer = ask_until(&address, "/api/v1/articles/nobody", &two, |status, answer| {
        // During a rebalance this process may hold none of them.
        status == 503 && answer["absent_partitions"].as_array().unwrap().len() == 1
    });
    assert!(answer["detail"].as_str().unwrap().contains("http.peers"), "{answer}");
    assert!(two.stop().success());
    ask_until(&address, "/api/v1/articles/nobody", &one, |status, _| status == 404);
    assert!(one.stop().success());
}

#[test]
fn constant_queries_delay_neither_verdicts_nor_rebalances_nor_a_stop() {
    let bench = Bench::new(shared(), "asked", "", "");
    bench.produce(&into_two_partitions(articles(0, 90)));
    let mut one = bench.run_as("one", &[]);
    let address = one.query();
    outputs(&bench, 90, &one);
    let (stop, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for at in 0..4 {
            let (stop, answered, address) = (&stop, &answered, &address);
            scope.spawn(move || {
                let mut number = at;
                while !stop.load(Ordering::Relaxed) {
                    number = (number + 1) % 90;
                    let path = format!("/api/v1/articles/a{number:04}/similar");
                    let request =
                        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
                    // The process may have ended.
                    let Ok(stream) = std::net::TcpStream::connect(address) else { continue };
                    drop(stream);
                    let answer = std::panic::catch_unwind(|| ask(address, request.as_bytes()));
                    let Ok(Some((status, body))) = answer else { continue };
                    assert!([200, 404, 503].contains(&status), "{status} {body}");
                    answered.fetch_add(usize::from(status == 200), Ordering::Relaxed);
                }
            });
        }
        // Each rebalance closes stores that are being read.
        for (round, name) in ["two", "three", "four"].into_iter().enumerate() {
            let mut other = bench.run_as(name, &[]);
            other.wait_for_log("\"assigned\"");
            let (from, to) = (90 + round * 90, 180 + round * 90);
            bench.produce(&into_two_partitions(articles(from, to)));
            outputs(&bench, to, &other);
            let began = Instant::now();
            assert!(other.stop().success());
            assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        }
        bench.produce(&into_two_partitions(articles(360, 450)));
        assert_each_judged_once(&outputs(&bench, 450, &one), 450);
        let began = Instant::now();
        let printed = one.log();
        assert!(one.stop().success(), "{printed}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert!(!printed.contains("cannot read the state for a query"), "{printed}");
        stop.store(true, Ordering::Relaxed);
    });
    assert!(answered.load(Ordering::Relaxed) > 100, "{answered:?}");
}

#[test]
fn bad_queries_are_bounded_and_do_not_stop_verdicts() {
    const BATCHES: usize = 8;
    let bench = Bench::new(shared(), "rudely", "", "[topics]\npartitions = 1\n");
    std::fs::write(bench.dir.join("token"), "open sesame").unwrap();
    let token = format!("http.token={{ file = {:?} }}", bench.dir.join("token"));
    let mut running = bench.run(&["--set", &token]);
    let address = running.query();
    bench.produce(&[article("a", "en", 1)]);
    bench.wait_for(&["unique"], 1, &running);
    ask_until(&address, "/api/v1/articles/a", &running, |status, _| status == 200);
    let stop = AtomicBool::new(false);
    let (rounds, slowest) = thread::scope(|scope| {
        let rude = scope.spawn(|| {
            let mut rounds = 0;
            while !stop.load(Ordering::Relaxed) {
                ask_rudely(&address);
                rounds += 1;
            }
            rounds
        });
        scope.spawn(|| ask_slowly(&address));
        // Measure each batch from raw article to verdict.
        let mut slowest = Duration::ZERO;
        for batch in 0..BATCHES {
            let articles: Vec<Record> =
                (0..50).map(|n| article(&format!("b{batch}-{n}"), "en", 100 + batch * 50 + n)).collect();
            let began = Instant::now();
            bench.produce(&articles);
            bench.wait_for(&["unique", "near"], 1 + (batch + 1) * 50, &running);
            slowest = slowest.max(began.elapsed());
        }
        stop.store(true, Ordering::Relaxed);
        (rude.join().unwrap(), slowest)
    });
    println!("{rounds} rounds of bad questions; the slowest of {BATCHES} batches took {slowest:?}");
    assert!(rounds > 0 && slowest < Duration::from_secs(30), "{rounds} {slowest:?}");
    // A thousand connections that send nothing: verdicts continue, and the connections are closed after a while.
    let silent: Vec<_> = (0..1000).filter_map(|_| std::net::TcpStream::connect(&address).ok()).collect();
    let articles: Vec<Record> = (0..100).map(|n| article(&format!("c{n}"), "en", 5000 + n)).collect();
    bench.produce(&articles);
    bench.wait_for(&["unique", "near"], 101 + BATCHES * 50, &running);
    let deadline = Instant::now() + PATIENCE;
    let request = b"GET /api/v1/articles/a HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer open sesame\r\n\r\n";
    while ask(&address, request).is_none_or(|(status, _)| status != 200) {
        assert!(Instant::now() < deadline, "nobody else is served: {}", running.log());
        thread::sleep(Duration::from_millis(200));
    }
    drop(silent);
    assert!(running.stop().success());
}
