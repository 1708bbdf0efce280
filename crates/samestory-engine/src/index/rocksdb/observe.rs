//! Times the store's operations for whoever opened it. Nothing here influences an answer.

use std::time::{Duration, Instant};

use super::Opened;

crate::listed! {
/// What a store is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOperation {
    /// Fetch the posting lists, or the documents, that the articles of a batch look up in one language.
    Read,
    /// Write one batch of changes.
    Write,
    /// Flush the memtables to disk.
    Flush,
}
}

impl StoreOperation {
    /// The name for metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            StoreOperation::Read => "read",
            StoreOperation::Write => "write",
            StoreOperation::Flush => "flush",
        }
    }
}

/// Receives the duration of each operation, also of one that failed, on the thread that carried it out.
pub type StoreObserver = fn(StoreOperation, Duration);

impl Opened {
    /// Carries out an operation, and reports how long it took. Operations are batches, not single keys: reading the clock
    /// twice costs nothing beside them.
    pub(super) fn timed<T>(&self, operation: StoreOperation, work: impl FnOnce() -> T) -> T {
        let Some(observe) = self.options.observer else { return work() };
        let began = Instant::now();
        let done = work();
        observe(operation, began.elapsed());
        done
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::Rocks;
    use super::super::maintenance::upkeep::tests::{document, empty_store};
    use super::*;
    use crate::index::View;
    use crate::index::{Change, RocksOptions, Store};
    use crate::model::Lang;

    #[test]
    fn every_kind_of_operation_is_observed_once() {
        static SEEN: Mutex<Vec<StoreOperation>> = Mutex::new(Vec::new());
        let (store, directory) = empty_store("observed");
        let options = RocksOptions {
            observer: Some(|operation, _| SEEN.lock().unwrap().push(operation)),
            ..store.opened().options.clone()
        };
        drop(store);
        let mut store = Rocks::open(&directory, &options).unwrap();
        let seen = || std::mem::take(&mut *SEEN.lock().unwrap());
        assert_eq!(seen(), [], "opening is none of them");
        let Change::Document(one) = document(0) else { unreachable!() };
        let keys = store.postings().for_language(Lang::UND).keys(&one.fingerprint);
        let number = one.number;
        store.apply_own_changes(&[Change::Document(one)]).unwrap();
        // A write may look up what it replaces.
        assert_eq!(seen().last(), Some(&StoreOperation::Write));
        assert!(store.posting_lists(Lang::UND, &keys, 9).unwrap().get(0).is_some());
        assert_eq!(seen(), [StoreOperation::Read]);
        assert!(store.shared_documents(Lang::UND, &[number]).unwrap()[0].is_some());
        assert_eq!(seen(), [], "a document in the cache is not read");
        store.flush().unwrap();
        assert_eq!(seen(), [StoreOperation::Flush]);
        drop(store);
        drop(std::fs::remove_dir_all(&directory));
    }
}
