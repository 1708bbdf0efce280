//! Runs labelled articles through the engine, in order and in memory. The report, the evidence table and
//! tuning start from its results.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use samestory_engine::Options as EngineOptions;
use samestory_engine::engine::{Batch, Engine, Incoming, Item, Output, Plan, Prepared, Preparer};
use samestory_engine::index::{Durability, Memory, Store, StoreError};
use samestory_engine::model::{BoundedStr, Fraction, Lang, MatchType, Position, VerdictKind};
use samestory_engine::model::{RawArticle, RelationKind};

use super::labelled::Set;

/// How the run differs from judging the articles as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Withhold the declared language from the engine.
    pub ignore_language: bool,
}

/// The engine's verdict on one article. Other articles are named by their index in the set.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The verdict.
    pub verdict: VerdictKind,
    /// How a duplicate matches.
    pub match_type: Option<MatchType>,
    /// The best match.
    pub duplicate_of: Option<usize>,
    /// Similarity to it.
    pub similarity: Fraction,
    /// Confidence of the verdict.
    pub confidence: Fraction,
    /// The language it was judged in.
    pub language: Lang,
    /// Its cluster; `None` if the article was judged but not stored.
    pub cluster: Option<String>,
    /// Whether it is too short to be compared other than word for word.
    pub short: bool,
    /// The articles it is related to.
    pub related: Vec<(usize, RelationKind)>,
}

/// The engine's verdicts on a set.
#[derive(Clone, Debug)]
pub struct Run {
    /// In the set's order; `None` if the article could not be judged.
    pub outcomes: Vec<Option<Outcome>>,
    /// For each pair of the set, whether the engine brought the two together: by a verified match or in one
    /// cluster.
    pub together: Vec<bool>,
}

/// Fingerprints a set on all cores.
pub fn prepare(engine_options: &EngineOptions, set: &Set, options: Options) -> Vec<Option<Prepared>> {
    let preparer = Preparer::new(engine_options.text);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = set.articles.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> = set
            .articles
            .chunks(share)
            .map(|part| {
                scope.spawn(move || {
                    let all = part.iter().map(|labelled| {
                        let language = labelled.article.language.clone().filter(|_| !options.ignore_language);
                        let article = RawArticle { language, ..labelled.article.clone() };
                        preparer.prepare(&article, &position(0)).ok()
                    });
                    all.collect::<Vec<_>>()
                })
            })
            .collect();
        // If a part panicked, its articles count as not judged.
        let mut all = Vec::with_capacity(set.articles.len());
        for (part, chunk) in parts.into_iter().zip(set.articles.chunks(share)) {
            all.extend(part.join().unwrap_or_else(|_| vec![None; chunk.len()]));
        }
        all
    })
}

/// Judges a set. An article that contains others completely (`embedded`) is judged in its turn but not
/// stored: otherwise those would rightly match it, and count as wrong.
///
/// # Errors
/// The state could not be read; that is a bug, because it is in memory.
pub fn run(engine_options: &EngineOptions, set: &Set, options: Options) -> Result<Run, StoreError> {
    let engine = Engine::new(engine_options.settings.clone());
    let mut store = Memory::new(engine_options.schemes.clone(), Durability::OwnWal);
    let indices: BTreeMap<&str, usize> =
        set.articles.iter().enumerate().map(|(at, one)| (one.article.id.as_str(), at)).collect();
    let index_of = |id: &str| indices.get(id).copied();
    let in_pairs: BTreeSet<usize> = set.pairs.iter().map(|pair| pair.new).collect();
    let mut verified: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut outcomes: Vec<Option<Outcome>> = Vec::with_capacity(set.articles.len());
    for (at, prepared) in prepare(engine_options, set, options).into_iter().enumerate() {
        let Some(prepared) = prepared else {
            outcomes.push(None);
            continue;
        };
        let short = prepared.fingerprint.tokens < engine_options.language(prepared.language).rules.min_tokens;
        if in_pairs.contains(&at) {
            let candidates = engine.candidates(&store, &prepared, None)?.all;
            let copies = candidates.iter().filter(|candidate| candidate.comparison.relation.is_duplicate());
            verified.extend(copies.filter_map(|copy| Some((index_of(copy.document.id.as_str())?, at))));
        }
        if set.articles[at].kind == "embedded" {
            let judged = engine.judge(&store, &prepared, None)?;
            outcomes.push(Some(Outcome {
                verdict: judged.verdict,
                match_type: judged.match_type,
                duplicate_of: judged.best.and_then(|best| index_of(best.document.id.as_str())),
                similarity: judged.similarity,
                confidence: judged.confidence,
                language: prepared.language,
                cluster: None,
                short,
                related: related(&judged.related, index_of),
            }));
            continue;
        }
        let plan = judge_and_store(&engine, &mut store, prepared)?;
        let outcome = plan.outputs().find_map(|output| match output {
            Output::Tagged(tagged) => Some(Outcome {
                verdict: tagged.kind,
                match_type: tagged.match_type,
                duplicate_of: tagged.duplicate_of.as_ref().and_then(|id| index_of(id.as_str())),
                similarity: tagged.similarity,
                confidence: tagged.confidence,
                language: tagged.language,
                cluster: Some(tagged.cluster.to_string()),
                short,
                related: related(&tagged.related, index_of),
            }),
            _ => None,
        });
        outcomes.push(outcome);
    }
    let cluster = |at: usize| outcomes.get(at)?.as_ref()?.cluster.as_ref();
    let together = set.pairs.iter().map(|pair| {
        verified.contains(&(pair.old, pair.new))
            || cluster(pair.old).is_some() && cluster(pair.old) == cluster(pair.new)
    });
    Ok(Run { together: together.collect(), outcomes })
}

/// Judges an article and stores it.
pub(crate) fn judge_and_store(
    engine: &Engine,
    store: &mut Memory,
    article: Prepared,
) -> Result<Plan, StoreError> {
    store.ensure_language(article.language)?;
    let item = Item {
        position: position(0),
        time: None,
        log_time: None,
        incoming: Incoming::Article(Box::new(article)),
    };
    let (plan, write_set) = engine.plan(store, Batch { items: vec![item], ..Batch::default() })?;
    store.apply_own(write_set)?;
    Ok(plan)
}

fn related(
    all: &[samestory_engine::model::Related],
    index_of: impl Fn(&str) -> Option<usize>,
) -> Vec<(usize, RelationKind)> {
    all.iter().filter_map(|one| Some((index_of(one.id.as_str())?, one.relation))).collect()
}

fn position(line: u64) -> Position {
    Position::File { file: BoundedStr::new("labelled"), line }
}
