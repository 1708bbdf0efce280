//! The confidence of a verdict: the probability that a person would agree with it.
//!
//! Under `combined` it follows from the sum of the [evidence](super::evidence). Under the threshold
//! algorithms it is a piecewise linear curve, so every machine computes the same bits. Higher similarity
//! never lowers the confidence in a copy, and never raises the confidence that a text is unique.

use crate::model::Fraction;

use super::{Comparison, Relation};
use crate::engine::candidates::Candidate;
use crate::engine::settings::{Algorithm, LanguageSettings};

/// The points of a piecewise linear curve, ascending.
type Curve = &'static [(f64, f64)];

/// By how far the similarity exceeds the threshold: 0 at the threshold, 1 for equal shingles.
const NEAR: Curve = &[(0.0, 0.75), (0.1, 0.88), (0.3, 0.96), (1.0, 0.995)];
/// By how far the containment exceeds its threshold.
const PARTIAL: Curve = &[(0.0, 0.75), (0.5, 0.92), (1.0, 0.97)];
/// By how close the nearest text came to being a copy: 0 with nothing in common, 1 at the threshold. Fitted
/// to a stream in which most articles have copies (docs/quality.md): from a quarter of the way on, about one
/// in ten texts that are not called copies is a missed copy. The curve hardly falls further, so that more
/// similarity never means more confidence.
const UNIQUE: Curve = &[(0.0, 0.995), (0.15, 0.99), (0.25, 0.9), (1.0, 0.88)];
/// The text contains an earlier one; whether it counts as unique is a matter of taste.
const EXTENDS: f64 = 0.85;
/// The highest confidence that a text is unique: candidates may have been missed.
const NOTHING_ALIKE: f64 = 0.995;

/// The probability, under a threshold algorithm, that the newer text is a copy.
pub(crate) fn by_threshold(pair: &Comparison, settings: &LanguageSettings) -> Fraction {
    let (rules, hamming) = (&settings.rules, f64::from(settings.hamming));
    let contained = pair.containment.max(pair.containment_of_old);
    Fraction::new(match (pair.relation, settings.algorithm) {
        (Relation::Exact, _) => 1.0,
        (Relation::Partial, _) => at(PARTIAL, above(contained, rules.containment_threshold)),
        (Relation::Near | Relation::Rewritten, Algorithm::Simhash128 | Algorithm::Simhash64) => {
            at(NEAR, ((hamming - f64::from(settings.distance(pair))) / hamming.max(1.0)).clamp(0.0, 1.0))
        }
        (Relation::Near | Relation::Rewritten, _) => at(NEAR, above(pair.similarity, rules.threshold)),
        (Relation::Extends, _) => 1.0 - EXTENDS,
        (_, Algorithm::Simhash128) => 1.0 - at(UNIQUE, bits_shared(pair.distance, 64, settings.hamming)),
        (_, Algorithm::Simhash64) => 1.0 - at(UNIQUE, bits_shared(pair.distance64, 32, settings.hamming)),
        _ => {
            1.0 - at(UNIQUE, (pair.similarity / rules.threshold).max(contained / rules.containment_threshold))
        }
    })
}

/// The probability that a text is a copy of none of the candidates; the most doubtful candidate decides.
pub(crate) fn of_unique(candidates: &[Candidate]) -> Fraction {
    let doubt = candidates.iter().map(|candidate| candidate.comparison.confidence.get()).fold(0.0, f64::max);
    Fraction::new((1.0 - doubt).min(NOTHING_ALIKE))
}

/// 1 at the threshold, 0 where half of the bits differ.
fn bits_shared(distance: u32, half: u32, hamming: u32) -> f64 {
    let (distance, half, hamming) = (f64::from(distance), f64::from(half), f64::from(hamming));
    ((half - distance) / (half - hamming).max(1.0)).clamp(0.0, 1.0)
}

/// How far a value exceeds a bound: 0 at the bound, 1 at 1.
fn above(share: f64, bound: f64) -> f64 {
    ((share - bound) / (1.0 - bound)).clamp(0.0, 1.0)
}

/// The value of a curve at `x`; beyond its ends, the value at the end.
fn at(curve: Curve, x: f64) -> f64 {
    let after = curve.partition_point(|&(at, _)| at <= x);
    match (after.checked_sub(1).and_then(|before| curve.get(before)), curve.get(after)) {
        (Some(&(from, low)), Some(&(to, high))) => low + (high - low) * (x - from) / (to - from),
        (Some(&(_, end)), None) | (None, Some(&(_, end))) => end,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_through_its_points_and_stays_at_its_ends() {
        for curve in [NEAR, PARTIAL, UNIQUE] {
            for &(x, y) in curve {
                assert_eq!(at(curve, x), y);
            }
            assert_eq!(at(curve, -1.0), curve[0].1);
            assert_eq!(at(curve, 9.0), curve[curve.len() - 1].1);
        }
    }
}
