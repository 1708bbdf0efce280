//! The planner: decides the items of a batch one by one.
//!
//! It reads the index through an [`Overlay`], so each item sees the changes of the items before it; the
//! `impl` blocks in the sibling files and in `cluster` handle the individual kinds of item. The planner only
//! collects outputs and changes: nothing is written to the index or to Kafka here.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::{
    BuiltWith, BusPosition, Change, Document, FileProgress, Overlay, Progress, StoreError, View, WriteSet,
};
use crate::model::{DocumentNumber, EventTime, Lang, Position, TopicId};

use super::stream_time::RecordTimes;
use super::{Incoming, Output, Stats};
use crate::engine::Engine;
use crate::engine::candidates::read_ahead::ArticleBuckets;
use crate::engine::cluster::ClusterEdit;

/// The state of planning one batch.
pub(crate) struct Planner<'a, V> {
    pub(crate) engine: &'a Engine,
    pub(crate) state: Overlay<'a, V>,
    pub(crate) stats: Stats,
    /// Clusters that the current item edits. Their changes are staged once, when the item is decided.
    pub(crate) cluster_edits: BTreeMap<(Lang, DocumentNumber), ClusterEdit>,
    pub(crate) progress: Progress,
    /// Event time of the current article.
    pub(crate) item_time: Option<EventTime>,
    /// By language, a lower bound of when its documents were last seen; `None` if it has no documents.
    pub(crate) seen_since: BTreeMap<Lang, Option<EventTime>>,
    /// The partition that owns the state; cluster ids contain it.
    pub(crate) partition: i32,
    /// True if articles move between partitions.
    pub(crate) relocates: bool,
    changes: Vec<Change>,
}

impl<'a, V: View> Planner<'a, V> {
    /// Starts planning. A batch from files has no position on the bus; the first batch of a partition has one
    /// before the state does.
    pub(crate) fn new(
        engine: &'a Engine,
        state: &'a V,
        bus: Option<&BusPosition>,
        relocates: bool,
    ) -> Result<Planner<'a, V>, StoreError> {
        let progress = state.progress()?;
        Ok(Planner {
            engine,
            partition: bus.map_or(progress.partition(), |bus| bus.partition),
            progress,
            state: Overlay::new(state),
            stats: Stats::default(),
            cluster_edits: BTreeMap::new(),
            item_time: None,
            seen_since: BTreeMap::new(),
            relocates,
            changes: Vec::new(),
        })
    }

    /// Decides one item and returns the records to publish for it.
    pub(crate) fn decide(
        &mut self,
        position: &Position,
        times: RecordTimes,
        incoming: Incoming,
        buckets: ArticleBuckets<'_>,
    ) -> Result<Vec<Output>, StoreError> {
        self.item_time = None;
        let mut outputs = match incoming {
            Incoming::Article(article) => self.article(position, times, *article, None, buckets)?,
            Incoming::Bodiless { article, refusal } => {
                self.article(position, times, *article, Some(refusal), buckets)?
            }
            Incoming::Delete(id) => self.delete(&id, position, times)?,
            Incoming::Forget { ids, to, raw } => self.forget(&ids, (to, raw), position)?,
            Incoming::Notice(notice) => self.notice(notice, position, times)?,
            Incoming::DeadLetter(letter) => vec![Output::DeadLetter(letter)],
            Incoming::Undelivered { id, language, letter } => {
                self.undelivered(id, language, position, times)?;
                vec![Output::DeadLetter(letter)]
            }
            Incoming::SetStreamTime { language, at } => {
                self.set_stream_time(language, at);
                Vec::new()
            }
        };
        for output in &mut outputs {
            if let Output::Tagged(tagged) = output {
                tagged.received_at = times.log.or(times.record);
            }
        }
        self.flush_cluster_edits(&mut outputs)?;
        Ok(outputs)
    }

    /// Returns the last change of each key, the statistics, and the write set, with the progress after the
    /// batch.
    pub(crate) fn finish(
        mut self,
        files: FileProgress,
        (bus, built_with): (Option<BusPosition>, Option<BuiltWith>),
        raw: BTreeMap<(TopicId, i32), i64>,
    ) -> Result<(Vec<Change>, Stats, WriteSet), StoreError> {
        self.stats.overlay_bytes = self.state.bytes() as u64;
        self.progress.files.extend(files);
        self.progress.bus = bus.or(self.progress.bus);
        self.progress.built_with = built_with.or(self.progress.built_with);
        self.progress.raw.extend(raw);
        let progress = Change::Progress(std::mem::take(&mut self.progress));
        self.change(progress)?;
        // A change carries the complete value of its key, so a cluster that grew a hundred times is written
        // once.
        let mut keys = BTreeSet::new();
        let mut last: Vec<Change> =
            self.changes.into_iter().rev().filter(|change| keys.insert(change.key())).collect();
        last.reverse();
        Ok((last, self.stats, self.state.into_write_set()))
    }

    pub(crate) fn change(&mut self, change: Change) -> Result<(), StoreError> {
        self.state.stage(&change)?;
        let listed = match &change {
            Change::Document(document) => Some((document.language, document.last_seen)),
            Change::Residence(row) => Some((row.language, row.since)),
            _ => None,
        };
        if let Some((language, at)) = listed
            && let Some(since) = self.seen_since.get_mut(&language)
        {
            *since = Some(since.map_or(at, |since| since.min(at)));
        }
        self.changes.push(change);
        Ok(())
    }

    pub(crate) fn stream_time(&self, language: Lang) -> Option<EventTime> {
        self.progress.languages.get(&language).and_then(|counters| counters.stream_time)
    }

    /// Sets the stream time of a language as an operator asks, even backwards, and drops the votes for other
    /// times.
    ///
    /// A language without articles has no stream time to correct, and must not appear in the state because of
    /// this record, which may have been sent to every partition.
    fn set_stream_time(&mut self, language: Lang, at: EventTime) {
        if let Some(counters) = self.progress.languages.get_mut(&language) {
            counters.stream_time = Some(at);
            counters.votes.clear();
            self.stats.stream_times_set += 1;
        }
    }

    /// Documents last seen at or before this time are expired.
    pub(crate) fn horizon(&self, language: Lang) -> Option<EventTime> {
        self.stream_time(language).and_then(|now| self.engine.settings_for(language).retention.horizon(now))
    }

    pub(crate) fn is_live(&self, document: &Document) -> bool {
        self.is_within(document.language, document.last_seen)
    }

    /// True if something that was last seen at this time is still within the retention of its language.
    pub(crate) fn is_within(&self, language: Lang, last_seen: EventTime) -> bool {
        self.horizon(language).is_none_or(|horizon| last_seen > horizon)
    }

    /// True if events of this time are published.
    pub(crate) fn publishes(&self, at: Option<EventTime>) -> bool {
        self.engine.settings().publish_from.is_none_or(|from| at.is_some_and(|at| at >= from))
    }

    /// True if the clusters of a language are published yet. Stream time lags by a few articles, so an
    /// article that is published itself publishes its clusters too.
    pub(crate) fn publishes_clusters(&self, language: Lang) -> bool {
        self.publishes(self.stream_time(language).max(self.item_time))
    }
}
