//! Documents read or written lately, ready to be compared: a phrase that many articles have leads every one of them to
//! the newest of the others.
//!
//! It holds what the store holds, or nothing. A document that is written takes the place of what was here, and what was
//! read from the store before that write is not put here after it.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::{DocumentNumber, Lang};
use crate::store::bands::Spread;
use crate::store::pending::Pending;
use crate::store::record::Document;

/// Documents in each of the two generations; a document takes about a kilobyte.
pub(super) const GENERATION: usize = 1 << 13;

type Generation = HashMap<(Lang, DocumentNumber), Arc<Document>, BuildHasherDefault<Spread>>;

#[derive(Default)]
pub(super) struct Recent(Mutex<State>);

#[derive(Default)]
struct State {
    /// Used since the generations changed last.
    young: Generation,
    /// Used before that; gone at the next change.
    old: Generation,
    /// How often the store was written to.
    version: u64,
}

impl State {
    fn insert(&mut self, key: (Lang, DocumentNumber), document: Arc<Document>) {
        self.young.insert(key, document);
        if self.young.len() >= GENERATION {
            self.old = mem::take(&mut self.young);
        }
    }

    fn get(&mut self, key: (Lang, DocumentNumber)) -> Option<Arc<Document>> {
        if let Some(document) = self.young.get(&key) {
            return Some(Arc::clone(document));
        }
        let document = self.old.remove(&key)?;
        self.insert(key, Arc::clone(&document));
        Some(document)
    }
}

impl Recent {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are here, and the version to give back with those that are not.
    pub(super) fn get(
        &self,
        language: Lang,
        numbers: &[DocumentNumber],
    ) -> (Vec<Option<Arc<Document>>>, u64) {
        let mut state = self.state();
        let found = numbers.iter().map(|&number| state.get((language, number))).collect();
        (found, state.version)
    }

    /// Those that are not here, and the version to give back with them. Those that are here stay.
    pub(super) fn missing(&self, language: Lang, numbers: &mut Vec<DocumentNumber>) -> u64 {
        let mut state = self.state();
        numbers.retain(|&number| state.get((language, number)).is_none());
        state.version
    }

    /// Keeps documents that were read from the store, unless it has been written to since.
    pub(super) fn keep<'a>(
        &self,
        language: Lang,
        documents: impl Iterator<Item = &'a Arc<Document>>,
        version: u64,
    ) {
        let mut state = self.state();
        if state.version == version {
            documents.for_each(|document| state.insert((language, document.number), Arc::clone(document)));
        }
    }

    /// Takes note of what has been written.
    pub(super) fn written(&self, pending: &Pending) {
        let mut state = self.state();
        state.version += 1;
        for (&language, documents) in &pending.documents {
            for (&number, document) in documents {
                let key = (language, number);
                state.old.remove(&key);
                match document {
                    Some(document) => state.insert(key, Arc::clone(document)),
                    None => drop(state.young.remove(&key)),
                }
            }
        }
    }
}
