//! A map that forgets: entries that were not used for a while are evicted.
//!
//! [`super::documents`] and [`super::rows`] are made of it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash};
use std::mem;

use crate::index::write_set::staged_postings::Spread;

type Generation<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// Two generations of entries.
pub(crate) struct Generations<K, V> {
    /// Entries used since the generations were last rotated.
    young: Generation<K, V>,
    /// Entries used before that; evicted at the next rotation.
    old: Generation<K, V>,
}

impl<K, V> Default for Generations<K, V> {
    fn default() -> Generations<K, V> {
        Generations { young: HashMap::default(), old: HashMap::default() }
    }
}

impl<K: Copy + Eq + Hash, V: Clone> Generations<K, V> {
    /// Adds an entry; each generation has this capacity.
    pub(crate) fn insert(&mut self, key: K, value: V, capacity: usize) {
        self.young.insert(key, value);
        if self.young.len() >= capacity {
            self.old = mem::take(&mut self.young);
        }
    }

    pub(crate) fn get(&mut self, key: K, capacity: usize) -> Option<V> {
        if let Some(value) = self.young.get(&key) {
            return Some(value.clone());
        }
        let value = self.old.remove(&key)?;
        self.insert(key, value.clone(), capacity);
        Some(value)
    }

    pub(crate) fn remove(&mut self, key: K) {
        self.old.remove(&key);
        self.young.remove(&key);
    }
}
