//! Compares two fingerprints: [`measure`] measures the pair, and [`LanguageSettings::decide`] decides whether the two
//! texts are the same item, and otherwise how the newer one relates to the older one.
//!
//! [`evidence`] weighs the measures and `confidence` rates the threshold algorithms. A comparison is a pure
//! function of two fingerprints and the language's settings; only the index knows how common the shared
//! phrases are, and `index_evidence` adds that.

pub(crate) mod confidence;
pub mod evidence;
pub(crate) mod index_evidence;
mod weights;

use crate::fingerprint::{Fingerprint, Sample, simhash};
use crate::model::Fraction;

use super::settings::{Algorithm, LanguageSettings};
use evidence::{Evidence, Measure};

/// Thresholds that decide when two texts count as the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Estimated Jaccard similarity at and above which two texts have mostly the same wording; `minhash`
    /// calls them near-duplicates.
    pub threshold: f64,
    /// Containment at and above which a text counts as a part of the other.
    pub containment_threshold: f64,
    /// Confidence at and above which `combined` calls an article a duplicate.
    pub min_confidence: f64,
    /// Texts with fewer tokens are short: they are flagged, and never count as copies under an unrelated
    /// headline.
    pub min_tokens: u32,
    /// Texts with fewer tokens may be page furniture if they appear under several unrelated headlines.
    pub wall_tokens: u32,
}

impl Rules {
    /// Texts with fewer tokens are compared word for word only.
    pub const SHORTEST: u32 = 8;
}

impl Default for Rules {
    fn default() -> Rules {
        // Measured; docs/quality.md describes the data.
        Rules {
            threshold: 0.5,
            containment_threshold: 0.8,
            min_confidence: 0.5,
            min_tokens: 50,
            wall_tokens: 120,
        }
    }
}

/// How the newer text relates to the older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// The same normalised text.
    Exact,
    /// Mostly the same wording.
    Near,
    /// The same item in other wording.
    Rewritten,
    /// One text lies mostly inside the other and is clearly shorter.
    Partial,
    /// The newer text contains the older one and adds more than it repeats.
    Extends,
    /// The same template filled with other facts.
    SameTemplate,
    /// Later news in the same running story.
    FollowUp,
    /// Only page furniture in common.
    SameFurniture,
    /// None of the above.
    Different,
}

impl Relation {
    /// The name that verdicts use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Relation::Exact => "exact",
            Relation::Near => "near",
            Relation::Rewritten => "rewritten",
            Relation::Partial => "partial",
            Relation::Extends => "extends",
            Relation::SameTemplate => "same-template",
            Relation::FollowUp => "follow-up",
            Relation::SameFurniture => "same-furniture",
            Relation::Different => "different",
        }
    }

    /// True if the newer text counts as a copy of the older.
    pub const fn is_duplicate(self) -> bool {
        matches!(self, Relation::Exact | Relation::Near | Relation::Rewritten | Relation::Partial)
    }
}

/// Everything measured about a pair of texts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The decision.
    pub relation: Relation,
    /// Fraction of MinHash lanes that agree: the estimated Jaccard similarity.
    pub similarity: f64,
    /// Containment of the newer text in the older.
    pub containment: f64,
    /// Containment of the older text in the newer.
    pub containment_of_old: f64,
    /// Fraction of the smaller set of numbers that also occurs in the larger; `None` if either text has no
    /// numbers.
    pub numerals: Option<f64>,
    /// Differing bits of the 128-bit SimHashes.
    pub distance: u32,
    /// Differing bits of their low 64-bit halves.
    pub distance64: u32,
    /// The measures that `combined` adds up.
    pub evidence: Evidence,
    /// The log-odds of the evidence.
    pub log_odds: f64,
    /// Probability that an editor would call the newer text a copy of the older.
    pub confidence: Fraction,
}

impl LanguageSettings {
    /// Compares a newer text with an older one, without the evidence that only the index has.
    pub fn compare(&self, old: &Fingerprint, new: &Fingerprint) -> Comparison {
        let mut pair = measure(old, new);
        self.decide(old, new, &mut pair);
        pair
    }

