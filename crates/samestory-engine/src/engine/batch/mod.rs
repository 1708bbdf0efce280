//! Batch planning: turns a batch of inputs into records to publish and changes to the state.
//!
//! [`planner`] decides item by item; the other files each handle one kind of item or one concern.
//! [`Engine::plan`] is pure: it reads the index and returns a [`Plan`], and the caller publishes, commits and
//! applies it.

mod empty_update;
pub(crate) mod planner;
pub(crate) mod relocation;
pub(crate) mod removal;
pub(crate) mod stream_time;
mod upsert;

use std::collections::BTreeMap;
use std::thread;

use crate::index::{
    BuiltWith, BusPosition, Change, FileProgress, OutputTopic, Progress, StoreError, View, WriteSet,
};
use crate::model::{ArticleId, ClusterId, EventTime, Lang, Position, TopicId};
use crate::model::{ClusterRecord, DeadLetter, Verdict};

use super::Engine;
use super::candidates::read_ahead::ReadAheadQueue;
use super::prepare::Prepared;
use planner::Planner;
use stream_time::RecordTimes;

/// Inputs in the order in which they were read, and the position to resume from.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// In offset order.
    pub items: Vec<Item>,
    /// The positions of files after this batch. Files that are not named keep theirs.
    pub files: FileProgress,
    /// The Kafka position after this batch; `None` for files.
    pub bus: Option<BusPosition>,
    /// The settings that the state depends on; `None` for files.
    pub built_with: Option<BuiltWith>,
    /// The highest raw offset per raw partition among the articles and deletes of this batch.
    pub raw: BTreeMap<(TopicId, i32), i64>,
    /// True if articles can move between partitions (mode `routed` with more than one). Then the planner
    /// remembers what became of them, for relocation notices that have not arrived yet.
    pub relocates: bool,
}

/// One input record.
#[derive(Clone, Debug)]
pub struct Item {
    /// Where the record was read.
    pub position: Position,
    /// The record's timestamp; a line of a file has none.
    pub time: Option<EventTime>,
    /// When the record was written, by a clock that the log itself records: the broker's append time, or the
    /// stamp of the route stage. `None` if the log has no such clock.
    pub log_time: Option<EventTime>,
    /// The content of the record.
    pub incoming: Incoming,
}

impl Item {
    /// The times that the record carries besides the article's own.
    fn times(&self) -> RecordTimes {
        RecordTimes { record: self.time, log: self.log_time }
    }
}

/// The content of an input record.
#[derive(Clone, Debug)]
pub enum Incoming {
    /// A new or updated article.
    Article(Box<Prepared>),
    /// An article without a body. It updates an article whose text is known; otherwise there is nothing to
    /// judge.
    Bodiless {
        /// The article, without a text.
        article: Box<Prepared>,
        /// The dead letter to publish if no text is known.
        refusal: DeadLetter,
    },
    /// The article was deleted.
    Delete(ArticleId),
    /// These articles moved to another partition with the record at the item's position.
    Forget {
        /// The ids of the articles.
        ids: Vec<ArticleId>,
        /// The routed partition that owns them now.
        to: i32,
        /// The id of the raw topic, which the relocation notice repeats.
        raw: TopicId,
    },
    /// Another partition was an article's home until the record at the item's position.
    Notice(Notice),
    /// A record that cannot be judged; the dead letter passes through in its place.
    DeadLetter(DeadLetter),
    /// An article of this partition that cannot be delivered. Other partitions forget the article all the
    /// same.
    Undelivered {
        /// The article.
        id: ArticleId,
        /// The language of the article.
        language: Lang,
        /// The dead letter to publish instead.
        letter: DeadLetter,
    },
    /// An operator sets the stream time of a language, because articles with wrong clocks have moved it.
    SetStreamTime {
        /// The language. The record has no effect if the language has no articles yet.
        language: Lang,
        /// The new stream time.
        at: EventTime,
    },
}

/// A relocation notice: the former home of an article tells the new home that it published the article and
/// leaves the retraction to it. The position of the item, or of the decision that carries the notice, says
/// until when it was the home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The article.
    pub id: ArticleId,
    /// The topics that hold a record of the article.
    pub outlet: OutputTopic,
    /// The id of the raw topic.
    pub raw: TopicId,
    /// How often the notice was forwarded although raw positions could not be compared. The number is
    /// bounded: versions of one id from several raw partitions may make two partitions each believe that the
    /// other has the article.
    pub detours: u8,
}

/// The decisions about a batch, not yet carried out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The records to publish for each item of the batch, in order.
    pub decided: Vec<Decided>,
    /// The changes to the state, in the order in which they are written to the changelog. The last one is the
    /// progress.
    pub changes: Vec<Change>,
    /// Statistics for metrics.
    pub stats: Stats,
}

