//! A raw record → an [`Incoming`] for the engine. [`Decoder`] parses JSON or Avro, maps the fields, checks who owns the
//! id and computes the fingerprint; both roles, the probe and the replay use it. A record that cannot be decoded
//! becomes a dead letter, never an error.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::config::{Config, InputFormat};
use crate::formats::fields::{DecodeFailure, Field, Fields, RecordContext, Value, WithContext};
use crate::formats::registry::{Registry, SchemaCache};
use crate::formats::{Event, Owner, avro, isolate, json};
use crate::metrics;
use samestory_engine::engine::{Incoming, Preparer};
use samestory_engine::model::{ArticleId, Position};
use samestory_engine::model::{DeadLetter, DeadLetterReason};

use super::ahead::DecodedAhead;
use super::payload::{Payload, PayloadPolicy};
use crate::kafka::matching::outgoing::VERDICT_OVERHEAD;
use crate::kafka::turn::record::Record;

/// Records that one thread decodes at a time: fewer are not worth waking one. This many take a few milliseconds.
pub(super) const RECORDS_PER_THREAD: usize = 50;

/// The decoded record, and the payload that replaces its own bytes in the output, if any.
pub(crate) type Decoded = (Incoming, Payload);

/// Decodes raw records.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    preparer: Preparer,
    fields: Fields,
    owner: Owner,
    /// Longer values are dead letters and are not parsed.
    limit: usize,
    /// True if keys are article ids: then a tombstone deletes the article that its key names.
    keyed_by_id: bool,
    format: InputFormat,
    payload_policy: PayloadPolicy,
    /// Writer schemas of Avro values.
    schemas: Option<SchemaCache>,
    /// Records of the next batch.
    ahead: DecodedAhead,
}

impl Decoder {
    pub(crate) fn new(config: &Config, keyed_by_id: bool, registry: Option<&Arc<Registry>>) -> Decoder {
        let largest = (config.bus.topics.max_message_bytes as usize).saturating_sub(VERDICT_OVERHEAD);
        Decoder {
            preparer: Preparer::new(config.text.clone()),
            fields: config.fields.clone(),
            owner: config.owner.clone(),
            limit: config.max_record().min(largest),
            keyed_by_id,
            format: config.bus.formats.input,
            payload_policy: PayloadPolicy::new(config.bus.value, config.bus.formats),
            schemas: registry.map(|registry| SchemaCache::new(Arc::clone(registry))),
            ahead: DecodedAhead::default(),
        }
    }

