//! txtfp's in-memory index: signatures in bands, documents by number.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::thread;

use xxhash_rust::xxh3::xxh3_64;

use super::{Error, MinHashSig, jaccard};

/// Bands and rows of an index to build.
///
/// ```
/// use samestory_compat::txtfp::LshIndexBuilder;
///
/// let builder = LshIndexBuilder::for_threshold(0.7, 128)?;
/// assert_eq!((builder.bands, builder.rows), (16, 8));
/// assert!(builder.try_build::<128>().is_ok());
/// assert!(builder.try_build::<64>().is_err());
/// # Ok::<(), samestory_compat::txtfp::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LshIndexBuilder {
    /// Number of bands; each is a table.
    pub bands: usize,
    /// Lanes in a band.
    pub rows: usize,
}

impl LshIndexBuilder {
    /// Uses this many bands and rows.
    pub const fn new(bands: usize, rows: usize) -> LshIndexBuilder {
        LshIndexBuilder { bands, rows }
    }

    /// The factors of `lanes` with the smallest sum of false positives below the threshold and false
    /// negatives above it.
    ///
    /// Each is a trapezoid sum over 200 steps, in single precision, as txtfp computes it: with more
    /// precision, other factors could win a near tie.
    ///
    /// # Errors
    ///
    /// [`Error::Threshold`] unless 0 < threshold < 1; [`Error::NoLanes`] without lanes.
    pub fn for_threshold(threshold: f32, lanes: usize) -> Result<LshIndexBuilder, Error> {
        if !(threshold > 0.0 && threshold < 1.0) {
            return Err(Error::Threshold(threshold));
        }
        let error = |bands: usize, rows: usize| {
            let found = |similarity: f32| {
                1.0 - (1.0 - similarity.powi(rows as i32)).clamp(0.0, 1.0).powi(bands as i32)
            };
            trapezoid(0.0, threshold, found) + trapezoid(threshold, 1.0, |similarity| 1.0 - found(similarity))
        };
        (1..=lanes)
            .filter(|bands| lanes.is_multiple_of(*bands))
            .map(|bands| (error(bands, lanes / bands), LshIndexBuilder::new(bands, lanes / bands)))
            .reduce(|best, next| if next.0 < best.0 { next } else { best })
            .map(|(_, builder)| builder)
            .ok_or(Error::NoLanes)
    }

    /// An empty index.
    ///
    /// # Errors
    ///
    /// [`Error::Banding`] unless bands × rows is `H`.
    pub fn try_build<const H: usize>(self) -> Result<LshIndex<H>, Error> {
        LshIndex::with_bands_rows(self.bands, self.rows)
    }
}

fn trapezoid(from: f32, to: f32, curve: impl Fn(f32) -> f32) -> f32 {
    const STEPS: u16 = 200;
    let step = (to - from) / f32::from(STEPS);
    let ends = 0.5 * (curve(from) + curve(to));
    (1..STEPS).fold(ends, |sum, n| sum + curve(from + f32::from(n) * step)) * step
}

/// An index of MinHash signatures: two documents become candidates by agreeing on all rows of a band.
///
/// ```
/// use samestory_compat::txtfp::{LshIndex, MinHashFingerprinter, WordTokenizer};
///
/// let words = MinHashFingerprinter::<_, 128>::new(WordTokenizer);
/// let mut index = LshIndex::<128>::with_bands_rows(32, 4)?;
/// index.insert(7, words.fingerprint("the ferry was late again")?);
/// assert_eq!(index.query_with_threshold(&words.fingerprint("The ferry was late, again!")?, 0.9), [7]);
/// # Ok::<(), samestory_compat::txtfp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LshIndex<const H: usize> {
    rows: usize,
    /// One table per band: documents by the hash of their rows.
    tables: Vec<HashMap<u64, Vec<u64>>>,
    signatures: HashMap<u64, MinHashSig<H>>,
}

impl<const H: usize> LshIndex<H> {
    /// An empty index.
    ///
    /// # Errors
    ///
    /// [`Error::Banding`] unless bands × rows is `H` and neither is 0.
    pub fn with_bands_rows(bands: usize, rows: usize) -> Result<LshIndex<H>, Error> {
        if rows == 0 || bands == 0 || bands.checked_mul(rows) != Some(H) {
            return Err(Error::Banding { bands, rows, lanes: H });
        }
        Ok(LshIndex { rows, tables: vec![HashMap::new(); bands], signatures: HashMap::new() })
    }

    /// Number of bands.
    pub fn bands(&self) -> usize {
        self.tables.len()
    }

    /// Lanes in a band.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of documents in the index.
    pub fn len(&self) -> usize {
        self.signatures.len()
    }

    /// True if the index is empty.
    pub fn is_empty(&self) -> bool {
        self.signatures.is_empty()
    }

    /// The signature of a document.
    pub fn get(&self, id: u64) -> Option<&MinHashSig<H>> {
        self.signatures.get(&id)
    }

