//! What an editor has said of pairs of articles: the same item, or not. It comes with the settings, as data, so that a verdict
//! stays a function of the articles before it.
//!
//! An article that was said to be the *same* as an earlier one is a duplicate of it, whatever the texts say, and joins its
//! cluster; of several such the earliest counts. One that was said to be *different* is compared with nothing in the other's
//! cluster, so it is no duplicate of it and does not join it. Where both are said of one cluster, *same* counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::index::{Document, StoreError, View};
use crate::model::{ArticleId, DocumentNumber, Fraction, MatchType, Verdict};

use super::batch::planner::Planner;
use super::candidates::{Candidate, Candidates};
use super::compare::Relation;
use super::judge::Judged;
use super::prepare::Prepared;

/// What was said of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bond {
    /// One item.
    Same,
    /// Two items.
    Different,
}

/// Why a pair cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BondError {
    /// There is nothing to say of it.
    #[error("both are the same article")]
    Itself,
    /// It was said to be the same before, and different now, or the other way round.
    #[error("the opposite was said of these two before")]
    Contradicted,
}

/// Pairs of articles that an editor has judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constraints {
    /// Both ways.
    bonds: BTreeMap<ArticleId, BTreeMap<ArticleId, Bond>>,
}

impl Constraints {
    /// Adds a pair. Said twice it counts once.
    ///
    /// # Errors
    /// It makes no sense, or contradicts what was said before.
    pub fn insert(&mut self, a: &ArticleId, b: &ArticleId, bond: Bond) -> Result<(), BondError> {
        if a == b {
            return Err(BondError::Itself);
        }
        for (one, other) in [(a, b), (b, a)] {
            let known = self.bonds.entry(one.clone()).or_default().insert(other.clone(), bond);
            if known.is_some_and(|known| known != bond) {
                return Err(BondError::Contradicted);
            }
        }
        Ok(())
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.bonds.values().map(BTreeMap::len).sum::<usize>() / 2
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.bonds.is_empty()
    }

    /// Tells these pairs from others.
    pub fn hash(&self) -> u64 {
        xxh3_64(format!("{:?}", self.bonds).as_bytes())
    }

    /// What was said of two articles.
    pub fn between(&self, a: &ArticleId, b: &ArticleId) -> Option<Bond> {
        self.bonds.get(a)?.get(b).copied()
    }

    /// What was said of an article and others.
    fn of(&self, id: &ArticleId) -> impl Iterator<Item = (&ArticleId, Bond)> {
        self.bonds.get(id).into_iter().flatten().map(|(other, &bond)| (other, bond))
    }
}

impl<V: View> Planner<'_, V> {
    /// Takes away the candidates that an editor has ruled out. Gives the article that is the same, if there is one.
    pub(super) fn constrain(
        &mut self,
        article: &Prepared,
        candidates: &mut Candidates,
    ) -> Result<Option<Document>, StoreError> {
        let mut same: Option<Document> = None;
        let mut apart: BTreeSet<DocumentNumber> = BTreeSet::new();
        for (other, bond) in self.engine.settings().constraints.of(&article.id) {
            let held = self.held(article.language, other)?;
            let Some(held) = held.filter(|held| self.is_live(held)) else { continue };
            match bond {
                Bond::Same if same.as_ref().is_some_and(|same| same.number < held.number) => {}
                Bond::Same => same = Some(held),
                Bond::Different => {
                    apart.insert(held.cluster);
                }
            }
        }
        let before = candidates.all.len();
        candidates.all.retain(|candidate| !apart.contains(&candidate.document.cluster));
        self.stats.reviewed += u64::from(same.is_some() || candidates.all.len() < before);
        Ok(same)
    }

    /// The verdict on an article that an editor calls the same as an earlier one. Equal texts need no editor.
    pub(super) fn reviewed(&self, article: &Prepared, same: Document, judged: Judged) -> Judged {
        let settings = self.engine.of(article.language);
        let comparison = settings.compare(&same.fingerprint, &article.fingerprint);
        let (verdict, match_type) = match comparison.relation {
            Relation::Exact => (Verdict::ExactDuplicate, MatchType::Exact),
            _ => (Verdict::NearDuplicate, MatchType::Reviewed),
        };
        let mut related = judged.related;
        related.retain(|related| related.id != same.id);
        Judged {
            verdict,
            match_type: Some(match_type),
            similarity: Fraction::new(settings.similarity(&comparison)),
            containment: Fraction::new(comparison.containment),
            confidence: Fraction::new(1.0),
            related,
            best: Some(Candidate { document: Arc::new(same), comparison }),
            ..judged
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(id: &str) -> ArticleId {
        ArticleId::new(id).unwrap()
    }

    #[test]
    fn a_pair_counts_both_ways_and_cannot_be_contradicted() {
        let mut constraints = Constraints::default();
        constraints.insert(&id("a"), &id("b"), Bond::Same).unwrap();
        constraints.insert(&id("b"), &id("a"), Bond::Same).unwrap();
        constraints.insert(&id("a"), &id("c"), Bond::Different).unwrap();
        assert_eq!(constraints.len(), 2);
        let of = |name: &str| {
            constraints.of(&id(name)).map(|(other, bond)| (other.to_string(), bond)).collect::<Vec<_>>()
        };
        assert_eq!(of("a"), [("b".to_owned(), Bond::Same), ("c".to_owned(), Bond::Different)]);
        assert_eq!(of("c"), [("a".to_owned(), Bond::Different)]);
        assert_eq!(constraints.insert(&id("b"), &id("a"), Bond::Different), Err(BondError::Contradicted));
        assert_eq!(constraints.insert(&id("a"), &id("a"), Bond::Same), Err(BondError::Itself));
    }
}
