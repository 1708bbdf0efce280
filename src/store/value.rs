//! Bytes of every value. The same bytes stand in the store and in the changelog.
//!
//! Numbers are little-endian. `text` is u16 length · UTF-8; `optional x` is 0, or 1 · x; `language` is u8 length ·
//! code. Another layout gets another version in the first byte.
//!
//! **Document**, layout 1
//!
//! | bytes | field |
//! |------:|-------|
//! | 1 | layout |
//! | 8 | number |
//! | text | id |
//! | 8, 8 | event time, last seen: milliseconds since 1970 |
//! | optional 8 | published at |
//! | 8 | founder's number of its cluster |
//! | 4 | revision |
//! | 1 | outlet: 0 none, 1 unique, 2 near-duplicate |
//! | 1 | verdict: 0 unique, 1 near-duplicate, 2 exact-duplicate |
//! | 1 | match type: 0 none, 1 same-article, 2 exact, 3 near, 4 partial |
//! | optional 8 | duplicate of: number |
//! | 2, 2 | similarity, confidence: ten-thousandths |
//! | 4 | flags |
//! | 1 | position: 0 topic, 1 file |
//! | text, 4, 8 | topic: name, partition, offset |
//! | text, 8 | or file: path, line |
//! | optional text, three times | title, host, url |
//! | rest | fingerprint, see [`crate::fingerprint`] |
//!
//! **Cluster**, layout 1
//!
//! | bytes | field |
//! |------:|-------|
//! | 1 | layout |
//! | text | founder's id |
//! | 8 | canonical's number |
//! | 8 | size |
//! | 8, 8 | first seen, last seen |
//! | optional language, text, 8 | split from: language, founder's id, number |
//! | optional text | canonical changed from: id |
//! | 1, then texts | hosts |
//!
//! **Progress**, layout 1
//!
//! | bytes | field |
//! |------:|-------|
//! | 1 | layout |
//! | 4 | inputs, then for each, ascending: |
//! | text, 8, optional text | name, next, note |
//! | 2 | languages, then for each, ascending: |
//! | language, 8, optional 8 | code, next number, stream time |

use crate::fingerprint::Fingerprint;
use crate::model::{ClusterId, DocumentNumber, Lang, MatchType, Position, Share, Verdict};

use super::bytes::{DecodeError, Read, Write};
use super::record::{Cluster, Counters, Document, Hosts, Input, Judgement, Outlet, Progress};

const DOCUMENT: u8 = 1;
const CLUSTER: u8 = 1;
const PROGRESS: u8 = 1;

pub(super) fn encode_document(document: &Document) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1280);
    bytes.push(DOCUMENT);
    bytes.number(document.number);
    bytes.id(&document.id);
    bytes.time(document.event_time);
    bytes.time(document.last_seen);
    bytes.optional(document.published_at, Write::time);
    bytes.number(document.cluster);
    bytes.extend(document.revision.to_le_bytes());
    bytes.push(match document.outlet {
        Outlet::None => 0,
        Outlet::Unique => 1,
        Outlet::NearDuplicate => 2,
    });
    encode_judgement(&document.judgement, &mut bytes);
    bytes.extend(document.flags.to_le_bytes());
    match &document.position {
        Position::Topic { topic, partition, offset } => {
            bytes.push(0);
            bytes.text(topic.as_str());
            bytes.extend(partition.to_le_bytes());
            bytes.extend(offset.to_le_bytes());
        }
        Position::File { file, line } => {
            bytes.push(1);
            bytes.text(file.as_str());
            bytes.extend(line.to_le_bytes());
        }
    }
    bytes.optional(document.title.as_ref(), |bytes, title| bytes.text(title.as_str()));
    bytes.optional(document.host.as_ref(), |bytes, host| bytes.text(host.as_str()));
    bytes.optional(document.url.as_ref(), |bytes, url| bytes.text(url.as_str()));
    bytes.extend(document.fingerprint.encode());
    bytes
}

pub(super) fn decode_document(language: Lang, bytes: &[u8]) -> Result<Document, DecodeError> {
    let mut read = Read(bytes);
    read.layout("document", DOCUMENT)?;
    Ok(Document {
        language,
        number: read.number()?,
        id: read.id()?,
        event_time: read.time()?,
        last_seen: read.time()?,
        published_at: read.optional(Read::time)?,
        cluster: read.number()?,
        revision: read.u32()?,
        outlet: match read.byte()? {
            0 => Outlet::None,
            1 => Outlet::Unique,
            2 => Outlet::NearDuplicate,
            _ => return Err(DecodeError::Value("an outlet")),
        },
        judgement: decode_judgement(&mut read)?,
        flags: read.u32()?,
        position: match read.byte()? {
            0 => Position::Topic {
                topic: read.cut()?,
                partition: read.array().map(i32::from_le_bytes)?,
                offset: read.array().map(i64::from_le_bytes)?,
            },
            1 => Position::File { file: read.cut()?, line: read.u64()? },
            _ => return Err(DecodeError::Value("a position")),
        },
        title: read.optional(Read::cut)?,
        host: read.optional(Read::cut)?,
        url: read.optional(Read::cut)?,
        fingerprint: Fingerprint::decode(read.0)?,
    })
}

