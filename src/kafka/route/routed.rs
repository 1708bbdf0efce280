//! The bytes of the routed topic. Route writes articles, deletes and forgets, match writes relocation notices, and an
//! operator's command writes control records; match reads them all. The format is internal, and any other layout number
//! is refused.
//!
//! Numbers and texts are as in [`samestory_engine::index::format::value`]: little-endian, `text` is u16 length · UTF-8.
//!
//! | bytes | field |
//! |------:|-------|
//! | 1 | layout, 5; any other is refused |
//! | 1 | kind: 1 article, 2 delete, 3 only forgets, 4 relocation notice, 16 control; plus 128 if the record is silent |
//! | text, 16 | the raw topic: name, id (zeros: unknown) |
//! | 4 | number of forgets that precede the rest, then for each, in raw order: |
//! | 4, 8, optional 8 | the raw record that moved the article: partition, offset, time |
//! | 4, text | the routed partition that it moved to, the article's id |
//!
//! An **article** continues with
//!
//! | bytes | field |
//! |------:|-------|
//! | 1 | encoding of the rest: 0 unchanged, 1 JSON, 2 `raw-article.avsc` |
//! | 4, 8, optional 8 | the raw record: partition, offset, time |
//! | optional 8 | route's stamp, see [`RoutedEvent`] |
//! | text | id |
//! | language, 1 | home language; its source: 0 declared, 1 text, 2 none |
//! | language, optional text | reported language, declared language |
//! | optional 8, twice | published at, fetched at |
//! | 4 | flags, one bit each; the two highest bits are the kind of content: 0 ordinary or short, 1 list, 2 table |
//! | optional text, three times | title, host, url |
//! | 4, then that many | fingerprint |
//! | rest | the record's value unchanged, or the payload that replaces it |
//!
//! and a **delete** with the raw record (4, 8, optional 8), the stamp (optional 8) and the id (text).
//!
//! A **relocation notice** has no forgets, is written by match and continues with
//!
//! | bytes | field |
//! |------:|-------|
//! | 4, 8, optional 8 | the raw record that moved the article away from the sender: partition, offset, time |
//! | 1 | output topic, as in [`samestory_engine::index::format::value`] |
//! | 1 | how often it was forwarded although raw positions could not be compared |
//! | text | id |
//!
//! A **control** record is written by an operator's command, not by route. Layout and kind are followed by the language
//! whose stream time is set, and the time (language, 8).

use samestory_engine::engine::{Notice, Prepared};
use samestory_engine::fingerprint::Fingerprint;
use samestory_engine::index::format::bytes::{ByteReader, ByteWriter};
use samestory_engine::index::{DecodeError, OutputTopic};
use samestory_engine::model::{ArticleId, BoundedStr, EventTime, Lang, LanguageSource, Position, TopicId};
use samestory_engine::model::{ContentKind, Flag};

use super::payload::{ArticleSlice, PayloadEncoding};

const LAYOUT: u8 = 5;
const ARTICLE: u8 = 1;
const DELETE: u8 = 2;
const FORGETS: u8 = 3;
const NOTICE: u8 = 4;
const SET_STREAM_TIME: u8 = 16;
/// Match updates its state but publishes nothing: another generation has published it already.
const SILENT: u8 = 128;
const SOURCES: [LanguageSource; 3] = [LanguageSource::Declared, LanguageSource::Text, LanguageSource::None];

/// A decoded routed record: first the forgets, in raw order, then the article, delete or notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoutedRecord {
    /// The id of the raw topic that all positions of the record refer to.
    pub(crate) topic: TopicId,
    /// Articles that now live in other partitions.
    pub(crate) forgets: Vec<Forget>,
    /// `None` in a record that holds only forgets.
    pub(crate) event: Option<RoutedEvent>,
}

