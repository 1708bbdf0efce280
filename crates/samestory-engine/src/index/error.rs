//! Errors of a store. Each variant is named after the reaction that it needs.
//!
//! The worker, the file run and the `state` commands match on these variants to decide between stopping,
//! retrying, reopening and rebuilding. Bad input data never becomes a [`StoreError`]; it becomes a dead
//! letter.

use super::format::bytes::DecodeError;

/// Why a store cannot continue. `place` is its directory, or `memory`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The stored data cannot be trusted: quarantine the directory and rebuild the state from the changelog.
    #[error(
        "state {place} is damaged: {detail}; run `samestory state verify` to list the damage and what to do"
    )]
    Corrupt {
        /// Which store.
        place: String,
        /// The damage.
        detail: String,
    },
    /// Created with other settings or by another version: refuse to start. Nothing was modified.
    #[error("state {place} was created with {what} {found}, but {expected} is expected; {remedy}")]
    Foreign {
        /// Which store.
        place: String,
        /// The property that differs.
        what: &'static str,
        /// As stored.
        found: String,
        /// As configured.
        expected: String,
        /// How to resolve the mismatch.
        remedy: &'static str,
    },
    /// Created with other bands: rebuild the bands, or refuse to start. Nothing was modified.
    #[error(
        "state {place} was created with bands ({found}), but ({expected}) are configured; run `samestory state rebuild` to rebuild them from the stored fingerprints"
    )]
    OtherBands {
        /// Which store.
        place: String,
        /// As stored.
        found: String,
        /// As configured.
        expected: String,
    },
    /// Built from another topic of the same name, or in another cluster: quarantine it and rebuild from the
    /// changelog.
    #[error(
        "state {place} was built from a changelog with {found}, but the topic of that name now has {expected}: the topic was deleted and created again, or this is another cluster"
    )]
    OtherChangelog {
        /// Which store.
        place: String,
        /// The topic that it was built from.
        found: String,
        /// The topic that exists now.
        expected: String,
    },
    /// Another process has it open: wait for that process, or choose another directory.
    #[error("state {place} is in use by another process; stop that process or choose another directory")]
    InUse {
        /// Which store.
        place: String,
    },
    /// The disk is full: stop, and reopen the store once there is space. Nothing that was applied is lost.
    #[error(
        "no space left for state {place}: {detail}; free some space: `samestory run` then resumes by itself, a file run when it is repeated; nothing applied is lost"
    )]
    Full {
        /// Which store.
        place: String,
        /// The underlying error.
        detail: String,
    },
    /// Background work of the store is late or was interrupted: close the store, reopen it and replay.
    /// Nothing that was applied is lost.
    #[error("state {place} is stalled: {detail}; closing and reopening it, nothing applied is lost")]
    Stalled {
        /// Which store.
        place: String,
        /// The underlying error.
        detail: String,
    },
    /// The disk or the operating system fails in a way that may be temporary (EIO, too many open files, no
    /// thread): close the store, reopen it after a while and replay; give up in the end. Nothing that was
    /// applied is lost.
    #[error("state {place} is temporarily unavailable: {detail}")]
    Failing {
        /// Which store.
        place: String,
        /// The underlying error.
        detail: String,
    },
    /// The directory cannot be used: report it to the operator. Its contents are unchanged.
    #[error("state {place} cannot be used: {detail}")]
    Unusable {
        /// Which store.
        place: String,
        /// The underlying error.
        detail: String,
    },
    /// A change was about to be applied that the log does not hold yet: a bug in the program. Stop.
    #[error("state {place}: the commit does not cover {log}, so nothing can be applied")]
    Unproven {
        /// Which store.
        place: String,
        /// The log that the commit should have covered.
        log: String,
    },
    /// The store changed after the write set was computed: a bug in the program. Stop.
    #[error("state {place} has changed since the write set was computed")]
    Outdated {
        /// Which store.
        place: String,
    },
}

impl StoreError {
    /// A row whose bytes cannot be decoded.
    pub(super) fn damaged(place: &str, row: &str, error: &DecodeError) -> StoreError {
        StoreError::Corrupt { place: place.into(), detail: format!("{row}: {error}") }
    }
}
