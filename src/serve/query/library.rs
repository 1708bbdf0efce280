//! Answers questions from the stores that this process has open.
//!
//! [`Library`] borrows the open stores from the [`StoreRegistry`]; each question is a plain function over
//! snapshots of them. Expired articles are never returned.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::SimilarParams;
use super::held::HeldPartitions;
use super::question::Question;
use crate::config::{Config, Mode, home};
use crate::formats::{Event, json as articles};
use crate::serve::problem::ProblemDetails;
use samestory_engine::engine::compare::Relation;
use samestory_engine::engine::{Candidate, Engine, Judged, Prepared, Preparer};
use samestory_engine::index::{
    Document, Durability, Memory, Order, Rows, Snapshot, StoreError, StoreRegistry, View,
};
use samestory_engine::model::Flag;
use samestory_engine::model::{
    ArticleId, BoundedStr, ClusterId, DocumentNumber, EventTime, Fraction, Lang, LanguageSource, LanguageTag,
    Position, VerdictKind,
};
use samestory_engine::text::language;

/// The most cluster members in an answer.
const MEMBERS: usize = 100;

/// Attempts at a question when a store is withdrawn while it is being read.
const ATTEMPTS: usize = 3;

/// Answers questions from the stores of one or several partitions.
pub struct Library {
    pub(super) config: Config,
    pub(super) engine: Engine,
    pub(super) preparer: Preparer,
    registry: Arc<StoreRegistry>,
}

/// The answer of this process.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) result: Result<Value, ProblemDetails>,
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
        let (engine, preparer) = (Engine::new(config.engine.clone()), Preparer::new(config.text));
        Library { config, engine, preparer, registry }
    }

    /// The largest request body that can hold an article.
    pub(super) fn largest_body(&self) -> usize {
        self.config.max_record()
    }

    /// Answers from the local stores.
    pub(super) fn answer(&self, question: &Question) -> Answer {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let lease = self.registry.lease();
            let stores = lease.snapshots();
            let result = StoreReader { library: self, stores: &stores }.answer(question);
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
            return Answer { result, held };
        }
    }

    /// Whether a peer may have a better answer. "Not found" is final only when every partition was searched.
    pub(super) fn needs_peers(&self, question: &Question, answer: &Answer) -> bool {
        match &answer.result {
            Ok(value) => !self.is_complete(question, value, &answer.held),
            Err(problem) => problem.is_unknown() && !answer.held.covers(None),
        }
    }

    /// Whether an answer from these partitions is final. An article and everything similar to it live in one
    /// partition, but a `unique` verdict is final only if the partition of its language was searched.
    pub(super) fn is_complete(&self, question: &Question, answer: &Value, held: &HeldPartitions) -> bool {
        match question {
            Question::Check(_) if answer["verdict"] == "unique" => held.covers(self.home(answer, held.of)),
            _ => true,
        }
    }

    /// Whether an id lives in at most one partition. Route guarantees that; crawlers that choose partitions
    /// may not.
    pub(super) fn has_one_partition_per_id(&self) -> bool {
        self.config.bus.mode == Mode::Routed
    }

    /// The partition that owns the language of an answer, where the settings determine it.
    fn home(&self, answer: &Value, of: Option<i32>) -> Option<i32> {
        let code = answer["language"].as_str()?;
        let language = if code == "und" { Lang::UND } else { language::find(code)?.home() };
        let bus = &self.config.bus;
        // In direct mode the crawlers choose the partition. The state of a file run is the only one
        // there is.
        of.filter(|&of| bus.mode == Mode::Routed && of > 1).map(|of| home(&bus.languages, language, of))
    }
}

