//! Two fingerprints → what was measured about the pair, and what the newer text is to the older one.
//!
//! A plain function of two fingerprints and the language's settings: no state, no clock. How common the shared phrases are
//! is known only to the index; [`candidates`](super::candidates) adds it to the evidence.

use crate::fingerprint::{Fingerprint, Sample, simhash};
use crate::model::Share;

use super::confidence;
use super::evidence::{self, Evidence, Measure};
use super::settings::{Algorithm, LanguageSettings};

/// When two texts count as the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Estimated Jaccard similarity from which on texts are mostly the same wording: `minhash` calls them near-duplicates.
    pub threshold: f64,
    /// Share of one text's shingles that must be in the other for it to count as a part of it.
    pub coverage: f64,
    /// Confidence from which on `combined` calls an article a duplicate.
    pub min_confidence: f64,
    /// Texts with fewer tokens are short: flagged, and never a copy under an unrelated headline.
    pub min_tokens: u32,
    /// Texts with fewer tokens than this may be page furniture, if they appear under several unrelated headlines.
    pub wall_tokens: u32,
}

impl Rules {
    /// Texts with fewer tokens are only ever compared word for word.
    pub const SHORTEST: u32 = 8;
}

impl Default for Rules {
    fn default() -> Rules {
        // Measured; docs/quality.md says on what.
        Rules { threshold: 0.5, coverage: 0.8, min_confidence: 0.5, min_tokens: 50, wall_tokens: 120 }
    }
}

/// What the newer text is to the older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// The same normalised text.
    Exact,
    /// Mostly the same wording.
    Near,
    /// The same item in other wording.
    Rewritten,
    /// One lies mostly inside the other, and is clearly shorter.
    Partial,
    /// The newer contains the older and adds more than it repeats.
    Extends,
    /// The same form with other facts.
    SameTemplate,
    /// The same running story, other news.
    FollowUp,
    /// Only page furniture in common.
    SameFurniture,
    /// Nothing of the above.
    Different,
}

impl Relation {
    /// As written in verdicts.
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

    /// Whether the newer text is a copy of the older.
    pub const fn is_duplicate(self) -> bool {
        matches!(self, Relation::Exact | Relation::Near | Relation::Rewritten | Relation::Partial)
    }
}

/// All that was measured about a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// What it comes to.
    pub relation: Relation,
    /// Share of lanes that agree: estimated Jaccard similarity.
    pub similarity: f64,
    /// Share of the newer text that is in the older.
    pub new_in_old: f64,
    /// Share of the older text that is in the newer.
    pub old_in_new: f64,
    /// Share of the smaller set of numbers that is in the larger; none where either has no numbers.
    pub numerals: Option<f64>,
    /// Bits in which the SimHashes differ, of 128.
    pub distance: u32,
    /// Bits in which their low halves differ, of 64.
    pub distance64: u32,
    /// The measures that `combined` adds up.
    pub evidence: Evidence,
    /// The log-odds that they come to.
    pub log_odds: f64,
    /// Probability that an editor would call the newer text a copy of the older.
    pub confidence: Share,
}

impl LanguageSettings {
    /// What a newer text is to an older one, were the two all there is.
    pub fn compare(&self, old: &Fingerprint, new: &Fingerprint) -> Comparison {
        let mut pair = measure(old, new);
        self.decide(old, new, &mut pair);
        pair
    }

