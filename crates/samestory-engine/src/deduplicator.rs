//! The front door: an engine and its index behind one type.
//!
//! [`Deduplicator`] judges articles in the order in which they are inserted, exactly as the `samestory` program does. A
//! verdict is a function of the articles inserted before it, and of nothing else. Callers without a transaction use this door: the
//! evaluation, the benchmark, the probe, the reference replay and the tests. The stage on Kafka does not, because its commit
//! comes between the plan and the index.

#[cfg(feature = "rocksdb")]
use std::path::Path;

use crate::article::Article;
use crate::engine::compare::{Comparison, Relation};
use crate::engine::{
    Batch, Candidates, Engine, Incoming, Item, Judged, LanguageSettings, Output, Plan, Prepared, Preparer,
    Settings,
};
use crate::error::Error;
use crate::fingerprint;
#[cfg(feature = "rocksdb")]
use crate::index::{Budget, Rocks, RocksOptions, View};
use crate::index::{Document, Durability, Memory, Store, StoreError, WriteSet};
use crate::model::Lang;
use crate::model::{
    ArticleId, BoundedStr, ContentKind, DeadLetter, DeadLetterReason, Fraction, MatchType, Position,
    RawArticle, Verdict, VerdictKind,
};
use crate::options::Options;
use crate::parallel;
use crate::text::{self, language};

/// Finds articles whose text has been seen before.
///
/// ```
/// use samestory_engine::{Article, Deduplicator, Options, VerdictKind};
/// # fn main() -> Result<(), samestory_engine::Error> {
/// let body = "The ferry between Saltmere and Gull Island will run again from Monday after six weeks of repairs, the \
///             operator said on Thursday. Engineers replaced both engines and a cracked propeller shaft at the yard.";
/// let mut dedup = Deduplicator::in_memory(Options::default());
/// let first = dedup.insert(Article::new("a1", body))?;
/// let second = dedup.insert(Article::new("a2", body))?;
/// assert_eq!(first.kind, VerdictKind::Unique);
/// assert_eq!(second.kind, VerdictKind::ExactDuplicate);
/// assert_eq!(second.duplicate_of.unwrap().as_str(), "a1");
/// # Ok(())
/// # }
/// ```
///
/// The parameter says where the index is kept: in [`Memory`], or on disk in `Rocks` (feature `rocksdb`).
#[derive(Debug)]
pub struct Deduplicator<S = Memory> {
    engine: Engine,
    preparer: Preparer,
    store: S,
    /// Inserts so far: the position of the next article.
    inserted: u64,
}

/// The verdict that a text would get if it were inserted now.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// Unique or a duplicate.
    pub kind: VerdictKind,
    /// How the duplicate was found; none if it is unique.
    pub match_type: Option<MatchType>,
    /// The best match; none if it is unique.
    pub duplicate_of: Option<ArticleId>,
    /// Similarity to the best match, or to the closest article that does not match.
    pub similarity: Fraction,
    /// Share of the text that lies in that article.
    pub containment: Fraction,
    /// Probability that a person would agree.
    pub confidence: Fraction,
    /// The kind of content of the text.
    pub content_kind: ContentKind,
}

/// An indexed article that resembles another.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Similar {
    /// The indexed article.
    pub id: ArticleId,
    /// Its headline.
    pub title: Option<String>,
    /// Its site.
    pub host: Option<String>,
    /// How similar it is.
    pub similarity: Fraction,
    /// How the text asked about relates to it.
    pub relation: Relation,
}

impl Deduplicator {
    /// An empty index in memory. It is gone when the value is dropped.
    pub fn in_memory(options: Options) -> Deduplicator {
        let store = Memory::new(options.schemes.clone(), Durability::OwnWal);
        Deduplicator::with_store(options, store)
    }
}

