//! Decisions → Kafka records. [`Writer`] gives every output its topic, key, value and headers as `docs/contract.md`
//! describes them; route uses it for dead letters. It also measures records before they are judged, because an article
//! that cannot be delivered must leave no trace in the state.

use std::borrow::Cow;
use std::sync::Arc;

use crate::config::{TopicNames, ValueForm};
use crate::formats::avro;
use crate::formats::avro::ArticlePart;
use crate::formats::json;
use samestory_engine::engine::{Decided, Incoming, Output};
use samestory_engine::index::{Change, OutputTopic, WriteSet};
use samestory_engine::model::{ArticleId, Position, VerdictKind};
use samestory_engine::model::{DeadLetter, DeadLetterReason, Verdict};

use super::intake::ReadItem;
use crate::kafka::admin::limits::Limits;
use crate::kafka::faults::{FAULTS, Faults, Mutant};
use crate::kafka::route::payload::{ArticleSlice, PayloadEncoding};
use crate::kafka::route::routed;
use crate::kafka::turn::record::{
    Copied, Fate, Headers, Outgoing, OutgoingHeader, Record, weight, weight_of_one,
};

/// The names of the headers with our own prefixes, as constants.
macro_rules! ours {
    ($name:literal) => {
        concat!("samestory-", $name)
    };
}
macro_rules! error_header {
    ($suffix:literal) => {
        concat!("__samestory.errors.", $suffix)
    };
}

/// Prefixes of our own headers. Input headers with such names are not copied to the output.
const HEADER_PREFIX: &str = "samestory-";
const ERROR_HEADER_PREFIX: &str = "__samestory.errors.";
/// Total bytes of the input headers that were not copied to the output.
const HEADERS_DROPPED: &str = "samestory-headers-dropped";

/// Turns decisions into records.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    pub(crate) topics: TopicNames,
    pub(crate) form: ValueForm,
    pub(crate) wire: OutputEncoding,
    pub(crate) limits: Arc<Limits>,
}

/// True if the tagged article of a record can be delivered. This is decided before the article is judged, from the
/// record and the limits alone: an article that cannot be delivered must leave no trace in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    Whole,
    /// Only without the input headers.
    WithoutHeaders,
    /// Not at all: its size, and the size that the topics allow.
    No {
        bytes: usize,
        limit: usize,
    },
}

/// Room reserved for everything besides the article in a record, value and headers together. On the output topics that
/// is a verdict: at most nine ids of 512 bytes, each byte of which JSON may escape to six, twice, and a few hundred
/// bytes of numbers and names. On the routed topic it is a fingerprint, texts for display, and at most 8 KiB of
/// forgets.
pub(crate) const VERDICT_OVERHEAD: usize = 64 << 10;

/// The encoding of envelopes and cluster records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputEncoding {
    Json,
    /// Avro, with the ids of our schemas in the registry.
    Avro {
        unique: u32,
        near_duplicate: u32,
        clusters: u32,
    },
}

/// The input record that an output is written for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Original<'a> {
    pub(crate) record: &'a Record,
    /// Where the article is in the record's value.
    pub(crate) slice: ArticleSlice,
}

impl<'a> Original<'a> {
    fn value(&self) -> Option<&'a [u8]> {
        self.record.value.as_deref().and_then(|value| value.get(self.slice.from..))
    }

    fn headers(&self) -> impl Iterator<Item = OutgoingHeader<'a>> + use<'a> {
        let dropped = self.record.headers_dropped;
        let dropped = (dropped > 0).then(|| header(HEADERS_DROPPED, dropped.to_string()));
        copied_headers(&self.record.headers).map(borrowed).chain(dropped)
    }
}

/// A header with a value made for it.
fn header<'a>(name: &'static str, value: String) -> OutgoingHeader<'a> {
    (Cow::Borrowed(name), Some(Cow::Owned(value.into_bytes())))
}

/// A header whose value exists already.
fn text_header<'a>(name: &'static str, value: &'a str) -> OutgoingHeader<'a> {
    (Cow::Borrowed(name), Some(Cow::Borrowed(value.as_bytes())))
}

/// A header of an input record, to be sent unchanged.
pub(crate) fn borrowed((name, value): &(String, Option<Vec<u8>>)) -> OutgoingHeader<'_> {
    (Cow::Borrowed(name), value.as_deref().map(Cow::Borrowed))
}

