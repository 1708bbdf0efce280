//! Editorial constraints: pairs of articles that an editor has declared the same item or different items.
//!
//! They arrive with the settings, as data, so a verdict stays a function of the articles before it.
//! [`Planner`] applies them between the candidate lookup and the judgement.
//!
//! An article declared the *same* as an earlier one is a duplicate of it, whatever the texts say, and joins
//! its cluster; if there are several, the earliest wins. An article declared *different* from another is
//! compared with nothing in that article's cluster, so it is not a duplicate of any member and does not join.
//! If both apply to one cluster, *same* wins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::index::{Document, StoreError, View};
use crate::model::{ArticleId, DocumentNumber, Fraction, MatchType, VerdictKind};

use super::batch::planner::Planner;
use super::candidates::{Candidate, Candidates};
use super::compare::Relation;
use super::judge::Judged;
use super::prepare::Prepared;

/// An editor's ruling on a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bond {
    /// Both articles are the same item.
    Same,
    /// The articles are different items.
    Different,
}

/// Why a pair is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BondError {
    /// The pair names one article twice.
    #[error("both are the same article")]
    Itself,
    /// The opposite ruling on this pair exists.
    #[error("this pair already has the opposite ruling")]
    Contradicted,
}

/// The pairs of articles that an editor has judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constraints {
    /// Symmetric: each pair is stored under both ids.
    bonds: BTreeMap<ArticleId, BTreeMap<ArticleId, Bond>>,
}

impl Constraints {
    /// Adds a pair. Adding the same ruling again has no effect.
    ///
    /// # Errors
    /// The pair names one article twice, or contradicts an earlier ruling.
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

    /// The number of pairs.
    pub fn len(&self) -> usize {
        self.bonds.values().map(BTreeMap::len).sum::<usize>() / 2
    }

    /// True if there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.bonds.is_empty()
    }

    /// A hash of all pairs; it changes whenever a ruling does.
    pub fn hash(&self) -> u64 {
        xxh3_64(format!("{:?}", self.bonds).as_bytes())
    }

    /// The ruling on two articles, if there is one.
    pub fn between(&self, a: &ArticleId, b: &ArticleId) -> Option<Bond> {
        self.bonds.get(a)?.get(b).copied()
    }

    /// All rulings that involve an article.
    fn rulings(&self, id: &ArticleId) -> impl Iterator<Item = (&ArticleId, Bond)> {
        self.bonds.get(id).into_iter().flatten().map(|(other, &bond)| (other, bond))
    }
}

impl<V: View> Planner<'_, V> {
    /// Removes the candidates that an editor has ruled out. Returns the earlier article that an editor
    /// declared the same, if there is one.
    pub(super) fn constrain(
        &mut self,
        article: &Prepared,
        candidates: &mut Candidates,
    ) -> Result<Option<Document>, StoreError> {
        let mut same: Option<Document> = None;
        let mut apart: BTreeSet<DocumentNumber> = BTreeSet::new();
        for (other, bond) in self.engine.settings().constraints.rulings(&article.id) {
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

    /// The verdict on an article that an editor declared the same as an earlier one. Equal texts stay an
    /// exact duplicate: they need no editor.
    pub(super) fn reviewed(&self, article: &Prepared, same: Document, judged: Judged) -> Judged {
        let settings = self.engine.settings_for(article.language);
        let comparison = settings.compare(&same.fingerprint, &article.fingerprint);
        let (verdict, match_type) = match comparison.relation {
            Relation::Exact => (VerdictKind::ExactDuplicate, MatchType::Exact),
            _ => (VerdictKind::NearDuplicate, MatchType::Reviewed),
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
        let rulings = |name: &str| {
            constraints.rulings(&id(name)).map(|(other, bond)| (other.to_string(), bond)).collect::<Vec<_>>()
        };
        assert_eq!(rulings("a"), [("b".to_owned(), Bond::Same), ("c".to_owned(), Bond::Different)]);
        assert_eq!(rulings("c"), [("a".to_owned(), Bond::Different)]);
        assert_eq!(constraints.insert(&id("b"), &id("a"), Bond::Different), Err(BondError::Contradicted));
        assert_eq!(constraints.insert(&id("a"), &id("a"), Bond::Same), Err(BondError::Itself));
    }
}
