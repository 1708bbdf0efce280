//! Answers questions from the stores that this process has open.
//!
//! [`Library`] borrows the open stores from the [`StoreRegistry`]; each question is a plain function over
//! snapshots of them. Expired articles are never returned.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::StatusCode;

use super::SimilarParams;
use super::answer::{
    AnswerBody, Answered, ArticleAnswer, CheckAnswer, ClusterAnswer, FingerprintAnswer, InputAnswer,
    MemberAnswer, SimilarAnswer, SimilarArticle,
};
use super::held::HeldPartitions;
use super::question::Question;
use crate::config::{Config, Mode, home};
use crate::formats::{Event, json as articles};
use crate::serve::problem::ProblemDetails;
use samestory_engine::engine::{Candidate, Judged, Prepared};
use samestory_engine::index::{Document, Order, Snapshot, StoreError, StoreRegistry, View};
use samestory_engine::model::Flag;
use samestory_engine::model::{
    ArticleId, ClusterId, DocumentNumber, EventTime, Fraction, Lang, Position, VerdictKind,
};
use samestory_engine::text::language;
use samestory_engine::{Deduplicator, Error};

/// The most cluster members in an answer.
const MEMBERS: usize = 100;

/// Attempts at a question when a store is withdrawn while it is being read.
const ATTEMPTS: usize = 3;

/// Answers questions from the stores of one or several partitions.
pub struct Library {
    pub(super) config: Config,
    /// The engine, over an index that stays empty: articles are in the registry's stores.
    pub(super) dedup: Deduplicator,
    registry: Arc<StoreRegistry>,
}

/// The answer of this process.
#[derive(Clone, Debug)]
pub(super) struct LocalAnswer {
    pub(super) result: Result<Answered, ProblemDetails>,
    /// The partitions that were searched.
    pub(super) held: HeldPartitions,
}

/// Reads snapshots of the stores taken at one moment.
struct StoreReader<'s> {
    library: &'s Library,
    stores: &'s [Snapshot<'s>],
}

/// A document and the store that holds it.
struct StoredArticle<'s> {
    store: &'s Snapshot<'s>,
    document: Document,
}

impl Library {
    /// Answers questions from the stores in `registry`, with these settings.
    pub fn new(config: Config, registry: Arc<StoreRegistry>) -> Library {
        let dedup = Deduplicator::in_memory(config.options());
        Library { config, dedup, registry }
    }

    /// The largest request body that can hold an article.
    pub(super) fn largest_body(&self) -> usize {
        self.config.max_record()
    }

    /// Answers from the local stores.
    pub(super) fn answer(&self, question: &Question) -> LocalAnswer {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let lease = self.registry.lease();
            let stores = lease.snapshots();
            let result = StoreReader { library: self, stores: &stores }.answer(question);
            let result = result.map(|body| Answered { body, unanswered: BTreeSet::new() });
            drop(stores);
            if let Err(problem) = &result
                && let Some(error) = problem.log_message()
            {
                // A partition was revoked during the read, which is not an error: retry without it.
                if lease.is_withdrawn() && attempt < ATTEMPTS {
                    continue;
                }
                tracing::error!(error, "cannot read the state for a query");
            }
            let held = HeldPartitions {
                partitions: lease.partitions().into_iter().collect(),
                of: lease.partition_count(),
            };
            return LocalAnswer { result, held };
        }
    }

    /// True if a peer may have a better answer. "Not found" is final only when every partition was searched.
    pub(super) fn needs_peers(&self, answer: &LocalAnswer) -> bool {
        match &answer.result {
            Ok(answered) => !self.is_complete(&answered.body, &answer.held),
            Err(problem) => problem.is_unknown() && !answer.held.covers(None),
        }
    }

    /// True if an answer from these partitions is final. An article and everything similar to it live in one
    /// partition, but a `unique` verdict is final only if the partition of its language was searched.
    pub(super) fn is_complete(&self, answer: &AnswerBody, held: &HeldPartitions) -> bool {
        match answer {
            AnswerBody::Check(check) if check.verdict == VerdictKind::Unique => {
                held.covers(self.home(check.language, held.of))
            }
            _ => true,
        }
    }

    /// True if an id lives in at most one partition. Route guarantees that; crawlers that choose partitions
    /// may not.
    pub(super) fn has_one_partition_per_id(&self) -> bool {
        self.config.bus.mode == Mode::Routed
    }

    /// The partition that owns a language, where the settings determine it.
    fn home(&self, language: Lang, of: Option<i32>) -> Option<i32> {
        let language = language::home(language);
        let bus = &self.config.bus;
        // In direct mode the crawlers choose the partition. The state of a file run is the only one
        // there is.
        of.filter(|&of| bus.mode == Mode::Routed && of > 1).map(|of| home(&bus.languages, language, of))
    }
}

