//! The store registry: lets query threads read the stores that the workers of this process write.
//!
//! A worker registers its store and withdraws it by dropping the [`Registration`]; a query holds a
//! [`ReadLease`] while it runs. Withdrawing never waits long: from then on no new lease includes the store,
//! and existing leases fail at their next read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::snapshot::Snapshot;
use super::{Rocks, RocksReader};

/// How long withdrawing waits for a read in progress, for example on a disk that does not respond.
const PATIENCE: Duration = Duration::from_secs(2);

/// The readable stores of this process, by partition.
#[derive(Default)]
pub struct StoreRegistry(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// The total number of partitions of the deployment, once known.
    partition_count: Option<i32>,
    registered: BTreeMap<i32, Arc<Entry>>,
    /// Withdrawn, but possibly still being read.
    lingering: Vec<(i32, Weak<Entry>)>,
}

struct Entry {
    reader: RocksReader,
    withdrawn: AtomicBool,
}

/// A registered store. Dropping this withdraws it; drop it before the store.
#[must_use = "dropping this withdraws the store"]
pub struct Registration {
    registry: Arc<StoreRegistry>,
    partition: i32,
    entry: Arc<Entry>,
}

/// A lease on the stores that are readable now, held for the duration of a query.
pub struct ReadLease {
    stores: Vec<(i32, Arc<Entry>)>,
    partition_count: Option<i32>,
}

impl StoreRegistry {
    /// A registry of stores that no worker writes, which are all there are.
    pub fn from_stores(stores: Vec<RocksReader>) -> StoreRegistry {
        let entry = |reader| Arc::new(Entry { reader, withdrawn: AtomicBool::new(false) });
        let registered: BTreeMap<i32, Arc<Entry>> = (0..).zip(stores.into_iter().map(entry)).collect();
        let partition_count = i32::try_from(registered.len()).ok();
        StoreRegistry(Mutex::new(Inner { partition_count, registered, lingering: Vec::new() }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the total number of partitions, here and in other processes.
    pub fn set_partition_count(&self, partitions: i32) {
        self.inner().partition_count = Some(partitions);
    }

    /// Registers a store until the returned [`Registration`] is dropped.
    pub fn register(self: &Arc<StoreRegistry>, partition: i32, store: &Rocks) -> Registration {
        let entry = Arc::new(Entry { reader: store.reader(), withdrawn: AtomicBool::new(false) });
        self.inner().registered.insert(partition, Arc::clone(&entry));
        Registration { registry: Arc::clone(self), partition, entry }
    }

    /// Leases all stores that are readable now.
    pub fn lease(&self) -> ReadLease {
        let inner = self.inner();
        let stores = inner.registered.iter().map(|(&partition, entry)| (partition, Arc::clone(entry)));
        ReadLease { stores: stores.collect(), partition_count: inner.partition_count }
    }

    /// True if a query still reads a withdrawn store of this partition: its files are in use and must stay in
    /// place.
    pub fn is_read(&self, partition: i32) -> bool {
        let mut inner = self.inner();
        inner.lingering.retain(|(_, entry)| entry.strong_count() > 0);
        inner.lingering.iter().any(|&(other, _)| other == partition)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.entry.withdrawn.store(true, Ordering::Relaxed);
        let mut inner = self.registry.inner();
        // A new owner may have registered the partition again already.
        if inner.registered.get(&self.partition).is_some_and(|entry| Arc::ptr_eq(entry, &self.entry)) {
            inner.registered.remove(&self.partition);
        }
        drop(inner);
        let deadline = Instant::now() + PATIENCE;
        while Arc::strong_count(&self.entry) > 1 {
            if Instant::now() > deadline {
                let entry = Arc::downgrade(&self.entry);
                self.registry.inner().lingering.push((self.partition, entry));
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl ReadLease {
    /// Snapshots of the stores as they are now.
    pub fn snapshots(&self) -> Vec<Snapshot<'_>> {
        self.stores.iter().map(|(_, entry)| entry.reader.snapshot(&entry.withdrawn)).collect()
    }

    /// The partitions of the leased stores, ascending.
    pub fn partitions(&self) -> Vec<i32> {
        self.stores.iter().map(|&(partition, _)| partition).collect()
    }

    /// The total number of partitions of the deployment, once known.
    pub fn partition_count(&self) -> Option<i32> {
        self.partition_count
    }

    /// True if one of the stores has been withdrawn meanwhile, so that reading it fails.
    pub fn is_withdrawn(&self) -> bool {
        self.stores.iter().any(|(_, entry)| entry.withdrawn.load(Ordering::Relaxed))
    }
}
