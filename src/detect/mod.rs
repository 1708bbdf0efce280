//! Deciding: what an article is to those seen before it.
//!
//! An [`Article`](crate::event::Article) is [prepared](prepare) on any thread, without state. A [`Batch`] of prepared
//! articles is [planned](Engine::plan) in order against the state: the [`Plan`] says what goes out and what changes,
//! and does neither. A verdict is a function of the articles that came before, of nothing else.

pub mod compare;
mod plan;
pub mod prepare;

use std::collections::BTreeMap;

use crate::model::{EventTime, Lang, Share};
use crate::store::Retention;

use compare::Rules;

pub use plan::{Batch, Decided, Incoming, Item, Output, Plan, Stats};
pub use prepare::{Prepared, Preparer};

/// What finds and verifies near-duplicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// MinHash alone.
    Minhash,
    /// The Hamming distance of 128-bit SimHashes.
    Simhash128,
    /// The Hamming distance of 64-bit SimHashes.
    Simhash64,
    /// MinHash finds and verifies; SimHash is the second opinion.
    #[default]
    Combined,
}

/// Who stands for a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// How the articles of one language are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LanguageSettings {
    /// When two texts count as the same.
    pub rules: Rules,
    /// What finds and verifies.
    pub algorithm: Algorithm,
    /// SimHashes that differ in at most so many bits agree; under a SimHash algorithm those are near-duplicates.
    pub hamming: u32,
    /// Similarity to the cluster's canonical that a member needs at least: below the threshold.
    pub floor: f64,
    /// How long documents are remembered.
    pub retention: Retention,
}

impl Default for LanguageSettings {
    fn default() -> LanguageSettings {
        LanguageSettings {
            rules: Rules::default(),
            algorithm: Algorithm::default(),
            hamming: 24,
            floor: 0.3,
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
    /// How many documents of a bucket are examined.
    pub max_bucket: usize,
    /// Verdicts with a confidence in here, both ends included, are flagged for review.
    pub review: Option<(Share, Share)>,
    /// How far an article's time may lie ahead of its record's, in milliseconds.
    pub skew_millis: u64,
    /// Articles from before this time change state and are not published.
    pub publish_from: Option<EventTime>,
    /// Hash of the settings, named in every verdict.
    pub config: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            default: LanguageSettings::default(),
            languages: BTreeMap::new(),
            canonical: CanonicalPolicy::default(),
            max_bucket: 64,
            review: None,
            skew_millis: 60 * 60 * 1000,
            publish_from: None,
            config: 0,
        }
    }
}

/// Decides. It holds settings and nothing else: all it knows of earlier articles it reads from the state it is given.
#[derive(Clone, Debug)]
pub struct Engine {
    settings: Settings,
}

impl Engine {
    /// How many sampled shingles a document should post so that its parts are found.
    pub const SAMPLES: u8 = 16;

    /// An engine with these settings.
    pub fn new(settings: Settings) -> Engine {
        Engine { settings }
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings of a language.
    pub fn of(&self, language: Lang) -> &LanguageSettings {
        self.settings.languages.get(&language).unwrap_or(&self.settings.default)
    }
}
