//! Properties that hold for any bytes. `fuzz/` includes this very file, so a fuzzer with coverage feedback
//! and the bounded property tests on stable Rust check the same things.
//!
//! Each check takes raw bytes and panics if a property is violated.

use std::sync::OnceLock;

use samestory::formats::fields::{Field, Fields};
use samestory::formats::{Event, json, time};
use samestory_engine::engine::compare::{Relation, Rules, compare};
use samestory_engine::engine::{Batch, Incoming, Item};
use samestory_engine::fingerprint::{Fingerprint, MAX_BYTES, fingerprint};
use samestory_engine::index::{Change, ChangeKey, Family, Format};
use samestory_engine::model::{BoundedStr, Position, RawArticle};
use samestory_engine::text::TooLarge;
use samestory_engine::text::language::LANGUAGES;
use samestory_engine::text::markup::{ContentType, sniff, to_text};
use samestory_engine::text::normalize::{normalize, skeleton};
use samestory_engine::{Deduplicator, Options};

/// Markup of any kind becomes text within its limit or is refused, and the limit influences nothing else.
pub(crate) fn fuzz_markup(data: &[u8]) {
    let (control, data) = data.split_first().map_or((0, data), |(first, rest)| (*first, rest));
    let raw = String::from_utf8_lossy(data);
    let kind = match control % 4 {
        0 => ContentType::Html,
        1 => ContentType::Markdown,
        2 => ContentType::Plain,
        _ => sniff(&raw),
    };
    // The text at most triples: one byte can become U+FFFD.
    let ample = 3 * raw.len() + 16;
    let full = to_text(&raw, kind, ample).expect("there was room for everything");
    let tight = raw.len() * usize::from(control / 4) / 64;
    match to_text(&raw, kind, tight) {
        Ok(text) => {
            assert!(text.len() <= tight);
            assert_eq!(text, full, "a limit that is not reached changes nothing");
        }
        Err(refused) => assert_eq!(refused.limit, tight),
    }
    assert_eq!(to_text(&full, ContentType::Plain, ample).as_deref(), Ok(&*full), "plain text stays as it is");
    if !raw.contains(['<', '&', '\r', '\0']) {
        assert_eq!(
            to_text(&raw, ContentType::Html, ample).as_deref(),
            Ok(&*raw),
            "there was no markup to remove"
        );
    }
}

/// Normalised text is a fixed point within its limit, and spaces separate independent pieces.
pub(crate) fn fuzz_normalize(data: &[u8]) {
    let (control, data) = data.split_first().map_or((0, data), |(first, rest)| (*first, rest));
    let raw = String::from_utf8_lossy(data);
    let unbounded = |text: &str| normalize(text, usize::MAX).expect("there is no limit to exceed");
    let full = unbounded(&raw);
    assert_eq!(unbounded(&full), full, "{raw:?} is not settled");
    assert!(full.len() <= 11 * raw.len(), "nothing grows faster than U+FDFA");
    assert!(!full.starts_with(' ') && !full.ends_with(' ') && !full.contains("  "), "{full:?}");
    let stray = |c: char| c.is_control() || c.is_ascii_uppercase() || (c.is_whitespace() && c != ' ');
    assert_eq!(full.find(stray), None, "{full:?}");

    let tight = full.len() * usize::from(control) / 128;
    match normalize(&raw, tight) {
        Ok(text) => {
            assert!(text.len() <= tight);
            assert_eq!(text, full, "a limit that is not reached changes nothing");
        }
        Err(refused) => {
            assert_eq!(refused, TooLarge { limit: tight });
            // Once there is a page of white space, it may count before it collapses.
            assert!(full.len() > tight || raw.len() > 512, "{raw:?} was refused at {tight}");
        }
    }

    let merged = skeleton(&raw, usize::MAX).expect("there is no limit to exceed");
    assert_eq!(skeleton(&merged, usize::MAX).as_deref(), Ok(&*merged), "{raw:?} has no settled skeleton");
    assert_eq!(unbounded(&merged), merged, "a skeleton is normalised text");

    let middle = raw.len() * usize::from(control) / 256;
    let cut = (middle..=raw.len()).find(|&at| raw.is_char_boundary(at)).unwrap_or_default();
    let (left, right) = raw.split_at(cut);
    let apart = [unbounded(left), unbounded(right)];
    let joined =
        apart.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" ");
    // A word that mixes look-alike scripts is read in the script of the whole text: only then does a space
    // not separate.
    let latin = |text: &str| text.chars().any(|c| c.is_ascii_alphabetic());
    let alike = |text: &str| text.chars().any(|c| matches!(c, '\u{370}'..='\u{52f}'));
    let whole = unbounded(&format!("{left} {right}"));
    let both = format!("{joined} {whole}");
    if !(latin(&both) && alike(&both)) {
        assert_eq!(whole, joined, "{left:?} {right:?} reach across a space");
    }
}

