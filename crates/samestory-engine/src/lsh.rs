//! Locality-sensitive hashing: cuts signatures into bands, so that similar texts share an index key. The
//! index stores documents under these keys and the candidate lookup reads them back.
//!
//! A signature of `bands × rows` lanes is cut into bands; two texts become candidates if all rows of one band
//! are equal. At similarity s that happens with probability 1 − (1 − sʳ)ᵇ. A shared band is never proof of a
//! match.

use crate::fingerprint::{LANES, Signature};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// How a signature is cut; `bands × rows` of its lanes are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Banding {
    bands: u16,
    rows: u16,
}

/// An impossible banding.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum BandingError {
    /// The signature has fewer lanes than `bands × rows`, or one of them is zero.
    #[error(
        "lsh.bands × lsh.rows = {bands} × {rows} but a fingerprint has {lanes} lanes; both must be at least 1 and their product at most {lanes}"
    )]
    Lanes {
        /// Requested bands.
        bands: u16,
        /// Requested rows.
        rows: u16,
        /// Lanes of a signature.
        lanes: usize,
    },
    /// No banding of that many lanes reaches the recall.
    #[error(
        "no banding of {lanes} lanes finds {recall} of the pairs at similarity {threshold}; lower the recall or raise the threshold"
    )]
    Recall {
        /// The similarity at which pairs must be found.
        threshold: f64,
        /// The fraction of pairs that must be found.
        recall: f64,
        /// Lanes of a signature.
        lanes: usize,
    },
    /// A parameter outside the open interval (0, 1).
    #[error("{name} = {value} is not between 0 and 1, both excluded")]
    Fraction {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: f64,
    },
}

/// One band of one signature: an index key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BandKey {
    /// Index of the band.
    pub band: u16,
    /// Hash of the band's rows.
    pub hash: u64,
}

impl Banding {
    /// Checks that a signature of `lanes` lanes can be cut this way.
    ///
    /// # Errors
    /// [`BandingError::Lanes`], with both figures and the number of lanes; lower one of them.
    pub fn new(bands: u16, rows: u16, lanes: usize) -> Result<Banding, BandingError> {
        let product = usize::from(bands) * usize::from(rows);
        if product == 0 || product > lanes {
            return Err(BandingError::Lanes { bands, rows, lanes });
        }
        Ok(Banding { bands, rows })
    }

    /// The banding that finds at least `recall` of the pairs at similarity `threshold` with the lowest
    /// [load](Banding::load).
    ///
    /// Tries, for every number of rows, the fewest bands that reach the recall: more bands only add load.
    ///
    /// # Errors
    /// No banding of `lanes` lanes reaches that recall; the message says what to change.
    pub fn for_recall(threshold: f64, recall: f64, lanes: usize) -> Result<Banding, BandingError> {
        for (name, value) in [("threshold", threshold), ("recall", recall)] {
            if !(value > 0.0 && value < 1.0) {
                return Err(BandingError::Fraction { name, value });
            }
        }
        (1..=lanes)
            .filter_map(|rows| {
                let miss = (-threshold.powi(rows as i32)).ln_1p();
                // Tolerates rounding: 0.99 requested and 0.9899999 predicted are the same promise.
                let bands = ((1.0 - recall).ln() / miss - 1e-9).ceil().max(1.0);
                (bands * rows as f64 <= lanes as f64)
                    .then_some(Banding { bands: bands as u16, rows: rows as u16 })
            })
            .min_by(|a, b| a.load().total_cmp(&b.load()).then(a.bands.cmp(&b.bands)))
            .ok_or(BandingError::Recall { threshold, recall, lanes })
    }

    /// Number of bands.
    pub fn bands(self) -> u16 {
        self.bands
    }

    /// Lanes per band.
    pub fn rows(self) -> u16 {
        self.rows
    }

    /// Probability that two texts of this similarity share a band.
    pub fn collision(self, similarity: f64) -> f64 {
        1.0 - (1.0 - similarity.powi(i32::from(self.rows))).powi(i32::from(self.bands))
    }

    /// Predicted number of candidates that are not copies, among a million articles of the same language.
    ///
    /// Unrelated articles have a little in common, and newswire has templates: over random pairs of Reuters
    /// articles the fraction above similarity x was 2·10⁻⁶/x², within a third, from x = 0.005 to 0.3.
    pub fn load(self) -> f64 {
        const DENSITY: f64 = 2e-6;
        const STEPS: u32 = 2000;
        // By that law no pairs lie below this similarity.
        let least = DENSITY.sqrt();
        let ratio = (1.0 / least).powf(1.0 / f64::from(STEPS));
        (0..STEPS)
            .map(|n| {
                let (from, to) = (least * ratio.powf(f64::from(n)), least * ratio.powf(f64::from(n) + 1.0));
                self.collision((from * to).sqrt()) * DENSITY * (from.powi(-2) - to.powi(-2))
            })
            .sum::<f64>()
            * 1e6
    }

