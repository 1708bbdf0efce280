//! Writes outputs as Avro, field by field in the order of the files in `schemas/`. A test reads them back with
//! `apache-avro` and those files, so order and types cannot drift.

use samestory_engine::model::{ClusterRecord, Member, RawArticle, Related, Verdict};
use samestory_engine::model::{EventTime, Position};

/// The article in an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArticlePart<'a> {
    /// The article in our own fields, as [`write_article`] wrote it.
    Mapped(&'a [u8]),
    /// The raw record's value unchanged.
    Original(&'a [u8]),
}

/// Appends a zig-zag varint.
pub(super) fn long(out: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest > 0x7f {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn length(out: &mut Vec<u8>, length: usize) {
    long(out, i64::try_from(length).unwrap_or(i64::MAX));
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    length(out, bytes.len());
    out.extend(bytes);
}

fn text(out: &mut Vec<u8>, text: &str) {
    bytes(out, text.as_bytes());
}

fn double(out: &mut Vec<u8>, number: f64) {
    out.extend(number.to_le_bytes());
}

fn time(out: &mut Vec<u8>, time: EventTime) {
    long(out, time.millis());
}

/// Appends a union of null and another type.
fn optional<T>(out: &mut Vec<u8>, value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
    long(out, i64::from(value.is_some()));
    if let Some(value) = value {
        write(out, value);
    }
}

/// Appends an array as one block.
fn array<T>(out: &mut Vec<u8>, values: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) {
    if !values.is_empty() {
        length(out, values.len());
        values.iter().for_each(|value| write(out, value));
    }
    long(out, 0);
}

/// Appends an article: `raw-article.avsc`.
pub fn write_article(article: &RawArticle, out: &mut Vec<u8>) {
    text(out, article.id.as_str());
    text(out, &article.body);
    for value in [&article.title, &article.url, &article.host, &article.language, &article.content_type] {
        optional(out, value.as_deref(), text);
    }
    optional(out, article.published_at, time);
    optional(out, article.fetched_at, time);
    // The field `deleted`: false.
    out.push(0);
}

/// Appends an envelope: `tagged-article.avsc`.
pub fn write_envelope(tagged: &Verdict, article: ArticlePart<'_>, out: &mut Vec<u8>) {
    text(out, tagged.id.as_str());
    text(out, tagged.kind.as_str());
    optional(out, tagged.match_type, |out, kind| text(out, kind.as_str()));
    optional(out, tagged.duplicate_of.as_ref(), |out, id| text(out, id.as_str()));
    double(out, tagged.similarity.get());
    double(out, tagged.containment.get());
    double(out, tagged.confidence.get());
    text(out, &tagged.cluster.to_string());
    text(out, tagged.canonical_id.as_str());
    long(out, i64::from(tagged.revision));
    text(out, tagged.language.code());
    text(out, tagged.language_source.as_str());
    optional(out, tagged.declared_language.as_ref(), |out, tag| text(out, tag.as_str()));
    text(out, tagged.content_kind.as_str());
    array(out, &tagged.related, related);
    array(out, &tagged.evidence, |out, one| {
        text(out, one.measure);
        double(out, one.share.get());
        double(out, one.log_odds());
    });
    array(out, &tagged.flags, |out, flag| text(out, flag.as_str()));
    text(out, &format!("{:08x}", tagged.config));
    position(&tagged.input, out);
    optional(out, tagged.received_at, time);
    optional(
        out,
        if let ArticlePart::Mapped(article) = article { Some(article) } else { None },
        |out, article| {
            out.extend(article);
        },
    );
    optional(out, if let ArticlePart::Original(value) = article { Some(value) } else { None }, bytes);
}

fn related(out: &mut Vec<u8>, related: &Related) {
    text(out, related.id.as_str());
    text(out, related.relation.as_str());
    double(out, related.similarity.get());
}

/// Appends a position. Only Kafka outputs are Avro, so files do not occur; they would be topics with lines as offsets.
fn position(position: &Position, out: &mut Vec<u8>) {
    match position {
        Position::Topic { topic, partition, offset } => {
            text(out, topic.as_str());
            long(out, i64::from(*partition));
            long(out, *offset);
        }
        Position::File { file, line } => {
            text(out, file.as_str());
            long(out, 0);
            long(out, i64::try_from(*line).unwrap_or(i64::MAX));
        }
    }
}

/// Appends a cluster: `cluster.avsc`.
pub fn write_cluster(cluster: &ClusterRecord, out: &mut Vec<u8>) {
    text(out, &cluster.id.to_string());
    text(out, cluster.canonical.as_str());
    length(out, usize::try_from(cluster.size).unwrap_or(usize::MAX));
    time(out, cluster.first_seen);
    time(out, cluster.last_seen);
    array(out, &cluster.hosts, |out, host| text(out, host));
    array(out, &cluster.members, member);
    optional(out, cluster.canonical_changed_from.as_ref(), |out, id| text(out, id.as_str()));
    optional(out, cluster.split_from.as_ref(), |out, id| text(out, &id.to_string()));
}

fn member(out: &mut Vec<u8>, member: &Member) {
    text(out, member.id.as_str());
    for value in [&member.title, &member.host, &member.url] {
        optional(out, value.as_deref(), text);
    }
    optional(out, member.published_at, time);
    optional(out, member.match_type, |out, kind| text(out, kind.as_str()));
}
