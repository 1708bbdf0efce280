//! One voice for an id: only the current home of an article writes tombstones for it.
//!
//! An update may move an article to another partition, whose record of it may be on the output topics before this partition
//! hears of the move. A tombstone written here could then follow the live record, and a reader that takes a tombstone for a
//! delete would lose the article. So the former home removes its document, writes no tombstone, and sends the new home a
//! relocation notice: which topics hold a record. Route writes the new version and the forget in one transaction, so the
//! notice always arrives behind the version that it is about.
//!
//! A notice may find that the article has moved on, or is gone. A [`Residence`] remembers that for one retention.

use crate::index::{Change, Document, OutputTopic, Residence, StoreError, View, Whereabouts};
use crate::model::{ArticleId, EventTime, Lang, Position, TopicId};

use super::planner::Planner;
use super::stream_time::RecordTimes;
use super::{Notice, Output};

/// How often a notice is forwarded where raw positions cannot be compared.
const DETOURS: u8 = 8;

impl<V: View> Planner<'_, V> {
    /// The residence of an id, unless its retention is over.
    fn residence(&self, id: &ArticleId) -> Result<Option<Residence>, StoreError> {
        let row = self.state.residence(id)?;
        Ok(row.filter(|row| self.is_within(row.language, row.since)))
    }

    /// Remembers an id without a document. Retention counts from the stream time of the language; before there is one,
    /// from `otherwise`.
    fn reside(
        &mut self,
        id: &ArticleId,
        (language, otherwise): (Lang, EventTime),
        position: &Position,
        stay: Whereabouts,
    ) -> Result<(), StoreError> {
        let since = self.stream_time(language).unwrap_or(otherwise);
        let (id, position) = (id.clone(), position.clone());
        self.change(Change::Residence(Box::new(Residence { id, language, since, position, stay })))
    }

    /// These articles moved to another partition. What was published here is the new home's to retract.
    pub(crate) fn forget(
        &mut self,
        ids: &[ArticleId],
        (to, raw): (i32, TopicId),
        position: &Position,
    ) -> Result<Vec<Output>, StoreError> {
        let mut outputs = Vec::new();
        for id in ids {
            let (mut left, mut stays) = (None, false);
            for language in self.state.languages_of(id)? {
                let Some(held) = self.held(language, id)? else { continue };
                if is_before(position, &held.position) {
                    self.stats.stale_forgets += 1;
                    stays = true;
                    continue;
                }
                let outlet = if self.remove_known(&held)? { held.outlet } else { OutputTopic::None };
                left = Some((language, held.last_seen, outlet));
            }
            if left.is_none()
                && !stays
                && let Some(row) = self.residence(id)?
            {
                if is_before(position, &row.position) {
                    self.stats.stale_forgets += 1;
                    continue;
                }
                let outlet = match row.stay {
                    // It is known to be there. Every update of an article that once moved away would write the row again.
                    Whereabouts::Moved { to: there } if there == to => continue,
                    Whereabouts::Moved { .. } | Whereabouts::Gone => OutputTopic::None,
                    Whereabouts::Published(outlet) => outlet,
                };
                left = Some((row.language, row.since, outlet));
            }
            let Some((language, seen, outlet)) = left.filter(|_| !stays) else { continue };
            self.reside(id, (language, seen), position, Whereabouts::Moved { to })?;
            if outlet == OutputTopic::None {
                continue;
            }
            self.stats.notices += 1;
            let notice = Notice { id: id.clone(), outlet, raw, detours: 0 };
            outputs.push(Output::Notice { to, notice });
        }
        Ok(outputs)
    }

    /// Another partition was the home of an article until this position. If the article lives here, its records on other
    /// topics than its own are retracted; if it moved on, the notice follows it.
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
            // What is not published leaves what was published where it is. It is retracted with the rest.
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
        match row.stay {
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
                let stay = Whereabouts::Published(outlet.and(notice.outlet));
                if stay != row.stay {
                    self.change(Change::Residence(Box::new(Residence { stay, ..row })))?;
                }
                Ok(Vec::new())
            }
        }
    }

    /// An article is gone, in whatever language it is held.
    pub(crate) fn delete(
        &mut self,
        id: &ArticleId,
        position: &Position,
        times: RecordTimes,
    ) -> Result<Vec<Output>, StoreError> {
        let (mut known, mut now, mut left) = (false, times.record, None);
        for language in self.state.languages_of(id)? {
            let Some(held) = self.held(language, id)? else { continue };
            known |= self.remove_known(&held)?;
            now = now.or(self.stream_time(language));
            left = Some((language, held.last_seen));
        }
        if left.is_none()
            && let Some(row) = self.residence(id)?
        {
            // Where it moved, or was deleted before, others have published it.
            known = matches!(row.stay, Whereabouts::Published(outlet) if outlet != OutputTopic::None);
            now = now.or(self.stream_time(row.language));
            left = Some((row.language, row.since));
        }
        if let Some(left) = left.filter(|_| self.relocates) {
            self.reside(id, left, position, Whereabouts::Gone)?;
        }
        self.stats.unknown_deletes += u64::from(!known);
        // From both topics: a former home may have published it on the other one.
        Ok(if known { self.retract(id, OutputTopic::Both, now, false) } else { Vec::new() })
    }

    /// A version of an article is a dead letter. Its former home forgets it all the same, so there may be nothing left of the
    /// article; where this partition holds an earlier version, that stays.
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
        if matches!(self.residence(&id)?, Some(Residence { stay: Whereabouts::Published(_), .. })) {
            return Ok(());
        }
        let clock = times.log.or(times.record).unwrap_or(EventTime::from_millis(0));
        self.reside(&id, (language, clock), position, Whereabouts::Gone)
    }

    /// An article was judged and not stored: what is published of it is remembered all the same.
    pub(crate) fn not_stored(
        &mut self,
        document: &Document,
        before: Option<&Residence>,
    ) -> Result<(), StoreError> {
        if !self.relocates || document.outlet == OutputTopic::None && before.is_none() {
            return Ok(());
        }
        let (seen, stay) = ((document.language, document.last_seen), Whereabouts::Published(document.outlet));
        self.reside(&document.id, seen, &document.position, stay)
    }

    /// Removes a document that is deleted or moved away, and says whether it was live.
    fn remove_known(&mut self, held: &Document) -> Result<bool, StoreError> {
        let live = self.is_live(held);
        self.remove(held)?;
        *(if live { &mut self.stats.deleted } else { &mut self.stats.expired }) += 1;
        Ok(live)
    }

    /// Tombstones on these topics, if what happened then is published.
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

/// Whether one raw record is older than another, or the same: for a forget and a document, that the article came here again
/// after it had moved away, and the forget is a repeat. Records of different raw partitions have no order, and count as they
/// arrive.
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
