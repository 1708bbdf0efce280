//! State in memory: the one-minute start, and the simple model that tests compare with.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::lsh::BandKey;
use crate::model::{DocumentNumber, Lang};

use super::key::{self, BUCKET, Family, POSTING};
use super::overlay::{Laid, Pending, bounds, posting_bounds};
use super::postings::Postings;
use super::rows::{Order, Page, Rows, Span, Visit};
use super::{Ahead, Committed, Store, StoreError};

/// State in memory, gone with the process.
#[derive(Debug, Clone)]
pub struct Memory {
    postings: Postings,
    ahead: Ahead,
    version: u64,
    bands: BTreeMap<Lang, BTreeSet<[u8; POSTING]>>,
    rows: BTreeMap<Family, BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Memory {
    /// Empty.
    pub fn new(postings: Postings, ahead: Ahead) -> Memory {
        Memory { postings, ahead, version: 0, bands: BTreeMap::new(), rows: BTreeMap::new() }
    }

    fn write(&mut self, pending: Pending) {
        for (language, bands) in pending.bands {
            let ours = self.bands.entry(language).or_default();
            for (key, there) in bands {
                let _changed = if there { ours.insert(key) } else { ours.remove(&key) };
            }
        }
        for (family, rows) in pending.rows {
            let ours = self.rows.entry(family).or_default();
            for (key, value) in rows {
                let _old = match value {
                    Some(value) => ours.insert(key, value),
                    None => ours.remove(&key),
                };
            }
        }
    }
}

impl Store for Memory {
    fn ensure_language(&mut self, language: Lang) -> Result<(), StoreError> {
        self.bands.entry(language).or_default();
        Ok(())
    }

    fn apply_laid(&mut self, laid: Laid, proof: &Committed) -> Result<(), StoreError> {
        let next = proof.covers(self.ahead, self.place())?;
        let pending = laid.pending(self)?;
        self.write(pending);
        self.version += 1;
        if let Some(next) = next {
            let meta = self.rows.entry(Family::Meta).or_default();
            meta.insert(key::CHANGELOG.to_vec(), next.to_be_bytes().to_vec());
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

fn visit_all<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    mut rows: impl DoubleEndedIterator<Item = (K, V)>,
    order: Order,
    visit: &mut Visit<'_>,
) {
    let mut visit = |(key, value): (K, V)| visit(key.as_ref(), value.as_ref());
    let _stopped: ControlFlow<()> = match order {
        Order::Ascending => rows.try_for_each(&mut visit),
        Order::Descending => rows.rev().try_for_each(&mut visit),
    };
}

impl Rows for Memory {
    fn place(&self) -> &str {
        "memory"
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn postings(&self) -> &Postings {
        &self.postings
    }

    fn languages(&self) -> Vec<Lang> {
        self.bands.keys().copied().collect()
    }

    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(match family {
            Family::Bands(language) => <&[u8; POSTING]>::try_from(key)
                .ok()
                .filter(|key| self.bands.get(&language).is_some_and(|bands| bands.contains(*key)))
                .map(|_| Vec::new()),
            _ => self.rows.get(&family).and_then(|rows| rows.get(key)).cloned(),
        })
    }

    fn scan(
        &self,
        family: Family,
        span: &Span,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        if let Family::Bands(language) = family {
            if let Some(bands) = self.bands.get(&language) {
                visit_all(bands.range(posting_bounds(span)).map(|key| (key, [])), order, visit);
            }
        } else if let Some(rows) = self.rows.get(&family) {
            visit_all(rows.range::<[u8], _>(bounds(span)), order, visit);
        }
        Ok(())
    }

    fn buckets(&self, language: Lang, keys: &[BandKey], cap: usize) -> Result<Vec<Page>, StoreError> {
        let Some(bands) = self.bands.get(&language) else { return Ok(vec![Page::default(); keys.len()]) };
        let bucket = |&key: &BandKey| {
            let newest = key::posting(key, DocumentNumber(u64::MAX));
            let mut numbers = bands
                .range(newest..)
                .take_while(|posting| posting[..BUCKET] == newest[..BUCKET])
                .filter_map(|posting| key::decode_posting(posting).ok())
                .map(|(_, number)| number);
            let first = numbers.by_ref().take(cap).collect();
            Page { numbers: first, more: numbers.next().is_some() }
        };
        Ok(keys.iter().map(bucket).collect())
    }
}
