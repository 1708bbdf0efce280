//! Statistics: rates with confidence intervals, agreement of groupings, and calibration of confidences. The
//! report and tuning use them.

use std::collections::BTreeMap;

use serde::Serialize;

/// A proportion with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// Successes.
    pub hits: u64,
    /// Trials.
    pub of: u64,
    /// The proportion; `None` without trials.
    pub share: Option<f64>,
    /// Lower bound of the interval.
    pub low: f64,
    /// Upper bound of the interval.
    pub high: f64,
}

/// Standard deviations on either side that cover 95 %.
const Z: f64 = 1.959_963_985;

impl Rate {
    /// Computes the Wilson interval: it stays between 0 and 1, and is meaningful even for 0 of 20.
    pub fn new(hits: u64, of: u64) -> Rate {
        if of == 0 {
            return Rate { hits, of, share: None, low: 0.0, high: 1.0 };
        }
        let (n, p) = (of as f64, hits as f64 / of as f64);
        let middle = p + Z * Z / (2.0 * n);
        let spread = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let whole = 1.0 + Z * Z / n;
        let (low, high) = (((middle - spread) / whole).max(0.0), ((middle + spread) / whole).min(1.0));
        Rate { hits, of, share: Some(p), low, high }
    }
}

/// Harmonic mean of precision and recall; `None` if either is unknown.
pub fn f1(precision: Rate, recall: Rate) -> Option<f64> {
    let (p, r) = (precision.share?, recall.share?);
    Some(if p + r == 0.0 { 0.0 } else { 2.0 * p * r / (p + r) })
}

/// Adjusted Rand index of two groupings of the same items: 1 for equal groupings, about 0 for chance.
pub fn adjusted_rand<A: Ord, B: Ord>(labels: impl IntoIterator<Item = (A, B)>) -> f64 {
    let (mut cells, mut rows, mut columns) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut ids_a: BTreeMap<A, usize> = BTreeMap::new();
    let mut ids_b: BTreeMap<B, usize> = BTreeMap::new();
    let mut n = 0u64;
    for (a, b) in labels {
        let (next_a, next_b) = (ids_a.len(), ids_b.len());
        let (a, b) = (*ids_a.entry(a).or_insert(next_a), *ids_b.entry(b).or_insert(next_b));
        *cells.entry((a, b)).or_insert(0u64) += 1;
        *rows.entry(a).or_insert(0u64) += 1;
        *columns.entry(b).or_insert(0u64) += 1;
        n += 1;
    }
    let pairs = |count: u64| count as f64 * (count as f64 - 1.0) / 2.0;
    let both: f64 = cells.values().map(|&count| pairs(count)).sum();
    let (in_a, in_b): (f64, f64) =
        (rows.values().map(|&count| pairs(count)).sum(), columns.values().map(|&count| pairs(count)).sum());
    let expected = if n < 2 { 0.0 } else { in_a * in_b / pairs(n) };
    let most = (in_a + in_b) / 2.0;
    // Only singletons on both sides: they agree.
    if (most - expected).abs() < f64::EPSILON { 1.0 } else { (both - expected) / (most - expected) }
}

/// The verdicts whose confidence lies in one range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Lower bound of the confidence, inclusive.
    pub from: f64,
    /// Upper bound, exclusive; 1 belongs to the last bin.
    pub to: f64,
    /// How many were right.
    pub right: Rate,
    /// Their mean confidence.
    pub said: f64,
}

/// How well confidences match the frequency of right verdicts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// By confidence, ascending; without empty bins.
    pub bins: Vec<Bin>,
    /// Expected calibration error: mean distance between confidence and accuracy, weighted by verdicts.
    pub expected_error: f64,
}

/// Edges of the bins. Most verdicts are confident, so the upper bins are narrower.
const EDGES: [f64; 9] = [0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.01];

/// Bins verdicts, given as confidence and whether they were right.
pub fn calibration(verdicts: &[(f64, bool)]) -> Calibration {
    let mut bins = Vec::new();
    let mut error = 0.0;
    for edge in EDGES.windows(2) {
        let here: Vec<_> =
            verdicts.iter().filter(|(confidence, _)| (edge[0]..edge[1]).contains(confidence)).collect();
        if here.is_empty() {
            continue;
        }
        let right = Rate::new(here.iter().filter(|(_, right)| *right).count() as u64, here.len() as u64);
        let said = here.iter().map(|(confidence, _)| confidence).sum::<f64>() / here.len() as f64;
        error += (said - right.share.unwrap_or(said)).abs() * here.len() as f64;
        bins.push(Bin { from: edge[0], to: edge[1].min(1.0), right, said });
    }
    Calibration { bins, expected_error: error / verdicts.len().max(1) as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_intervals_match_published_values() {
        let rate = Rate::new(8, 10);
        assert!((rate.low - 0.4902).abs() < 1e-4 && (rate.high - 0.9433).abs() < 1e-4, "{rate:?}");
        let none = Rate::new(0, 20);
        assert!(none.low == 0.0 && (none.high - 0.1611).abs() < 1e-4, "{none:?}");
        assert_eq!(Rate::new(0, 0).share, None);
    }

    #[test]
    fn adjusted_rand_matches_published_values() {
        assert_eq!(adjusted_rand([(0, 1), (0, 1), (1, 0), (1, 0)]), 1.0);
        // The worked example in scikit-learn's documentation.
        let index = adjusted_rand([(0, 0), (0, 0), (1, 1), (1, 2)]);
        assert!((index - 0.571_428).abs() < 1e-5, "{index}");
        let index = adjusted_rand([(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert!((index + 0.5).abs() < 1e-9, "{index}");
        assert_eq!(adjusted_rand([(0, 0), (1, 1), (2, 2)]), 1.0);
    }

    #[test]
    fn confidence_is_calibrated_if_it_equals_the_accuracy() {
        let calibrated: Vec<(f64, bool)> = (0..10).map(|n| (0.9, n != 0)).collect();
        assert!(calibration(&calibrated).expected_error < 1e-9);
        let overconfident: Vec<(f64, bool)> = (0..10).map(|n| (0.99, n % 2 == 0)).collect();
        assert!((calibration(&overconfident).expected_error - 0.49).abs() < 1e-9);
    }

    #[test]
    fn f1_is_the_harmonic_mean() {
        assert_eq!(f1(Rate::new(1, 1), Rate::new(1, 2)), Some(2.0 / 3.0));
        assert_eq!(f1(Rate::new(0, 1), Rate::new(0, 2)), Some(0.0));
        assert_eq!(f1(Rate::new(0, 0), Rate::new(0, 2)), None);
    }
}