/// The input headers that are copied to the output: all except those with our own prefixes, which only we may set.
fn copied_headers(headers: &Headers) -> impl Iterator<Item = &(String, Option<Vec<u8>>)> {
    headers
        .iter()
        .filter(|(name, _)| !name.starts_with(HEADER_PREFIX) && !name.starts_with(ERROR_HEADER_PREFIX))
}

/// Bytes of headers that route dropped, as it noted in the routed record.
pub(crate) fn headers_dropped(headers: &Headers) -> usize {
    let found = headers.iter().find(|(name, _)| name == HEADERS_DROPPED);
    let text = found.and_then(|(_, value)| str::from_utf8(value.as_deref()?).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

impl Writer {
    /// Appends the records of one decision, in order.
    pub(crate) fn decided<'a>(
        &'a self,
        decided: &'a Decided,
        original: Original<'a>,
        out: &mut Vec<Outgoing<'a>>,
    ) {
        let single = self.topics.unique == self.topics.near_duplicate;
        let mut retracted = false;
        for output in &decided.outputs {
            match output {
                Output::Tagged(tagged) => out.push(self.tagged(tagged, original)),
                // On a single topic the article's new record replaces the old one; only a deleted article is retracted,
                // once.
                Output::Tombstone { lives, .. }
                    if single && (*lives || std::mem::replace(&mut retracted, true)) => {}
                Output::Tombstone { id, outlet, .. } => out.push(self.tombstone(id, *outlet, decided)),
                Output::Notice { notice, .. } if FAULTS.has(Mutant::TwoVoices) => {
                    out.extend(
                        OutputTopic::Both.topics().map(|outlet| self.tombstone(&notice.id, outlet, decided)),
                    );
                }
                Output::Notice { to, notice } => out.push(Outgoing {
                    topic: &self.topics.routed,
                    partition: Some(*to),
                    key: Some(id_key(&notice.id)),
                    value: Some(routed::encode_notice(notice, &decided.position, decided.time).into()),
                    headers: Vec::new(),
                    time: decided.time,
                }),
                Output::Cluster(cluster) => {
                    let value = match self.wire {
                        OutputEncoding::Json => {
                            let mut value = Vec::new();
                            json::write_cluster(cluster, &mut value);
                            value.pop();
                            value
                        }
                        OutputEncoding::Avro { clusters, .. } => {
                            let mut value = avro::frame(clusters, 1024);
                            avro::write_cluster(cluster, &mut value);
                            value
                        }
                    };
                    out.push(self.cluster(cluster.id.to_string(), Some(value), &decided.position));
                }
                Output::ClusterDeleted { id, remaining } => {
                    let mut tombstone = self.cluster(id.to_string(), None, &decided.position);
                    let canonical = |id: &'a ArticleId| text_header(ours!("canonical"), id.as_str());
                    tombstone.headers.extend(remaining.as_ref().map(canonical));
                    out.push(tombstone);
                }
                Output::DeadLetter(letter) => out.push(self.dead_letter(letter, original)),
            }
        }
    }

    fn tombstone<'a>(&'a self, id: &'a ArticleId, outlet: OutputTopic, decided: &'a Decided) -> Outgoing<'a> {
        Outgoing {
            topic: match outlet {
                OutputTopic::NearDuplicate => &self.topics.near_duplicate,
                OutputTopic::Unique | OutputTopic::None | OutputTopic::Both => &self.topics.unique,
            },
            key: Some(id_key(id)),
            headers: position(&decided.position).collect(),
            // A forget has a time of its own: it travels with an arbitrary record.
            time: decided.time,
            ..Outgoing::default()
        }
    }

    /// True if the tagged article can be delivered, for any verdict.
    pub(crate) fn fit(&self, original: Original<'_>) -> Fit {
        let article = original.value().map_or(0, <[u8]>::len);
        let value = match (self.form, self.wire) {
            (ValueForm::Envelope, OutputEncoding::Json) if !is_json(original) => 2 * article + 2,
            _ => article,
        };
        let topics = [&self.topics.unique, &self.topics.near_duplicate];
        let limit = topics.map(|topic| self.limits.for_topic(topic).bytes).into_iter().min().unwrap_or(0);
        let bytes = value + VERDICT_OVERHEAD;
        match bytes + original.headers().map(|header| weight_of_one(&header)).sum::<usize>() {
            _ if bytes > limit => Fit::No { bytes, limit },
            all if all > limit => Fit::WithoutHeaders,
            _ => Fit::Whole,
        }
    }

    /// Drops the headers of records whose tagged article would be too large with them, and turns articles that are too
    /// large even without headers into dead letters.
    pub(crate) fn fit_all(&self, items: &mut [ReadItem], records: &mut [Record]) {
        if FAULTS.has(Mutant::Unmeasured) {
            return;
        }
        for ReadItem { item, origin } in items {
            let Some(record) = records.get_mut(origin.record) else { continue };
            let article = match &item.incoming {
                Incoming::Article(article) | Incoming::Bodiless { article, .. } => article,
                _ => continue,
            };
            match self.fit(Original { record, slice: origin.slice }) {
                Fit::Whole => {}
                Fit::WithoutHeaders => record.drop_headers(),
                Fit::No { bytes, limit } => {
                    let letter = too_large(item.position.clone(), bytes, limit);
                    let (id, language) = (article.id.clone(), article.language);
                    item.incoming = Incoming::Undelivered { id, language, letter };
                }
            }
        }
    }

    fn tagged<'a>(&'a self, tagged: &'a Verdict, original: Original<'a>) -> Outgoing<'a> {
        let article = original.value().unwrap_or_default();
        let value: Cow<'_, [u8]> = match (self.form, self.wire) {
            (ValueForm::Passthrough, _) => article.into(),
            (ValueForm::Envelope, OutputEncoding::Json) => enveloped_json(tagged, original).into(),
            (ValueForm::Envelope, OutputEncoding::Avro { unique, near_duplicate, .. }) => {
                let id = if tagged.kind == VerdictKind::Unique { unique } else { near_duplicate };
                let mut value = avro::frame(id, article.len() + 1024);
                let article = match original.slice.encoding {
                    PayloadEncoding::Mapped => ArticlePart::Mapped(article),
                    PayloadEncoding::Own | PayloadEncoding::Json => ArticlePart::Original(article),
                };
                avro::write_envelope(tagged, article, &mut value);
                value.into()
            }
        };
        // Eleven of the verdict and three of the position, at most.
        let mut headers = Vec::with_capacity(original.record.headers.len() + 15);
        headers.extend(original.headers());
        verdict(tagged, &mut headers);
        headers.extend(position(&tagged.input));
        Outgoing {
            topic: match tagged.kind {
                VerdictKind::Unique => &self.topics.unique,
                VerdictKind::NearDuplicate | VerdictKind::ExactDuplicate => &self.topics.near_duplicate,
            },
            partition: None,
            key: Some(id_key(&tagged.id)),
            value: Some(value),
            headers,
            time: original.record.time,
        }
    }

    fn cluster<'a>(&'a self, id: String, value: Option<Vec<u8>>, from: &'a Position) -> Outgoing<'a> {
        let (key, value) = (Some(id.into_bytes().into()), value.map(Cow::Owned));
        let headers = position(from).collect();
        Outgoing { topic: &self.topics.clusters, key, value, headers, ..Outgoing::default() }
    }

    /// The input record unchanged, with the reason in headers. Value, headers and key are dropped as far as they do not
    /// fit.
    pub(crate) fn dead_letter<'a>(&'a self, letter: &'a DeadLetter, original: Original<'a>) -> Outgoing<'a> {
        let record = original.record;
        let mut headers: Vec<OutgoingHeader<'a>> = original.headers().collect();
        if let Position::Topic { topic, partition, offset } = &letter.position {
            headers.push(text_header(error_header!("topic"), topic.as_str()));
            headers.push(header(error_header!("partition"), partition.to_string()));
            headers.push(header(error_header!("offset"), offset.to_string()));
        }
        let stage = match letter.reason {
            DeadLetterReason::Undeliverable => "deliver",
            DeadLetterReason::Unreadable => "read",
            _ => "decode",
        };
        headers.push(text_header(error_header!("stage"), stage));
        headers.push(text_header(error_header!("exception.class.name"), letter.reason.as_str()));
        headers.push(text_header(error_header!("exception.message"), &letter.message));
        let value = original.value().map(Cow::Borrowed);
        let mut out = Outgoing {
            topic: &self.topics.dead_letter,
            partition: None,
            key: record.key.as_deref().map(Cow::Borrowed),
            value,
            headers,
            // The broker may have refused the record because of its time.
            time: record.time.filter(|_| !matches!(record.fate, Some(Fate::Undeliverable { .. }))),
        };
        let limit = self.limits.for_topic(&self.topics.dead_letter).bytes;
        let copy = record.copied();
        if copy > Copied::Whole || record.not_copied() > 0 || out.bytes() > limit {
            let bytes = record.not_copied() + out.value.take().map_or(0, |value| value.len());
            out.headers.push(header(error_header!("value.dropped.bytes"), bytes.to_string()));
        }
        // Key and headers alone may be too large.
        if copy > Copied::WithoutValue || out.bytes() > limit {
            out.headers.retain(|(name, _)| name.starts_with(ERROR_HEADER_PREFIX));
            out.key = None;
            out.headers.push(text_header(error_header!("headers.dropped"), "true"));
        }
        out
    }

    /// The changelog record of a change of this write set.
    pub(crate) fn change<'a>(
        &'a self,
        change: &'a Change,
        write_set: &'a WriteSet,
        partition: i32,
    ) -> Outgoing<'a> {
        let (key, value) = write_set.encode(change);
        let (topic, partition) = (&self.topics.changelog, Some(partition));
        Outgoing { topic, partition, key: Some(key.into()), value, ..Outgoing::default() }
    }
}