    /// Compares a newer text with an older one as if no other article existed: every phrase that the two share is rare.
    pub fn compare_alone(&self, old: &Fingerprint, new: &Fingerprint) -> Comparison {
        let mut pair = measure(old, new);
        pair.evidence.set(Measure::Rare, Some(pair.containment));
        self.decide(old, new, &mut pair);
        pair
    }

    /// Decides the relation and the confidence of a measured pair.
    pub fn decide(&self, old: &Fingerprint, new: &Fingerprint, pair: &mut Comparison) {
        pair.log_odds = self.weights.log_odds(&pair.evidence);
        if old.tokens == 0 || new.tokens == 0 {
            (pair.relation, pair.confidence) = (Relation::Different, Fraction::new(0.0));
            return;
        }
        let same_text = old.content == new.content;
        if self.algorithm == Algorithm::Combined {
            self.weigh(old, new, pair, same_text);
        } else {
            pair.relation = if same_text { Relation::Exact } else { self.by_threshold(old, new, pair) };
            pair.confidence = confidence::by_threshold(pair, self);
        }
    }

    /// Decides by the sum of the evidence.
    fn weigh(&self, old: &Fingerprint, new: &Fingerprint, pair: &mut Comparison, same_text: bool) {
        let wall = pair.evidence.get(Measure::Wall).is_some_and(|wall| wall > 0.0);
        let shortest = old.tokens.min(new.tokens) < Rules::SHORTEST;
        pair.confidence = match same_text {
            true if !wall => Fraction::new(1.0),
            // Very short texts match word for word or not at all.
            false if shortest => Fraction::new(0.0),
            _ => evidence::confidence(pair.log_odds),
        };
        let copy = pair.confidence >= Fraction::new(self.rules.min_confidence);
        pair.relation = match (same_text, copy) {
            (true, true) => Relation::Exact,
            (false, true) if is_part(old, new, pair, &self.rules) => Relation::Partial,
            (false, true) if self.is_near(pair) => Relation::Near,
            (false, true) => Relation::Rewritten,
            (_, false) => self.kinship(new, old, pair),
        };
    }

    fn is_near(&self, pair: &Comparison) -> bool {
        pair.similarity >= self.rules.threshold || pair.containment.max(pair.containment_of_old) >= MOSTLY
    }

    /// The relation of a pair that is not a copy.
    fn kinship(&self, new: &Fingerprint, old: &Fingerprint, pair: &Comparison) -> Relation {
        let share = |measure| pair.evidence.get(measure);
        let contained = pair.containment.max(pair.containment_of_old);
        // Common phrases alone may also be those of a form.
        if share(Measure::Wall).is_some_and(|wall| wall >= 1.0) {
            return Relation::SameFurniture;
        }
        if pair.containment_of_old >= self.rules.containment_threshold && new.shingles > old.shingles {
            return Relation::Extends;
        }
        if pair.similarity < KIN && contained < 2.0 * KIN {
            return Relation::Different;
        }
        let opening = share(Measure::Opening).unwrap_or(0.0);
        let rare = share(Measure::Rare).unwrap_or(1.0);
        let story = share(Measure::Titles).or(share(Measure::Names)).unwrap_or(0.0);
        match () {
            () if opening < 0.2 && rare < 0.1 && story < 0.3 => Relation::SameFurniture,
            () if story >= 0.4 && opening < 0.5 => Relation::FollowUp,
            () => Relation::SameTemplate,
        }
    }

    /// Decides by a threshold: `minhash` by similarity and containment, the SimHash algorithms by Hamming
    /// distance alone.
    fn by_threshold(&self, old: &Fingerprint, new: &Fingerprint, pair: &Comparison) -> Relation {
        let rules = &self.rules;
        match self.algorithm {
            Algorithm::Simhash128 | Algorithm::Simhash64 => {
                if self.distance(pair) <= self.hamming {
                    Relation::Near
                } else {
                    Relation::Different
                }
            }
            _ if pair.similarity >= rules.threshold => {
                if is_part(old, new, pair, rules) {
                    Relation::Partial
                } else {
                    Relation::Near
                }
            }
            _ if pair.containment >= rules.containment_threshold => Relation::Partial,
            _ if pair.containment_of_old >= rules.containment_threshold => {
                let repeats = pair.containment_of_old * f64::from(old.shingles);
                let adds = f64::from(new.shingles) - repeats;
                if adds <= repeats { Relation::Partial } else { Relation::Extends }
            }
            _ => Relation::Different,
        }
    }
}