impl StoreReader<'_> {
    fn answer(&self, question: &Question) -> Result<Value, ProblemDetails> {
        let mut answer = match question {
            Question::Article(id) => self.article(id),
            Question::Fingerprint(id) => self.fingerprint(id),
            Question::Similar(id, params) => self.similar(id, *params),
            Question::Cluster(id) => self.cluster(id),
            Question::Check(body) => self.check(body),
        }?;
        answer["unanswered"] = json!([]);
        Ok(answer)
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
        Ok(time.and_then(|time| self.library.engine.settings_for(language).retention.horizon(time)))
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
    fn fingerprint(&self, id: &str) -> Result<Value, ProblemDetails> {
        let StoredArticle { store, document } = self.find(id)?;
        let bytes = document.fingerprint.encode();
        Ok(json!({
            "id": document.id,
            "language": document.language,
            "fingerprint": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
            "last_seen": self.last_seen(store, &document)?,
            "input": document.position,
        }))
    }

    fn article(&self, id: &str) -> Result<Value, ProblemDetails> {
        let StoredArticle { store, document } = self.find(id)?;
        let judgement = &document.judgement;
        let name = |number: DocumentNumber| {
            store.document(document.language, number).map(|found| found.map(|found| found.id))
        };
        let duplicate_of = judgement.duplicate_of.map(name).transpose()?.flatten();
        let canonical = store.cluster(document.language, document.cluster)?;
        let canonical = canonical.map(|cluster| name(cluster.canonical)).transpose()?.flatten();
        let flags = Flag::ALL.iter().enumerate().filter(|(at, _)| document.flags >> at & 1 == 1);
        Ok(json!({
            "id": document.id,
            "language": document.language,
            "verdict": judgement.verdict.as_str(),
            "match_type": judgement.match_type.map(|kind| kind.as_str()),
            "duplicate_of": duplicate_of,
            "similarity": judgement.similarity,
            "confidence": judgement.confidence,
            "cluster_id": store.cluster_of(&document)?,
            "canonical_id": canonical.unwrap_or_else(|| document.id.clone()),
            "revision": document.revision,
            "flags": flags.map(|(_, flag)| flag.as_str()).collect::<Vec<_>>(),
            "title": document.title.as_ref().map(|title| title.as_str()),
            "host": document.host.as_ref().map(|host| host.as_str()),
            "url": document.url.as_ref().map(|url| url.as_str()),
            "published_at": document.published_at,
            "last_seen": self.last_seen(store, &document)?,
            "input": document.position,
        }))
    }

    fn similar(&self, id: &str, params: SimilarParams) -> Result<Value, ProblemDetails> {
        let StoredArticle { store, document } = self.find(id)?;
        let horizon = self.horizon(store, document.language)?;
        let own = document.number;
        let engine = &self.library.engine;
        let settings = engine.settings_for(document.language);
        let candidates = engine.candidates(store, &prepared(document), horizon)?;
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
        let similar = ranked.into_iter().map(|(score, candidate)| {
            let Candidate { document, comparison } = candidate;
            json!({
                "id": document.id,
                "title": document.title.as_ref().map(|title| title.as_str()),
                "host": document.host.as_ref().map(|host| host.as_str()),
                "similarity_score": score,
                "match_type": match comparison.relation {
                    Relation::Different => "similar",
                    // A verdict reports a rewritten text as a near-duplicate too.
                    Relation::Rewritten => Relation::Near.as_str(),
                    relation => relation.as_str(),
                },
            })
        });
        Ok(json!({ "similar": similar.collect::<Vec<_>>() }))
    }

    fn cluster(&self, id: &str) -> Result<Value, ProblemDetails> {
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
            let names = |numbers: &[DocumentNumber]| -> Result<Vec<ArticleId>, StoreError> {
                let documents = store.documents(language, numbers)?;
                Ok(documents.into_iter().flatten().map(|document| document.id).collect())
            };
            if let Some(cluster) = store.cluster(language, number)? {
                let members = store.members(language, number, Order::Ascending, None, MEMBERS)?;
                return Ok(json!({
                    "id": cluster.id.to_string(),
                    "language": language,
                    "canonical_id": names(&[cluster.canonical])?.pop(),
                    "size": cluster.size,
                    "first_seen": cluster.first_seen,
                    "last_seen": cluster.last_seen,
                    "hosts": cluster.hosts.iter().map(|host| host.as_str()).collect::<Vec<_>>(),
                    "members": names(&members.numbers)?,
                    "more": members.more,
                }));
            }
            // A cluster of one article has no row of its own.
            if let Some(document) = store.document(language, number)?
                && document.cluster == number
            {
                return Ok(json!({
                    "id": id,
                    "language": language,
                    "canonical_id": document.id,
                    "size": 1,
                    "first_seen": document.event_time,
                    "last_seen": self.last_seen(store, &document)?,
                    "hosts": document.host.iter().map(|host| host.as_str()).collect::<Vec<_>>(),
                    "members": [document.id],
                    "more": false,
                }));
            }
        }
        Err(unknown())
    }

    fn check(&self, body: &[u8]) -> Result<Value, ProblemDetails> {
        let Library { config, engine, preparer, .. } = self.library;
        let unreadable =
            |why: String| ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, "no-article", why);
        let record =
            articles::Record::parse(body).map_err(|refusal| ProblemDetails::bad_request(refusal.message))?;
        let event = articles::decode(&record, &config.fields, || Some("the text in question".into()));
        let article = match event {
            Ok(Event::Article(article)) => article,
            Ok(Event::Bodiless(_, refusal)) => return Err(unreadable(refusal.message)),
            Ok(Event::Delete(_)) => {
                return Err(unreadable("this is a delete; there is nothing to check".into()));
            }
            Err(refusal) => return Err(unreadable(refusal.message)),
        };
        let position = Position::File { file: BoundedStr::new("request"), line: 1 };
        let prepared = preparer.prepare(&article, &position).map_err(|letter| unreadable(letter.message))?;
        let mut best: Option<(Judged, Option<ClusterId>)> = None;
        for store in self.stores.iter().filter(|store| store.languages().contains(&prepared.language)) {
            let judged = engine.judge(store, &prepared, self.horizon(store, prepared.language)?)?;
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
            None => {
                let empty = Memory::new(config.postings.clone(), Durability::OwnWal);
                (engine.judge(&empty, &prepared, None)?, None)
            }
        };
        Ok(json!({
            "verdict": judged.verdict.as_str(),
            "match_type": judged.match_type.map(|kind| kind.as_str()),
            "duplicate_of": judged.best.as_ref().map(|best| &best.document.id),
            "similarity": judged.similarity,
            "containment": judged.containment,
            "confidence": judged.confidence,
            "cluster_id": cluster,
            "language": prepared.reported_language,
            "language_source": prepared.language_source.as_str(),
            "declared_language": prepared.declared_language.as_ref().map(LanguageTag::as_str),
            "related": judged.related.iter().map(|related| json!({
                "id": related.id,
                "relation": related.relation.as_str(),
                "similarity": related.similarity,
            })).collect::<Vec<_>>(),
            "flags": prepared.flags.iter().map(|flag| flag.as_str()).collect::<Vec<_>>(),
            "candidates": judged.candidates,
        }))
    }
}

/// A stored document in the form in which candidates are looked up for an article.
fn prepared(document: Document) -> Prepared {
    Prepared {
        id: document.id,
        language: document.language,
        reported_language: document.language,
        language_source: LanguageSource::Text,
        declared_language: None,
        fingerprint: document.fingerprint,
        title: document.title,
        host: document.host,
        url: document.url,
        published_at: document.published_at,
        fetched_at: None,
        flags: Vec::new(),
    }
}
