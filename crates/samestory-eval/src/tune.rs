//! Searches for the `min_confidence` that fits a language, and tests it on articles that did not influence
//! the choice.
//!
//! Labelled pairs are split in two halves by the hash of the older article's group. One half chooses the
//! threshold, the other tells how good it is.

use std::collections::BTreeSet;

use xxhash_rust::xxh3::xxh3_64;

use samestory_engine::engine::Prepared;
use samestory_engine::{
    Comparison, Deduplicator, Lang, LanguageSettings, Options as EngineOptions, Relation, StoreError,
};

use super::labelled::{Expect, Label, Set};
use super::run::{self, RunOptions};
use super::score::{Calibration, Rate, calibration, f1};

/// Two labelled articles with their fingerprints.
#[derive(Clone, Debug)]
pub struct TuningPair {
    /// The older article's id.
    pub old: String,
    /// The newer article's id.
    pub new: String,
    /// True if they have the same text.
    pub same: bool,
    /// True if the pair belongs to the half that chooses.
    pub fits: bool,
    prints: Box<(Prepared, Prepared)>,
}

/// How good one threshold is.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The threshold: the least confidence of a duplicate.
    pub min_confidence: f64,
    /// The fraction of pairs judged copies that are copies.
    pub precision: Rate,
    /// The fraction of copies that were judged copies.
    pub recall: Rate,
    /// Harmonic mean of the two.
    pub f1: Option<f64>,
}

/// The result for a language.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// How good each threshold is on the test half.
    pub choices: Vec<Choice>,
    /// The chosen threshold.
    pub min_confidence: f64,
    /// Calibration of the confidences on the test half.
    pub calibration: Calibration,
    /// Pairs whose verdict would change: old id, new id, relation before and after, and whether they are the
    /// same text.
    pub flips: Vec<(String, String, Relation, Relation, bool)>,
    /// Number of pairs in the choosing half and in the test half.
    pub pairs: (usize, usize),
}

/// The labelled pairs of one language: copies with the first of their group, listed pairs, and all others
/// that the engine would have compared.
///
/// # Errors
/// The state could not be read; that is a bug, because it is in memory.
pub fn pairs(
    engine_options: &EngineOptions,
    set: &Set,
    language: Lang,
) -> Result<Vec<TuningPair>, StoreError> {
    let mut dedup = Deduplicator::in_memory(engine_options.clone());
    let prepared = run::prepare(&dedup, set, RunOptions::default());
    let here = |at: usize| prepared[at].as_ref().filter(|one| one.language == language);
    let mut labels: BTreeSet<(usize, usize, bool)> = BTreeSet::new();
    for pair in set.pairs.iter().filter(|pair| pair.label != Label::Gray) {
        labels.insert((pair.old, pair.new, pair.label == Label::Same));
    }
    for (at, one) in set.articles.iter().enumerate() {
        let (Some(own), Some(expect)) = (here(at), one.expect) else { continue };
        if expect == Expect::Gray {
            continue;
        }
        let first = set.articles.iter().position(|other| other.group == one.group);
        if let Some(first) = first.filter(|&first| expect == Expect::Dup && first < at) {
            labels.insert((first, at, true));
        }
        for candidate in dedup.candidates(own)?.all {
            let id = candidate.document.id.as_str();
            let Some(old) = set.articles.iter().position(|other| other.article.id.as_str() == id) else {
                continue;
            };
            labels.insert((old, at, set.articles[old].group == one.group));
        }
        run::insert(&mut dedup, own)?;
    }
    let judged = labels.into_iter().filter_map(|(old, new, same)| {
        let (older, newer) = (here(old)?, here(new)?);
        let article = &set.articles[old];
        let id = article.article.id.as_str();
        let fits = xxh3_64(article.group.as_deref().unwrap_or(id).as_bytes()) & 1 == 0;
        let prints = Box::new((older.clone(), newer.clone()));
        Some(TuningPair { old: id.to_owned(), new: newer.id.to_string(), same, fits, prints })
    });
    Ok(judged.collect())
}

impl TuningPair {
    fn compare(&self, settings: &LanguageSettings) -> Comparison {
        settings.compare(&self.prints.0.fingerprint, &self.prints.1.fingerprint)
    }
}

/// The settings with another threshold.
fn with_threshold(settings: &LanguageSettings, min_confidence: f64) -> LanguageSettings {
    let mut other = *settings;
    other.rules.min_confidence = min_confidence;
    other
}

fn evaluate<'a>(
    pairs: impl Iterator<Item = &'a TuningPair>,
    settings: &LanguageSettings,
    threshold: f64,
) -> Choice {
    let settings = with_threshold(settings, threshold);
    let (mut right, mut called, mut copies) = (0, 0, 0);
    for pair in pairs {
        let copy = pair.compare(&settings).relation.is_duplicate();
        right += u64::from(copy && pair.same);
        called += u64::from(copy);
        copies += u64::from(pair.same);
    }
    let (precision, recall) = (Rate::new(right, called), Rate::new(right, copies));
    Choice { min_confidence: threshold, precision, recall, f1: f1(precision, recall) }
}

/// Finds the threshold with the best F0.5 score, which counts a wrong merge twice as much as a missed copy: a
/// newsroom would rather read a story twice than not at all.
pub fn tune(pairs: &[TuningPair], settings: &LanguageSettings) -> Tuned {
    let thresholds: Vec<f64> = (4..=19).map(|step| f64::from(step) * 0.05).collect();
    let (fit, test): (Vec<&TuningPair>, Vec<&TuningPair>) = pairs.iter().partition(|pair| pair.fits);
    let score = |&threshold: &f64| {
        let choice = evaluate(fit.iter().copied(), settings, threshold);
        let (p, r) = (choice.precision.share.unwrap_or(0.0), choice.recall.share.unwrap_or(0.0));
        if p + r == 0.0 { 0.0 } else { 1.25 * p * r / (0.25 * p + r) }
    };
    // Among equals the one nearest to the current setting: nothing changes without a reason.
    let nearness = |threshold: f64| -(threshold - settings.rules.min_confidence).abs();
    let min_confidence = thresholds
        .iter()
        .copied()
        .max_by(|a, b| score(a).total_cmp(&score(b)).then(nearness(*a).total_cmp(&nearness(*b))))
        .unwrap_or(settings.rules.min_confidence);
    let chosen = with_threshold(settings, min_confidence);
    let confidences: Vec<(f64, bool)> = test
        .iter()
        .map(|pair| (pair.compare(&chosen), pair.same))
        .filter(|(pair, _)| pair.relation.is_duplicate())
        .map(|(pair, same)| (pair.confidence.get(), same))
        .collect();
    let flips = pairs.iter().filter_map(|pair| {
        let (before, after) = (pair.compare(settings).relation, pair.compare(&chosen).relation);
        (before.is_duplicate() != after.is_duplicate())
            .then(|| (pair.old.clone(), pair.new.clone(), before, after, pair.same))
    });
    Tuned {
        choices: thresholds.iter().map(|&one| evaluate(test.iter().copied(), settings, one)).collect(),
        min_confidence,
        calibration: calibration(&confidences),
        flips: flips.collect(),
        pairs: (fit.len(), test.len()),
    }
}
