//! An index in memory of the documents seen so far, and the one question it answers: seen before?

use std::collections::{BTreeSet, HashMap};

use xxhash_rust::xxh3::Xxh3;

use crate::bands::for_threshold;

use super::txtfp::{LANES, MinHash, minhash};

/// The answer to [`check_duplicate`].
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct DuplicateCheck {
    /// The document asked about.
    pub doc_id: String,
    /// Whether an earlier document is at least as similar as the threshold asks.
    pub is_duplicate: bool,
    /// That document: the most similar one, the first inserted where several are.
    pub original_doc_id: Option<String>,
    /// How similar the most similar candidate is, below the threshold too; 0 when the bands found none.
    pub similarity: f64,
}

/// A banding that does not fit the signature.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum BandingError {
    /// Choose factors of 128.
    #[error("bands × rows = {bands} × {rows} but a signature has {LANES} lanes")]
    Lanes {
        /// As asked.
        bands: usize,
        /// As asked.
        rows: usize,
    },
    /// Choose a threshold between the two.
    #[error("threshold {0} is not between 0 and 1")]
    Threshold(f64),
}

/// MinHash signatures in bands: two documents become candidates by agreeing on a whole band.
#[derive(Clone, Debug)]
pub struct LshIndex {
    rows: usize,
    documents: HashMap<u64, (String, MinHash)>,
    numbers: HashMap<String, u64>,
    /// Document numbers by band key, in order of insertion.
    buckets: HashMap<u64, Vec<u64>>,
    next: u64,
}

impl LshIndex {
    /// An empty index with this many bands of this many rows.
    ///
    /// # Errors
    ///
    /// [`BandingError::Lanes`] unless bands × rows is 128.
    pub fn new(bands: usize, rows: usize) -> Result<LshIndex, BandingError> {
        if bands.checked_mul(rows) != Some(LANES) {
            return Err(BandingError::Lanes { bands, rows });
        }
        Ok(LshIndex {
            rows,
            documents: HashMap::new(),
            numbers: HashMap::new(),
            buckets: HashMap::new(),
            next: 0,
        })
    }

    /// An empty index with the bands txtfp chooses for a threshold, for example 16 × 8 for 0.7.
    ///
    /// # Errors
    ///
    /// [`BandingError::Threshold`] unless 0 < threshold < 1.
    pub fn for_threshold(threshold: f64) -> Result<LshIndex, BandingError> {
        if !(threshold > 0.0 && threshold < 1.0) {
            return Err(BandingError::Threshold(threshold));
        }
        let (bands, rows) = for_threshold(threshold, LANES).ok_or(BandingError::Threshold(threshold))?;
        LshIndex::new(bands, rows)
    }

    /// Bands and rows.
    pub const fn banding(&self) -> (usize, usize) {
        (LANES / self.rows, self.rows)
    }

    /// How many documents it holds.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Keeps a document; one of the same id is forgotten first.
    pub fn insert(&mut self, doc_id: &str, signature: MinHash) {
        self.remove(doc_id);
        let number = self.next;
        self.next += 1;
        for key in band_keys(&signature, self.rows) {
            self.buckets.entry(key).or_default().push(number);
        }
        self.numbers.insert(doc_id.to_owned(), number);
        self.documents.insert(number, (doc_id.to_owned(), signature));
    }

    /// Forgets a document; says whether it was there.
    pub fn remove(&mut self, doc_id: &str) -> bool {
        let Some(number) = self.numbers.remove(doc_id) else { return false };
        let Some((_, signature)) = self.documents.remove(&number) else { return false };
        for key in band_keys(&signature, self.rows) {
            if let Some(bucket) = self.buckets.get_mut(&key) {
                bucket.retain(|&other| other != number);
                if bucket.is_empty() {
                    self.buckets.remove(&key);
                }
            }
        }
        true
    }

