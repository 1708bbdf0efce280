//! How sure a verdict is: the probability that a person would agree with it.
//!
//! Every curve is a line through a few points, so it can be fitted to judgements and gives the same bits on every
//! machine. More similarity never makes a copy less sure, nor a text of its own more sure.

use crate::model::Share;

use super::candidates::Candidate;
use super::compare::{Comparison, Relation};
use super::settings::{Algorithm, LanguageSettings};

/// Points of a curve, ascending; straight lines between them.
type Curve = &'static [(f64, f64)];

/// By how far the similarity lies above the threshold: 0 at the threshold, 1 for equal shingles.
const NEAR: Curve = &[(0.0, 0.75), (0.1, 0.88), (0.3, 0.96), (1.0, 0.995)];
/// By how far the coverage lies above the one asked for.
const PARTIAL: Curve = &[(0.0, 0.75), (0.5, 0.92), (1.0, 0.97)];
/// By how close the closest text came to being called a copy: 0 nothing in common, 1 at the threshold. Fitted to a
/// stream in which most articles have copies (docs/quality.md): from a quarter of the way on, what is not called a copy
/// is a missed one in about one case of ten. It hardly falls further, so that more similarity never means more sure.
const UNIQUE: Curve = &[(0.0, 0.995), (0.15, 0.99), (0.25, 0.9), (1.0, 0.88)];
/// By the share of numbers in common, of the share at which the guard no longer speaks.
const SAME_TEMPLATE: Curve = &[(0.0, 0.98), (0.5, 0.95), (1.0, 0.8)];
/// It contains an earlier text; that it is a text of its own is a matter of taste.
const EXTENDS: f64 = 0.85;
/// Too short to be compared: only copies word for word would have been found.
const NOT_COMPARED: f64 = 0.9;
/// Part of the remaining doubt that a SimHash without a differing bit takes away.
const SIMHASH_RAISES: f64 = 0.6;
/// Part of the confidence that a SimHash twice as far away as allowed, or more, takes away.
const SIMHASH_LOWERS: f64 = 0.15;
/// Part of the confidence that is lost if none of the numbers are in the other text.
const NUMERALS_LOWER: f64 = 0.3;

/// How sure it is that the newer text is a copy.
pub(super) fn of_copy(pair: &Comparison, settings: &LanguageSettings) -> Share {
    let (rules, hamming) = (&settings.rules, f64::from(settings.hamming));
    // From 1, no bit differs, over 0, as many as are allowed, to -1, twice as many.
    let agreement = ((hamming - f64::from(settings.distance(pair))) / hamming.max(1.0)).clamp(-1.0, 1.0);
    let sure = match (pair.relation, settings.algorithm) {
        (Relation::Exact, _) => return Share::new(1.0),
        // A part has other words than the whole: its SimHash says nothing.
        (Relation::Partial, _) => at(PARTIAL, above(pair.new_in_old.max(pair.old_in_new), rules.coverage)),
        (_, Algorithm::Simhash128 | Algorithm::Simhash64) => at(NEAR, agreement),
        (_, Algorithm::Minhash) => at(NEAR, above(pair.similarity, rules.threshold)),
        (_, Algorithm::Combined) => {
            let sure = at(NEAR, above(pair.similarity, rules.threshold));
            if agreement >= 0.0 {
                sure + (1.0 - sure) * SIMHASH_RAISES * agreement
            } else {
                sure + sure * SIMHASH_LOWERS * agreement
            }
        }
    };
    let numerals = 1.0 - NUMERALS_LOWER * (1.0 - pair.numerals.unwrap_or(1.0));
    Share::new(sure * numerals)
}

/// How sure it is that a text is none of these: as sure as it is of the most doubtful one.
pub(super) fn of_unique(candidates: &[Candidate], compared: bool, settings: &LanguageSettings) -> Share {
    let none = if compared { at(UNIQUE, 0.0) } else { NOT_COMPARED };
    let sure =
        candidates.iter().map(|candidate| of_other(&candidate.comparison, settings)).fold(none, f64::min);
    Share::new(sure)
}

