//! Evidence that two texts are the same item: a small additive model.
//!
//! [`compare`](crate::engine::compare) measures a pair. Each [`Measure`] is a fraction between 0 and 1, or
//! unknown. The [`Weights`] turn it into a contribution along a monotonic, piecewise linear curve; an unknown
//! measure contributes nothing. The sum of all contributions is the log-odds that an editor would call the
//! newer text the same item as the older, and [`probability`] turns it into a confidence.
//!
//! The model uses only sums, products and comparisons, so every machine computes the same bits.

use crate::model::Contribution;
use crate::model::Fraction;

/// One measure of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum Measure {
    /// Containment of the smaller text in the larger.
    Contained,
    /// Fraction of the newer text's sampled shingles that the older text shares and hardly any other cluster
    /// has.
    Rare,
    /// Fraction of one text's opening that occurs in the other text; the better of both directions.
    Opening,
    /// Fraction of the smaller set of numbers that occurs in the larger.
    Numbers,
    /// How many numbers each text has that the other lacks; six or more count as 1, and none between two layouts of one table.
    NumbersReplaced,
    /// How many exact figures both have, numbers of three significant digits or more: six or more count as all.
    Figures,
    /// Share of the smaller set of names that is in the larger.
    Names,
    /// Fraction of the shorter headline's words that occur in the longer.
    Titles,
    /// How short the shorter text is: 1 for no words, 0 from 100 tokens.
    Brevity,
    /// How much more the newer text adds to the older than it repeats, unless both open alike.
    Added,
    /// A short text under unrelated headlines: a paywall stub or consent notice rather than an article. One half if both texts
    /// share common phrases alone.
    Wall,
    /// One of the two contains several articles: it is a digest, and no article is a copy of a digest.
    Digest,
}

/// How many measures there are.
pub const MEASURES: usize = 12;

impl Measure {
    /// All measures, in the order of the weights table.
    pub const ALL: [Measure; MEASURES] = [
        Measure::Contained,
        Measure::Rare,
        Measure::Opening,
        Measure::Numbers,
        Measure::NumbersReplaced,
        Measure::Figures,
        Measure::Names,
        Measure::Titles,
        Measure::Brevity,
        Measure::Added,
        Measure::Wall,
        Measure::Digest,
    ];

    /// The name used in `explain`, in the evidence of a verdict and in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Measure::Contained => "contained",
            Measure::Rare => "rare",
            Measure::Opening => "opening",
            Measure::Numbers => "numbers",
            Measure::NumbersReplaced => "numbers-replaced",
            Measure::Figures => "figures",
            Measure::Names => "names",
            Measure::Titles => "titles",
            Measure::Brevity => "brevity",
            Measure::Added => "added",
            Measure::Wall => "wall",
            Measure::Digest => "digest",
        }
    }

    /// True if a higher value speaks for a copy; the other measures speak against one.
    pub const fn speaks_for(self) -> bool {
        !matches!(
            self,
            Measure::NumbersReplaced | Measure::Brevity | Measure::Added | Measure::Wall | Measure::Digest
        )
    }
}

/// The measures of one pair; `None` for an unknown measure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence([Option<f64>; MEASURES]);

impl Evidence {
    /// The value of a measure.
    pub fn get(&self, measure: Measure) -> Option<f64> {
        self.0[measure as usize]
    }

    /// Sets a measure, clamped to 0 to 1.
    pub fn set(&mut self, measure: Measure, share: Option<f64>) {
        self.0[measure as usize] = share.map(|share| share.clamp(0.0, 1.0));
    }
}

/// Knots of every curve: the values at which its slope may change.
pub const KNOTS: [f64; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];
const SEGMENTS: usize = KNOTS.len() - 1;

/// How much each measure contributes to the log-odds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Log-odds of a pair about which nothing is known.
    pub prior: f64,
    /// For each measure, the gain (or loss) between one knot and the next. Never negative: the measure
    /// determines the sign.
    pub steps: [[f64; SEGMENTS]; MEASURES],
    /// For each measure, the value that contributes nothing, as an unknown measure does.
    pub neutral: [f64; MEASURES],
}

impl Weights {
    /// The contribution of one measure.
    pub fn contribution(&self, measure: Measure, evidence: &Evidence) -> f64 {
        let Some(share) = evidence.get(measure) else { return 0.0 };
        let at = measure as usize;
        let height = climb(&self.steps[at], share) - climb(&self.steps[at], self.neutral[at]);
        if measure.speaks_for() { height } else { -height }
    }

    /// The contribution of each known measure, in the order of the weights table.
    pub fn contributions(&self, evidence: &Evidence) -> Vec<Contribution> {
        let known = Measure::ALL.into_iter().filter_map(|measure| Some((measure, evidence.get(measure)?)));
        known
            .map(|(measure, share)| Contribution {
                measure: measure.as_str(),
                share: Fraction::new(share),
                weight: (self.contribution(measure, evidence) * 1000.0).round() as i32,
            })
            .collect()
    }

    /// The largest possible contribution of a measure.
    pub fn most(&self, measure: Measure) -> f64 {
        let mut evidence = Evidence::default();
        evidence.set(measure, Some(if measure.speaks_for() { 1.0 } else { 0.0 }));
        self.contribution(measure, &evidence)
    }

    /// The log-odds that an editor would call the newer text the same item.
    pub fn log_odds(&self, evidence: &Evidence) -> f64 {
        Measure::ALL.iter().fold(self.prior, |sum, &measure| sum + self.contribution(measure, evidence))
    }
}

/// The height of a curve above its start.
fn climb(steps: &[f64; SEGMENTS], share: f64) -> f64 {
    let mut height = 0.0;
    for (segment, step) in steps.iter().enumerate() {
        let (from, to) = (KNOTS[segment], KNOTS[segment + 1]);
        height += step * ((share - from) / (to - from)).clamp(0.0, 1.0);
    }
    height
}

/// The logistic function at 0, ¼, ½ … 8.
const LOGISTIC: [f64; 33] = [
    0.5, 0.5621765, 0.62245933, 0.6791787, 0.73105858, 0.77729986, 0.81757448, 0.8519528, 0.88079708,
    0.90465054, 0.92414182, 0.93991335, 0.95257413, 0.96267311, 0.97068777, 0.97702263, 0.98201379,
    0.98593637, 0.98901306, 0.99142251, 0.99330715, 0.99477987, 0.99592986, 0.99682732, 0.99752738,
    0.99807327, 0.99849882, 0.99883049, 0.99908895, 0.99929033, 0.99944722, 0.99956944, 0.99966465,
];

/// The probability for given log-odds, interpolated from a table so that the result does not depend on a
/// maths library. Log-odds beyond 8 stay at 0.9997.
pub fn probability(log_odds: f64) -> f64 {
    let size = (log_odds.abs() * 4.0).min(32.0);
    let at = (size as usize).min(31);
    let upper = LOGISTIC[at] + (LOGISTIC[at + 1] - LOGISTIC[at]) * (size - at as f64);
    if log_odds >= 0.0 { upper } else { 1.0 - upper }
}

/// The same as a [`Fraction`], which verdicts use: its rounding hides anything finer from published records.
pub fn confidence(log_odds: f64) -> Fraction {
    Fraction::new(probability(log_odds))
}