#[cfg(feature = "rocksdb")]
impl Deduplicator<Rocks> {
    /// Opens the index in a directory, or creates it. What is inserted is written to its write-ahead log before the call
    /// returns.
    ///
    /// # Errors
    /// The directory is in use, was written with other settings, or cannot be read. It is never overwritten.
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<Deduplicator<Rocks>, Error> {
        let store = RocksOptions::new(options.schemes.clone(), Durability::OwnWal, Budget::default());
        let store = Rocks::open(directory.as_ref(), &store)?;
        let config = fingerprint::config_hash(&options.text);
        store.accepts_fingerprints(config, &directory.as_ref().display().to_string())?;
        Ok(Deduplicator::with_store(options, store))
    }
}

impl<S: Store> Deduplicator<S> {
    /// Judges an article and stores it. An id that is known already is an update: its old text leaves the index first.
    ///
    /// # Errors
    /// [`Error::Id`] and [`Error::Rejected`] concern this article alone. After [`Error::Index`] open the index again.
    pub fn insert(&mut self, article: Article) -> Result<Verdict, Error> {
        let raw = article.into_raw()?;
        let prepared = self.prepare(&raw)?;
        self.insert_prepared(prepared)
    }

    /// Judges and stores articles in their order. Fingerprints are made on all cores.
    ///
    /// # Errors
    /// One result for each article, as [`Deduplicator::insert`] gives it. After an [`Error::Index`] the rest is not
    /// attempted.
    pub fn insert_batch(
        &mut self,
        articles: impl IntoIterator<Item = Article>,
    ) -> Vec<Result<Verdict, Error>> {
        let raw: Vec<Result<RawArticle, Error>> = articles.into_iter().map(Article::into_raw).collect();
        let (preparer, position) = (&self.preparer, self.position());
        let prepared = parallel::map(&raw, |one| match one {
            Ok(raw) => preparer.prepare(raw, &position).map_err(rejected),
            Err(error) => Err(error.clone()),
        });
        let mut results = Vec::with_capacity(prepared.len());
        for one in prepared {
            let result = one.and_then(|prepared| self.insert_prepared(prepared));
            let broken = matches!(result, Err(Error::Index(_)));
            results.push(result);
            if broken {
                break;
            }
        }
        results
    }

    /// Replaces the text of a known article and judges it afresh. None if the id is not known: then nothing is stored.
    ///
    /// # Errors
    /// As [`Deduplicator::insert`].
    pub fn update(&mut self, article: Article) -> Result<Option<Verdict>, Error> {
        let raw = article.into_raw()?;
        if self.find(&raw.id)?.is_none() {
            return Ok(None);
        }
        let prepared = self.prepare(&raw)?;
        self.insert_prepared(prepared).map(Some)
    }

    /// Removes an article. False if the id is not known.
    ///
    /// # Errors
    /// [`Error::Index`]: open the index again.
    pub fn remove(&mut self, id: &str) -> Result<bool, Error> {
        let id = ArticleId::new(id).map_err(Error::Id)?;
        if self.find(&id)?.is_none() {
            return Ok(false);
        }
        self.run_one(Incoming::Delete(id))?;
        Ok(true)
    }

    /// True if an article with this id is indexed.
    ///
    /// # Errors
    /// As [`Deduplicator::remove`].
    pub fn contains(&self, id: &str) -> Result<bool, Error> {
        let id = ArticleId::new(id).map_err(Error::Id)?;
        Ok(self.find(&id)?.is_some())
    }

    /// Judges a text as if it were inserted now. Stores nothing.
    ///
    /// # Errors
    /// As [`Deduplicator::insert`].
    pub fn check(&self, text: impl Into<String>) -> Result<Answer, Error> {
        let prepared = self.prepare_text(text.into())?;
        let judged: Judged = self.judge(&prepared)?;
        Ok(Answer {
            kind: judged.verdict,
            match_type: judged.match_type,
            duplicate_of: judged.best.map(|best| best.document.id.clone()),
            similarity: judged.similarity,
            containment: judged.containment,
            confidence: judged.confidence,
            content_kind: prepared.content_kind,
        })
    }

