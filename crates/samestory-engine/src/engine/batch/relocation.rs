//! Relocation: what happens when an article moves between partitions or is deleted. Only the current home of
//! an article writes tombstones for it.
//!
//! An update may move an article to another partition, whose record may reach the output topics before this
//! partition hears of the move. A tombstone written here could then follow the live record, and a reader that
//! takes a tombstone for a delete would lose the article. So the former home removes its document, writes no
//! tombstone, and sends the new home a relocation notice that names the topics still holding a record. Route
//! writes the new version and the forget in one transaction, so the notice always arrives after the version
//! that it is about.
//!
//! When a notice arrives, the article may have moved on or been deleted. A [`Residence`] remembers that for
//! one retention.

use crate::index::{Change, Document, OutputTopic, Residence, StoreError, View, Whereabouts};
use crate::model::{ArticleId, EventTime, Lang, Position, TopicId};

use super::planner::Planner;
use super::stream_time::RecordTimes;
use super::{Notice, Output};

/// How often a notice is forwarded when raw positions cannot be compared.
const DETOURS: u8 = 8;

impl<V: View> Planner<'_, V> {
    /// The residence of an id, unless its retention has passed.
    fn residence(&self, id: &ArticleId) -> Result<Option<Residence>, StoreError> {
        let row = self.state.residence(id)?;
        Ok(row.filter(|row| self.is_within(row.language, row.since)))
    }

    /// Remembers what became of an id that has no document. Its retention counts from the stream time of the
    /// language or, before there is one, from `otherwise`.
    fn remember(
        &mut self,
        id: &ArticleId,
        (language, otherwise): (Lang, EventTime),
        position: &Position,
        whereabouts: Whereabouts,
    ) -> Result<(), StoreError> {
        let since = self.stream_time(language).unwrap_or(otherwise);
        let (id, position) = (id.clone(), position.clone());
        self.change(Change::Residence(Box::new(Residence { id, language, since, position, whereabouts })))
    }

    /// Handles a forget: these articles moved to another partition, and retracting their records is now up to
    /// the new home.
    pub(crate) fn forget(
        &mut self,
        ids: &[ArticleId],
        (to, raw): (i32, TopicId),
        position: &Position,
    ) -> Result<Vec<Output>, StoreError> {
        let mut outputs = Vec::new();
        for id in ids {
            let (mut previous, mut came_back) = (None, false);
            for language in self.state.languages_of(id)? {
                let Some(held) = self.held(language, id)? else { continue };
                if is_before(position, &held.position) {
                    self.stats.stale_forgets += 1;
                    came_back = true;
                    continue;
                }
                let outlet = if self.remove_and_count(&held)? { held.outlet } else { OutputTopic::None };
                previous = Some((language, held.last_seen, outlet));
            }
            if previous.is_none()
                && !came_back
                && let Some(row) = self.residence(id)?
            {
                if is_before(position, &row.position) {
                    self.stats.stale_forgets += 1;
                    continue;
                }
                let outlet = match row.whereabouts {
                    // Already recorded. Otherwise every update of an article that once moved away would
                    // rewrite the row.
                    Whereabouts::Moved { to: there } if there == to => continue,
                    Whereabouts::Moved { .. } | Whereabouts::Gone => OutputTopic::None,
                    Whereabouts::Published(outlet) => outlet,
                };
                previous = Some((row.language, row.since, outlet));
            }
            let Some((language, seen, outlet)) = previous.filter(|_| !came_back) else { continue };
            self.remember(id, (language, seen), position, Whereabouts::Moved { to })?;
            if outlet == OutputTopic::None {
                continue;
            }
            self.stats.notices += 1;
            let notice = Notice { id: id.clone(), outlet, raw, detours: 0 };
            outputs.push(Output::Notice { to, notice });
        }
        Ok(outputs)
    }

    /// Handles a relocation notice: another partition was the article's home until this position. If the
    /// article lives here, its records on topics other than its own are retracted; if it moved on, the notice
    /// is forwarded.
    pub(crate) fn notice(
        &mut self,
        notice: Notice,
        position: &Position,
        times: RecordTimes,
    ) -> Result<Vec<Output>, StoreError> {
        let id = &notice.id;
        for language in self.state.languages_of(id)? {
            let Some(held) = self.held(language, id)?.filter(|held| self.is_live(held)) else { continue };
            let now = times.record.or(self.stream_time(language));
            if self.publishes(now) {
                return Ok(self.retract(id, notice.outlet.without(held.outlet), now, true));
            }
            // A backfilled version leaves earlier records in place. They are retracted with its own later.
            let outlet = held.outlet.and(notice.outlet);
            if outlet != held.outlet {
                self.change(Change::Document(Document { outlet, ..held }.into()))?;
            }
            return Ok(Vec::new());
        }
        let Some(row) = self.residence(id)? else {
            self.stats.unknown_notices += 1;
            return Ok(Vec::new());
        };
        let now = times.record.or(self.stream_time(row.language));
        match row.whereabouts {
            Whereabouts::Moved { to } => {
                let detours = match (is_before(position, &row.position), is_before(&row.position, position)) {
                    (true, _) => Some(notice.detours),
                    (false, true) => None,
                    (false, false) => {
                        Some(notice.detours.saturating_add(1)).filter(|&detours| detours <= DETOURS)
                    }
                };
                let Some(detours) = detours else {
                    self.stats.unknown_notices += 1;
                    return Ok(Vec::new());
                };
                self.stats.forwarded_notices += 1;
                Ok(vec![Output::Notice { to, notice: Notice { detours, ..notice } }])
            }
            Whereabouts::Gone => Ok(self.retract(id, notice.outlet, now, false)),
            Whereabouts::Published(outlet) if self.publishes(now) => {
                Ok(self.retract(id, notice.outlet.without(outlet), now, true))
            }
            Whereabouts::Published(outlet) => {
                let whereabouts = Whereabouts::Published(outlet.and(notice.outlet));
                if whereabouts != row.whereabouts {
                    self.change(Change::Residence(Box::new(Residence { whereabouts, ..row })))?;
                }
                Ok(Vec::new())
            }
        }
    }

    /// Handles a delete: removes the article from every language that holds it.
    pub(crate) fn delete(
        &mut self,
        id: &ArticleId,
        position: &Position,
        times: RecordTimes,
    ) -> Result<Vec<Output>, StoreError> {
        let (mut known, mut now, mut previous) = (false, times.record, None);
        for language in self.state.languages_of(id)? {
            let Some(held) = self.held(language, id)? else { continue };
            known |= self.remove_and_count(&held)?;
            now = now.or(self.stream_time(language));
            previous = Some((language, held.last_seen));
        }
        if previous.is_none()
            && let Some(row) = self.residence(id)?
        {
            // If it moved or was deleted before, another partition is responsible for its records.
            known = matches!(row.whereabouts, Whereabouts::Published(outlet) if outlet != OutputTopic::None);
            now = now.or(self.stream_time(row.language));
            previous = Some((row.language, row.since));
        }
        if let Some(previous) = previous.filter(|_| self.relocates) {
            self.remember(id, previous, position, Whereabouts::Gone)?;
        }
        self.stats.unknown_deletes += u64::from(!known);
        // Both topics: a former home may have published it on the other one.
        Ok(if known { self.retract(id, OutputTopic::Both, now, false) } else { Vec::new() })
    }

    /// Handles a version of an article that became a dead letter. Its former home forgets the article all the
    /// same, so nothing may be left of it; if this partition holds an earlier version, that one stays.
    pub(crate) fn undelivered(
        &mut self,
        id: ArticleId,
        language: Lang,
        position: &Position,
        times: RecordTimes,
    ) -> Result<(), StoreError> {
        if !self.relocates || !self.state.languages_of(&id)?.is_empty() {
            return Ok(());
        }
        if matches!(self.residence(&id)?, Some(Residence { whereabouts: Whereabouts::Published(_), .. })) {
            return Ok(());
        }
        let clock = times.log.or(times.record).unwrap_or(EventTime::from_millis(0));
        self.remember(&id, (language, clock), position, Whereabouts::Gone)
    }

    /// Remembers which topics hold a record of an article that was judged but not stored.
    pub(crate) fn not_stored(
        &mut self,
        document: &Document,
        before: Option<&Residence>,
    ) -> Result<(), StoreError> {
        if !self.relocates || document.outlet == OutputTopic::None && before.is_none() {
            return Ok(());
        }
        let (seen, whereabouts) =
            ((document.language, document.last_seen), Whereabouts::Published(document.outlet));
        self.remember(&document.id, seen, &document.position, whereabouts)
    }

    /// Removes a document that was deleted or moved away, counts it, and returns whether it was live.
    fn remove_and_count(&mut self, held: &Document) -> Result<bool, StoreError> {
        let live = self.is_live(held);
        self.remove(held)?;
        *(if live { &mut self.stats.deleted } else { &mut self.stats.expired }) += 1;
        Ok(live)
    }

    /// Tombstones for these topics, if events of that time are published.
    fn retract(
        &self,
        id: &ArticleId,
        outlet: OutputTopic,
        now: Option<EventTime>,
        lives: bool,
    ) -> Vec<Output> {
        let tombstone = |outlet| Output::Tombstone { id: id.clone(), outlet, lives };
        let topics = outlet.topics().filter(|_| self.publishes(now));
        topics.map(tombstone).collect()
    }
}

/// True if one raw record is older than another, or the same one. For a forget and a document this means that
/// the article came back after the move and the forget is a repeat. Records of different raw partitions have
/// no order; the order of arrival decides.
fn is_before(one: &Position, other: &Position) -> bool {
    use Position::Topic;
    match (one, other) {
        (
            Topic { topic, partition, offset },
            Topic { topic: other_topic, partition: other_partition, offset: other_offset },
        ) => (topic, partition) == (other_topic, other_partition) && offset <= other_offset,
        _ => false,
    }
}
