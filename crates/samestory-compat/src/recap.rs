//! The recap worker's duplicate check: MinHash over character 5-grams with XXH3, in bands.
//!
//! ```
//! use samestory_compat::recap::{DuplicateIndex, check_duplicate};
//!
//! let mut index = DuplicateIndex::for_threshold(0.5)?;
//! check_duplicate("doc1", "The quick brown fox jumps over the lazy dog", &mut index, 0.5, true);
//! let again = check_duplicate("doc2", "The quick brown fox jumps over the lazy dog", &mut index, 0.5, true);
//! assert_eq!(again.original_doc_id.as_deref(), Some("doc1"));
//! # Ok::<(), samestory_compat::recap::BandingError>(())
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::txtfp::{LshIndex, MinHashSig};

/// Lanes in a signature.
pub const LANES: usize = 128;

/// Characters in a shingle.
pub const SHINGLE_CHARACTERS: usize = 5;

/// Lane i hashes with the seed i times this.
const SEED_STEP: u64 = 0x517c_c1b7_2722_0a95;

/// The answer of [`check_duplicate`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DuplicateCheck {
    /// The document in question.
    pub doc_id: String,
    /// True if an earlier document reaches the threshold.
    pub is_duplicate: bool,
    /// That document: the most similar one, or the first inserted among equals.
    pub original_doc_id: Option<String>,
    /// Similarity of the most similar candidate, even below the threshold; 0 if the bands found none.
    pub similarity: f64,
}

/// A banding that does not fit the signature.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum BandingError {
    /// The product is not 128; choose factors of 128.
    #[error("bands × rows = {bands} × {rows} but a signature has {LANES} lanes")]
    Lanes {
        /// Requested bands.
        bands: usize,
        /// Requested rows.
        rows: usize,
    },
    /// The threshold is not between 0 and 1.
    #[error("threshold {0} is not between 0 and 1")]
    Threshold(f64),
}

/// The (bands, rows) with `bands · rows = lanes` at which two documents of similarity `threshold` become
/// candidates with a probability closest to one half; `None` without lanes.
///
/// Thresholds outside 0.1 to 0.99 are clamped. The fewest bands win a tie.
///
/// ```
/// use samestory_compat::recap::{collision_probability, optimal_lsh_params};
///
/// assert_eq!(optimal_lsh_params(128, 0.5), Some((32, 4)));
/// assert!((collision_probability(32, 4, 0.5) - 0.873).abs() < 5e-4);
/// assert!((collision_probability(16, 8, 0.5) - 0.0607).abs() < 5e-5);
/// ```
pub fn optimal_lsh_params(lanes: usize, threshold: f64) -> Option<(usize, usize)> {
    let threshold = threshold.clamp(0.1, 0.99);
    (1..=lanes)
        .filter(|bands| lanes.is_multiple_of(*bands))
        .map(|bands| {
            let rows = lanes / bands;
            ((collision_probability(bands, rows, threshold) - 0.5).abs(), (bands, rows))
        })
        .reduce(|best, next| if next.0 < best.0 { next } else { best })
        .map(|(_, parameters)| parameters)
}

/// The probability that two documents agree on at least one band: 1 − (1 − similarity^rows)^bands.
pub fn collision_probability(bands: usize, rows: usize, similarity: f64) -> f64 {
    1.0 - (1.0 - similarity.powi(rows as i32)).powi(bands as i32)
}

/// The signature of a text, which is neither folded nor normalised.
///
/// Each run of five characters is hashed with XXH3; lane i keeps the smallest XXH3 of those hashes under its
/// own seed. A text of fewer than five characters is one run.
pub fn signature(text: &str) -> MinHashSig<LANES> {
    let mut starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    starts.push(text.len());
    let width = SHINGLE_CHARACTERS.min(starts.len() - 1);
    // A window has one more boundary than characters.
    let runs = starts.windows(width + 1).map(|window| &text[window[0]..window[width]]);
    let hashes: HashSet<u64> = runs.map(|run| xxh3_64(run.as_bytes())).collect();
    let mut lanes = [u64::MAX; LANES];
    for hash in hashes {
        for (lane, n) in lanes.iter_mut().zip(0..) {
            *lane = xxh3_64_with_seed(&hash.to_le_bytes(), SEED_STEP.wrapping_mul(n)).min(*lane);
        }
    }
    MinHashSig::from_lanes(lanes)
}

/// An index of the documents seen so far: signatures in bands.
#[derive(Clone, Debug)]
pub struct DuplicateIndex {
    bands: LshIndex<LANES>,
    /// Numbers grow with every insertion, so the lowest one was inserted first.
    names: BTreeMap<u64, String>,
    numbers: HashMap<String, u64>,
    next: u64,
}

