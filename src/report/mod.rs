//! The HTML report of a run over files: matched articles side by side, the least certain matches first.
//!
//! During the run, `Report::add` collects only the pairs that the page can show, never their texts. At the
//! end, `texts` reads the texts again from their files; articles from a pipe are kept in memory up to a
//! limit.

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
use samestory_engine::model::{RelationKind, Verdict};
use samestory_engine::text::Options;
use samestory_engine::text::language::home;

use crate::files::Summary;
use crate::files::stage::InputSpec;
use texts::Texts;

/// Clusters on the page.
const CLUSTERS: usize = 150;
/// Near-duplicate pairs collected for those clusters: the ones with the least confidence.
const PAIRS: usize = 600;
/// Pairs per cluster whose texts are shown side by side.
const PAIRS_IN_CLUSTER: usize = 4;
/// Exact copies collected.
const COPIES: usize = 2000;
/// Related pairs (similar, but not copies) on the page.
const RELATED: usize = 50;

/// How the two articles of a pair relate.
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

/// An article of a pair, and the position of its record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Side {
    id: ArticleId,
    position: Position,
}

/// Two matched or related articles. Ordered by confidence, the least certain first.
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

/// Keeps the pairs with the least confidence, and counts all of them.
#[derive(Debug, Default)]
struct Doubtful {
    heap: BinaryHeap<Pair>,
    total: u64,
}

impl Doubtful {
    fn add(&mut self, pair: Pair, cap: usize) {
        self.total += 1;
        self.heap.push(pair);
        if self.heap.len() > cap {
            self.heap.pop();
        }
    }
}

/// Collects the pairs of a run, and renders them as an HTML page.
#[derive(Debug)]
pub struct Report {
    near: Doubtful,
    related: Doubtful,
    copies: Vec<Pair>,
    order: u64,
    kept: Texts,
}

/// A cluster on the page: its near-duplicate pairs, least certain first, and its exact copies.
struct Card<'a> {
    pairs: Vec<&'a Pair>,
    copies: Vec<&'a Pair>,
    id: &'a ClusterId,
}

impl Report {
    /// An empty report. If an input is standard input, its articles are kept for the page.
    pub fn new(reading: &InputSpec) -> Report {
        Report {
            near: Doubtful::default(),
            related: Doubtful::default(),
            copies: Vec::new(),
            order: 0,
            kept: Texts::new(reading),
        }
    }

    /// Adds the verdicts of a batch that has been applied to `state`.
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

    fn add_tagged(&mut self, tagged: &Verdict, state: &impl View) -> Result<(), StoreError> {
        let kind = match tagged.match_type {
            Some(MatchType::Near | MatchType::Reviewed) => Some(Kind::Near),
            Some(MatchType::Partial) => Some(Kind::Partial),
            Some(MatchType::Rewritten) => Some(Kind::Rewritten),
            Some(MatchType::Exact) => Some(Kind::Exact),
            // A republication of the same article is not worth showing.
            _ => None,
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

    /// The pair, or none if the earlier article has left the index.
    fn pair(
        &mut self,
        tagged: &Verdict,
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

    /// Renders the page. Articles whose input cannot be read again appear without their text.
    pub fn render(self, summary: &Summary, reading: &InputSpec, options: &Options) -> String {
        let near = self.near.heap.into_sorted_vec();
        let related = self.related.heap.into_sorted_vec();
        let cards = cards(&near, &self.copies);
        let wanted =
            cards.iter().flat_map(Card::sides).chain(related.iter().flat_map(|pair| [&pair.old, &pair.new]));
        let texts = self.kept.load(wanted, reading, options);
        let page = page::HtmlPage {
            summary,
            cards: &cards,
            related: &related,
            related_total: self.related.total,
            hidden_pairs: self.near.total - cards.iter().map(|card| card.pairs.len() as u64).sum::<u64>(),
            texts: &texts,
        };
        page.render()
    }
}

impl Card<'_> {
    /// The articles that the card shows, by text or by headline.
    fn sides(&self) -> impl Iterator<Item = &Side> {
        let pairs = self.pairs.iter().take(PAIRS_IN_CLUSTER).flat_map(|pair| [&pair.old, &pair.new]);
        pairs.chain(self.copies.iter().take(COPIES_IN_CLUSTER).flat_map(|pair| [&pair.old, &pair.new]))
    }
}

/// Exact copies listed per cluster.
const COPIES_IN_CLUSTER: usize = 12;

/// Groups pairs into clusters, ordered by their least certain pair; clusters of exact copies only come last.
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
    // Clusters of exact copies have no uncertainty: largest first, then in input order.
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