    /// All documents, in no particular order.
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        self.signatures.keys().copied()
    }

    /// All documents with their signatures, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &MinHashSig<H>)> {
        self.signatures.iter().map(|(id, signature)| (*id, signature))
    }

    /// Adds a document. An earlier signature under the same id is removed first.
    pub fn insert(&mut self, id: u64, signature: MinHashSig<H>) {
        self.remove(id);
        for (table, key) in self.tables.iter_mut().zip(band_keys(&signature, self.rows)) {
            table.entry(key).or_default().push(id);
        }
        self.signatures.insert(id, signature);
    }

    /// Adds many documents, the bands on several threads.
    ///
    /// The result equals inserting them one after the other: the last signature of an id counts. In txtfp,
    /// ids that occur twice or are already in the index corrupt it.
    pub fn extend_parallel(&mut self, documents: impl IntoIterator<Item = (u64, MinHashSig<H>)>) {
        let documents: HashMap<u64, MinHashSig<H>> = documents.into_iter().collect();
        for id in documents.keys() {
            self.remove(*id);
        }
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let (rows, share) = (self.rows, self.tables.len().div_ceil(threads));
        thread::scope(|scope| {
            for (n, tables) in self.tables.chunks_mut(share).enumerate() {
                let documents = &documents;
                scope.spawn(move || {
                    for (band, table) in (n * share..).zip(tables) {
                        for (id, signature) in documents {
                            table.entry(band_key(signature, band, rows)).or_default().push(*id);
                        }
                    }
                });
            }
        });
        self.signatures.extend(documents);
    }

    /// Removes a document from every band and returns its signature.
    pub fn remove(&mut self, id: u64) -> Option<MinHashSig<H>> {
        let signature = self.signatures.remove(&id)?;
        for (table, key) in self.tables.iter_mut().zip(band_keys(&signature, self.rows)) {
            if let Some(bucket) = table.get_mut(&key) {
                bucket.retain(|other| *other != id);
                if bucket.is_empty() {
                    table.remove(&key);
                }
            }
        }
        Some(signature)
    }

    /// The documents that share a band with `signature`, ascending and distinct.
    pub fn query(&self, signature: &MinHashSig<H>) -> Vec<u64> {
        let keys = band_keys(signature, self.rows);
        let buckets = self.tables.iter().zip(keys).filter_map(|(table, key)| table.get(&key));
        let mut ids: Vec<u64> = buckets.flatten().copied().collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// The documents that share a band and reach `threshold`, which is clamped to 0 to 1.
    pub fn query_with_threshold(&self, signature: &MinHashSig<H>, threshold: f32) -> Vec<u64> {
        let threshold = threshold.clamp(0.0, 1.0);
        let mut ids = self.query(signature);
        ids.retain(|id| self.get(*id).is_some_and(|other| jaccard(signature, other) >= threshold));
        ids
    }
}

fn band_keys<const H: usize>(signature: &MinHashSig<H>, rows: usize) -> impl Iterator<Item = u64> {
    (0..H / rows).map(move |band| band_key(signature, band, rows))
}

fn band_key<const H: usize>(signature: &MinHashSig<H>, band: usize, rows: usize) -> u64 {
    let lanes = &signature.lanes()[band * rows..(band + 1) * rows];
    let bytes: Vec<u8> = lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect();
    xxh3_64(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(lane: u64) -> MinHashSig<8> {
        MinHashSig::from_lanes([lane; 8])
    }

    fn index() -> LshIndex<8> {
        LshIndex::with_bands_rows(4, 2).unwrap()
    }

    #[test]
    fn a_new_signature_replaces_the_old() {
        let mut index = index();
        index.insert(1, signature(10));
        index.insert(1, signature(20));
        assert_eq!(index.query(&signature(10)), [0; 0]);
        assert_eq!(index.query(&signature(20)), [1]);
        assert_eq!(index.len(), 1);
    }

    #[test]
    fn nothing_of_a_removed_document_remains() {
        let mut index = index();
        index.insert(1, signature(10));
        assert_eq!(index.remove(1), Some(signature(10)));
        assert_eq!(index.remove(1), None);
        assert!(index.is_empty() && index.tables.iter().all(HashMap::is_empty));
    }

    #[test]
    fn documents_that_come_twice_are_added_once() {
        let mut index = index();
        index.insert(1, signature(10));
        index.extend_parallel([(1, signature(20)), (2, signature(20)), (2, signature(30))]);
        assert_eq!((index.query(&signature(10)), index.query(&signature(20))), (vec![], vec![1]));
        assert_eq!(index.query(&signature(30)), [2]);
        let buckets: Vec<usize> =
            index.tables.iter().map(|table| table.values().map(Vec::len).sum()).collect();
        assert_eq!(buckets, [2; 4]);
        index.extend_parallel([]);
        assert_eq!(index.len(), 2);
    }

    #[test]
    fn impossible_bands_are_refused() {
        for (bands, rows) in [(0, 0), (0, 8), (8, 0), (3, 2), (usize::MAX, 2)] {
            let refused = LshIndexBuilder::new(bands, rows).try_build::<8>().map(drop);
            assert_eq!(refused, Err(Error::Banding { bands, rows, lanes: 8 }));
        }
        assert_eq!(LshIndexBuilder::for_threshold(0.5, 0), Err(Error::NoLanes));
        for threshold in [0.0, 1.0, -0.1, f32::INFINITY, f32::NAN] {
            assert!(matches!(LshIndexBuilder::for_threshold(threshold, 128), Err(Error::Threshold(_))));
        }
    }
}
