//! Judges one article: turns its candidates into a verdict.
//!
//! `candidates` supplies the compared documents and `batch` stores the result. A verdict depends only on the
//! article, the settings and the candidates; ties go to the lowest document number, so it is deterministic.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::index::{OutputTopic, StoreError, View};
use crate::model::{Contribution, Related, RelationKind};
use crate::model::{EventTime, Fraction, MatchType, VerdictKind};

use super::candidates::{Candidate, Candidates};
use super::compare::confidence;
use super::compare::evidence::Evidence;
use super::compare::{Comparison, Relation};
use super::settings::{Algorithm, LanguageSettings};
use super::{Engine, Prepared};

/// How many related articles a verdict names, at most.
const RELATED: usize = 5;

/// The verdict on an article, with everything that led to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Unique, near-duplicate or exact duplicate.
    pub verdict: VerdictKind,
    /// How a duplicate was recognised; `None` if the article is unique.
    pub match_type: Option<MatchType>,
    /// The document that it duplicates.
    pub best: Option<Candidate>,
    /// Similarity to the best match, or to the closest candidate that did not match.
    pub similarity: Fraction,
    /// Containment of the article in that document.
    pub containment: Fraction,
    /// Probability that a human editor would agree with the verdict.
    pub confidence: Fraction,
    /// Articles that it is related to without being a copy of them.
    pub related: Vec<Related>,
    /// The measures for the best match, or for the closest candidate that did not match.
    pub evidence: Option<Evidence>,
    /// True if the article is a digest, one that contains several earlier articles.
    pub digest: bool,
    /// True if a match may have been missed because a bucket was capped.
    pub capped: bool,
    /// How many documents the article was compared with.
    pub candidates: u64,
    /// How many buckets held more documents than are examined.
    pub capped_buckets: u64,
}

impl Judged {
    /// The topic that the verdict is published to.
    pub fn outlet(&self) -> OutputTopic {
        match self.verdict {
            VerdictKind::Unique => OutputTopic::Unique,
            VerdictKind::NearDuplicate | VerdictKind::ExactDuplicate => OutputTopic::NearDuplicate,
        }
    }
}

impl Judged {
    /// The contribution of each measure to the verdict; empty unless the algorithm is `combined`.
    pub fn contributions(&self, settings: &LanguageSettings) -> Vec<Contribution> {
        match &self.evidence {
            Some(evidence) if settings.algorithm == Algorithm::Combined => {
                settings.weights.contributions(evidence)
            }
            _ => Vec::new(),
        }
    }
}

impl Engine {
    /// Judges an article against the index as if its id were new. Stores nothing.
    ///
    /// # Errors
    /// The index could not be read.
    pub fn judge(
        &self,
        state: &impl View,
        article: &Prepared,
        horizon: Option<EventTime>,
    ) -> Result<Judged, StoreError> {
        Ok(self.judge_among(article, self.candidates(state, article, horizon)?))
    }

    /// Judges an article against candidates that have already been compared.
    pub(super) fn judge_among(&self, article: &Prepared, candidates: Candidates) -> Judged {
        let settings = self.settings_for(article.language);
        let Candidates { all, digest, capped, capped_buckets } = candidates;
        let candidates = all.len() as u64;
        // Strongest evidence wins; ties go to the lowest document number.
        let rank = |candidate: &Candidate| {
            let pair = &candidate.comparison;
            let similarity = Fraction::new(settings.similarity(pair));
            (
                pair.relation == Relation::Exact,
                pair.confidence,
                similarity,
                Reverse(candidate.document.number),
            )
        };
        let best = all
            .iter()
            .filter(|candidate| candidate.comparison.relation.is_duplicate())
            .max_by_key(|candidate| rank(candidate));
        let closest = best.or_else(|| all.iter().max_by_key(|candidate| rank(candidate)));
        let pair = closest.map(|candidate| candidate.comparison);
        let (verdict, match_type) = match best.map(|best| (best.comparison.relation, best)) {
            Some((Relation::Exact, _)) => (VerdictKind::ExactDuplicate, Some(MatchType::Exact)),
            Some((Relation::Near | Relation::Rewritten, best)) if is_part(best, &all) => {
                (VerdictKind::NearDuplicate, Some(MatchType::Partial))
            }
            Some((Relation::Near, _)) => (VerdictKind::NearDuplicate, Some(MatchType::Near)),
            Some((Relation::Rewritten, _)) => (VerdictKind::NearDuplicate, Some(MatchType::Rewritten)),
            Some(_) => (VerdictKind::NearDuplicate, Some(MatchType::Partial)),
            None => (VerdictKind::Unique, None),
        };
        Judged {
            verdict,
            match_type,
            similarity: Fraction::new(pair.map_or(0.0, |pair| settings.similarity(&pair))),
            containment: Fraction::new(pair.map_or(0.0, |pair| pair.containment)),
            confidence: match best {
                Some(best) => best.comparison.confidence,
                None => confidence::of_unique(&all),
            },
            related: related(&all, best, settings),
            best: best.cloned(),
            evidence: pair.map(|pair| pair.evidence),
            digest,
            capped,
            candidates,
            capped_buckets,
        }
    }
}

/// True if the article is part of most of the copies in its best match's cluster.
///
/// Half of an article may resemble another half that came earlier more than it resembles the whole; readers
/// still want to know that half of the text is missing. The opposite does not count: a complete article that
/// is embedded in a longer page is still complete.
fn is_part(best: &Candidate, all: &[Candidate]) -> bool {
    let copies = all.iter().filter(|other| {
        other.document.cluster == best.document.cluster && other.comparison.relation.is_duplicate()
    });
    let is_part =
        |pair: &Comparison| pair.relation == Relation::Partial && pair.containment > pair.containment_of_old;
    let (parts, all) =
        copies.fold((0, 0), |(parts, all), copy| (parts + u32::from(is_part(&copy.comparison)), all + 1));
    2 * parts > all
}

/// Related articles: first those that this one extends, by containment, then the other relations, by
/// similarity. Each cluster is named once, and the article's own cluster is left out because its members are
/// already known from there.
fn related(all: &[Candidate], best: Option<&Candidate>, settings: &LanguageSettings) -> Vec<Related> {
    let mut ranked: Vec<_> = all
        .iter()
        .filter_map(|candidate| {
            let similarity = Fraction::new(settings.similarity(&candidate.comparison));
            let (relation, score) = match candidate.comparison.relation {
                Relation::Extends => {
                    (RelationKind::Extends, Fraction::new(candidate.comparison.containment_of_old))
                }
                Relation::SameTemplate => (RelationKind::SameTemplate, similarity),
                Relation::FollowUp => (RelationKind::FollowUp, similarity),
                Relation::SameFurniture => (RelationKind::SameFurniture, similarity),
                _ => return None,
            };
            Some(((relation, Reverse(score), candidate.document.number), candidate, similarity))
        })
        .collect();
    ranked.sort_unstable_by_key(|(rank, ..)| *rank);
    let mut clusters: BTreeSet<_> = best.iter().map(|best| best.document.cluster).collect();
    ranked
        .into_iter()
        .filter(|(_, candidate, _)| clusters.insert(candidate.document.cluster))
        .take(RELATED)
        .map(|((relation, ..), candidate, similarity)| Related {
            id: candidate.document.id.clone(),
            relation,
            similarity,
        })
        .collect()
}
