//! One whole message of each topic for `docs/contract.md`, as the engine and the stage's writer produce it from three raw
//! records. Nothing in it is written by hand.

use samestory::config::{Config, Settings};
use samestory::kafka::tools::replay::{Read, Replay, Sent};
use serde_json::{Value, json};

const TEXT: &str = "The ferry to the island runs again from Monday morning, the harbour master said, after three weeks of \
    repairs to the pier that the January storm had broken in two places. Tickets can be bought on board, and the first boat \
    leaves at a quarter past six.";

const RAW: &str = "articles.raw";

fn article(id: &str, host: &str, body: &str) -> Value {
    json!({"id": id, "title": "The ferry runs again", "body": body, "url": format!("https://{host}/{id}"),
           "fetched_at": "2026-03-02T06:10:00Z"})
}

/// The messages: a raw article, and what the stage sends for it, for a copy, for its delete and for a record without a text.
pub(super) fn samples() -> Vec<Sent> {
    let settings: Settings = toml::from_str("[stage]\nmode = \"direct\"").unwrap();
    let mut replay = Replay::new(&Config::try_from(settings).unwrap(), 0, 1);
    let first = article("post-1", "post.example", TEXT);
    let copy = article("times-7", "times.example", &format!("{TEXT} Children travel free."));
    let raw = [first.clone(), copy, json!({"id": "times-8"}), json!({"id": "post-1", "deleted": true})];
    let mut messages = vec![Sent {
        topic: RAW.into(),
        partition: None,
        key: Some(b"post-1".to_vec()),
        value: Some(first.to_string().into_bytes()),
        headers: Vec::new(),
        time: Some(1_772_431_800_000),
    }];
    for (offset, value) in (0_i64..).zip(raw) {
        let key = value["id"].as_str().unwrap().as_bytes().to_vec();
        let time = Some(1_772_431_800_000 + offset * 60_000);
        let value = Some(value.to_string().into_bytes());
        let sent = replay.take(Read { offset, time, key: Some(key), value, ..Read::default() }).unwrap();
        // One record and one tombstone of each topic say everything.
        for message in sent {
            let known = messages
                .iter()
                .any(|kept| kept.topic == message.topic && kept.value.is_some() == message.value.is_some());
            if !known {
                messages.push(message);
            }
        }
    }
    messages
}

/// The value of a message as JSON.
pub(super) fn value(sent: &Sent) -> Option<Value> {
    Some(serde_json::from_slice(sent.value.as_deref()?).unwrap())
}

/// The section of the page, line by line.
pub(super) fn section() -> Vec<String> {
    let mut lines: Vec<String> = [
        "## One message of each topic",
        "",
        "The stage sends these messages for three records (an article, a copy of it from another site with one more sentence, and a",
        "record without a text), and for a delete of the first article. The program writes them when this page is generated, with",
        "default settings and `mode = \"direct\"`. In Kafka a value is on one line; in Avro the same fields follow the schema id.",
    ]
    .map(str::to_owned)
    .to_vec();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    for sent in samples() {
        let kind = if sent.value.is_some() { "" } else { ", a tombstone" };
        lines.extend([String::new(), format!("**`{}`**{kind}", sent.topic), String::new(), "```text".into()]);
        lines.push(format!("key    {}", sent.key.as_deref().map(text).unwrap_or_default()));
        for (name, value) in &sent.headers {
            lines.push(format!("header {name}: {}", value.as_deref().map(text).unwrap_or_default()));
        }
        lines.push("value".into());
        match value(&sent) {
            Some(value) => lines.extend(
                serde_json::to_string_pretty(&value).unwrap().lines().map(|line| format!("  {line}")),
            ),
            None => lines.push("  null".into()),
        }
        lines.push("```".into());
    }
    lines.push(String::new());
    lines.push("`samestory.routed`, `samestory.changelog` and `samestory.generations` are internal: read none of them.".into());
    lines
}
