//! The HTML report of a run over files: an overview of all groups that unfolds into texts side by side.
//!
//! During the run, `HtmlReport::add` collects pairs, never their texts. At the end, `HtmlReport::add_clusters` takes the groups
//! from the state, and `texts` reads the texts again from their files; articles from a pipe are kept in memory up to a
//! limit. `page` puts all of it into one file as JSON (`data`), which `page.js` shows.

mod data;
mod page;
mod pair;
mod texts;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use samestory_engine::engine::{Engine, Output};
use samestory_engine::index::{StoreError, View};
use samestory_engine::model::{
    ArticleId, ClusterId, ClusterRecord, Contribution, Flag, Fraction, Lang, MatchType, Position,
};
use samestory_engine::model::{RelationKind, Verdict};
use samestory_engine::text::Options;
use samestory_engine::text::language::home;

use crate::files::Summary;
use crate::files::stage::InputSpec;
use texts::ReportTexts;

/// Pairs of a group that are shown.
const PAIRS_IN_GROUP: usize = 12;
/// Pairs on the page whose texts it has; every group gets its first before any gets its second.
const PAIRS_WITH_TEXTS: usize = 3000;
/// Members of a group that are listed.
const MEMBERS: usize = 200;
/// Related pairs (similar, but not copies) on the page.
const RELATED: usize = 2000;

/// How the two articles of a pair relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PairKind {
    Near,
    Partial,
    Exact,
    Rewritten,
    Reviewed,
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

/// Two matched or related articles.
#[derive(Clone, Debug, PartialEq)]
struct ReportPair {
    confidence: Fraction,
    order: u64,
    kind: PairKind,
    language: Lang,
    similarity: Fraction,
    containment: Fraction,
    evidence: Vec<Contribution>,
    review: bool,
    old: Side,
    new: Side,
}

/// The facts about a cluster that the verdicts of the run provide.
#[derive(Debug, Default)]
struct ReportGroup {
    /// The near-duplicates, and one exact copy.
    pairs: Vec<ReportPair>,
    /// The lowest similarity of a member to what it repeats.
    least: Option<Fraction>,
    exact: u64,
    /// Near-duplicates whose pairs are not kept.
    left_out: u64,
    cluster: Option<ClusterRecord>,
}

impl ReportGroup {
    /// The least confident verdict; that of a group of exact copies is certain.
    fn confidence(&self) -> Fraction {
        let pairs = self.pairs.iter().filter(|pair| pair.kind != PairKind::Exact);
        pairs.map(|pair| pair.confidence).min().unwrap_or(Fraction::new(1.0))
    }
}

/// The facts about the run in the footer of the page.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The day, as 2026-03-02.
    pub made_on: String,
    /// The settings that differ between runs, in words.
    pub settings: String,
}

/// Collects the pairs of a run, and renders them as an HTML page.
#[derive(Debug)]
pub struct HtmlReport {
    groups: BTreeMap<ClusterId, ReportGroup>,
    related: Vec<ReportPair>,
    related_total: u64,
    order: u64,
    kept: ReportTexts,
}

impl HtmlReport {
    /// An empty report. If an input is standard input, its articles are kept for the page.
    pub fn new(reading: &InputSpec) -> HtmlReport {
        HtmlReport {
            groups: BTreeMap::new(),
            related: Vec::new(),
            related_total: 0,
            order: 0,
            kept: ReportTexts::new(reading),
        }
    }

    /// Adds the verdict of a record, if it has one, once its batch has been applied to `state`.
    pub(crate) fn add(
        &mut self,
        outputs: &[Output],
        article: Option<&RawValue>,
        state: &impl View,
    ) -> Result<(), StoreError> {
        let tagged = outputs.iter().find_map(|output| match output {
            Output::Tagged(tagged) => Some(tagged),
            _ => None,
        });
        let Some(tagged) = tagged else { return Ok(()) };
        if let Some(article) = article {
            self.kept.keep(&tagged.input, article);
        }
        self.add_tagged(tagged, state)
    }