/// Any bytes are a fingerprint that encodes to those very bytes, or are refused.
pub(crate) fn fuzz_fingerprint_decode(data: &[u8]) {
    check_decoding(data);
    let text =
        "on 3 may 2021 the 17 ferries of gannetsay carried 4,500 people and 2 goats over to the island";
    for bytes in edited(&fingerprint(text, &LANGUAGES[0], 7).encode(), data) {
        check_decoding(&bytes);
    }
}

fn check_decoding(bytes: &[u8]) {
    let Ok(print) = Fingerprint::decode(bytes) else { return };
    assert!(bytes.len() <= MAX_BYTES);
    assert_eq!(print.encode(), bytes, "decoding and encoding changed the bytes");
    let pair = compare(&print, &print, &Rules::default());
    let expected = if print.tokens == 0 { Relation::Different } else { Relation::Exact };
    assert_eq!((pair.relation, pair.similarity, pair.distance), (expected, 1.0, 0));
}

/// Valid bytes with a few of them changed, whole and truncated. Three bytes of data make one change: offset (two bytes),
/// then the new value.
fn edited(valid: &[u8], data: &[u8]) -> [Vec<u8>; 2] {
    let mut bytes = valid.to_vec();
    for edit in data.chunks_exact(3).take(8) {
        let offset = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % bytes.len();
        bytes[offset] = edit[2];
    }
    let truncated = bytes[..data.len().min(bytes.len())].to_vec();
    [bytes, truncated]
}

/// A record in JSON is an article that survives being written and read again, or is refused with a short message.
pub(crate) fn fuzz_json(data: &[u8]) {
    check_json(data);
    for bytes in edited(RECORD, data) {
        check_json(&bytes);
    }
}

const RECORD: &[u8] = br#"{"id":"a1","body":"The ferry runs \u00e9 again.","title":"Ferry","url":"https://news.example/a","lang":"en","content_type":"text/plain","published_at":"2026-03-02T06:10:00Z","fetched_at":1772431800000,"tags":[1.5e3,null,{"deep":[true]}]}"#;

fn check_json(bytes: &[u8]) {
    let record = match json::JsonRecord::parse(bytes) {
        Ok(record) => record,
        Err(refusal) => return assert!(refusal.message.len() < 1_000, "{refusal}"),
    };
    let line = json::one_line(bytes);
    assert!(!line.contains(&b'\n'), "a record of several lines must fit on one");
    let read = |bytes: &[u8]| json::decode(&json::JsonRecord::parse(bytes)?, &Fields::default(), || None);
    let event = read(bytes);
    // Both lines say the same; a message may name another column.
    match (read(&line), &event) {
        (Ok(on_one_line), Ok(event)) => assert_eq!(&on_one_line, event),
        (on_one_line, event) => assert_eq!(on_one_line.is_ok(), event.is_ok()),
    }
    if let Ok(Event::Article(article)) = event {
        check_article_round_trip(&article, |article| read(&json::mapped(article)).ok());
    }
    // Paths that the record does not have lead to nothing.
    let missing = Fields::default().with(Field::Title, "no.such[].path").expect("a path");
    let _event = json::decode(&record, &missing, || Some("named".to_owned()));
}

/// An article that is written in our own fields is read as the same article.
fn check_article_round_trip(article: &RawArticle, again: impl Fn(&RawArticle) -> Option<Event>) {
    // A blank field counts as absent, and a time outside four-digit years has no notation.
    let plain = |text: &Option<String>| text.as_ref().is_none_or(|text| !text.trim().is_empty());
    let year = |time: Option<samestory_engine::EventTime>| {
        time.is_none_or(|time| (-62_135_596_800_000..253_402_300_800_000).contains(&time.millis()))
    };
    let texts = [&article.title, &article.url, &article.host, &article.language, &article.content_type];
    if !texts.into_iter().all(plain) || !year(article.published_at) || !year(article.fetched_at) {
        return;
    }
    match again(article) {
        Some(Event::Article(read)) => assert_eq!(*read, *article),
        other => panic!("{article:?} was written, and read as {other:?}"),
    }
}

/// A path of `[input.fields]` (the bytes before the first 0) is refused, or finds something or nothing in any record.
pub(crate) fn fuzz_fields(data: &[u8]) {
    let mut halves = data.splitn(2, |byte| *byte == 0);
    let path = String::from_utf8_lossy(halves.next().unwrap_or_default());
    let record = halves.next().unwrap_or_default();
    for field in [Field::Id, Field::Body, Field::PublishedAt] {
        let Ok(fields) = Fields::default().with(field, &path) else { continue };
        assert!(fields.is_configured(field));
        for bytes in [record, RECORD] {
            if let Ok(record) = json::JsonRecord::parse(bytes) {
                let _event = json::decode(&record, &fields, || Some("named".to_owned()));
                let _source = fields.source(&record, field);
            }
        }
    }
}

