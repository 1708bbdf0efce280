//! The membership filter of a store: which buckets, ids and clusters may exist. A background scan fills it
//! when the store is opened, and it is used once it is complete.
//!
//! It also records which buckets may ever have held a second document. For the others, the first hit is the
//! whole bucket.
//!
//! Every write is added to the filter before it is applied, so nothing is missing when the scan of the
//! existing rows has ended. Only the writer starts a scan, so no batch can fall between the two.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rocksdb::properties;

use super::bloom::{Filter, of_bucket, of_cluster, of_id};
use crate::index::StoreError;
use crate::index::format::key;
use crate::index::format::key::{Family, IdRow};
use crate::index::read::rows::{Order, Rows, Span};
use crate::index::rocksdb::{Opened, RocksReader};
use crate::index::write_set::pending::Pending;
use crate::lsh::BandKey;
use crate::model::{ArticleId, Lang};

/// A filter of so few keys is never made anew.
const FEW: usize = if cfg!(test) { 1 << 10 } else { 1 << 23 };

/// A scan that failed is started again after this long, then after twice as long, up to [`LONGEST`].
const FIRST: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 10 });
const LONGEST: Duration = Duration::from_secs(600);

#[derive(Default)]
pub(crate) struct MembershipFilter(RwLock<State>);

#[derive(Default)]
struct State {
    complete: Option<Filters>,
    /// Collects what is applied while a scan is under way.
    next: Option<Filters>,
    /// The last scan failed: when to try again, and how long to wait after that.
    retry: Option<(Instant, Duration)>,
}

struct Filters {
    there: Filter,
    /// Buckets that a second document may have been put in.
    several: Filter,
}

impl Filters {
    fn new(room: usize) -> Filters {
        Filters { there: Filter::new(room), several: Filter::new(0) }
    }

    /// An id, or a cluster.
    fn insert(&mut self, hash: u64) {
        if !self.there.contains(hash) {
            self.there.insert(hash);
        }
    }

    fn insert_bucket(&mut self, hash: u64) {
        if !self.there.contains(hash) {
            self.there.insert(hash);
        } else {
            self.insert_several(hash);
        }
    }

    fn insert_several(&mut self, hash: u64) {
        if !self.several.contains(hash) {
            self.several.insert(hash);
        }
    }

    fn join(&mut self, other: Filters) {
        self.there.join(other.there);
        self.several.join(other.several);
    }
}

impl MembershipFilter {
    /// Of each bucket, whether at most one document is in it; nothing where there is none. Any may hold several while
    /// that is not known.
    pub(crate) fn singles(&self, language: Lang, keys: &[BandKey]) -> Vec<Option<bool>> {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(filters) = &state.complete else { return vec![Some(false); keys.len()] };
        let hashes: Vec<u64> = keys.iter().map(|&key| of_bucket(language, key)).collect();
        let there = filters.there.contains_each(&hashes);
        let single = |(there, &hash): (bool, &u64)| there.then(|| !filters.several.contains(hash));
        there.into_iter().zip(&hashes).map(single).collect()
    }

    /// Whether an id may be known.
    pub(crate) fn may_know(&self, id: &ArticleId) -> bool {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let hash = of_id(id.as_str().as_bytes());
        state.complete.as_ref().is_none_or(|filters| filters.there.contains(hash))
    }

    /// Whether a row of `clusters` may be there.
    pub(crate) fn may_cluster(&self, key: &[u8]) -> bool {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        state.complete.as_ref().is_none_or(|filters| filters.there.contains(of_cluster(key)))
    }

    /// Takes note of what is about to be written.
    pub(crate) fn insert(&self, pending: &Pending) {
        let buckets = pending
            .bands
            .iter()
            .flat_map(|(&language, bands)| bands.buckets().map(move |key| of_bucket(language, key)));
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
        for hash in buckets {
            if let Some(complete) = complete {
                complete.insert_bucket(hash);
            }
            if let Some(next) = next {
                // Whether the scan will find another there is not known.
                next.insert(hash);
                next.insert_several(hash);
            }
        }
        for hash in ids.chain(residences).chain(clusters) {
            complete.iter_mut().chain(next.iter_mut()).for_each(|filters| filters.insert(hash));
        }
    }