    fn add_tagged(&mut self, tagged: &Verdict, state: &impl View) -> Result<(), StoreError> {
        let kind = match tagged.match_type {
            Some(MatchType::Reviewed) => Some(PairKind::Reviewed),
            Some(MatchType::Partial) => Some(PairKind::Partial),
            Some(MatchType::Rewritten) => Some(PairKind::Rewritten),
            Some(MatchType::Exact) => Some(PairKind::Exact),
            // A republication of the same article is not worth showing.
            Some(MatchType::SameArticle) | None => None,
            // Near, and any kind of match that the engine may add: shown rather than hidden.
            Some(_) => Some(PairKind::Near),
        };
        if let (Some(kind), Some(old)) = (kind, &tagged.duplicate_of) {
            let is_needed = match self.groups.get(&tagged.cluster) {
                Some(group) if kind == PairKind::Exact => group.exact == 0,
                _ => true,
            };
            let pair = if is_needed { self.pair(tagged, kind, old, tagged.similarity, state)? } else { None };
            let group = self.groups.entry(tagged.cluster.clone()).or_default();
            group.least = Some(group.least.map_or(tagged.similarity, |least| least.min(tagged.similarity)));
            group.exact += u64::from(kind == PairKind::Exact);
            group.pairs.extend(pair);
            // The least certain pairs are the ones worth a look.
            if group.pairs.len() > 4 * PAIRS_IN_GROUP {
                group.pairs.sort_by_key(|pair| (pair.confidence, pair.order));
                group.left_out += group.pairs.drain(PAIRS_IN_GROUP..).len() as u64;
            }
        }
        for related in &tagged.related {
            let kind = match related.relation {
                RelationKind::Extends => PairKind::Extends,
                RelationKind::SameTemplate => PairKind::SameTemplate,
                RelationKind::FollowUp => PairKind::FollowUp,
                RelationKind::SameFurniture => PairKind::SameFurniture,
            };
            self.related_total += 1;
            if self.related.len() < RELATED
                && let Some(pair) = self.pair(tagged, kind, &related.id, related.similarity, state)?
            {
                self.related.push(pair);
            }
        }
        Ok(())
    }

    /// The pair, or none if the earlier article has left the index.
    fn pair(
        &mut self,
        tagged: &Verdict,
        kind: PairKind,
        old: &ArticleId,
        similarity: Fraction,
        state: &impl View,
    ) -> Result<Option<ReportPair>, StoreError> {
        let Some(number) = state.number_of(home(tagged.language), old)? else { return Ok(None) };
        let Some(document) = state.document(home(tagged.language), number)? else { return Ok(None) };
        self.order += 1;
        Ok(Some(ReportPair {
            confidence: tagged.confidence,
            order: self.order,
            kind,
            language: tagged.language,
            similarity,
            containment: tagged.containment,
            evidence: tagged.evidence.clone(),
            review: tagged.flags.contains(&Flag::Review),
            old: Side { id: old.clone(), position: document.position },
            new: Side { id: tagged.id.clone(), position: tagged.input.clone() },
        }))
    }

    /// Adds the clusters of the groups at the end of the run: their size, times, outlets and members.
    pub(crate) fn add_clusters(&mut self, engine: &Engine, state: &impl View) -> Result<(), StoreError> {
        engine.each_cluster(state, &mut |mut cluster| {
            if let Some(group) = self.groups.get_mut(&cluster.id) {
                cluster.members.truncate(MEMBERS);
                group.cluster = Some(cluster);
            }
            true
        })
    }

    /// Renders the page. Articles whose input cannot be read again appear without their text.
    pub fn render(
        mut self,
        summary: &Summary,
        reading: &InputSpec,
        options: &Options,
        about: &About,
    ) -> String {
        // A group whose members were deleted or changed later is none any more.
        self.groups.retain(|_, group| group.cluster.is_some());
        for group in self.groups.values_mut() {
            group.pairs.sort_by_key(|pair| (pair.kind == PairKind::Exact, pair.confidence, pair.order));
            let kept = group.pairs.len().min(PAIRS_IN_GROUP);
            group.left_out += group.pairs.drain(kept..).len() as u64;
        }
        let mut ordered: Vec<&ReportGroup> = self.groups.values().collect();
        ordered.sort_by_key(|group| (group.confidence(), group.pairs.first().map(|pair| pair.order)));
        let rounds = (0..PAIRS_IN_GROUP)
            .flat_map(|round| ordered.iter().filter_map(move |group| group.pairs.get(round)))
            .chain(&self.related)
            .take(PAIRS_WITH_TEXTS);
        let shown: BTreeSet<u64> = rounds.clone().map(|pair| pair.order).collect();
        let mut wanted: Vec<Side> = rounds.flat_map(|pair| [&pair.old, &pair.new]).cloned().collect();
        wanted.sort();
        wanted.dedup();
        let texts = self.kept.load(wanted.iter(), reading, options);
        let page = page::HtmlPage {
            summary,
            groups: &self.groups,
            related: &self.related,
            related_total: self.related_total,
            shown: &shown,
            texts: &texts,
            reading,
            about,
        };
        page.render()
    }
}