    /// Fetches the writer schemas of these records that are not cached yet.
    ///
    /// # Errors
    /// The registry is unavailable, which says nothing about the records: keep them and retry.
    pub(crate) fn load_schemas<'r>(
        &mut self,
        records: impl Iterator<Item = &'r Record>,
    ) -> Result<(), String> {
        let Some(schemas) = self.schemas.as_mut().filter(|_| self.format != InputFormat::Json) else {
            return Ok(());
        };
        let values = records.filter_map(|record| record.value.as_deref());
        let values = values.filter(|value| value.len() <= self.limit);
        let ids: BTreeSet<u32> = values
            .filter(|value| avro::is_framed(value))
            .filter_map(|value| avro::unframe(value).ok())
            .map(|framed| framed.id)
            .collect();
        schemas.load(&ids)
    }

    /// Called once the records have been decoded: the schema cache may evict entries.
    pub(crate) fn evict_schemas(&mut self) {
        if let Some(schemas) = &mut self.schemas {
            schemas.evict();
        }
    }

    /// Hash of the settings that determine fingerprints.
    pub(crate) fn fingerprints(&self) -> u32 {
        self.preparer.config()
    }

    /// Decodes records in their order, on several threads if there are many. No result depends on an earlier record.
    pub(crate) fn decode_all(
        &self,
        records: &[Record],
        position: impl Fn(&Record) -> Position + Sync,
    ) -> Vec<Decoded> {
        let ready = self.ahead.take(records, &position);
        let left = ready.iter().filter(|ready| ready.is_none()).count();
        let decode = |(record, ready): (&Record, Option<Decoded>)| {
            ready.unwrap_or_else(|| self.decode(record, &position(record)))
        };
        let decoded: Vec<Decoded> = match pool().filter(|_| left >= 2 * RECORDS_PER_THREAD) {
            Some(pool) => pool.install(|| {
                records.par_iter().zip(ready).with_min_len(RECORDS_PER_THREAD).map(decode).collect()
            }),
            None => records.iter().zip(ready).map(decode).collect(),
        };
        let articles = decoded.iter().filter(|(incoming, _)| matches!(incoming, Incoming::Article(_)));
        metrics::fingerprints(articles.count() as u64);
        decoded
    }

    /// Decodes copies of these records on other threads, for the batch after this one. Not if it depends on schemas: those of
    /// the records may not have been fetched.
    pub(crate) fn decode_ahead<'r>(&self, records: impl Iterator<Item = (&'r Record, Position)>) {
        let Some(pool) = pool().filter(|_| self.schemas.is_none()) else { return };
        let copies: Vec<(Record, Position)> =
            records.map(|(record, position)| (record.clone(), position)).collect();
        if copies.len() >= 2 * RECORDS_PER_THREAD {
            let decoder = self.clone();
            self.ahead.start(pool, copies, move |record, position| decoder.decode(record, position));
        }
    }

    /// Decodes one record.
    pub(crate) fn decode(&self, record: &Record, position: &Position) -> Decoded {
        if let Some(letter) = record.dead_letter(position) {
            return (Incoming::DeadLetter(letter), None);
        }
        let decoded = isolate(record.value.as_deref().unwrap_or_default(), || {
            Ok(match self.event(record)? {
                (Event::Delete(id), _) => (Incoming::Delete(id), None),
                (Event::Article(article), payload) => match self.preparer.prepare(&article, position) {
                    Ok(prepared) => (Incoming::Article(Box::new(prepared)), payload),
                    Err(letter) => (Incoming::DeadLetter(letter), None),
                },
                (Event::Bodiless(article, refusal), payload) => {
                    match self.preparer.prepare(&article, position) {
                        Ok(prepared) => {
                            let DecodeFailure { reason, message } = refusal;
                            let refusal = DeadLetter { position: position.clone(), reason, message };
                            (Incoming::Bodiless { article: Box::new(prepared), refusal }, payload)
                        }
                        Err(letter) => (Incoming::DeadLetter(letter), None),
                    }
                }
            })
        });
        decoded.unwrap_or_else(|DecodeFailure { reason, message }| {
            (Incoming::DeadLetter(DeadLetter { position: position.clone(), reason, message }), None)
        })
    }

    fn event(&self, record: &Record) -> Result<(Event, Payload), DecodeFailure> {
        let key = || record.key.as_deref().and_then(|key| str::from_utf8(key).ok()).map(str::to_owned);
        let context = RecordContext { key: record.key.as_deref(), headers: &record.headers };
        let Some(value) = &record.value else {
            let id = key().filter(|_| self.keyed_by_id).ok_or_else(|| {
                let why = match self.keyed_by_id {
                    true => "a tombstone deletes the article that its key names, and this one has no key",
                    false => "a tombstone has no id here, because keys are not ids; send a delete as an event with an id",
                };
                DecodeFailure::new(DeadLetterReason::NoId, why)
            })?;
            let id = ArticleId::new(&id)
                .map_err(|error| DecodeFailure::new(DeadLetterReason::NoId, error.to_string()))?;
            self.owner.check(&id, || None, context)?;
            return Ok((Event::Delete(id), None));
        };
        if value.len() > self.limit {
            let message = format!("the value has {} bytes; at most {} are accepted", value.len(), self.limit);
            return Err(DecodeFailure::new(DeadLetterReason::TooLarge, message));
        }
        let name = || key().filter(|_| self.names_by_key());
        let is_avro = match self.format {
            InputFormat::Json => false,
            InputFormat::Avro => true,
            InputFormat::Auto => avro::is_framed(value),
        };
        if is_avro {
            let framed = avro::unframe(value)?;
            let Some(schemas) = &self.schemas else {
                let why = "begins with a zero byte, like Avro from a schema registry; set registry.url";
                return Err(DecodeFailure::new(DeadLetterReason::Undecodable, why));
            };
            let schema = schemas.get(framed.id)?;
            let datum = avro::Datum::parse(schema, framed.datum).map_err(|refusal| {
                let message = format!("schema {}, {}", framed.id, refusal.message);
                DecodeFailure::new(refusal.reason, message)
            })?;
            let record = WithContext::Record(datum, context);
            let event = self.owned_event(&record, name, context)?;
            let WithContext::Record(datum, _) = record else { return Ok((event, None)) };
            return self.with_payload(event, Some(&datum));
        }
        let record = WithContext::Record(json::JsonRecord::parse(value)?, context);
        self.with_payload(self.owned_event(&record, name, context)?, None)
    }

    /// Maps a record to an article or delete, and checks that its source owns the id.
    fn owned_event<V: Value>(
        &self,
        record: &V,
        name: impl Fn() -> Option<String>,
        context: RecordContext<'_>,
    ) -> Result<Event, DecodeFailure> {
        let event = self.fields.event(record, name)?;
        self.owner.check(event.id(), || self.fields.site(record), context)?;
        Ok(event)
    }

    /// True if the record's key is the id of an article that has none. Not if the settings name a path for the id: a
    /// record without that path is a dead letter, because if keys are not ids (a site, a date) all articles of a key
    /// would become versions of one.
    fn names_by_key(&self) -> bool {
        self.keyed_by_id && !self.fields.is_configured(Field::Id)
    }

    /// For each field of a record, the path or name under which it was found; empty for a record that cannot be decoded.
    pub(crate) fn sources(&self, record: &Record) -> BTreeMap<Field, String> {
        fn found<V: Value>(fields: &Fields, record: &V) -> BTreeMap<Field, String> {
            let source = |field| Some((field, fields.source(record, field)?.to_owned()));
            Field::ALL.into_iter().filter_map(source).collect()
        }
        let Some(value) = &record.value else { return BTreeMap::new() };
        let context = RecordContext { key: record.key.as_deref(), headers: &record.headers };
        let mut sources = match (self.format, &self.schemas) {
            (InputFormat::Avro | InputFormat::Auto, Some(schemas)) if avro::is_framed(value) => {
                let schema =
                    avro::unframe(value).and_then(|framed| Ok((schemas.get(framed.id)?, framed.datum)));
                let Ok((schema, datum)) = schema else { return BTreeMap::new() };
                let Ok(datum) = avro::Datum::parse(schema, datum) else { return BTreeMap::new() };
                found(&self.fields, &WithContext::Record(datum, context))
            }
            _ => {
                let Ok(json) = json::JsonRecord::parse(value) else { return BTreeMap::new() };
                found(&self.fields, &WithContext::Record(json, context))
            }
        };
        if record.key.is_some() && self.names_by_key() {
            sources.entry(Field::Id).or_insert_with(|| "the record's key".to_owned());
        }
        sources
    }

    /// The record's value as JSON, whichever format it has; `None` if it cannot be read. For people, who look for the paths
    /// of its fields.
    pub(crate) fn as_json<'r>(&self, record: &'r Record) -> Option<Cow<'r, [u8]>> {
        let value = record.value.as_deref().filter(|value| value.len() <= self.limit)?;
        match (self.format, &self.schemas) {
            (InputFormat::Avro | InputFormat::Auto, Some(schemas)) if avro::is_framed(value) => {
                let framed = avro::unframe(value).ok()?;
                let datum = avro::Datum::parse(schemas.get(framed.id).ok()?, framed.datum).ok()?;
                Some(avro::as_json(&datum).into())
            }
            _ => Some(value.into()),
        }
    }

    /// Adds the payload. It may be longer than the record's own bytes and must fit into a record too: one that the broker
    /// refuses would be retried forever.
    fn with_payload(
        &self,
        event: Event,
        datum: Option<&avro::Datum<'_>>,
    ) -> Result<(Event, Payload), DecodeFailure> {
        let payload = match &event {
            Event::Article(article) | Event::Bodiless(article, _) => {
                self.payload_policy.payload(article, datum)
            }
            Event::Delete(_) => None,
        };
        if let Some((_, bytes)) = &payload
            && bytes.len() > self.limit
        {
            let message =
                format!("{} bytes in the output encoding; at most {} are accepted", bytes.len(), self.limit);
            return Err(DecodeFailure::new(DeadLetterReason::TooLarge, message));
        }
        Ok((event, payload))
    }
}