/// An article, a delete or a relocation notice, caused by one raw record.
///
/// `stamp` is a clock that no crawler can set: the broker's append time if the raw topic has one, otherwise the time at
/// which the route process routed the record. It is recorded in the log because it is the only field that differs when
/// a record is routed again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RoutedEvent {
    /// An article in a language of this partition. `slice` is where its payload is in the record's value.
    Article {
        prepared: Box<Prepared>,
        from: Position,
        time: Option<EventTime>,
        stamp: Option<EventTime>,
        slice: ArticleSlice,
    },
    /// The article is deleted, whatever its language.
    Delete { id: ArticleId, from: Position, time: Option<EventTime>, stamp: Option<EventTime> },
    /// Another partition was the article's home until the raw record `from`.
    Notice { notice: Notice, from: Position, time: Option<EventTime> },
}

impl RoutedEvent {
    /// The position of the raw record that caused it.
    pub(crate) fn from(&self) -> &Position {
        match self {
            RoutedEvent::Article { from, .. }
            | RoutedEvent::Delete { from, .. }
            | RoutedEvent::Notice { from, .. } => from,
        }
    }
}

/// An article that now lives in another partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forget {
    pub(crate) id: ArticleId,
    /// The raw record that moved it, and that record's time.
    pub(crate) from: Position,
    pub(crate) time: Option<EventTime>,
    /// The routed partition where it lives now.
    pub(crate) to: i32,
}

/// Name and id of the raw topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawTopic<'a> {
    pub(crate) name: &'a str,
    pub(crate) id: TopicId,
}

/// A raw record: its position, its record time, and route's stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawSource {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) time: Option<EventTime>,
    pub(crate) stamp: Option<EventTime>,
}

impl RawSource {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.partition.to_le_bytes());
        out.extend(self.offset.to_le_bytes());
        out.optional(self.time, |out, time| out.time(time));
    }
}

/// Encoded forgets, in raw order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forgets {
    count: u32,
    bytes: Vec<u8>,
}

