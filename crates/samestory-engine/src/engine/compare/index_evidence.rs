//! Evidence that only the index has: how common shared phrases are, under how many headlines a short text has
//! appeared, and which texts are digests of others.
//!
//! [`candidates`](crate::engine::candidates) has measured each pair in isolation; this module completes the
//! measures, and [`LanguageSettings::decide`] decides on them. It reads only live postings and documents, with fixed caps, so the same articles in
//! the same order give the same evidence.

use crate::fingerprint::Fingerprint;
use crate::index::{Document, Order, StoreError, View};
use crate::model::Flag;
use crate::model::{DocumentNumber, MatchType};

use super::evidence::Measure;
use super::{Comparison, MOSTLY, PART, Relation, SAME_HEADLINE};
use crate::engine::candidates::{Candidate, Candidates, Search, ascending, looked_up};
use crate::engine::settings::LanguageSettings;

/// How many documents that posted a phrase, newest first, are read to see how common it is.
const ASKED: usize = 16;
/// Log-odds below which no unknown measure could still make the pair a copy, so its phrases are not looked
/// up.
const HOPELESS: f64 = -5.0;
/// With fewer comparable sampled shingles than this, the shared fraction says nothing.
const ENOUGH: usize = 3;
/// An article in a digest has at most this fraction of the digest's shingles.
const DIGEST_PART: f64 = 0.6;
/// A text that contains articles from this many clusters is a digest.
const DIGEST_CLUSTERS: usize = 2;
/// Members of a cluster that are read to decide whether its first article is a digest.
const MEMBERS_ASKED: usize = 8;
/// Headlines that share less than this fraction of words are unrelated.
const UNRELATED: f64 = 0.25;
/// A text of medium length is page furniture once it has appeared under this many unrelated headlines.
const WALL_TITLES: usize = 4;
/// One in this many of those headlines has no word in the text.
const FOREIGN_ONE_IN: usize = 3;
/// Containment in both directions at and above which two texts count as one for that purpose.
const SAME_WALL: f64 = 0.8;

/// Shared phrases that weigh less than this on average are common: more than two other clusters have them. Of the labelled pairs
/// between 0.2 and 0.3, readers kept all 30 apart.
const COMMON: f64 = 0.3;
/// Fewer shared phrases do not tell how common they are.
const COMMON_ASKED: u32 = 4;
/// Texts of at least this similarity are alike as a whole, however common their phrases are.
const ALIKE: f64 = 0.8;
/// The value of `wall` for two texts that share common phrases alone.
const COMMON_WALL: f64 = 0.5;
/// With fewer comparable shingles an opening or a sample says nothing.
const COMPARABLE: u32 = 4;

/// A sampled shingle of the newer text, and the documents that posted it, newest first.
pub(crate) struct Phrase<'a> {
    shingle: u32,
    posted: &'a [DocumentNumber],
    /// The clusters of the newest of them that are live, ascending, once a candidate shares the phrase.
    clusters: Option<Vec<DocumentNumber>>,
}

impl<'a> Phrase<'a> {
    pub(crate) fn new(shingle: u32, posted: &'a [DocumentNumber]) -> Phrase<'a> {
        Phrase { shingle, posted, clusters: None }
    }

    /// The documents that tell how common it is.
    fn newest(&self) -> &'a [DocumentNumber] {
        &self.posted[..self.posted.len().min(ASKED)]
    }
}

/// Whether one text lies inside another that is clearly longer.
///
/// The lanes say little about a small part, and their noise lowers the containment. Where the samples alone
/// show the part, they decide.
fn is_part_of(part: &Fingerprint, whole: &Fingerprint, contained: f64, settings: &LanguageSettings) -> bool {
    let threshold = settings.rules.containment_threshold;
    let sampled = || {
        let found = part.sample.found_in(&whole.sample);
        found.of >= 2 * COMPARABLE && found.share().is_some_and(|share| share >= threshold)
    };
    f64::from(part.shingles) <= DIGEST_PART * f64::from(whole.shingles)
        && (contained >= threshold || sampled())
}

/// Whether two texts open differently.
fn opens_elsewhere(new: &Fingerprint, old: &Fingerprint) -> bool {
    let found = new.opening.found_in(&old.opening);
    found.of >= COMPARABLE && found.found == 0
}

