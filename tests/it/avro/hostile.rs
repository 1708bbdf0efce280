//! Hostile Avro: each input is refused with the field, the position and the reason, in bounded time and
//! memory.

use std::time::{Duration, Instant};

use samestory::formats::avro::{Datum, Schema};
use samestory::formats::fields::{Field, Fields};
use samestory::formats::{Event, avro};
use samestory_engine::model::DeadLetterReason;

pub(crate) const EVERYTHING: &str = r#"{"type":"record","name":"R","fields":[
    {"name":"id","type":"string"},
    {"name":"body","type":["null","string"]},
    {"name":"kind","type":{"type":"enum","name":"K","symbols":["NEWS","BLOG"]}},
    {"name":"parts","type":{"type":"array","items":"string"}},
    {"name":"nulls","type":{"type":"array","items":"null"}},
    {"name":"more","type":{"type":"map","values":"long"}},
    {"name":"inner","type":["null","R"]}]}"#;

fn long(number: i64) -> Vec<u8> {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    let mut out = Vec::new();
    while rest > 0x7f {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    out
}

/// `a`, a body of `b`, NEWS, no parts, no nulls, nothing more, nothing inside.
const SOUND: [u8; 10] = [2, b'a', 2, 2, b'b', 0, 0, 0, 0, 0];

fn refused(bytes: &[u8]) -> String {
    let schema = Schema::parse(EVERYTHING, &[]).unwrap();
    let began = Instant::now();
    let refusal = Datum::parse(&schema, bytes).unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(2), "{refusal}: {:?}", began.elapsed());
    assert_eq!(refusal.reason, DeadLetterReason::Undecodable, "{refusal}");
    assert!(refusal.message.len() < 300, "{refusal}");
    refusal.message
}

fn with(at: usize, bytes: &[u8]) -> Vec<u8> {
    [&SOUND[..at], bytes].concat()
}

#[test]
fn a_sound_record_is_read() {
    let schema = Schema::parse(EVERYTHING, &[]).unwrap();
    let datum = Datum::parse(&schema, &SOUND).unwrap();
    assert!(
        matches!(Fields::default().event(&datum, || None), Ok(Event::Article(article)) if article.body == "b")
    );
}

#[test]
fn a_truncated_record_is_refused_with_its_position() {
    for end in 0..SOUND.len() {
        let said = refused(&SOUND[..end]);
        assert!(said.contains("truncated") && said.contains("field \""), "{end}: {said}");
    }
    assert!(refused(&[&SOUND[..], &[0; 7]].concat()).contains("7 bytes follow"));
}

#[test]
fn lengths_that_no_bytes_follow_are_not_believed() {
    let said = refused(&with(3, &long(1 << 62)));
    assert!(said.contains("field \"body\"") && said.contains("4611686018427387904 bytes expected"), "{said}");
    assert!(refused(&long(-5)).contains("a length of -5"));
    let block = [long(-1), long(300 << 20)].concat();
    assert!(refused(&with(6, &block)).contains("a block of 314572800 bytes"));
    assert!(refused(&with(6, &long(300 << 20))).contains("a block of 314572800 items"));
    assert!(refused(&with(6, &long(i64::MIN))).contains("truncated"));
    // Values that take no bytes: a count of them is a bomb of its own.
    assert!(refused(&with(7, &long(1 << 40))).contains("field \"nulls\""));
    assert!(refused(&with(7, &[long(20_000), long(0), long(0), long(0)].concat())).contains("items"));
    assert!(refused(&[0xff; 64]).contains("64 bits"));
}

#[test]
fn ten_thousand_levels_of_nesting_are_refused() {
    let head = [2, b'a', 0, 0, 0, 0, 0, 2];
    let deep = [head.repeat(10_000), SOUND.to_vec()].concat();
    let printed = refused(&deep);
    assert!(printed.contains("128 levels") && printed.contains("inner.inner"), "{printed}");
}

#[test]
fn texts_symbols_and_choices_that_do_not_exist_are_refused() {
    let printed = refused(&[4, b'a', 0xff]);
    assert!(printed.contains("field \"id\", byte 2: not UTF-8"), "{printed}");
    assert!(refused(&with(5, &long(2))).contains("field \"kind\", byte 6: symbol 2 of 2"));
    assert!(refused(&with(5, &long(-1))).contains("symbol -1 of 2"));
    assert!(refused(&with(2, &long(7))).contains("variant 7 of 2"));
}