impl Forgets {
    /// Appends a forget: the raw record `source` moved the article to partition `to`.
    pub(crate) fn push(&mut self, id: &ArticleId, source: RawSource, to: i32) {
        self.count += 1;
        source.write(&mut self.bytes);
        self.bytes.extend(to.to_le_bytes());
        self.bytes.id(id);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Encoded length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

fn begin(kind: u8, topic: RawTopic<'_>, forgets: &Forgets, more: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(forgets.bytes.len() + more + 512);
    out.extend([LAYOUT, kind]);
    out.text(topic.name);
    out.extend(topic.id.bytes());
    out.extend(forgets.count.to_le_bytes());
    out.extend(&forgets.bytes);
    out
}

/// Encodes an article, preceded by the forgets for its partition.
pub(crate) fn encode_article(
    prepared: &Prepared,
    topic: RawTopic<'_>,
    forgets: &Forgets,
    source: RawSource,
    encoding: PayloadEncoding,
    value: &[u8],
) -> Vec<u8> {
    let fingerprint = prepared.fingerprint.encode();
    let mut out = begin(ARTICLE, topic, forgets, fingerprint.len() + value.len());
    out.push(encoding.number());
    source.write(&mut out);
    out.optional(source.stamp, |out, stamp| out.time(stamp));
    out.id(&prepared.id);
    out.language(prepared.language);
    out.push(match prepared.language_source {
        LanguageSource::Declared => 0,
        LanguageSource::Text => 1,
        LanguageSource::None => 2,
    });
    out.language(prepared.reported_language);
    out.optional(prepared.declared_language.as_ref(), |out, tag| out.text(tag.as_str()));
    out.optional(prepared.published_at, |out, time| out.time(time));
    out.optional(prepared.fetched_at, |out, time| out.time(time));
    let bit = |flag: &Flag| Flag::ALL.iter().position(|known| known == flag).map_or(0, |at| 1_u32 << at);
    let flags = prepared.flags.iter().map(bit).fold(0, |all, bit| all | bit);
    out.extend((flags | prepared.content_kind.bits()).to_le_bytes());
    out.optional(prepared.title.as_ref(), |out, title| out.text(title.as_str()));
    out.optional(prepared.host.as_ref(), |out, host| out.text(host.as_str()));
    out.optional(prepared.url.as_ref(), |out, url| out.text(url.as_str()));
    out.extend((fingerprint.len() as u32).to_le_bytes());
    out.extend(fingerprint);
    out.extend(value);
    out
}

/// Encodes a delete, preceded by the forgets for its partition.
pub(crate) fn encode_delete(
    id: &ArticleId,
    topic: RawTopic<'_>,
    forgets: &Forgets,
    source: RawSource,
) -> Vec<u8> {
    let mut out = begin(DELETE, topic, forgets, 0);
    source.write(&mut out);
    out.optional(source.stamp, |out, stamp| out.time(stamp));
    out.id(id);
    out
}

/// Encodes a record that holds only forgets.
pub(crate) fn encode_forgets(topic: RawTopic<'_>, forgets: &Forgets) -> Vec<u8> {
    begin(FORGETS, topic, forgets, 0)
}

/// Encodes a relocation notice: the sender was the article's home until the raw record at this position.
pub(crate) fn encode_notice(notice: &Notice, until: &Position, time: Option<EventTime>) -> Vec<u8> {
    // Files have no partitions that an article could move between.
    let (topic, partition, offset) = match until {
        Position::Topic { topic, partition, offset } => (topic.as_str(), *partition, *offset),
        Position::File { .. } => ("", -1, -1),
    };
    let mut out = begin(NOTICE, RawTopic { name: topic, id: notice.raw }, &Forgets::default(), 0);
    RawSource { partition, offset, time, stamp: None }.write(&mut out);
    out.extend([notice.outlet.number(), notice.detours]);
    out.id(&notice.id);
    out
}

/// Marks an encoded record as silent: match publishes nothing for it.
pub(crate) fn silence(bytes: &mut [u8]) {
    if let Some(kind) = bytes.get_mut(1) {
        *kind |= SILENT;
    }
}

/// True if an encoded record is silent.
pub(crate) fn is_silent(bytes: &[u8]) -> bool {
    bytes.get(1).is_some_and(|kind| kind & SILENT != 0)
}

/// Encodes a control record that sets the stream time of a language.
pub(crate) fn encode_set_stream_time(language: Lang, at: EventTime) -> Vec<u8> {
    let mut out = vec![LAYOUT, SET_STREAM_TIME];
    out.language(language);
    out.time(at);
    out
}

/// Decodes a control record; `None` for any other kind of record.
///
/// # Errors
/// As [`decode`].
pub(crate) fn decode_control(bytes: &[u8]) -> Result<Option<(Lang, EventTime)>, DecodeError> {
    if bytes.get(1) != Some(&SET_STREAM_TIME) {
        return Ok(None);
    }
    let mut read = ByteReader(bytes);
    read.layout("routed record", LAYOUT)?;
    read.byte()?;
    let control = (read.language()?, read.time()?);
    read.end()?;
    Ok(Some(control))
}

/// Decodes a routed record of any kind except control.
///
/// # Errors
/// The bytes are not of this layout: the topic belongs to another program or to a newer version. The partition must stop.
pub(crate) fn decode(bytes: &[u8]) -> Result<RoutedRecord, DecodeError> {
    let mut read = ByteReader(bytes);
    read.layout("routed record", LAYOUT)?;
    let kind = read.byte()? & !SILENT;
    let name: BoundedStr<249> = read.bounded_str()?;
    let topic = read.topic_id()?;
    let mut forgets = Vec::new();
    for _ in 0..read.u32()? {
        let (from, time) = position(&mut read, &name)?;
        let to = read.array().map(i32::from_le_bytes)?;
        forgets.push(Forget { id: read.id()?, from, time, to });
    }
    let event = match kind {
        ARTICLE => Some(article(read, &name, bytes.len())?),
        DELETE => {
            let (from, time) = position(&mut read, &name)?;
            let stamp = read.optional(ByteReader::time)?;
            let id = read.id()?;
            read.end()?;
            Some(RoutedEvent::Delete { id, from, time, stamp })
        }
        FORGETS => {
            read.end()?;
            None
        }
        NOTICE => {
            let (from, time) = position(&mut read, &name)?;
            let outlet = OutputTopic::from_number(read.byte()?).ok_or(DecodeError::Value("an outlet"))?;
            let detours = read.byte()?;
            let notice = Notice { id: read.id()?, outlet, raw: topic, detours };
            read.end()?;
            Some(RoutedEvent::Notice { notice, from, time })
        }
        _ => return Err(DecodeError::Value("a kind of routed record")),
    };
    Ok(RoutedRecord { topic, forgets, event })
}

fn article(
    mut read: ByteReader<'_>,
    topic: &BoundedStr<249>,
    length: usize,
) -> Result<RoutedEvent, DecodeError> {
    let encoding =
        PayloadEncoding::from_number(read.byte()?).ok_or(DecodeError::Value("an encoding of an article"))?;
    let (from, time) = position(&mut read, topic)?;
    let stamp = read.optional(ByteReader::time)?;
    let id = read.id()?;
    let language = read.language()?;
    let language_source =
        *SOURCES.get(usize::from(read.byte()?)).ok_or(DecodeError::Value("a source of a language"))?;
    let reported_language = read.language()?;
    let declared_language = read.optional(ByteReader::bounded_str)?;
    let published_at = read.optional(ByteReader::time)?;
    let fetched_at = read.optional(ByteReader::time)?;
    let bits = read.u32()?;
    let flags =
        Flag::ALL.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, &flag)| flag).collect();
    let title = read.optional(ByteReader::bounded_str)?;
    let host = read.optional(ByteReader::bounded_str)?;
    let url = read.optional(ByteReader::bounded_str)?;
    let fingerprint = read.u32()?;
    let fingerprint = Fingerprint::decode(read.take(fingerprint as usize)?)?;
    let content_kind = ContentKind::from_bits(bits).of_length(fingerprint.tokens, language);
    let prepared = Prepared {
        id,
        language,
        reported_language,
        language_source,
        declared_language,
        fingerprint,
        title,
        host,
        url,
        published_at,
        fetched_at,
        content_kind,
        flags,
    };
    Ok(RoutedEvent::Article {
        prepared: Box::new(prepared),
        from,
        time,
        stamp,
        slice: ArticleSlice { from: length - read.0.len(), encoding },
    })
}

