//! Read-ahead: fetches the buckets of a whole piece of a batch before any of its articles is decided.
//!
//! [`Engine::plan`] decides one piece while threads read the next ones: one pass finds all buckets of a
//! piece, and a phrase that many articles share is read once. The [`Overlay`] adds the batch's own changes
//! when an article is judged, so every article sees exactly the changes of those before it.

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

/// The buckets that the articles of one piece look up, as the store holds them.
pub(crate) struct ReadAhead {
    languages: BTreeMap<Lang, LanguageBuckets>,
    /// For each article of the piece its language and its range of that language's keys; `None` for other
    /// items.
    items: Vec<Option<(Lang, Range<usize>)>>,
    read_limit: usize,
}

/// Items that are read together. Fewer would make the reads less sequential, with more the first decision waits longer.
const PIECE: usize = 200;
/// How many pieces are read while another is decided.
const READERS: usize = 2;

/// A batch split into pieces, some of which are being read on their own threads.
///
/// The store does not change until the whole batch is decided, so the time of a read does not matter.
pub(crate) struct ReadAheadQueue<'scope, 'env, V> {
    engine: &'env Engine,
    state: &'env V,
    scope: &'scope Scope<'scope, 'env>,
    /// Pieces whose reading has not started.
    pieces: VecDeque<Arc<Vec<Item>>>,
    /// Pieces being read, in order; without a thread if none could be started or none is worthwhile.
    started: VecDeque<(Arc<Vec<Item>>, Option<ReadAheadThread<'scope>>)>,
}

type ReadAheadThread<'scope> = ScopedJoinHandle<'scope, Result<ReadAhead, StoreError>>;

impl<'scope, 'env, V: View + Sync> ReadAheadQueue<'scope, 'env, V> {
    pub(crate) fn new(
        engine: &'env Engine,
        state: &'env V,
        scope: &'scope Scope<'scope, 'env>,
        items: Vec<Item>,
    ) -> ReadAheadQueue<'scope, 'env, V> {
        let pieces = pieces(items).into_iter().map(Arc::new).collect();
        ReadAheadQueue { engine, state, scope, pieces, started: VecDeque::new() }
    }

    /// The items of the next piece, with their buckets.
    ///
    /// # Errors
    /// The store could not be read.
    pub(crate) fn next(&mut self) -> Result<Option<(Vec<Item>, ReadAhead)>, StoreError> {
        self.start_readers();
        let Some((piece, reader)) = self.started.pop_front() else { return Ok(None) };
        let read = match reader.map(ScopedJoinHandle::join) {
            Some(Ok(read)) => read?,
            // If there is no thread, or it panicked, read on this one.
            _ => ReadAhead::new(self.engine, self.state, &piece)?,
        };
        self.start_readers();
        // The reader has finished, so this is the only reference left.
        Ok(Some((Arc::unwrap_or_clone(piece), read)))
    }

    /// Starts as many readers as may run at once. The caller's own thread reads a batch of a single piece.
    fn start_readers(&mut self) {
        let several = self.pieces.len() + self.started.len() > 1;
        while self.started.len() < READERS {
            let Some(piece) = self.pieces.pop_front() else { break };
            let (engine, state, read) = (self.engine, self.state, Arc::clone(&piece));
            let work = move || ReadAhead::new(engine, state, &read);
            let reader = several.then(|| thread::Builder::new().spawn_scoped(self.scope, work).ok());
            self.started.push_back((piece, reader.flatten()));
        }
    }
}

/// Splits a batch into pieces of similar size, in order.
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
struct LanguageBuckets {
    keys: Vec<BandKey>,
    lists: PostingLists,
}

/// The buckets that one article looks up.
#[derive(Clone, Copy)]
pub(crate) struct ArticleBuckets<'a> {
    read: Option<(&'a LanguageBuckets, &'a Range<usize>)>,
    read_limit: usize,
}

impl ReadAhead {
    fn new(engine: &Engine, state: &impl View, read: &[Item]) -> Result<ReadAhead, StoreError> {
        let mut languages: BTreeMap<Lang, LanguageBuckets> = BTreeMap::new();
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
        let read_limit = engine.read_limit();
        for (&language, read) in &mut languages {
            read.lists = state.posting_lists(language, &read.keys, read_limit)?;
            let ranges = items.iter().flatten().filter(|(other, _)| *other == language);
            let numbers = ranges.flat_map(|(_, range)| {
                let lists = range.clone().map(|at| read.lists.get(at));
                probable(&read.keys[range.clone()], lists, read_limit - 1)
            });
            state.read_ahead(language, numbers.collect())?;
        }
        Ok(ReadAhead { languages, items, read_limit })
    }

    /// The buckets of the n-th item of the piece.
    pub(crate) fn for_item(&self, item: usize) -> ArticleBuckets<'_> {
        let entry = self.items.get(item).and_then(Option::as_ref);
        let read = entry.and_then(|(language, keys)| Some((self.languages.get(language)?, keys)));
        ArticleBuckets { read, read_limit: self.read_limit }
    }
}

impl<'a> ArticleBuckets<'a> {
    /// The article's bucket keys with their current posting lists: the stored ones plus the changes of the
    /// batch so far.
    pub(crate) fn posting_lists<V: View>(
        self,
        state: &Overlay<'_, V>,
        language: Lang,
    ) -> Result<(&'a [BandKey], Vec<Cow<'a, PostingList>>), StoreError> {
        let Some((read, range)) = self.read else { return Ok((&[], Vec::new())) };
        let keys = &read.keys[range.clone()];
        let list = |(at, &key)| {
            state.staged_posting_list(language, key, read.lists.get(range.start + at), self.read_limit)
        };
        let lists: Result<_, _> = keys.iter().enumerate().map(list).collect();
        Ok((keys, lists?))
    }
}
