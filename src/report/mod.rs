//! A page that a person can look at: which texts were taken for the same, most doubtful first, side by side.
//!
//! While articles are judged, only who was matched with whom is collected, and no more than will be shown. Texts are
//! read again from their files at the end; what came through a pipe is kept, up to a limit.

mod page;
mod pair;
mod texts;
mod words;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use serde_json::value::RawValue;

use samestory_engine::engine::{Output, Plan};
use samestory_engine::index::{StoreError, View};
use samestory_engine::model::{ArticleId, ClusterId, Fraction, Lang, MatchType, Position};
use samestory_engine::model::{RelationKind, Tagged};
use samestory_engine::text::Options;
use samestory_engine::text::language::home;

use crate::files::Summary;
use crate::files::stage::InputSpec;
use texts::Texts;

/// Clusters on the page.
const CLUSTERS: usize = 150;
/// Pairs that are collected so that their clusters can be shown: the most doubtful ones.
const PAIRS: usize = 600;
/// Pairs of a cluster whose texts stand side by side.
const PAIRS_IN_CLUSTER: usize = 4;
/// Word-for-word copies that are listed.
const COPIES: usize = 2000;
/// Pairs that look alike and are not copies.
const RELATED: usize = 50;

/// What two articles are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Near,
    Partial,
    Exact,
    Rewritten,
    SameTemplate,
    FollowUp,
    SameFurniture,
    Extends,
}

/// An article in a pair, and where its text is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Side {
    id: ArticleId,
    position: Position,
}

/// Two articles that were compared. Ordered by doubt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    confidence: Fraction,
    order: u64,
    kind: Kind,
    language: Lang,
    cluster: ClusterId,
    similarity: Fraction,
    containment: Fraction,
    old: Side,
    new: Side,
}

/// The pairs with the least confidence, and how many there were.
#[derive(Debug, Default)]
struct Doubtful {
    heap: BinaryHeap<Pair>,
    seen: u64,
}

impl Doubtful {
    fn add(&mut self, pair: Pair, cap: usize) {
        self.seen += 1;
        self.heap.push(pair);
        if self.heap.len() > cap {
            self.heap.pop();
        }
    }
}

/// Collects what the page will show.
#[derive(Debug)]
pub struct Report {
    near: Doubtful,
    related: Doubtful,
    copies: Vec<Pair>,
    order: u64,
    kept: Texts,
}

/// A cluster on the page: its pairs, most doubtful first, and how many of its copies are the same word for word.
struct Card<'a> {
    pairs: Vec<&'a Pair>,
    copies: Vec<&'a Pair>,
    id: &'a ClusterId,
}

impl Report {
    /// An empty one. Texts that come through a pipe are kept where there is one.
    pub fn new(reading: &InputSpec) -> Report {
        Report {
            near: Doubtful::default(),
            related: Doubtful::default(),
            copies: Vec::new(),
            order: 0,
            kept: Texts::new(reading),
        }
    }

    /// Takes in what was decided about a batch that the state now knows of.
    pub(crate) fn add(
        &mut self,
        plan: &Plan,
        articles: &[Option<Box<RawValue>>],
        state: &impl View,
    ) -> Result<(), StoreError> {
        for (decided, article) in plan.decided.iter().zip(articles) {
            let tagged = decided.outputs.iter().find_map(|output| match output {
                Output::Tagged(tagged) => Some(tagged),
                _ => None,
            });
            let Some(tagged) = tagged else { continue };
            if let Some(article) = article {
                self.kept.keep(&tagged.input, article);
            }
            self.add_tagged(tagged, state)?;
        }
        Ok(())
    }