impl StoreReader<'_> {
    fn answer(&self, question: &Question) -> Result<AnswerBody, ProblemDetails> {
        match question {
            Question::Article(id) => self.article(id).map(AnswerBody::Article),
            Question::Fingerprint(id) => self.fingerprint(id).map(AnswerBody::Fingerprint),
            Question::Similar(id, params) => self.similar(id, *params).map(AnswerBody::Similar),
            Question::Cluster(id) => self.cluster(id).map(AnswerBody::Cluster),
            Question::Check(body) => self.check(body).map(AnswerBody::Check),
        }
    }

    /// When a document was last seen, for display. The store rounds the time up, so it is capped at the
    /// stream time.
    fn last_seen(&self, store: &Snapshot<'_>, document: &Document) -> Result<EventTime, StoreError> {
        let progress = store.progress()?;
        let stream = progress.languages.get(&document.language).and_then(|counters| counters.stream_time);
        Ok(document
            .last_seen
            .min(stream.map_or(document.event_time, |stream| stream.max(document.event_time))))
    }

    /// Documents last seen at or before this time are expired.
    fn horizon(&self, store: &Snapshot<'_>, language: Lang) -> Result<Option<EventTime>, StoreError> {
        let progress = store.progress()?;
        if progress.bus.is_none() {
            // File runs keep articles forever; whatever --retention expired has been removed already.
            return Ok(None);
        }
        let time = progress.languages.get(&language).and_then(|counters| counters.stream_time);
        Ok(time.and_then(|time| self.library.dedup.engine().settings_for(language).retention.horizon(time)))
    }

    /// The live article with this id; if several languages have one, the one seen last.
    fn find(&self, id: &str) -> Result<StoredArticle<'_>, ProblemDetails> {
        let id = ArticleId::new(id).map_err(|error| ProblemDetails::bad_request(error.to_string()))?;
        let mut found: Option<StoredArticle<'_>> = None;
        for store in self.stores {
            for language in store.languages_of(&id)? {
                let Some(number) = store.number_of(language, &id)? else { continue };
                let Some(document) = store.document(language, number)? else { continue };
                let live = self.horizon(store, language)?.is_none_or(|horizon| document.last_seen > horizon);
                let newer = found.as_ref().is_none_or(|found| found.document.last_seen < document.last_seen);
                if live && newer {
                    found = Some(StoredArticle { store, document });
                }
            }
        }
        found.ok_or_else(|| ProblemDetails::unknown("no article with this id"))
    }

    /// The stored fingerprint of an article, and the position it was read from.
    fn fingerprint(&self, id: &str) -> Result<FingerprintAnswer, ProblemDetails> {
        let StoredArticle { store, document } = self.find(id)?;
        Ok(FingerprintAnswer {
            fingerprint: hex::encode(document.fingerprint.encode()),
            content_kind: document.content_kind(),
            last_seen: self.last_seen(store, &document)?,
            input: document.position.into(),
            id: document.id,
            language: document.language,
        })
    }

    fn article(&self, id: &str) -> Result<ArticleAnswer, ProblemDetails> {
        let StoredArticle { store, document } = self.find(id)?;
        let judgement = &document.judgement;
        let name = |number: DocumentNumber| {
            store.document(document.language, number).map(|found| found.map(|found| found.id))
        };
        let duplicate_of = judgement.duplicate_of.map(name).transpose()?.flatten();
        let canonical = store.cluster(document.language, document.cluster)?;
        let canonical = canonical.map(|cluster| name(cluster.canonical)).transpose()?.flatten();
        let flags = Flag::ALL.into_iter().enumerate().filter(|(at, _)| document.flags >> at & 1 == 1);
        Ok(ArticleAnswer {
            language: document.language,
            verdict: judgement.verdict,
            match_type: judgement.match_type,
            duplicate_of,
            similarity: judgement.similarity,
            confidence: judgement.confidence,
            cluster_id: store.cluster_of(&document)?.map(|cluster| cluster.to_string()),
            canonical_id: canonical.unwrap_or_else(|| document.id.clone()),
            revision: document.revision,
            content_kind: document.content_kind(),
            flags: flags.map(|(_, flag)| flag).collect(),
            title: document.title.as_ref().map(ToString::to_string),
            host: document.host.as_ref().map(ToString::to_string),
            url: document.url.as_ref().map(ToString::to_string),
            published_at: document.published_at,
            last_seen: self.last_seen(store, &document)?,
            input: document.position.into(),
            id: document.id,
        })
    }

    fn similar(&self, id: &str, params: SimilarParams) -> Result<SimilarAnswer, ProblemDetails> {
        let StoredArticle { store, document } = self.find(id)?;
        let horizon = self.horizon(store, document.language)?;
        let own = document.number;
        let engine = self.library.dedup.engine();
        let settings = engine.settings_for(document.language);
        let candidates = engine.candidates(store, &Prepared::from(document), horizon)?;
        let score = |candidate: &Candidate| Fraction::new(settings.similarity(&candidate.comparison));
        let mut ranked: Vec<(Fraction, Candidate)> = candidates
            .all
            .into_iter()
            .filter(|candidate| candidate.document.number != own)
            .map(|candidate| (score(&candidate), candidate))
            .filter(|(score, _)| score.get() >= params.min_score && score.steps() > 0)
            .collect();
        // Most similar first; ties by age, oldest first.
        ranked.sort_by_key(|(score, candidate)| (std::cmp::Reverse(*score), candidate.document.number));
        ranked.truncate(params.limit);
        let similar = ranked.into_iter().map(|(score, Candidate { document, comparison })| SimilarArticle {
            id: document.id.clone(),
            title: document.title.as_ref().map(ToString::to_string),
            host: document.host.as_ref().map(ToString::to_string),
            similarity: score,
            similarity_score: score,
            match_type: comparison.relation.into(),
        });
        Ok(SimilarAnswer { similar: similar.collect() })
    }

    fn cluster(&self, id: &str) -> Result<ClusterAnswer, ProblemDetails> {
        let unknown = || ProblemDetails::unknown("no cluster with this id");
        let malformed =
            || ProblemDetails::bad_request("a cluster id has the form <language>:<partition>:<number>");
        let (code, rest) = id.split_once(':').ok_or_else(malformed)?;
        let (partition, number) = rest.split_once(':').ok_or_else(malformed)?;
        let partition: i32 = partition.parse().map_err(|_| malformed())?;
        let number = number.parse().map(DocumentNumber).map_err(|_| malformed())?;
        let language =
            if code == "und" { Lang::UND } else { language::find(code).ok_or_else(unknown)?.home() };
        for store in self.stores {
            if store.progress()?.partition() != partition {
                continue;
            }
            if let Some(cluster) = store.cluster(language, number)? {
                let members = store.members(language, number, Order::Ascending, None, MEMBERS)?;
                return Ok(ClusterAnswer {
                    cluster_id: cluster.id.to_string(),
                    language,
                    canonical_id: store.document(language, cluster.canonical)?.map(|document| document.id),
                    size: cluster.size,
                    first_seen: cluster.first_seen,
                    last_seen: cluster.last_seen,
                    hosts: cluster.hosts.iter().map(ToString::to_string).collect(),
                    members: store
                        .documents(language, &members.numbers)?
                        .into_iter()
                        .flatten()
                        .map(MemberAnswer::from)
                        .collect(),
                    split_from: cluster.split_from.map(|cluster| cluster.to_string()),
                    canonical_changed_from: cluster.canonical_changed_from,
                    more: members.more,
                });
            }
            // A cluster of one article has no row of its own.
            if let Some(document) = store.document(language, number)?
                && document.cluster == number
            {
                return Ok(ClusterAnswer {
                    cluster_id: id.to_owned(),
                    language,
                    canonical_id: Some(document.id.clone()),
                    size: 1,
                    first_seen: document.event_time,
                    last_seen: self.last_seen(store, &document)?,
                    hosts: document.host.iter().map(ToString::to_string).collect(),
                    members: vec![document.into()],
                    split_from: None,
                    canonical_changed_from: None,
                    more: false,
                });
            }
        }
        Err(unknown())
    }

    fn check(&self, body: &[u8]) -> Result<CheckAnswer, ProblemDetails> {
        let Library { config, dedup, .. } = self.library;
        let unreadable =
            |why: String| ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, "no-article", why);
        let record = articles::JsonRecord::parse(body)
            .map_err(|refusal| ProblemDetails::bad_request(refusal.message))?;
        let event = articles::decode(&record, &config.fields, || Some("the text in question".into()));
        let article = match event {
            Ok(Event::Article(article)) => article,
            Ok(Event::Bodiless(_, refusal)) => return Err(unreadable(refusal.message)),
            Ok(Event::Delete(_)) => {
                return Err(unreadable("this is a delete; there is nothing to check".into()));
            }
            Err(refusal) => return Err(unreadable(refusal.message)),
        };
        let prepared = dedup.prepare(&article).map_err(|error| match error {
            Error::Rejected { message, .. } => unreadable(message),
            other => unreadable(other.to_string()),
        })?;
        let mut best: Option<(Judged, Option<ClusterId>)> = None;
        for store in self.stores.iter().filter(|store| store.languages().contains(&prepared.language)) {
            let judged = dedup.engine().judge(store, &prepared, self.horizon(store, prepared.language)?)?;
            let rank = |judged: &Judged| (judged.verdict != VerdictKind::Unique, judged.similarity);
            if best.as_ref().is_none_or(|(other, _)| rank(&judged) > rank(other)) {
                let cluster = match &judged.best {
                    Some(candidate) => store.cluster_of(&candidate.document)?,
                    None => None,
                };
                best = Some((judged, cluster));
            }
        }
        let (judged, cluster) = match best {
            Some(best) => best,
            // No store has this language: judge against an empty one.
            None => (dedup.judge(&prepared)?, None),
        };
        Ok(CheckAnswer {
            verdict: judged.verdict,
            match_type: judged.match_type,
            duplicate_of: judged.best.as_ref().map(|best| best.document.id.clone()),
            similarity: judged.similarity,
            containment: judged.containment,
            confidence: judged.confidence,
            cluster_id: cluster.map(|cluster| cluster.to_string()),
            language: prepared.reported_language,
            language_source: prepared.language_source,
            declared_language: prepared.declared_language.as_ref().map(ToString::to_string),
            content_kind: prepared.content_kind,
            related: judged.related,
            flags: prepared.flags,
            candidates: judged.candidates,
        })
    }
}

impl From<Document> for MemberAnswer {
    fn from(document: Document) -> MemberAnswer {
        MemberAnswer {
            id: document.id,
            title: document.title.as_ref().map(ToString::to_string),
            host: document.host.as_ref().map(ToString::to_string),
            url: document.url.as_ref().map(ToString::to_string),
            published_at: document.published_at,
            match_type: document.judgement.match_type,
        }
    }
}

impl From<Position> for InputAnswer {
    fn from(position: Position) -> InputAnswer {
        match position {
            Position::Topic { topic, partition, offset } => {
                InputAnswer::Topic { topic: topic.to_string(), partition, offset }
            }
            Position::File { file, line } => InputAnswer::File { file: file.to_string(), line },
        }
    }
}
