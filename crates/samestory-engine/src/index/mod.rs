//! The index: everything the engine remembers about earlier articles, namely documents, postings, clusters
//! and progress.
//!
//! A decision is a list of [`Change`]s. An [`Overlay`] stages them so that reads see them at once; they are
//! written to the changelog, and the [`Store`] applies them only with proof of commit ([`Committed`]). A
//! store therefore never holds anything that its changelog lacks, and can always be rebuilt from it.

mod check;
mod error;
pub mod format;
mod memory;
mod memory_shares;
mod read;
mod record;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod scheme;
pub mod write_set;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::Lang;

pub use check::{Verification, Verifying, cross_check, verify, verify_watched};
pub use error::StoreError;
pub use format::bytes::DecodeError;
pub use format::header::{Format, VERSION};
pub use format::key::{ChangeKey, Family, Overdue};
pub use memory::Memory;
pub use memory_shares::{MemoryShares, all_filter_bytes};
pub use read::rows::{Order, PostingList, PostingLists, Row, Span, Visit};
pub use read::view::View;
pub use record::{
    BuiltWith, BusPosition, Cluster, Counters, Document, DocumentSummary, FileBeginning, FilePath,
    FilePosition, FileProgress, Hosts, Judgement, OutputTopic, PairList, Progress, Residence, Retention,
    TopicIdentity, TopicName, Vote, Whereabouts,
};
#[cfg(feature = "rocksdb")]
pub use rocksdb::{
    BlockReads, Budget, Inspection, LanguageInspection, ReadLease, Rebanded, Registration, Rocks,
    RocksOptions, RocksReader, Snapshot, StoreObserver, StoreOperation, StoreRegistry, Watch, check_room,
    destroy,
};
pub use scheme::{IndexScheme, IndexSchemes, PostingKind, SimHashBands};
pub use write_set::change::Change;
pub use write_set::overlay::{Overlay, WriteSet};

/// Default memory budget, shared by all stores of a process.
pub const BUDGET_BYTES: usize = 512 << 20;

/// A writable index.
pub trait Store: View + Sized + Sync {
    /// Creates the column families of a language. Takes tens of milliseconds, once per language: call it
    /// between turns, so that a failure is found before anything is committed.
    ///
    /// # Errors
    /// The column families could not be created; nothing has changed.
    fn ensure_language(&mut self, language: Lang) -> Result<(), StoreError>;

    /// The only attestor of a store with [`Durability::Changelog`]: the first call gets it, every later one nothing.
    fn attestor(&mut self) -> Option<Attestor>;

    /// What restores the store after a crash, and the number that tells this opened store from every other.
    #[doc(hidden)]
    fn opened_with(&self) -> (Durability, u64);

    /// Writes a write set. Only this crate can make a [`Proven`].
    #[doc(hidden)]
    fn write(&mut self, write_set: WriteSet, proven: Proven) -> Result<(), StoreError>;

    /// Stages changes over the store, in order.
    ///
    /// # Errors
    /// The state could not be read. Close the store, open it again and replay.
    fn stage(&mut self, changes: &[Change]) -> Result<WriteSet, StoreError> {
        let mut overlay = Overlay::new(&*self);
        changes.iter().try_for_each(|change| overlay.stage(change))?;
        Ok(overlay.into_write_set())
    }

    /// Applies a write set that was staged over this store, all or nothing, and advances the store's changelog position to
    /// the one that the proof names.
    ///
    /// # Errors
    /// The proof is not for this store, or another write set was applied since this one was staged. After any other
    /// failure the store may be behind its changelog: close it, open it again and replay; do not read from it.
    fn apply(&mut self, write_set: WriteSet, proof: &Committed) -> Result<(), StoreError> {
        let (durability, opened) = self.opened_with();
        if proof.opened != opened {
            return Err(StoreError::Unproven { place: self.place().into(), log: durability.to_string() });
        }
        self.write(write_set, Proven { changelog_next: Some(proof.changelog_next) })
    }

    /// Stages and applies changes.
    ///
    /// # Errors
    /// As [`Store::stage`] and [`Store::apply`].
    fn apply_changes(&mut self, changes: &[Change], proof: &Committed) -> Result<(), StoreError> {
        let write_set = self.stage(changes)?;
        self.apply(write_set, proof)
    }

    /// Applies a write set to a store with [`Durability::OwnWal`], which needs no proof.
    ///
    /// # Errors
    /// The store follows a changelog. Otherwise as [`Store::apply`].
    fn apply_own(&mut self, write_set: WriteSet) -> Result<(), StoreError> {
        match self.opened_with().0 {
            Durability::OwnWal => self.write(write_set, Proven { changelog_next: None }),
            durability @ Durability::Changelog { .. } => {
                Err(StoreError::Unproven { place: self.place().into(), log: durability.to_string() })
            }
        }
    }

