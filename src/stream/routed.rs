//! Bytes of the routed topic: what route tells match. Internal; both are the same program.
//!
//! Pieces as in [`crate::store::value`]'s table: little-endian, `text` is u16 length · UTF-8.
//!
//! | bytes | field |
//! |------:|-------|
//! | 1 | layout, 2; 1 is still read |
//! | 1 | kind: 1 article, 2 delete, 3 forget; and 128 where nothing is to be said about it |
//!
//! An **article** goes on with
//!
//! | bytes | field |
//! |------:|-------|
//! | 1 | how the rest is to be taken: 0 as it came, 1 JSON, 2 `raw-article.avsc`; in layout 1 as it came |
//! | text, 4, 8 | where it was read: topic, partition, offset |
//! | optional 8 | the time of that record |
//! | text | id |
//! | language, 1 | language; how it became known: 0 declared, 1 detected, 2 none |
//! | optional 8, twice | published at, fetched at |
//! | 4 | flags, one bit each |
//! | optional text, three times | title, host, url |
//! | 4, then so many | fingerprint |
//! | rest | the record's value, untouched, or what goes out for it |
//!
//! a **delete** with where it was read (text, 4, 8), the time (optional 8) and the id (text); a **forget** with the
//! topic (text), the time (optional 8), a count (4) and for each its partition, offset and id (4, 8, text).

use crate::detect::Prepared;
use crate::event::Flag;
use crate::fingerprint::Fingerprint;
use crate::model::{ArticleId, Cut, EventTime, LanguageSource, Position};
use crate::store::DecodeError;
use crate::store::bytes::{Read, Write};

use super::payload::{Form, Placed};

const LAYOUT: u8 = 2;
/// Without a word on how the rest is to be taken.
const LAYOUT_1: u8 = 1;
const ARTICLE: u8 = 1;
const DELETE: u8 = 2;
const FORGET: u8 = 3;
/// State follows, and nothing goes out: another generation has said it.
const SILENT: u8 = 128;
const SOURCES: [LanguageSource; 3] =
    [LanguageSource::Declared, LanguageSource::Detected, LanguageSource::None];

/// What a routed record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Routed {
    /// An article of this partition's languages. What goes out for it is here in the record's value.
    Article { prepared: Box<Prepared>, from: Position, time: Option<EventTime>, placed: Placed },
    /// An article is gone, in whatever language it is held.
    Delete { id: ArticleId, from: Position, time: Option<EventTime> },
    /// Articles that went to another partition, each with where that was read.
    Forget { ids: Vec<(ArticleId, Position)>, time: Option<EventTime> },
}

/// A place on the raw topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    pub(super) topic: &'a str,
    pub(super) partition: i32,
    pub(super) offset: i64,
}

impl Place<'_> {
    pub(super) fn position(&self) -> Position {
        Position::Topic { topic: Cut::new(self.topic), partition: self.partition, offset: self.offset }
    }
}

/// The bytes of an article.
pub(super) fn encode_article(
    prepared: &Prepared,
    from: Place<'_>,
    time: Option<EventTime>,
    form: Form,
    value: &[u8],
) -> Vec<u8> {
    let fingerprint = prepared.fingerprint.encode();
    let mut out = Vec::with_capacity(value.len() + fingerprint.len() + 512);
    out.extend([LAYOUT, ARTICLE, form.number()]);
    place(&mut out, from);
    out.optional(time, |out, time| out.time(time));
    out.id(&prepared.id);
    out.language(prepared.language);
    out.push(match prepared.language_source {
        LanguageSource::Declared => 0,
        LanguageSource::Detected => 1,
        LanguageSource::None => 2,
    });
    out.optional(prepared.published_at, |out, time| out.time(time));
    out.optional(prepared.fetched_at, |out, time| out.time(time));
    let bit = |flag: &Flag| Flag::ALL.iter().position(|known| known == flag).map_or(0, |at| 1_u32 << at);
    let flags = prepared.flags.iter().map(bit).fold(0, |all, bit| all | bit);
    out.extend(flags.to_le_bytes());
    out.optional(prepared.title.as_ref(), |out, title| out.text(title.as_str()));
    out.optional(prepared.host.as_ref(), |out, host| out.text(host.as_str()));
    out.optional(prepared.url.as_ref(), |out, url| out.text(url.as_str()));
    out.extend((fingerprint.len() as u32).to_le_bytes());
    out.extend(fingerprint);
    out.extend(value);
    out
}

/// The bytes of a delete.
pub(super) fn encode_delete(id: &ArticleId, from: Place<'_>, time: Option<EventTime>) -> Vec<u8> {
    let mut out = vec![LAYOUT, DELETE];
    place(&mut out, from);
    out.optional(time, |out, time| out.time(time));
    out.id(id);
    out
}

/// The bytes of a forget.
pub(super) fn encode_forget<'a>(
    topic: &str,
    time: Option<EventTime>,
    ids: impl ExactSizeIterator<Item = (&'a ArticleId, i32, i64)>,
) -> Vec<u8> {
    let mut out = vec![LAYOUT, FORGET];
    out.text(topic);
    out.optional(time, |out, time| out.time(time));
    out.extend((ids.len() as u32).to_le_bytes());
    for (id, partition, offset) in ids {
        out.extend(partition.to_le_bytes());
        out.extend(offset.to_le_bytes());
        out.id(id);
    }
    out
}

fn place(out: &mut Vec<u8>, place: Place<'_>) {
    out.text(place.topic);
    out.extend(place.partition.to_le_bytes());
    out.extend(place.offset.to_le_bytes());
}

