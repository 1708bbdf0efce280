//! Deciding item by item. Each sees what those before it changed, through an overlay on the state.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Flag, Tagged};
use crate::model::{
    ArticleId, ClusterId, DocumentNumber, EventTime, Lang, MatchType, Position, Share, Verdict,
};
use crate::store::{
    Change, Document, Input, InputName, Judgement, Outlet, Overlay, Progress, Retention, StoreError, View,
};

use super::cluster::{Home, Touched};
use super::judge::Judged;
use super::plan::{Incoming, Output, Stats};
use super::prepare::Prepared;
use super::times::{self, Timed};
use super::{Engine, LanguageSettings};

/// Overdue documents that each article removes, at most. One comes in for each article, so a backlog shrinks.
const OVERDUE: usize = 4;
/// `last_seen` moves in this part of the retention: an article fetched every minute is not written every minute.
const STEPS: u64 = 8;

/// A batch being planned.
pub(super) struct Planner<'a, V> {
    pub(super) engine: &'a Engine,
    pub(super) state: Overlay<'a, V>,
    pub(super) stats: Stats,
    /// The clusters that the item at hand has to do with. Their changes are laid once, when it is decided.
    pub(super) touched: BTreeMap<(Lang, DocumentNumber), Touched>,
    progress: Progress,
    changes: Vec<Change>,
}

/// Why a document goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gone {
    Deleted,
    Forgotten,
}