/// Compares a newer text with an older one by MinHash similarity and containment alone.
pub fn compare(old: &Fingerprint, new: &Fingerprint, rules: &Rules) -> Comparison {
    let settings =
        LanguageSettings { rules: *rules, algorithm: Algorithm::Minhash, ..LanguageSettings::default() };
    settings.compare(old, new)
}

/// At and above this containment two texts are mostly the same wording, whatever else one of them contains.
pub(crate) const MOSTLY: f64 = 0.65;
/// Below this similarity and twice this containment, two texts are unrelated.
const KIN: f64 = 0.15;
/// A part has at most this fraction of the whole's shingles. An article that lost only its last paragraph is
/// a version, not a part.
pub(crate) const PART: f64 = 0.7;
/// A text with at least this many tokens is not brief at all.
const NOT_BRIEF: f64 = 100.0;
/// This many numbers replaced on both sides count as all of them.
const REPLACED: f64 = 6.0;
/// So many figures in common count as all of them.
const FIGURES: f64 = 6.0;
/// So large a share of the figures of one table is in the other layout of it: a digit may differ.
const ONE_TABLE: f64 = 0.8;
/// Headlines that share this fraction of words are one. Two stories of one week may both name a country.
pub(crate) const SAME_HEADLINE: f64 = 0.67;
/// Openings agree from this share on: the newer text begins as the older does and goes on.
const OPENS_ALIKE: f64 = 0.6;
/// Below this share the newer text begins with another text.
const OPENS_ELSEWHERE: f64 = 0.2;

/// Measures a pair without deciding its relation.
pub fn measure(old: &Fingerprint, new: &Fingerprint) -> Comparison {
    let similarity = old.similarity(new);
    let (old_found, new_found) = found(&old.sample, &new.sample);
    let containment = share(new, old, similarity, new_found);
    let containment_of_old = share(old, new, similarity, old_found);
    let mut evidence = Evidence::default();
    let contained = if new.shingles <= old.shingles { containment } else { containment_of_old };
    evidence.set(Measure::Contained, Some(contained));
    let opening_of_new = opening(new, old);
    // An excerpt from the middle of a long text contains little of that text's opening, and its own opening
    // cannot be looked up.
    let better = opening_of_new.zip(opening(old, new)).map(|(of_new, of_old)| of_new.max(of_old));
    evidence.set(Measure::Opening, better);
    let numbers = in_common(&old.numerals, &new.numerals);
    evidence.set(Measure::Numbers, numbers.map(|common| common.drawn));
    let figures = figures(old, new);
    evidence.set(Measure::Figures, figures.map(|figures| figures.common / FIGURES));
    let names = in_common(&old.names, &new.names).filter(|common| common.fewer >= 2);
    evidence.set(Measure::Names, names.map(|common| common.drawn));
    let titles = in_common(&old.title, &new.title);
    evidence.set(Measure::Titles, titles.map(|common| common.share));
    let one_headline = titles.is_some_and(|common| common.share >= SAME_HEADLINE);
    let one_table = one_headline && figures.is_some_and(|figures| figures.are_of_one_table());
    let replaced = numbers.map(|common| if one_table { 0.0 } else { common.replaced / REPLACED });
    evidence.set(Measure::NumbersReplaced, replaced);
    evidence.set(Measure::Brevity, Some(1.0 - f64::from(old.tokens.min(new.tokens)) / NOT_BRIEF));
    let opens_alike = opening_of_new.is_some_and(|share| share >= OPENS_ALIKE);
    // Only of a text that holds most of another can it be said that it adds to it.
    let holds = containment_of_old >= MOSTLY && !opens_alike;
    let opens_elsewhere = opening_of_new.is_some_and(|share| share < OPENS_ELSEWHERE);
    evidence.set(Measure::Added, holds.then(|| added(old, new, containment_of_old, opens_elsewhere)));
    // An article in a frame of notices has its copies; a notice inside another text has none. Of other walls only the index knows.
    let smaller = if new.shingles <= old.shingles { new } else { old };
    evidence.set(Measure::Wall, smaller.is_notice().then_some(1.0));
    Comparison {
        relation: Relation::Different,
        similarity,
        containment,
        containment_of_old,
        numerals: numbers.map(|common| common.share),
        distance: simhash::distance(old.simhash, new.simhash),
        distance64: (old.simhash64() ^ new.simhash64()).count_ones(),
        evidence,
        log_odds: 0.0,
        confidence: Fraction::new(0.0),
    }
}

