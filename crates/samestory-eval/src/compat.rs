//! Measures functions of `samestory-compat` on real texts: how far MinHash estimates lie from the truth, and what
//! SimHash distances and prefixes find.
//!
//! Copies are planted: of each text, a share of the words is replaced by words of the next text, so the exact
//! similarity of a pair is known. Nothing is random, so equal texts give equal numbers.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use samestory_compat::{fnv_minhash, recap, simhash, txtfp};
use samestory_engine::fingerprint::minhash;
use samestory_engine::text::{Options, language, prepare, shingle};
use serde::Serialize;

/// Shares of words that are replaced in planted copies, in percent.
pub const EDITS: [usize; 6] = [1, 2, 5, 10, 20, 40];

/// Lengths of SimHash prefixes, in bits.
pub const PREFIXES: [u32; 3] = [8, 12, 16];

/// Distances up to which recall is reported.
pub const DISTANCES: [u32; 3] = [3, 5, 10];

/// Texts with fewer words have no planted copies: one word of twenty is 5 %.
const FEWEST_WORDS: usize = 20;

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Number of texts.
    pub texts: usize,
    /// One row per kind of MinHash.
    pub minhash: Vec<Spread>,
    /// SimHash of planted copies, one row per share of edited words.
    pub planted: Vec<Recall>,
    /// SimHash of labelled pairs with the same text, if there are labels.
    pub labelled: Option<Recall>,
    /// Screening by prefix, one row per length.
    pub prefixes: Vec<Screening>,
    /// The fraction of all pairs of different texts at each distance of [`DISTANCES`] or less.
    pub unrelated: [f64; DISTANCES.len()],
}

/// How far the estimates of one kind of MinHash lie from the exact Jaccard similarity.
#[derive(Clone, Debug, Serialize)]
pub struct Spread {
    /// The kind, as `samestory compat minhash --kind` names it, or `samestory` for our own.
    pub kind: &'static str,
    /// Number of pairs.
    pub pairs: usize,
    /// Mean of estimate − truth.
    pub bias: f64,
    /// Mean of (estimate − truth)².
    pub variance: f64,
    /// Mean of J (1 − J) / lanes: the variance that independent lanes would have.
    pub expected: f64,
}

impl Spread {
    /// Measured variance divided by that of independent lanes.
    pub fn ratio(&self) -> f64 {
        self.variance / self.expected
    }
}

/// Which fraction of copies lies within a SimHash distance.
#[derive(Clone, Debug, Serialize)]
pub struct Recall {
    /// Share of edited words in percent; absent for labelled pairs.
    pub edited: Option<usize>,
    /// Number of pairs.
    pub pairs: usize,
    /// Fractions within [`DISTANCES`], with the words of ASCII alone, as the original.
    pub ascii: [f64; DISTANCES.len()],
    /// The same with the words of every script.
    pub unicode: [f64; DISTANCES.len()],
}

/// Candidates by a prefix of the SimHash.
#[derive(Clone, Debug, Serialize)]
pub struct Screening {
    /// Length of the prefix.
    pub bits: u32,
    /// The fractions of planted copies within distance 3 and within 5 that have an equal prefix.
    pub kept: [f64; 2],
    /// Fraction of all other texts that share a text's prefix, on average: what is still read.
    pub candidates: f64,
}

/// A kind of MinHash, reduced to what is measured: exact shingles and estimated similarity.
type Sample = (BTreeSet<u64>, Vec<u64>);

type Kind = (&'static str, fn(&str) -> Option<Sample>);

const KINDS: [Kind; 4] =
    [("samestory", ours), ("fnv", fnv), ("txtfp", txtfp_words), ("characters", characters)];

fn hashes<T: AsRef<[u8]>>(shingles: impl IntoIterator<Item = T>) -> BTreeSet<u64> {
    shingles.into_iter().map(|shingle| xxhash_rust::xxh3::xxh3_64(shingle.as_ref())).collect()
}

fn ours(text: &str) -> Option<Sample> {
    let text = prepare(text, None, None, &Options::DEFAULT).ok()?;
    let cut = shingle::shingles(&text.normalized, language::row(text.language.home));
    let lanes = minhash::signature(&cut.shingles).map(u64::from).to_vec();
    Some((cut.shingles.into_iter().collect(), lanes))
}

fn fnv(text: &str) -> Option<Sample> {
    let lanes = fnv_minhash::compute_minhash(text)?.lanes().iter().map(|&lane| u64::from(lane)).collect();
    Some((hashes(fnv_minhash::shingles(text).iter()), lanes))
}

fn txtfp_words(text: &str) -> Option<Sample> {
    let lanes = txtfp::minhash(text)?.lanes().to_vec();
    let canonical = txtfp::canonicalize(text);
    let shingles = txtfp::Shingles::new(txtfp::words(&canonical), txtfp::SHINGLE_WORDS);
    Some((hashes(shingles.iter()), lanes))
}

fn characters(text: &str) -> Option<Sample> {
    Some((hashes(recap::shingles(text)), recap::signature(text).lanes().to_vec()))
}

fn exact(a: &BTreeSet<u64>, b: &BTreeSet<u64>) -> f64 {
    let common = a.intersection(b).count();
    common as f64 / (a.len() + b.len() - common).max(1) as f64
}

fn estimated(a: &[u64], b: &[u64]) -> f64 {
    a.iter().zip(b).filter(|(a, b)| a == b).count() as f64 / a.len() as f64
}

/// `text` with `percent` of its words replaced by words of `other`, spread evenly; `None` if it is too short.
fn edited(text: &str, other: &str, percent: usize) -> Option<String> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let other: Vec<&str> = other.split_whitespace().collect();
    if words.len() < FEWEST_WORDS || other.is_empty() {
        return None;
    }
    let count = (words.len() * percent).div_ceil(100);
    let length = words.len();
    for n in 0..count {
        // An odd step through the other text, so that the new words are no passage of it.
        words[n * length / count] = other[(n * 7 + 3) % other.len()];
    }
    Some(words.join(" "))
}

