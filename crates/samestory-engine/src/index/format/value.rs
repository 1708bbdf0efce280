//! The bytes of every value, the same in the store and in the changelog.
//!
//! Numbers are little-endian. `text` is u16 length · UTF-8; `optional x` is 0, or 1 · x; `language` is u8
//! length · code. Another layout gets another version in the first byte.
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
//! | 1 | outlet: 0 none, 1 unique, 2 near-duplicate, 3 both |
//! | 1 | verdict: 0 unique, 1 near-duplicate, 2 exact-duplicate |
//! | 1 | match type: 0 none, 1 same-article, 2 exact, 3 near, 4 partial, 5 rewritten, 6 reviewed |
//! | 1 | 1 for a part of its best match, else 0 |
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
//! | 4 | partition |
//! | 8 | canonical's number |
//! | 8 | size |
//! | 8, 8 | first seen, last seen |
//! | optional language, 4, 8 | split from: language, partition, number |
//! | optional text | canonical changed from: id |
//! | 1, then texts | hosts |
//!
//! **Residence**, layout 1; its id is in the key
//!
//! | bytes | field |
//! |------:|-------|
//! | 1 | layout |
//! | language, 8 | the language whose retention it has, since |
//! | 1 | 0 moved, 1 gone, 2 published |
//! | 4 | moved: the routed partition |
//! | 1 | or published: outlet, as in a document |
//! | 1, … | position, as in a document |
//!
//! **Progress**, layout 2
//!
//! | bytes | field |
//! |------:|-------|
//! | 1 | layout |
//! | 1 | 1 on the bus, else 0; on the bus these seven: |
//! | text, optional text | application, cluster id |
//! | optional 16 | changelog's topic id |
//! | text, optional 16 | input topic: name, id |
//! | 4 | partition of the input |
//! | 8 | offset to read next |
//! | optional 4 | leader epoch of the record before that |
//! | 4 | inputs, then for each, ascending: |
//! | text, 8, optional text | name, next, note |
//! | 2 | languages, then for each, ascending: |
//! | language, 8, optional 8 | code, next number, stream time |
//! | 1, then 8, 8, 2 for each | votes: hash of the article's id, event time, articles left |
//! | 4 | raw partitions, then for each, ascending: |
//! | 16, 4, 8 | raw topic's id, partition, highest offset judged |

use crate::fingerprint::Fingerprint;
use crate::model::{ArticleId, ClusterId, DocumentNumber, Fraction, Lang, MatchType, Position, VerdictKind};

use super::bytes::{ByteReader, ByteWriter, DecodeError};
use crate::index::record::{
    BusPosition, Cluster, Counters, Document, Hosts, Input, Judgement, OutputTopic, Progress, Residence,
    Vote, Whereabouts,
};

const DOCUMENT: u8 = 1;
const CLUSTER: u8 = 1;
const PROGRESS: u8 = 2;
const RESIDENCE: u8 = 1;

pub(crate) fn encode_document(document: &Document) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1280);
    bytes.push(DOCUMENT);
    bytes.number(document.number);
    bytes.id(&document.id);
    bytes.time(document.event_time);
    bytes.time(document.last_seen);
    bytes.optional(document.published_at, ByteWriter::time);
    bytes.number(document.cluster);
    bytes.extend(document.revision.to_le_bytes());
    bytes.push(document.outlet.number());
    encode_judgement(&document.judgement, &mut bytes);
    bytes.extend(document.flags.to_le_bytes());
    encode_position(&document.position, &mut bytes);
    bytes.optional(document.title.as_ref(), |bytes, title| bytes.text(title.as_str()));
    bytes.optional(document.host.as_ref(), |bytes, host| bytes.text(host.as_str()));
    bytes.optional(document.url.as_ref(), |bytes, url| bytes.text(url.as_str()));
    bytes.extend(document.fingerprint.encode());
    bytes
}