impl<'a, V: View> Planner<'a, V> {
    pub(super) fn new(engine: &'a Engine, state: &'a V) -> Result<Planner<'a, V>, StoreError> {
        Ok(Planner {
            engine,
            progress: state.progress()?,
            state: Overlay::new(state),
            stats: Stats::default(),
            touched: BTreeMap::new(),
            changes: Vec::new(),
        })
    }

    /// What goes out for one item.
    pub(super) fn decide(
        &mut self,
        position: &Position,
        time: Option<EventTime>,
        incoming: Incoming,
    ) -> Result<Vec<Output>, StoreError> {
        let mut outputs = match incoming {
            Incoming::Article(article) => self.article(position, time, *article)?,
            Incoming::Delete(id) => self.remove_ids(&[id], time, Gone::Deleted)?,
            Incoming::Forget(ids) => self.remove_ids(&ids, time, Gone::Forgotten)?,
            Incoming::DeadLetter(letter) => vec![Output::DeadLetter(letter)],
        };
        self.settle_clusters(&mut outputs)?;
        Ok(outputs)
    }

    /// The changes of all items, the last of each key, and the progress after them.
    pub(super) fn finish(mut self, inputs: BTreeMap<InputName, Input>) -> (Vec<Change>, Stats) {
        self.progress.inputs.extend(inputs);
        self.changes.push(Change::Progress(self.progress));
        // A change is its key's whole state: a cluster that grew a hundred times is written once.
        let mut keys = BTreeSet::new();
        let mut last: Vec<Change> =
            self.changes.into_iter().rev().filter(|change| keys.insert(change.key())).collect();
        last.reverse();
        (last, self.stats)
    }

    pub(super) fn change(&mut self, change: Change) -> Result<(), StoreError> {
        self.state.lay(&change)?;
        self.changes.push(change);
        Ok(())
    }

    fn stream_time(&self, language: Lang) -> Option<EventTime> {
        self.progress.languages.get(&language).and_then(|counters| counters.stream_time)
    }

    /// Documents last seen at this time or before are expired.
    pub(super) fn horizon(&self, language: Lang) -> Option<EventTime> {
        self.stream_time(language).and_then(|now| self.engine.of(language).retention.horizon(now))
    }

    pub(super) fn is_live(&self, document: &Document) -> bool {
        self.horizon(document.language).is_none_or(|horizon| document.last_seen > horizon)
    }

    /// Whether what happened at this time is published.
    fn publishes(&self, at: Option<EventTime>) -> bool {
        self.engine.settings().publish_from.is_none_or(|from| at.is_some_and(|at| at >= from))
    }

    /// Whether a language has come far enough for its clusters to be published.
    pub(super) fn publishes_clusters(&self, language: Lang) -> bool {
        self.publishes(self.stream_time(language))
    }

    fn article(
        &mut self,
        position: &Position,
        time: Option<EventTime>,
        article: Prepared,
    ) -> Result<Vec<Output>, StoreError> {
        self.stats.articles += 1;
        let (language, settings) = (article.language, *self.engine.of(article.language));
        let timed = self.arrive(language, article.fetched_at, time);
        self.remove_overdue(language)?;
        let mut left = self.leave_other_languages(&article)?;
        if let Some(held) = self.held(language, &article.id)? {
            if !self.is_live(&held) {
                self.remove(&held)?;
                self.stats.expired += 1;
            } else if held.fingerprint.content == article.fingerprint.content {
                return self.same_again(position, &article, timed, held, &settings);
            } else {
                self.remove(&held)?;
                left.push((held.outlet, held.revision + 1));
            }
        }
        self.judge_and_store(position, article, timed, &left, &settings)
    }

    /// Takes note of an article's time.
    fn arrive(&mut self, language: Lang, fetched_at: Option<EventTime>, record: Option<EventTime>) -> Timed {
        let counters = self.progress.languages.entry(language).or_default();
        let skew = self.engine.settings().skew_millis;
        let timed = times::event_time(fetched_at, record, counters.stream_time, skew);
        if timed.told {
            counters.stream_time = counters.stream_time.max(Some(timed.at));
        }
        timed
    }

    fn remove_overdue(&mut self, language: Lang) -> Result<(), StoreError> {
        let Some(horizon) = self.horizon(language) else { return Ok(()) };
        let overdue = self.state.overdue(language, horizon, OVERDUE)?.numbers;
        for document in self.state.documents(language, &overdue)?.into_iter().flatten() {
            self.remove(&document)?;
            self.stats.expired += 1;
        }
        Ok(())
    }

    /// An article has one language. Where another held it, it leaves, and where it stood it may have to be withdrawn.
    fn leave_other_languages(&mut self, article: &Prepared) -> Result<Vec<(Outlet, u32)>, StoreError> {
        let mut left = Vec::new();
        for other in self.state.languages_of(&article.id)? {
            if other == article.language {
                continue;
            }
            if let Some(held) = self.held(other, &article.id)? {
                let live = self.is_live(&held);
                self.remove(&held)?;
                if live {
                    // Identity is language and id: it begins anew.
                    left.push((held.outlet, 0));
                } else {
                    self.stats.expired += 1;
                }
            }
        }
        Ok(left)
    }

    /// The document of an id, expired or not.
    fn held(&self, language: Lang, id: &ArticleId) -> Result<Option<Document>, StoreError> {
        match self.state.number_of(language, id)? {
            Some(number) => self.state.document(language, number),
            None => Ok(None),
        }
    }

    fn remove(&mut self, document: &Document) -> Result<(), StoreError> {
        self.touch(document.language, document.cluster)?;
        self.change(Change::NoDocument(document.language, document.id.clone()))?;
        self.leave(document)
    }

    fn remove_ids(
        &mut self,
        ids: &[ArticleId],
        time: Option<EventTime>,
        why: Gone,
    ) -> Result<Vec<Output>, StoreError> {
        let mut outputs = Vec::new();
        for id in ids {
            let (mut known, mut now) = (false, time);
            for language in self.state.languages_of(id)? {
                let Some(held) = self.held(language, id)? else { continue };
                let live = self.is_live(&held);
                self.remove(&held)?;
                *(if live { &mut self.stats.deleted } else { &mut self.stats.expired }) += 1;
                known |= live;
                now = now.or(self.stream_time(language));
            }
            if known && self.publishes(now) {
                // To both: an article that came again unchanged stands on either.
                let null = |outlet| Output::Null { id: id.clone(), outlet };
                outputs.extend([Outlet::Unique, Outlet::NearDuplicate].map(null));
            }
            self.stats.unknown_deletes += u64::from(!known && why == Gone::Deleted);
        }
        Ok(outputs)
    }

    /// The same article, unchanged: that it was seen is all there is to remember, and not even that every time.
    fn same_again(
        &mut self,
        position: &Position,
        article: &Prepared,
        timed: Timed,
        held: Document,
        settings: &LanguageSettings,
    ) -> Result<Vec<Output>, StoreError> {
        let cluster = self.touch(held.language, held.cluster)?.id.clone();
        let canonical =
            self.standing(held.language, held.cluster)?.map_or(held.id.clone(), |document| document.id);
        let judged = Judged {
            verdict: Verdict::ExactDuplicate,
            match_type: Some(MatchType::SameArticle),
            best: None,
            similarity: Share::new(1.0),
            containment: Share::new(1.0),
            confidence: Share::new(1.0),
            related: Vec::new(),
            capped: false,
            candidates: 0,
            capped_buckets: 0,
        };
        let flags = self.flags(article, &judged, timed, false, settings);
        let mut tagged =
            self.tagged(position, article, &judged, Home { cluster, canonical }, held.revision, flags);
        tagged.duplicate_of = Some(article.id.clone());
        if let Retention::Millis(retention) = settings.retention {
            let next = held.last_seen.millis().saturating_add_unsigned((retention / STEPS).max(1));
            if timed.at.millis() >= next {
                self.change(Change::Document(Box::new(Document { last_seen: timed.at, ..held })))?;
            }
        }
        if !self.publishes(Some(timed.at)) {
            self.stats.backfilled += 1;
            return Ok(Vec::new());
        }
        Ok(vec![Output::Tagged(Box::new(tagged))])
    }

    fn judge_and_store(
        &mut self,
        position: &Position,
        article: Prepared,
        timed: Timed,
        left: &[(Outlet, u32)],
        settings: &LanguageSettings,
    ) -> Result<Vec<Output>, StoreError> {
        let (language, horizon) = (article.language, self.horizon(article.language));
        let judged = self.engine.judge(&self.state, &article, horizon)?;
        self.stats.candidates += judged.candidates;
        self.stats.capped_buckets += judged.capped_buckets;
        let number = self.next_number(language);
        let expired = horizon.is_some_and(|horizon| timed.at <= horizon);
        self.stats.arrived_expired += u64::from(expired);
        let publishes = self.publishes(Some(timed.at));
        self.stats.backfilled += u64::from(!publishes);
        let outlet = judged.outlet();
        let revision = left.iter().map(|&(_, revision)| revision).max().unwrap_or(0);
        let flags = self.flags(&article, &judged, timed, expired, settings);
        let (published_at, _) = times::published(article.published_at);
        let mut document = Document {
            number,
            id: article.id.clone(),
            language,
            fingerprint: article.fingerprint.clone(),
            title: article.title.clone(),
            host: article.host.clone(),
            url: article.url.clone(),
            published_at,
            event_time: timed.at,
            last_seen: timed.at,
            position: position.clone(),
            cluster: number,
            revision,
            // What is not published leaves what was published where it stands.
            outlet: match publishes {
                true => outlet,
                false => left.iter().map(|&(outlet, _)| outlet).max().unwrap_or(Outlet::None),
            },
            judgement: Judgement {
                verdict: judged.verdict,
                match_type: judged.match_type,
                duplicate_of: judged.best.as_ref().map(|best| best.document.number),
                similarity: judged.similarity,
                confidence: judged.confidence,
            },
            flags: bits(&flags),
        };
        let home = match expired {
            true => self.guest(&document, judged.best.as_ref(), settings)?,
            false => self.settle(&mut document, judged.best.as_ref(), settings)?,
        };
        let tagged = self.tagged(position, &article, &judged, home, revision, flags);
        if !publishes {
            return Ok(Vec::new());
        }
        let mut outputs = vec![Output::Tagged(Box::new(tagged))];
        let gone: BTreeSet<Outlet> = left.iter().map(|&(outlet, _)| outlet).collect();
        let gone = gone.into_iter().filter(|&other| other != Outlet::None && other != outlet);
        outputs.extend(gone.map(|outlet| Output::Null { id: article.id.clone(), outlet }));
        Ok(outputs)
    }

    /// A number is used up even by an article that is not stored: a cluster id could name it.
    fn next_number(&mut self, language: Lang) -> DocumentNumber {
        let counters = self.progress.languages.entry(language).or_default();
        let number = DocumentNumber(counters.next_number);
        counters.next_number += 1;
        number
    }

    /// All flags, ascending.
    fn flags(
        &mut self,
        article: &Prepared,
        judged: &Judged,
        timed: Timed,
        expired: bool,
        settings: &LanguageSettings,
    ) -> Vec<Flag> {
        let clamped = timed.clamped || times::published(article.published_at).1;
        self.stats.clamped_times += u64::from(clamped);
        let review = self.engine.settings().review;
        let own = [
            (Flag::ShortText, (1..settings.rules.min_tokens).contains(&article.fingerprint.tokens)),
            (Flag::ClampedTime, clamped),
            (Flag::Capped, judged.capped),
            (Flag::Expired, expired),
            (Flag::Review, review.is_some_and(|(low, high)| (low..=high).contains(&judged.confidence))),
        ];
        let own = own.into_iter().filter(|&(_, raised)| raised).map(|(flag, _)| flag);
        let mut flags: Vec<Flag> = article.flags.iter().copied().chain(own).collect();
        flags.sort_unstable();
        flags.dedup();
        flags
    }

    fn tagged(
        &self,
        position: &Position,
        article: &Prepared,
        judged: &Judged,
        home: Home,
        revision: u32,
        flags: Vec<Flag>,
    ) -> Tagged {
        let Home { cluster, canonical } = home;
        Tagged {
            id: article.id.clone(),
            verdict: judged.verdict,
            match_type: judged.match_type,
            duplicate_of: judged.best.as_ref().map(|best| best.document.id.clone()),
            similarity: judged.similarity,
            containment: judged.containment,
            confidence: judged.confidence,
            cluster,
            canonical_id: canonical,
            revision,
            language: article.language,
            language_source: article.language_source,
            related: judged.related.clone(),
            flags,
            config: self.engine.settings().config,
            input: position.clone(),
        }
    }
}

/// Flags as a document keeps them.
fn bits(flags: &[Flag]) -> u32 {
    Flag::ALL
        .iter()
        .enumerate()
        .filter(|(_, flag)| flags.contains(flag))
        .fold(0, |bits, (at, _)| bits | 1 << at)
}

/// The name of the cluster that a document founds.
pub(super) fn founded_by(document: &Document) -> ClusterId {
    ClusterId { language: document.language, founder: document.id.clone(), number: document.number }
}
