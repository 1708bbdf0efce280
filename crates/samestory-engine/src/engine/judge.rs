//! One article → its verdict: the rows of the verdict table, over all candidates.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::index::{OutputTopic, StoreError, View};
use crate::model::{Contribution, Related, RelationKind};
use crate::model::{EventTime, Fraction, MatchType, Verdict};

use super::candidates::{Candidate, Candidates};
use super::compare::confidence;
use super::compare::evidence::Evidence;
use super::compare::{Comparison, Relation};
use super::settings::{Algorithm, LanguageSettings};
use super::{Engine, Prepared};

/// Related articles that are named, at most.
const RELATED: usize = 5;

/// What an article is to those seen before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What it is.
    pub verdict: Verdict,
    /// How a duplicate was told.
    pub match_type: Option<MatchType>,
    /// What it is a duplicate of.
    pub best: Option<Candidate>,
    /// Similarity to the best match, or to the closest candidate that did not match.
    pub similarity: Fraction,
    /// Share of the article that lies in that one.
    pub containment: Fraction,
    /// Probability that a person would agree.
    pub confidence: Fraction,
    /// What it has to do with without being a copy.
    pub related: Vec<Related>,
    /// What was measured about the best match, or the closest candidate that did not match.
    pub evidence: Option<Evidence>,
    /// Whether it holds several earlier articles.
    pub digest: bool,
    /// Whether a match may have been missed.
    pub capped: bool,
    /// How many documents it was compared with.
    pub candidates: u64,
    /// How many buckets held more than is examined.
    pub capped_buckets: u64,
}

impl Judged {
    /// Where the verdict is published.
    pub fn outlet(&self) -> OutputTopic {
        match self.verdict {
            Verdict::Unique => OutputTopic::Unique,
            Verdict::NearDuplicate | Verdict::ExactDuplicate => OutputTopic::NearDuplicate,
        }
    }
}

impl Judged {
    /// What each measure contributes to the verdict; nothing under an algorithm that adds up no evidence.
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
    /// Judges one article against the state, as if its id had never been seen. Nothing is stored.
    ///
    /// # Errors
    /// The state could not be read.
    pub fn judge(
        &self,
        state: &impl View,
        article: &Prepared,
        horizon: Option<EventTime>,
    ) -> Result<Judged, StoreError> {
        Ok(self.judge_among(article, self.candidates(state, article, horizon)?))
    }

    /// Judges one article among its candidates.
    pub(super) fn judge_among(&self, article: &Prepared, candidates: Candidates) -> Judged {
        let settings = self.of(article.language);
        let Candidates { all, digest, capped, capped_buckets } = candidates;
        let candidates = all.len() as u64;
        // Most evidence first; between equals the lowest number.
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
            Some((Relation::Exact, _)) => (Verdict::ExactDuplicate, Some(MatchType::Exact)),
            Some((Relation::Near | Relation::Rewritten, best)) if is_part(best, &all) => {
                (Verdict::NearDuplicate, Some(MatchType::Partial))
            }
            Some((Relation::Near, _)) => (Verdict::NearDuplicate, Some(MatchType::Near)),
            Some((Relation::Rewritten, _)) => (Verdict::NearDuplicate, Some(MatchType::Rewritten)),
            Some(_) => (Verdict::NearDuplicate, Some(MatchType::Partial)),
            None => (Verdict::Unique, None),
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

/// Whether the article is a part of most copies in its best match's cluster. Half of an article may be most like another
/// half of it that came before; what a reader wants to be told is still that half is missing. That it lies inside a page
/// with something else around it is nothing new of a whole one.
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

/// What the article extends, the most complete first, then whose template it shares, the most similar first. Of a
/// cluster one is named, and none of the article's own: they are known from there.
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