/// Measures all of it. `same` lists indices of texts that people call the same.
pub fn measure(texts: &[String], same: &[(usize, usize)]) -> Measured {
    let copies: Vec<(usize, usize, String)> = texts
        .iter()
        .enumerate()
        .flat_map(|(at, text)| {
            let other = &texts[(at + 1) % texts.len()];
            EDITS.into_iter().filter_map(move |percent| Some((at, percent, edited(text, other, percent)?)))
        })
        .collect();
    let simhashes = |text: &str| {
        [simhash::compute_simhash(text), simhash::compute_simhash_unicode(text)].map(|hash| bits(&hash))
    };
    let own: Vec<[u64; 2]> = texts.iter().map(|text| simhashes(text)).collect();
    let planted: Vec<(usize, usize, [u64; 2])> =
        copies.iter().map(|(at, percent, copy)| (*at, *percent, simhashes(copy))).collect();

    let recall = |edited, pairs: Vec<([u64; 2], [u64; 2])>| {
        let within = |which: usize| {
            DISTANCES.map(|most| fraction(pairs.iter(), |(a, b)| (a[which] ^ b[which]).count_ones() <= most))
        };
        Recall { edited, pairs: pairs.len(), ascii: within(0), unicode: within(1) }
    };
    let labelled = recall(None, same.iter().map(|&(a, b)| (own[a], own[b])).collect());
    Measured {
        texts: texts.len(),
        minhash: KINDS.into_iter().map(|kind| spread(kind, texts, &copies)).collect(),
        planted: EDITS
            .into_iter()
            .map(|percent| {
                let pairs = planted.iter().filter(|(_, edited, _)| *edited == percent);
                recall(Some(percent), pairs.map(|(at, _, hash)| (own[*at], *hash)).collect())
            })
            .collect(),
        labelled: (!same.is_empty()).then_some(labelled),
        prefixes: PREFIXES.into_iter().map(|bits| screening(bits, &own, &planted)).collect(),
        unrelated: unrelated(&own),
    }
}

fn bits(hash: &str) -> u64 {
    u64::from_str_radix(hash, 16).unwrap_or_default()
}

fn fraction<T>(items: impl Iterator<Item = T>, matches: impl Fn(&T) -> bool) -> f64 {
    let (mut all, mut matching) = (0_u64, 0_u64);
    for item in items {
        all += 1;
        matching += u64::from(matches(&item));
    }
    if all == 0 { 0.0 } else { matching as f64 / all as f64 }
}

fn spread((kind, of): Kind, texts: &[String], copies: &[(usize, usize, String)]) -> Spread {
    let (mut pairs, mut bias, mut variance, mut expected) = (0_usize, 0.0, 0.0, 0.0);
    let mut last: Option<(usize, Option<Sample>)> = None;
    for (at, _, copy) in copies {
        if last.as_ref().is_none_or(|(of_text, _)| of_text != at) {
            last = Some((*at, of(&texts[*at])));
        }
        let (Some((_, Some(own))), Some(copy)) = (&last, of(copy)) else { continue };
        let truth = exact(&own.0, &copy.0);
        // Estimates of identical sets are exact.
        if truth >= 1.0 {
            continue;
        }
        let error = estimated(&own.1, &copy.1) - truth;
        pairs += 1;
        bias += error;
        variance += error * error;
        expected += truth * (1.0 - truth) / own.1.len() as f64;
    }
    let mean = |sum: f64| sum / pairs.max(1) as f64;
    Spread { kind, pairs, bias: mean(bias), variance: mean(variance), expected: mean(expected) }
}