/// Whether a text contains several complete earlier articles from different clusters.
pub(crate) fn holds_several(
    candidates: &[Candidate],
    new: &Fingerprint,
    settings: &LanguageSettings,
) -> bool {
    let inside = candidates.iter().filter(|candidate| {
        let old = &candidate.document.fingerprint;
        old.tokens >= settings.rules.min_tokens
            && is_part_of(old, new, candidate.comparison.containment_of_old, settings)
    });
    ascending(inside.map(|candidate| candidate.document.cluster)).len() >= DIGEST_CLUSTERS
}

/// Clusters whose texts largely coincide with the new one and have the same numbers, ascending. They are the
/// same story spread over several clusters after a copy was missed. They must not make its phrases count as
/// common, or every miss would cause the next one.
fn clusters_alike(candidates: &[Candidate], settings: &LanguageSettings) -> Vec<DocumentNumber> {
    let alike = candidates.iter().filter(|candidate| {
        let pair = &candidate.comparison;
        pair.containment.max(pair.containment_of_old) >= settings.rules.containment_threshold
            && pair.evidence.get(Measure::NumbersReplaced).is_none_or(|replaced| replaced == 0.0)
    });
    ascending(alike.map(|candidate| candidate.document.cluster))
}

/// The copies of a part that are no copies of the whole: the index of each, and the comparison with the whole.
///
/// A report with other numbers and names agrees with the first quarter of an earlier one if that quarter has neither. Where another
/// candidate continues that quarter and contains most of the newer text, it knows better.
fn overruled_by_the_whole(
    candidates: &[Candidate],
    new: &Fingerprint,
    settings: &LanguageSettings,
) -> Vec<(usize, Comparison)> {
    let is_of_a_part = |candidate: &Candidate| {
        candidate.comparison.relation.is_duplicate()
            && f64::from(candidate.document.fingerprint.shingles) <= PART * f64::from(new.shingles)
    };
    let parts = candidates.iter().enumerate().filter(|(_, candidate)| is_of_a_part(candidate));
    let overruled = parts.filter_map(|(at, part)| {
        let wholes = candidates.iter().filter(|whole| {
            !whole.comparison.relation.is_duplicate()
                && whole.comparison.containment >= MOSTLY.max(part.comparison.containment)
                && is_continued_by(part, whole, settings)
        });
        wholes
            .map(|whole| whole.comparison)
            .min_by(|one, other| one.log_odds.total_cmp(&other.log_odds))
            .map(|whole| (at, whole))
    });
    overruled.collect()
}

/// Whether one document is a part of another: an earlier copy of the beginning has a cluster of its own.
fn is_continued_by(part: &Candidate, whole: &Candidate, settings: &LanguageSettings) -> bool {
    let relation =
        || settings.compare_alone(&part.document.fingerprint, &whole.document.fingerprint).relation;
    part.document.cluster == whole.document.cluster || {
        let relation = relation();
        relation.is_duplicate() || relation == Relation::Extends
    }
}

/// True if both texts have headlines and these share hardly a word.
fn is_unrelated(pair: &Comparison) -> bool {
    has_titles_below(pair, UNRELATED)
}

/// True if both texts have headlines that share less than this fraction of words.
fn has_titles_below(pair: &Comparison, share: f64) -> bool {
    pair.evidence.get(Measure::Titles).is_some_and(|titles| titles < share)
}

/// The headlines of earlier documents with the newer text.
#[derive(Clone, Copy)]
struct Headlines {
    /// How many are unrelated to the newer one.
    unrelated: usize,
    /// How many of these have no word in the text.
    foreign: usize,
}

impl Headlines {
    fn of(candidates: &[Candidate]) -> Headlines {
        let same = candidates.iter().filter(|candidate| {
            let pair = &candidate.comparison;
            pair.containment.min(pair.containment_of_old) >= SAME_WALL && is_unrelated(pair)
        });
        let mut titles: Vec<(&[u32], bool)> = same
            .map(|candidate| &candidate.document.fingerprint)
            .map(|old| (old.title.values(), old.foreign_headline))
            .collect();
        titles.sort_unstable();
        titles.dedup();
        let foreign = titles.iter().filter(|(_, foreign)| *foreign).count();
        Headlines { unrelated: titles.len(), foreign }
    }

