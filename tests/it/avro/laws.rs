//! Whatever a writer does to its schema, we read the same article that `apache-avro` resolves to
//! `raw-article.avsc`.

use apache_avro::Schema as Parsed;
use apache_avro::types::Value;
use proptest::prelude::*;
use samestory::formats::Event;
use samestory::formats::avro::{Datum, Schema};
use samestory::formats::fields::{Field, Fields};
use samestory::formats::schemas::RAW_ARTICLE;
use samestory_engine::model::RawArticle;
use samestory_engine::model::{ArticleId, EventTime};
use serde_json::json;

use super::{decode, encode, member, text};

/// How a writer has changed a field.
#[derive(Clone, Debug)]
struct Written {
    /// It has another name. `apache-avro` does not support readers' aliases, so its reader gets that name.
    renamed: bool,
    /// 0 plain, 1 value or null, 2 null or value, 3 bytes.
    kind: u8,
    /// Its position among the fields.
    place: u32,
    /// True if an optional field is present at all.
    left_out: bool,
}

const FIELDS: [(Field, &str); 9] = [
    (Field::Id, "id"),
    (Field::Body, "body"),
    (Field::Title, "title"),
    (Field::Url, "url"),
    (Field::Host, "host"),
    (Field::Language, "language"),
    (Field::ContentType, "content_type"),
    (Field::PublishedAt, "published_at"),
    (Field::FetchedAt, "fetched_at"),
];

fn written() -> impl Strategy<Value = Written> {
    (any::<bool>(), 0..4_u8, any::<u32>(), any::<bool>())
        .prop_map(|(renamed, kind, place, left_out)| Written { renamed, kind, place, left_out })
}

fn article() -> impl Strategy<Value = RawArticle> {
    let words = || proptest::option::of(".{1,40}");
    let time = || proptest::option::of((-10_i64.pow(13)..10_i64.pow(15)).prop_map(EventTime::from_millis));
    ("[a-z0-9:/é]{1,30}", ".{0,300}", words(), words(), words(), words(), words(), time(), time()).prop_map(
        |(id, body, title, url, host, language, content_type, published_at, fetched_at)| RawArticle {
            id: ArticleId::new(&id).unwrap(),
            body,
            title,
            url,
            host,
            language,
            content_type,
            published_at,
            fetched_at,
        },
    )
}

fn value_of(article: &RawArticle, field: Field) -> Option<Value> {
    let text = |text: &Option<String>| text.clone().map(Value::String);
    match field {
        Field::Id => Some(Value::String(article.id.to_string())),
        Field::Body => Some(Value::String(article.body.clone())),
        Field::Title => text(&article.title),
        Field::Url => text(&article.url),
        Field::Host => text(&article.host),
        Field::Language => text(&article.language),
        Field::ContentType => text(&article.content_type),
        Field::PublishedAt => article.published_at.map(|time| Value::TimestampMillis(time.millis())),
        Field::FetchedAt => article.fetched_at.map(|time| Value::TimestampMillis(time.millis())),
        Field::Deleted => None,
    }
}