    /// The indexed articles that resemble a text most, the most similar first, at most `limit`.
    ///
    /// # Errors
    /// As [`Deduplicator::check`].
    pub fn similar(&self, text: impl Into<String>, limit: usize) -> Result<Vec<Similar>, Error> {
        let prepared = self.prepare_text(text.into())?;
        let settings = self.engine.settings_for(prepared.language);
        let mut similar: Vec<Similar> = self
            .candidates(&prepared)?
            .all
            .into_iter()
            .map(|candidate| Similar {
                id: candidate.document.id.clone(),
                title: candidate.document.title.as_ref().map(|title| title.as_str().to_owned()),
                host: candidate.document.host.as_ref().map(|host| host.as_str().to_owned()),
                similarity: Fraction::new(settings.similarity(&candidate.comparison)),
                relation: candidate.comparison.relation,
            })
            .filter(|one| one.similarity.steps() > 0)
            .collect();
        similar.sort_by(|a, b| b.similarity.cmp(&a.similarity).then_with(|| a.id.cmp(&b.id)));
        similar.truncate(limit);
        Ok(similar)
    }

    /// Compares two texts under this index's settings, as if the older one were all that was seen before. Texts in different
    /// homes (see [`Deduplicator::home_of`]) are [`Relation::Different`], as they never meet in an index.
    ///
    /// # Errors
    /// [`Error::Rejected`]: a text is over the limit.
    pub fn compare(&self, older: &str, newer: &str) -> Result<Comparison, Error> {
        let (older, newer) = (self.prepare_text(older.to_owned())?, self.prepare_text(newer.to_owned())?);
        let settings = self.engine.settings_for(newer.language);
        let mut comparison = settings.compare_alone(&older.fingerprint, &newer.fingerprint);
        if older.language != newer.language {
            comparison.relation = Relation::Different;
        }
        Ok(comparison)
    }

    /// The home of a text: the language, or group of closely related languages, within which it is compared.
    ///
    /// # Errors
    /// [`Error::Rejected`]: the text is over the limit.
    pub fn home_of(&self, text: impl Into<String>) -> Result<Lang, Error> {
        Ok(self.prepare_text(text.into())?.language)
    }

    /// What of a text is compared, and the home in which it is.
    ///
    /// # Errors
    /// [`Error::Rejected`]: the text is over the limit.
    pub fn fingerprint(&self, text: impl Into<String>) -> Result<(Lang, fingerprint::Fingerprint), Error> {
        let prepared = self.prepare_text(text.into())?;
        Ok((prepared.language, prepared.fingerprint))
    }

    /// The settings that articles are judged by.
    pub fn settings(&self) -> &Settings {
        self.engine.settings()
    }

    fn position(&self) -> Position {
        Position::File { file: BoundedStr::new("library"), line: self.inserted + 1 }
    }

    fn prepare_text(&self, text: String) -> Result<Prepared, Error> {
        self.prepare(&Article::new("-", text).into_raw()?)
    }

    fn find(&self, id: &ArticleId) -> Result<Option<Document>, StoreError> {
        for language in self.store.languages_of(id)? {
            if let Some(number) = self.store.number_of(language, id)?
                && let Some(document) = self.store.document(language, number)?
            {
                return Ok(Some(document));
            }
        }
        Ok(None)
    }

    fn run_one(&mut self, incoming: Incoming) -> Result<Vec<Output>, StoreError> {
        let item = Item { position: self.position(), time: None, log_time: None, incoming };
        let plan = self.run(Batch { items: vec![item], ..Batch::default() })?;
        Ok(plan.decided.into_iter().flat_map(|decided| decided.outputs).collect())
    }
}

/// The same door for callers that bring their own store, prepared articles, positions and times. These methods name the
/// engine's inner types and change with them.
#[doc(hidden)]
impl<S: Store> Deduplicator<S> {
    /// The one place where options become an engine with its store.
    pub fn with_store(options: Options, store: S) -> Deduplicator<S> {
        let config = options.hash();
        let Options { text, settings, .. } = options;
        let engine = Engine::new(Settings { config, ..settings });
        Deduplicator { engine, preparer: Preparer::new(text), store, inserted: 0 }
    }

