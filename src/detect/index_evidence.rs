//! Evidence that only the index has: how common the shared phrases are, under how many headlines a short text has appeared, and
//! which text is a digest of others.
//!
//! [`candidates`](super::candidates) has measured each pair by itself; this completes the measures and decides. Everything is
//! read from live postings and documents with fixed caps, so the same articles in the same order give the same evidence.

use crate::event::Flag;
use crate::fingerprint::Fingerprint;
use crate::model::{DocumentNumber, MatchType};
use crate::store::{Document, Order, StoreError, View};

use super::candidates::{Candidate, Candidates, Search, ascending, looked_up};
use super::compare::Comparison;
use super::evidence::Measure;
use super::settings::LanguageSettings;

/// Of the documents that posted a phrase, the newest so many tell how common it is.
const ASKED: usize = 16;
/// Log-odds below which nothing that is still unknown makes a pair a copy: how common its phrases are is not asked.
const HOPELESS: f64 = -5.0;
/// Of fewer sampled shingles than this in common range, the share that is shared says nothing.
const ENOUGH: usize = 3;
/// An article in a digest has at most this share of its shingles.
const DIGEST_PART: f64 = 0.6;
/// A text that holds articles of so many clusters is a digest.
const DIGEST_CLUSTERS: usize = 2;
/// Members of a cluster that are asked whether its first article is a digest.
const MEMBERS_ASKED: usize = 8;
/// Headlines are unrelated below this share of common words.
const UNRELATED: f64 = 0.25;
/// A text of middle length is page furniture from so many unrelated headlines on.
const WALL_TITLES: usize = 4;
/// Share of each text that is in the other, from which on two texts are one for the sake of that count.
const SAME_WALL: f64 = 0.8;

/// A sampled shingle of the newer text, and the documents that posted it, the newest first.
pub(super) struct Phrase<'a> {
    pub(super) shingle: u32,
    pub(super) posted: &'a [DocumentNumber],
}

/// Whether one text lies inside another that has clearly more.
fn is_part_of(part: &Fingerprint, whole: &Fingerprint, contained: f64, settings: &LanguageSettings) -> bool {
    contained >= settings.rules.coverage
        && f64::from(part.shingles) <= DIGEST_PART * f64::from(whole.shingles)
}

/// Whether a text holds several earlier articles, each of them whole and of another cluster.
pub(super) fn holds_several(
    candidates: &[Candidate],
    new: &Fingerprint,
    settings: &LanguageSettings,
) -> bool {
    let inside = candidates.iter().filter(|candidate| {
        let old = &candidate.document.fingerprint;
        old.tokens >= settings.rules.min_tokens
            && is_part_of(old, new, candidate.comparison.old_in_new, settings)
    });
    ascending(inside.map(|candidate| candidate.document.cluster)).len() >= DIGEST_CLUSTERS
}

/// The clusters of texts that are mostly the new one and have its numbers, ascending. They are the same story in several clusters,
/// after a copy was missed, and must not make its phrases common: else every miss would lead to the next.
fn clusters_alike(candidates: &[Candidate], settings: &LanguageSettings) -> Vec<DocumentNumber> {
    let alike = candidates.iter().filter(|candidate| {
        let pair = &candidate.comparison;
        pair.new_in_old.max(pair.old_in_new) >= settings.rules.coverage
            && pair.evidence.get(Measure::NumbersReplaced).is_none_or(|replaced| replaced == 0.0)
    });
    ascending(alike.map(|candidate| candidate.document.cluster))
}

/// Whether both texts have headlines that have hardly a word in common.
fn is_unrelated(pair: &Comparison) -> bool {
    pair.evidence.get(Measure::Titles).is_some_and(|share| share < UNRELATED)
}

/// Under how many unrelated headlines the text has appeared.
fn unrelated_titles(candidates: &[Candidate]) -> usize {
    let same = candidates.iter().filter(|candidate| {
        let pair = &candidate.comparison;
        pair.new_in_old.min(pair.old_in_new) >= SAME_WALL && is_unrelated(pair)
    });
    let mut titles: Vec<&[u32]> =
        same.map(|candidate| candidate.document.fingerprint.title.values()).collect();
    titles.sort_unstable();
    titles.dedup();
    titles.len()
}