pub(crate) fn decode_document(language: Lang, bytes: &[u8]) -> Result<Document, DecodeError> {
    let mut read = ByteReader(bytes);
    read.layout("document", DOCUMENT)?;
    Ok(Document {
        language,
        number: read.number()?,
        id: read.id()?,
        event_time: read.time()?,
        last_seen: read.time()?,
        published_at: read.optional(ByteReader::time)?,
        cluster: read.number()?,
        revision: read.u32()?,
        outlet: decode_outlet(&mut read)?,
        judgement: decode_judgement(&mut read)?,
        flags: read.u32()?,
        position: decode_position(&mut read)?,
        title: read.optional(ByteReader::bounded_str)?,
        host: read.optional(ByteReader::bounded_str)?,
        url: read.optional(ByteReader::bounded_str)?,
        fingerprint: Fingerprint::decode(read.0)?,
    })
}

fn decode_outlet(read: &mut ByteReader<'_>) -> Result<OutputTopic, DecodeError> {
    OutputTopic::from_number(read.byte()?).ok_or(DecodeError::Value("an outlet"))
}

fn encode_position(position: &Position, bytes: &mut Vec<u8>) {
    match position {
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
}

fn decode_position(read: &mut ByteReader<'_>) -> Result<Position, DecodeError> {
    match read.byte()? {
        0 => Ok(Position::Topic {
            topic: read.bounded_str()?,
            partition: read.array().map(i32::from_le_bytes)?,
            offset: read.array().map(i64::from_le_bytes)?,
        }),
        1 => Ok(Position::File { file: read.bounded_str()?, line: read.u64()? }),
        _ => Err(DecodeError::Value("a position")),
    }
}

pub(crate) fn encode_residence(row: &Residence) -> Vec<u8> {
    let mut bytes = vec![RESIDENCE];
    bytes.language(row.language);
    bytes.time(row.since);
    match row.whereabouts {
        Whereabouts::Moved { to } => {
            bytes.push(0);
            bytes.extend(to.to_le_bytes());
        }
        Whereabouts::Gone => bytes.push(1),
        Whereabouts::Published(outlet) => bytes.extend([2, outlet.number()]),
    }
    encode_position(&row.position, &mut bytes);
    bytes
}

pub(crate) fn decode_residence(id: ArticleId, bytes: &[u8]) -> Result<Residence, DecodeError> {
    let mut read = ByteReader(bytes);
    read.layout("residence", RESIDENCE)?;
    let row = Residence {
        id,
        language: read.language()?,
        since: read.time()?,
        whereabouts: match read.byte()? {
            0 => Whereabouts::Moved { to: read.array().map(i32::from_le_bytes)? },
            1 => Whereabouts::Gone,
            2 => Whereabouts::Published(decode_outlet(&mut read)?),
            _ => return Err(DecodeError::Value("a residence")),
        },
        position: decode_position(&mut read)?,
    };
    read.end()?;
    Ok(row)
}

fn encode_judgement(judgement: &Judgement, bytes: &mut Vec<u8>) {
    bytes.push(match judgement.verdict {
        VerdictKind::Unique => 0,
        VerdictKind::NearDuplicate => 1,
        VerdictKind::ExactDuplicate => 2,
    });
    bytes.push(match judgement.match_type {
        None => 0,
        Some(MatchType::SameArticle) => 1,
        Some(MatchType::Exact) => 2,
        Some(MatchType::Near) => 3,
        Some(MatchType::Partial) => 4,
        Some(MatchType::Rewritten) => 5,
        Some(MatchType::Reviewed) => 6,
    });
    bytes.push(judgement.is_part.into());
    bytes.optional(judgement.duplicate_of, ByteWriter::number);
    bytes.extend(judgement.similarity.steps().to_le_bytes());
    bytes.extend(judgement.confidence.steps().to_le_bytes());
}

fn decode_judgement(read: &mut ByteReader<'_>) -> Result<Judgement, DecodeError> {
    let share = |steps| Fraction::from_steps(steps).ok_or(DecodeError::Value("a share above the whole"));
    Ok(Judgement {
        verdict: match read.byte()? {
            0 => VerdictKind::Unique,
            1 => VerdictKind::NearDuplicate,
            2 => VerdictKind::ExactDuplicate,
            _ => return Err(DecodeError::Value("a verdict")),
        },
        match_type: match read.byte()? {
            0 => None,
            1 => Some(MatchType::SameArticle),
            2 => Some(MatchType::Exact),
            3 => Some(MatchType::Near),
            4 => Some(MatchType::Partial),
            5 => Some(MatchType::Rewritten),
            6 => Some(MatchType::Reviewed),
            _ => return Err(DecodeError::Value("a match type")),
        },
        is_part: match read.byte()? {
            0 => false,
            1 => true,
            _ => return Err(DecodeError::Value("a part")),
        },
        duplicate_of: read.optional(ByteReader::number)?,
        similarity: share(read.u16()?)?,
        confidence: share(read.u16()?)?,
    })
}

pub(crate) fn encode_cluster(cluster: &Cluster) -> Vec<u8> {
    let mut bytes = vec![CLUSTER];
    bytes.extend(cluster.id.partition.to_le_bytes());
    bytes.number(cluster.canonical);
    bytes.extend(cluster.size.to_le_bytes());
    bytes.time(cluster.first_seen);
    bytes.time(cluster.last_seen);
    bytes.optional(cluster.split_from.as_ref(), |bytes, other| {
        bytes.language(other.language);
        bytes.extend(other.partition.to_le_bytes());
        bytes.number(other.number);
    });
    bytes.optional(cluster.canonical_changed_from.as_ref(), ByteWriter::id);
    bytes.push(cluster.hosts.iter().len() as u8);
    cluster.hosts.iter().for_each(|host| bytes.text(host.as_str()));
    bytes
}

pub(crate) fn decode_cluster(
    language: Lang,
    number: DocumentNumber,
    bytes: &[u8],
) -> Result<Cluster, DecodeError> {
    let mut read = ByteReader(bytes);
    read.layout("cluster", CLUSTER)?;
    let cluster = Cluster {
        id: ClusterId { language, partition: read.array().map(i32::from_le_bytes)?, number },
        canonical: read.number()?,
        size: read.u64()?,
        first_seen: read.time()?,
        last_seen: read.time()?,
        split_from: read.optional(|read| {
            Ok(ClusterId {
                language: read.language()?,
                partition: read.array().map(i32::from_le_bytes)?,
                number: read.number()?,
            })
        })?,
        canonical_changed_from: read.optional(ByteReader::id)?,
        hosts: {
            let count = usize::from(read.byte()?);
            let hosts = (0..count).map(|_| read.bounded_str()).collect::<Result<Hosts, _>>()?;
            if hosts.iter().len() != count {
                return Err(DecodeError::Value("a list of hosts like this"));
            }
            hosts
        },
    };
    read.end()?;
    Ok(cluster)
}

pub(crate) fn encode_progress(progress: &Progress) -> Vec<u8> {
    let mut bytes = vec![PROGRESS];
    bytes.optional(progress.bus.as_ref(), encode_bus_position);
    bytes.extend((progress.inputs.len() as u32).to_le_bytes());
    for (name, input) in &progress.inputs {
        bytes.text(name.as_str());
        bytes.extend(input.next.to_le_bytes());
        bytes.optional(input.note.as_ref(), |bytes, note| bytes.text(note.as_str()));
    }
    // The language table has a few dozen rows.
    bytes.extend((progress.languages.len() as u16).to_le_bytes());
    for (&language, counters) in &progress.languages {
        bytes.language(language);
        bytes.extend(counters.next_number.to_le_bytes());
        bytes.optional(counters.stream_time, ByteWriter::time);
        // A handful: the engine advances stream time before there are more.
        bytes.push(counters.votes.len() as u8);
        for vote in &counters.votes {
            bytes.extend(vote.article.to_le_bytes());
            bytes.time(vote.at);
            bytes.extend(vote.left.to_le_bytes());
        }
    }
    bytes.extend((progress.raw.len() as u32).to_le_bytes());
    for (&(topic, partition), &offset) in &progress.raw {
        bytes.extend(topic.bytes());
        bytes.extend(partition.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
    }
    bytes
}

pub(crate) fn decode_progress(bytes: &[u8]) -> Result<Progress, DecodeError> {
    let mut read = ByteReader(bytes);
    read.layout("progress", PROGRESS)?;
    let mut progress = Progress { bus: read.optional(decode_bus_position)?, ..Progress::default() };
    for _ in 0..read.u32()? {
        let (name, next, note) = (read.bounded_str()?, read.u64()?, read.optional(ByteReader::bounded_str)?);
        if progress.inputs.last_key_value().is_some_and(|(last, _)| *last >= name) {
            return Err(DecodeError::Value("a list of inputs in this order"));
        }
        progress.inputs.insert(name, Input { next, note });
    }
    for _ in 0..read.u16()? {
        let (language, next_number, stream_time) =
            (read.language()?, read.u64()?, read.optional(ByteReader::time)?);
        if progress.languages.last_key_value().is_some_and(|(last, _)| *last >= language) {
            return Err(DecodeError::Value("a list of languages in this order"));
        }
        let votes = (0..read.byte()?)
            .map(|_| Ok(Vote { article: read.u64()?, at: read.time()?, left: read.u16()? }))
            .collect::<Result<Vec<Vote>, DecodeError>>()?;
        progress.languages.insert(language, Counters { next_number, stream_time, votes });
    }
    for _ in 0..read.u32()? {
        let partition = (read.topic_id()?, read.array().map(i32::from_le_bytes)?);
        let offset = read.array().map(i64::from_le_bytes)?;
        if progress.raw.last_key_value().is_some_and(|(last, _)| *last >= partition) {
            return Err(DecodeError::Value("a list of raw partitions in this order"));
        }
        progress.raw.insert(partition, offset);
    }
    read.end()?;
    Ok(progress)
}

fn encode_bus_position(bytes: &mut Vec<u8>, position: &BusPosition) {
    bytes.text(position.application.as_str());
    bytes.optional(position.cluster.as_ref(), |bytes, cluster| bytes.text(cluster.as_str()));
    bytes.optional(position.changelog, |bytes, id| bytes.extend(id.bytes()));
    bytes.text(position.topic.as_str());
    bytes.optional(position.topic_id, |bytes, id| bytes.extend(id.bytes()));
    bytes.extend(position.partition.to_le_bytes());
    bytes.extend(position.next.to_le_bytes());
    bytes.optional(position.leader_epoch, |bytes, epoch| bytes.extend(epoch.to_le_bytes()));
}

fn decode_bus_position(read: &mut ByteReader<'_>) -> Result<BusPosition, DecodeError> {
    Ok(BusPosition {
        application: read.bounded_str()?,
        cluster: read.optional(ByteReader::bounded_str)?,
        changelog: read.optional(ByteReader::topic_id)?,
        topic: read.bounded_str()?,
        topic_id: read.optional(ByteReader::topic_id)?,
        partition: read.array().map(i32::from_le_bytes)?,
        next: read.u64()?,
        leader_epoch: read.optional(|read| read.array().map(i32::from_le_bytes))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::TopicName;
    use crate::model::TopicId;

    #[test]
    fn a_bus_position_survives_encoding_with_and_without_ids() {
        let known = BusPosition {
            application: TopicName::new("samestory"),
            cluster: Some(TopicName::new("MkU3OEVBNTcwNTJENDM2Qk")),
            changelog: Some(TopicId::from_halves(1, -1)),
            topic: TopicName::new("samestory.routed"),
            topic_id: Some(TopicId::from_halves(-7, 3)),
            partition: 5,
            next: 1 << 40,
            leader_epoch: Some(12),
        };
        let unknown = BusPosition {
            cluster: None,
            changelog: None,
            topic_id: None,
            leader_epoch: None,
            ..known.clone()
        };
        for bus in [Some(known), Some(unknown), None] {
            let progress = Progress { bus, ..Progress::default() };
            let bytes = encode_progress(&progress);
            assert_eq!(decode_progress(&bytes), Ok(progress));
            for end in 0..bytes.len() {
                assert!(decode_progress(&bytes[..end]).is_err(), "{end}");
            }
        }
    }

    #[test]
    fn a_topic_id_reads_as_the_broker_prints_it() {
        // Kafka's own metadata topic, and an id with every bit set.
        assert_eq!(TopicId::from_halves(0, 1).to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(TopicId::from_halves(-1, -1).to_string(), "_____________________w");
    }
}