    /// The most similar candidate that is not `doc_id` itself; the first inserted wins a tie.
    pub fn best(&self, doc_id: &str, signature: &MinHash) -> Option<(&str, f64)> {
        let buckets = band_keys(signature, self.rows).filter_map(|key| self.buckets.get(&key));
        // Sorted, so that the answer does not hang on the order of a hash map.
        let numbers: BTreeSet<u64> = buckets.flatten().copied().collect();
        numbers
            .iter()
            .filter_map(|number| self.documents.get(number))
            .filter(|(id, _)| id != doc_id)
            .map(|(id, other)| (id.as_str(), other.similarity(signature)))
            .reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}

/// Asks whether a document repeats an earlier one and, if it does not and `insert_if_unique` says so, keeps
/// it.
///
/// A document is never its own duplicate: asked again under the same id it is compared with the others, and
/// where it is kept, its new content replaces the old. Content without words is unique and is not kept, so
/// empty documents never match.
pub fn check_duplicate(
    doc_id: &str,
    content: &str,
    index: &mut LshIndex,
    threshold: f64,
    insert_if_unique: bool,
) -> DuplicateCheck {
    let unique = |similarity| DuplicateCheck {
        doc_id: doc_id.to_owned(),
        is_duplicate: false,
        original_doc_id: None,
        similarity,
    };
    let Some(signature) = minhash(content) else { return unique(0.0) };
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

/// One key per band: the band's number as seed, so that equal rows in different bands stay apart.
fn band_keys(signature: &MinHash, rows: usize) -> impl Iterator<Item = u64> {
    (0..).zip(signature.lanes().chunks_exact(rows)).map(|(band, lanes)| {
        let mut hasher = Xxh3::with_seed(band);
        lanes.iter().for_each(|lane| hasher.update(&lane.to_le_bytes()));
        hasher.digest()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORM: &str = "A storm crossed the coast on Monday night, tearing roofs from houses in three \
        villages and cutting power to forty thousand people before it weakened over the hills, the weather \
        office said.";
    const BUDGET: &str = "Parliament passed the budget after a debate of eleven hours; the finance minister \
        said taxes on fuel would stay as they are until the spring, when the council meets again.";

    fn index() -> LshIndex {
        LshIndex::for_threshold(0.7).unwrap()
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
        let copy = STORM.to_uppercase();
        assert_eq!(check_duplicate("c", &copy, &mut index, 0.7, true), answer("c", Some("a"), 1.0));
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
    fn asking_alone_keeps_nothing() {
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
        assert!(index.buckets.is_empty(), "nothing of a forgotten document stays");
    }

    #[test]
    fn the_first_of_equals_is_the_original() {
        let mut index = index();
        for id in ["z", "m", "a"] {
            index.insert(id, minhash(STORM).unwrap());
        }
        assert_eq!(check_duplicate("q", STORM, &mut index, 0.7, true).original_doc_id.as_deref(), Some("z"));
    }

    #[test]
    fn documents_without_words_never_match() {
        let mut index = index();
        for id in ["a", "b"] {
            assert_eq!(check_duplicate(id, " … ", &mut index, 0.7, true), answer(id, None, 0.0));
        }
        assert!(index.is_empty());
    }

    #[test]
    fn bands_come_from_the_threshold_or_fill_the_signature() {
        assert_eq!(index().banding(), (16, 8));
        assert_eq!(LshIndex::new(32, 4).unwrap().banding(), (32, 4));
        for (bands, rows) in [(0, 0), (0, 128), (10, 12), (usize::MAX, 2)] {
            assert_eq!(LshIndex::new(bands, rows).unwrap_err(), BandingError::Lanes { bands, rows });
        }
        for threshold in [0.0, 1.0, -0.1, f64::INFINITY] {
            let refused = LshIndex::for_threshold(threshold).unwrap_err();
            assert_eq!(refused, BandingError::Threshold(threshold));
        }
        assert!(LshIndex::for_threshold(f64::NAN).is_err());
    }
}