/// Marks a record as one about which nothing is said.
pub(super) fn silence(bytes: &mut [u8]) {
    if let Some(kind) = bytes.get_mut(1) {
        *kind |= SILENT;
    }
}

/// Whether nothing is said about it.
pub(super) fn is_silent(bytes: &[u8]) -> bool {
    bytes.get(1).is_some_and(|kind| kind & SILENT != 0)
}

/// Reads a routed record.
///
/// # Errors
/// This program does not write such records: the topic is another's, or a newer version's. Stop.
pub(super) fn decode(bytes: &[u8]) -> Result<Routed, DecodeError> {
    let mut read = Read(bytes);
    let marked = bytes.first() != Some(&LAYOUT_1);
    read.layout("routed record", if marked { LAYOUT } else { LAYOUT_1 })?;
    match read.byte()? & !SILENT {
        ARTICLE => article(read, bytes.len(), marked),
        DELETE => {
            let from = position(&mut read)?;
            let time = read.optional(Read::time)?;
            let id = read.id()?;
            read.end()?;
            Ok(Routed::Delete { id, from, time })
        }
        FORGET => {
            let topic: Cut<249> = read.cut()?;
            let time = read.optional(Read::time)?;
            let count = read.u32()?;
            let mut ids = Vec::new();
            for _ in 0..count {
                let partition = read.array().map(i32::from_le_bytes)?;
                let offset = read.array().map(i64::from_le_bytes)?;
                ids.push((read.id()?, Position::Topic { topic: topic.clone(), partition, offset }));
            }
            read.end()?;
            Ok(Routed::Forget { ids, time })
        }
        _ => Err(DecodeError::Value("a kind of routed record")),
    }
}

fn article(mut read: Read<'_>, length: usize, marked: bool) -> Result<Routed, DecodeError> {
    let form = if marked { Form::from_number(read.byte()?) } else { Some(Form::Own) };
    let form = form.ok_or(DecodeError::Value("a form of an article"))?;
    let from = position(&mut read)?;
    let time = read.optional(Read::time)?;
    let id = read.id()?;
    let language = read.language()?;
    let language_source =
        *SOURCES.get(usize::from(read.byte()?)).ok_or(DecodeError::Value("a source of a language"))?;
    let published_at = read.optional(Read::time)?;
    let fetched_at = read.optional(Read::time)?;
    let bits = read.u32()?;
    let flags =
        Flag::ALL.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, &flag)| flag).collect();
    let title = read.optional(Read::cut)?;
    let host = read.optional(Read::cut)?;
    let url = read.optional(Read::cut)?;
    let fingerprint = read.u32()?;
    let fingerprint = Fingerprint::decode(read.take(fingerprint as usize)?)?;
    let prepared = Prepared {
        id,
        language,
        language_source,
        fingerprint,
        title,
        host,
        url,
        published_at,
        fetched_at,
        flags,
    };
    Ok(Routed::Article {
        prepared: Box::new(prepared),
        from,
        time,
        placed: Placed { from: length - read.0.len(), form },
    })
}

fn position(read: &mut Read<'_>) -> Result<Position, DecodeError> {
    Ok(Position::Topic {
        topic: read.cut()?,
        partition: read.array().map(i32::from_le_bytes)?,
        offset: read.array().map(i64::from_le_bytes)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::Preparer;
    use crate::event::Article;
    use crate::text::Options;

    const PLACE: Place<'_> = Place { topic: "articles.raw", partition: 3, offset: 1 << 40 };

    fn prepared() -> Prepared {
        let article = Article {
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
        Preparer::new(Options::default()).prepare(&article, &PLACE.position()).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let time = Some(EventTime::from_millis(17));
        let bytes = encode_article(&prepared(), PLACE, time, Form::Json, b"{\"id\":1}");
        let Routed::Article { prepared: read, from, time: at, placed } = decode(&bytes).unwrap() else {
            panic!("no article")
        };
        assert_eq!((*read, from, at), (prepared(), PLACE.position(), time));
        assert_eq!((&bytes[placed.from..], placed.form), (&b"{\"id\":1}"[..], Form::Json));
        // As it was written before articles said how they are to be taken.
        let mut first = bytes.clone();
        first[0] = 1;
        first.remove(2);
        let Routed::Article { placed, .. } = decode(&first).unwrap() else { panic!("no article") };
        assert_eq!((&first[placed.from..], placed.form), (&b"{\"id\":1}"[..], Form::Own));
        let id = ArticleId::new("gone").unwrap();
        let delete = Routed::Delete { id: id.clone(), from: PLACE.position(), time: None };
        assert_eq!(decode(&encode_delete(&id, PLACE, None)).unwrap(), delete);
        let forget = Routed::Forget { ids: vec![(id.clone(), PLACE.position())], time };
        let ids = [(&id, 3, 1_i64 << 40)];
        assert_eq!(decode(&encode_forget("articles.raw", time, ids.into_iter())).unwrap(), forget);
    }

    #[test]
    fn what_is_cut_short_or_of_another_version_is_refused() {
        let bytes = encode_article(&prepared(), PLACE, None, Form::Own, b"");
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end]).is_err(), "{end}");
        }
        let mut other = bytes.clone();
        other[0] = 9;
        assert!(decode(&other).unwrap_err().to_string().contains("layout 9"));
        // A count that no bytes follow must not be believed.
        let mut forget = encode_forget("t", None, [].into_iter());
        let count = forget.len() - 4;
        forget[count..].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(decode(&forget).is_err());
    }
}
