//! What is kept: documents, clusters, and how far the partition has come. Plain values; their bytes are in
//! [`crate::index::format::value`].

use std::collections::BTreeMap;

use crate::fingerprint::Fingerprint;
use crate::model::{
    ArticleId, BoundedStr, ClusterId, DocumentNumber, EventTime, Fraction, Host, Lang, MatchType, Position,
    Title, TopicId, Url, Verdict,
};

/// All that is remembered of an article. It has no body: the text is read from its position when asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its place in the order of its language.
    pub number: DocumentNumber,
    /// Its name; one document per language and id.
    pub id: ArticleId,
    /// Its language.
    pub language: Lang,
    /// Its text's fingerprint; the postings follow from it.
    pub fingerprint: Fingerprint,
    /// For display.
    pub title: Option<Title>,
    /// For display.
    pub host: Option<Host>,
    /// For display.
    pub url: Option<Url>,
    /// Ranks canonicals, nothing else.
    pub published_at: Option<EventTime>,
    /// When it happened, as stream time sees it.
    pub event_time: EventTime,
    /// When it was last sent, rounded up where it was sent again. It expires at this time plus the retention of its
    /// language, whatever that is when it is read.
    pub last_seen: EventTime,
    /// Where it was read.
    pub position: Position,
    /// The number of the founder of its cluster: its own, where it founded one.
    pub cluster: DocumentNumber,
    /// How often its content has changed.
    pub revision: u32,
    /// The output topics that hold a record of it, so that a tombstone follows when it moves.
    pub outlet: OutputTopic,
    /// What was said of it.
    pub judgement: Judgement,
    /// The engine's flags; nothing here reads them.
    pub flags: u32,
}

impl Document {
    /// The name of the cluster that it founds in a partition.
    pub fn founds(&self, partition: i32) -> ClusterId {
        ClusterId { language: self.language, partition, number: self.number }
    }
}

/// What was said of a document when it was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// How a duplicate was told.
    pub match_type: Option<MatchType>,
    /// Whether it is a part of its best match: while a whole is in the cluster, a part is not its canonical.
    pub is_part: bool,
    /// The best match at that time. It may be gone by now.
    pub duplicate_of: Option<DocumentNumber>,
    /// How similar that was.
    pub similarity: Fraction,
    /// How sure the verdict was.
    pub confidence: Fraction,
}

/// Where a document was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutputTopic {
    /// Nowhere: backfill.
    None,
    /// The topic of unique articles.
    Unique,
    /// The topic of near and exact duplicates.
    NearDuplicate,
    /// Both: a unique article that was sent again unchanged.
    Both,
}

impl OutputTopic {
    /// Its number in bytes.
    pub fn number(self) -> u8 {
        match self {
            OutputTopic::None => 0,
            OutputTopic::Unique => 1,
            OutputTopic::NearDuplicate => 2,
            OutputTopic::Both => 3,
        }
    }

    /// The outlet of a number.
    pub fn from_number(number: u8) -> Option<OutputTopic> {
        [OutputTopic::None, OutputTopic::Unique, OutputTopic::NearDuplicate, OutputTopic::Both]
            .into_iter()
            .find(|outlet| outlet.number() == number)
    }

    /// The topics of either.
    pub fn and(self, other: OutputTopic) -> OutputTopic {
        match (self, other) {
            (OutputTopic::None, one) | (one, OutputTopic::None) => one,
            (one, other) if one == other => one,
            _ => OutputTopic::Both,
        }
    }

    /// The topics of this one that the other does not have.
    pub fn without(self, other: OutputTopic) -> OutputTopic {
        self.topics().filter(|&topic| other.and(topic) != other).fold(OutputTopic::None, OutputTopic::and)
    }

    /// Topic by topic.
    pub fn topics(self) -> impl Iterator<Item = OutputTopic> {
        [OutputTopic::Unique, OutputTopic::NearDuplicate]
            .into_iter()
            .filter(move |&topic| self.and(topic) == self)
    }
}

/// What a partition remembers of an id that it holds no document of, for one retention. Relocation notices arrive late, and
/// this says what becomes of them: only the current home of an id writes tombstones for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residence {
    /// The article's id; one row per partition and id, and none beside a document.
    pub id: ArticleId,
    /// The language whose retention the row has.
    pub language: Lang,
    /// The stream time of that language when the row was written; retention counts from here.
    pub since: EventTime,
    /// The raw record that the row follows from. Offsets of one raw partition are compared, others are not.
    pub position: Position,
    /// Where the article is.
    pub stay: Whereabouts,
}

/// Where an article is that a partition holds no document of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// It moved to another routed partition.
    Moved {
        /// That partition.
        to: i32,
    },
    /// It was deleted, or the version that came here is a dead letter.
    Gone,
    /// It is at home here and published, but arrived expired and was not stored.
    Published(OutputTopic),
}

