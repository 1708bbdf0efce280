//! Bad input, deletes and output settings on a real broker: each record has one outcome, and its neighbours are
//! unaffected.

use serde_json::{Value, json};

use super::broker::shared;
use super::bus::{Record, Row};
use super::stage::Bench;

const TEXT: &str = "The ferry to the island will run again from Monday morning, the harbour master said, after three weeks \
    of repairs to the pier that the January storm had broken in two places. Tickets can be bought on board, and the first \
    boat leaves at a quarter past six. School children travel free until the end of the month, and the bakery on the quay \
    will open an hour earlier for those who catch the early boat.";

fn article(id: &str, text: &str) -> Value {
    json!({"id": id, "language": "en", "title": "Ferry", "body": text})
}

fn keyed(key: &str, value: Option<&str>) -> Record {
    Record {
        partition: Some(0),
        key: Some(key.into()),
        value: value.map(|value| value.as_bytes().to_vec()),
        timestamp: Some(1_772_000_000_000),
        headers: vec![
            ("traceparent".into(), Some(b"00-abc".to_vec())),
            ("samestory-verdict".into(), Some(b"lie".to_vec())),
        ],
    }
}

#[test]
fn records_that_cannot_be_judged_become_dead_letters_and_the_rest_is_judged() {
    let bench = Bench::new(shared(), "poison", "", "");
    let huge = json!({"id": "huge", "body": "x".repeat(2 << 20)}).to_string();
    let deep = format!(r#"{{"id":"deep","body":"{}","content_type":"text/html"}}"#, "<div>".repeat(10_000));
    let poison = [
        ("not json", "undecodable"),
        (r#"{"body":"no id"}"#, ""),
        (r#"{"id":"x"}"#, "no-body"),
        (r#"{"id":{"a":1},"body":"b"}"#, "wrong-type"),
        (huge.as_str(), "too-large"),
        (deep.as_str(), ""),
    ];
    let mut records = vec![keyed("first", Some(&article("first", TEXT).to_string()))];
    records.extend(poison.iter().map(|(value, _)| keyed("poison", Some(value))));
    records.push(Record { partition: Some(0), ..Record::default() });
    records.push(keyed("last", Some(&article("last", TEXT).to_string())));
    bench.produce(&records);
    let running = bench.run(&[]);
    let rows = bench.wait_for(&["unique", "near", "dead"], records.len(), &running);
    assert!(running.stop().success());
    assert_eq!(rows.len(), records.len(), "one outcome for each");
    let letters = bench.read("dead");
    let reason = |row: &Row| {
        String::from_utf8(row.header("__samestory.errors.exception.class.name").unwrap().to_vec()).unwrap()
    };
    for (at, (value, expected)) in poison.iter().enumerate().filter(|(_, (_, expected))| !expected.is_empty())
    {
        let offset = (at + 1).to_string();
        let letter = letters
            .iter()
            .find(|row| row.header("__samestory.errors.offset") == Some(offset.as_bytes()))
            .unwrap_or_else(|| panic!("no dead letter for {value:.40}"));
        assert_eq!(reason(letter), *expected, "{value:.40}");
        assert_eq!(letter.value.as_deref(), Some(value.as_bytes()), "the bytes as they came");
        assert_eq!(
            (letter.key.as_deref(), letter.timestamp),
            (Some(&b"poison"[..]), Some(1_772_000_000_000))
        );
        assert_eq!(letter.header("traceparent"), Some(&b"00-abc"[..]));
    }
    // A record without key and value names no article to delete.
    assert!(letters.iter().any(|row| reason(row) == "no-id"));
    let last = rows.iter().find(|row| row.key.as_deref() == Some(b"last")).unwrap();
    assert_eq!(
        last.our_header("verdict").as_deref(),
        Some("exact-duplicate"),
        "headers that came in are not believed"
    );
    assert_eq!(last.our_header("duplicate-of").as_deref(), Some("first"));
    assert_eq!(last.header("traceparent"), Some(&b"00-abc"[..]));
    assert_eq!(last.timestamp, Some(1_772_000_000_000));
}

const HINDI: &str = "नौका सेवा सोमवार सुबह से फिर शुरू होगी, बंदरगाह के अधिकारी ने कहा, क्योंकि जनवरी के तूफान से टूटे हुए घाट की मरम्मत तीन सप्ताह में पूरी हो गई है। टिकट नाव पर ही मिलेंगे और पहली नाव सवा छह बजे चलेगी। स्कूल के बच्चे महीने के अंत तक मुफ्त यात्रा करेंगे और घाट की बेकरी एक घंटा पहले खुलेगी ताकि लोग नाश्ता कर सकें।";

#[test]
fn updates_move_articles_and_deletes_retract_them() {
    let bench = Bench::new(shared(), "moves", "", "[topics]\npartitions = 3\n");
    let other = "A court in the capital has ruled that the city must publish the minutes of its planning meetings within ten \
        days, a decision that a group of residents had sought for two years. The mayor said that the ruling would be read \
        with care, and that nobody at the town hall had anything to hide from the public or from the newspapers.";
    let send = |records: &[Record]| bench.produce(records);
    send(&[
        keyed("a", Some(&article("a", TEXT).to_string())),
        keyed("b", Some(&article("b", other).to_string())),
        keyed("c", Some(&article("c", TEXT).to_string())),
    ]);
    let running = bench.run(&[]);
    bench.wait_for(&["unique", "near"], 3, &running);
    // b becomes a copy of a and moves to the other topic. a changes its language: it changes its partition but not its
    // topic.
    send(&[keyed("b", Some(&article("b", TEXT).to_string()))]);
    bench.wait_for(&["unique", "near"], 5, &running);
    send(&[keyed("a", Some(&json!({"id": "a", "language": "hi", "body": HINDI}).to_string()))]);
    bench.wait_for(&["unique", "near"], 6, &running);
    // c is deleted, by a tombstone and by an event; deleting an unknown id has no effect.
    send(&[keyed("c", None), keyed("nobody", None)]);
    let rows = bench.wait_for(&["unique", "near"], 8, &running);
    assert!(running.stop().success());
    assert_eq!(rows.len(), 8);
    let nulls = |topic: &str| -> Vec<(String, String)> {
        let rows = bench.read(topic);
        rows.iter()
            .filter(|row| row.value.is_none())
            .map(|row| (row.id(), row.our_header("offset").unwrap()))
            .collect()
    };
    let pair = |id: &str, offset: &str| (id.to_owned(), offset.to_owned());
    let mut unique = nulls("unique");
    unique.sort();
    assert_eq!(unique, [pair("b", "3"), pair("c", "5")]);
    let mut near = nulls("near");
    near.sort();
    assert_eq!(near, [pair("c", "5")]);
    // The cluster of a, b and c has lost a and c: only b is left, so the cluster is deleted.
    let clusters = bench.read("clusters");
    let last = clusters.iter().rfind(|row| row.id().starts_with("en:")).unwrap();
    assert_eq!(last.value, None, "{last:?}");
}

/// The new home retracts its own record, and again when the former home's relocation notice arrives.
#[test]
fn an_article_that_moves_and_changes_in_one_batch_ends_on_one_topic() {
    let bench = Bench::new(shared(), "hasty", "", "[topics]\npartitions = 3\n");
    let hindi_article = |id: &str, body: &str| json!({"id": id, "language": "hi", "body": body}).to_string();
    bench.produce(&[
        keyed("x", Some(&article("x", TEXT).to_string())),
        keyed("ferry", Some(&hindi_article("ferry", HINDI))),
    ]);
    let running = bench.run(&[]);
    bench.wait_for(&["unique"], 2, &running);
    assert!(running.stop().success());
    bench.produce(&[
        keyed(
            "x",
            Some(&hindi_article("x", "अदालत ने कहा कि नगर को अपनी बैठकों का विवरण दस दिन में छापना होगा।")),
        ),
        keyed("x", Some(&hindi_article("x", HINDI))),
    ]);
    let running = bench.run(&[]);
    bench.wait_for(&["unique", "near"], 6, &running);
    assert!(running.stop().success());
    let nulls = |topic: &str| -> Vec<String> {
        let mut nulls: Vec<String> = bench
            .read(topic)
            .iter()
            .filter(|row| row.value.is_none())
            .map(|row| row.our_header("offset").unwrap())
            .collect();
        nulls.sort();
        nulls
    };
    assert_eq!((nulls("unique"), nulls("near")), (vec!["2".into(), "3".into()], vec![]));
}

#[test]
fn single_topic_and_passthrough_keep_the_articles_bytes() {
    let bench =
        Bench::new(shared(), "single", "", "[output]\ntopics = \"single\"\nvalue = \"passthrough\"\n");
    let first = format!(" {} ", article("first", TEXT));
    bench.produce(&[keyed("first", Some(&first)), keyed("again", Some(&article("again", TEXT).to_string()))]);
    bench.produce(&[keyed("first", None)]);
    let running = bench.run(&[]);
    let rows = bench.wait_for(&["tagged"], 3, &running);
    assert!(running.stop().success());
    assert_eq!(rows.len(), 3, "one null for what is gone, though it stood on one topic only");
    let of =
        |id: &str, null: bool| rows.iter().find(|row| row.id() == id && row.value.is_none() == null).unwrap();
    assert_eq!(of("first", false).value.as_deref(), Some(first.as_bytes()), "byte for byte");
    assert_eq!(of("again", false).our_header("duplicate-of").as_deref(), Some("first"));
    of("first", true);
}

#[test]
fn topics_of_every_compression_are_read() {
    let bench = Bench::new(shared(), "codecs", "", "");
    let mut client = bench.broker.client();
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let writer: super::bus::Writer = client
            .set("compression.type", codec)
            .create_with_context(super::bus::Deliveries::default())
            .unwrap();
        let value =
            article(codec, &format!("{TEXT} {}", "Filler that can be packed. ".repeat(200))).to_string();
        let sent = super::bus::send(&writer, &bench.topic("raw"), &[keyed(codec, Some(&value))]);
        assert!(sent.iter().all(Result::is_ok));
    }
    let running = bench.run(&[]);
    assert_eq!(bench.wait_for(&["unique", "near"], 5, &running).len(), 5);
    assert!(running.stop().success());
}