fn screening(bits: u32, own: &[[u64; 2]], planted: &[(usize, usize, [u64; 2])]) -> Screening {
    let prefix = |hash: u64| hash >> (u64::BITS - bits);
    let kept = [3, 5].map(|most| {
        let near = planted.iter().filter(|(at, _, copy)| (own[*at][1] ^ copy[1]).count_ones() <= most);
        fraction(near, |(at, _, copy)| prefix(own[*at][1]) == prefix(copy[1]))
    });
    let mut buckets: HashMap<u64, u64> = HashMap::new();
    for hash in own {
        *buckets.entry(prefix(hash[1])).or_default() += 1;
    }
    let shared: u64 = buckets.values().map(|count| count * (count - 1)).sum();
    let pairs = (own.len() * own.len().saturating_sub(1)).max(1);
    Screening { bits, kept, candidates: shared as f64 / pairs as f64 }
}

fn unrelated(own: &[[u64; 2]]) -> [f64; DISTANCES.len()] {
    let mut within = [0_u64; DISTANCES.len()];
    for (at, a) in own.iter().enumerate() {
        for b in &own[at + 1..] {
            let distance = (a[1] ^ b[1]).count_ones();
            for (count, most) in within.iter_mut().zip(DISTANCES) {
                *count += u64::from(distance <= most);
            }
        }
    }
    let pairs = (own.len() * own.len().saturating_sub(1) / 2).max(1);
    within.map(|count| count as f64 / pairs as f64)
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
        writeln!(f, "{} texts\n", self.texts)?;
        writeln!(f, "MinHash against the exact Jaccard similarity of planted copies, 128 lanes:\n")?;
        writeln!(f, "| kind | pairs | bias | standard error | of independent lanes | variance ratio |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for row in &self.minhash {
            writeln!(
                f,
                "| {} | {} | {:+.4} | {:.4} | {:.4} | {:.2} |",
                row.kind,
                row.pairs,
                row.bias,
                row.variance.sqrt(),
                row.expected.sqrt(),
                row.ratio()
            )?;
        }
        writeln!(f, "\nSimHash 64: copies within a distance of 3, 5 and 10 bits:\n")?;
        writeln!(f, "| copies | pairs | ASCII ≤ 3 | ≤ 5 | ≤ 10 | Unicode ≤ 3 | ≤ 5 | ≤ 10 |")?;
        writeln!(f, "|---|---|---|---|---|---|---|---|")?;
        for row in self.planted.iter().chain(&self.labelled) {
            let name = row
                .edited
                .map_or("labelled the same".to_owned(), |edited| format!("{edited} % of words replaced"));
            let [a, b, c] = row.ascii.map(percent);
            let [d, e, g] = row.unicode.map(percent);
            writeln!(f, "| {name} | {} | {a} | {b} | {c} | {d} | {e} | {g} |", row.pairs)?;
        }
        let [three, five, ten] = self.unrelated.map(|fraction| format!("{:.4} %", fraction * 100.0));
        writeln!(
            f,
            "\nOf all pairs of texts, {three} are within 3 bits, {five} within 5 and {ten} within 10 (Unicode).\n"
        )?;
        writeln!(f, "Screening by a prefix of the Unicode SimHash, before a document is read:\n")?;
        writeln!(f, "| prefix | kept of copies within 3 | within 5 | of all texts still read |")?;
        writeln!(f, "|---|---|---|---|")?;
        for row in &self.prefixes {
            let [three, five] = row.kept.map(percent);
            writeln!(f, "| {} bits | {three} | {five} | {:.3} % |", row.bits, row.candidates * 100.0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of pseudo-random words, each unlike the others.
    fn texts() -> Vec<String> {
        let mut state = 7_u64;
        let mut word = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("word{}", state >> 54)
        };
        (0..60).map(|_| (0..200).map(|_| word()).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn independent_lanes_have_the_expected_variance_and_fnv_more() {
        let measured = measure(&texts(), &[]);
        let ratio = |kind| measured.minhash.iter().find(|row| row.kind == kind).unwrap().ratio();
        for kind in ["samestory", "txtfp", "characters"] {
            assert!((0.6..1.6).contains(&ratio(kind)), "{kind}: {}", ratio(kind));
        }
        assert!(ratio("fnv") > 0.6, "{}", ratio("fnv"));
        assert!(measured.minhash.iter().all(|row| row.pairs == 60 * EDITS.len()));
    }

    #[test]
    fn more_edits_are_farther_away() {
        let measured = measure(&texts(), &[(0, 0), (0, 1)]);
        let near = |row: &Recall| row.unicode[1];
        assert!(measured.planted.windows(2).all(|rows| near(&rows[0]) >= near(&rows[1])));
        let labelled = measured.labelled.unwrap();
        assert_eq!((labelled.pairs, labelled.ascii), (2, [0.5; 3]));
    }

    #[test]
    fn a_longer_prefix_keeps_and_reads_less() {
        let measured = measure(&texts(), &[]);
        for rows in measured.prefixes.windows(2) {
            assert!(rows[0].kept[1] >= rows[1].kept[1] && rows[0].candidates >= rows[1].candidates);
        }
    }

    #[test]
    fn short_texts_and_no_texts_have_no_copies() {
        let measured = measure(&["too short".to_owned()], &[]);
        assert!(measured.minhash.iter().all(|row| row.pairs == 0));
        assert!(measure(&[], &[]).to_string().starts_with("0 texts"));
    }
}
