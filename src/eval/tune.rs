//! Which threshold fits a language, told on articles that had no say in choosing it.
//!
//! Pairs of labelled articles are split in two halves by the hash of the older one's group. One half chooses, the other
//! tells what the choice is worth.

use std::collections::BTreeSet;

use xxhash_rust::xxh3::xxh3_64;

use crate::config::Config;
use crate::detect::compare::{Comparison, Relation};
use crate::detect::{Engine, LanguageSettings, Prepared};
use crate::model::Lang;
use crate::store::{Ahead, Memory, StoreError};

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

/// What a threshold is worth.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The threshold.
    pub threshold: f64,
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
    /// What each threshold is worth, on the half that did not choose.
    pub choices: Vec<Choice>,
    /// The threshold that was chosen.
    pub threshold: f64,
    /// Points of the curve from similarity above the threshold (0 there, 1 for equal) to the share that is right.
    pub curve: Vec<(f64, f64)>,
    /// How honest the curve is on the half that did not choose.
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
pub fn pairs(config: &Config, set: &Set, language: Lang) -> Result<Vec<Judged>, StoreError> {
    let prepared = run::prepare(config, set, Options::default());
    let here = |at: usize| prepared[at].as_ref().filter(|one| one.language == language);
    let mut labels: BTreeSet<(usize, usize, bool)> = BTreeSet::new();
    for pair in set.pairs.iter().filter(|pair| pair.label != Label::Gray) {
        labels.insert((pair.old, pair.new, pair.label == Label::Same));
    }
    let engine = Engine::new(config.engine.clone());
    let mut store = Memory::new(config.postings.clone(), Ahead::Itself);
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

/// The settings with another threshold; what hangs on it goes along.
fn with(settings: &LanguageSettings, threshold: f64) -> LanguageSettings {
    let mut other = *settings;
    let factor = threshold / settings.rules.threshold;
    other.rules.threshold = threshold;
    other.rules.rewritten = settings.rules.rewritten * factor;
    other.floor = settings.floor * factor;
    other
}

fn worth<'a>(pairs: impl Iterator<Item = &'a Judged>, settings: &LanguageSettings, threshold: f64) -> Choice {
    let settings = with(settings, threshold);
    let (mut right, mut called, mut copies) = (0, 0, 0);
    for pair in pairs {
        let copy = pair.compare(&settings).relation.is_duplicate();
        right += u64::from(copy && pair.same);
        called += u64::from(copy);
        copies += u64::from(pair.same);
    }
    let (precision, recall) = (Rate::new(right, called), Rate::new(right, copies));
    Choice { threshold, precision, recall, f1: f1(precision, recall) }
}

/// Looks for the threshold with the best F-measure that counts a wrong merge twice as much as a missed copy: a
/// newsroom rather reads a story twice than not at all.
pub fn tune(pairs: &[Judged], settings: &LanguageSettings) -> Tuned {
    let thresholds: Vec<f64> = (6..=16).map(|step| f64::from(step) * 0.05).collect();
    let (fit, test): (Vec<&Judged>, Vec<&Judged>) = pairs.iter().partition(|pair| pair.fits);
    let score = |&threshold: &f64| {
        let choice = worth(fit.iter().copied(), settings, threshold);
        let (p, r) = (choice.precision.share.unwrap_or(0.0), choice.recall.share.unwrap_or(0.0));
        if p + r == 0.0 { 0.0 } else { 1.25 * p * r / (0.25 * p + r) }
    };
    // Of equals the one nearest to what is set: nothing changes without a reason.
    let nearness = |threshold: f64| -(threshold - settings.rules.threshold).abs();
    let threshold = thresholds
        .iter()
        .copied()
        .max_by(|a, b| score(a).total_cmp(&score(b)).then(nearness(*a).total_cmp(&nearness(*b))))
        .unwrap_or(settings.rules.threshold);
    let chosen = with(settings, threshold);
    let near = |pairs: &[&Judged]| -> Vec<(f64, bool)> {
        let all = pairs.iter().map(|pair| (pair.compare(&chosen), pair.same));
        let near = all.filter(|(pair, _)| pair.relation == Relation::Near);
        near.map(|(pair, same)| (((pair.similarity - threshold) / (1.0 - threshold)).max(0.0), same))
            .collect()
    };
    let curve = isotonic(near(&fit));
    let said: Vec<(f64, bool)> = near(&test).into_iter().map(|(x, same)| (at(&curve, x), same)).collect();
    let flips = pairs.iter().filter_map(|pair| {
        let (before, after) = (pair.compare(settings).relation, pair.compare(&chosen).relation);
        (before.is_duplicate() != after.is_duplicate())
            .then(|| (pair.old.clone(), pair.new.clone(), before, after, pair.same))
    });
    Tuned {
        choices: thresholds.iter().map(|&one| worth(test.iter().copied(), settings, one)).collect(),
        threshold,
        honesty: calibration(&said),
        curve,
        flips: flips.collect(),
        pairs: (fit.len(), test.len()),
    }
}

/// The rising steps closest to the points (pool adjacent violators), as points of a curve. Every step is drawn towards
/// one half by one right and one wrong, so that a few lucky pairs do not make a certainty.
fn isotonic(mut points: Vec<(f64, bool)>) -> Vec<(f64, f64)> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut steps: Vec<(f64, f64, f64)> = Vec::new();
    // Twenty points a step at least: fewer say nothing.
    for chunk in points.chunks(20) {
        let n = chunk.len() as f64;
        let x = chunk.iter().map(|point| point.0).sum::<f64>();
        steps.push((x, chunk.iter().filter(|point| point.1).count() as f64, n));
        while let [.., before, last] = steps[..] {
            if before.1 / before.2 < last.1 / last.2 {
                break;
            }
            steps.truncate(steps.len() - 2);
            steps.push((before.0 + last.0, before.1 + last.1, before.2 + last.2));
        }
    }
    steps.into_iter().map(|(x, right, n)| (x / n, (right + 1.0) / (n + 2.0))).collect()
}

fn at(curve: &[(f64, f64)], x: f64) -> f64 {
    let after = curve.partition_point(|&(at, _)| at <= x);
    match (after.checked_sub(1).map(|before| curve[before]), curve.get(after)) {
        (Some((from, low)), Some(&(to, high))) => low + (high - low) * (x - from) / (to - from),
        (Some((_, end)), None) | (None, Some(&(_, end))) => end,
        (None, None) => 0.5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_rises_and_keeps_the_mean() {
        let points: Vec<(f64, bool)> =
            (0..200).map(|n| (f64::from(n) / 200.0, n % 7 != 0 || n > 150)).collect();
        let curve = isotonic(points);
        assert!(curve.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1), "{curve:?}");
        assert!(at(&curve, 1.0) > 0.9 && at(&curve, 0.0) > 0.7, "{curve:?}");
        assert_eq!(at(&[], 0.3), 0.5);
    }
}
