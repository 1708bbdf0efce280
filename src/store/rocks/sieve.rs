//! The filter of a store's buckets, ids and clusters: filled in the background when the store is opened, used once it is complete.
//!
//! What is applied goes into it before it is written. So when the scan of what was there before has ended, nothing
//! is missing. Only the one who applies starts a scan, so no batch can fall between the two.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;

use rocksdb::properties;

use super::filter::{Filter, of_bucket, of_cluster, of_id};
use super::{Opened, RocksReader};
use crate::lsh::BandKey;
use crate::model::{ArticleId, Lang};
use crate::store::key::{self, Family};
use crate::store::pending::Pending;
use crate::store::rows::{Order, Rows, Span};

/// A filter of so few keys is never made anew.
const FEW: usize = if cfg!(test) { 1 << 10 } else { 1 << 23 };

#[derive(Default)]
pub(super) struct Sieve(RwLock<State>);

#[derive(Default)]
struct State {
    complete: Option<Filter>,
    /// Collects what is applied while a scan is under way.
    next: Option<Filter>,
}

impl Sieve {
    /// The places of those buckets that may exist; all, while that is not known.
    pub(super) fn perhaps(&self, language: Lang, keys: &[BandKey]) -> Vec<usize> {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let perhaps = |at: &usize| match &state.complete {
            Some(filter) => filter.contains(of_bucket(language, keys[*at])),
            None => true,
        };
        (0..keys.len()).filter(perhaps).collect()
    }

    /// Whether an id may be known.
    pub(super) fn may_know(&self, id: &ArticleId) -> bool {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let hash = of_id(id.as_str().as_bytes());
        state.complete.as_ref().is_none_or(|filter| filter.contains(hash))
    }

    /// Whether a row of `clusters` may be there.
    pub(super) fn may_cluster(&self, key: &[u8]) -> bool {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        state.complete.as_ref().is_none_or(|filter| filter.contains(of_cluster(key)))
    }

    /// Takes note of what is about to be written.
    pub(super) fn insert(&self, pending: &Pending) {
        let buckets = pending
            .bands
            .iter()
            .flat_map(|(&language, bands)| bands.buckets().map(move |key| of_bucket(language, key)));
        let documents = pending.documents.values().flatten();
        let ids =
            documents.filter_map(|(_, document)| Some(of_id(document.as_ref()?.id.as_str().as_bytes())));
        let clusters = pending.rows.get(&Family::Clusters).into_iter().flatten();
        let clusters = clusters.filter(|(key, value)| value.is_some() && key::is_cluster(key));
        let clusters = clusters.map(|(key, _)| of_cluster(key));
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let State { complete, next } = &mut *state;
        for hash in buckets.chain(ids).chain(clusters) {
            complete.iter_mut().chain(next.iter_mut()).for_each(|filter| filter.insert(hash));
        }
    }

    /// Whether most of what was put in has gone since: with a retention the filter would grow for ever.
    pub(super) fn is_stale(&self, opened: &Opened) -> bool {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let keys = state.complete.as_ref().map_or(0, Filter::keys);
        state.next.is_none() && keys > FEW && keys > 3 * opened.postings_estimate()
    }

    /// How many keys the complete filter has taken in.
    #[cfg(test)]
    pub(super) fn keys(&self) -> Option<usize> {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        state.complete.as_ref().map(Filter::keys)
    }

    /// From now on everything applied is collected beside what a scan will find.
    fn begin(&self) {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        state.next = Some(Filter::new(0));
    }

    fn finish(&self, scanned: Option<Filter>) {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let (Some(mut next), Some(scanned)) = (state.next.take(), scanned) {
            next.join(scanned);
            state.complete = Some(next);
        }
    }
}

/// The thread that scans. It ends when it is dropped.
pub(super) struct Scan {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Scan {
    /// Starts a scan of what is there. Nothing may be applied while this is called.
    pub(super) fn start(reader: RocksReader) -> Scan {
        reader.0.sieve.begin();
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let work = move || {
            let filter = scan(&reader, &told);
            reader.0.sieve.finish(filter);
        };
        // Without a thread there is no filter, and look-ups are slower: nothing else.
        let thread = std::thread::Builder::new().name("bucket-filter".into()).spawn(work).ok();
        Scan { stop, thread }
    }

    /// Waits until it has ended of itself.
    pub(super) fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A scan that panicked leaves no filter behind.
            drop(thread.join());
        }
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wait();
    }
}

/// All buckets, ids and clusters on disk and in memory; nothing if it was told to stop, or could not read.
fn scan(reader: &RocksReader, stop: &AtomicBool) -> Option<Filter> {
    let mut filter = Filter::new(reader.0.postings_estimate() / 4 * 5);
    for language in reader.languages() {
        let (mut last, mut damaged) = (None, false);
        let scanned = reader.scan(Family::Bands(language), &Span::all(), Order::Ascending, &mut |key, _| {
            let Ok((bucket, _)) = key::decode_posting(key) else {
                damaged = true;
                return ControlFlow::Break(());
            };
            if stop.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            if last.replace(bucket) != Some(bucket) {
                filter.insert(of_bucket(language, bucket));
            }
            ControlFlow::Continue(())
        });
        if scanned.is_err() || damaged || stop.load(Ordering::Relaxed) {
            return None;
        }
    }
    let mut damaged = false;
    for family in [Family::Ids, Family::Clusters] {
        let scanned = reader.scan(family, &Span::all(), Order::Ascending, &mut |key, _| {
            match family {
                Family::Ids => match key::decode_id(key) {
                    Ok((id, _)) => filter.insert(of_id(id.as_str().as_bytes())),
                    Err(_) => damaged = true,
                },
                _ if key::is_cluster(key) => filter.insert(of_cluster(key)),
                // Rows of clusters come before those of their members.
                _ => return ControlFlow::Break(()),
            }
            match damaged || stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        if scanned.is_err() || damaged || stop.load(Ordering::Relaxed) {
            return None;
        }
    }
    Some(filter)
}

impl Opened {
    fn postings_estimate(&self) -> usize {
        let of = |language| {
            let family = self.family(Family::Bands(language))?;
            self.db.property_int_value_cf(&family, properties::ESTIMATE_NUM_KEYS).ok().flatten()
        };
        self.languages().into_iter().filter_map(of).sum::<u64>() as usize
    }
}