    /// Decides what a measured pair comes to.
    pub fn decide(&self, old: &Fingerprint, new: &Fingerprint, pair: &mut Comparison) {
        pair.log_odds = self.weights.log_odds(&pair.evidence);
        if old.tokens == 0 || new.tokens == 0 {
            (pair.relation, pair.confidence) = (Relation::Different, Share::new(0.0));
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

    /// The verdict of the evidence.
    fn weigh(&self, old: &Fingerprint, new: &Fingerprint, pair: &mut Comparison, same_text: bool) {
        let wall = pair.evidence.get(Measure::Wall).is_some_and(|wall| wall > 0.0);
        let shortest = old.tokens.min(new.tokens) < Rules::SHORTEST;
        pair.confidence = match same_text {
            true if !wall => Share::new(1.0),
            // A few words are compared word for word, or not at all.
            false if shortest => Share::new(0.0),
            _ => evidence::confidence(pair.log_odds),
        };
        let copy = pair.confidence >= Share::new(self.rules.min_confidence);
        pair.relation = match (same_text, copy) {
            (true, true) => Relation::Exact,
            (false, true) if is_part(old, new, pair, &self.rules) => Relation::Partial,
            (false, true) if self.is_near(pair) => Relation::Near,
            (false, true) => Relation::Rewritten,
            (_, false) => self.kinship(new, old, pair),
        };
    }

    fn is_near(&self, pair: &Comparison) -> bool {
        pair.similarity >= self.rules.threshold || pair.new_in_old.max(pair.old_in_new) >= MOSTLY
    }

    /// What a pair that is no copy has in common.
    fn kinship(&self, new: &Fingerprint, old: &Fingerprint, pair: &Comparison) -> Relation {
        let share = |measure| pair.evidence.get(measure);
        let contained = pair.new_in_old.max(pair.old_in_new);
        if share(Measure::Wall).is_some_and(|wall| wall > 0.0) {
            return Relation::SameFurniture;
        }
        if pair.old_in_new >= self.rules.coverage && new.shingles > old.shingles {
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

    /// The verdict of a threshold: `minhash` by similarity and containment, the others by Hamming distance alone.
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
            _ if pair.new_in_old >= rules.coverage => Relation::Partial,
            _ if pair.old_in_new >= rules.coverage => {
                let repeats = pair.old_in_new * f64::from(old.shingles);
                let adds = f64::from(new.shingles) - repeats;
                if adds <= repeats { Relation::Partial } else { Relation::Extends }
            }
            _ => Relation::Different,
        }
    }
}

/// Compares a newer text with an older one by MinHash and containment alone.
pub fn compare(old: &Fingerprint, new: &Fingerprint, rules: &Rules) -> Comparison {
    let settings =
        LanguageSettings { rules: *rules, algorithm: Algorithm::Minhash, ..LanguageSettings::default() };
    settings.compare(old, new)
}

/// From this containment on two texts are mostly the same wording, whatever else one of them has.
const MOSTLY: f64 = 0.65;
/// Below this similarity, and twice this containment, two texts have nothing to do with each other.
const KIN: f64 = 0.15;
/// A part has at most this share of the whole's shingles. An article without its last paragraph is a version.
const PART: f64 = 0.7;
/// From so many tokens on a text is not short at all.
const NOT_BRIEF: f64 = 100.0;
/// So many numbers replaced on both sides count as all of them.
const REPLACED: f64 = 6.0;
/// So many figures in common count as all of them.
const FIGURES: f64 = 6.0;
/// Openings agree from this share on: the newer text begins as the older does and goes on.
const OPENS_ALIKE: f64 = 0.6;

/// Measures a pair. What it comes to is not decided yet.
pub fn measure(old: &Fingerprint, new: &Fingerprint) -> Comparison {
    let similarity = old.similarity(new);
    let (old_found, new_found) = found(&old.sample, &new.sample);
    let new_in_old = share(new, old, similarity, new_found);
    let old_in_new = share(old, new, similarity, old_found);
    let mut evidence = Evidence::default();
    let contained = if new.shingles <= old.shingles { new_in_old } else { old_in_new };
    evidence.set(Measure::Contained, Some(contained));
    let opening_of_new = opening(new, old);
    // An extract from the middle of a long text has little of the long one's opening, and its own cannot be looked for.
    let better = opening_of_new.zip(opening(old, new)).map(|(of_new, of_old)| of_new.max(of_old));
    evidence.set(Measure::Opening, better);
    let numbers = in_common(&old.numerals, &new.numerals);
    evidence.set(Measure::Numbers, numbers.map(|common| common.drawn));
    evidence.set(Measure::NumbersReplaced, numbers.map(|common| common.replaced / REPLACED));
    evidence.set(Measure::Figures, figures(old, new));
    let names = in_common(&old.names, &new.names).filter(|common| common.fewer >= 2);
    evidence.set(Measure::Names, names.map(|common| common.drawn));
    let titles = in_common(&old.title, &new.title);
    evidence.set(Measure::Titles, titles.map(|common| common.share));
    evidence.set(Measure::Brevity, Some(1.0 - f64::from(old.tokens.min(new.tokens)) / NOT_BRIEF));
    let opens_alike = opening_of_new.is_some_and(|share| share >= OPENS_ALIKE);
    // Only of a text that holds most of another can it be said that it adds to it.
    let holds = old_in_new >= MOSTLY && !opens_alike;
    evidence.set(Measure::Added, holds.then(|| added(old, new, old_in_new)));
    // An article in a frame of notices has its copies; a notice inside another text has none. Of other walls only the index knows.
    let smaller = if new.shingles <= old.shingles { new } else { old };
    evidence.set(Measure::Wall, smaller.is_notice().then_some(1.0));
    Comparison {
        relation: Relation::Different,
        similarity,
        new_in_old,
        old_in_new,
        numerals: numbers.map(|common| common.share),
        distance: simhash::distance(old.simhash, new.simhash),
        distance64: (old.simhash64() ^ new.simhash64()).count_ones(),
        evidence,
        log_odds: 0.0,
        confidence: Share::new(0.0),
    }
}

/// How much more the newer text adds than it repeats: nothing up to as much, all from three times as much on.
fn added(old: &Fingerprint, new: &Fingerprint, old_in_new: f64) -> f64 {
    let repeats = old_in_new * f64::from(old.shingles);
    let adds = f64::from(new.shingles) - repeats;
    if adds <= repeats || adds <= 0.0 { 0.0 } else { ((adds / repeats.max(1.0) - 1.0) / 2.0).min(1.0) }
}

/// Share of one text's opening that is in the other; none where too little of it can be looked for there. What opens both
/// texts is looked for in more detail.
fn opening(part: &Fingerprint, whole: &Fingerprint) -> Option<f64> {
    const ENOUGH: u32 = 4;
    let in_text = part.opening.found_in(&whole.sample);
    let in_opening = part.opening.found_in(&whole.opening);
    let share = in_text.share().filter(|_| in_text.of >= ENOUGH)?;
    Some(in_opening.share().filter(|_| in_opening.of >= ENOUGH).map_or(share, |other| share.max(other)))
}

/// How many exact figures both texts have; none where one has none. Forms share words and round numbers, never `1,678,400`.
fn figures(old: &Fingerprint, new: &Fingerprint) -> Option<f64> {
    let (old, new) = (old.figures(), new.figures());
    let common = old.iter().filter(|figure| new.binary_search(figure).is_ok()).count();
    (!old.is_empty() && !new.is_empty()).then_some(common as f64 / FIGURES)
}

/// What two sets have in common.
#[derive(Clone, Copy)]
struct Common {
    /// Members of the smaller set.
    fewer: u32,
    /// Share of the smaller set that is in the larger.
    share: f64,
    /// The same, drawn towards one half by one member: a single number that agrees is no proof.
    drawn: f64,
    /// How many members each has that the other has not.
    replaced: f64,
}

/// What two sampled sets have in common; nothing where one is empty.
fn in_common<const K: usize>(a: &Sample<K>, b: &Sample<K>) -> Option<Common> {
    let (of_a, of_b) = found(a, b);
    let (looked, fewer) =
        if a.distinct() <= b.distinct() { (of_a, a.distinct()) } else { (of_b, b.distinct()) };
    let (found, of) = (f64::from(looked.found), f64::from(looked.of));
    let share = (looked.of > 0).then(|| found / of)?;
    let drawn = (found + 0.5) / (of + 1.0);
    Some(Common { fewer, share, drawn, replaced: f64::from(fewer) * (1.0 - share) })
}

/// Whether the shorter of two texts is a part of the longer rather than another version of it: half an article
/// is similar to the whole, but what a reader wants to know is that half of it is missing.
fn is_part(old: &Fingerprint, new: &Fingerprint, pair: &Comparison, rules: &Rules) -> bool {
    let (part, whole, contained) =
        if new.shingles <= old.shingles { (new, old, pair.new_in_old) } else { (old, new, pair.old_in_new) };
    f64::from(part.shingles) <= PART * f64::from(whole.shingles) && contained >= rules.coverage
}

/// Estimated share of `part`'s shingles that are in `whole`.
///
/// Two estimates: the sample, which is sure of subsets but small where one text is much the larger, and the lanes
/// with the counts of shingles, which are good where the texts are of like size. Each counts as many times as it
/// has observations.
fn share(part: &Fingerprint, whole: &Fingerprint, similarity: f64, found: Looked) -> f64 {
    if part.shingles == 0 {
        return 0.0;
    }
    let (a, b) = (f64::from(part.shingles), f64::from(whole.shingles));
    let by_lanes = (similarity / (1.0 + similarity) * (a + b) / a).min(1.0);
    // A lane tells of the part only as often as the part supplies the least value.
    let lanes = a / (a + b) * 128.0;
    if found.of == 0 {
        return by_lanes;
    }
    let of = f64::from(found.of);
    let sampled = f64::from(found.found) / of;
    (sampled * of + by_lanes * lanes) / (of + lanes)
}

/// `found` of `of` sampled hashes are in the other text.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Looked {
    found: u32,
    of: u32,
}

/// [`Sample::found_in`] both ways at once.
fn found<const A: usize, const B: usize>(a: &Sample<A>, b: &Sample<B>) -> (Looked, Looked) {
    let (of_a, of_b) = (a.values(), b.values());
    let found = in_both(of_a, of_b);
    // What is in both lies below both bounds; and of the other's hashes, as many count as lie below ours.
    let (a_bound, b_bound) = (a.bound(), b.bound());
    let of = |values: &[u32], bound| values.partition_point(|&value| value <= bound) as u32;
    let bound = a_bound.min(b_bound);
    (Looked { found, of: of(of_a, bound) }, Looked { found, of: of(of_b, bound) })
}

/// How many hashes are in both lists. They are ascending.
///
/// Candidates are many and mostly strangers, whose hashes follow each other as chance will have it: so nothing here
/// depends on guessing which comes next, and in long lists nearly all are told apart by twelve of their bits.
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
    fn looking_both_ways_at_once_finds_what_looking_twice_does() {
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