/// Fields that the reader does not know.
fn unknown_fields() -> Vec<(serde_json::Value, Value)> {
    let inner = json!({"type":"record","name":"Inner","fields":[
        {"name":"words","type":{"type":"array","items":"string"}},
        {"name":"next","type":["null","Inner"]}]});
    let words = |next| {
        Value::Record(vec![
            ("words".into(), Value::Array(vec![Value::String("a".into()), Value::String("é".into())])),
            ("next".into(), next),
        ])
    };
    let chain = words(Value::Union(1, Box::new(words(Value::Union(0, Box::new(Value::Null))))));
    let map = Value::Map([("k".to_owned(), Value::Double(0.5))].into_iter().collect());
    vec![
        (json!({"name":"x_inner","type":inner}), chain),
        (json!({"name":"x_map","type":{"type":"map","values":"double"}}), map),
        (
            json!({"name":"x_enum","type":{"type":"enum","name":"E","symbols":["A","B"]}}),
            Value::Enum(1, "B".into()),
        ),
        (
            json!({"name":"x_fixed","type":{"type":"fixed","name":"F","size":3}}),
            Value::Fixed(3, vec![1, 0xff, 3]),
        ),
        (json!({"name":"x_float","type":"float"}), Value::Float(1.5)),
        (json!({"name":"x_int","type":"int"}), Value::Int(-70_000)),
        (json!({"name":"x_bytes","type":"bytes"}), Value::Bytes(vec![0xff; 200])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn we_read_what_apache_avro_resolves(
        article in article(),
        how in proptest::collection::vec(written(), FIELDS.len()),
        strange in proptest::collection::vec((any::<bool>(), any::<u32>()), 7),
    ) {
        let mut fields = Fields::default();
        let mut reader: serde_json::Value = serde_json::from_str(RAW_ARTICLE).unwrap();
        let (mut columns, mut names) = (Vec::new(), Vec::new());
        for ((field, name), written) in FIELDS.into_iter().zip(&how) {
            let their_name = if written.renamed { format!("their_{name}") } else { name.to_owned() };
            fields = fields.with(field, &their_name).unwrap();
            names.push(their_name.clone());
            if written.renamed {
                let ours = reader["fields"].as_array_mut().unwrap();
                let ours = ours.iter_mut().find(|ours| ours["name"] == name).unwrap();
                ours["name"] = json!(their_name);
            }
            let value = value_of(&article, field);
            let required = matches!(field, Field::Id | Field::Body);
            if value.is_none() && written.left_out {
                continue;
            }
            let plain = match field {
                Field::PublishedAt | Field::FetchedAt => json!({"type":"long","logicalType":"timestamp-millis"}),
                _ => json!("string"),
            };
            let null_first = json!(["null", plain.clone()]);
            let (kind, value) = match (written.kind, value) {
                (_, None) => (null_first, Value::Union(0, Box::new(Value::Null))),
                (1, Some(value)) if !required => (json!([plain, "null"]), Value::Union(0, Box::new(value))),
                (2, Some(value)) if !required => (null_first, Value::Union(1, Box::new(value))),
                (3, Some(Value::String(text))) if required => (json!("bytes"), Value::Bytes(text.into_bytes())),
                (_, Some(value)) => (plain, value),
            };
            columns.push((written.place, json!({"name": their_name, "type": kind}), value));
        }
        for ((there, place), (column, value)) in strange.into_iter().zip(unknown_fields()) {
            if there {
                columns.push((place, column, value));
            }
        }
        columns.sort_by_key(|(place, _, _)| *place);
        let schema = json!({"type":"record","name":"samestory.RawArticle",
            "fields": columns.iter().map(|(_, column, _)| column.clone()).collect::<Vec<_>>()}).to_string();
        let parsed = Parsed::parse_str(&schema).unwrap();
        let record = columns.into_iter().map(|(_, column, value)| {
            (column["name"].as_str().unwrap().to_owned(), value)
        });
        let bytes = encode(&parsed, Value::Record(record.collect()));

        let schema = Schema::parse(&schema, &[]).unwrap();
        let datum = Datum::parse(&schema, &bytes).unwrap();
        let Ok(Event::Article(ours)) = fields.event(&datum, || None) else { panic!("no article") };
        let reader = Parsed::parse_str(&reader.to_string()).unwrap();
        let theirs = decode(&parsed, Some(&reader), &bytes);
        let of = |at: usize| member(&theirs, &names[at]);
        let time = |at: usize| match of(at) {
            Value::Union(_, inner) => match **inner {
                Value::TimestampMillis(millis) => Some(EventTime::from_millis(millis)),
                _ => None,
            },
            other => panic!("{other:?}"),
        };
        let theirs = RawArticle {
            id: ArticleId::new(&text(of(0)).unwrap()).unwrap(),
            body: text(of(1)).unwrap(),
            title: text(of(2)),
            url: text(of(3)),
            host: text(of(4)),
            language: text(of(5)),
            content_type: text(of(6)),
            published_at: time(7),
            fetched_at: time(8),
        };
        prop_assert_eq!(&*ours, &theirs);
        prop_assert_eq!(&theirs, &article);
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let schema = Schema::parse(super::hostile::EVERYTHING, &[]).unwrap();
        if let Ok(datum) = Datum::parse(&schema, &bytes) {
            let _event = Fields::default().event(&datum, || None);
            serde_json::from_slice::<serde_json::Value>(&samestory::formats::avro::as_json(&datum)).unwrap();
        }
    }
}
