//! Runs labelled articles through the engine, in order and in memory. The report, the evidence table and
//! tuning start from its results.

use std::collections::{BTreeMap, BTreeSet};

use samestory_engine::engine::Prepared;
use samestory_engine::model::RawArticle;
use samestory_engine::{
    Deduplicator, Error, Fraction, Lang, MatchType, Options as EngineOptions, Related, RelationKind,
    StoreError, Verdict, VerdictKind, parallel,
};

use super::labelled::Set;

/// How the run differs from judging the articles as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
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
    /// True if it is too short to be compared other than word for word.
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

/// Fingerprints a set on all cores; `None` for an article that cannot be judged.
pub fn prepare(dedup: &Deduplicator, set: &Set, options: RunOptions) -> Vec<Option<Prepared>> {
    parallel::map(&set.articles, |labelled| {
        let language = labelled.article.language.clone().filter(|_| !options.ignore_language);
        dedup.prepare(&RawArticle { language, ..labelled.article.clone() }).ok()
    })
}

/// Judges a set. An article that contains others completely (`embedded`) is judged in its turn but not
/// stored: otherwise those would rightly match it, and count as wrong.
///
/// # Errors
/// The state could not be read; that is a bug, because it is in memory.
pub fn run(engine_options: &EngineOptions, set: &Set, options: RunOptions) -> Result<Run, StoreError> {
    let mut dedup = Deduplicator::in_memory(engine_options.clone());
    let indices: BTreeMap<&str, usize> =
        set.articles.iter().enumerate().map(|(at, one)| (one.article.id.as_str(), at)).collect();
    let index_of = |id: &str| indices.get(id).copied();
    let in_pairs: BTreeSet<usize> = set.pairs.iter().map(|pair| pair.new).collect();
    let mut verified: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut outcomes: Vec<Option<Outcome>> = Vec::with_capacity(set.articles.len());
    for (at, prepared) in prepare(&dedup, set, options).into_iter().enumerate() {
        let Some(prepared) = prepared else {
            outcomes.push(None);
            continue;
        };
        let short = prepared.fingerprint.tokens < engine_options.language(prepared.language).rules.min_tokens;
        if in_pairs.contains(&at) {
            let candidates = dedup.candidates(&prepared)?.all;
            let copies = candidates.iter().filter(|candidate| candidate.comparison.relation.is_duplicate());
            verified.extend(copies.filter_map(|copy| Some((index_of(copy.document.id.as_str())?, at))));
        }
        if set.articles[at].kind == "embedded" {
            let judged = dedup.judge(&prepared)?;
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
        let outcome = insert(&mut dedup, &prepared)?.map(|verdict| Outcome {
            verdict: verdict.kind,
            match_type: verdict.match_type,
            duplicate_of: verdict.duplicate_of.as_ref().and_then(|id| index_of(id.as_str())),
            similarity: verdict.similarity,
            confidence: verdict.confidence,
            language: verdict.language,
            cluster: Some(verdict.cluster.to_string()),
            short,
            related: related(&verdict.related, index_of),
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

/// Judges an article and stores it; `None` if nothing is published for it.
pub(crate) fn insert(dedup: &mut Deduplicator, article: &Prepared) -> Result<Option<Verdict>, StoreError> {
    match dedup.insert_prepared(article.clone()) {
        Ok(verdict) => Ok(Some(verdict)),
        Err(Error::Index(error)) => Err(error),
        Err(_) => Ok(None),
    }
}

fn related(all: &[Related], index_of: impl Fn(&str) -> Option<usize>) -> Vec<(usize, RelationKind)> {
    all.iter().filter_map(|one| Some((index_of(one.id.as_str())?, one.relation))).collect()
}
