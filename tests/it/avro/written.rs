//! Our output, read with another implementation and the very files of `schemas/`.

use apache_avro::Schema;
use apache_avro::types::Value;
use samestory::formats::avro::{ArticlePart, write_article, write_cluster, write_envelope};
use samestory::formats::schemas;
use samestory_engine::model::{
    ArticleId, BoundedStr, ClusterId, DocumentNumber, EventTime, Fraction, Lang, LanguageSource, MatchType,
    Position, VerdictKind,
};
use samestory_engine::model::{
    ClusterRecord, ContentKind, Flag, Member, RawArticle, Related, RelationKind, Verdict,
};

use super::{decode, member, text};

fn id(id: &str) -> ArticleId {
    ArticleId::new(id).unwrap()
}

fn cluster_id(number: u64) -> ClusterId {
    ClusterId { language: Lang::UND, partition: 3, number: DocumentNumber(number) }
}

fn article() -> RawArticle {
    RawArticle {
        id: id("a2"),
        body: "text é".into(),
        title: Some("T".into()),
        url: None,
        host: Some("h.example".into()),
        language: None,
        content_type: None,
        published_at: Some(EventTime::from_millis(-5)),
        fetched_at: None,
    }
}

fn tagged() -> Verdict {
    Verdict {
        id: id("a2"),
        kind: VerdictKind::NearDuplicate,
        match_type: Some(MatchType::Near),
        duplicate_of: Some(id("a1")),
        similarity: Fraction::new(0.83),
        containment: Fraction::new(0.95),
        confidence: Fraction::new(0.97),
        cluster: cluster_id(17),
        canonical_id: id("a1"),
        revision: u32::MAX,
        language: Lang::UND,
        language_source: LanguageSource::None,
        evidence: Vec::new(),
        declared_language: None,
        content_kind: ContentKind::TableLike,
        related: vec![Related {
            id: id("a0"),
            relation: RelationKind::SameTemplate,
            similarity: Fraction::new(0.71),
        }],
        flags: vec![Flag::ShortText, Flag::Review],
        config: 0x9f2c,
        input: Position::Topic { topic: BoundedStr::new("articles.raw"), partition: 3, offset: 1 << 40 },
        received_at: Some(EventTime::from_millis(1_772_431_900_000)),
    }
}

#[test]
fn an_envelope_matches_its_schema() {
    let schema = Schema::parse_str(schemas::TAGGED_ARTICLE).unwrap();
    let mut mapped = Vec::new();
    write_article(&article(), &mut mapped);
    let alone = decode(&Schema::parse_str(schemas::RAW_ARTICLE).unwrap(), None, &mapped);
    assert_eq!(text(member(&alone, "body")).as_deref(), Some("text é"));
    for part in [ArticlePart::Mapped(&mapped), ArticlePart::Original(b"\0\0\0\0\x07original")] {
        let mut bytes = Vec::new();
        write_envelope(&tagged(), part, &mut bytes);
        let read = decode(&schema, None, &bytes);
        let says = |name: &str| text(member(&read, name)).unwrap();
        assert_eq!(
            ["id", "verdict", "match_type", "duplicate_of"].map(says),
            ["a2", "near-duplicate", "near", "a1"]
        );
        assert_eq!(["cluster_id", "canonical_id", "config"].map(says), ["und:3:17", "a1", "00009f2c"]);
        assert_eq!(*member(&read, "similarity"), Value::Double(0.83));
        assert_eq!(*member(&read, "revision"), Value::Long(i64::from(u32::MAX)));
        let flags = ["short-text", "review"].map(|flag| Value::String(flag.into())).to_vec();
        assert_eq!(*member(&read, "flags"), Value::Array(flags));
        let Value::Array(related) = member(&read, "related") else { panic!("{read:?}") };
        assert_eq!(text(member(&related[0], "relation")).as_deref(), Some("same-template"));
        assert_eq!(*member(member(&read, "input"), "offset"), Value::Long(1 << 40));
        let received_at = Value::Union(1, Box::new(Value::TimestampMillis(1_772_431_900_000)));
        assert_eq!(*member(&read, "received_at"), received_at);
        let (article, original) = (member(&read, "article"), member(&read, "original"));
        match part {
            ArticlePart::Mapped(_) => {
                assert_eq!(text(member(article, "host")).as_deref(), Some("h.example"));
                assert_eq!(*original, Value::Union(0, Box::new(Value::Null)));
            }
            ArticlePart::Original(value) => {
                assert_eq!(*original, Value::Union(1, Box::new(Value::Bytes(value.to_vec()))));
                assert_eq!(*article, Value::Union(0, Box::new(Value::Null)));
            }
        }
    }
}

#[test]
fn a_cluster_matches_its_schema() {
    let member_of = |name: &str, match_type| Member {
        id: id(name),
        title: Some("T".into()),
        host: None,
        url: Some("u".into()),
        published_at: Some(EventTime::from_millis(7)),
        match_type,
    };
    let cluster = ClusterRecord {
        id: cluster_id(17),
        canonical: id("b"),
        size: 2,
        first_seen: EventTime::from_millis(1),
        last_seen: EventTime::from_millis(2),
        hosts: vec!["h".into()],
        members: vec![member_of("a", None), member_of("b", Some(MatchType::Partial))],
        canonical_changed_from: Some(id("a")),
        split_from: Some(cluster_id(4)),
    };
    let mut bytes = Vec::new();
    write_cluster(&cluster, &mut bytes);
    let read = decode(&Schema::parse_str(schemas::CLUSTER).unwrap(), None, &bytes);
    assert_eq!(
        (member(&read, "size"), member(&read, "last_seen")),
        (&Value::Long(2), &Value::TimestampMillis(2))
    );
    let Value::Array(members) = member(&read, "members") else { panic!("{read:?}") };
    assert_eq!(text(member(&members[1], "match_type")).as_deref(), Some("partial"));
    assert_eq!(text(member(&read, "split_from")).as_deref(), Some("und:3:4"));
}