/// How much more the newer text adds than it repeats: 0 up to as much, 1 from three times as much. A text that begins with
/// another text is a version of neither, so there it counts from a quarter on: what it repeats may be the footer of the page.
fn added(old: &Fingerprint, new: &Fingerprint, containment_of_old: f64, opens_elsewhere: bool) -> f64 {
    let repeats = (containment_of_old * f64::from(old.shingles)).max(1.0);
    let adds = f64::from(new.shingles) - repeats;
    let free = if opens_elsewhere { 0.25 } else { 1.0 };
    ((adds / repeats - free) / 2.0).clamp(0.0, 1.0)
}

/// Fraction of one text's opening that occurs in the other text; `None` if too little of it can be looked up
/// there. The other text's opening is sampled more densely, so a match there counts too.
fn opening(part: &Fingerprint, whole: &Fingerprint) -> Option<f64> {
    const ENOUGH: u32 = 4;
    let in_text = part.opening.found_in(&whole.sample);
    let in_opening = part.opening.found_in(&whole.opening);
    let share = in_text.share().filter(|_| in_text.of >= ENOUGH)?;
    Some(in_opening.share().filter(|_| in_opening.of >= ENOUGH).map_or(share, |other| share.max(other)))
}

/// Exact figures that two texts have. Forms share words and round numbers, never `1,678,400`.
#[derive(Clone, Copy)]
struct Figures {
    /// How many both have.
    common: f64,
    /// How many the text with fewer of them has.
    fewer: f64,
}

impl Figures {
    /// True if the texts give one table: many figures in common, and hardly another one. The numbers that only one of them has are
    /// then further lines, or the same amounts in other units.
    fn are_of_one_table(self) -> bool {
        self.common >= FIGURES && self.common >= ONE_TABLE * self.fewer
    }
}

/// The exact figures of a pair; `None` if one text has none.
fn figures(old: &Fingerprint, new: &Fingerprint) -> Option<Figures> {
    let (of_old, of_new) = (old.numerals.values(), new.numerals.values());
    old.figures().next()?;
    new.figures().next()?;
    let (fewer, more) = if of_old.len() <= of_new.len() { (old, of_new) } else { (new, of_old) };
    let common = fewer.figures().filter(|figure| more.binary_search(figure).is_ok()).count();
    let fewest = old.figures().count().min(new.figures().count());
    Some(Figures { common: common as f64, fewer: fewest as f64 })
}

/// The overlap of two sets.
#[derive(Clone, Copy)]
struct Common {
    /// Size of the smaller set.
    fewer: u32,
    /// Fraction of the smaller set that is in the larger.
    share: f64,
    /// The same, smoothed towards one half by one pseudo-observation: a single number that agrees proves
    /// little.
    drawn: f64,
    /// How many members each set has that the other lacks.
    replaced: f64,
}

/// The overlap of two sampled sets; `None` if either is empty.
fn in_common<const K: usize>(a: &Sample<K>, b: &Sample<K>) -> Option<Common> {
    let (of_a, of_b) = found(a, b);
    let (looked, fewer) =
        if a.distinct() <= b.distinct() { (of_a, a.distinct()) } else { (of_b, b.distinct()) };
    let (found, of) = (f64::from(looked.found), f64::from(looked.of));
    let share = (looked.of > 0).then(|| found / of)?;
    let drawn = (found + 0.5) / (of + 1.0);
    Some(Common { fewer, share, drawn, replaced: f64::from(fewer) * (1.0 - share) })
}

