//! Rows added up: how many, and the sum of their hashes, which is the same for the same rows in any order. Added up
//! in parts by the hash of the key, so that a few wrong rows point at a small part of the store.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128, xxh3_128_with_seed};

use crate::index::format::key::Family;

/// Parts of a family.
const PARTS: usize = 4096;
/// Differing parts that are looked into; in a large store each holds thousands of rows.
const LOOKED_INTO: usize = 16;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    rows: u64,
    hashes: u128,
}

/// The rows of each family.
#[derive(Default)]
pub(super) struct Tallies(BTreeMap<Family, Vec<Sum>>);

/// A family that has other rows than it should.
pub(super) struct Difference {
    pub(super) family: Family,
    /// How many rows there should be.
    pub(super) should: u64,
    /// How many there are.
    pub(super) is: u64,
    parts: Vec<usize>,
}

fn part(key: &[u8]) -> usize {
    xxh3_64(key) as usize % PARTS
}

impl Tallies {
    pub(super) fn add(&mut self, family: Family, key: &[u8], value: &[u8]) {
        let parts = self.0.entry(family).or_insert_with(|| vec![Sum::default(); PARTS]);
        let sum = &mut parts[part(key)];
        let hash = xxh3_128(key);
        sum.rows += 1;
        sum.hashes = sum.hashes.wrapping_add(hash ^ xxh3_128_with_seed(value, hash as u64));
    }

    /// The families whose rows are not the same.
    pub(super) fn differences(&self, is: &Tallies) -> Vec<Difference> {
        let empty = vec![Sum::default(); PARTS];
        let families = self.0.keys().chain(is.0.keys()).collect::<std::collections::BTreeSet<_>>();
        let differences = families.into_iter().map(|family| {
            let [should, is] = [self, is].map(|tallies| tallies.0.get(family).unwrap_or(&empty));
            let rows = |sums: &[Sum]| sums.iter().map(|sum| sum.rows).sum();
            let parts = (0..PARTS).filter(|&at| should[at] != is[at]).take(LOOKED_INTO).collect();
            Difference { family: *family, should: rows(should), is: rows(is), parts }
        });
        differences.filter(|difference| !difference.parts.is_empty()).collect()
    }
}

impl Difference {
    /// Whether a row is in a part that differs and is looked into.
    pub(super) fn holds(&self, key: &[u8]) -> bool {
        self.parts.contains(&part(key))
    }
}
