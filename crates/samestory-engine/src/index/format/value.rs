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
//! | 4 | flags, one bit each; the two highest bits are the kind of content: 0 ordinary or short, 1 list, 2 table |
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
//! **Progress**, layout 3
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
//! | 1 | 1 if it names settings, else 0; these four: |
//! | 4 | partitions of the input topic |
//! | 1, then 1 and languages | 1 if the stage places languages, else 0; how many, codes |
//! | 4, 4 | version of the language table, hash of the fingerprint settings |
//! | 4 | input files, then for each, ascending: |
//! | text, 8, 2, 8 | path, next record, bytes hashed, hash of the file's beginning |
//! | 4, … | output files: the same with the next byte |
//! | 4, … | dead-letter files: the same with the next byte |
//! | optional 8, 8 | an editor's pairs: how many, hash |
//! | 2 | languages, then for each, ascending: |
//! | language, 8, optional 8 | code, next number, stream time |
//! | 1, then 8, 8, 2 for each | votes: hash of the article's id, event time, articles left |
//! | 4 | raw partitions, then for each, ascending: |
//! | 16, 4, 8 | raw topic's id, partition, highest offset judged |

use std::collections::BTreeMap;

use crate::fingerprint::Fingerprint;
use crate::model::{ArticleId, ClusterId, DocumentNumber, Fraction, Lang, MatchType, Position, VerdictKind};

use super::bytes::{ByteReader, ByteWriter, DecodeError};
use crate::index::record::{
    BuiltWith, BusPosition, Cluster, Counters, Document, FileBeginning, FilePath, FilePosition, FileProgress,
    Hosts, Judgement, OutputTopic, PairList, Progress, Residence, Vote, Whereabouts,
};

const DOCUMENT: u8 = 1;
const CLUSTER: u8 = 1;
const PROGRESS: u8 = 3;
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
    bytes.optional(progress.built_with.as_ref(), encode_built_with);
    let FileProgress { inputs, outputs, dead_letters, pairs } = &progress.files;
    [inputs, outputs, dead_letters].into_iter().for_each(|files| encode_files(&mut bytes, files));
    bytes.optional(pairs.as_ref(), |bytes, pairs| {
        bytes.extend(pairs.count.to_le_bytes());
        bytes.extend(pairs.hash.to_le_bytes());
    });
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
    let mut progress = Progress {
        bus: read.optional(decode_bus_position)?,
        built_with: read.optional(decode_built_with)?,
        files: FileProgress {
            inputs: decode_files(&mut read)?,
            outputs: decode_files(&mut read)?,
            dead_letters: decode_files(&mut read)?,
            pairs: read.optional(|read| Ok(PairList { count: read.u64()?, hash: read.u64()? }))?,
        },
        ..Progress::default()
    };
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

fn encode_built_with(bytes: &mut Vec<u8>, settings: &BuiltWith) {
    bytes.extend(settings.partitions.to_le_bytes());
    bytes.optional(settings.languages.as_ref(), |bytes, languages| {
        // The language table has a few dozen rows, and the settings name each at most once.
        bytes.push(languages.len() as u8);
        languages.iter().for_each(|&language| bytes.language(language));
    });
    bytes.extend(settings.language_table.to_le_bytes());
    bytes.extend(settings.fingerprints.to_le_bytes());
}

fn decode_built_with(read: &mut ByteReader<'_>) -> Result<BuiltWith, DecodeError> {
    Ok(BuiltWith {
        partitions: read.u32()?,
        languages: read.optional(|read| (0..read.byte()?).map(|_| read.language()).collect())?,
        language_table: read.u32()?,
        fingerprints: read.u32()?,
    })
}

fn encode_files(bytes: &mut Vec<u8>, files: &BTreeMap<FilePath, FilePosition>) {
    bytes.extend((files.len() as u32).to_le_bytes());
    for (path, FilePosition { next, begins }) in files {
        bytes.text(path.as_str());
        bytes.extend(next.to_le_bytes());
        bytes.extend(begins.bytes.to_le_bytes());
        bytes.extend(begins.hash.to_le_bytes());
    }
}

fn decode_files(read: &mut ByteReader<'_>) -> Result<BTreeMap<FilePath, FilePosition>, DecodeError> {
    let mut files = BTreeMap::new();
    for _ in 0..read.u32()? {
        let (path, next) = (read.bounded_str()?, read.u64()?);
        let begins = FileBeginning { bytes: read.u16()?, hash: read.u64()? };
        if files.last_key_value().is_some_and(|(last, _)| *last >= path) {
            return Err(DecodeError::Value("a list of files in this order"));
        }
        files.insert(path, FilePosition { next, begins });
    }
    Ok(files)
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
    fn progress_survives_encoding_on_kafka_and_in_a_file_run() {
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
        let placed = BuiltWith {
            partitions: 3,
            languages: Some(vec![Lang::UND]),
            language_table: 2,
            fingerprints: 0xfeed_beef,
        };
        let by_key = BuiltWith { languages: None, ..placed.clone() };
        let position = |next| FilePosition { next, begins: FileBeginning { bytes: 4096, hash: next << 40 } };
        let files = FileProgress {
            inputs: [("/a", 1), ("/b", 2)].map(|(path, next)| (FilePath::new(path), position(next))).into(),
            outputs: [(FilePath::new("/out"), position(3))].into(),
            dead_letters: [(FilePath::new("/dead"), position(4))].into(),
            pairs: Some(PairList { count: 5, hash: 6 }),
        };
        for (bus, built_with, files) in [
            (Some(known), Some(placed), FileProgress::default()),
            (Some(unknown), Some(by_key), FileProgress::default()),
            (None, None, files),
            (None, None, FileProgress::default()),
        ] {
            let progress = Progress { bus, built_with, files, ..Progress::default() };
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