impl DuplicateIndex {
    /// An empty index with this many bands and rows.
    ///
    /// # Errors
    ///
    /// [`BandingError::Lanes`] unless bands × rows is 128.
    pub fn new(bands: usize, rows: usize) -> Result<DuplicateIndex, BandingError> {
        let bands =
            LshIndex::with_bands_rows(bands, rows).map_err(|_| BandingError::Lanes { bands, rows })?;
        Ok(DuplicateIndex { bands, names: BTreeMap::new(), numbers: HashMap::new(), next: 0 })
    }

    /// An empty index with the banding of [`optimal_lsh_params`], for example 32 × 4 for 0.5.
    ///
    /// # Errors
    ///
    /// [`BandingError::Threshold`] unless 0 < threshold < 1.
    pub fn for_threshold(threshold: f64) -> Result<DuplicateIndex, BandingError> {
        if !(threshold > 0.0 && threshold < 1.0) {
            return Err(BandingError::Threshold(threshold));
        }
        let (bands, rows) = optimal_lsh_params(LANES, threshold).ok_or(BandingError::Threshold(threshold))?;
        DuplicateIndex::new(bands, rows)
    }

    /// The numbers of bands and rows.
    pub fn banding(&self) -> (usize, usize) {
        (self.bands.bands(), self.bands.rows())
    }

    /// Number of documents in the index.
    pub fn len(&self) -> usize {
        self.bands.len()
    }

    /// True if the index is empty.
    pub fn is_empty(&self) -> bool {
        self.bands.is_empty()
    }

    /// Adds a document, replacing one with the same id.
    pub fn insert(&mut self, doc_id: &str, signature: MinHashSig<LANES>) {
        self.remove(doc_id);
        self.bands.insert(self.next, signature);
        self.names.insert(self.next, doc_id.to_owned());
        self.numbers.insert(doc_id.to_owned(), self.next);
        self.next += 1;
    }

    /// Removes a document; returns whether it was present.
    pub fn remove(&mut self, doc_id: &str) -> bool {
        let Some(number) = self.numbers.remove(doc_id) else { return false };
        self.names.remove(&number);
        self.bands.remove(number).is_some()
    }

