//! Questions to the state. Each is a plain function that reads the stores as they are at one moment; expired articles are
//! not there.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::Wanted;
use super::held::Held;
use super::question::Question;
use crate::config::{Config, Mode, home};
use crate::formats::{Event, json as articles};
use crate::serve::problem::Problem;
use samestory_engine::engine::compare::Relation;
use samestory_engine::engine::{Candidate, Engine, Judged, Prepared, Preparer};
use samestory_engine::index::{
    Document, Durability, Memory, Order, Rows, Snapshot, StoreError, StoreRegistry, View,
};
use samestory_engine::model::Flag;
use samestory_engine::model::{
    ArticleId, BoundedStr, ClusterId, DocumentNumber, EventTime, Fraction, Lang, LanguageSource, LanguageTag,
    Position, Verdict,
};
use samestory_engine::text::language;

/// Members of a cluster that are listed.
const MEMBERS: usize = 100;

/// A question is begun anew so often when a store is taken away under it.
const TURNS: usize = 3;

/// The state of one or several partitions, and how it is read.
pub struct Library {
    pub(super) config: Config,
    pub(super) engine: Engine,
    pub(super) preparer: Preparer,
    shelf: Arc<StoreRegistry>,
}

/// What is known here.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) result: Result<Value, Problem>,
    /// What it was made from.
    pub(super) held: Held,
}

/// The stores at one moment.
struct Reading<'s> {
    library: &'s Library,
    stores: &'s [Snapshot<'s>],
}

/// A document and the store that holds it.
struct Found<'s> {
    store: &'s Snapshot<'s>,
    document: Document,
}

impl Library {
    /// These stores, read with these settings.
    pub fn new(config: Config, shelf: Arc<StoreRegistry>) -> Library {
        let (engine, preparer) = (Engine::new(config.engine.clone()), Preparer::new(config.text));
        Library { config, engine, preparer, shelf }
    }

    /// The largest request that can hold an article.
    pub(super) fn largest_body(&self) -> usize {
        self.config.max_record()
    }

    /// Answers from what is held here.
    pub(super) fn answer(&self, question: &Question) -> Answer {
        let mut turn = 0;
        loop {
            turn += 1;
            let loan = self.shelf.lease();
            let stores = loan.snapshots();
            let result = Reading { library: self, stores: &stores }.answer(question);
            drop(stores);
            if let Err(problem) = &result
                && let Some(hidden) = problem.hidden()
            {
                // The partition goes to somebody else, who will know; nothing is wrong.
                if loan.is_withdrawn() && turn < TURNS {
                    continue;
                }
                tracing::error!("a question could not be answered: {hidden}");
            }
            let held =
                Held { partitions: loan.partitions().into_iter().collect(), of: loan.partition_count() };
            return Answer { result, held };
        }
    }

    /// Whether others may know more. Nothing is guessed: what is not known to be nowhere is asked for.
    pub(super) fn is_open(&self, question: &Question, answer: &Answer) -> bool {
        match &answer.result {
            Ok(value) => !self.is_enough(question, value, &answer.held),
            Err(problem) => problem.is_unknown() && !answer.held.covers(None),
        }
    }

    /// Whether an answer can stand, made from these partitions. An article and all that it resembles are in one; what is
    /// not found must have been looked for.
    pub(super) fn is_enough(&self, question: &Question, answer: &Value, held: &Held) -> bool {
        match question {
            Question::Check(_) if answer["verdict"] == "unique" => held.covers(self.home(answer, held.of)),
            _ => true,
        }
    }

    /// Whether an id is in one partition at most: route sees to that. Crawlers that choose partitions may not.
    pub(super) fn is_in_one_place(&self) -> bool {
        self.config.bus.mode == Mode::Routed
    }

    /// The partition that knows all articles in the language of an answer, where that can be told.
    fn home(&self, answer: &Value, of: Option<i32>) -> Option<i32> {
        let code = answer["language"].as_str()?;
        let language = if code == "und" { Lang::UND } else { language::find(code)?.home() };
        let bus = &self.config.bus;
        // Where crawlers choose the partition, it is theirs to know. A file's state is all there is.
        of.filter(|&of| bus.mode == Mode::Routed && of > 1).map(|of| home(&bus.languages, language, of))
    }
}

