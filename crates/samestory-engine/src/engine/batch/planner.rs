//! Deciding item by item. Each sees what those before it changed, through an overlay on the state.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::{
    BusPosition, Change, Document, Input, InputName, Overlay, Progress, StoreError, View, WriteSet,
};
use crate::model::{DocumentNumber, EventTime, Lang, Position, TopicId};

use super::stream_time::RecordTimes;
use super::{Incoming, Output, Stats};
use crate::engine::Engine;
use crate::engine::candidates::read_ahead::Found;
use crate::engine::cluster::ClusterEdit;

/// A batch being planned.
pub(crate) struct Planner<'a, V> {
    pub(crate) engine: &'a Engine,
    pub(crate) state: Overlay<'a, V>,
    pub(crate) stats: Stats,
    /// The clusters that the item at hand has to do with. Their changes are laid once, when it is decided.
    pub(crate) touched: BTreeMap<(Lang, DocumentNumber), ClusterEdit>,
    pub(crate) progress: Progress,
    /// The event time of the article at hand.
    pub(crate) item_time: Option<EventTime>,
    /// By language, a time before which no document was last seen; none where there are no documents.
    pub(crate) seen_since: BTreeMap<Lang, Option<EventTime>>,
    /// The partition whose state it is: cluster ids name it.
    pub(crate) partition: i32,
    /// Whether articles move between partitions.
    pub(crate) relocates: bool,
    changes: Vec<Change>,
}

impl<'a, V: View> Planner<'a, V> {
    /// A batch of files has no position on the bus; the first batch of a partition has one before its state does.
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
            touched: BTreeMap::new(),
            item_time: None,
            seen_since: BTreeMap::new(),
            relocates,
            changes: Vec::new(),
        })
    }

    /// What goes out for one item.
    pub(crate) fn decide(
        &mut self,
        position: &Position,
        times: RecordTimes,
        incoming: Incoming,
        found: Found<'_>,
    ) -> Result<Vec<Output>, StoreError> {
        self.item_time = None;
        let mut outputs = match incoming {
            Incoming::Article(article) => self.article(position, times, *article, None, found)?,
            Incoming::Bodiless { article, refusal } => {
                self.article(position, times, *article, Some(refusal), found)?
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
        self.settle_clusters(&mut outputs)?;
        Ok(outputs)
    }

    /// The changes of all items, the last of each key, and the progress after them.
    pub(crate) fn finish(
        mut self,
        inputs: BTreeMap<InputName, Input>,
        bus: Option<BusPosition>,
        raw: BTreeMap<(TopicId, i32), i64>,
    ) -> Result<(Vec<Change>, Stats, WriteSet), StoreError> {
        self.stats.overlay_bytes = self.state.bytes() as u64;
        self.progress.inputs.extend(inputs);
        self.progress.bus = bus.or(self.progress.bus);
        self.progress.raw.extend(raw);
        let progress = Change::Progress(std::mem::take(&mut self.progress));
        self.change(progress)?;
        // A change is its key's whole state: a cluster that grew a hundred times is written once.
        let mut keys = BTreeSet::new();
        let mut last: Vec<Change> =
            self.changes.into_iter().rev().filter(|change| keys.insert(change.key())).collect();
        last.reverse();
        Ok((last, self.stats, self.state.into_write_set()))
    }

    pub(crate) fn change(&mut self, change: Change) -> Result<(), StoreError> {
        self.state.lay(&change)?;
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

    /// Stream time goes where the operator says, back too. Votes for other times are dropped.
    ///
    /// A language that has not arrived has no stream time to put right, and must not appear in the state for it: the
    /// record may have been sent to every partition.
    fn set_stream_time(&mut self, language: Lang, at: EventTime) {
        if let Some(counters) = self.progress.languages.get_mut(&language) {
            counters.stream_time = Some(at);
            counters.votes.clear();
            self.stats.stream_times_set += 1;
        }
    }

    /// Documents last seen at this time or before are expired.
    pub(crate) fn horizon(&self, language: Lang) -> Option<EventTime> {
        self.stream_time(language).and_then(|now| self.engine.of(language).retention.horizon(now))
    }

    pub(crate) fn is_live(&self, document: &Document) -> bool {
        self.is_within(document.language, document.last_seen)
    }

    /// Whether something of a language that was last seen then is not expired.
    pub(crate) fn is_within(&self, language: Lang, last_seen: EventTime) -> bool {
        self.horizon(language).is_none_or(|horizon| last_seen > horizon)
    }

    /// Whether what happened at this time is published.
    pub(crate) fn publishes(&self, at: Option<EventTime>) -> bool {
        self.engine.settings().publish_from.is_none_or(|from| at.is_some_and(|at| at >= from))
    }

    /// Whether a language has come far enough for its clusters to be published. Stream time is a few articles late: an
    /// article that is published itself takes its clusters along.
    pub(crate) fn publishes_clusters(&self, language: Lang) -> bool {
        self.publishes(self.stream_time(language).max(self.item_time))
    }
}