fn encode_judgement(judgement: &Judgement, bytes: &mut Vec<u8>) {
    bytes.push(match judgement.verdict {
        Verdict::Unique => 0,
        Verdict::NearDuplicate => 1,
        Verdict::ExactDuplicate => 2,
    });
    bytes.push(match judgement.match_type {
        None => 0,
        Some(MatchType::SameArticle) => 1,
        Some(MatchType::Exact) => 2,
        Some(MatchType::Near) => 3,
        Some(MatchType::Partial) => 4,
    });
    bytes.optional(judgement.duplicate_of, Write::number);
    bytes.extend(judgement.similarity.steps().to_le_bytes());
    bytes.extend(judgement.confidence.steps().to_le_bytes());
}

fn decode_judgement(read: &mut Read<'_>) -> Result<Judgement, DecodeError> {
    let share = |steps| Share::from_steps(steps).ok_or(DecodeError::Value("a share above the whole"));
    Ok(Judgement {
        verdict: match read.byte()? {
            0 => Verdict::Unique,
            1 => Verdict::NearDuplicate,
            2 => Verdict::ExactDuplicate,
            _ => return Err(DecodeError::Value("a verdict")),
        },
        match_type: match read.byte()? {
            0 => None,
            1 => Some(MatchType::SameArticle),
            2 => Some(MatchType::Exact),
            3 => Some(MatchType::Near),
            4 => Some(MatchType::Partial),
            _ => return Err(DecodeError::Value("a match type")),
        },
        duplicate_of: read.optional(Read::number)?,
        similarity: share(read.u16()?)?,
        confidence: share(read.u16()?)?,
    })
}

pub(super) fn encode_cluster(cluster: &Cluster) -> Vec<u8> {
    let mut bytes = vec![CLUSTER];
    bytes.id(&cluster.id.founder);
    bytes.number(cluster.canonical);
    bytes.extend(cluster.size.to_le_bytes());
    bytes.time(cluster.first_seen);
    bytes.time(cluster.last_seen);
    bytes.optional(cluster.split_from.as_ref(), |bytes, other| {
        bytes.language(other.language);
        bytes.id(&other.founder);
        bytes.number(other.number);
    });
    bytes.optional(cluster.canonical_changed_from.as_ref(), Write::id);
    bytes.push(cluster.hosts.iter().len() as u8);
    cluster.hosts.iter().for_each(|host| bytes.text(host.as_str()));
    bytes
}

pub(super) fn decode_cluster(
    language: Lang,
    number: DocumentNumber,
    bytes: &[u8],
) -> Result<Cluster, DecodeError> {
    let mut read = Read(bytes);
    read.layout("cluster", CLUSTER)?;
    let cluster = Cluster {
        id: ClusterId { language, founder: read.id()?, number },
        canonical: read.number()?,
        size: read.u64()?,
        first_seen: read.time()?,
        last_seen: read.time()?,
        split_from: read.optional(|read| {
            Ok(ClusterId { language: read.language()?, founder: read.id()?, number: read.number()? })
        })?,
        canonical_changed_from: read.optional(Read::id)?,
        hosts: {
            let count = usize::from(read.byte()?);
            let hosts = (0..count).map(|_| read.cut()).collect::<Result<Hosts, _>>()?;
            if hosts.iter().len() != count {
                return Err(DecodeError::Value("a list of hosts like this"));
            }
            hosts
        },
    };
    read.end()?;
    Ok(cluster)
}

pub(super) fn encode_progress(progress: &Progress) -> Vec<u8> {
    let mut bytes = vec![PROGRESS];
    bytes.extend((progress.inputs.len() as u32).to_le_bytes());
    for (name, input) in &progress.inputs {
        bytes.text(name.as_str());
        bytes.extend(input.next.to_le_bytes());
        bytes.optional(input.note.as_ref(), |bytes, note| bytes.text(note.as_str()));
    }
    // The closed table has a few dozen rows.
    bytes.extend((progress.languages.len() as u16).to_le_bytes());
    for (&language, counters) in &progress.languages {
        bytes.language(language);
        bytes.extend(counters.next_number.to_le_bytes());
        bytes.optional(counters.stream_time, Write::time);
    }
    bytes
}

pub(super) fn decode_progress(bytes: &[u8]) -> Result<Progress, DecodeError> {
    let mut read = Read(bytes);
    read.layout("progress", PROGRESS)?;
    let mut progress = Progress::default();
    for _ in 0..read.u32()? {
        let (name, next, note) = (read.cut()?, read.u64()?, read.optional(Read::cut)?);
        if progress.inputs.last_key_value().is_some_and(|(last, _)| *last >= name) {
            return Err(DecodeError::Value("a list of inputs in this order"));
        }
        progress.inputs.insert(name, Input { next, note });
    }
    for _ in 0..read.u16()? {
        let (language, next_number, stream_time) =
            (read.language()?, read.u64()?, read.optional(Read::time)?);
        if progress.languages.last_key_value().is_some_and(|(last, _)| *last >= language) {
            return Err(DecodeError::Value("a list of languages in this order"));
        }
        progress.languages.insert(language, Counters { next_number, stream_time });
    }
    read.end()?;
    Ok(progress)
}
