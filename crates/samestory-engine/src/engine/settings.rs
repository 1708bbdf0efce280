//! How articles are judged, as values: what the settings file says has been checked before it comes here.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::index::Retention;
use crate::model::{EventTime, Fraction, Lang};

use super::compare::evidence::Weights;
use super::compare::{Comparison, Relation, Rules};
use super::constraints::Constraints;

/// What finds and verifies near-duplicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// MinHash alone.
    Minhash,
    /// The Hamming distance of 128-bit SimHashes.
    Simhash128,
    /// The Hamming distance of 64-bit SimHashes.
    Simhash64,
    /// MinHash and sampled shingles find, the sum of the evidence decides.
    #[default]
    Combined,
}

impl Algorithm {
    /// A Hamming threshold to begin with: under a SimHash algorithm what the bands are sure to find; as a second
    /// opinion what copies stay below and other texts hardly ever reach (of these 1 in 100 differs in fewer than 37 bits).
    pub const fn hamming(self) -> u32 {
        match self {
            Algorithm::Simhash128 => 7,
            Algorithm::Simhash64 => 3,
            Algorithm::Minhash | Algorithm::Combined => 24,
        }
    }
}

/// Who stands for a cluster. Under every policy a whole does before a part of another member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CanonicalPolicy {
    /// The one that came first.
    #[default]
    FirstSeen,
    /// The one that was published first; those that do not say come last.
    FirstPublished,
    /// The one that came last.
    Newest,
    /// The one with the most words.
    Longest,
}

/// What becomes of an update without a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmptyUpdate {
    /// The text that is known stays, and the verdict says so.
    #[default]
    Keep,
    /// It is a dead letter.
    Refuse,
}

/// How the articles of one language are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LanguageSettings {
    /// When two texts count as the same.
    pub rules: Rules,
    /// What finds and verifies.
    pub algorithm: Algorithm,
    /// What each measure contributes under `combined`.
    pub weights: Weights,
    /// SimHashes that differ in at most so many bits agree; under a SimHash algorithm those are near-duplicates.
    pub hamming: u32,
    /// Similarity to the cluster's canonical that a member needs at least: below the threshold.
    pub cluster_threshold: f64,
    /// How long documents are remembered.
    pub retention: Retention,
}

impl Default for LanguageSettings {
    fn default() -> LanguageSettings {
        LanguageSettings {
            rules: Rules::default(),
            algorithm: Algorithm::default(),
            weights: Weights::FITTED,
            hamming: Algorithm::default().hamming(),
            cluster_threshold: 0.3,
            retention: Retention::Millis(7 * 24 * 60 * 60 * 1000),
        }
    }
}

/// How articles are judged: all that [`Engine`] needs to know, as values.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// For languages that have no settings of their own.
    pub default: LanguageSettings,
    /// For languages that have.
    pub languages: BTreeMap<Lang, LanguageSettings>,
    /// Who stands for a cluster.
    pub canonical: CanonicalPolicy,
    /// How long before an article was fetched it may have been published; an earlier time ranks no canonical.
    pub published_within: Retention,
    /// What becomes of an update without a text.
    pub empty_update: EmptyUpdate,
    /// How many documents of a bucket are examined.
    pub max_bucket: usize,
    /// Duplicates with a confidence in here, both ends included, are flagged for review.
    pub review: Option<(Fraction, Fraction)>,
    /// How far an article's time may lie ahead of its record's, in milliseconds.
    pub max_clock_skew_millis: u64,
    /// Articles from before this time change state and are not published.
    pub publish_from: Option<EventTime>,
    /// Whether verdicts carry their evidence.
    pub evidence: bool,
    /// What an editor has said of pairs of articles.
    pub constraints: Arc<Constraints>,
    /// Hash of the settings, named in every verdict.
    pub config: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            default: LanguageSettings::default(),
            languages: BTreeMap::new(),
            canonical: CanonicalPolicy::default(),
            published_within: Retention::Millis(30 * 24 * 60 * 60 * 1000),
            empty_update: EmptyUpdate::default(),
            max_bucket: 64,
            review: Some((Fraction::new(0.5), Fraction::new(0.9))),
            max_clock_skew_millis: 60 * 60 * 1000,
            publish_from: None,
            evidence: false,
            constraints: Arc::default(),
            config: 0,
        }
    }
}

impl LanguageSettings {
    /// How similar a pair is, by the measure that decides.
    pub fn similarity(&self, pair: &Comparison) -> f64 {
        match self.algorithm {
            _ if pair.relation == Relation::Exact => 1.0,
            Algorithm::Minhash | Algorithm::Combined => pair.similarity,
            Algorithm::Simhash128 => 1.0 - f64::from(pair.distance) / 128.0,
            Algorithm::Simhash64 => 1.0 - f64::from(pair.distance64) / 64.0,
        }
    }

    /// The Hamming distance of the SimHash that is used.
    pub(super) fn distance(&self, pair: &Comparison) -> u32 {
        if self.algorithm == Algorithm::Simhash64 { pair.distance64 } else { pair.distance }
    }

    /// Whether a pair is alike enough for one to be in the other's cluster.
    ///
    /// A text that only contains the canonical and adds more than it repeats is not: else clusters would grow by
    /// chains of ever longer texts.
    pub(super) fn resembles(&self, pair: &Comparison) -> bool {
        match pair.relation {
            Relation::Exact | Relation::Near | Relation::Rewritten | Relation::Partial => true,
            Relation::Extends | Relation::SameTemplate | Relation::SameFurniture => false,
            // A part needs containment below its threshold by the same factor as the cluster threshold is below `threshold`.
            Relation::FollowUp | Relation::Different => {
                let part = self.rules.containment_threshold * self.cluster_threshold / self.rules.threshold;
                pair.similarity >= self.cluster_threshold || pair.containment >= part
            }
        }
    }
}
