//! Two fingerprints → what the newer text is to the older one.
//!
//! The rules of the verdict table, for one pair. A plain function of two fingerprints and the [`Rules`]: no state,
//! no clock.

use crate::fingerprint::{Fingerprint, Sample, simhash};

use super::rewrite;

/// When two texts count as the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Estimated Jaccard similarity from which on texts are near-duplicates.
    pub threshold: f64,
    /// Similarity from which on texts are near-duplicates too if they have the same words and numbers, and nobody else has
    /// the phrases that they share. Below the threshold.
    pub rewritten: f64,
    /// Share of one text's shingles that must be in the other for it to count as a part of it.
    pub coverage: f64,
    /// A page that adds no more shingles than this to an article is that article, however short that is: header,
    /// newsletter box, cookie notice and footer have about so many.
    pub furniture: u32,
    /// Texts with fewer tokens are short: copies only where (nearly) all of the shorter is in the other, numbers
    /// included.
    pub min_tokens: u32,
    /// Texts with fewer tokens than this, too, are only ever compared word for word.
    pub brief: u32,
    /// The numerals guard: speaks where both texts have at least this many distinct numbers ([`Rules::UNGUARDED`]:
    /// never)…
    pub numerals: u32,
    /// …and less than this share of the smaller set is in the other.
    pub numerals_share: f64,
}

impl Rules {
    /// More numbers than a text can have: the numerals guard is off.
    pub const UNGUARDED: u32 = u32::MAX;

    /// Texts with fewer tokens are only ever compared word for word.
    pub fn shortest(&self) -> u32 {
        self.brief.min(self.min_tokens)
    }
}

impl Default for Rules {
    fn default() -> Rules {
        // Measured; docs/quality.md says on what, and what other values cost.
        Rules {
            threshold: 0.5,
            rewritten: 0.13,
            coverage: 0.8,
            furniture: 120,
            min_tokens: 50,
            brief: 25,
            numerals: 3,
            numerals_share: 0.6,
        }
    }
}

/// What the newer text is to the older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// The same canonical text.
    Exact,
    /// Mostly the same shingles.
    Near,
    /// The same words and numbers in other phrases, were the two all there is: a copy if the phrases that they share are
    /// theirs alone.
    Rewritten,
    /// The newer lies mostly inside the older, or contains it and adds no more than it repeats; and it is not nearly
    /// as long.
    Partial,
    /// The newer contains the older and adds more than it repeats.
    Extends,
    /// The same wording around other numbers.
    SameTemplate,
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
}

/// Compares a newer text with an older one, by MinHash alone.
pub fn compare(old: &Fingerprint, new: &Fingerprint, rules: &Rules) -> Comparison {
    compare_by(old, new, rules, false, |pair| pair.similarity >= rules.threshold)
}

/// Compares a newer text with an older one, where `near` says which pairs are similar as a whole, and below that the words
/// are asked for a second opinion, or not.
pub fn compare_by(
    old: &Fingerprint,
    new: &Fingerprint,
    rules: &Rules,
    second_opinion: bool,
    near: impl FnOnce(&Comparison) -> bool,
) -> Comparison {
    let similarity = old.similarity(new);
    let numerals = numerals(old, new);
    let (old_found, new_found) = found(&old.sample, &new.sample);
    let mut comparison = Comparison {
        relation: Relation::Different,
        similarity,
        new_in_old: share(new, old, similarity, new_found),
        old_in_new: share(old, new, similarity, old_found),
        numerals: numerals.map(|(_, share)| share),
        distance: simhash::distance(old.simhash, new.simhash),
        distance64: (old.simhash64() ^ new.simhash64()).count_ones(),
    };
    comparison.relation = relation(old, new, &comparison, numerals, rules, near);
    if comparison.relation == Relation::Different
        && second_opinion
        && rewrite::may_be(old, new, &comparison, numerals, rules)
    {
        comparison.relation = Relation::Rewritten;
    }
    comparison
}

