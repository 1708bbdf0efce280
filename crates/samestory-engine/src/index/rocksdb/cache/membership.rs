//! The membership filter of a store: which ids and clusters may exist. A background scan fills it when the store is
//! opened, and it is used once it is complete. Buckets are in the filters of their segments.
//!
//! Every write is added to the filter before it is applied, so nothing is missing when the scan of the
//! existing rows has ended. Only the writer starts a scan, so no batch can fall between the two.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rocksdb::properties;

use super::bloom::{Filter, of_cluster, of_id};
use crate::index::StoreError;
use crate::index::format::key;
use crate::index::format::key::{Family, IdRow};
use crate::index::read::rows::{Order, Span};
use crate::index::read::view::View;
use crate::index::rocksdb::{Opened, RocksReader};
use crate::index::write_set::pending::Pending;
use crate::model::ArticleId;

/// A filter of so few keys is never made anew.
const FEW: usize = if cfg!(test) { 100 } else { 1 << 21 };

/// A scan that failed is started again after this long, then after twice as long, up to [`LONGEST`].
const FIRST: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 10 });
const LONGEST: Duration = Duration::from_secs(600);

#[derive(Default)]
pub(crate) struct MembershipFilter(RwLock<State>);

#[derive(Default)]
struct State {
    complete: Option<Filter>,
    /// Collects what is applied while a scan is under way.
    next: Option<Filter>,
    /// The last scan failed: when to try again, and how long to wait after that.
    retry: Option<(Instant, Duration)>,
}

impl MembershipFilter {
    /// True if an id may be known.
    pub(crate) fn may_know(&self, id: &ArticleId) -> bool {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let hash = of_id(id.as_str().as_bytes());
        state.complete.as_ref().is_none_or(|filter| filter.contains(hash))
    }

    /// Whether a row of `clusters` may be there.
    pub(crate) fn may_cluster(&self, key: &[u8]) -> bool {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        state.complete.as_ref().is_none_or(|filter| filter.contains(of_cluster(key)))
    }

    /// Takes note of what is about to be written.
    pub(crate) fn insert(&self, pending: &Pending) {
        let documents = pending.documents.values().flatten();
        let ids = documents
            .filter_map(|(_, document)| Some(of_id(document.as_ref()?.document.id.as_str().as_bytes())));
        let residences = pending.rows.get(&Family::Ids).into_iter().flatten();
        let residences = residences.filter(|(_, value)| value.is_some());
        let residences = residences.filter_map(|(key, _)| match key::decode_id(key) {
            Ok(IdRow::Residence(id)) => Some(of_id(id.as_str().as_bytes())),
            _ => None,
        });
        let clusters = pending.rows.get(&Family::Clusters).into_iter().flatten();
        let clusters = clusters.filter(|(key, value)| value.is_some() && key::is_cluster(key));
        let clusters = clusters.map(|(key, _)| of_cluster(key));
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let State { complete, next, .. } = &mut *state;
        for hash in ids.chain(residences).chain(clusters) {
            complete.iter_mut().chain(next.iter_mut()).for_each(|filter| insert(filter, hash));
        }
    }

    /// Whether most of what was put in has gone since: with a retention the filter would grow for ever.
    pub(crate) fn is_stale(&self, opened: &Opened) -> bool {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let keys = state.complete.as_ref().map_or(0, Filter::keys);
        state.next.is_none() && keys > FEW && keys > 3 * opened.keys_estimate()
    }

    /// Whether the last scan failed and it is time for the next one.
    pub(crate) fn is_due(&self) -> bool {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        state.next.is_none() && state.retry.is_some_and(|(at, _)| Instant::now() >= at)
    }

    /// A scan failed. Look-ups go on without the filter, more slowly.
    fn fail(&self, place: &str, error: &str) {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        state.next = None;
        let wait = state.retry.map_or(FIRST, |(_, next)| next);
        state.retry = Some((Instant::now() + wait, (wait * 2).min(LONGEST)));
        tracing::warn!(
            state = place,
            retry_in_seconds = wait.as_secs(),
            "could not build the membership filter, lookups are slower until the retry succeeds: {error}"
        );
    }

    /// How many keys the complete filter has taken in.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> Option<usize> {
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
            state.retry = None;
        }
    }
}

