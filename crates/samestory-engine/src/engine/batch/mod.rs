//! A batch → what goes out and what changes. Nothing is carried out here.

mod empty_update;
pub(crate) mod planner;
pub(crate) mod relocation;
pub(crate) mod removal;
pub(crate) mod stream_time;
mod upsert;

use std::collections::BTreeMap;
use std::thread;

use crate::index::{BusPosition, Change, Input, InputName, OutputTopic, StoreError, View, WriteSet};
use crate::model::{ArticleId, ClusterId, EventTime, Lang, Position, TopicId};
use crate::model::{ClusterRecord, DeadLetter, Tagged};

use super::Engine;
use super::candidates::read_ahead::Reading;
use super::prepare::Prepared;
use planner::Planner;
use stream_time::RecordTimes;

/// Inputs in the order they were read, and where to read on.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// In offset order.
    pub items: Vec<Item>,
    /// Where each input is to be read on after this batch. Inputs that are not named stay where they are.
    pub inputs: BTreeMap<InputName, Input>,
    /// On the bus, the position after this batch.
    pub bus: Option<BusPosition>,
    /// The highest raw offset of each raw partition whose articles or deletes this batch has.
    pub raw: BTreeMap<(TopicId, i32), i64>,
    /// Whether articles move between partitions (mode `routed` with more than one): then what becomes of them is
    /// remembered for relocation notices that are still to come.
    pub relocates: bool,
}

/// One input.
#[derive(Clone, Debug)]
pub struct Item {
    /// Where it was read.
    pub position: Position,
    /// The time of its record; a line of a file has none.
    pub time: Option<EventTime>,
    /// When it was written to the log, by a clock that is recorded in the log: the broker's append time, or the stamp of
    /// the route stage. None where the log has no such clock.
    pub log_time: Option<EventTime>,
    /// What it says.
    pub incoming: Incoming,
}

impl Item {
    /// What clocks outside the article say.
    fn times(&self) -> RecordTimes {
        RecordTimes { record: self.time, log: self.log_time }
    }
}

/// What an input says.
#[derive(Clone, Debug)]
pub enum Incoming {
    /// An article, for the first time or again.
    Article(Box<Prepared>),
    /// An article without a body. It updates one whose text is known; of others there is nothing to judge.
    Bodiless {
        /// All but the text.
        article: Box<Prepared>,
        /// What goes out where no text is known.
        refusal: DeadLetter,
    },
    /// This article is gone.
    Delete(ArticleId),
    /// These articles went to another partition, with the record at the item's position.
    Forget {
        /// The articles.
        ids: Vec<ArticleId>,
        /// The routed partition that has them now.
        to: i32,
        /// The id of the raw topic, which a relocation notice repeats.
        raw: TopicId,
    },
    /// Another partition was the home of an article until the record at the item's position.
    Notice(Notice),
    /// What cannot be judged passes through in its place.
    DeadLetter(DeadLetter),
    /// An article of this partition that cannot be delivered. Other partitions forget the article all the same.
    Undelivered {
        /// The article.
        id: ArticleId,
        /// Its language.
        language: Lang,
        /// What goes out in its place.
        letter: DeadLetter,
    },
    /// An operator sets the stream time of a language, because articles with a wrong clock have agreed on theirs.
    SetStreamTime {
        /// The language. Nothing happens where it has not arrived yet.
        language: Lang,
        /// Its stream time from here on.
        at: EventTime,
    },
}

/// What the former home of an article tells the one that it moved to: it published the article, and retracts nothing.
/// Until when it was the home is the position of the item, or of the decision that it goes out with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The article.
    pub id: ArticleId,
    /// The topics that hold a record of it.
    pub outlet: OutputTopic,
    /// The id of the raw topic.
    pub raw: TopicId,
    /// How often it was forwarded where raw positions could not be compared. That is bounded: versions of one id from
    /// several raw partitions may leave each of two partitions believing that the other has it.
    pub detours: u8,
}

/// A decision about a batch, not carried out yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What goes out for each item of the batch, in its order.
    pub decided: Vec<Decided>,
    /// What changes in the state and is written to the changelog, in this order. The last is the progress.
    pub changes: Vec<Change>,
    /// What happened, for metrics.
    pub stats: Stats,
}