/// A datum is an article that survives being written and read again, or is refused with a short message; and it can be
/// shown as JSON.
#[cfg(feature = "avro")]
pub(crate) fn fuzz_avro(data: &[u8]) {
    use samestory::formats::avro::{self, Datum, Schema};
    use samestory::formats::schemas::RAW_ARTICLE;

    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    let schema = SCHEMA.get_or_init(|| Schema::parse(RAW_ARTICLE, &[]).expect("our own schema"));
    let read = |bytes: &[u8]| {
        let datum = Datum::parse(schema, bytes)?;
        let shown: Result<serde_json::Value, _> = serde_json::from_slice(&avro::as_json(&datum));
        assert!(shown.is_ok(), "{shown:?}");
        Fields::default().event(&datum, || None)
    };
    let valid = {
        let record = json::JsonRecord::parse(RECORD).expect("valid");
        let Ok(Event::Article(article)) = json::decode(&record, &Fields::default(), || None) else {
            panic!("an article")
        };
        let mut out = Vec::new();
        avro::write_article(&article, &mut out);
        out
    };
    for bytes in [data.to_vec()].into_iter().chain(edited(&valid, data)) {
        match read(&bytes) {
            Ok(Event::Article(article)) => check_article_round_trip(&article, |article| {
                let mut out = Vec::new();
                avro::write_article(article, &mut out);
                read(&out).ok()
            }),
            Ok(_) => {}
            Err(refusal) => assert!(refusal.message.len() < 1_000, "{refusal}"),
        }
        if let Ok(framed) = avro::unframe(&bytes) {
            let mut again = avro::frame(framed.id, framed.datum.len());
            again.extend_from_slice(framed.datum);
            assert_eq!(again, bytes);
        }
    }
    if let Ok(written) = std::str::from_utf8(data) {
        let _schema = Schema::parse(written, &[]);
    }
}

/// A routed record is read as events, or refused.
#[cfg(feature = "kafka")]
pub(crate) fn fuzz_routed(data: &[u8]) {
    use samestory::kafka::tools::route_model::{events, is_notice};

    // The first byte is the layout: without it nearly all bytes would be refused at once.
    for bytes in [data.to_vec(), [&[data.first().map_or(0, |first| first % 8)], data].concat()] {
        let (events, notice) = (events(&bytes), is_notice(&bytes));
        assert_eq!(events.is_ok(), notice.is_ok());
        assert!(!(notice == Ok(true) && events.is_ok_and(|events| events.len() > bytes.len())));
    }
}

/// A changelog record is a change that encodes to an equal one, or is refused; so are the other keys and values of a state.
pub(crate) fn fuzz_values(data: &[u8]) {
    let (key, value) = data.split_at(data.first().map_or(0, |&first| usize::from(first)).min(data.len()));
    check_change(key, Some(value));
    check_change(data, None);
    for (key, value) in changelog() {
        for value in edited(value, data) {
            check_change(key, Some(&value));
        }
        for key in edited(key, data) {
            check_change(&key, Some(value));
        }
    }
    if let Ok(format) = Format::decode(data) {
        assert_eq!(Format::decode(&format.encode()), Ok(format));
    }
    if let Ok(name) = std::str::from_utf8(data)
        && let Ok(family) = Family::from_name(name)
    {
        assert_eq!(family.name(), name);
    }
}

fn check_change(key: &[u8], value: Option<&[u8]>) {
    if let Ok(read) = ChangeKey::decode(key) {
        assert_eq!(read.encode(), key, "decoding and encoding changed a key");
    }
    if let Ok(change) = Change::decode(key, value) {
        let (key, value) = change.encode();
        assert_eq!(Change::decode(&key, value.as_deref()), Ok(change));
    }
}

/// The changelog records of two articles that form a cluster, one of which moves elsewhere.
fn changelog() -> &'static [(Vec<u8>, Vec<u8>)] {
    static RECORDS: OnceLock<Vec<(Vec<u8>, Vec<u8>)>> = OnceLock::new();
    RECORDS.get_or_init(|| {
        let dedup = Deduplicator::in_memory(Options::default());
        let record = json::JsonRecord::parse(RECORD).expect("valid");
        let Ok(Event::Article(article)) = json::decode(&record, &Fields::default(), || None) else {
            panic!("an article")
        };
        let items = ["a1", "a2", "a1"].into_iter().zip(1..).map(|(id, line)| {
            let id = samestory_engine::ArticleId::new(id).expect("short");
            let prepared = dedup.prepare(&RawArticle { id, ..(*article).clone() }).expect("short");
            Item {
                position: Position::File { file: BoundedStr::new("fuzz"), line },
                time: None,
                log_time: None,
                incoming: Incoming::Article(Box::new(prepared)),
            }
        });
        let batch = Batch { items: items.collect(), ..Batch::default() };
        let (plan, _) = dedup.plan(batch).expect("an index in memory");
        let records = plan.changes.iter().map(Change::encode);
        records.filter_map(|(key, value)| Some((key, value?))).collect()
    })
}

/// A text is a time that is written and read again as the same time, or is none.
pub(crate) fn fuzz_times(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(read) = time::parse(text) else { return };
    // Outside the years 0 to 9999 there is no notation that crawlers use.
    if (-62_135_596_800_000..253_402_300_800_000).contains(&read.millis()) {
        assert_eq!(time::parse(&read.to_string()), Some(read), "{text:?}");
    }
}