    /// Fingerprints an article.
    ///
    /// # Errors
    /// Its text is over the limit.
    pub fn prepare(&self, article: &RawArticle) -> Result<Prepared, Error> {
        self.preparer.prepare(article, &self.position()).map_err(rejected)
    }

    /// Judges a fingerprinted article and stores it.
    ///
    /// # Errors
    /// As [`Deduplicator::insert`].
    pub fn insert_prepared(&mut self, prepared: Prepared) -> Result<Verdict, Error> {
        self.store.ensure_language(prepared.language)?;
        let outputs = self.run_one(Incoming::Article(Box::new(prepared)))?;
        let verdict = outputs.into_iter().find_map(|output| match output {
            Output::Tagged(verdict) => Some(Ok(*verdict)),
            Output::DeadLetter(letter) => Some(Err(rejected(letter))),
            _ => None,
        });
        verdict.unwrap_or_else(|| {
            Err(Error::Rejected {
                reason: DeadLetterReason::Undeliverable,
                message: "the settings publish nothing for it".to_owned(),
            })
        })
    }

    /// Judges a fingerprinted article as if its id were new. Stores nothing.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn judge(&self, prepared: &Prepared) -> Result<Judged, StoreError> {
        self.engine.judge(&self.store, prepared, None)
    }

    /// The indexed articles that may match, compared.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn candidates(&self, prepared: &Prepared) -> Result<Candidates, StoreError> {
        self.engine.candidates(&self.store, prepared, None)
    }

    /// Decides a batch. Nothing is written until the caller applies the write set to [`Deduplicator::store_mut`].
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn plan(&self, batch: Batch) -> Result<(Plan, WriteSet), StoreError> {
        self.engine.plan(&self.store, batch)
    }

    /// Decides a batch and writes its changes to the index.
    ///
    /// # Errors
    /// The index cannot be read or written. Open it again.
    pub fn run(&mut self, batch: Batch) -> Result<Plan, StoreError> {
        self.inserted += batch.items.len() as u64;
        let (plan, write_set) = self.plan(batch)?;
        self.store.apply_own(write_set)?;
        Ok(plan)
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Makes fingerprints; it is a small value for other threads to clone.
    pub fn preparer(&self) -> Preparer {
        self.preparer.clone()
    }

    /// The index.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The index, for a caller that applies its plans itself.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }
}

fn rejected(letter: DeadLetter) -> Error {
    Error::Rejected { reason: letter.reason, message: letter.message }
}

