//! The oracle: documents in a map, and everything searched from end to end.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use samestory_engine::engine::compare::evidence::Measure;
use samestory_engine::engine::compare::{Comparison, Relation};
use samestory_engine::engine::{
    Algorithm, Bond, CanonicalPolicy, EmptyUpdate, Incoming, Item, Notice, Output, Prepared, Settings,
};
use samestory_engine::fingerprint::Fingerprint;
use samestory_engine::index::{
    Cluster, Document, IndexScheme, IndexSchemes, Judgement, OutputTopic, Overdue, PostingKind, Residence,
    Retention, Whereabouts,
};
use samestory_engine::lsh::BandKey;
use samestory_engine::model::{
    ArticleId, ClusterId, DocumentNumber, EventTime, Fraction, Lang, MatchType, Position, TopicId,
    VerdictKind,
};
use samestory_engine::model::{
    ClusterRecord, DeadLetter, DeadLetterReason, Flag, Member, Related, RelationKind, Verdict,
};

const YEAR_2100: i64 = 4_102_444_800_000;

type Key = (Lang, u64);

/// The state of a cluster besides its members.
#[derive(Clone)]
struct Group {
    id: ClusterId,
    split_from: Option<ClusterId>,
    canonical: u64,
    changed_from: Option<ArticleId>,
}

pub(super) struct Model {
    settings: Settings,
    postings: IndexSchemes,
    documents: BTreeMap<Key, Document>,
    groups: BTreeMap<Key, Group>,
    /// The number of the next document.
    next_numbers: BTreeMap<Lang, u64>,
    stream_times: BTreeMap<Lang, i64>,
    /// The times of all articles that have one, in order, since an operator last set the stream time.
    times: BTreeMap<Lang, Vec<(ArticleId, i64)>>,
    /// The time of the current article.
    item_time: Option<EventTime>,
    /// The residences of ids without a document.
    pub(super) residences: BTreeMap<ArticleId, Residence>,
    relocates: bool,
    /// How often each case occurred.
    pub(super) seen: BTreeMap<&'static str, u64>,
}

/// Erases confidences, which have their own tests; their consequences are checked here.
pub(super) fn forgive_confidence(outputs: &mut [Output], review: &Option<(Fraction, Fraction)>) {
    for output in outputs {
        if let Output::Tagged(tagged) = output {
            let inside = tagged.kind != VerdictKind::Unique
                && review.is_some_and(|(low, high)| low <= tagged.confidence && tagged.confidence <= high);
            assert_eq!(tagged.flags.contains(&Flag::Review), inside, "{tagged:?}");
            tagged.flags.retain(|flag| *flag != Flag::Review);
            tagged.confidence = Fraction::new(0.0);
        }
    }
}

/// The same for the stored confidence.
pub(super) fn forgive_kept_confidence(document: &mut Document) {
    document.judgement.confidence = Fraction::new(0.0);
    document.flags &= !(1 << Flag::ALL.iter().position(|flag| *flag == Flag::Review).unwrap());
}

fn topics(outlet: OutputTopic) -> BTreeSet<OutputTopic> {
    match outlet {
        OutputTopic::None => BTreeSet::new(),
        OutputTopic::Both => [OutputTopic::Unique, OutputTopic::NearDuplicate].into(),
        one => [one].into(),
    }
}

fn on(topics: &BTreeSet<OutputTopic>) -> OutputTopic {
    match topics.iter().collect::<Vec<_>>()[..] {
        [] => OutputTopic::None,
        [&one] => one,
        _ => OutputTopic::Both,
    }
}

/// The order of two records of the same raw partition; `None` for others.
fn compare(one: &Position, other: &Position) -> Option<Ordering> {
    match (one, other) {
        (
            Position::Topic { topic, partition, offset },
            Position::Topic { topic: of, partition: at, offset: then },
        ) if (topic, partition) == (of, at) => Some(offset.cmp(then)),
        _ => None,
    }
}

impl Model {
    pub(super) fn new(settings: Settings, postings: IndexSchemes, relocates: bool) -> Model {
        Model {
            settings,
            postings,
            documents: BTreeMap::new(),
            groups: BTreeMap::new(),
            next_numbers: BTreeMap::new(),
            stream_times: BTreeMap::new(),
            times: BTreeMap::new(),
            item_time: None,
            residences: BTreeMap::new(),
            relocates,
            seen: BTreeMap::new(),
        }
    }

    pub(super) fn documents(&self, language: Lang) -> Vec<Document> {
        self.documents.values().filter(|document| document.language == language).cloned().collect()
    }

    /// The next document's number and the stream time.
    pub(super) fn counters(&self, language: Lang) -> (u64, Option<EventTime>) {
        (self.next_numbers.get(&language).copied().unwrap_or(0), self.stream_time(language))
    }

    /// The last time of each of the latest 256 articles.
    fn latest_times(&self, language: Lang) -> Vec<(ArticleId, i64)> {
        let all = self.times.get(&language).map_or(&[][..], Vec::as_slice);
        let recent = &all[all.len().saturating_sub(256)..];
        let is_last = |at: usize| recent[at + 1..].iter().all(|(id, _)| *id != recent[at].0);
        (0..recent.len()).filter(|&at| is_last(at)).map(|at| recent[at].clone()).collect()
    }

    /// The times ahead of stream time, in order of arrival.
    pub(super) fn ahead(&self, language: Lang) -> Vec<EventTime> {
        let now = self.stream_times.get(&language).copied().unwrap_or(-1);
        let ahead = self.latest_times(language).into_iter().filter(|&(_, at)| at > now);
        ahead.map(|(_, at)| EventTime::from_millis(at)).collect()
    }

    /// Stream time is the fifth largest of these, and never goes back by itself.
    fn record_time(&mut self, language: Lang, id: &ArticleId, at: i64) {
        self.times.entry(language).or_default().push((id.clone(), at));
        let mut times: Vec<i64> = self.latest_times(language).into_iter().map(|(_, at)| at).collect();
        times.sort_unstable_by_key(|&at| Reverse(at));
        if let Some(&fifth) = times.get(4) {
            let now = self.stream_times.entry(language).or_insert(fifth);
            *now = fifth.max(*now);
        }
    }

