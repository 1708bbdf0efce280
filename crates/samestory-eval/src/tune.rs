//! Which line of confidence fits a language, told on articles that had no say in choosing it.
//!
//! Pairs of labelled articles are split in two halves by the hash of the older one's group. One half chooses, the other
//! tells what the choice is worth.

use std::collections::BTreeSet;

use xxhash_rust::xxh3::xxh3_64;

use samestory_engine::Options as EngineOptions;
use samestory_engine::engine::compare::{Comparison, Relation};
use samestory_engine::engine::{Engine, LanguageSettings, Prepared};
use samestory_engine::index::{Durability, Memory, StoreError};
use samestory_engine::model::Lang;

use super::labelled::{Expect, Label, Set};
use super::run::{self, Options};
use super::score::{Calibration, Rate, calibration, f1};

/// Two articles with a label, and what was measured about them.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The older article's id.
    pub old: String,
    /// The newer one's.
    pub new: String,
    /// Whether they have the same text.
    pub same: bool,
    /// Chooses, or tells what the choice is worth.
    pub fits: bool,
    prints: Box<(Prepared, Prepared)>,
}

/// What a line is worth.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The least confidence of a duplicate.
    pub min_confidence: f64,
    /// Of pairs called copies, those that are.
    pub precision: Rate,
    /// Of pairs that are copies, those called so.
    pub recall: Rate,
    /// The harmonic mean.
    pub f1: Option<f64>,
}

/// What was found for a language.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// What each line is worth, on the half that did not choose.
    pub choices: Vec<Choice>,
    /// The line that was chosen.
    pub min_confidence: f64,
    /// How well confidence is calibrated on the half that did not choose.
    pub honesty: Calibration,
    /// Old id, new id, what it was, what it would be, and whether they are the same text.
    pub flips: Vec<(String, String, Relation, Relation, bool)>,
    /// How many pairs there were: to choose with, to tell with.
    pub pairs: (usize, usize),
}

/// Labelled pairs of one language: copies with the first of their group, listed pairs, and whatever else the engine
/// would have compared.
///
/// # Errors
/// The state could not be read: a defect, for it is in memory.
pub fn pairs(engine_options: &EngineOptions, set: &Set, language: Lang) -> Result<Vec<Judged>, StoreError> {
    let prepared = run::prepare(engine_options, set, Options::default());
    let here = |at: usize| prepared[at].as_ref().filter(|one| one.language == language);
    let mut labels: BTreeSet<(usize, usize, bool)> = BTreeSet::new();
    for pair in set.pairs.iter().filter(|pair| pair.label != Label::Gray) {
        labels.insert((pair.old, pair.new, pair.label == Label::Same));
    }
    let engine = Engine::new(engine_options.settings.clone());
    let mut store = Memory::new(engine_options.schemes.clone(), Durability::OwnWal);
    for (at, one) in set.articles.iter().enumerate() {
        let (Some(own), Some(expect)) = (here(at), one.expect) else { continue };
        if expect == Expect::Gray {
            continue;
        }
        let first = set.articles.iter().position(|other| other.group == one.group);
        if let Some(first) = first.filter(|&first| expect == Expect::Dup && first < at) {
            labels.insert((first, at, true));
        }
        for candidate in engine.candidates(&store, own, None)?.all {
            let id = candidate.document.id.as_str();
            let Some(old) = set.articles.iter().position(|other| other.article.id.as_str() == id) else {
                continue;
            };
            labels.insert((old, at, set.articles[old].group == one.group));
        }
        run::remember(&engine, &mut store, own.clone())?;
    }
    let judged = labels.into_iter().filter_map(|(old, new, same)| {
        let (older, newer) = (here(old)?, here(new)?);
        let article = &set.articles[old];
        let id = article.article.id.as_str();
        let fits = xxh3_64(article.group.as_deref().unwrap_or(id).as_bytes()) & 1 == 0;
        let prints = Box::new((older.clone(), newer.clone()));
        Some(Judged { old: id.to_owned(), new: newer.id.to_string(), same, fits, prints })
    });
    Ok(judged.collect())
}

impl Judged {
    fn compare(&self, settings: &LanguageSettings) -> Comparison {
        settings.compare(&self.prints.0.fingerprint, &self.prints.1.fingerprint)
    }
}

/// The settings with another line.
fn with(settings: &LanguageSettings, min_confidence: f64) -> LanguageSettings {
    let mut other = *settings;
    other.rules.min_confidence = min_confidence;
    other
}

fn worth<'a>(pairs: impl Iterator<Item = &'a Judged>, settings: &LanguageSettings, line: f64) -> Choice {
    let settings = with(settings, line);
    let (mut right, mut called, mut copies) = (0, 0, 0);
    for pair in pairs {
        let copy = pair.compare(&settings).relation.is_duplicate();
        right += u64::from(copy && pair.same);
        called += u64::from(copy);
        copies += u64::from(pair.same);
    }
    let (precision, recall) = (Rate::new(right, called), Rate::new(right, copies));
    Choice { min_confidence: line, precision, recall, f1: f1(precision, recall) }
}

/// Looks for the line with the best F-measure that counts a wrong merge twice as much as a missed copy: a
/// newsroom rather reads a story twice than not at all.
pub fn tune(pairs: &[Judged], settings: &LanguageSettings) -> Tuned {
    let lines: Vec<f64> = (4..=19).map(|step| f64::from(step) * 0.05).collect();
    let (fit, test): (Vec<&Judged>, Vec<&Judged>) = pairs.iter().partition(|pair| pair.fits);
    let score = |&line: &f64| {
        let choice = worth(fit.iter().copied(), settings, line);
        let (p, r) = (choice.precision.share.unwrap_or(0.0), choice.recall.share.unwrap_or(0.0));
        if p + r == 0.0 { 0.0 } else { 1.25 * p * r / (0.25 * p + r) }
    };
    // Of equals the one nearest to what is set: nothing changes without a reason.
    let nearness = |line: f64| -(line - settings.rules.min_confidence).abs();
    let min_confidence = lines
        .iter()
        .copied()
        .max_by(|a, b| score(a).total_cmp(&score(b)).then(nearness(*a).total_cmp(&nearness(*b))))
        .unwrap_or(settings.rules.min_confidence);
    let chosen = with(settings, min_confidence);
    let said: Vec<(f64, bool)> = test
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
        choices: lines.iter().map(|&one| worth(test.iter().copied(), settings, one)).collect(),
        min_confidence,
        honesty: calibration(&said),
        flips: flips.collect(),
        pairs: (fit.len(), test.len()),
    }
}