/// Compares two texts with default settings: similarity, containment, the evidence and what it comes to. The second text
/// counts as the newer one.
///
/// ```
/// let comparison = samestory_engine::compare("one text about a ferry", "another text about a bridge");
/// assert!(!comparison.relation.is_duplicate());
/// ```
pub fn compare(older: &str, newer: &str) -> Comparison {
    let text = text::Options { max_raw_bytes: usize::MAX, max_bytes: usize::MAX, ..text::Options::DEFAULT };
    let dedup = Deduplicator::in_memory(Options { text, ..Options::default() });
    // No text is over the limit, and an index in memory cannot fail.
    dedup.compare(older, newer).unwrap_or_else(|_| {
        let empty = fingerprint::fingerprint("", language::row(Lang::UND), dedup.preparer.config());
        LanguageSettings::default().compare(&empty, &empty)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FERRY: &str = "The ferry between Saltmere and Gull Island will run again from Monday after six weeks of repairs, \
        the operator Northline said on Thursday. Engineers replaced both of the engines and a cracked propeller shaft at \
        the yard in Brackwater, at a cost of 2.4 million. About 900 islanders depend on the crossing, and many have paid \
        for small boats since the breakdown in September. Season tickets will be extended by 45 days.";
    const HARVEST: &str = "Growers in the eastern valleys expect the smallest apple harvest in nine years after frost in \
        April killed a third of the blossoms. The cooperative in Pellworth will pay its 140 members an advance, and the \
        ministry has promised loans. Cider makers say that prices will rise before winter.";

    fn edited() -> String {
        FERRY.replace("Thursday", "Friday evening").replace("many", "some")
    }

    #[test]
    fn an_edited_copy_is_a_near_duplicate_and_another_text_is_not() {
        let mut dedup = Deduplicator::in_memory(Options::default());
        assert_eq!(dedup.insert(Article::new("a1", FERRY)).unwrap().kind, VerdictKind::Unique);
        assert_eq!(dedup.insert(Article::new("b1", HARVEST)).unwrap().kind, VerdictKind::Unique);
        let copy = dedup.insert(Article::new("a2", edited())).unwrap();
        assert_eq!(copy.kind, VerdictKind::NearDuplicate);
        assert_eq!(copy.duplicate_of.unwrap().as_str(), "a1");
    }

    #[test]
    fn a_check_stores_nothing() {
        let mut dedup = Deduplicator::in_memory(Options::default());
        assert_eq!(dedup.check(FERRY).unwrap().kind, VerdictKind::Unique);
        assert_eq!(dedup.insert(Article::new("a1", FERRY)).unwrap().kind, VerdictKind::Unique);
        let answer = dedup.check(edited()).unwrap();
        assert_eq!((answer.kind, answer.duplicate_of.unwrap().as_str()), (VerdictKind::NearDuplicate, "a1"));
        assert_eq!(dedup.similar(edited(), 10).unwrap().len(), 1);
    }

    #[test]
    fn a_batch_gives_what_one_insert_after_the_other_gives() {
        let articles: Vec<Article> = (0..20)
            .map(|n| {
                Article::new(format!("a{n}"), if n % 3 == 0 { edited() } else { format!("{HARVEST} {n}") })
            })
            .chain([Article::new("", FERRY)])
            .collect();
        let mut one_by_one = Deduplicator::in_memory(Options::default());
        let expected: Vec<_> = articles.iter().cloned().map(|one| one_by_one.insert(one)).collect();
        assert_eq!(Deduplicator::in_memory(Options::default()).insert_batch(articles), expected);
        assert!(matches!(expected.last(), Some(Err(Error::Id(_)))));
    }

    #[test]
    fn a_removed_article_is_no_longer_a_match_and_an_update_needs_a_known_id() {
        let mut dedup = Deduplicator::in_memory(Options::default());
        assert_eq!(dedup.update(Article::new("a1", FERRY)).unwrap(), None);
        dedup.insert(Article::new("a1", FERRY)).unwrap();
        assert_eq!(dedup.update(Article::new("a1", HARVEST)).unwrap().unwrap().revision, 1);
        assert_eq!(dedup.check(FERRY).unwrap().kind, VerdictKind::Unique);
        assert!(dedup.remove("a1").unwrap());
        assert!(!dedup.remove("a1").unwrap());
        assert_eq!(dedup.check(HARVEST).unwrap().kind, VerdictKind::Unique);
    }

    #[test]
    fn a_text_over_the_limit_is_rejected_and_a_comparison_has_no_limit() {
        let mut options = Options::default();
        options.text.max_bytes = 100;
        let mut dedup = Deduplicator::in_memory(options);
        let rejected = dedup.insert(Article::new("a1", FERRY)).unwrap_err();
        assert!(matches!(rejected, Error::Rejected { .. }), "{rejected}");
        assert!(compare(FERRY, &edited()).relation.is_duplicate());
        assert!(!compare(FERRY, HARVEST).relation.is_duplicate());
        assert!(!compare("", "").relation.is_duplicate());
    }

    #[cfg(feature = "rocksdb")]
    #[test]
    fn an_index_on_disk_remembers_between_runs() {
        let directory = std::env::temp_dir().join(format!("samestory-engine-{}", std::process::id()));
        let mut dedup = Deduplicator::open(&directory, Options::default()).unwrap();
        dedup.insert(Article::new("a1", FERRY)).unwrap();
        drop(dedup);
        let mut again = Deduplicator::open(&directory, Options::default()).unwrap();
        let copy = again.insert(Article::new("a2", edited())).unwrap();
        assert_eq!(copy.duplicate_of.unwrap().as_str(), "a1");
        drop(again);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