    /// True if the text is furniture whatever the headline: a short one under several unrelated headlines, a longer one if
    /// several of them, and a third at least, have no word in it. Wire copy speaks of what its headlines say.
    fn are_of_furniture(self, short: bool) -> bool {
        match short {
            true => self.unrelated >= WALL_TITLES,
            false => self.foreign >= WALL_TITLES && FOREIGN_ONE_IN * self.foreign >= self.unrelated,
        }
    }
}

/// True if a short text is page furniture under these two headlines. It has appeared under `others` too.
fn is_wall(
    pair: &Comparison,
    old: &Fingerprint,
    new: &Fingerprint,
    others: Headlines,
    settings: &LanguageSettings,
) -> bool {
    if pair.containment.max(pair.containment_of_old) < SAME_WALL {
        return false;
    }
    let tokens = old.tokens.min(new.tokens);
    let (short, medium) = (tokens < settings.rules.min_tokens, tokens < settings.rules.wall_tokens);
    let foreign = old.foreign_headline && new.foreign_headline;
    if is_unrelated(pair) {
        return foreign || short || medium && others.unrelated >= WALL_TITLES;
    }
    if medium && others.are_of_furniture(short) {
        // Headlines of one form differ in a word: only the same page once more is an article that was sent again.
        return pair.evidence.get(Measure::Titles).is_some() && old.title != new.title;
    }
    let once = short && others.unrelated >= 1;
    has_titles_below(pair, SAME_HEADLINE) && medium && (foreign || once)
}