    pub(super) fn cluster(&self, language: Lang, founder: DocumentNumber) -> Cluster {
        let group = &self.groups[&(language, founder.0)];
        let members = self.members((language, founder.0));
        Cluster {
            id: group.id.clone(),
            canonical: DocumentNumber(group.canonical),
            size: members.len() as u64,
            first_seen: members.iter().map(|member| member.event_time).min().unwrap(),
            last_seen: members.iter().map(|member| member.event_time).max().unwrap(),
            split_from: group.split_from.clone(),
            canonical_changed_from: group.changed_from.clone(),
            hosts: members.iter().filter_map(|member| member.host.clone()).collect(),
        }
    }

    fn note(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn stream_time(&self, language: Lang) -> Option<EventTime> {
        self.stream_times.get(&language).map(|&at| EventTime::from_millis(at))
    }

    fn expires_by(&self, language: Lang) -> Option<i64> {
        let own = self.settings.languages.get(&language).unwrap_or(&self.settings.default);
        match own.retention {
            Retention::Forever => None,
            Retention::Millis(millis) => Some(self.stream_time(language)?.millis() - millis as i64),
        }
    }

    fn live(&self, document: &Document) -> bool {
        self.expires_by(document.language).is_none_or(|expired| document.last_seen.millis() > expired)
    }

    fn published_at(&self, time: Option<EventTime>) -> bool {
        match (self.settings.publish_from, time) {
            (None, _) => true,
            (Some(from), time) => time.is_some_and(|time| time >= from),
        }
    }

    fn members(&self, cluster: Key) -> Vec<&Document> {
        let of = |document: &&Document| (document.language, document.cluster.0) == cluster;
        self.documents.values().filter(of).collect()
    }

    fn live_members(&self, cluster: Key) -> Vec<&Document> {
        self.members(cluster).into_iter().filter(|member| self.live(member)).collect()
    }

    /// The canonical of a cluster: the first live member by policy, else the oldest member.
    fn canonical_of(&self, cluster: Key) -> Option<&Document> {
        let members = self.members(cluster);
        let mut live: Vec<&Document> = members.iter().copied().filter(|member| self.live(member)).collect();
        // Parts are eligible only if there is nothing else.
        if live.iter().any(|member| !member.judgement.is_part) {
            live.retain(|member| !member.judgement.is_part);
        }
        let believed = |member: &Document| {
            let published_at = member.published_at.map(EventTime::millis);
            let oldest = match self.settings.published_within {
                Retention::Forever => i64::MIN,
                Retention::Millis(millis) => member.event_time.millis() - millis as i64,
            };
            published_at.filter(|&at| at >= oldest).unwrap_or(i64::MAX)
        };
        let live = live.into_iter();
        let by_policy = match self.settings.canonical {
            CanonicalPolicy::FirstSeen => live.min_by_key(|member| member.number),
            CanonicalPolicy::Newest => live.max_by_key(|member| member.number),
            CanonicalPolicy::FirstPublished => live.min_by_key(|member| (believed(member), member.number)),
            CanonicalPolicy::Longest => {
                live.max_by_key(|member| (member.fingerprint.tokens, Reverse(member.number)))
            }
        };
        by_policy.or(members.first().copied())
    }

    pub(super) fn decide(&mut self, item: &Item) -> Vec<Output> {
        let before: BTreeMap<Key, (Group, usize, ArticleId)> = self
            .groups
            .iter()
            .map(|(&key, group)| {
                let previous = self.documents[&(key.0, group.canonical)].id.clone();
                (key, (group.clone(), self.members(key).len(), previous))
            })
            .collect();
        let mut touched = BTreeSet::new();
        self.item_time = None;
        let mut outputs = match &item.incoming {
            Incoming::Article(article) => self.article(item, article, None, &mut touched),
            Incoming::Bodiless { article, refusal } => {
                self.article(item, article, Some(refusal), &mut touched)
            }
            Incoming::SetStreamTime { language, at } => {
                if self.next_numbers.contains_key(language) {
                    self.note("stream time set");
                    self.stream_times.insert(*language, at.millis());
                    self.times.remove(language);
                }
                Vec::new()
            }
            Incoming::Delete(id) => self.delete(id, item, &mut touched),
            Incoming::Forget { ids, to, raw } => self.forget(ids, (*to, *raw), item, &mut touched),
            Incoming::Notice(notice) => self.notice(notice, item),
            Incoming::Undelivered { id, language, letter } => {
                self.undelivered(id, *language, item);
                vec![Output::DeadLetter(letter.clone())]
            }
            Incoming::DeadLetter(letter) => {
                self.note("dead letter");
                vec![Output::DeadLetter(letter.clone())]
            }
        };
        for output in &mut outputs {
            if let Output::Tagged(tagged) = output {
                tagged.received_at = item.log_time.or(item.time);
            }
        }
        for key in touched {
            let published = self.published_at(self.stream_time(key.0).max(self.item_time));
            let Some((group, size, previous)) = before.get(&key) else { continue };
            let Some(elected) =
                self.canonical_of(key).map(|document| (document.number.0, document.id.clone()))
            else {
                self.groups.remove(&key);
                if *size > 1 && published {
                    self.note("cluster gone");
                    outputs.push(Output::ClusterDeleted { id: group.id.clone(), remaining: None });
                }
                continue;
            };
            let now = self.groups.get_mut(&key).unwrap();
            now.canonical = elected.0;
            if elected.1 != *previous {
                now.changed_from = Some(previous.clone());
                self.note("promotion");
            }
            if published {
                outputs.extend(match self.record(key) {
                    Some(record) => Some(Output::Cluster(Box::new(record))),
                    None => (*size > 1).then(|| Output::ClusterDeleted {
                        id: group.id.clone(),
                        remaining: self.live_members(key).first().map(|member| member.id.clone()),
                    }),
                });
            }
        }
        outputs
    }

    fn record(&self, key: Key) -> Option<ClusterRecord> {
        let cluster = self.cluster(key.0, DocumentNumber(key.1));
        let live = self.live_members(key);
        let text = |text: Option<&str>| text.map(str::to_owned);
        (live.len() >= 2).then(|| ClusterRecord {
            canonical: self.documents[&(key.0, cluster.canonical.0)].id.clone(),
            id: cluster.id,
            size: live.len() as u64,
            first_seen: cluster.first_seen,
            last_seen: cluster.last_seen,
            hosts: cluster.hosts.iter().map(|host| host.to_string()).collect(),
            members: live
                .iter()
                .rev()
                .map(|member| Member {
                    id: member.id.clone(),
                    title: text(member.title.as_ref().map(|title| title.as_str())),
                    host: text(member.host.as_ref().map(|host| host.as_str())),
                    url: text(member.url.as_ref().map(|url| url.as_str())),
                    published_at: member.published_at,
                    match_type: if member.number.0 == key.1 { None } else { member.judgement.match_type },
                })
                .collect(),
            canonical_changed_from: cluster.canonical_changed_from,
            split_from: cluster.split_from,
        })
    }

    fn remove(&mut self, document: &Document, touched: &mut BTreeSet<Key>) {
        self.documents.remove(&(document.language, document.number.0)).unwrap();
        touched.insert((document.language, document.cluster.0));
    }

    fn documents_of(&self, id: &ArticleId) -> Vec<Document> {
        self.documents.values().filter(|document| document.id == *id).cloned().collect()
    }

    fn residence(&self, id: &ArticleId) -> Option<Residence> {
        let row = self.residences.get(id)?;
        let live = self.expires_by(row.language).is_none_or(|expired| row.since.millis() > expired);
        live.then(|| row.clone())
    }

    fn reside(
        &mut self,
        id: &ArticleId,
        from: (Lang, EventTime),
        position: &Position,
        whereabouts: Whereabouts,
    ) {
        let (language, position) = (from.0, position.clone());
        let since = self.stream_time(language).unwrap_or(from.1);
        self.residences
            .insert(id.clone(), Residence { id: id.clone(), language, since, position, whereabouts });
        self.note(match whereabouts {
            Whereabouts::Moved { .. } => "residence: moved",
            Whereabouts::Gone => "residence: gone",
            Whereabouts::Published(_) => "residence: published",
        });
    }

    /// Tombstones, if the change is published.
    fn tombstones(
        &self,
        id: &ArticleId,
        from: &BTreeSet<OutputTopic>,
        when: Option<EventTime>,
        lives: bool,
    ) -> Vec<Output> {
        let published = self.published_at(when);
        let tombstone = |&outlet: &OutputTopic| Output::Tombstone { id: id.clone(), outlet, lives };
        from.iter().filter(|_| published).map(tombstone).collect()
    }

    /// Removes the one document of an id; returns it and whether it was live.
    fn take_out(
        &mut self,
        id: &ArticleId,
        what: &'static str,
        touched: &mut BTreeSet<Key>,
    ) -> Option<(Document, bool)> {
        let document = self.documents_of(id).pop()?;
        let live = self.live(&document);
        self.note(if live { what } else { "expired at read" });
        self.remove(&document, touched);
        Some((document, live))
    }

    fn delete(&mut self, id: &ArticleId, item: &Item, touched: &mut BTreeSet<Key>) -> Vec<Output> {
        let held = match self.take_out(id, "delete", touched) {
            Some((document, live)) => Some((live, document.language, document.last_seen)),
            None => self.residence(id).map(|row| {
                let published =
                    matches!(row.whereabouts, Whereabouts::Published(outlet) if outlet != OutputTopic::None);
                (published, row.language, row.since)
            }),
        };
        let Some((known, language, seen)) = held else {
            self.note("unknown delete");
            return Vec::new();
        };
        if self.relocates {
            self.reside(id, (language, seen), &item.position, Whereabouts::Gone);
        }
        if !known {
            self.note("unknown delete");
            return Vec::new();
        }
        let when = item.time.or(self.stream_time(language));
        self.tombstones(id, &[OutputTopic::Unique, OutputTopic::NearDuplicate].into(), when, false)
    }

    fn forget(
        &mut self,
        ids: &[ArticleId],
        (to, raw): (i32, TopicId),
        item: &Item,
        touched: &mut BTreeSet<Key>,
    ) -> Vec<Output> {
        let mut outputs = Vec::new();
        for id in ids {
            let known_at = match (self.documents_of(id).pop(), self.residence(id)) {
                (Some(document), _) => document.position,
                (None, Some(row)) => row.position,
                (None, None) => continue,
            };
            if compare(&item.position, &known_at).is_some_and(|order| order != Ordering::Greater) {
                self.note("stale forget");
                continue;
            }
            let (language, seen, outlet) = match self.take_out(id, "forget", touched) {
                Some((document, true)) => (document.language, document.last_seen, document.outlet),
                Some((document, false)) => (document.language, document.last_seen, OutputTopic::None),
                None => match self.residence(id).unwrap() {
                    Residence { whereabouts: Whereabouts::Moved { to: there }, .. } if there == to => {
                        continue;
                    }
                    Residence { whereabouts: Whereabouts::Published(outlet), language, since, .. } => {
                        (language, since, outlet)
                    }
                    Residence { language, since, .. } => (language, since, OutputTopic::None),
                },
            };
            self.reside(id, (language, seen), &item.position, Whereabouts::Moved { to });
            if outlet != OutputTopic::None {
                self.note("relocation notice");
                let notice = Notice { id: id.clone(), outlet, raw, detours: 0 };
                outputs.push(Output::Notice { to, notice });
            }
        }
        outputs
    }

    fn notice(&mut self, notice: &Notice, item: &Item) -> Vec<Output> {
        let id = &notice.id;
        let theirs = topics(notice.outlet);
        if let Some(document) = self.documents_of(id).pop().filter(|document| self.live(document)) {
            let when = item.time.or(self.stream_time(document.language));
            let ours = topics(document.outlet);
            if self.published_at(when) {
                self.note("notice: lives here");
                return self.tombstones(id, &theirs.difference(&ours).copied().collect(), when, true);
            }
            self.note("notice: not published");
            let held = self.documents.get_mut(&(document.language, document.number.0)).unwrap();
            held.outlet = on(&ours.union(&theirs).copied().collect());
            return Vec::new();
        }
        let Some(row) = self.residence(id) else {
            self.note("notice: unknown");
            return Vec::new();
        };
        let when = item.time.or(self.stream_time(row.language));
        match row.whereabouts {
            Whereabouts::Gone => {
                self.note("notice: gone");
                self.tombstones(id, &theirs, when, false)
            }
            Whereabouts::Moved { to } => {
                // The article moved on with a later record. If its new home is unknown, a notice is forwarded
                // a few times.
                let detours = match compare(&item.position, &row.position) {
                    Some(Ordering::Greater) => 9,
                    Some(_) => notice.detours,
                    None => notice.detours + 1,
                };
                if detours > 8 {
                    self.note("notice: unknown");
                    return Vec::new();
                }
                self.note("notice: moved on");
                vec![Output::Notice { to, notice: Notice { detours, ..notice.clone() } }]
            }
            Whereabouts::Published(outlet) => {
                self.note("notice: published, not stored");
                let ours = topics(outlet);
                if self.published_at(when) {
                    return self.tombstones(id, &theirs.difference(&ours).copied().collect(), when, true);
                }
                let both = on(&ours.union(&theirs).copied().collect());
                self.residences.get_mut(id).unwrap().whereabouts = Whereabouts::Published(both);
                Vec::new()
            }
        }
    }

    fn undelivered(&mut self, id: &ArticleId, language: Lang, item: &Item) {
        self.note("undelivered");
        let stays =
            matches!(self.residence(id), Some(Residence { whereabouts: Whereabouts::Published(_), .. }));
        if self.relocates && !stays && self.documents_of(id).is_empty() {
            let clock = item.log_time.or(item.time).unwrap_or(EventTime::from_millis(0));
            self.reside(id, (language, clock), &item.position, Whereabouts::Gone);
        }
    }

    /// The event time, whether the article or its record has one, and whether it was clamped.
    fn time(&self, article: &Prepared, item: &Item) -> (i64, bool, bool) {
        let still = self.stream_times.get(&article.language).copied().unwrap_or(0);
        let credible = |millis: i64| (0..=YEAR_2100).contains(&millis);
        let record = item.time.map(EventTime::millis).filter(|&record| record >= 0);
        let log = item.log_time.map(EventTime::millis).filter(|&log| credible(log));
        let clock = log.or(record.filter(|&record| credible(record)));
        let ceiling = clock
            .map_or(YEAR_2100, |clock| YEAR_2100.min(clock + self.settings.max_clock_skew_millis as i64));
        match article.fetched_at.map(EventTime::millis).or(record) {
            None => (still, false, false),
            Some(time) if time > YEAR_2100 && clock.is_none() => (still, false, true),
            Some(time) if time < 0 => (0, true, true),
            Some(time) if time > ceiling => (ceiling, true, true),
            Some(time) => (time, true, record.is_some_and(|record| record > ceiling)),
        }
    }

    fn article(
        &mut self,
        item: &Item,
        article: &Prepared,
        refusal: Option<&DeadLetter>,
        touched: &mut BTreeSet<Key>,
    ) -> Vec<Output> {
        let position = &item.position;
        let mut article = article.clone();
        let mut texts = self.documents_of(&article.id);
        texts.retain(|held| self.live(held) && held.fingerprint.tokens > 0);
        texts.sort_by_key(|held| held.language);
        let text = texts.first().filter(|_| article.fingerprint.tokens == 0).cloned();
        let letter = match (&text, refusal, self.settings.empty_update) {
            (None, refusal, _) => refusal.cloned(),
            (Some(_), _, EmptyUpdate::Keep) => None,
            (Some(_), Some(refusal), EmptyUpdate::Refuse) => Some(refusal.clone()),
            (Some(_), None, EmptyUpdate::Refuse) => Some(DeadLetter {
                position: position.clone(),
                reason: DeadLetterReason::NoBody,
                message: "an update without a text (input.empty_update = refuse)".to_owned(),
            }),
        };
        if let Some(letter) = letter {
            self.note(if text.is_some() { "empty update refused" } else { "no body" });
            return vec![Output::DeadLetter(letter)];
        }
        if let Some(text) = &text {
            (article.language, article.reported_language) = (text.language, text.language);
        }
        let language = article.language;
        let article = &mut article;
        let (at, has_time, mut clamped) = self.time(article, item);
        self.next_numbers.entry(language).or_default();
        if has_time {
            self.record_time(language, &article.id, at);
            self.item_time = Some(EventTime::from_millis(at));
        }
        let at = EventTime::from_millis(at);
        let mut published_at = article.published_at;
        if let Some(time) = &mut published_at {
            let within = EventTime::from_millis(time.millis().clamp(0, YEAR_2100));
            clamped |= within != *time;
            *time = within;
        }

        // Four overdue documents are removed first, those last seen longest ago.
        let documents = self.documents(language).into_iter().filter(|document| !self.live(document));
        let documents = documents.map(|document| (document.last_seen, Overdue::Document(document.number)));
        let residences = self.residences.values().filter(|row| row.language == language);
        let residences = residences.filter(|row| self.residence(&row.id).is_none());
        let residences = residences.map(|row| (row.since, Overdue::Residence(row.id.clone())));
        let mut overdue: Vec<(EventTime, Overdue)> = documents.chain(residences).collect();
        overdue.sort();
        for (_, about) in overdue.into_iter().take(4) {
            match about {
                Overdue::Document(number) => {
                    self.note("overdue removed");
                    let document = self.documents[&(language, number.0)].clone();
                    self.remove(&document, touched);
                }
                Overdue::Residence(id) => {
                    self.note("residence expired");
                    self.residences.remove(&id);
                }
            }
        }

        let (mut left, mut revision) = (BTreeSet::new(), 0);
        for held in self.documents_of(&article.id) {
            if !self.live(&held) {
                self.note("expired at read");
                self.remove(&held, touched);
            } else if held.language != language {
                self.note("language change");
                left.extend(topics(held.outlet));
                self.remove(&held, touched);
            } else if text.is_some() {
                self.note("text kept");
                let described = self.documents.get_mut(&(language, held.number.0)).unwrap();
                let display = |document: &Document| {
                    (
                        document.title.clone(),
                        document.host.clone(),
                        document.url.clone(),
                        document.published_at,
                    )
                };
                described.title = article.title.clone().or(described.title.take());
                described.host = article.host.clone().or(described.host.take());
                described.url = article.url.clone().or(described.url.take());
                described.published_at = published_at.or(described.published_at);
                let described = described.clone();
                if display(&described) != display(&held) {
                    touched.insert((language, held.cluster.0));
                }
                article.fingerprint = held.fingerprint.clone();
                article.content_kind = held.content_kind();
                article.flags = vec![Flag::KeptText];
                return self.unchanged(position, at, article, clamped, described);
            } else if held.fingerprint.content == article.fingerprint.content {
                return self.unchanged(position, at, article, clamped, held);
            } else {
                self.note("update");
                left.extend(topics(held.outlet));
                revision = held.revision + 1;
                self.remove(&held, touched);
            }
        }

        if let Some(refusal) = refusal {
            return vec![Output::DeadLetter(refusal.clone())];
        }
        if let Some(Residence { whereabouts: Whereabouts::Published(outlet), .. }) =
            self.residence(&article.id)
        {
            self.note("residence replaced");
            left.extend(topics(outlet));
        }
        let (mut pairs, digest) = self.pairs(article);
        // An editor's decisions about it and existing articles.
        let constraints = Arc::clone(&self.settings.constraints);
        let there = self.documents(language).into_iter().filter(|document| self.live(document));
        let there: Vec<(Document, Bond)> = there
            .filter_map(|document| Some((constraints.between(&article.id, &document.id)?, document)))
            .map(|(bond, document)| (document, bond))
            .collect();
        let same = there.iter().find(|(_, bond)| *bond == Bond::Same).map(|(document, _)| document.clone());
        for (apart, _) in there.iter().filter(|(_, bond)| *bond == Bond::Different) {
            let before = pairs.len();
            pairs.retain(|(document, _)| document.cluster != apart.cluster);
            if pairs.len() < before {
                self.note("kept apart");
            }
        }
        let own = *self.settings.languages.get(&language).unwrap_or(&self.settings.default);
        let similarity = |pair: &Comparison| match own.algorithm {
            _ if pair.relation == Relation::Exact => 1.0,
            Algorithm::Simhash128 => 1.0 - f64::from(pair.distance) / 128.0,
            Algorithm::Simhash64 => 1.0 - f64::from(pair.distance64) / 64.0,
            _ => pair.similarity,
        };
        let share = |pair: &Comparison| Fraction::new(similarity(pair));
        pairs.sort_by_key(|(document, _)| document.number);
        // Lowest number first, so that the first of the greatest wins.
        let alike = [Relation::Near, Relation::Rewritten, Relation::Partial];
        let best_of = |relations: &[Relation]| {
            let mut best: Option<&(Document, Comparison)> = None;
            for pair in pairs.iter().filter(|(_, pair)| relations.contains(&pair.relation)) {
                let rank = |(_, pair): &(Document, Comparison)| (pair.confidence, share(pair));
                if best.is_none_or(|best| rank(pair) > rank(best)) {
                    best = Some(pair);
                }
            }
            best.cloned()
        };
        let best = best_of(&[Relation::Exact]).or_else(|| best_of(&alike));
        if let Some(best) = &best {
            let rivals = pairs.iter().filter(|(_, pair)| *pair == best.1).count();
            if rivals > 1 {
                self.note("tie");
            }
        }
        let mut closest = best.clone().or_else(|| {
            let rank = |pair: &Comparison| (pair.confidence, share(pair));
            let greatest = pairs.iter().map(|(_, pair)| rank(pair)).max();
            pairs.iter().find(|(_, pair)| Some(rank(pair)) == greatest).cloned()
        });
        let (mut verdict, mut match_type) = match best.as_ref().map(|(_, pair)| pair.relation) {
            Some(Relation::Exact) => (VerdictKind::ExactDuplicate, Some(MatchType::Exact)),
            Some(Relation::Near | Relation::Rewritten) => {
                let cluster = best.as_ref().unwrap().0.cluster;
                let mut copies: Vec<&Comparison> = Vec::new();
                for (document, pair) in &pairs {
                    if document.cluster == cluster
                        && (pair.relation == Relation::Exact || alike.contains(&pair.relation))
                    {
                        copies.push(pair);
                    }
                }
                let parts = copies.iter().filter(|pair| {
                    pair.relation == Relation::Partial && pair.containment > pair.containment_of_old
                });
                let match_type = match best.as_ref().unwrap().1.relation {
                    _ if parts.count() > copies.len() / 2 => MatchType::Partial,
                    Relation::Rewritten => MatchType::Rewritten,
                    _ => MatchType::Near,
                };
                (VerdictKind::NearDuplicate, Some(match_type))
            }
            Some(Relation::Partial) => (VerdictKind::NearDuplicate, Some(MatchType::Partial)),
            _ => (VerdictKind::Unique, None),
        };
        self.note(match_type.map_or("unique", MatchType::as_str));
        let mut related: Vec<(
            RelationKind,
            Reverse<Fraction>,
            DocumentNumber,
            ArticleId,
            DocumentNumber,
            Fraction,
        )> = pairs
            .iter()
            .filter_map(|(document, pair)| {
                let (kind, score) = match pair.relation {
                    Relation::Extends => (RelationKind::Extends, Fraction::new(pair.containment_of_old)),
                    Relation::SameTemplate => (RelationKind::SameTemplate, share(pair)),
                    Relation::FollowUp => (RelationKind::FollowUp, share(pair)),
                    Relation::SameFurniture => (RelationKind::SameFurniture, share(pair)),
                    _ => return None,
                };
                Some((
                    kind,
                    Reverse(score),
                    document.number,
                    document.id.clone(),
                    document.cluster,
                    share(pair),
                ))
            })
            .collect();
        related.sort();
        let by_texts = best;
        let best = match &same {
            Some(same) => {
                let pair = self.compare(&same.fingerprint, &article.fingerprint, language);
                let is_exact = pair.relation == Relation::Exact;
                (verdict, match_type) = match is_exact {
                    true => (VerdictKind::ExactDuplicate, Some(MatchType::Exact)),
                    false => (VerdictKind::NearDuplicate, Some(MatchType::Reviewed)),
                };
                self.note(if is_exact { "reviewed, exact" } else { "reviewed" });
                closest = Some((same.clone(), pair));
                closest.clone()
            }
            None => by_texts.clone(),
        };
        let mut named: BTreeSet<DocumentNumber> =
            by_texts.iter().map(|(document, _)| document.cluster).collect();
        related.retain(|(.., cluster, _)| named.insert(*cluster));
        related.truncate(5);
        related.retain(|(.., id, _, _)| same.as_ref().is_none_or(|same| same.id != *id));
        let related: Vec<Related> = related
            .into_iter()
            .map(|(relation, _, _, id, _, similarity)| Related { id, relation, similarity })
            .collect();
        for related in &related {
            self.note(related.relation.as_str());
        }

        let next_number = self.next_numbers.get_mut(&language).unwrap();
        let number = DocumentNumber(*next_number);
        *next_number += 1;
        let expired = self.expires_by(language).is_some_and(|expired| at.millis() <= expired);
        let published = self.published_at(Some(at));
        let outlet =
            if verdict == VerdictKind::Unique { OutputTopic::Unique } else { OutputTopic::NearDuplicate };
        let mut flags = self.flags(article, at, clamped, expired);
        if digest {
            self.note("digest");
            flags.push(Flag::Digest);
        }
        let bits =
            flags.iter().fold(0, |bits, flag| bits | 1 << Flag::ALL.iter().position(|f| f == flag).unwrap());

        let own_cluster = ClusterId { language, partition: 0, number };
        let (mut cluster, mut canonical, mut split_from) = (own_cluster.clone(), article.id.clone(), None);
        if let Some((match_, _)) = &best {
            let key = (language, match_.cluster.0);
            let current = self.canonical_of(key).unwrap().clone();
            let pair = self.compare(&current.fingerprint, &article.fingerprint, language);
            let cluster_threshold = own.cluster_threshold;
            let resembles = match pair.relation {
                Relation::Exact | Relation::Near | Relation::Rewritten | Relation::Partial => true,
                Relation::Extends | Relation::SameTemplate | Relation::SameFurniture => false,
                Relation::FollowUp | Relation::Different => {
                    pair.similarity >= cluster_threshold
                        || pair.containment
                            >= own.rules.containment_threshold * cluster_threshold / own.rules.threshold
                }
            };
            let reviewed = constraints.between(&article.id, &match_.id) == Some(Bond::Same)
                || match_.judgement.match_type == Some(MatchType::Reviewed);
            if resembles || current.number == match_.number || reviewed {
                cluster = self.groups[&key].id.clone();
                canonical = current.id;
            } else {
                split_from = Some(self.groups[&key].id.clone());
                self.note("split");
            }
        }
        let similarity = closest.as_ref().map_or(Fraction::new(0.0), |(_, pair)| share(pair));
        let containment =
            closest.as_ref().map_or(Fraction::new(0.0), |(_, pair)| Fraction::new(pair.containment));
        if expired {
            self.note("arrived expired");
            let topic = if published { outlet } else { on(&left) };
            let known = self.residences.contains_key(&article.id);
            if self.relocates && (known || topic != OutputTopic::None) {
                self.reside(&article.id, (language, at), position, Whereabouts::Published(topic));
            }
        } else {
            if self.residences.remove(&article.id).is_some() {
                self.note("residence removed");
            }
            let key = (language, cluster.number.0);
            let document = Document {
                number,
                id: article.id.clone(),
                language,
                fingerprint: article.fingerprint.clone(),
                title: article.title.clone(),
                host: article.host.clone(),
                url: article.url.clone(),
                published_at,
                event_time: at,
                last_seen: at,
                position: position.clone(),
                cluster: cluster.number,
                revision,
                outlet: if published { outlet } else { on(&left) },
                judgement: Judgement {
                    verdict,
                    match_type,
                    is_part: best.as_ref().is_some_and(|(document, pair)| match match_type {
                        Some(MatchType::Partial) if pair.relation == Relation::Partial => {
                            pair.containment > pair.containment_of_old
                        }
                        Some(MatchType::Partial) => true,
                        Some(MatchType::Reviewed) => false,
                        _ => document.judgement.is_part,
                    }),
                    duplicate_of: best.as_ref().map(|(document, _)| document.number),
                    similarity,
                    confidence: Fraction::new(0.0),
                },
                flags: bits | article.content_kind.bits(),
            };
            self.documents.insert((language, number.0), document);
            if cluster == own_cluster {
                let group = Group { id: own_cluster, split_from, canonical: number.0, changed_from: None };
                self.groups.insert(key, group);
            } else {
                self.note("joined");
                touched.insert(key);
                canonical = self.canonical_of(key).unwrap().id.clone();
            }
        }
        if !published {
            self.note("backfilled");
            return Vec::new();
        }
        let mut outputs = vec![Output::Tagged(Box::new(Verdict {
            id: article.id.clone(),
            kind: verdict,
            match_type,
            duplicate_of: best.map(|(document, _)| document.id),
            similarity,
            containment,
            confidence: Fraction::new(0.0),
            cluster,
            canonical_id: canonical,
            revision,
            language: article.reported_language,
            language_source: article.language_source,
            declared_language: article.declared_language.clone(),
            content_kind: article.content_kind,
            related,
            evidence: Vec::new(),
            flags,
            config: self.settings.config,
            input: position.clone(),
            received_at: None,
        }))];
        for other in [OutputTopic::Unique, OutputTopic::NearDuplicate] {
            if other != outlet && left.contains(&other) {
                self.note("moved");
                outputs.push(Output::Tombstone { id: article.id.clone(), outlet: other, lives: true });
            }
        }
        outputs
    }

    /// Handles the same article, unchanged.
    fn unchanged(
        &mut self,
        position: &Position,
        at: EventTime,
        article: &Prepared,
        clamped: bool,
        held: Document,
    ) -> Vec<Output> {
        self.note("same-article");
        let flags = self.flags(article, at, clamped, false);
        let key = (held.language, held.cluster.0);
        let tagged = Verdict {
            id: article.id.clone(),
            kind: VerdictKind::ExactDuplicate,
            match_type: Some(MatchType::SameArticle),
            duplicate_of: Some(article.id.clone()),
            similarity: Fraction::new(1.0),
            containment: Fraction::new(1.0),
            confidence: Fraction::new(0.0),
            cluster: self.groups[&key].id.clone(),
            canonical_id: self.canonical_of(key).unwrap().id.clone(),
            revision: held.revision,
            language: article.reported_language,
            language_source: article.language_source,
            declared_language: article.declared_language.clone(),
            content_kind: article.content_kind,
            related: Vec::new(),
            evidence: Vec::new(),
            flags,
            config: self.settings.config,
            input: position.clone(),
            received_at: None,
        };
        let own = self.settings.languages.get(&held.language).unwrap_or(&self.settings.default);
        let published = self.published_at(Some(at));
        let document = self.documents.get_mut(&(held.language, held.number.0)).unwrap();
        if published {
            let mut where_now = topics(held.outlet);
            where_now.insert(OutputTopic::NearDuplicate);
            document.outlet = on(&where_now);
        }
        if let Retention::Millis(retention) = own.retention
            && at > held.last_seen
        {
            document.last_seen = EventTime::from_millis(at.millis() + retention as i64 / 8);
            self.note("seen later");
        }
        if !published {
            self.note("backfilled");
            return Vec::new();
        }
        vec![Output::Tagged(Box::new(tagged))]
    }

    fn flags(&mut self, article: &Prepared, at: EventTime, clamped: bool, expired: bool) -> Vec<Flag> {
        let mut flags = Vec::new();
        let tokens = article.fingerprint.tokens;
        if tokens > 0 && tokens < self.settings.default.rules.min_tokens {
            flags.push(Flag::ShortText);
            self.note("short-text");
        }
        if tokens == 0 {
            flags.push(Flag::NoText);
            self.note("no-text");
        }
        if clamped {
            flags.push(Flag::ClampedTime);
            self.note("clamped");
        }
        if expired {
            flags.push(Flag::Expired);
        }
        let own = self.settings.languages.get(&article.language).unwrap_or(&self.settings.default);
        if let (Retention::Millis(retention), Some(now)) = (own.retention, self.stream_time(article.language))
            && at.millis() - now.millis() > retention as i64
        {
            flags.push(Flag::AheadOfStream);
            self.note("ahead of stream");
        }
        flags.extend(article.flags.contains(&Flag::KeptText).then_some(Flag::KeptText));
        flags
    }

    fn compare(&self, old: &Fingerprint, new: &Fingerprint, language: Lang) -> Comparison {
        self.settings.languages.get(&language).unwrap_or(&self.settings.default).compare(old, new)
    }

    /// Every live document that shares enough with the article to be a candidate, with the comparison; and
    /// whether the article is a digest of them.
    fn pairs(&self, article: &Prepared) -> (Vec<(Document, Comparison)>, bool) {
        let own = *self.settings.languages.get(&article.language).unwrap_or(&self.settings.default);
        let posting = self.postings.for_language(article.language);
        let keys: Vec<BandKey> = posting.keys(&article.fingerprint);
        let stored = self.documents(article.language);
        let posted: Vec<Vec<BandKey>> =
            stored.iter().map(|document| posting.keys(&document.fingerprint)).collect();
        let holders = |key: &BandKey| posted.iter().filter(|keys| keys.contains(key)).count();
        let mut pairs = Vec::new();
        for (document, theirs) in stored.iter().zip(&posted) {
            let shared: Vec<&BandKey> = keys.iter().filter(|key| theirs.contains(key)).collect();
            let (samples, others): (Vec<&BandKey>, Vec<&BandKey>) =
                shared.into_iter().partition(|key| IndexScheme::kind(**key) == PostingKind::Sample);
            let looked_at =
                !others.is_empty() || samples.len() >= 2 || samples.iter().any(|key| holders(key) <= 2);
            if looked_at && self.live(document) {
                let pair = self.compare(&document.fingerprint, &article.fingerprint, article.language);
                pairs.push((document.clone(), pair));
            }
        }
        let mut digest = false;
        if own.algorithm == Algorithm::Combined {
            let new = &article.fingerprint;
            let inside = |part: &Fingerprint, whole: &Fingerprint, share: f64| {
                let sampled = part.sample.found_in(&whole.sample);
                let sampled = sampled.share().filter(|_| sampled.of >= 8);
                share.max(sampled.unwrap_or(0.0)) >= own.rules.containment_threshold
                    && f64::from(part.shingles) <= 0.6 * f64::from(whole.shingles)
            };
            let held: BTreeSet<DocumentNumber> = pairs
                .iter()
                .filter(|(old, pair)| {
                    old.fingerprint.tokens >= own.rules.min_tokens
                        && inside(&old.fingerprint, new, pair.containment_of_old)
                })
                .map(|(old, _)| old.cluster)
                .collect();
            digest = held.len() >= 2;
            let unchanged =
                |pair: &Comparison| pair.evidence.get(Measure::NumbersReplaced).unwrap_or(0.0) == 0.0;
            let mostly = |pair: &Comparison| {
                pair.containment >= own.rules.containment_threshold
                    || pair.containment_of_old >= own.rules.containment_threshold
            };
            let alike: BTreeSet<DocumentNumber> = pairs
                .iter()
                .filter(|(_, pair)| mostly(pair) && unchanged(pair))
                .map(|(old, _)| old.cluster)
                .collect();
            let mut common = Vec::new();
            for (document, pair) in &mut pairs {
                let old = &document.fingerprint;
                let part = digest && inside(old, new, pair.containment_of_old)
                    || inside(new, old, pair.containment) && self.is_digest(document, new, pair);
                pair.evidence.set(Measure::Digest, part.then_some(1.0));
                let (rare, usual) =
                    self.rare(document, &article.fingerprint, pair.containment, &alike, &stored, &posted);
                let hopeless = pair.log_odds + own.weights.most(Measure::Rare) < -5.0;
                pair.evidence.set(Measure::Rare, rare.filter(|_| !hopeless));
                common.push(usual && !hopeless && pair.similarity < 0.8);
            }
            let unrelated =
                |pair: &Comparison| pair.evidence.get(Measure::Titles).is_some_and(|share| share < 0.25);
            let titles: BTreeSet<(Vec<u32>, bool)> = pairs
                .iter()
                .filter(|(_, pair)| {
                    pair.containment >= 0.8 && pair.containment_of_old >= 0.8 && unrelated(pair)
                })
                .map(|(document, _)| &document.fingerprint)
                .map(|old| (old.title.values().to_vec(), old.foreign_headline))
                .collect();
            let speechless = titles.iter().filter(|(_, foreign)| *foreign).count();
            for ((document, pair), common) in pairs.iter_mut().zip(common) {
                let tokens = document.fingerprint.tokens.min(article.fingerprint.tokens);
                let foreign = document.fingerprint.foreign_headline && article.fingerprint.foreign_headline;
                let (short, medium) = (tokens < own.rules.min_tokens, tokens < own.rules.wall_tokens);
                let same = pair.containment >= 0.8 || pair.containment_of_old >= 0.8;
                let other = pair.evidence.get(Measure::Titles).is_some_and(|share| share < 0.67);
                let several = match short {
                    true => titles.len() >= 4,
                    false => speechless >= 4 && 3 * speechless >= titles.len(),
                };
                let has_titles = pair.evidence.get(Measure::Titles).is_some();
                let differ = has_titles && document.fingerprint.title != article.fingerprint.title;
                let once = short && !titles.is_empty();
                let furniture = match (unrelated(pair), medium && several) {
                    (true, _) => foreign || short || medium && titles.len() >= 4,
                    (false, true) => differ,
                    (false, false) => other && medium && (foreign || once),
                };
                let wall = pair.evidence.get(Measure::Wall).is_some() || same && furniture;
                pair.evidence.set(Measure::Wall, if wall { Some(1.0) } else { common.then_some(0.5) });
                own.decide(&document.fingerprint, &article.fingerprint, pair);
            }
            let decided = pairs.clone();
            for (part, pair) in &mut pairs {
                let is_part = f64::from(part.fingerprint.shingles) <= 0.7 * f64::from(new.shingles);
                let knows_better = decided.iter().filter(|(whole, other)| {
                    let mostly_in_it = other.containment >= 0.65 && other.containment >= pair.containment;
                    let kin = own.compare_alone(&part.fingerprint, &whole.fingerprint).relation;
                    !other.relation.is_duplicate()
                        && mostly_in_it
                        && (whole.cluster == part.cluster || kin.is_duplicate() || kin == Relation::Extends)
                });
                let least =
                    knows_better.map(|(_, other)| other).min_by(|a, b| a.log_odds.total_cmp(&b.log_odds));
                if let Some(other) = least.filter(|_| is_part && pair.relation.is_duplicate()) {
                    (pair.relation, pair.log_odds) = (other.relation, other.log_odds);
                    pair.confidence = other.confidence;
                }
            }
        }
        (pairs, digest)
    }

    /// True if a document was flagged as a digest, or contains another text than this one.
    fn is_digest(&self, document: &Document, new: &Fingerprint, pair: &Comparison) -> bool {
        let unrelated = pair.evidence.get(Measure::Titles).is_some_and(|share| share < 0.25);
        let mut newest = self.members((document.language, document.cluster.0));
        newest.reverse();
        newest.truncate(8);
        let begins = new.opening.found_in(&document.fingerprint.opening);
        document.flags & Flag::Digest.bit() != 0
            || unrelated && begins.of >= 4 && begins.found == 0
            || unrelated
                && newest.into_iter().filter(|member| self.live(member)).any(|member| {
                    member.judgement.match_type == Some(MatchType::Partial)
                        && member.judgement.duplicate_of == Some(document.number)
                        && member.fingerprint.shingles < document.fingerprint.shingles
                        && member.fingerprint.sample.found_in(&new.sample).found == 0
                        && !member.fingerprint.title.values().is_empty()
                        && member.fingerprint.title.found_in(&document.fingerprint.title).found == 0
                })
    }

    /// The shared fraction of what could be shared, each shingle divided among the clusters that have it; and whether at least
    /// four are shared and have less than three tenths left on average. In these histories every sampled shingle is indexed, and the
    /// smallest 24 are looked up.
    fn rare(
        &self,
        document: &Document,
        new: &Fingerprint,
        contained: f64,
        alike: &BTreeSet<DocumentNumber>,
        stored: &[Document],
        posted: &[Vec<BandKey>],
    ) -> (Option<f64>, bool) {
        let old = document.fingerprint.sample.values();
        let looked_for: Vec<u32> = new.sample.values().iter().copied().take(24).collect();
        // Up to this hash both lists are complete.
        let reach = |list: &[u32], all: u32| match (list.last(), list.len() < all as usize) {
            (Some(&last), true) => last,
            _ => u32::MAX,
        };
        let reach = reach(&looked_for, new.shingles).min(reach(old, document.fingerprint.shingles));
        let within = |list: &[u32]| list.iter().filter(|&&hash| hash <= reach).count();
        let comparable = within(old).min(within(&looked_for));
        let (mut sum, mut shared) = (0.0, 0);
        for hash in looked_for.iter().filter(|hash| old.contains(hash)) {
            let key = IndexScheme::sample(*hash);
            let newest = stored.iter().zip(posted).rev().filter(|(_, keys)| keys.contains(&key)).take(16);
            let others: BTreeSet<DocumentNumber> = newest
                .map(|(holder, _)| holder)
                .filter(|holder| self.live(holder) && holder.cluster != document.cluster)
                .map(|holder| holder.cluster)
                .filter(|cluster| !alike.contains(cluster))
                .collect();
            sum += 1.0 / (1.0 + others.len() as f64);
            shared += 1;
        }
        let rare = match (comparable, shared) {
            (3.., _) => Some(sum / comparable as f64),
            (_, 0) => None,
            _ => Some(contained * sum / f64::from(shared)),
        };
        (rare, shared >= 4 && sum < 0.3 * f64::from(shared))
    }
}