fn position(
    read: &mut ByteReader<'_>,
    topic: &BoundedStr<249>,
) -> Result<(Position, Option<EventTime>), DecodeError> {
    let partition = read.array().map(i32::from_le_bytes)?;
    let offset = read.array().map(i64::from_le_bytes)?;
    let time = read.optional(ByteReader::time)?;
    Ok((Position::Topic { topic: topic.clone(), partition, offset }, time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use samestory_engine::engine::Preparer;
    use samestory_engine::model::RawArticle;
    use samestory_engine::text::Options;

    const TOPIC: RawTopic<'_> = RawTopic { name: "articles.raw", id: TopicId::from_bytes([9; 16]) };
    const SOURCE: RawSource = RawSource {
        partition: 3,
        offset: 1 << 40,
        time: Some(EventTime::from_millis(17)),
        stamp: Some(EventTime::from_millis(19)),
    };

    fn at(partition: i32, offset: i64) -> Position {
        Position::Topic { topic: BoundedStr::new(TOPIC.name), partition, offset }
    }

    fn prepared() -> Prepared {
        let article = RawArticle {
            id: ArticleId::new("a-1").unwrap(),
            body: "The storm is over, and the ferries run again from the morning on.".into(),
            title: Some("Ferries".into()),
            url: Some("https://news.example/a".into()),
            host: None,
            language: Some("x-klingon".into()),
            content_type: None,
            published_at: Some(EventTime::from_millis(-5)),
            fetched_at: None,
        };
        Preparer::new(Options::default()).prepare(&article, &at(3, 1 << 40)).unwrap()
    }

    fn two_forgets() -> (Forgets, Vec<Forget>) {
        let (mut forgets, mut expected) = (Forgets::default(), Vec::new());
        for (number, time) in [(5, None), (6, Some(EventTime::from_millis(-1)))] {
            let id = ArticleId::new(&format!("moved-{number}")).unwrap();
            forgets.push(&id, RawSource { offset: number, time, ..SOURCE }, 2);
            expected.push(Forget { id, from: at(3, number), time, to: 2 });
        }
        (forgets, expected)
    }

    #[test]
    fn encoding_and_decoding_are_inverse() {
        let (forgets, expected) = two_forgets();
        let bytes =
            encode_article(&prepared(), TOPIC, &forgets, SOURCE, PayloadEncoding::Json, b"{\"id\":1}");
        let read = decode(&bytes).unwrap();
        assert_eq!((read.topic, &read.forgets), (TOPIC.id, &expected));
        let Some(RoutedEvent::Article { prepared: read, from, time, stamp, slice }) = read.event else {
            panic!("no article")
        };
        assert_eq!((*read, from), (prepared(), at(3, 1 << 40)));
        assert_eq!((time, stamp), (SOURCE.time, SOURCE.stamp));
        assert_eq!((&bytes[slice.from..], slice.encoding), (&b"{\"id\":1}"[..], PayloadEncoding::Json));
        let id = ArticleId::new("gone").unwrap();
        let delete = RoutedEvent::Delete {
            id: id.clone(),
            from: at(3, 1 << 40),
            time: SOURCE.time,
            stamp: SOURCE.stamp,
        };
        let none = Forgets::default();
        let read = decode(&encode_delete(&id, TOPIC, &none, SOURCE)).unwrap();
        assert_eq!(read, RoutedRecord { topic: TOPIC.id, forgets: Vec::new(), event: Some(delete) });
        let mut bytes = encode_forgets(TOPIC, &forgets);
        silence(&mut bytes);
        assert!(is_silent(&bytes));
        let alone = RoutedRecord { topic: TOPIC.id, forgets: expected, event: None };
        assert_eq!(decode(&bytes).unwrap(), alone);
        let notice = Notice { id, outlet: OutputTopic::Both, raw: TOPIC.id, detours: 3 };
        let bytes = encode_notice(&notice, &at(3, 7), SOURCE.time);
        let event = Some(RoutedEvent::Notice { notice, from: at(3, 7), time: SOURCE.time });
        assert_eq!(decode(&bytes).unwrap(), RoutedRecord { topic: TOPIC.id, forgets: Vec::new(), event });
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end]).is_err(), "{end}");
        }
    }

    // Match has no text: what route read off the lines must travel with the fingerprint, and is not a flag.
    #[test]
    fn the_kind_of_content_travels_with_the_flags() {
        for kind in ContentKind::ALL {
            // The article of the other tests is short, so its fingerprint says so.
            let long = |tokens| if kind == ContentKind::Short { tokens } else { 50 };
            let mut prepared = Prepared { content_kind: kind, ..prepared() };
            prepared.fingerprint.tokens = long(prepared.fingerprint.tokens);
            let none = Forgets::default();
            let bytes = encode_article(&prepared, TOPIC, &none, SOURCE, PayloadEncoding::Own, b"");
            let Some(RoutedEvent::Article { prepared: read, .. }) = decode(&bytes).unwrap().event else {
                panic!("no article")
            };
            assert_eq!(*read, prepared);
        }
    }

    #[test]
    fn control_records_are_distinguished_from_routed_records() {
        let at = EventTime::from_millis(17);
        let bytes = encode_set_stream_time(Lang::UND, at);
        assert_eq!(decode_control(&bytes), Ok(Some((Lang::UND, at))));
        assert!(decode_control(&bytes[..bytes.len() - 1]).is_err() && decode(&bytes).is_err());
        assert_eq!(decode_control(&[LAYOUT, DELETE]), Ok(None));
        assert_eq!(decode_control(b""), Ok(None));
    }

    #[test]
    fn truncated_records_and_other_layouts_are_refused() {
        let (forgets, _) = two_forgets();
        let bytes = encode_article(&prepared(), TOPIC, &forgets, SOURCE, PayloadEncoding::Own, b"");
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end]).is_err(), "{end}");
        }
        for layout in [1, 4, 9] {
            let mut other = bytes.clone();
            other[0] = layout;
            let message = decode(&other).unwrap_err().to_string();
            assert!(message.contains(&format!("layout {layout}")), "{message}");
        }
        // A count without the bytes to back it must not be trusted.
        let mut forgets = encode_forgets(TOPIC, &Forgets::default());
        let count = forgets.len() - 4;
        forgets[count..].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(decode(&forgets).is_err());
    }
}