    /// Whether most of what was put in has gone since: with a retention the filter would grow for ever.
    pub(crate) fn is_stale(&self, opened: &Opened) -> bool {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let keys = state.complete.as_ref().map_or(0, |filters| filters.there.keys());
        state.next.is_none() && keys > FEW && keys > 3 * opened.postings_estimate()
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
        state.complete.as_ref().map(|filters| filters.there.keys())
    }

    /// From now on everything applied is collected beside what a scan will find.
    fn begin(&self) {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        state.next = Some(Filters::new(0));
    }

    fn finish(&self, scanned: Option<Filters>) {
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
            Ok(filters) => reader.0.sieve.finish(filters),
            Err(error) => reader.0.sieve.fail(&reader.0.place, &error.to_string()),
        };
        let thread = std::thread::Builder::new().name("bucket-filter".into()).spawn(work);
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

/// All buckets, ids and clusters on disk and in memory; nothing if it was told to stop.
fn scan(reader: &RocksReader, stop: &AtomicBool) -> Result<Option<Filters>, StoreError> {
    let damage = |family: Family| StoreError::Corrupt {
        place: reader.0.place.clone(),
        detail: format!("a key of {} cannot be read", family.name()),
    };
    let mut filters = Filters::new(reader.0.postings_estimate() / 4 * 5);
    for language in reader.languages() {
        let (mut last, mut damaged) = (None, false);
        let family = Family::Bands(language);
        let scanned = reader.scan(family, &Span::all(), Order::Ascending, &mut |key, _| {
            let Ok((bucket, _)) = key::decode_posting(key) else {
                damaged = true;
                return ControlFlow::Break(());
            };
            if stop.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            let hash = of_bucket(language, bucket);
            match last.replace(bucket) == Some(bucket) {
                true => filters.insert_several(hash),
                false => filters.insert_bucket(hash),
            }
            ControlFlow::Continue(())
        });
        scanned?;
        if damaged {
            return Err(damage(family));
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    let mut damaged = false;
    for family in [Family::Ids, Family::Clusters] {
        let scanned = reader.scan(family, &Span::all(), Order::Ascending, &mut |key, _| {
            match family {
                Family::Ids => match key::decode_id(key) {
                    Ok(row) => filters.insert(of_id(row.id().as_str().as_bytes())),
                    Err(_) => damaged = true,
                },
                _ if key::is_cluster(key) => filters.insert(of_cluster(key)),
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
    Ok(Some(filters))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DocumentNumber;

    const KEY: BandKey = BandKey { band: 3, hash: 7 };

    fn posted(number: u64) -> Pending {
        let mut pending = Pending::default();
        pending.bands.entry(Lang::UND).or_default().note(KEY, DocumentNumber(number), true);
        pending
    }

    fn is_single(sieve: &MembershipFilter) -> Option<bool> {
        sieve.singles(Lang::UND, &[KEY])[0]
    }

    #[test]
    fn a_bucket_is_single_until_a_second_document_comes() {
        let sieve = MembershipFilter::default();
        assert_eq!(is_single(&sieve), Some(false), "nothing is known yet");
        sieve.begin();
        sieve.finish(Some(Filters::new(0)));
        assert_eq!(is_single(&sieve), None);
        sieve.insert(&posted(1));
        assert_eq!(is_single(&sieve), Some(true));
        sieve.insert(&posted(2));
        assert_eq!(is_single(&sieve), Some(false));
    }

    #[test]
    fn what_comes_during_a_scan_is_not_taken_for_all_there_is() {
        let sieve = MembershipFilter::default();
        sieve.begin();
        sieve.insert(&posted(2));
        let mut scanned = Filters::new(0);
        scanned.insert_bucket(of_bucket(Lang::UND, KEY));
        sieve.finish(Some(scanned));
        assert_eq!(is_single(&sieve), Some(false));
    }

    // A scan that could not read the store ended in silence: no filter, slow look-ups for as long as the process lived.
    // It is named in the log, and a later batch starts it again.
    #[test]
    fn a_scan_that_failed_is_started_again() {
        use crate::index::Store;
        use crate::index::rocksdb::maintenance::upkeep::tests::{document, empty_store};

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
