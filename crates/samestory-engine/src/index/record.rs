//! The records of the index as plain values: documents, clusters, residences and progress.
//!
//! The engine creates them, [`crate::index::format::value`] turns them into bytes, and stores and the
//! changelog carry those bytes. The values have no behaviour that depends on a store.

use std::collections::BTreeMap;

use crate::fingerprint::Fingerprint;
use crate::model::{
    ArticleId, BoundedStr, ClusterId, ContentKind, DocumentNumber, EventTime, Fraction, Host, Lang,
    MatchType, Position, Title, TopicId, Url, VerdictKind,
};

/// Everything remembered about an article except its body; the text is read from `position` when it is
/// needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its number, in the order in which the articles of its language arrived.
    pub number: DocumentNumber,
    /// The article's id; there is one document per language and id.
    pub id: ArticleId,
    /// Its home language.
    pub language: Lang,
    /// Fingerprint of its text; the postings follow from it.
    pub fingerprint: Fingerprint,
    /// Title, for display.
    pub title: Option<Title>,
    /// Host, for display.
    pub host: Option<Host>,
    /// URL, for display.
    pub url: Option<Url>,
    /// Publication time; only ranks canonicals.
    pub published_at: Option<EventTime>,
    /// Event time, as stream time counts it.
    pub event_time: EventTime,
    /// When the article was last sent; rounded up if it was sent more than once. The document expires once
    /// this time plus the language's current retention has passed.
    pub last_seen: EventTime,
    /// The raw record that it was read from.
    pub position: Position,
    /// The number of its cluster's founder; its own number if it founded the cluster.
    pub cluster: DocumentNumber,
    /// How often its content has changed.
    pub revision: u32,
    /// The output topics that hold a record of it, so that a tombstone can follow when it moves.
    pub outlet: OutputTopic,
    /// The verdict on it.
    pub judgement: Judgement,
    /// Flags of the verdict as a bit set, with the bits of its [kind of content](ContentKind::bits); the index does not
    /// interpret them.
    pub flags: u32,
}

/// What a lookup needs of a document that it does not compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentSummary {
    /// The number of its cluster's founder.
    pub cluster: DocumentNumber,
    /// As [`Document::last_seen`].
    pub last_seen: EventTime,
}

impl Document {
    /// What a lookup needs of it without comparing it.
    pub fn summary(&self) -> DocumentSummary {
        DocumentSummary { cluster: self.cluster, last_seen: self.last_seen }
    }

    /// The kind of content of its text.
    pub fn content_kind(&self) -> ContentKind {
        ContentKind::from_bits(self.flags).of_length(self.fingerprint.tokens, self.language)
    }

    /// The id of the cluster that it founds in a partition.
    pub fn founds(&self, partition: i32) -> ClusterId {
        ClusterId { language: self.language, partition, number: self.number }
    }
}

/// The verdict on a document at the time it was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Unique, near-duplicate or exact duplicate.
    pub verdict: VerdictKind,
    /// How a duplicate was recognised.
    pub match_type: Option<MatchType>,
    /// Whether it is part of its best match. A part is not the canonical of a cluster that has a complete
    /// text.
    pub is_part: bool,
    /// The best match at that time, which may no longer exist.
    pub duplicate_of: Option<DocumentNumber>,
    /// Similarity to the best match.
    pub similarity: Fraction,
    /// Confidence of the verdict.
    pub confidence: Fraction,
}

/// The output topics that hold a record of an article.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutputTopic {
    /// None: the article was backfilled.
    None,
    /// The topic of unique articles.
    Unique,
    /// The topic of near and exact duplicates.
    NearDuplicate,
    /// Both: a unique article that was sent again unchanged.
    Both,
}

impl OutputTopic {
    /// Its number in the byte format.
    pub fn number(self) -> u8 {
        match self {
            OutputTopic::None => 0,
            OutputTopic::Unique => 1,
            OutputTopic::NearDuplicate => 2,
            OutputTopic::Both => 3,
        }
    }

    /// The value with this number.
    pub fn from_number(number: u8) -> Option<OutputTopic> {
        [OutputTopic::None, OutputTopic::Unique, OutputTopic::NearDuplicate, OutputTopic::Both]
            .into_iter()
            .find(|outlet| outlet.number() == number)
    }

    /// The union of both sets of topics.
    pub fn and(self, other: OutputTopic) -> OutputTopic {
        match (self, other) {
            (OutputTopic::None, one) | (one, OutputTopic::None) => one,
            (one, other) if one == other => one,
            _ => OutputTopic::Both,
        }
    }