impl Reading<'_> {
    fn answer(&self, question: &Question) -> Result<Value, Problem> {
        let mut answer = match question {
            Question::Article(id) => self.article(id),
            Question::Fingerprint(id) => self.fingerprint(id),
            Question::Similar(id, wanted) => self.similar(id, *wanted),
            Question::Cluster(id) => self.cluster(id),
            Question::Check(body) => self.check(body),
        }?;
        answer["unanswered"] = json!([]);
        Ok(answer)
    }

    /// When a document was last seen, for display. The store rounds that up; a reader is not shown a time to come.
    fn last_seen(&self, store: &Snapshot<'_>, document: &Document) -> Result<EventTime, StoreError> {
        let progress = store.progress()?;
        let stream = progress.languages.get(&document.language).and_then(|counters| counters.stream_time);
        Ok(document
            .last_seen
            .min(stream.map_or(document.event_time, |stream| stream.max(document.event_time))))
    }

    /// What was last seen at this time or before is expired.
    fn horizon(&self, store: &Snapshot<'_>, language: Lang) -> Result<Option<EventTime>, StoreError> {
        let progress = store.progress()?;
        if progress.bus.is_none() {
            // Files remember for ever; what a run was told to forget has been removed.
            return Ok(None);
        }
        let time = progress.languages.get(&language).and_then(|counters| counters.stream_time);
        Ok(time.and_then(|time| self.library.engine.settings_for(language).retention.horizon(time)))
    }

    /// The article of this id that is remembered; of several languages the one seen last.
    fn find(&self, id: &str) -> Result<Found<'_>, Problem> {
        let id = ArticleId::new(id).map_err(|error| Problem::bad_request(error.to_string()))?;
        let mut found: Option<Found<'_>> = None;
        for store in self.stores {
            for language in store.languages_of(&id)? {
                let Some(number) = store.number_of(language, &id)? else { continue };
                let Some(document) = store.document(language, number)? else { continue };
                let live = self.horizon(store, language)?.is_none_or(|horizon| document.last_seen > horizon);
                let newer = found.as_ref().is_none_or(|found| found.document.last_seen < document.last_seen);
                if live && newer {
                    found = Some(Found { store, document });
                }
            }
        }
        found.ok_or_else(|| Problem::unknown("no article of this id is remembered"))
    }

    /// All that is kept of a text, and where it was read.
    fn fingerprint(&self, id: &str) -> Result<Value, Problem> {
        let Found { store, document } = self.find(id)?;
        let bytes = document.fingerprint.encode();
        Ok(json!({
            "id": document.id,
            "language": document.language,
            "fingerprint": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
            "last_seen": self.last_seen(store, &document)?,
            "input": document.position,
        }))
    }

    fn article(&self, id: &str) -> Result<Value, Problem> {
        let Found { store, document } = self.find(id)?;
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

    fn similar(&self, id: &str, wanted: Wanted) -> Result<Value, Problem> {
        let Found { store, document } = self.find(id)?;
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
            .filter(|(score, _)| score.get() >= wanted.min_score && score.steps() > 0)
            .collect();
        // The most similar first; of two the earlier.
        ranked.sort_by_key(|(score, candidate)| (std::cmp::Reverse(*score), candidate.document.number));
        ranked.truncate(wanted.limit);
        let similar = ranked.into_iter().map(|(score, candidate)| {
            let Candidate { document, comparison } = candidate;
            json!({
                "id": document.id,
                "title": document.title.as_ref().map(|title| title.as_str()),
                "host": document.host.as_ref().map(|host| host.as_str()),
                "similarity_score": score,
                "match_type": match comparison.relation {
                    Relation::Different => "similar",
                    // As a verdict says it.
                    Relation::Rewritten => Relation::Near.as_str(),
                    relation => relation.as_str(),
                },
            })
        });
        Ok(json!({ "similar": similar.collect::<Vec<_>>() }))
    }

    fn cluster(&self, id: &str) -> Result<Value, Problem> {
        let unknown = || Problem::unknown("no cluster of this id is remembered");
        let malformed = || Problem::bad_request("a cluster's id is <language>:<partition>:<number>");
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
            // An article alone is a cluster without a row of its own.
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

    fn check(&self, body: &[u8]) -> Result<Value, Problem> {
        let Library { config, engine, preparer, .. } = self.library;
        let unreadable = |why: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "no-article", why);
        let record =
            articles::Record::parse(body).map_err(|refusal| Problem::bad_request(refusal.message))?;
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
            let rank = |judged: &Judged| (judged.verdict != Verdict::Unique, judged.similarity);
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
            // Nothing of this language has been seen.
            None => {
                let nothing = Memory::new(config.postings.clone(), Durability::OwnWal);
                (engine.judge(&nothing, &prepared, None)?, None)
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

/// A document as an article that is asked about.
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