/// A cluster, without its members: those are found by the cluster their documents name, however many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Its name, which holds its founder's number, which is its key.
    pub id: ClusterId,
    /// The member that stands for it now.
    pub canonical: DocumentNumber,
    /// How many members it has.
    pub size: u64,
    /// The earliest event time of a member.
    pub first_seen: EventTime,
    /// The latest event time of a member.
    pub last_seen: EventTime,
    /// The cluster of the member that its founder resembled.
    pub split_from: Option<ClusterId>,
    /// Who stood for it before.
    pub canonical_changed_from: Option<ArticleId>,
    /// Where members were found.
    pub hosts: Hosts,
}

/// Distinct hosts in the order they came, as many as are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(Vec<Host>);

impl Hosts {
    /// More are not kept: a cluster record must stay small.
    pub const MAX: usize = 32;

    /// Adds a host that is not there yet, if there is room.
    pub fn insert(&mut self, host: Host) {
        if self.0.len() < Hosts::MAX && !self.0.contains(&host) {
            self.0.push(host);
        }
    }

    /// In the order they came.
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

/// How far a partition has come: the position record. Every batch carries the whole of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// On the bus, how far the partition has been judged, and in which topics; nothing in a file run.
    pub bus: Option<BusPosition>,
    /// In a file run, what to read next, by the file's identity; on the bus, the settings that the state was made with.
    pub inputs: BTreeMap<InputName, Input>,
    /// The counters of each language that has arrived.
    pub languages: BTreeMap<Lang, Counters>,
    /// By raw topic and partition, the highest raw offset whose article or delete was judged here. Routed records at or
    /// below it are repeats. Empty where raw records are read directly: there the input's own position says it.
    pub raw: BTreeMap<(TopicId, i32), i64>,
}

impl Progress {
    /// The partition whose state this is; 0 for files.
    pub fn partition(&self) -> i32 {
        self.bus.as_ref().map_or(0, |bus| bus.partition)
    }
}

/// How far a partition of the input has been judged. An offset alone would fit every topic of that name, so the
/// position names the cluster, the topics by their ids, and the application that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusPosition {
    /// The application whose group and transactions wrote it (`stage.app`).
    pub application: TopicName,
    /// The cluster's id; nothing where the broker does not say.
    pub cluster: Option<TopicName>,
    /// The changelog topic's id; nothing where the broker gives topics none.
    pub changelog: Option<TopicId>,
    /// The input topic's name.
    pub topic: TopicName,
    /// The input topic's id; nothing where the broker gives topics none.
    pub topic_id: Option<TopicId>,
    /// The partition of the input.
    pub partition: i32,
    /// The offset to read next.
    pub next: u64,
    /// The leader epoch of the last record before `next`: it tells a log that was cut and written again.
    pub leader_epoch: Option<i32>,
}

/// A topic's name, a cluster's id, an application's name: as long as Kafka allows a topic's name to be.
pub type TopicName = BoundedStr<249>;

/// Which topic a log is, in which cluster. What is not known is not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicIdentity {
    /// The cluster's id.
    pub cluster: Option<TopicName>,
    /// The topic's id.
    pub id: Option<TopicId>,
}

impl TopicIdentity {
    /// Whether it is certain that these are two topics.
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

/// What an input is called.
pub type InputName = BoundedStr<4096>;

/// How far one input has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// The next offset, or line.
    pub next: u64,
    /// What else the reader wants to find again, for example how long its output is.
    pub note: Option<BoundedStr<4096>>,
}

/// The counters of one language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The number that the next document gets.
    pub next_number: u64,
    /// The latest event time that several articles have reached. None until they have.
    pub stream_time: Option<EventTime>,
    /// Articles ahead of stream time, in the order they came. The engine keeps the list short.
    pub votes: Vec<Vote>,
}

/// The event time of an article that is ahead of stream time: stream time follows when enough articles agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    /// A hash of the article's id: an article that comes twice votes once.
    pub article: u64,
    /// Its event time.
    pub at: EventTime,
    /// The vote lapses after so many more articles of the language.
    pub left: u16,
}

/// How long a document is remembered after it was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// Until it is deleted.
    Forever,
    /// So many milliseconds of stream time.
    Millis(u64),
}

impl Retention {
    /// Documents last seen at this time or before are expired. None are while there is no such time.
    pub fn horizon(self, stream_time: EventTime) -> Option<EventTime> {
        match self {
            Retention::Forever => None,
            Retention::Millis(millis) => {
                stream_time.millis().checked_sub_unsigned(millis).map(EventTime::from_millis)
            }
        }
    }
}