impl Plan {
    /// The progress after the batch.
    pub fn progress(&self) -> Option<&Progress> {
        self.changes.iter().rev().find_map(|change| match change {
            Change::Progress(progress) => Some(progress),
            _ => None,
        })
    }

    /// All records to publish, in order.
    pub fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.decided.iter().flat_map(|decided| &decided.outputs)
    }
}

/// The records to publish for one item.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// Where the item was read.
    pub position: Position,
    /// The timestamp of that record.
    pub time: Option<EventTime>,
    /// First the tagged article or the dead letter, if there is one; then tombstones; then clusters.
    pub outputs: Vec<Output>,
}

/// One record to publish.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// An article with its verdict, for the topic of that verdict.
    Tagged(Box<Verdict>),
    /// Retracts the article from one topic.
    Tombstone {
        /// The article.
        id: ArticleId,
        /// The topic to retract it from.
        outlet: OutputTopic,
        /// True if the article lives on in another topic. If one topic carries all verdicts, there is then
        /// nothing to retract.
        lives: bool,
    },
    /// A relocation notice for another partition.
    Notice {
        /// The routed partition to send it to.
        to: i32,
        /// The notice.
        notice: Notice,
    },
    /// The current record of a cluster.
    Cluster(Box<ClusterRecord>),
    /// Deletes a cluster record: fewer than two members are left.
    ClusterDeleted {
        /// The cluster.
        id: ClusterId,
        /// The last remaining member, if there is one. It represents the cluster until others join it again.
        remaining: Option<ArticleId>,
    },
    /// A record that could not be judged.
    DeadLetter(DeadLetter),
}

/// Counts of one planned batch; the caller turns them into metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Articles judged, including unchanged ones.
    pub articles: u64,
    /// Documents that articles were compared with.
    pub candidates: u64,
    /// Buckets that held more documents than are examined.
    pub capped_buckets: u64,
    /// Documents removed because their retention had passed.
    pub expired: u64,
    /// Articles that were already past their retention when they arrived.
    pub arrived_expired: u64,
    /// Documents removed by a delete or a forget.
    pub deleted: u64,
    /// Deletes of ids that this partition does not know.
    pub unknown_deletes: u64,
    /// Articles whose verdict an editor's ruling affected.
    pub reviewed: u64,
    /// Forgets that are older than the stored document: the article has come back since.
    pub stale_forgets: u64,
    /// Relocation notices sent, for articles that moved away after they were published.
    pub notices: u64,
    /// Relocation notices forwarded because the article had moved on.
    pub forwarded_notices: u64,
    /// Relocation notices for articles that this partition no longer knows.
    pub unknown_notices: u64,
    /// Clusters whose canonical changed.
    pub elections: u64,
    /// Clusters founded by an article that did not resemble the canonical of its best match's cluster.
    pub splits: u64,
    /// Times that were clamped.
    pub clamped_times: u64,
    /// Articles whose time lies further ahead of stream time than the retention is long.
    pub ahead_of_stream: u64,
    /// Stream times set by an operator.
    pub stream_times_set: u64,
    /// Articles that changed state and were not published.
    pub backfilled: u64,
    /// Approximate memory that the planned changes occupied; use smaller batches if it is large.
    pub overlay_bytes: u64,
}

impl Engine {
    /// Decides a batch. Nothing is published or written.
    ///
    /// Each item sees the changes of those before it, so splitting a batch anywhere gives the same verdicts.
    ///
    /// # Errors
    /// The index could not be read, and nothing was decided. Stop the partition without committing anything.
    pub fn plan(&self, state: &(impl View + Sync), batch: Batch) -> Result<(Plan, WriteSet), StoreError> {
        let mut planner = Planner::new(self, state, batch.bus.as_ref(), batch.relocates)?;
        let mut decided = Vec::with_capacity(batch.items.len());
        thread::scope(|scope| {
            let mut ahead = ReadAheadQueue::new(self, state, scope, batch.items);
            while let Some((piece, read)) = ahead.next()? {
                for (at, item) in piece.into_iter().enumerate() {
                    let outputs =
                        planner.decide(&item.position, item.times(), item.incoming, read.for_item(at))?;
                    decided.push(Decided { position: item.position, time: item.time, outputs });
                }
            }
            Ok(())
        })?;
        let (changes, stats, write_set) =
            planner.finish(batch.files, (batch.bus, batch.built_with), batch.raw)?;
        Ok((Plan { decided, changes, stats }, write_set))
    }
}