    /// The topics of this set that the other does not have.
    pub fn without(self, other: OutputTopic) -> OutputTopic {
        self.topics().filter(|&topic| other.and(topic) != other).fold(OutputTopic::None, OutputTopic::and)
    }

    /// The individual topics.
    pub fn topics(self) -> impl Iterator<Item = OutputTopic> {
        [OutputTopic::Unique, OutputTopic::NearDuplicate]
            .into_iter()
            .filter(move |&topic| self.and(topic) == self)
    }
}

/// What a partition remembers, for one retention, of an id that it holds no document of. Relocation notices
/// arrive late, and this row decides how to handle them: only the current home of an id writes tombstones for
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residence {
    /// The article's id; one row per partition and id, and none beside a document.
    pub id: ArticleId,
    /// The language whose retention applies to the row.
    pub language: Lang,
    /// The stream time of that language when the row was written; retention counts from here.
    pub since: EventTime,
    /// The raw record that the row results from. Only offsets of the same raw partition are compared.
    pub position: Position,
    /// What became of the article.
    pub whereabouts: Whereabouts,
}

/// What became of an article that a partition holds no document of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// It moved to another routed partition.
    Moved {
        /// The routed partition.
        to: i32,
    },
    /// It was deleted, or its latest version became a dead letter.
    Gone,
    /// Its home is here and it was published, but it arrived expired and was not stored.
    Published(OutputTopic),
}

/// A cluster without its members, which are found by the founder that their documents name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The cluster id; the founder's number in it is the key.
    pub id: ClusterId,
    /// The number of its canonical.
    pub canonical: DocumentNumber,
    /// How many members it has.
    pub size: u64,
    /// The earliest event time of a member.
    pub first_seen: EventTime,
    /// The latest event time of a member.
    pub last_seen: EventTime,
    /// The cluster that its founder split off from.
    pub split_from: Option<ClusterId>,
    /// The previous canonical.
    pub canonical_changed_from: Option<ArticleId>,
    /// The hosts of its members.
    pub hosts: Hosts,
}

/// Distinct hosts in order of arrival, as many as are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(Vec<Host>);

impl Hosts {
    /// The maximum number of hosts: a cluster record must stay small.
    pub const MAX: usize = 32;

    /// Adds a host if it is new and there is room.
    pub fn insert(&mut self, host: Host) {
        if self.0.len() < Hosts::MAX && !self.0.contains(&host) {
            self.0.push(host);
        }
    }

    /// The hosts in order of arrival.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Host> {
        self.0.iter()
    }
}

impl FromIterator<Host> for Hosts {
    fn from_iter<I: IntoIterator<Item = Host>>(hosts: I) -> Hosts {
        let mut all = Hosts::default();
        hosts.into_iter().for_each(|host| all.insert(host));
        all
    }
}

/// The position record: how far a partition has been processed. Every batch contains all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// On Kafka, how far the partition has been judged, and in which topics; `None` in a file run.
    pub bus: Option<BusPosition>,
    /// On Kafka, the settings that the state depends on; `None` in a file run.
    pub built_with: Option<BuiltWith>,
    /// The files of a file run; empty on Kafka.
    pub files: FileProgress,
    /// The counters of each language that has articles.
    pub languages: BTreeMap<Lang, Counters>,
    /// By raw topic and partition, the highest raw offset whose article or delete was judged here. Routed
    /// records at or below it are repeats. Empty if raw records are read directly, because the input position
    /// already says it.
    pub raw: BTreeMap<(TopicId, i32), i64>,
}

impl Progress {
    /// The partition that the state belongs to; 0 for files.
    pub fn partition(&self) -> i32 {
        self.bus.as_ref().map_or(0, |bus| bus.partition)
    }
}

/// How far an input partition has been judged. An offset alone would fit every topic of that name, so the
/// position names the cluster, the topics by id, and the application that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusPosition {
    /// The application whose group and transactions wrote the position (`stage.app`).
    pub application: TopicName,
    /// The Kafka cluster's id; `None` if the broker does not report one.
    pub cluster: Option<TopicName>,
    /// The changelog topic's id; `None` if the broker does not assign topic ids.
    pub changelog: Option<TopicId>,
    /// The input topic's name.
    pub topic: TopicName,
    /// The input topic's id; `None` if the broker does not assign topic ids.
    pub topic_id: Option<TopicId>,
    /// The partition of the input.
    pub partition: i32,
    /// The offset to read next.
    pub next: u64,
    /// The leader epoch of the last record before `next`; it detects a log that was truncated and rewritten.
    pub leader_epoch: Option<i32>,
}