    /// The keys of a signature, one per band.
    pub fn keys(self, signature: &Signature) -> impl Iterator<Item = BandKey> + '_ {
        let mut bytes = [0u8; 2 * LANES];
        for (bytes, lane) in bytes.as_chunks_mut().0.iter_mut().zip(signature) {
            *bytes = lane.to_le_bytes();
        }
        let width = 2 * usize::from(self.rows);
        (0..self.bands).map(move |band| {
            let from = usize::from(band) * width;
            // The band number seeds the hash, so that equal rows in different bands do not collide.
            BandKey { band, hash: xxh3_64_with_seed(&bytes[from..from + width], u64::from(band)) }
        })
    }
}

/// Keys of a 128-bit SimHash: 8 bands of 16 bits.
///
/// Seven differing bits touch at most seven of the eight bands, so every pair at distance 7 or less shares
/// one.
pub fn simhash128_keys(hash: u128) -> [BandKey; 8] {
    std::array::from_fn(|band| BandKey { band: band as u16, hash: (hash >> (16 * band)) as u64 & 0xffff })
}

/// Keys of a 64-bit SimHash: 4 bands of 16 bits; every pair at distance 3 or less shares one.
pub fn simhash64_keys(hash: u64) -> [BandKey; 4] {
    std::array::from_fn(|band| BandKey { band: band as u16, hash: hash >> (16 * band) & 0xffff })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_collision_curve_has_its_known_values() {
        let at_half = |bands, rows| Banding::new(bands, rows, 128).unwrap().collision(0.5);
        assert!((at_half(16, 8) - 0.0607).abs() < 5e-5);
        assert!((at_half(32, 4) - 0.873).abs() < 5e-4);
        let costly = Banding::new(16, 8, 128).unwrap().collision(0.7);
        assert!((costly - 0.61).abs() < 0.005, "a midpoint choice finds 61 % at 0.7");
    }

    #[test]
    fn the_chosen_banding_reaches_the_recall_with_the_lowest_load() {
        for (threshold, recall) in [(0.5, 0.95), (0.5, 0.99), (0.6, 0.999), (0.7, 0.99), (0.9, 0.9)] {
            let banding = Banding::for_recall(threshold, recall, LANES).unwrap();
            assert!(banding.collision(threshold) >= recall - 1e-9, "{banding:?}");
            assert!(usize::from(banding.bands * banding.rows) <= LANES);
            let all = (1..=128u16).flat_map(|bands| (1..=128u16).map(move |rows| (bands, rows)));
            let least = all
                .filter_map(|(bands, rows)| Banding::new(bands, rows, LANES).ok())
                .filter(|other| other.collision(threshold) >= recall)
                .map(Banding::load)
                .fold(f64::INFINITY, f64::min);
            assert!(banding.load() <= least * (1.0 + 1e-6), "{banding:?} {} {least}", banding.load());
        }
    }

    #[test]
    fn impossible_bandings_are_refused_with_the_figures() {
        let refusal = Banding::new(32, 5, 128).unwrap_err().to_string();
        assert!(refusal.contains("32 × 5") && refusal.contains("128 lanes"), "{refusal}");
        assert!(matches!(Banding::for_recall(0.001, 0.9999, 128), Err(BandingError::Recall { .. })));
        assert!(matches!(Banding::for_recall(1.2, 0.9, 128), Err(BandingError::Fraction { .. })));
        assert!(matches!(Banding::for_recall(f64::NAN, 0.9, 128), Err(BandingError::Fraction { .. })));
    }

    proptest! {
        #[test]
        fn a_pair_within_seven_bits_always_shares_a_band(hash in any::<u128>(), bits in proptest::collection::vec(0u32..128, 0..=7)) {
            let other = bits.iter().fold(hash, |hash, bit| hash ^ (1 << bit));
            let (ours, theirs) = (simhash128_keys(hash), simhash128_keys(other));
            prop_assert!(ours.iter().any(|key| theirs.contains(key)));
        }

        #[test]
        fn a_pair_within_three_bits_always_shares_a_band(hash in any::<u64>(), bits in proptest::collection::vec(0u32..64, 0..=3)) {
            let other = bits.iter().fold(hash, |hash, bit| hash ^ (1 << bit));
            let (ours, theirs) = (simhash64_keys(hash), simhash64_keys(other));
            prop_assert!(ours.iter().any(|key| theirs.contains(key)));
        }

        #[test]
        fn only_equal_rows_make_equal_keys(lane in 0usize..128, seed in any::<u16>()) {
            let banding = Banding::new(32, 4, LANES).unwrap();
            let signature = std::array::from_fn(|n| seed.wrapping_mul(n as u16 + 1));
            let mut other = signature;
            other[lane] ^= 1;
            let differ: Vec<u16> = banding.keys(&signature).zip(banding.keys(&other)).filter(|(a, b)| a != b).map(|(a, _)| a.band).collect();
            prop_assert_eq!(differ, vec![lane as u16 / 4]);
        }
    }
}