fn id_key(id: &ArticleId) -> Cow<'_, [u8]> {
    Cow::Borrowed(id.as_str().as_bytes())
}

/// The input headers that an article keeps on the routed topic, whose records may have `limit` bytes: all of them, or
/// none if it would be too large with them. The decision depends on the article alone, not on the forgets that travel
/// with it.
///
/// # Errors
/// The article is too large even without headers.
pub(crate) fn fitting_headers(
    limit: usize,
    from: &Position,
    article: usize,
    headers: &Headers,
) -> Result<Headers, DeadLetter> {
    let limit = if FAULTS.has(Mutant::Unmeasured) { usize::MAX } else { limit };
    let bytes = article + VERDICT_OVERHEAD;
    if bytes > limit {
        return Err(too_large(from.clone(), bytes, limit));
    }
    let kept: Headers = copied_headers(headers).cloned().collect();
    match weight(&kept) {
        dropped if bytes + dropped > limit => {
            Ok(vec![(HEADERS_DROPPED.to_owned(), Some(dropped.to_string().into_bytes()))])
        }
        _ => Ok(kept),
    }
}

/// In the message of a dead letter whose article was routed, but does not fit into its output.
pub(crate) const TOO_LARGE_FOR_OUTPUT: &str = "bytes in the output; the topic accepts";

