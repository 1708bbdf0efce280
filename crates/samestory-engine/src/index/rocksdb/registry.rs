//! The stores that a process works on, shown to those who ask. A worker shows a store and takes it back; who asks holds
//! it for the time of a question.
//!
//! Taking back never waits long: from then on nobody new gets the store, and those who have it fail at their next read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::snapshot::Snapshot;
use super::{Rocks, RocksReader};

/// How long taking back waits for a read that is under way: that of a disk which does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The stores that can be asked, by partition.
#[derive(Default)]
pub struct StoreRegistry(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// How many partitions there are anywhere, once that is known.
    of: Option<i32>,
    shown: BTreeMap<i32, Arc<Entry>>,
    /// Taken back, and perhaps read from all the same.
    lingering: Vec<(i32, Weak<Entry>)>,
}

struct Entry {
    reader: RocksReader,
    withdrawn: AtomicBool,
}

/// A store that is shown. Taken back when it is dropped; drop it before the store.
#[must_use = "the store is taken back when this is dropped"]
pub struct Registration {
    shelf: Arc<StoreRegistry>,
    partition: i32,
    entry: Arc<Entry>,
}

/// The stores that can be asked now; held for the time of a question.
pub struct ReadLease {
    stores: Vec<(i32, Arc<Entry>)>,
    of: Option<i32>,
}

impl StoreRegistry {
    /// Stores that nobody works on: all there are.
    pub fn of(stores: Vec<RocksReader>) -> StoreRegistry {
        let entry = |reader| Arc::new(Entry { reader, withdrawn: AtomicBool::new(false) });
        let shown: BTreeMap<i32, Arc<Entry>> = (0..).zip(stores.into_iter().map(entry)).collect();
        let of = i32::try_from(shown.len()).ok();
        StoreRegistry(Mutex::new(Inner { of, shown, lingering: Vec::new() }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says how many partitions there are, here and elsewhere.
    pub fn holds_some_of(&self, partitions: i32) {
        self.inner().of = Some(partitions);
    }

    /// Shows a store, until what is given back is dropped.
    pub fn show(self: &Arc<StoreRegistry>, partition: i32, store: &Rocks) -> Registration {
        let entry = Arc::new(Entry { reader: store.reader(), withdrawn: AtomicBool::new(false) });
        self.inner().shown.insert(partition, Arc::clone(&entry));
        Registration { shelf: Arc::clone(self), partition, entry }
    }

    /// All that can be asked now.
    pub fn borrow(&self) -> ReadLease {
        let inner = self.inner();
        let stores = inner.shown.iter().map(|(&partition, entry)| (partition, Arc::clone(entry)));
        ReadLease { stores: stores.collect(), of: inner.of }
    }

    /// Whether somebody still reads from a store of this partition that was taken back: its files are in use, and must
    /// stay where they are.
    pub fn is_read(&self, partition: i32) -> bool {
        let mut inner = self.inner();
        inner.lingering.retain(|(_, entry)| entry.strong_count() > 0);
        inner.lingering.iter().any(|&(other, _)| other == partition)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.entry.withdrawn.store(true, Ordering::Relaxed);
        let mut inner = self.shelf.inner();
        // A new owner may have shown it again already.
        if inner.shown.get(&self.partition).is_some_and(|entry| Arc::ptr_eq(entry, &self.entry)) {
            inner.shown.remove(&self.partition);
        }
        drop(inner);
        let deadline = Instant::now() + PATIENCE;
        while Arc::strong_count(&self.entry) > 1 {
            if Instant::now() > deadline {
                let entry = Arc::downgrade(&self.entry);
                self.shelf.inner().lingering.push((self.partition, entry));
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl ReadLease {
    /// The stores as they are now.
    pub fn snapshots(&self) -> Vec<Snapshot<'_>> {
        self.stores.iter().map(|(_, entry)| entry.reader.snapshot(&entry.withdrawn)).collect()
    }

    /// Their partitions, ascending.
    pub fn partitions(&self) -> Vec<i32> {
        self.stores.iter().map(|&(partition, _)| partition).collect()
    }

    /// How many partitions there are anywhere, once that is known.
    pub fn of(&self) -> Option<i32> {
        self.of
    }

    /// Whether one of them has been taken back meanwhile, so that reading it fails.
    pub fn is_withdrawn(&self) -> bool {
        self.stores.iter().any(|(_, entry)| entry.withdrawn.load(Ordering::Relaxed))
    }
}
