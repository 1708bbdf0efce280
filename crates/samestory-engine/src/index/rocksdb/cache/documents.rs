//! Caches of recently used documents, decoded and ready to be compared, and of the canonicals of clusters.
//!
//! [`crate::index::rocksdb::read`] uses them: a phrase that many articles share leads each of them to the
//! newest others. An entry equals what the store holds: a write replaces it, and a value that was read before
//! a write is not cached after it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::generations::Generations;
use crate::index::rocksdb::budget::Room;
use crate::model::{DocumentNumber, Lang};

/// A decoded document takes about a kilobyte, and the canonical of its cluster fifty bytes.
pub(crate) const ENTRY_BYTES: usize = 1100;

type Key = (Lang, DocumentNumber);

pub(crate) struct DocumentCache<V>(Mutex<State<V>>);

struct State<V> {
    /// Capacity of each generation.
    room: Room,
    entries: Generations<Key, V>,
    /// Number of writes to the store.
    version: u64,
}

impl<V: Clone> State<V> {
    fn insert(&mut self, key: Key, value: V) {
        self.entries.insert(key, value, self.room.each());
    }

    fn get(&mut self, key: Key) -> Option<V> {
        self.entries.get(key, self.room.each())
    }
}

impl<V: Clone> DocumentCache<V> {
    /// A cache with this capacity.
    pub(in crate::index::rocksdb) fn new(room: Room) -> DocumentCache<V> {
        DocumentCache(Mutex::new(State { room, entries: Generations::default(), version: 0 }))
    }

    /// The current capacity of each generation.
    pub(crate) fn room(&self) -> usize {
        self.state().room.each()
    }

    fn state(&self) -> MutexGuard<'_, State<V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cached documents, and the version to pass to `keep` with the others.
    pub(crate) fn get(&self, language: Lang, numbers: &[DocumentNumber]) -> (Vec<Option<V>>, u64) {
        let mut state = self.state();
        let found = numbers.iter().map(|&number| state.get((language, number))).collect();
        (found, state.version)
    }

    /// Removes cached documents from `numbers`, and returns the version to pass to `keep` with the others.
    pub(crate) fn missing(&self, language: Lang, numbers: &mut Vec<DocumentNumber>) -> u64 {
        let mut state = self.state();
        numbers.retain(|&number| state.get((language, number)).is_none());
        state.version
    }

    /// Caches documents that were read from the store, unless the store has been written to since.
    pub(crate) fn keep(&self, language: Lang, read: impl Iterator<Item = (DocumentNumber, V)>, version: u64) {
        let mut state = self.state();
        if state.version == version {
            read.for_each(|(number, value)| state.insert((language, number), value));
        }
    }

    /// Updates the cache after a write; `None` for a removed document.
    pub(crate) fn written(&self, rows: impl Iterator<Item = (Key, Option<V>)>) {
        let mut state = self.state();
        state.version += 1;
        for (key, value) in rows {
            state.entries.remove(key);
            if let Some(value) = value {
                state.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 64;

    fn number(n: u64) -> DocumentNumber {
        DocumentNumber(n)
    }

    fn get(recent: &DocumentCache<u32>, n: u64) -> Option<u32> {
        recent.get(Lang::UND, &[number(n)]).0[0]
    }

    fn keep(recent: &DocumentCache<u32>, n: u64, value: u32) {
        let (_, version) = recent.get(Lang::UND, &[]);
        recent.keep(Lang::UND, [(number(n), value)].into_iter(), version);
    }

    fn write(recent: &DocumentCache<u32>, n: u64, value: Option<u32>) {
        recent.written([((Lang::UND, number(n)), value)].into_iter());
    }

    /// Moves earlier entries into the older generation.
    fn age(recent: &DocumentCache<u32>) {
        (100..100 + ROOM as u64).for_each(|n| keep(recent, n, 0));
    }

    #[test]
    fn what_is_written_takes_the_place_of_what_was_there() {
        for aged in [false, true] {
            let recent = DocumentCache::new(Room::of_one(ROOM));
            keep(&recent, 1, 10);
            if aged {
                age(&recent);
            }
            write(&recent, 1, Some(11));
            assert_eq!(get(&recent, 1), Some(11));
            age(&recent);
            assert_eq!(get(&recent, 1), Some(11));
        }
    }

    #[test]
    fn what_is_gone_is_not_found_in_either_generation() {
        for aged in [false, true] {
            let recent = DocumentCache::new(Room::of_one(ROOM));
            keep(&recent, 1, 10);
            if aged {
                age(&recent);
            }
            write(&recent, 1, None);
            assert_eq!(get(&recent, 1), None, "aged: {aged}");
        }
    }

    #[test]
    fn what_was_read_before_a_write_is_not_kept_after_it() {
        let recent = DocumentCache::new(Room::of_one(ROOM));
        let (_, read_at) = recent.get(Lang::UND, &[number(1)]);
        let missing_at = recent.missing(Lang::UND, &mut vec![number(1)]);
        write(&recent, 1, None);
        for version in [read_at, missing_at] {
            recent.keep(Lang::UND, [(number(1), 10)].into_iter(), version);
            assert_eq!(get(&recent, 1), None);
        }
        keep(&recent, 1, 11);
        assert_eq!(get(&recent, 1), Some(11));
    }

    #[test]
    fn it_holds_two_generations_and_no_more() {
        let recent = DocumentCache::new(Room::of_one(ROOM));
        (0..500).for_each(|n| keep(&recent, n, 0));
        let held = (0..500).filter(|&n| get(&recent, n).is_some()).count();
        assert!((1..2 * ROOM).contains(&held), "{held}");
    }
}
