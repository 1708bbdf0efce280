//! Order-independent checksums of rows: their number and the sum of their hashes.
//!
//! The check builds one set of [`Checksums`] for the expected rows and one for the actual rows. Each column
//! family is split into parts by the hash of the key, so that a few wrong rows point at a small part of the
//! store.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128, xxh3_128_with_seed};

use crate::index::format::key::Family;

/// Parts per column family.
const PARTS: usize = 4096;
/// How many differing parts are examined; in a large store each holds thousands of rows.
const EXAMINED_PARTS: usize = 16;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    rows: u64,
    hashes: u128,
}

/// The checksums of each column family.
#[derive(Default)]
pub(super) struct Checksums(BTreeMap<Family, Vec<Sum>>);

/// A column family whose rows differ from the expected ones.
pub(super) struct Difference {
    pub(super) family: Family,
    /// The expected number of rows.
    pub(super) should: u64,
    /// The actual number of rows.
    pub(super) is: u64,
    parts: Vec<usize>,
}

fn part(key: &[u8]) -> usize {
    xxh3_64(key) as usize % PARTS
}

impl Checksums {
    pub(super) fn add(&mut self, family: Family, key: &[u8], value: &[u8]) {
        let parts = self.0.entry(family).or_insert_with(|| vec![Sum::default(); PARTS]);
        let sum = &mut parts[part(key)];
        let hash = xxh3_128(key);
        sum.rows += 1;
        sum.hashes = sum.hashes.wrapping_add(hash ^ xxh3_128_with_seed(value, hash as u64));
    }

    /// The column families whose rows differ.
    pub(super) fn differences(&self, is: &Checksums) -> Vec<Difference> {
        let empty = vec![Sum::default(); PARTS];
        let families = self.0.keys().chain(is.0.keys()).collect::<std::collections::BTreeSet<_>>();
        let differences = families.into_iter().map(|family| {
            let [should, is] = [self, is].map(|checksums| checksums.0.get(family).unwrap_or(&empty));
            let rows = |sums: &[Sum]| sums.iter().map(|sum| sum.rows).sum();
            let parts = (0..PARTS).filter(|&at| should[at] != is[at]).take(EXAMINED_PARTS).collect();
            Difference { family: *family, should: rows(should), is: rows(is), parts }
        });
        differences.filter(|difference| !difference.parts.is_empty()).collect()
    }
}

impl Difference {
    /// True if a row lies in a differing part that is examined.
    pub(super) fn holds(&self, key: &[u8]) -> bool {
        self.parts.contains(&part(key))
    }
}