fn too_large(position: Position, bytes: usize, limit: usize) -> DeadLetter {
    let message = format!("up to {bytes} {TOO_LARGE_FOR_OUTPUT} {limit}");
    DeadLetter { position, reason: DeadLetterReason::TooLarge, message }
}

/// True if the article's bytes are JSON and can be embedded in the envelope unchanged.
fn is_json(original: Original<'_>) -> bool {
    match original.slice.encoding {
        PayloadEncoding::Json => true,
        PayloadEncoding::Own => !avro::is_framed(original.value().unwrap_or_default()),
        PayloadEncoding::Mapped => false,
    }
}

/// The envelope around an article. Bytes that are not JSON were routed before the settings changed; they go out as a
/// string of hexadecimal digits, so nothing is lost.
fn enveloped_json(tagged: &Verdict, original: Original<'_>) -> Vec<u8> {
    let article = original.value().unwrap_or_default();
    if is_json(original) {
        return json::enveloped(tagged, article);
    }
    json::enveloped(tagged, format!("\"{}\"", hex::encode(article)).as_bytes())
}

/// Adds the verdict as headers, so that consumers can filter without decoding values.
fn verdict<'a>(tagged: &'a Verdict, headers: &mut Vec<OutgoingHeader<'a>>) {
    headers.push(text_header(ours!("verdict"), tagged.kind.as_str()));
    if let Some(kind) = tagged.match_type {
        headers.push(text_header(ours!("match-type"), kind.as_str()));
    }
    if let Some(id) = &tagged.duplicate_of {
        headers.push(text_header(ours!("duplicate-of"), id.as_str()));
    }
    headers.push(header(ours!("cluster"), tagged.cluster.to_string()));
    headers.push(text_header(ours!("canonical"), tagged.canonical_id.as_str()));
    headers.push(header(ours!("similarity"), tagged.similarity.get().to_string()));
    headers.push(header(ours!("confidence"), tagged.confidence.get().to_string()));
    headers.push(text_header(ours!("language"), tagged.language.code()));
    headers.push(header(ours!("revision"), tagged.revision.to_string()));
    if !tagged.flags.is_empty() {
        let flags: Vec<&str> = tagged.flags.iter().map(|flag| flag.as_str()).collect();
        headers.push(header(ours!("flags"), flags.join(",")));
    }
    if !tagged.related.is_empty() {
        headers.push(header(ours!("related"), json::related(&tagged.related)));
    }
}

