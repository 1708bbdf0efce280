//! The newest documents of buckets that hold several: common phrases and boilerplate, which article after article looks
//! for. On disk they are spread over all levels, and reading one takes as long as judging an article.
//!
//! It holds what the store holds, or nothing. What is put in such a bucket is put here too; a bucket that loses a
//! document is forgotten, and what was read from the store before a write is not put here after it.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::lsh::BandKey;
use crate::model::{DocumentNumber, Lang};
use crate::store::bands::Spread;
use crate::store::pending::Pending;
use crate::store::rows::Page;

/// Buckets in each of the two generations; one takes half a kilobyte.
const GENERATION: usize = 1 << 13;
/// Buckets with fewer documents are read quickly, and seldom twice.
const SEVERAL: usize = 4;

type Buckets = HashMap<BandKey, Page, BuildHasherDefault<Spread>>;

#[derive(Default)]
pub(super) struct Crowded(Mutex<State>);

#[derive(Default)]
struct State {
    languages: HashMap<Lang, Generations>,
    /// How often the store was written to.
    version: u64,
}

#[derive(Default)]
struct Generations {
    /// Asked for since the generations changed last.
    young: Buckets,
    /// Asked for before that; gone at the next change.
    old: Buckets,
}

impl Generations {
    fn insert(&mut self, key: BandKey, page: Page) {
        self.young.insert(key, page);
        if self.young.len() >= GENERATION {
            self.old = mem::take(&mut self.young);
        }
    }

    /// The newest `cap`, if they are known.
    fn page(&mut self, key: BandKey, cap: usize) -> Option<Page> {
        if !self.young.contains_key(&key) {
            let page = self.old.remove(&key)?;
            self.insert(key, page);
        }
        let page = self.young.get(&key).or_else(|| self.old.get(&key))?;
        let all = page.numbers.len();
        (all >= cap || !page.more)
            .then(|| Page { numbers: page.numbers[..all.min(cap)].to_vec(), more: page.more || all > cap })
    }

    /// Takes note of a posting that has come or gone.
    fn note(&mut self, key: BandKey, number: DocumentNumber, there: bool) {
        for generation in [&mut self.young, &mut self.old] {
            let Some(page) = generation.get_mut(&key) else { continue };
            let known = page.numbers.len();
            match page.numbers.binary_search_by(|other| number.cmp(other)) {
                _ if !there => drop(generation.remove(&key)),
                Ok(_) => {}
                // Beyond what is known: there are more of them.
                Err(at) if at == known && page.more => {}
                Err(at) => {
                    page.numbers.insert(at, number);
                    // As many as a page has, and no more.
                    if page.more {
                        page.numbers.truncate(known);
                    }
                }
            }
        }
    }
}

impl Crowded {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pages that are known of these keys, by their place; and the version to give back with the others.
    pub(super) fn pages(
        &self,
        language: Lang,
        keys: &[BandKey],
        places: &[usize],
        cap: usize,
    ) -> (Vec<Option<Page>>, u64) {
        let mut state = self.state();
        let version = state.version;
        let Some(known) = state.languages.get_mut(&language) else {
            return (vec![None; places.len()], version);
        };
        (places.iter().map(|&at| known.page(keys[at], cap)).collect(), version)
    }

    /// Keeps pages that were read from the store, unless it has been written to since.
    pub(super) fn keep(&self, language: Lang, pages: Vec<(BandKey, Page)>, version: u64) {
        let mut state = self.state();
        if state.version == version {
            let known = state.languages.entry(language).or_default();
            pages.into_iter().for_each(|(key, page)| known.insert(key, page));
        }
    }

    /// Whether a page is worth keeping.
    pub(super) fn is_crowd(page: &Page) -> bool {
        page.numbers.len() >= SEVERAL
    }

    /// Takes note of what has been written.
    pub(super) fn written(&self, pending: &Pending) {
        let mut state = self.state();
        state.version += 1;
        for (language, bands) in &pending.bands {
            if let Some(known) = state.languages.get_mut(language) {
                bands.noted().for_each(|(key, number, there)| known.note(key, number, there));
            }
        }
    }
}
