//! The buckets that a piece of a batch will look into, read before any of it is decided, and while the piece before it is:
//! together they are found in one pass, and a phrase that many articles have is read once.
//!
//! What the batch itself changes is laid over them when an article is judged, so nothing is seen too early or too late.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::thread::{self, Scope, ScopedJoinHandle};

use crate::index::{Overlay, PostingList, PostingLists, StoreError, View};
use crate::lsh::BandKey;
use crate::model::Lang;

use super::probable;
use crate::engine::Engine;
use crate::engine::batch::{Incoming, Item};

/// What the articles of a piece look for, and what the state holds of it.
pub(crate) struct ReadAhead {
    languages: BTreeMap<Lang, Read>,
    /// For each item of the piece its language and its share of that language's keys.
    items: Vec<Option<(Lang, Range<usize>)>>,
    page_size: usize,
}

/// Items that are read together. Fewer would be found in less order, more would be waited for longer.
const PIECE: usize = 500;
/// Pieces that are read while another is decided.
const READERS: usize = 2;

/// A batch on its way to being decided, in pieces: some are read on threads of their own.
///
/// The state stays as it is until all is decided, so it does not matter when it is read.
pub(crate) struct Reading<'scope, 'env, V> {
    engine: &'env Engine,
    state: &'env V,
    scope: &'scope Scope<'scope, 'env>,
    /// Not begun yet.
    pieces: VecDeque<Arc<Vec<Item>>>,
    /// Begun, in order; without a thread where none could be had, or none is worth it.
    begun: VecDeque<(Arc<Vec<Item>>, Option<Reader<'scope>>)>,
}

type Reader<'scope> = ScopedJoinHandle<'scope, Result<ReadAhead, StoreError>>;

impl<'scope, 'env, V: View + Sync> Reading<'scope, 'env, V> {
    pub(crate) fn new(
        engine: &'env Engine,
        state: &'env V,
        scope: &'scope Scope<'scope, 'env>,
        items: Vec<Item>,
    ) -> Reading<'scope, 'env, V> {
        let pieces = pieces(items).into_iter().map(Arc::new).collect();
        Reading { engine, state, scope, pieces, begun: VecDeque::new() }
    }

    /// The next items, and what they look for.
    ///
    /// # Errors
    /// The state could not be read.
    pub(crate) fn next(&mut self) -> Result<Option<(Vec<Item>, ReadAhead)>, StoreError> {
        self.begin();
        let Some((piece, reader)) = self.begun.pop_front() else { return Ok(None) };
        let read = match reader.map(ScopedJoinHandle::join) {
            Some(Ok(read)) => read?,
            // Without a thread, or with one that panicked, there is still this one.
            _ => ReadAhead::new(self.engine, self.state, &piece)?,
        };
        self.begin();
        // The reader has given back what it held.
        Ok(Some((Arc::unwrap_or_clone(piece), read)))
    }

    /// Begins to read as many pieces as may be read at once. A batch of one piece is read by who asks for it.
    fn begin(&mut self) {
        let several = self.pieces.len() + self.begun.len() > 1;
        while self.begun.len() < READERS {
            let Some(piece) = self.pieces.pop_front() else { break };
            let (engine, state, read) = (self.engine, self.state, Arc::clone(&piece));
            let work = move || ReadAhead::new(engine, state, &read);
            let reader = several.then(|| thread::Builder::new().spawn_scoped(self.scope, work).ok());
            self.begun.push_back((piece, reader.flatten()));
        }
    }
}

/// A batch in pieces of like size, in order.
fn pieces(mut items: Vec<Item>) -> Vec<Vec<Item>> {
    let size = items.len().div_ceil(items.len().div_ceil(PIECE).max(1));
    let mut pieces = Vec::new();
    while items.len() > size {
        let rest = items.split_off(size);
        pieces.push(std::mem::replace(&mut items, rest));
    }
    pieces.push(items);
    pieces
}

#[derive(Default)]
struct Read {
    keys: Vec<BandKey>,
    pages: PostingLists,
}

/// What one article looks for.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    read: Option<(&'a Read, &'a Range<usize>)>,
    page_size: usize,
}

impl ReadAhead {
    fn new(engine: &Engine, state: &impl View, read: &[Item]) -> Result<ReadAhead, StoreError> {
        let mut languages: BTreeMap<Lang, Read> = BTreeMap::new();
        let mut items = Vec::with_capacity(read.len());
        for item in read {
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
    pub(crate) fn of(&self, item: usize) -> Found<'_> {
        let found = self.items.get(item).and_then(Option::as_ref);
        let read = found.and_then(|(language, keys)| Some((self.languages.get(language)?, keys)));
        Found { read, page_size: self.page_size }
    }
}

impl<'a> Found<'a> {
    /// Its buckets, and what is in them now.
    pub(crate) fn pages<V: View>(
        self,
        state: &Overlay<'_, V>,
        language: Lang,
    ) -> Result<(&'a [BandKey], Vec<Cow<'a, PostingList>>), StoreError> {
        let Some((read, range)) = self.read else { return Ok((&[], Vec::new())) };
        let keys = &read.keys[range.clone()];
        let page =
            |(at, &key)| state.page_over(language, key, read.pages.of(range.start + at), self.page_size);
        let pages: Result<_, _> = keys.iter().enumerate().map(page).collect();
        Ok((keys, pages?))
    }
}