/// True if the shorter text is a part of the longer rather than another version of it. Half an article is
/// similar to the whole, but readers want to know that half of it is missing.
fn is_part(old: &Fingerprint, new: &Fingerprint, pair: &Comparison, rules: &Rules) -> bool {
    let (part, whole, contained) = if new.shingles <= old.shingles {
        (new, old, pair.containment)
    } else {
        (old, new, pair.containment_of_old)
    };
    f64::from(part.shingles) <= PART * f64::from(whole.shingles) && contained >= rules.containment_threshold
}

/// Estimated containment of `part` in `whole`.
///
/// Combines two estimates, each weighted by its number of observations. The sample is reliable for subsets
/// but small when one text is much larger than the other; the MinHash lanes with the shingle counts are good
/// when the texts are of similar size.
fn share(part: &Fingerprint, whole: &Fingerprint, similarity: f64, found: Looked) -> f64 {
    if part.shingles == 0 {
        return 0.0;
    }
    let (a, b) = (f64::from(part.shingles), f64::from(whole.shingles));
    let by_lanes = (similarity / (1.0 + similarity) * (a + b) / a).min(1.0);
    // A lane says something about the part only if the part supplies its minimum.
    let lanes = a / (a + b) * 128.0;
    if found.of == 0 {
        return by_lanes;
    }
    let of = f64::from(found.of);
    let sampled = f64::from(found.found) / of;
    (sampled * of + by_lanes * lanes) / (of + lanes)
}

/// `found` of `of` sampled hashes occur in the other text.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Looked {
    found: u32,
    of: u32,
}

/// [`Sample::found_in`] in both directions at once.
fn found<const A: usize, const B: usize>(a: &Sample<A>, b: &Sample<B>) -> (Looked, Looked) {
    let (of_a, of_b) = (a.values(), b.values());
    let found = in_both(of_a, of_b);
    // A shared hash lies below both bounds, and only hashes below the other side's bound are comparable.
    let (a_bound, b_bound) = (a.bound(), b.bound());
    let of = |values: &[u32], bound| values.partition_point(|&value| value <= bound) as u32;
    let bound = a_bound.min(b_bound);
    (Looked { found, of: of(of_a, bound) }, Looked { found, of: of(of_b, bound) })
}

/// Counts the hashes that occur in both lists, which are ascending.
///
/// Most candidates are unrelated, so their hashes interleave at random: the code avoids branches that would
/// be mispredicted, and in long lists twelve bits distinguish nearly all hashes.
fn in_both(a: &[u32], b: &[u32]) -> u32 {
    const LONG: usize = 24;
    if a.len().min(b.len()) < LONG {
        let (mut i, mut j, mut found) = (0, 0, 0);
        while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
            found += u32::from(x == y);
            i += usize::from(x <= y);
            j += usize::from(y <= x);
        }
        return found;
    }
    let place = |hash: u32| ((hash >> 6 & 63) as usize, 1u64 << (hash & 63));
    let mut seen = [0u64; 64];
    for (word, bit) in b.iter().map(|&hash| place(hash)) {
        seen[word] |= bit;
    }
    let perhaps = a.iter().filter(|&&hash| {
        let (word, bit) = place(hash);
        seen[word] & bit != 0
    });
    perhaps.filter(|hash| b.binary_search(hash).is_ok()).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::fingerprint;
    use crate::text::language::LANGUAGES;

    #[test]
    fn one_pass_in_both_directions_equals_two_passes() {
        let text = |from: usize, to: usize| {
            let words: Vec<String> = (from..to).map(|word| format!("word{}", word % 190)).collect();
            fingerprint(&words.join(" "), &LANGUAGES[0], 1)
        };
        let texts: Vec<Fingerprint> = [(0, 0), (0, 3), (0, 40), (20, 90), (60, 190), (0, 190), (150, 600)]
            .map(|(from, to)| text(from, to))
            .into();
        for (old, new) in texts.iter().flat_map(|old| texts.iter().map(move |new| (old, new))) {
            let looked = |part: &Fingerprint, whole: &Fingerprint| {
                let found = part.sample.found_in(&whole.sample);
                Looked { found: found.found, of: found.of }
            };
            assert_eq!(found(&old.sample, &new.sample), (looked(old, new), looked(new, old)));
        }
    }
}