/// A topic name, cluster id or application name, within Kafka's limit for topic names.
pub type TopicName = BoundedStr<249>;

/// The identity of a topic: which topic, in which cluster. Unknown parts are not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicIdentity {
    /// The cluster's id.
    pub cluster: Option<TopicName>,
    /// The topic's id.
    pub id: Option<TopicId>,
}

impl TopicIdentity {
    /// Whether these are certainly two different topics.
    pub fn differs(&self, other: &TopicIdentity) -> bool {
        fn differ<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> bool {
            a.zip(b).is_some_and(|(a, b)| a != b)
        }
        differ(self.cluster.as_ref(), other.cluster.as_ref()) || differ(self.id.as_ref(), other.id.as_ref())
    }
}

impl std::fmt::Display for TopicIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.id {
            Some(id) => write!(f, "topic id {id}")?,
            None => f.write_str("no topic id")?,
        }
        match &self.cluster {
            Some(cluster) => write!(f, " in cluster {cluster}"),
            None => Ok(()),
        }
    }
}

/// The settings that the state of a partition depends on. The stage refuses to continue with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltWith {
    /// How many partitions the input topic had.
    pub partitions: u32,
    /// The languages that have a partition of their own, in the order that spreads them (`stage.languages`); `None` in
    /// direct mode, where the keys of the producers place the languages.
    pub languages: Option<Vec<Lang>>,
    /// The version of the table that language detection used.
    pub language_table: u32,
    /// The hash of the settings that fingerprints depend on.
    pub fingerprints: u32,
}

/// An absolute path.
pub type FilePath = BoundedStr<4096>;

/// How far the files of a file run have been read and written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileProgress {
    /// The input files, and how many records of each were judged.
    pub inputs: BTreeMap<FilePath, FilePosition>,
    /// The output files, and how many bytes of each belong to judged articles.
    pub outputs: BTreeMap<FilePath, FilePosition>,
    /// The dead-letter files, and how many bytes of each belong to judged articles.
    pub dead_letters: BTreeMap<FilePath, FilePosition>,
    /// The editor's pairs that the state was built with.
    pub pairs: Option<PairList>,
}

impl FileProgress {
    /// Takes over the newer positions. Files that `newer` does not name keep theirs.
    pub fn extend(&mut self, newer: FileProgress) {
        self.inputs.extend(newer.inputs);
        self.outputs.extend(newer.outputs);
        self.dead_letters.extend(newer.dead_letters);
        self.pairs = newer.pairs.or(self.pairs);
    }

    /// Whether it names no file and no pairs.
    pub fn is_empty(&self) -> bool {
        *self == FileProgress::default()
    }
}

/// How far one file has been read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePosition {
    /// The next record to read, or the next byte to write.
    pub next: u64,
    /// What the file began with. Another beginning means another file of the same name.
    pub begins: FileBeginning,
}

/// The first bytes of a file, as a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileBeginning {
    /// How many bytes the hash covers.
    pub bytes: u16,
    /// XXH3 of these bytes.
    pub hash: u64,
}

/// The identity of an editor's list of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairList {
    /// How many pairs it has.
    pub count: u64,
    /// A hash of all of them.
    pub hash: u64,
}

/// The counters of one language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The number of the next document.
    pub next_number: u64,
    /// The latest event time that enough articles have reached; `None` before that.
    pub stream_time: Option<EventTime>,
    /// Articles ahead of stream time, in order of arrival. The engine keeps the list short.
    pub votes: Vec<Vote>,
}

/// The event time of an article that is ahead of stream time. Stream time advances once enough articles
/// agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    /// A hash of the article's id, so that an article that arrives twice votes once.
    pub article: u64,
    /// Its event time.
    pub at: EventTime,
    /// The vote expires after this many more articles of the language.
    pub left: u16,
}

/// How long a document is kept after it was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// Until it is deleted.
    Forever,
    /// This many milliseconds of stream time.
    Millis(u64),
}

impl Retention {
    /// Documents last seen at or before this time are expired; `None` if nothing expires.
    pub fn horizon(self, stream_time: EventTime) -> Option<EventTime> {
        match self {
            Retention::Forever => None,
            Retention::Millis(millis) => {
                stream_time.millis().checked_sub_unsigned(millis).map(EventTime::from_millis)
            }
        }
    }
}
