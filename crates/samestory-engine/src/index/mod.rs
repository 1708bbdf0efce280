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
mod read;
mod record;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod scheme;
pub mod write_set;

use std::collections::BTreeMap;
use std::fmt;

use crate::model::Lang;

pub use check::{Verification, Verifying, cross_check, verify, verify_watched};
pub use error::StoreError;
pub use format::bytes::DecodeError;
pub use format::header::{Format, VERSION};
pub use format::key::{ChangeKey, Family, Overdue};
pub use memory::Memory;
pub use read::rows::{Order, PostingList, PostingLists, Rows, Span, Visit};
pub use read::view::{Row, View};
pub use record::{
    BusPosition, Cluster, Counters, Document, Hosts, Input, InputName, Judgement, OutputTopic, Progress,
    Residence, Retention, TopicIdentity, TopicName, Vote, Whereabouts,
};
#[cfg(feature = "rocksdb")]
pub use rocksdb::{
    Blocks, Budget, HotBuckets, Inspection, LanguageInspection, ReadLease, Rebanded, Registration, Rocks,
    RocksOptions, RocksReader, Snapshot, StoreRegistry, Watch, check_room, destroy,
};
pub use scheme::{IndexScheme, IndexSchemes, PostingKind, SimHashBands};
pub use write_set::change::Change;
pub use write_set::overlay::{Overlay, WriteSet};

/// Default memory budget for the block cache and the memtables, shared by all stores of a process.
pub const BUDGET_BYTES: usize = 256 << 20;

/// A writable index.
pub trait Store: View + Sized + Sync {
    /// Creates the column families of a language. Takes tens of milliseconds, once per language: call it
    /// between turns, so that a failure is found before anything is committed.
    ///
    /// # Errors
    /// The column families could not be created; nothing has changed.
    fn ensure_language(&mut self, language: Lang) -> Result<(), StoreError>;

    /// Applies changes in order, all or none, together with the place in the changelog that the proof names.
    ///
    /// # Errors
    /// The store may be behind its log now. Close it, open it again and replay; do not read from it.
    fn apply_changes(&mut self, changes: &[Change], proof: &Committed) -> Result<(), StoreError> {
        let mut overlay = Overlay::new(&*self);
        changes.iter().try_for_each(|change| overlay.lay(change))?;
        let write_set = overlay.into_write_set();
        self.apply(write_set, proof)
    }

    /// Applies what was laid over this store and not applied yet: the same as [`Store::apply_changes`] with the changes
    /// that were laid, without working them out again.
    ///
    /// # Errors
    /// As [`Store::apply_changes`]; and if anything else was applied in between.
    fn apply(&mut self, write_set: WriteSet, proof: &Committed) -> Result<(), StoreError>;

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

/// Proof that changes are safe elsewhere, so that they may be applied here.
///
/// Only who has committed can make one: the transaction, the restore from the log, and the file run once its output
/// is safe. Applying without does not compile:
///
/// ```compile_fail
/// use samestory::store::{Committed, Memory, Store};
/// fn careless(store: &mut Memory) {
///     store.apply_changes(&[], &Committed::attest(Default::default())).unwrap();
/// }
/// ```
///
/// while this does:
///
/// ```
/// use samestory::store::{Committed, Memory, Store};
/// fn careful(store: &mut Memory, proof: &Committed) {
///     store.apply_changes(&[], proof).unwrap();
/// }
/// ```
#[derive(Debug)]
pub struct Committed(Proof);

#[derive(Debug)]
enum Proof {
    /// By partition, where its changelog goes on.
    Changelog(BTreeMap<i32, u64>),
    Output,
    Rehearsal,
}

impl Committed {
    /// Says that a transaction is committed, or that records were read with `read_committed`; with the offset at
    /// which each partition's changelog goes on.
    #[allow(dead_code, reason = "its callers live behind a feature")]
    pub fn attest(changelog_ends: BTreeMap<i32, u64>) -> Committed {
        Committed(Proof::Changelog(changelog_ends))
    }

    /// Says that the output of a file run is as safe as it will be.
    #[allow(dead_code, reason = "called by the file run")]
    pub fn attest_output() -> Committed {
        Committed(Proof::Output)
    }

    /// For tests and benchmarks, which have nothing to lose. The program itself never calls it.
    #[doc(hidden)]
    pub fn rehearsal() -> Committed {
        Committed(Proof::Rehearsal)
    }

    /// Where the changelog goes on, if there is one.
    fn covers(&self, ahead: Durability, place: &str) -> Result<Option<u64>, StoreError> {
        let unproven = || StoreError::Unproven { place: place.into(), log: ahead.to_string() };
        match (&self.0, ahead) {
            (Proof::Changelog(ends), Durability::Changelog { partition }) => {
                ends.get(&partition).copied().map(Some).ok_or_else(unproven)
            }
            (Proof::Output, Durability::OwnWal) | (Proof::Rehearsal, _) => Ok(None),
            _ => Err(unproven()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(ahead: Durability) -> Memory {
        let posting = IndexScheme { minhash: None, simhash: SimHashBands::None, samples: 0, shortest: 0 };
        Memory::new(IndexSchemes::new(posting), ahead)
    }

    #[test]
    fn a_commit_elsewhere_proves_nothing_here() {
        let mut third = memory(Durability::Changelog { partition: 3 });
        let elsewhere = Committed::attest(BTreeMap::from([(5, 17)]));
        let refusal = third.apply_changes(&[], &elsewhere).unwrap_err().to_string();
        assert!(refusal.contains("changelog partition 3"), "{refusal}");
        assert!(third.apply_changes(&[], &Committed::attest_output()).is_err());
        assert!(memory(Durability::OwnWal).apply_changes(&[], &elsewhere).is_err());
        assert!(memory(Durability::OwnWal).apply_changes(&[], &Committed::attest_output()).is_ok());
        third.apply_changes(&[], &Committed::attest(BTreeMap::from([(3, 91)]))).unwrap();
        assert_eq!(third.changelog_next(), Ok(Some(91)));
    }
}