fn of_other(pair: &Comparison, settings: &LanguageSettings) -> f64 {
    let rules = &settings.rules;
    match pair.relation {
        Relation::SameTemplate => at(SAME_TEMPLATE, pair.numerals.unwrap_or(0.0) / rules.numerals_share),
        Relation::Extends => EXTENDS,
        _ => {
            let whole = match settings.algorithm {
                Algorithm::Minhash | Algorithm::Combined => pair.similarity / rules.threshold,
                // Unrelated texts differ in half of the bits.
                Algorithm::Simhash128 => bits_shared(pair.distance, 64, settings.hamming),
                Algorithm::Simhash64 => bits_shared(pair.distance64, 32, settings.hamming),
            };
            at(UNIQUE, whole.max(pair.new_in_old.max(pair.old_in_new) / rules.coverage))
        }
    }
}

/// 1 at the distance that is allowed, 0 where half of the bits differ.
fn bits_shared(distance: u32, half: u32, hamming: u32) -> f64 {
    let (distance, half, hamming) = (f64::from(distance), f64::from(half), f64::from(hamming));
    ((half - distance) / (half - hamming).max(1.0)).clamp(0.0, 1.0)
}

/// How far a share lies above a bound: 0 there, 1 at the whole.
fn above(share: f64, bound: f64) -> f64 {
    ((share - bound) / (1.0 - bound)).clamp(0.0, 1.0)
}

/// A curve's value; beyond its ends, that of the end.
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
    use proptest::prelude::*;

    fn pair(relation: Relation) -> Comparison {
        Comparison {
            relation,
            similarity: 0.6,
            new_in_old: 0.7,
            old_in_new: 0.7,
            numerals: None,
            distance: 20,
            distance64: 10,
        }
    }

    fn settings(algorithm: Algorithm) -> LanguageSettings {
        LanguageSettings { algorithm, ..LanguageSettings::default() }
    }

    fn ordered(low: f64, high: f64) -> (f64, f64) {
        (low.min(high), low.max(high))
    }

    #[test]
    fn a_second_opinion_raises_and_lowers() {
        let near = |algorithm, distance| {
            of_copy(&Comparison { distance, ..pair(Relation::Near) }, &settings(algorithm))
        };
        let alone = near(Algorithm::Minhash, 20);
        assert!(near(Algorithm::Combined, 2) > alone);
        assert!(near(Algorithm::Combined, 48) < alone);
        assert_eq!(near(Algorithm::Minhash, 2), alone, "nobody else was asked");
    }

    #[test]
    fn the_same_text_is_certain() {
        assert_eq!(of_copy(&pair(Relation::Exact), &settings(Algorithm::Combined)), Share::new(1.0));
    }

    #[test]
    fn a_curve_goes_through_its_points_and_stays_at_its_ends() {
        for curve in [NEAR, PARTIAL, UNIQUE, SAME_TEMPLATE] {
            for &(x, y) in curve {
                assert_eq!(at(curve, x), y);
            }
            assert_eq!(at(curve, -1.0), curve[0].1);
            assert_eq!(at(curve, 9.0), curve[curve.len() - 1].1);
        }
    }

    proptest! {
        #[test]
        fn more_alike_is_more_surely_a_copy(a in 0.5..1.0, b in 0.5..1.0, c in 0u32..=64, d in 0u32..=64, n in 0.0..1.0, m in 0.0..1.0, which in 0usize..4, part in any::<bool>()) {
            let ((low, high), (close, far), (fewer, more)) = (ordered(a, b), (c.min(d), c.max(d)), ordered(n, m));
            let settings = settings([Algorithm::Minhash, Algorithm::Simhash128, Algorithm::Simhash64, Algorithm::Combined][which]);
            let relation = if part { Relation::Partial } else { Relation::Near };
            let of = |share, distance, numerals| of_copy(
                &Comparison { similarity: share, new_in_old: share, distance, distance64: distance, numerals: Some(numerals), ..pair(relation) },
                &settings,
            );
            prop_assert!(of(low, close, more) <= of(high, close, more));
            prop_assert!(of(low, far, more) <= of(low, close, more));
            prop_assert!(of(low, close, fewer) <= of(low, close, more));
        }

        #[test]
        fn more_alike_is_less_surely_a_text_of_its_own(a in 0.0..0.5, b in 0.0..0.5, n in 0.0..0.5, m in 0.0..0.5) {
            let ((low, high), (fewer, more)) = (ordered(a, b), ordered(n, m));
            let settings = settings(Algorithm::Combined);
            let other = |similarity| of_other(&Comparison { similarity, ..pair(Relation::Different) }, &settings);
            prop_assert!(other(high) <= other(low));
            let template = |numerals| of_other(&Comparison { numerals: Some(numerals), ..pair(Relation::SameTemplate) }, &settings);
            prop_assert!(template(more) <= template(fewer));
        }
    }
}