impl<V: View> Search<'_, V> {
    /// Adds what only the index knows to the evidence: how common shared phrases are, and under how many headlines a short
    /// text has appeared.
    pub(super) fn weigh(
        &mut self,
        found: &mut Candidates,
        new: &Fingerprint,
        phrases: &[Phrase<'_>],
        settings: &LanguageSettings,
    ) -> Result<(), StoreError> {
        let most = settings.weights.most(Measure::Rare);
        let digest = found.digest;
        let candidates = &mut found.all;
        let alike = clusters_alike(candidates, settings);
        for candidate in candidates.iter_mut() {
            if candidate.comparison.log_odds + most >= HOPELESS {
                let contained = candidate.comparison.new_in_old;
                let rare = self.rare(&candidate.document, new, contained, phrases, &alike)?;
                candidate.comparison.evidence.set(Measure::Rare, rare);
            }
            let old = &candidate.document.fingerprint;
            let part = digest && is_part_of(old, new, candidate.comparison.old_in_new, settings)
                || is_part_of(new, old, candidate.comparison.new_in_old, settings)
                    && self.is_digest(&candidate.document, new, is_unrelated(&candidate.comparison))?;
            candidate.comparison.evidence.set(Measure::Digest, part.then_some(1.0));
        }
        let titles = unrelated_titles(candidates);
        for candidate in candidates {
            let (old, pair) = (&candidate.document.fingerprint, &mut candidate.comparison);
            let tokens = old.tokens.min(new.tokens);
            let unrelated = is_unrelated(pair);
            let notice = pair.evidence.get(Measure::Wall).is_some();
            let wall = notice
                || unrelated
                    && pair.new_in_old.max(pair.old_in_new) >= SAME_WALL
                    && (tokens < settings.rules.min_tokens
                        || tokens < settings.rules.wall_tokens && titles >= WALL_TITLES);
            pair.evidence.set(Measure::Wall, wall.then_some(1.0));
            settings.decide(old, new, pair);
        }
        Ok(())
    }

    /// Whether an earlier document is a digest: flagged as one, or holding another article that has nothing to do with the
    /// newer text, each under a headline of its own: two extracts of one article have none, or that of the article. Only
    /// its newest members are asked.
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

    /// Share of the sampled shingles that could be in both texts, are, and are in hardly any other cluster. Each counts
    /// the less, the more other clusters have posted it lately. Where hardly any could be in both, as in an extract of a long
    /// text, `contained` says how much is, and the shared ones only how rare it is.
    fn rare(
        &mut self,
        document: &Document,
        new: &Fingerprint,
        contained: f64,
        phrases: &[Phrase<'_>],
        alike: &[DocumentNumber],
    ) -> Result<Option<f64>, StoreError> {
        let old = &document.fingerprint;
        let sample = old.sample.values();
        let posted = &sample[..self.state.postings().of(self.language).samples_of(old).min(sample.len())];
        let looked_up = looked_up(new);
        let bound = |values: &[u32], all: u32| match values.last() {
            Some(&last) if values.len() < all as usize => last,
            _ => u32::MAX,
        };
        let bound = bound(posted, old.shingles).min(bound(looked_up, new.shingles));
        let within = |values: &[u32]| values.partition_point(|&value| value <= bound);
        let comparable = within(posted).min(within(looked_up));
        let (mut sum, mut shared) = (0.0, 0);
        for phrase in phrases.iter().filter(|phrase| posted.binary_search(&phrase.shingle).is_ok()) {
            let asked = &phrase.posted[..phrase.posted.len().min(ASKED)];
            self.load(&ascending(asked.iter().copied()))?;
            let mut others: Vec<DocumentNumber> = asked
                .iter()
                .filter_map(|&number| self.live(number).map(|other| other.cluster))
                .filter(|&cluster| cluster != document.cluster && alike.binary_search(&cluster).is_err())
                .collect();
            others.sort_unstable();
            others.dedup();
            sum += 1.0 / (1.0 + others.len() as f64);
            shared += 1;
        }
        if comparable < ENOUGH {
            return Ok((shared > 0).then(|| contained * sum / f64::from(shared)));
        }
        Ok(Some(sum / comparable as f64))
    }
}