impl<V: View> Search<'_, V> {
    /// Completes the evidence of each candidate with what only the index knows, and decides its relation.
    pub(crate) fn add_index_evidence(
        &mut self,
        found: &mut Candidates,
        new: &Fingerprint,
        phrases: &mut [Phrase<'_>],
        settings: &LanguageSettings,
    ) -> Result<(), StoreError> {
        let most = settings.weights.most(Measure::Rare);
        let digest = found.digest;
        let candidates = &mut found.all;
        let alike = clusters_alike(candidates, settings);
        let mut common = vec![false; candidates.len()];
        for (candidate, common) in candidates.iter_mut().zip(&mut common) {
            if candidate.comparison.log_odds + most >= HOPELESS {
                let contained = candidate.comparison.containment;
                let phrases = self.shared(&candidate.document, new, phrases, &alike)?;
                candidate.comparison.evidence.set(Measure::Rare, phrases.rare(contained));
                *common = candidate.comparison.similarity < ALIKE && phrases.are_common();
            }
            let old = &candidate.document.fingerprint;
            let part = digest && is_part_of(old, new, candidate.comparison.containment_of_old, settings)
                || is_part_of(new, old, candidate.comparison.containment, settings)
                    && self.is_digest(&candidate.document, new, is_unrelated(&candidate.comparison))?;
            candidate.comparison.evidence.set(Measure::Digest, part.then_some(1.0));
        }
        let headlines = Headlines::of(candidates);
        for (candidate, common) in candidates.iter_mut().zip(common) {
            let (old, pair) = (&candidate.document.fingerprint, &mut candidate.comparison);
            let notice = pair.evidence.get(Measure::Wall).is_some();
            let wall = match notice || is_wall(pair, old, new, headlines, settings) {
                true => Some(1.0),
                false => common.then_some(COMMON_WALL),
            };
            pair.evidence.set(Measure::Wall, wall);
            settings.decide(old, new, pair);
        }
        let overruled = overruled_by_the_whole(&found.all, new, settings);
        for (candidate, whole) in overruled {
            let pair = &mut found.all[candidate].comparison;
            (pair.relation, pair.log_odds, pair.confidence) =
                (whole.relation, whole.log_odds, whole.confidence);
        }
        Ok(())
    }

    /// Whether an earlier document that contains the newer text is a digest: it is flagged as one, or it begins with another
    /// text under an unrelated headline, or it also contains another article that is unrelated to the newer text and has its
    /// own headline. Excerpts of a single article have no headline, or that article's. Only the newest members of the cluster
    /// are read.
    fn is_digest(
        &mut self,
        document: &Document,
        new: &Fingerprint,
        unrelated: bool,
    ) -> Result<bool, StoreError> {
        if document.flags & Flag::Digest.bit() != 0 {
            return Ok(true);
        }
        if !unrelated {
            return Ok(false);
        }
        if opens_elsewhere(new, &document.fingerprint) {
            return Ok(true);
        }
        let members = self
            .state
            .members(self.language, document.cluster, Order::Descending, None, MEMBERS_ASKED)?
            .numbers;
        self.load(&ascending(members.iter().copied()))?;
        Ok(members.iter().filter_map(|&number| self.live(number)).any(|member| {
            member.judgement.match_type == Some(MatchType::Partial)
                && member.judgement.duplicate_of == Some(document.number)
                && member.fingerprint.shingles < document.fingerprint.shingles
                && member.fingerprint.sample.found_in(&new.sample).found == 0
                && member.fingerprint.title.distinct() > 0
                && member.fingerprint.title.found_in(&document.fingerprint.title).found == 0
        }))
    }

    /// The sampled phrases that the newer text shares with a document, and how common they are.
    fn shared(
        &mut self,
        document: &Document,
        new: &Fingerprint,
        phrases: &mut [Phrase<'_>],
        alike: &[DocumentNumber],
    ) -> Result<SharedPhrases, StoreError> {
        let old = &document.fingerprint;
        let sample = old.sample.values();
        let posted =
            &sample[..self.state.postings().for_language(self.language).samples_of(old).min(sample.len())];
        let looked_up = looked_up(new);
        let bound = |values: &[u32], all: u32| match values.last() {
            Some(&last) if values.len() < all as usize => last,
            _ => u32::MAX,
        };
        let bound = bound(posted, old.shingles).min(bound(looked_up, new.shingles));
        let within = |values: &[u32]| values.partition_point(|&value| value <= bound);
        let comparable = within(posted).min(within(looked_up));
        let in_both: Vec<&mut Phrase<'_>> =
            phrases.iter_mut().filter(|phrase| posted.binary_search(&phrase.shingle).is_ok()).collect();
        let shared = in_both.len() as u32;
        let mut sum = 0.0;
        for phrase in self.with_clusters(in_both)? {
            let clusters = phrase.clusters.iter().flatten();
            let others = clusters
                .filter(|&&cluster| cluster != document.cluster && alike.binary_search(&cluster).is_err());
            sum += 1.0 / (1.0 + others.count() as f64);
        }
        Ok(SharedPhrases { comparable, shared, sum })
    }

    /// Finds the clusters of phrases that no earlier candidate shared.
    fn with_clusters<'p, 'l>(
        &mut self,
        phrases: Vec<&'p mut Phrase<'l>>,
    ) -> Result<Vec<&'p mut Phrase<'l>>, StoreError> {
        let new = || phrases.iter().filter(|phrase| phrase.clusters.is_none());
        let numbers = ascending(new().flat_map(|phrase| phrase.newest()).copied());
        let clusters = self.live_clusters(&numbers)?;
        let cluster =
            |number: &DocumentNumber| numbers.binary_search(number).ok().and_then(|at| clusters[at]);
        let mut phrases = phrases;
        for phrase in phrases.iter_mut().filter(|phrase| phrase.clusters.is_none()) {
            phrase.clusters = Some(ascending(phrase.newest().iter().filter_map(cluster)));
        }
        Ok(phrases)
    }
}

/// Sampled phrases of the newer text that an older one has too.
struct SharedPhrases {
    /// How many could be shared.
    comparable: usize,
    /// How many are.
    shared: u32,
    /// Their weights together: a phrase counts less, the more other clusters posted it recently.
    sum: f64,
}

impl SharedPhrases {
    /// Fraction of the comparable phrases that both texts share and hardly any other cluster has. If too few are comparable, as
    /// with an excerpt of a long text, `contained` says how much is shared and the phrases only how rare it is.
    fn rare(&self, contained: f64) -> Option<f64> {
        if self.comparable < ENOUGH {
            return (self.shared > 0).then(|| contained * self.sum / f64::from(self.shared));
        }
        Some(self.sum / self.comparable as f64)
    }

    /// Whether nearly all of them belong to several other clusters: what the two texts share is the page or the form.
    fn are_common(&self) -> bool {
        self.shared >= COMMON_ASKED && self.sum < COMMON * f64::from(self.shared)
    }
}
