//! Rows for decoding articles and encoding envelopes, as JSON and as Avro, next to `serde_json` and
//! `apache-avro` alone.

use std::cell::Cell;

use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value;
use apache_avro::writer::datum::GenericDatumWriter;
use samestory::formats::avro;
use samestory::formats::avro::{ArticlePart, Datum};
use samestory::formats::fields::Fields;
use samestory::formats::schemas;
use samestory::formats::{Event, json};
use samestory_engine::model::{
    ArticleId, BoundedStr, ClusterId, DocumentNumber, EventTime, Fraction, Lang, LanguageSource, Position,
    VerdictKind,
};
use samestory_engine::model::{ContentKind, RawArticle, Verdict};

use crate::harness::Row;
use crate::texts::Set;

fn row(name: &str, set: &Set, work: impl Fn(&str) -> u64 + 'static) -> Row {
    Row { name: format!("{name} {}", set.language), work: Box::new(work) }
}

/// Work that cycles through the records, one per call.
fn each<T: 'static>(records: Vec<T>, work: impl Fn(&T) -> u64 + 'static) -> impl Fn(&str) -> u64 + 'static {
    let turn = Cell::new(0);
    move |_| {
        turn.set((turn.get() + 1) % records.len());
        work(&records[turn.get()])
    }
}

fn article(number: usize, text: &str) -> Option<RawArticle> {
    Some(RawArticle {
        id: ArticleId::new(&format!("article-{number}")).ok()?,
        body: text.to_owned(),
        title: Some("A headline of the usual length for an article".into()),
        url: Some(format!("https://news.example/2026/03/02/article-{number}.html")),
        host: Some("news.example".into()),
        language: Some("en".into()),
        content_type: Some("text/plain".into()),
        published_at: Some(EventTime::from_millis(1_772_431_800_000)),
        fetched_at: Some(EventTime::from_millis(1_772_431_900_000)),
    })
}

fn tagged(article: &RawArticle) -> Verdict {
    Verdict {
        id: article.id.clone(),
        kind: VerdictKind::Unique,
        match_type: None,
        duplicate_of: None,
        similarity: Fraction::new(0.0),
        containment: Fraction::new(0.0),
        confidence: Fraction::new(0.97),
        cluster: ClusterId { language: Lang::UND, partition: 0, number: DocumentNumber(17) },
        canonical_id: article.id.clone(),
        revision: 0,
        language: Lang::UND,
        language_source: LanguageSource::Declared,
        declared_language: None,
        content_kind: ContentKind::Ordinary,
        related: Vec::new(),
        evidence: Vec::new(),
        flags: Vec::new(),
        config: 7,
        input: Position::Topic { topic: BoundedStr::new("articles.raw"), partition: 0, offset: 7 },
        received_at: Some(EventTime::from_millis(1_772_431_900_000)),
    }
}

fn length(event: Result<Event, samestory::formats::fields::DecodeFailure>) -> u64 {
    match event {
        Ok(Event::Article(article)) => article.body.len() as u64,
        _ => 0,
    }
}

pub fn rows(set: &Set) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let articles: Vec<RawArticle> =
        set.texts.iter().enumerate().filter_map(|(number, text)| article(number, text)).collect();
    let as_json: Vec<Vec<u8>> = articles.iter().map(json::mapped).collect();
    let as_avro: Vec<Vec<u8>> = articles
        .iter()
        .map(|article| {
            let mut bytes = Vec::new();
            avro::write_article(article, &mut bytes);
            bytes
        })
        .collect();
    let ours = avro::Schema::parse(schemas::RAW_ARTICLE, &[])?;
    let theirs: &'static _ = Box::leak(Box::new(apache_avro::Schema::parse_str(schemas::RAW_ARTICLE)?));
    let reader = GenericDatumReader::builder(theirs).build()?;
    let resolving = GenericDatumReader::builder(theirs).reader_schema(theirs).build()?;
    let writer = GenericDatumWriter::builder(theirs).build()?;
    let values: Vec<Value> =
        as_avro.iter().map(|bytes| reader.read_value(&mut bytes.as_slice())).collect::<Result<_, _>>()?;
    let (fields, same_fields) = (Fields::default(), Fields::default());
    let verdicts: Vec<(Verdict, Vec<u8>, Vec<u8>)> = articles
        .iter()
        .zip(as_json.iter().zip(&as_avro))
        .map(|(article, (json, avro))| (tagged(article), json.clone(), avro.clone()))
        .collect();
    Ok(vec![
        row(
            "decode JSON: samestory",
            set,
            each(as_json.clone(), move |bytes| {
                length(json::JsonRecord::parse(bytes).and_then(|record| fields.event(&record, || None)))
            }),
        ),
        row(
            "decode JSON: serde_json alone",
            set,
            each(as_json, |bytes| {
                let value: Option<serde_json::Value> = serde_json::from_slice(bytes).ok();
                value.and_then(|value| value["body"].as_str().map(str::len)).unwrap_or(0) as u64
            }),
        ),
        row(
            "decode Avro: samestory",
            set,
            each(as_avro.clone(), move |bytes| {
                length(Datum::parse(&ours, bytes).and_then(|datum| same_fields.event(&datum, || None)))
            }),
        ),
        row(
            "decode Avro: apache-avro alone",
            set,
            each(as_avro.clone(), move |bytes| u64::from(reader.read_value(&mut bytes.as_slice()).is_ok())),
        ),
        row(
            "decode Avro: apache-avro, resolved",
            set,
            each(as_avro, move |bytes| u64::from(resolving.read_value(&mut bytes.as_slice()).is_ok())),
        ),
        row(
            "encode JSON: samestory envelope",
            set,
            each(verdicts.clone(), |(tagged, json, _)| json::enveloped(tagged, json).len() as u64),
        ),
        row(
            "encode Avro: samestory article",
            set,
            each(articles, |article| {
                let mut bytes = Vec::new();
                avro::write_article(article, &mut bytes);
                bytes.len() as u64
            }),
        ),
        row(
            "encode Avro: samestory envelope",
            set,
            each(verdicts, |(tagged, _, avro)| {
                let mut bytes = avro::frame(7, avro.len() + 1024);
                avro::write_envelope(tagged, ArticlePart::Mapped(avro), &mut bytes);
                bytes.len() as u64
            }),
        ),
        row(
            "encode Avro: apache-avro article",
            set,
            each(values, move |value| {
                writer.write_value_to_vec(value.clone()).map_or(0, |bytes| bytes.len() as u64)
            }),
        ),
    ])
}
