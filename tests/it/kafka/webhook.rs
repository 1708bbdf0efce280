//! Verdicts from a real broker to a real HTTP server that fails, stalls, returns garbage and refuses.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use super::broker::shared;
use super::bus::Record;
use super::stage::Bench;
use crate::hook_server::{HookServer, Received, Treatment};

/// A record as the stage publishes it.
fn verdict(id: &str, verdict: &str) -> Record {
    let header = |name: &str, value: &str| (format!("samestory-{name}"), Some(value.as_bytes().to_vec()));
    Record {
        partition: Some(0),
        key: Some(id.into()),
        value: Some(
            json!({"verdict": verdict, "article": {"title": format!("Of {id}")}}).to_string().into_bytes(),
        ),
        timestamp: None,
        headers: vec![header("verdict", verdict), header("duplicate-of", "a0"), header("similarity", "0.83")],
    }
}

fn events(request: &Received) -> Vec<Value> {
    let body: Value = serde_json::from_str(&request.body).unwrap();
    body["events"].as_array().unwrap().clone()
}

fn ids(requests: &[Received]) -> BTreeSet<String> {
    requests.iter().flat_map(events).map(|event| event["article_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_duplicate_arrives_at_a_server_that_fails_in_every_way() {
    let server = HookServer::start(&[
        Treatment::Status(503),
        Treatment::Garbage,
        Treatment::Stall,
        Treatment::Break,
        Treatment::Status(200),
    ]);
    let hook = format!(
        "[webhook]\nurl = \"{}\"\ntimeout = \"1s\"\nlinger = \"2s\"\nbackoff = [\"50ms\", \"200ms\"]\n",
        server.url
    );
    let bench = Bench::new(shared(), "webhook", "", &hook);
    let near = bench.topic("near");
    shared().produce(&near, &[verdict("a1", "near-duplicate"), verdict("a2", "exact-duplicate")]);
    shared().produce(&bench.topic("unique"), &[verdict("u1", "unique")]);
    let running = bench.start(&["webhook", "run"], &[]);
    let received = server.wait_until("five attempts", |requests| requests.len() >= 5);
    // The same request is repeated until it is accepted.
    let first = received[0].header("idempotency-key");
    assert!(received[1..4].iter().all(|request| request.header("idempotency-key") == first));
    shared().produce(&near, &[verdict("a3", "near-duplicate")]);
    let received = server.wait_until("the third event", |requests| ids(requests).len() == 3);
    assert_eq!(ids(&received), ["a1", "a2", "a3"].map(str::to_owned).into());
    let event = &events(&received[0])[0];
    assert_eq!((&event["duplicate_of"], &event["title"]), (&json!("a0"), &json!("Of a1")));
    assert_eq!(event["id"], format!("{near}/0/0"));
    assert!(running.stop().success());

    // The next process goes on where this one was: nothing that was accepted is sent again.
    let before = server.received().len();
    shared().produce(&near, &[verdict("a4", "near-duplicate")]);
    let running = bench.start(&["webhook", "run"], &[]);
    let received = server.wait_until("the fourth event", |requests| ids(requests).contains("a4"));
    assert_eq!(ids(&received[before..]), ["a4".to_owned()].into());
    assert!(running.stop().success());
}

#[test]
fn a_refused_event_becomes_a_dead_letter_and_the_others_arrive() {
    let server = HookServer::start(&[Treatment::RefuseIf("\"bad\"")]);
    let prefix = format!("webhook-refused-{}", std::process::id());
    let letters = std::env::temp_dir().join(format!("{prefix}.ndjson"));
    let hook = format!("[webhook]\nurl = \"{}\"\nlinger = \"2s\"\ndead_letters = {letters:?}\n", server.url);
    let bench = Bench::new(shared(), "webhook-refused", "", &hook);
    let records = ["a1", "bad", "a2"].map(|id| verdict(id, "near-duplicate"));
    shared().produce(&bench.topic("near"), &records);
    let running = bench.start(&["webhook", "run"], &[]);
    server.wait_until("each event alone", |requests| {
        let alone: Vec<_> = requests.iter().filter(|request| events(request).len() == 1).collect();
        alone.len() == 3
    });
    assert!(running.stop().success());
    let letters_text = fs::read_to_string(&letters).unwrap();
    fs::remove_file(&letters).unwrap();
    let lines: Vec<Value> = letters_text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1, "{letters_text}");
    assert_eq!(
        (&lines[0]["event"]["article_id"], &lines[0]["error"]),
        (&json!("bad"), &json!("HTTP 422: the answer"))
    );
}

#[test]
fn a_server_that_is_away_holds_nothing_up_and_loses_nothing() {
    let server = HookServer::start(&[Treatment::Status(500)]);
    let hook = format!("[webhook]\nurl = \"{}\"\nbackoff = [\"50ms\", \"100ms\"]\n", server.url);
    let bench = Bench::new(shared(), "webhook-away", "", &hook);
    shared().produce(&bench.topic("near"), &[verdict("a1", "near-duplicate")]);
    let running = bench.start(&["webhook", "run"], &[]);
    server.wait_until("some attempts", |requests| requests.len() > 3);
    // SIGTERM ends the waiting; the event is sent by the next process.
    assert!(running.stop().success());
    server.plan(&[Treatment::Status(200)]);
    let before = server.received().len();
    let running = bench.start(&["webhook", "run"], &[]);
    let received = server.wait_until("the event", |requests| requests.len() > before);
    assert_eq!(ids(&received[before..]), ["a1".to_owned()].into());
    assert!(running.stop().success());
}