impl Plan {
    /// All outputs in order.
    pub fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.decided.iter().flat_map(|decided| &decided.outputs)
    }
}

/// What goes out for one item.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// Where the item was read.
    pub position: Position,
    /// The time of that record.
    pub time: Option<EventTime>,
    /// First the tagged article or the dead letter, if there is one; then nulls; then clusters.
    pub outputs: Vec<Output>,
}

/// One record that goes out.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// An article with its verdict, to the outlet of that verdict.
    Tagged(Box<Tagged>),
    /// The article is no longer on this outlet.
    Tombstone {
        /// The article.
        id: ArticleId,
        /// The one topic that it is gone from.
        outlet: OutputTopic,
        /// Whether it lives on, on another outlet: where one topic is for all, there is nothing to retract then.
        lives: bool,
    },
    /// A relocation notice for another partition.
    Notice {
        /// The routed partition.
        to: i32,
        /// What it is told.
        notice: Notice,
    },
    /// The cluster is this now.
    Cluster(Box<ClusterRecord>),
    /// A tombstone: fewer than two members are left.
    ClusterDeleted {
        /// The cluster.
        id: ClusterId,
        /// The one member that is left, if there is one. It represents the cluster until others join it again.
        remaining: Option<ArticleId>,
    },
    /// What could not be judged.
    DeadLetter(DeadLetter),
}

/// What happened while planning. The caller counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Articles judged, the same again included.
    pub articles: u64,
    /// Documents that articles were compared with.
    pub candidates: u64,
    /// Buckets that held more documents than are examined.
    pub capped_buckets: u64,
    /// Documents removed because their retention was over.
    pub expired: u64,
    /// Articles that came when their retention was already over.
    pub arrived_expired: u64,
    /// Documents removed by a delete or a forget.
    pub deleted: u64,
    /// Deletes of ids that are not known here.
    pub unknown_deletes: u64,
    /// Articles whose verdict an editor's pairs had a say in.
    pub reviewed: u64,
    /// Forgets that are older than the document here: the article came back since.
    pub stale_forgets: u64,
    /// Relocation notices that were sent: articles that moved away after they were published.
    pub notices: u64,
    /// Relocation notices for articles that had moved on.
    pub forwarded_notices: u64,
    /// Relocation notices for articles that nothing is known of here any more.
    pub unknown_notices: u64,
    /// Clusters that another member stands for now.
    pub elections: u64,
    /// Clusters founded by a member that did not resemble the canonical.
    pub splits: u64,
    /// Times that had to be clamped.
    pub clamped_times: u64,
    /// Articles whose time lies further ahead of stream time than the retention is long.
    pub ahead_of_stream: u64,
    /// Stream times that an operator has set.
    pub stream_times_set: u64,
    /// Articles that changed state and were not published.
    pub backfilled: u64,
    /// About how much memory the changes took while they were planned: take smaller batches when it is large.
    pub overlay_bytes: u64,
}

impl Engine {
    /// Decides a batch without carrying it out.
    ///
    /// Items see each other in their order, so cutting a batch anywhere gives the same verdicts.
    ///
    /// # Errors
    /// The state could not be read; nothing was decided. Stop the partition before anything is committed.
    pub fn plan(&self, state: &(impl View + Sync), batch: Batch) -> Result<(Plan, WriteSet), StoreError> {
        let mut planner = Planner::new(self, state, batch.bus.as_ref(), batch.relocates)?;
        let mut decided = Vec::with_capacity(batch.items.len());
        thread::scope(|scope| {
            let mut ahead = Reading::new(self, state, scope, batch.items);
            while let Some((piece, read)) = ahead.next()? {
                for (at, item) in piece.into_iter().enumerate() {
                    let outputs = planner.decide(&item.position, item.times(), item.incoming, read.of(at))?;
                    decided.push(Decided { position: item.position, time: item.time, outputs });
                }
            }
            Ok(())
        })?;
        let (changes, stats, write_set) = planner.finish(batch.inputs, batch.bus, batch.raw)?;
        Ok((Plan { decided, changes, stats }, write_set))
    }
}