    /// The most similar candidate other than `doc_id` itself; the first inserted wins a tie.
    pub fn best(&self, doc_id: &str, signature: &MinHashSig<LANES>) -> Option<(&str, f64)> {
        let candidates = self.bands.query(signature);
        candidates
            .iter()
            .filter_map(|number| Some((self.names.get(number)?.as_str(), self.bands.get(*number)?)))
            .filter(|(id, _)| *id != doc_id)
            .map(|(id, other)| (id, other.similarity(signature)))
            .reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}

/// Checks whether a document repeats an earlier one. If it does not and `insert_if_unique` is set, adds it to
/// the index.
///
/// It differs from the original where that one depends on the order of a hash map or is not useful: it names
/// the most similar candidate instead of any above the threshold; a document is never its own duplicate, and
/// inserting it again replaces its content; blank content is unique and is not inserted.
pub fn check_duplicate(
    doc_id: &str,
    content: &str,
    index: &mut DuplicateIndex,
    threshold: f64,
    insert_if_unique: bool,
) -> DuplicateCheck {
    let unique = |similarity| DuplicateCheck {
        doc_id: doc_id.to_owned(),
        is_duplicate: false,
        original_doc_id: None,
        similarity,
    };
    if content.trim().is_empty() {
        return unique(0.0);
    }
    let signature = signature(content);
    let similarity = match index.best(doc_id, &signature) {
        Some((original, similarity)) if similarity >= threshold => {
            let original_doc_id = Some(original.to_owned());
            return DuplicateCheck { is_duplicate: true, original_doc_id, ..unique(similarity) };
        }
        best => best.map_or(0.0, |(_, similarity)| similarity),
    };
    if insert_if_unique {
        index.insert(doc_id, signature);
    }
    unique(similarity)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORM: &str = "A storm crossed the coast on Monday night, tearing roofs from houses in three \
        villages and cutting power to forty thousand people before it weakened over the hills, the weather \
        office said.";
    const BUDGET: &str = "Parliament passed the budget after a debate of eleven hours; the finance minister \
        said taxes on fuel would stay as they are until the spring, when the council meets again.";

    fn index() -> DuplicateIndex {
        DuplicateIndex::for_threshold(0.7).unwrap()
    }

    fn answer(doc_id: &str, original: Option<&str>, similarity: f64) -> DuplicateCheck {
        DuplicateCheck {
            doc_id: doc_id.into(),
            is_duplicate: original.is_some(),
            original_doc_id: original.map(str::to_owned),
            similarity,
        }
    }

    #[test]
    fn a_copy_is_a_duplicate_of_the_first() {
        let mut index = index();
        assert_eq!(check_duplicate("a", STORM, &mut index, 0.7, true), answer("a", None, 0.0));
        assert_eq!(check_duplicate("b", BUDGET, &mut index, 0.7, true), answer("b", None, 0.0));
        assert_eq!(check_duplicate("c", STORM, &mut index, 0.7, true), answer("c", Some("a"), 1.0));
        assert_eq!(index.len(), 2, "a duplicate is not kept");
    }

    #[test]
    fn an_edited_copy_is_found_below_its_similarity_and_not_above() {
        let mut index = index();
        check_duplicate("a", STORM, &mut index, 0.7, true);
        let edited = STORM.replace("Monday", "Tuesday");
        let found = check_duplicate("b", &edited, &mut index, 0.7, false);
        assert_eq!(found.original_doc_id.as_deref(), Some("a"));
        assert!((0.7..1.0).contains(&found.similarity), "{}", found.similarity);
        let strict = check_duplicate("b", &edited, &mut index, 0.99, false);
        assert_eq!(strict, answer("b", None, found.similarity));
    }

    #[test]
    fn checking_alone_inserts_nothing() {
        let mut index = index();
        check_duplicate("a", STORM, &mut index, 0.7, false);
        assert!(index.is_empty());
        assert_eq!(check_duplicate("b", STORM, &mut index, 0.7, false), answer("b", None, 0.0));
    }

    #[test]
    fn a_document_is_never_its_own_duplicate_and_new_content_replaces_the_old() {
        let mut index = index();
        check_duplicate("a", STORM, &mut index, 0.7, true);
        assert_eq!(check_duplicate("a", STORM, &mut index, 0.7, true), answer("a", None, 0.0));
        check_duplicate("a", BUDGET, &mut index, 0.7, true);
        assert_eq!(index.len(), 1);
        assert!(!check_duplicate("b", STORM, &mut index, 0.7, false).is_duplicate);
        assert!(check_duplicate("b", BUDGET, &mut index, 0.7, false).is_duplicate);
        assert!(index.remove("a") && !index.remove("a"));
        assert!(index.is_empty() && index.names.is_empty() && index.numbers.is_empty());
    }

    #[test]
    fn among_equals_the_first_is_the_original() {
        let mut index = index();
        for id in ["z", "m", "a"] {
            index.insert(id, signature(STORM));
        }
        assert_eq!(check_duplicate("q", STORM, &mut index, 0.7, true).original_doc_id.as_deref(), Some("z"));
    }

    #[test]
    fn blank_documents_never_match() {
        let mut index = index();
        for id in ["a", "b"] {
            assert_eq!(check_duplicate(id, " \n ", &mut index, 0.7, true), answer(id, None, 0.0));
        }
        assert!(index.is_empty());
    }

    #[test]
    fn bands_follow_from_the_threshold_or_must_fill_the_signature() {
        assert_eq!(DuplicateIndex::for_threshold(0.5).unwrap().banding(), (32, 4));
        assert_eq!(index().banding(), (16, 8));
        assert_eq!(DuplicateIndex::new(32, 4).unwrap().banding(), (32, 4));
        for (bands, rows) in [(0, 0), (0, 128), (10, 12), (usize::MAX, 2)] {
            assert_eq!(DuplicateIndex::new(bands, rows).unwrap_err(), BandingError::Lanes { bands, rows });
        }
        for threshold in [0.0, 1.0, -0.1, f64::INFINITY] {
            let refused = DuplicateIndex::for_threshold(threshold).unwrap_err();
            assert_eq!(refused, BandingError::Threshold(threshold));
        }
        assert!(DuplicateIndex::for_threshold(f64::NAN).is_err());
    }

    /// Hashes each shingle and seeds each lane by hand, as the original does.
    #[test]
    fn lanes_equal_the_originals() {
        let lane = |n: u64, runs: &[&str]| {
            let seed = n.wrapping_mul(0x517c_c1b7_2722_0a95);
            runs.iter()
                .map(|run| xxh3_64_with_seed(&xxh3_64(run.as_bytes()).to_le_bytes(), seed))
                .min()
                .unwrap()
        };
        for (text, runs) in
            [("día 26", &["día 2", "ía 26"][..]), ("fünf!", &["fünf!"]), ("我爱", &["我爱"]), ("", &[""])]
        {
            let lanes = *signature(text).lanes();
            for n in [0, 1, 127] {
                assert_eq!(lanes[n], lane(n as u64, runs), "{text:?}, lane {n}");
            }
        }
    }

    #[test]
    fn parameters_are_closest_to_one_half() {
        assert_eq!(optimal_lsh_params(128, 0.5), Some((32, 4)));
        assert_eq!(optimal_lsh_params(128, 0.0), optimal_lsh_params(128, 0.1));
        assert_eq!(optimal_lsh_params(128, 5.0), optimal_lsh_params(128, 0.99));
        assert_eq!(optimal_lsh_params(7, 0.9), Some((1, 7)));
        assert_eq!(optimal_lsh_params(0, 0.5), None);
    }
}
