//! The engine's settings as plain, validated values.
//!
//! The product's `config` module parses and checks the settings file and produces these types; the engine
//! never reads a file or the environment. Values here are trusted and are not checked again.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::index::Retention;
use crate::model::{EventTime, Fraction, Lang};

use super::compare::evidence::Weights;
use super::compare::{Comparison, Relation, Rules};
use super::constraints::Constraints;

/// How near-duplicates are found and verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// MinHash similarity and containment.
    Minhash,
    /// The Hamming distance of 128-bit SimHashes.
    Simhash128,
    /// The Hamming distance of 64-bit SimHashes.
    Simhash64,
    /// MinHash and sampled shingles find candidates; the sum of the evidence decides.
    #[default]
    Combined,
}

impl Algorithm {
    /// The default Hamming threshold. For a SimHash algorithm it is the largest distance that the bands are
    /// guaranteed to find. For the others it only corroborates: copies stay below it and unrelated texts
    /// rarely do (1 in 100 of them differs in fewer than 37 bits).
    pub const fn hamming(self) -> u32 {
        match self {
            Algorithm::Simhash128 => 7,
            Algorithm::Simhash64 => 3,
            Algorithm::Minhash | Algorithm::Combined => 24,
        }
    }
}

/// Which member becomes the canonical of a cluster. Under every policy a complete text is preferred to a
/// member that is part of another text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CanonicalPolicy {
    /// The member that arrived first.
    #[default]
    FirstSeen,
    /// The member with the earliest publication time; members without one rank last.
    FirstPublished,
    /// The member that arrived last.
    Newest,
    /// The member with the most words.
    Longest,
}

/// How to handle an update that has no text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmptyUpdate {
    /// Keep the known text and flag the verdict.
    #[default]
    Keep,
    /// Send the update to the dead-letter topic.
    Refuse,
}

/// How the articles of one language are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LanguageSettings {
    /// Thresholds that decide when two texts count as the same.
    pub rules: Rules,
    /// How near-duplicates are found and verified.
    pub algorithm: Algorithm,
    /// The weight of each measure under `combined`.
    pub weights: Weights,
    /// The largest number of differing bits at which two SimHashes agree. Under a SimHash algorithm, such a
    /// pair is a near-duplicate.
    pub hamming: u32,
    /// The minimum similarity to a cluster's canonical that a member needs. It lies below the duplicate
    /// threshold.
    pub cluster_threshold: f64,
    /// How long a document is kept after it was last seen.
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

/// Everything that [`Engine`](super::Engine) needs to know to judge articles.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Settings for languages that have none of their own.
    pub default: LanguageSettings,
    /// Settings for individual languages.
    pub languages: BTreeMap<Lang, LanguageSettings>,
    /// Which member becomes the canonical of a cluster.
    pub canonical: CanonicalPolicy,
    /// How long before it was fetched an article may claim to have been published. An earlier time is ignored
    /// when canonicals are ranked.
    pub published_within: Retention,
    /// How to handle an update that has no text.
    pub empty_update: EmptyUpdate,
    /// How many live documents of a bucket are examined, at most.
    pub max_bucket: usize,
    /// Duplicates whose confidence lies in this range, both ends included, are flagged for review.
    pub review: Option<(Fraction, Fraction)>,
    /// How far an article's time may lie ahead of its record's time, in milliseconds.
    pub max_clock_skew_millis: u64,
    /// Articles from before this time change the state but are not published.
    pub publish_from: Option<EventTime>,
    /// True if verdicts include their evidence.
    pub evidence: bool,
    /// Pairs of articles that an editor has judged.
    pub constraints: Arc<Constraints>,
    /// Hash of the settings; every verdict carries it.
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
    /// The similarity of a pair, by the measure that the algorithm decides on.
    pub fn similarity(&self, pair: &Comparison) -> f64 {
        match self.algorithm {
            _ if pair.relation == Relation::Exact => 1.0,
            Algorithm::Minhash | Algorithm::Combined => pair.similarity,
            Algorithm::Simhash128 => 1.0 - f64::from(pair.distance) / 128.0,
            Algorithm::Simhash64 => 1.0 - f64::from(pair.distance64) / 64.0,
        }
    }

    /// The Hamming distance by the SimHash width that the algorithm uses.
    pub(super) fn distance(&self, pair: &Comparison) -> u32 {
        if self.algorithm == Algorithm::Simhash64 { pair.distance64 } else { pair.distance }
    }

    /// True if a text is close enough to a cluster's canonical to join that cluster.
    ///
    /// A text that contains the canonical and adds more than it repeats is not: otherwise clusters would grow
    /// by chains of ever longer texts.
    pub(super) fn resembles(&self, pair: &Comparison) -> bool {
        match pair.relation {
            Relation::Exact | Relation::Near | Relation::Rewritten | Relation::Partial => true,
            Relation::Extends | Relation::SameTemplate | Relation::SameFurniture => false,
            // The floor is a fraction of the threshold; containment may fall below its own threshold by the
            // same fraction.
            Relation::FollowUp | Relation::Different => {
                let part = self.rules.containment_threshold * self.cluster_threshold / self.rules.threshold;
                pair.similarity >= self.cluster_threshold || pair.containment >= part
            }
        }
    }
}