#[test]
fn schemas_that_are_not_articles_make_dead_letters() {
    let event = |schema: &str, bytes: &[u8]| {
        let schema = Schema::parse(schema, &[]).unwrap();
        let datum = Datum::parse(&schema, bytes).unwrap();
        Fields::default().event(&datum, || None).unwrap_err()
    };
    assert_eq!(event("\"string\"", &[2, b'a']).reason, DeadLetterReason::WrongType);
    assert_eq!(event("\"null\"", &[]).reason, DeadLetterReason::WrongType);
    let other = r#"{"type":"record","name":"Click","fields":[{"name":"user","type":"long"}]}"#;
    let refusal = event(other, &[2]);
    assert_eq!(refusal.reason, DeadLetterReason::NoId);
    assert!(refusal.message.contains("the record has user"), "{refusal}");
}

#[test]
fn bytes_times_maps_and_lists_are_converted() {
    let schema = r#"{"type":"record","name":"Crawl","fields":[
        {"name":"key","type":{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}},
        {"name":"content","type":{"type":"record","name":"C","fields":[
            {"name":"raw","type":"bytes"},
            {"name":"paragraphs","type":{"type":"array","items":["null","string"]}}]}},
        {"name":"lang","type":{"type":"enum","name":"L","symbols":["en","hi"]}},
        {"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},
        {"name":"day","type":{"type":"int","logicalType":"date"}},
        {"name":"seconds","type":"int"},
        {"name":"extra","type":{"type":"map","values":"string"}}]}"#;
    let mut bytes: Vec<u8> = (0..16).collect();
    bytes.extend(long(2));
    bytes.extend(b"\xc3\xa9");
    // Two blocks, one with its size.
    bytes.extend([long(2), long(1), long(3), b"one".to_vec(), long(0)].concat());
    bytes.extend([long(-1), long(5), long(1), long(3), b"two".to_vec(), long(0)].concat());
    bytes.extend(long(1));
    bytes.extend([long(1_772_431_800_000_999), long(20_514), long(1_772_431_800)].concat());
    bytes.extend([long(1), long(5), b"title".to_vec(), long(1), b"T".to_vec(), long(0)].concat());
    let schema = Schema::parse(schema, &[]).unwrap();
    let datum = Datum::parse(&schema, &bytes).unwrap();
    let with = |body: &str, published: &str| {
        [
            (Field::Id, "key"),
            (Field::Body, body),
            (Field::Title, "extra.title"),
            (Field::Language, "lang"),
            (Field::FetchedAt, "at"),
            (Field::PublishedAt, published),
        ]
        .into_iter()
        .fold(Fields::default(), |fields, (field, path)| fields.with(field, path).unwrap())
    };
    let article = |fields: Fields| match fields.event(&datum, || None).unwrap() {
        Event::Article(article) => article,
        other => panic!("{other:?}"),
    };
    let first = article(with("content.raw", "day"));
    assert_eq!(first.id.as_str(), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    assert_eq!(
        (first.body.as_str(), first.title.as_deref(), first.language.as_deref()),
        ("é", Some("T"), Some("hi"))
    );
    assert_eq!(first.fetched_at.unwrap().millis(), 1_772_431_800_000);
    assert_eq!(first.published_at.unwrap().millis(), 20_514 * 86_400_000);
    let second = article(with("content.paragraphs[]", "seconds"));
    assert_eq!(
        (second.body.as_str(), second.published_at.unwrap().millis()),
        ("one\n\ntwo", 1_772_431_800_000)
    );
    let json: serde_json::Value = serde_json::from_slice(&avro::as_json(&datum)).unwrap();
    assert_eq!(json["content"]["paragraphs"], serde_json::json!(["one", null, "two"]));
    assert_eq!(
        (json["at"].as_str(), json["extra"]["title"].as_str()),
        (Some("2026-03-02T06:10:00Z"), Some("T"))
    );
}

#[test]
fn a_field_is_found_under_its_former_name() {
    let schema = r#"{"type":"record","name":"A","fields":[{"name":"id","type":"string"},
        {"name":"content_text","type":"string","aliases":["body"]}]}"#;
    let schema = Schema::parse(schema, &[]).unwrap();
    let datum = Datum::parse(&schema, &[2, b'a', 2, b'b']).unwrap();
    let fields = Fields::default().with(Field::Body, "body").unwrap();
    assert!(matches!(fields.event(&datum, || None), Ok(Event::Article(article)) if article.body == "b"));
}