    fn add_tagged(&mut self, tagged: &Tagged, state: &impl View) -> Result<(), StoreError> {
        let kind = match tagged.match_type {
            Some(MatchType::Near | MatchType::Reviewed) => Some(Kind::Near),
            Some(MatchType::Partial) => Some(Kind::Partial),
            Some(MatchType::Rewritten) => Some(Kind::Rewritten),
            Some(MatchType::Exact) => Some(Kind::Exact),
            // The same article again is nothing to look at.
            Some(MatchType::SameArticle) | None => None,
        };
        if let (Some(kind), Some(old)) = (kind, &tagged.duplicate_of)
            && let Some(pair) = self.pair(tagged, kind, old, tagged.similarity, state)?
        {
            match kind {
                Kind::Exact if self.copies.len() < COPIES => self.copies.push(pair),
                Kind::Exact => {}
                _ => self.near.add(pair, PAIRS),
            }
        }
        for related in &tagged.related {
            let kind = match related.relation {
                RelationKind::Extends => Kind::Extends,
                RelationKind::SameTemplate => Kind::SameTemplate,
                RelationKind::FollowUp => Kind::FollowUp,
                RelationKind::SameFurniture => Kind::SameFurniture,
            };
            if let Some(pair) = self.pair(tagged, kind, &related.id, related.similarity, state)? {
                self.related.add(pair, RELATED);
            }
        }
        Ok(())
    }

    /// The pair, unless the earlier article is forgotten by now.
    fn pair(
        &mut self,
        tagged: &Tagged,
        kind: Kind,
        old: &ArticleId,
        similarity: Fraction,
        state: &impl View,
    ) -> Result<Option<Pair>, StoreError> {
        let Some(number) = state.number_of(home(tagged.language), old)? else { return Ok(None) };
        let Some(document) = state.document(home(tagged.language), number)? else { return Ok(None) };
        self.order += 1;
        Ok(Some(Pair {
            confidence: tagged.confidence,
            order: self.order,
            kind,
            language: tagged.language,
            cluster: tagged.cluster.clone(),
            similarity,
            containment: tagged.containment,
            old: Side { id: old.clone(), position: document.position },
            new: Side { id: tagged.id.clone(), position: tagged.input.clone() },
        }))
    }

    /// The page, as HTML. Texts of an input that cannot be read again are missing.
    pub fn render(self, summary: &Summary, reading: &InputSpec, options: &Options) -> String {
        let near = self.near.heap.into_sorted_vec();
        let related = self.related.heap.into_sorted_vec();
        let cards = cards(&near, &self.copies);
        let wanted =
            cards.iter().flat_map(Card::sides).chain(related.iter().flat_map(|pair| [&pair.old, &pair.new]));
        let texts = self.kept.load(wanted, reading, options);
        let page = page::Page {
            summary,
            cards: &cards,
            related: &related,
            related_seen: self.related.seen,
            hidden_pairs: self.near.seen - cards.iter().map(|card| card.pairs.len() as u64).sum::<u64>(),
            texts: &texts,
        };
        page.render()
    }
}

impl Card<'_> {
    /// Articles whose text is shown. Of word-for-word copies one text says it all.
    fn sides(&self) -> impl Iterator<Item = &Side> {
        let pairs = self.pairs.iter().take(PAIRS_IN_CLUSTER).flat_map(|pair| [&pair.old, &pair.new]);
        pairs.chain(self.copies.iter().take(COPIES_IN_CLUSTER).flat_map(|pair| [&pair.old, &pair.new]))
    }
}

/// Word-for-word copies of a cluster that are listed.
const COPIES_IN_CLUSTER: usize = 12;

/// Clusters in order of their most doubtful pair; those of word-for-word copies alone at the end.
fn cards<'a>(near: &'a [Pair], copies: &'a [Pair]) -> Vec<Card<'a>> {
    let mut clusters: BTreeMap<&ClusterId, Card<'a>> = BTreeMap::new();
    let card = |id| Card { pairs: Vec::new(), copies: Vec::new(), id };
    for pair in near {
        clusters.entry(&pair.cluster).or_insert_with(|| card(&pair.cluster)).pairs.push(pair);
    }
    for pair in copies {
        clusters.entry(&pair.cluster).or_insert_with(|| card(&pair.cluster)).copies.push(pair);
    }
    let mut cards: Vec<Card<'a>> = clusters.into_values().collect();
    // By doubt; where there is none, the largest first, and then as they came.
    cards.sort_by_key(|card| {
        let first = card.pairs.first().or(card.copies.first()).map(|pair| pair.order);
        (
            card.pairs.first().map_or(Fraction::WHOLE + 1, |pair| pair.confidence.steps()),
            Reverse(card.copies.len()),
            first,
        )
    });
    cards.truncate(CLUSTERS);
    cards
}