    /// Stages and applies changes to a store with [`Durability::OwnWal`].
    ///
    /// # Errors
    /// As [`Store::stage`] and [`Store::apply_own`].
    fn apply_own_changes(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let write_set = self.stage(changes)?;
        self.apply_own(write_set)
    }

    /// Makes everything applied so far survive a loss of power.
    ///
    /// # Errors
    /// The changes are not durable yet; react as for [`Store::apply_changes`].
    fn flush(&mut self) -> Result<(), StoreError>;
}

/// What makes a store whole again after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// This partition of the changelog: the store itself logs nothing.
    Changelog {
        /// The partition.
        partition: i32,
    },
    /// Nothing but itself: it keeps a log of its own.
    OwnWal,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Durability::Changelog { partition } => write!(f, "changelog partition {partition}"),
            Durability::OwnWal => f.write_str("a log of its own"),
        }
    }
}

/// Attests that the changelog holds a write set, so that the store may follow.
///
/// A store that opens with [`Durability::Changelog`] hands out one ([`Store::attestor`]), and there is no other way to get
/// one. The code that commits transactions keeps it.
///
/// ```compile_fail
/// let forged = samestory_engine::index::Attestor { opened: 1 };
/// ```
///
/// ```compile_fail
/// fn copy(attestor: &samestory_engine::index::Attestor) -> samestory_engine::index::Attestor {
///     attestor.clone()
/// }
/// ```
#[derive(Debug)]
pub struct Attestor {
    opened: u64,
}

impl Attestor {
    /// The transaction is committed, or the records were read at `read_committed`. `changelog_next` is the offset after
    /// the last of them.
    pub fn attest(&self, changelog_next: u64) -> Committed {
        Committed { opened: self.opened, changelog_next }
    }
}

/// Proof that the changelog holds a write set. Only the [`Attestor`] of the store makes one:
///
/// ```compile_fail
/// let forged = samestory_engine::index::Committed { opened: 1, changelog_next: 0 };
/// ```
///
/// so applying without a commit does not compile, while this does:
///
/// ```
/// use samestory_engine::index::{Committed, Memory, Store, WriteSet};
/// fn follow(store: &mut Memory, write_set: WriteSet, proof: &Committed) {
///     store.apply(write_set, proof).unwrap();
/// }
/// ```
#[derive(Debug)]
pub struct Committed {
    opened: u64,
    changelog_next: u64,
}

/// A write that is allowed: its proof was checked.
///
/// ```compile_fail
/// let forged = samestory_engine::index::Proven { changelog_next: None };
/// ```
#[derive(Debug)]
pub struct Proven {
    changelog_next: Option<u64>,
}

/// What an opened store is told apart by, and whether its attestor has been handed out.
#[derive(Debug, Clone)]
struct Opening {
    number: u64,
    attestor_taken: bool,
}

impl Opening {
    fn new() -> Opening {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Opening { number: NEXT.fetch_add(1, Ordering::Relaxed), attestor_taken: false }
    }

    fn attestor(&mut self, durability: Durability) -> Option<Attestor> {
        let first = !std::mem::replace(&mut self.attestor_taken, true);
        let logged = matches!(durability, Durability::Changelog { .. });
        (first && logged).then_some(Attestor { opened: self.number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(durability: Durability) -> Memory {
        let posting = IndexScheme { minhash: None, simhash: SimHashBands::None, samples: 0, shortest: 0 };
        Memory::new(IndexSchemes::new(posting), durability)
    }

    #[test]
    fn only_its_own_attestor_proves_a_commit_to_a_store() {
        let (mut third, mut fifth) =
            (memory(Durability::Changelog { partition: 3 }), memory(Durability::Changelog { partition: 5 }));
        let elsewhere = fifth.attestor().unwrap().attest(17);
        let refusal = third.apply_changes(&[], &elsewhere).unwrap_err().to_string();
        assert!(refusal.contains("changelog partition 3"), "{refusal}");
        assert!(third.apply_own_changes(&[]).is_err());
        assert!(memory(Durability::OwnWal).apply_changes(&[], &elsewhere).is_err());
        assert!(memory(Durability::OwnWal).apply_own_changes(&[]).is_ok());
        let attestor = third.attestor().unwrap();
        third.apply_changes(&[], &attestor.attest(91)).unwrap();
        assert_eq!(third.changelog_next(), Ok(Some(91)));
    }

    #[test]
    fn a_store_hands_out_one_attestor_and_only_where_it_follows_a_changelog() {
        let mut logged = memory(Durability::Changelog { partition: 0 });
        assert!(logged.attestor().is_some());
        assert!(logged.attestor().is_none());
        assert!(memory(Durability::OwnWal).attestor().is_none());
    }
}