/// The threads that decode for all workers, one for each core; `None` if they cannot be started.
fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let start = || {
        let pool = ThreadPoolBuilder::new().thread_name(|number| format!("decode-{number}")).build();
        pool.inspect_err(|error| tracing::warn!(%error, "cannot start threads; each worker decodes alone"))
            .ok()
    };
    POOL.get_or_init(start).as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::kafka::turn::record::{Copied, Fate};
    use samestory_engine::model::BoundedStr;

    fn decode(record: &Record, keyed_by_id: bool) -> Incoming {
        let config = Config::try_from(Settings::default()).unwrap();
        let position = Position::Topic { topic: BoundedStr::new("raw"), partition: 0, offset: 0 };
        Decoder::new(&config, keyed_by_id, None).decode(record, &position).0
    }

    fn record(key: Option<&str>, value: Option<&str>) -> Record {
        let bytes = |text: &str| text.as_bytes().to_vec();
        Record { key: key.map(bytes), value: value.map(bytes), ..Record::default() }
    }

    fn reason(incoming: &Incoming) -> DeadLetterReason {
        match incoming {
            Incoming::DeadLetter(letter) => letter.reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_tombstone_deletes_the_article_of_its_key_if_keys_are_ids() {
        let gone = decode(&record(Some("a"), None), true);
        assert!(matches!(gone, Incoming::Delete(id) if id.as_str() == "a"));
        assert_eq!(reason(&decode(&record(None, None), true)), DeadLetterReason::NoId);
        assert_eq!(reason(&decode(&record(Some("en"), None), false)), DeadLetterReason::NoId);
    }

    #[test]
    fn an_article_without_an_id_gets_the_key_as_its_id() {
        let article = decode(&record(Some("k"), Some(r#"{"body":"text"}"#)), true);
        assert!(matches!(article, Incoming::Article(article) if article.id.as_str() == "k"));
        assert_eq!(
            reason(&decode(&record(Some("en"), Some(r#"{"body":"text"}"#)), false)),
            DeadLetterReason::NoId
        );
    }

    // `[input.fields] id = "meta.uid"` with a typing error silently fell back to the record's key. The keys were sites:
    // `config check` passed, `probe` reported 100 %, and 60 articles became versions of one.
    #[test]
    fn a_configured_id_that_is_missing_is_a_dead_letter_and_not_the_key() {
        let settings: Settings = toml::from_str("[input.fields]\nid = \"meta.uid\"").unwrap();
        let decoder = Decoder::new(&Config::try_from(settings).unwrap(), true, None);
        let position = Position::Topic { topic: BoundedStr::new("raw"), partition: 0, offset: 0 };
        let decode = |value: &str| decoder.decode(&record(Some("site"), Some(value)), &position).0;
        let there = decode(r#"{"meta":{"uid":"a"},"body":"text"}"#);
        assert!(matches!(there, Incoming::Article(article) if article.id.as_str() == "a"));
        for missing in [r#"{"id":"a","body":"text"}"#, r#"{"meta":{"uid":null},"body":"text"}"#] {
            let Incoming::DeadLetter(letter) = decode(missing) else { panic!("{missing}") };
            assert_eq!(letter.reason, DeadLetterReason::NoId);
            assert!(letter.message.contains("missing field \"meta.uid\""), "{}", letter.message);
        }
        let sources = decoder.sources(&record(Some("site"), Some(r#"{"id":"a","body":"text"}"#)));
        assert_eq!(sources, BTreeMap::from([(Field::Body, "body".to_owned())]));
    }

    // Any producer could replace or delete any article, because nothing checked who may use an id.
    #[test]
    fn articles_updates_and_deletes_from_another_source_are_dead_letters() {
        let decoder = |owner: &str, keyed_by_id| {
            let settings: Settings = toml::from_str(&format!("[input]\nowner = \"{owner}\"")).unwrap();
            Decoder::new(&Config::try_from(settings).unwrap(), keyed_by_id, None)
        };
        let position = Position::Topic { topic: BoundedStr::new("raw"), partition: 0, offset: 0 };
        let refused = |decoder: &Decoder, record: &Record| match decoder.decode(record, &position).0 {
            Incoming::DeadLetter(letter) => {
                assert_eq!(letter.reason, DeadLetterReason::NotOwner, "{}", letter.message);
                true
            }
            Incoming::Article(_) | Incoming::Bodiless { .. } | Incoming::Delete(_) => false,
            other => panic!("{other:?}"),
        };
        // In routed mode keys are ids, in direct mode they are not.
        for keyed_by_id in [true, false] {
            let by_host = decoder("host", keyed_by_id);
            for (value, owned) in [
                (r#"{"id":"a.example/1","host":"A.Example","body":"text"}"#, true),
                (r#"{"id":"a.example/1","url":"https://a.example/1","body":"text"}"#, true),
                (r#"{"id":"a.example/1","host":"b.example","body":"text"}"#, false),
                (r#"{"id":"a.example/1","host":"www.a.example","body":"text"}"#, false),
                (r#"{"id":"a.example/1","body":"text"}"#, false),
                (r#"{"id":"a.example/1","host":"b.example","title":"no body"}"#, false),
                (r#"{"id":"a.example/1","host":"a.example","title":"no body"}"#, true),
                (r#"{"id":"a.example/1","url":"https://a.example/1","deleted":true}"#, true),
                (r#"{"id":"a.example/1","url":"https://b.example/1","deleted":true}"#, false),
                (r#"{"id":"a.example/1","deleted":true}"#, false),
            ] {
                assert_eq!(refused(&by_host, &record(Some("k"), Some(value))), !owned, "{value}");
            }
            let by_header = decoder("header:source", keyed_by_id);
            let with = |source: Option<&[u8]>, key: &str, value: Option<&str>| {
                let headers = source.map(|source| ("source".to_owned(), Some(source.to_vec())));
                Record { headers: headers.into_iter().collect(), ..record(Some(key), value) }
            };
            let article = Some(r#"{"id":"wire:7","host":"b.example","body":"text"}"#);
            assert!(!refused(&by_header, &with(Some(b"WIRE"), "wire:7", article)));
            for source in [None, Some(&b"other"[..]), Some(b"wire\xff"), Some(b"")] {
                assert!(refused(&by_header, &with(source, "wire:7", article)), "{source:?}");
                assert!(
                    refused(&by_header, &with(source, "k", Some(r#"{"id":"wire:7","deleted":true}"#))),
                    "{source:?}"
                );
            }
        }
        // A tombstone is a delete only if keys are ids. It has headers but no host.
        let tombstone = record(Some("wire:7"), None);
        let source = vec![("source".to_owned(), Some(b"wire".to_vec()))];
        let owned = Record { headers: source, ..tombstone.clone() };
        assert!(!refused(&decoder("header:source", true), &owned));
        assert!(refused(&decoder("header:source", true), &tombstone));
        assert!(refused(&decoder("host", true), &owned));
        assert!(!refused(&decoder("none", true), &tombstone));
    }

    #[test]
    fn decoding_a_batch_equals_decoding_one_by_one() {
        let config = Config::try_from(Settings::default()).unwrap();
        let decoder = Decoder::new(&config, true, None);
        let body = |n: usize| format!(r#"{{"body":"the river {n} rises"}}"#);
        let records: Vec<Record> = (0..3 * RECORDS_PER_THREAD + 7)
            .map(|n| Record {
                offset: n as i64,
                ..record(Some(&format!("k{n}")), (n % 5 > 0).then(|| body(n)).as_deref())
            })
            .collect();
        let position = |record: &Record| record.position("raw", 3);
        let decoded = decoder.decode_all(&records, position);
        assert_eq!(decoded.len(), records.len());
        for (record, (incoming, _)) in records.iter().zip(&decoded) {
            assert_eq!(format!("{incoming:?}"), format!("{:?}", decoder.decode(record, &position(record)).0));
        }
        assert!(decoder.decode_all(&[], position).is_empty());
    }

    #[test]
    fn a_value_that_is_too_large_is_not_parsed() {
        let huge = format!("[{}", " ".repeat(5 << 20));
        assert_eq!(reason(&decode(&record(None, Some(&huge)), true)), DeadLetterReason::TooLarge);
        // Large headers do not count: they can be dropped to deliver the article.
        let mut heavy = record(None, Some(r#"{"id":"a","body":"text"}"#));
        heavy.headers.push(("h".into(), Some(vec![0; 40 << 10])));
        assert!(matches!(decode(&heavy, true), Incoming::Article(_)));
    }

    #[test]
    fn a_record_whose_fate_is_decided_is_not_parsed() {
        let mut article = record(Some("a"), Some(r#"{"id":"a","body":"text"}"#));
        article.fate = Some(Fate::Undeliverable { why: "refused".into(), copy: Copied::Whole });
        assert_eq!(reason(&decode(&article, true)), DeadLetterReason::Undeliverable);
        article.fate = Some(Fate::Unreadable { first: 3, why: "bomb".into() });
        assert_eq!(reason(&decode(&article, true)), DeadLetterReason::Unreadable);
    }
}