/// Headers with the position of the input record.
fn position(position: &Position) -> impl Iterator<Item = OutgoingHeader<'_>> {
    let headers = match position {
        Position::Topic { topic, partition, offset } => Some([
            text_header(ours!("topic"), topic.as_str()),
            header(ours!("partition"), partition.to_string()),
            header(ours!("offset"), offset.to_string()),
        ]),
        Position::File { .. } => None,
    };
    headers.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Settings};

    fn writer(most: u32) -> Writer {
        let settings: Settings = toml::from_str(&format!("[topics]\nmax_message_bytes = {most}")).unwrap();
        let topics = Config::try_from(settings).unwrap().bus.topics;
        let limits = Arc::new(Limits::of_settings(&topics));
        Writer { topics, form: ValueForm::Envelope, wire: OutputEncoding::Json, limits }
    }

    fn fit(value: Vec<u8>, header: usize) -> Fit {
        let headers = vec![("h".to_owned(), Some(vec![0; header]))];
        let record = Record { value: Some(value), headers, ..Record::default() };
        writer(200_000).fit(Original { record: &record, slice: ArticleSlice::WHOLE })
    }

    #[test]
    fn headers_are_dropped_before_the_article_is() {
        assert_eq!(fit(b"{}".to_vec(), 10), Fit::Whole);
        assert_eq!(fit(b"{}".to_vec(), 140_000), Fit::WithoutHeaders);
        assert!(matches!(fit(vec![b' '; 140_000], 10), Fit::No { limit: 200_000, .. }));
    }

    // Avro that was routed before the settings asked for JSON goes out as hexadecimal digits, twice as long. It passed
    // the size check on input, the broker refused it on output, and it was retried forever.
    #[test]
    fn the_size_check_counts_hexadecimal_output_twice() {
        let avro = |bytes: usize| [vec![0; 5], vec![b'a'; bytes]].concat();
        assert_eq!(fit(avro(60_000), 10), Fit::Whole);
        assert!(matches!(fit(avro(80_000), 10), Fit::No { .. }));
        assert_eq!(fit(vec![b' '; 80_000], 10), Fit::Whole);
    }

    #[test]
    fn a_dead_letter_shrinks_until_it_fits() {
        let writer = writer(200_000);
        let letter = |value: usize, header: usize, fate: Option<Fate>| {
            let headers = vec![("h".to_owned(), Some(vec![0; header]))];
            let key = Some(b"key".to_vec());
            let time = Some(samestory_engine::model::EventTime::from_millis(1_930_000_000_000));
            let record =
                Record { time, key, value: Some(vec![1; value]), headers, fate, ..Record::default() };
            let position = record.position("raw", 0);
            let letter = too_large(position, 1, 1);
            let out = writer.dead_letter(&letter, Original { record: &record, slice: ArticleSlice::WHOLE });
            assert!(out.bytes() <= 200_000);
            // The broker may have refused the record because of its time.
            assert_eq!(out.time.is_some(), record.fate.is_none());
            (out.value.is_some(), out.key.is_some(), out.headers.iter().any(|(name, _)| name == "h"))
        };
        assert_eq!(letter(100, 100, None), (true, true, true));
        assert_eq!(letter(300_000, 100, None), (false, true, true));
        assert_eq!(letter(300_000, 300_000, None), (false, false, false));
        let refused = |copy| Some(Fate::Undeliverable { why: String::new(), copy });
        assert_eq!(letter(100, 100, refused(Copied::Whole)), (true, true, true));
        assert_eq!(letter(100, 100, refused(Copied::WithoutValue)), (false, true, true));
        assert_eq!(letter(100, 100, refused(Copied::Nothing)), (false, false, false));
    }
}