/// The thread that scans. It ends when it is dropped.
pub(crate) struct Scan {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Scan {
    /// Starts a scan of what is there. Nothing may be applied while this is called.
    pub(crate) fn start(reader: RocksReader) -> Scan {
        reader.0.sieve.begin();
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let place = reader.clone();
        let work = move || match scan(&reader, &told) {
            Ok(filter) => reader.0.sieve.finish(filter),
            Err(error) => reader.0.sieve.fail(&reader.0.place, &error.to_string()),
        };
        let thread = std::thread::Builder::new().name("id-filter".into()).spawn(work);
        if let Err(error) = &thread {
            place.0.sieve.fail(&place.0.place, &format!("no thread: {error}"));
        }
        Scan { stop, thread: thread.ok() }
    }

    /// Waits until it has ended of itself.
    pub(crate) fn wait(&mut self) {
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

fn insert(filter: &mut Filter, hash: u64) {
    if !filter.contains(hash) {
        filter.insert(hash);
    }
}

/// All ids and clusters on disk and in memory; nothing if it was told to stop.
fn scan(reader: &RocksReader, stop: &AtomicBool) -> Result<Option<Filter>, StoreError> {
    let damage = |family: Family| StoreError::Corrupt {
        place: reader.0.place.clone(),
        detail: format!("a key of {} cannot be read", family.name()),
    };
    let mut filter = Filter::new(reader.0.keys_estimate() / 4 * 5);
    let mut damaged = false;
    for family in [Family::Ids, Family::Clusters] {
        let scanned = reader.scan(family, &Span::all(), Order::Ascending, &mut |key, _| {
            match family {
                Family::Ids => match key::decode_id(key) {
                    Ok(row) => insert(&mut filter, of_id(row.id().as_str().as_bytes())),
                    Err(_) => damaged = true,
                },
                _ if key::is_cluster(key) => insert(&mut filter, of_cluster(key)),
                // Rows of clusters come before those of their members.
                _ => return ControlFlow::Break(()),
            }
            match damaged || stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        scanned?;
        if damaged {
            return Err(damage(family));
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    Ok(Some(filter))
}

impl Opened {
    /// About how many ids there are.
    fn keys_estimate(&self) -> usize {
        let estimate = self.family(Family::Ids).and_then(|family| {
            self.db.property_int_value_cf(&family, properties::ESTIMATE_NUM_KEYS).ok().flatten()
        });
        estimate.unwrap_or_default() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::rocksdb::maintenance::upkeep::tests::{document, empty_store};
    use crate::index::{Change, Store};
    use crate::model::Lang;

    fn id(number: u64) -> ArticleId {
        ArticleId::new(&format!("a{number}")).unwrap()
    }

    #[test]
    fn a_filter_of_what_has_gone_is_made_anew() {
        let (mut store, directory) = empty_store("stale");
        store.wait_for_filter();
        store.apply_own_changes(&[document(0)]).unwrap();
        let mut most = 0;
        for number in 1..400 {
            store.apply_own_changes(&[document(number)]).unwrap();
            store.apply_own_changes(&[Change::NoDocument(Lang::UND, id(number))]).unwrap();
            store.wait_for_filter();
            most = most.max(store.opened().sieve.keys().unwrap());
        }
        assert!(store.opened().sieve.may_know(&id(0)));
        assert!((FEW..350).contains(&most), "it grew to {most} keys of 400");
        drop(store);
        drop(std::fs::remove_dir_all(&directory));
    }

    // A scan that could not read the store ended in silence: no filter, slow look-ups for as long as the process lived.
    // It is named in the log, and a later batch starts it again.
    #[test]
    fn a_scan_that_failed_is_started_again() {
        let (mut store, directory) = empty_store("failed-scan");
        store.apply_own_changes(&[document(0)]).unwrap();
        store.wait_for_filter();
        let damaged = b"no id".as_slice();
        let ids = Family::Ids;
        store.opened().db.put_cf(&store.opened().existing(ids).unwrap(), damaged, []).unwrap();
        store.scan = Scan::start(store.reader());
        store.wait_for_filter();
        assert!(store.opened().sieve.is_due());
        // This batch starts another scan, which may fail too; the one after it does not.
        store.apply_own_changes(&[document(1)]).unwrap();
        store.opened().db.delete_cf(&store.opened().existing(ids).unwrap(), damaged).unwrap();
        store.wait_for_filter();
        store.apply_own_changes(&[document(2)]).unwrap();
        store.wait_for_filter();
        assert!(!store.opened().sieve.is_due(), "the third scan has built the filter");
        drop(store);
        drop(std::fs::remove_dir_all(&directory));
    }
}
