//! The buckets that a batch will look into, read before any of it is decided: together they are found in one pass,
//! and a phrase that many articles have is read once.
//!
//! What the batch itself changes is laid over them when an article is judged, so nothing is seen too early or too late.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::lsh::BandKey;
use crate::model::Lang;
use crate::store::{Overlay, Page, Pages, StoreError, View};

use super::Engine;
use super::candidates::probable;
use super::plan::{Batch, Incoming};

/// What the articles of a batch look for, and what the state holds of it.
pub(super) struct ReadAhead {
    languages: BTreeMap<Lang, Read>,
    /// For each item of the batch its language and its share of that language's keys.
    items: Vec<Option<(Lang, Range<usize>)>>,
    page_size: usize,
}

#[derive(Default)]
struct Read {
    keys: Vec<BandKey>,
    pages: Pages,
}

/// What one article looks for.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    read: Option<(&'a Read, &'a Range<usize>)>,
    page_size: usize,
}

impl ReadAhead {
    pub(super) fn new(engine: &Engine, state: &impl View, batch: &Batch) -> Result<ReadAhead, StoreError> {
        let mut languages: BTreeMap<Lang, Read> = BTreeMap::new();
        let mut items = Vec::with_capacity(batch.items.len());
        for item in &batch.items {
            let Incoming::Article(article) = &item.incoming else {
                items.push(None);
                continue;
            };
            let read = languages.entry(article.language).or_default();
            let from = read.keys.len();
            read.keys.extend(engine.looked_up(state.postings(), article));
            items.push(Some((article.language, from..read.keys.len())));
        }
        let page_size = engine.page_size();
        for (&language, read) in &mut languages {
            read.pages = state.pages(language, &read.keys, page_size)?;
            let ranges = items.iter().flatten().filter(|(other, _)| *other == language);
            let numbers = ranges.flat_map(|(_, range)| {
                let pages = range.clone().map(|at| read.pages.of(at));
                probable(&read.keys[range.clone()], pages, page_size - 1)
            });
            state.read_ahead(language, numbers.collect())?;
        }
        Ok(ReadAhead { languages, items, page_size })
    }

    /// What the n-th item looks for.
    pub(super) fn of(&self, item: usize) -> Found<'_> {
        let found = self.items.get(item).and_then(Option::as_ref);
        let read = found.and_then(|(language, keys)| Some((self.languages.get(language)?, keys)));
        Found { read, page_size: self.page_size }
    }
}

impl<'a> Found<'a> {
    /// Its buckets, and what is in them now.
    pub(super) fn pages<V: View>(
        self,
        state: &Overlay<'_, V>,
        language: Lang,
    ) -> Result<(&'a [BandKey], Vec<Cow<'a, Page>>), StoreError> {
        let Some((read, range)) = self.read else { return Ok((&[], Vec::new())) };
        let keys = &read.keys[range.clone()];
        let page =
            |(at, &key)| state.page_over(language, key, read.pages.of(range.start + at), self.page_size);
        let pages: Result<_, _> = keys.iter().enumerate().map(page).collect();
        Ok((keys, pages?))
    }
}
