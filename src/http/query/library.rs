//! Questions to the state. Each is a plain function that reads; expired articles are not there.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::Wanted;
use crate::config::Config;
use crate::detect::compare::Relation;
use crate::detect::{Candidate, Engine, Judged, Prepared, Preparer};
use crate::event::{Event, Flag, json as articles};
use crate::http::problem::Problem;
use crate::model::{
    ArticleId, Cut, DocumentNumber, EventTime, Lang, LanguageSource, Position, Share, Verdict,
};
use crate::store::{Ahead, Document, Memory, Order, RocksReader, Rows, StoreError, View};
use crate::text::language;

/// Members of a cluster that are listed.
const MEMBERS: usize = 100;

/// The state of one or several partitions, and how it is read.
pub struct Library {
    pub(super) config: Config,
    pub(super) engine: Engine,
    pub(super) preparer: Preparer,
    stores: Vec<RocksReader>,
}

/// A document and the store that holds it.
pub(super) struct Found {
    pub(super) store: RocksReader,
    pub(super) document: Document,
}

impl Library {
    /// These stores, read with these settings.
    pub fn new(config: Config, stores: Vec<RocksReader>) -> Library {
        let (engine, preparer) = (Engine::new(config.engine.clone()), Preparer::new(config.text));
        Library { config, engine, preparer, stores }
    }

    /// The largest request that can hold an article.
    pub(super) fn largest_body(&self) -> usize {
        self.config.max_record()
    }

    /// What was last seen at this time or before is expired.
    fn horizon(&self, store: &RocksReader, language: Lang) -> Result<Option<EventTime>, StoreError> {
        let progress = store.progress()?;
        let time = progress.languages.get(&language).and_then(|counters| counters.stream_time);
        Ok(time.and_then(|time| self.engine.of(language).retention.horizon(time)))
    }

    /// The article of this id that is remembered; of several languages the one seen last.
    pub(super) fn find(&self, id: &str) -> Result<Found, Problem> {
        let id = ArticleId::new(id).map_err(|error| Problem::bad_request(error.to_string()))?;
        let mut found: Option<Found> = None;
        for store in &self.stores {
            for language in store.languages_of(&id)? {
                let Some(number) = store.number_of(language, &id)? else { continue };
                let Some(document) = store.document(language, number)? else { continue };
                let live = self.horizon(store, language)?.is_none_or(|horizon| document.last_seen > horizon);
                let newer = found.as_ref().is_none_or(|found| found.document.last_seen < document.last_seen);
                if live && newer {
                    found = Some(Found { store: store.clone(), document });
                }
            }
        }
        found.ok_or_else(|| Problem::unknown("no article of this id is remembered"))
    }