fn relation(
    old: &Fingerprint,
    new: &Fingerprint,
    pair: &Comparison,
    numerals: Option<(u32, f64)>,
    rules: &Rules,
    near: impl FnOnce(&Comparison) -> bool,
) -> Relation {
    if old.tokens == 0 || new.tokens == 0 {
        return Relation::Different;
    }
    if old.content == new.content {
        return Relation::Exact;
    }
    let tokens = old.tokens.min(new.tokens);
    let (short, near) = (tokens < rules.min_tokens, near(pair));
    // Where facts do not count, neither does how few words there are around them.
    let comparable = !short || is_whole(old, new, pair) || near && rules.numerals == Rules::UNGUARDED;
    if tokens < rules.shortest() || !comparable {
        return Relation::Different;
    }
    let (repeats, all) = (pair.old_in_new * f64::from(old.shingles), f64::from(new.shingles));
    let adds = all - repeats;
    let alike = if near {
        if is_part(old, new, pair, rules) { Relation::Partial } else { Relation::Near }
    } else if pair.new_in_old >= rules.coverage || short && new.shingles <= old.shingles {
        Relation::Partial
    } else if pair.old_in_new >= rules.coverage || short {
        if adds <= repeats.max(f64::from(rules.furniture)) { Relation::Partial } else { Relation::Extends }
    } else {
        return Relation::Different;
    };
    let (enough, agree) = if short && rules.numerals != Rules::UNGUARDED {
        (1, 1.0)
    } else {
        (rules.numerals, rules.numerals_share)
    };
    match numerals {
        Some((count, share)) if count >= enough && share < agree => Relation::SameTemplate,
        _ => alike,
    }
}

/// Whether all of the shorter text is in the longer: all that can be told.
///
/// Of a few words in a long article the sample has only a handful, and the lanes are vague; but if none of the
/// handful is missing and the lanes do not contradict, it is there.
fn is_whole(old: &Fingerprint, new: &Fingerprint, pair: &Comparison) -> bool {
    let (part, whole, covered) = smaller(old, new, pair);
    let sampled = part.sample.found_in(&whole.sample);
    covered >= 0.95 || covered >= 0.7 && sampled.of >= 4 && sampled.found == sampled.of
}

/// The text with fewer shingles, the other, and the share of the one in the other.
fn smaller<'a>(
    old: &'a Fingerprint,
    new: &'a Fingerprint,
    pair: &Comparison,
) -> (&'a Fingerprint, &'a Fingerprint, f64) {
    if new.shingles <= old.shingles { (new, old, pair.new_in_old) } else { (old, new, pair.old_in_new) }
}

/// Whether the shorter of two similar texts is a part of the longer rather than another version of it: half an article
/// is similar to the whole, but what a reader wants to be told is that half of it is missing.
fn is_part(old: &Fingerprint, new: &Fingerprint, pair: &Comparison, rules: &Rules) -> bool {
    let (part, whole, covered) = smaller(old, new, pair);
    f64::from(part.shingles) <= PART * f64::from(whole.shingles) && covered >= rules.coverage
}

/// A part has at most this share of the whole's shingles. An article without its last paragraph is a version.
const PART: f64 = 0.7;

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
fn found<const K: usize>(a: &Sample<K>, b: &Sample<K>) -> (Looked, Looked) {
    let (of_a, of_b) = (a.values(), b.values());
    let found = in_both(of_a, of_b);
    // What is in both lies below both bounds; and of the other's hashes, as many count as lie below ours.
    let (a_bound, b_bound) = (bound(a), bound(b));
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

/// Up to which hash a sample holds the whole set.
fn bound<const K: usize>(sample: &Sample<K>) -> u32 {
    match sample.values().last() {
        Some(&last) if sample.distinct() as usize > K => last,
        _ => u32::MAX,
    }
}

/// The smaller number of distinct numerals, and the share of that set found in the other.
fn numerals(a: &Fingerprint, b: &Fingerprint) -> Option<(u32, f64)> {
    let (of_a, of_b) = found(&a.numerals, &b.numerals);
    let (fewer, looked) = if a.numerals.distinct() <= b.numerals.distinct() { (a, of_a) } else { (b, of_b) };
    let share = (looked.of > 0).then(|| f64::from(looked.found) / f64::from(looked.of))?;
    Some((fewer.numerals.distinct(), share))
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