    pub(super) fn article(&self, id: &str) -> Result<Value, Problem> {
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
            "cluster_id": cluster_id(&store, &document)?,
            "canonical_id": canonical.unwrap_or_else(|| document.id.clone()),
            "revision": document.revision,
            "flags": flags.map(|(_, flag)| flag.as_str()).collect::<Vec<_>>(),
            "title": document.title.as_ref().map(|title| title.as_str()),
            "host": document.host.as_ref().map(|host| host.as_str()),
            "url": document.url.as_ref().map(|url| url.as_str()),
            "published_at": document.published_at,
            "last_seen": document.last_seen,
            "input": document.position,
        }))
    }

    pub(super) fn similar(&self, id: &str, wanted: Wanted) -> Result<Value, Problem> {
        let Found { store, document } = self.find(id)?;
        let horizon = self.horizon(&store, document.language)?;
        let own = document.number;
        let settings = self.engine.of(document.language);
        let candidates = self.engine.candidates(&store, &prepared(document), horizon)?;
        let score = |candidate: &Candidate| Share::new(settings.similarity(&candidate.comparison));
        let mut ranked: Vec<(Share, Candidate)> = candidates
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
                    relation => relation.as_str(),
                },
            })
        });
        Ok(json!({ "similar": similar.collect::<Vec<_>>() }))
    }

    pub(super) fn cluster(&self, id: &str) -> Result<Value, Problem> {
        let unknown = || Problem::unknown("no cluster of this id is remembered");
        let malformed = || Problem::bad_request("a cluster's id is <language>:<article id>:<number>");
        let (code, rest) = id.split_once(':').ok_or_else(malformed)?;
        let (founder, number) = rest.rsplit_once(':').ok_or_else(malformed)?;
        let number = number.parse().map(DocumentNumber).map_err(|_| malformed())?;
        let language = if code == "und" { Lang::UND } else { language::find(code).ok_or_else(unknown)?.lang };
        for store in &self.stores {
            let names = |numbers: &[DocumentNumber]| -> Result<Vec<ArticleId>, StoreError> {
                let documents = store.documents(language, numbers)?;
                Ok(documents.into_iter().flatten().map(|document| document.id).collect())
            };
            if let Some(cluster) = store.cluster(language, number)? {
                if cluster.id.founder.as_str() != founder {
                    continue;
                }
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
                && document.id.as_str() == founder
                && document.cluster == number
            {
                return Ok(json!({
                    "id": id,
                    "language": language,
                    "canonical_id": document.id,
                    "size": 1,
                    "first_seen": document.event_time,
                    "last_seen": document.last_seen,
                    "hosts": document.host.iter().map(|host| host.as_str()).collect::<Vec<_>>(),
                    "members": [document.id],
                    "more": false,
                }));
            }
        }
        Err(unknown())
    }

    pub(super) fn check(&self, body: &[u8]) -> Result<Value, Problem> {
        let unreadable = |why: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "no-article", why);
        let record =
            articles::Record::parse(body).map_err(|refusal| Problem::bad_request(refusal.message))?;
        let event = articles::decode(&record, &self.config.fields, || Some("the text in question".into()));
        let article = match event {
            Ok(Event::Article(article)) => article,
            Ok(Event::Delete(_)) => {
                return Err(unreadable("this is a delete; there is nothing to check".into()));
            }
            Err(refusal) => return Err(unreadable(refusal.message)),
        };
        let position = Position::File { file: Cut::new("request"), line: 1 };
        let prepared =
            self.preparer.prepare(&article, &position).map_err(|letter| unreadable(letter.message))?;
        let mut best: Option<(Judged, Option<String>)> = None;
        for store in self.stores.iter().filter(|store| store.languages().contains(&prepared.language)) {
            let judged = self.engine.judge(store, &prepared, self.horizon(store, prepared.language)?)?;
            let rank = |judged: &Judged| (judged.verdict != Verdict::Unique, judged.similarity);
            if best.as_ref().is_none_or(|(other, _)| rank(&judged) > rank(other)) {
                let cluster = match &judged.best {
                    Some(candidate) => cluster_id(store, &candidate.document)?,
                    None => None,
                };
                best = Some((judged, cluster));
            }
        }
        let (judged, cluster) = match best {
            Some(best) => best,
            // Nothing of this language has been seen.
            None => {
                let nothing = Memory::new(self.config.postings.clone(), Ahead::Itself);
                (self.engine.judge(&nothing, &prepared, None)?, None)
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
            "language": prepared.language,
            "language_source": prepared.language_source.as_str(),
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
        language_source: LanguageSource::Declared,
        fingerprint: document.fingerprint,
        title: document.title,
        host: document.host,
        url: document.url,
        published_at: document.published_at,
        fetched_at: None,
        flags: Vec::new(),
    }
}

/// The cluster of a document; an article alone has one without a row of its own.
fn cluster_id(store: &RocksReader, document: &Document) -> Result<Option<String>, StoreError> {
    let alone = || {
        (document.cluster == document.number)
            .then(|| format!("{}:{}:{}", document.language, document.id, document.number))
    };
    let cluster = store.cluster(document.language, document.cluster)?;
    Ok(cluster.map(|cluster| cluster.id.to_string()).or_else(alone))
}
