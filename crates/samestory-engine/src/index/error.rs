//! Why a store cannot go on. Each variant is a reaction.

use super::format::bytes::DecodeError;

/// Why a store cannot go on. `place` is its directory, or `memory`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// What is stored cannot be trusted: set the directory aside and build it anew from the log.
    #[error(
        "state {place} is damaged: {detail}; `samestory state verify` names all that is and what can be done"
    )]
    Corrupt {
        /// Which store.
        place: String,
        /// What was found.
        detail: String,
    },
    /// Made with other settings or by another version: refuse to start, nothing was touched.
    #[error("state {place} was made with {what} {found}, but {expected} is asked for; {remedy}")]
    Foreign {
        /// Which store.
        place: String,
        /// What differs.
        what: &'static str,
        /// As stored.
        found: String,
        /// As asked for.
        expected: String,
        /// What resolves it.
        remedy: &'static str,
    },
    /// Made with other bands: re-band it, or refuse to start. Nothing was touched.
    #[error(
        "state {place} was made with bands ({found}), but ({expected}) are asked for; `samestory state rebuild` makes them anew from the stored fingerprints"
    )]
    OtherBands {
        /// Which store.
        place: String,
        /// As stored.
        found: String,
        /// As asked for.
        expected: String,
    },
    /// Made from another topic of the same name, or in another cluster: quarantine it and rebuild from the log.
    #[error(
        "state {place} was made from a changelog with {found}, but the changelog of that name has {expected}: the topic was deleted and created again, or this is another cluster"
    )]
    OtherChangelog {
        /// Which store.
        place: String,
        /// The topic that it was made from.
        found: String,
        /// The topic that is there now.
        expected: String,
    },
    /// Another process works on it: wait for that one, or choose another directory.
    #[error("state {place} is in use by another process; stop that one or choose another directory")]
    InUse {
        /// Which store.
        place: String,
    },
    /// The disk is full: stop, and open it again once there is space. Nothing that was applied is lost.
    #[error("no space left for state {place}: {detail}; free some and start again, nothing applied is lost")]
    Full {
        /// Which store.
        place: String,
        /// As reported.
        detail: String,
    },
    /// Background work of the store is late or was interrupted: close it, open it again and replay. Nothing that was applied
    /// is lost.
    #[error("state {place} is stalled: {detail}; it is closed and opened again, nothing applied is lost")]
    Stalled {
        /// Which store.
        place: String,
        /// As reported.
        detail: String,
    },
    /// The disk or the system fails in a way that may pass (EIO, too many open files, no thread): close it, open it again
    /// after a while and replay; give up in the end. Nothing that was applied is lost.
    #[error("state {place} cannot be used for now: {detail}")]
    Failing {
        /// Which store.
        place: String,
        /// As reported.
        detail: String,
    },
    /// The directory cannot be used: tell the operator. What it holds is as it was.
    #[error("state {place} cannot be used: {detail}")]
    Unusable {
        /// Which store.
        place: String,
        /// As reported.
        detail: String,
    },
    /// A change was to be applied that the log does not hold yet: a mistake in the program. Stop.
    #[error("state {place}: the commit says nothing about {log}, so nothing can be applied")]
    Unproven {
        /// Which store.
        place: String,
        /// The log that should have been committed to.
        log: String,
    },
    /// The store has changed since the changes were worked out: a mistake in the program. Stop.
    #[error("state {place} has changed since the changes to apply were worked out")]
    Outdated {
        /// Which store.
        place: String,
    },
}

impl StoreError {
    /// Bytes in the store that are not what the key says.
    pub(super) fn damaged(place: &str, row: &str, error: &DecodeError) -> StoreError {
        StoreError::Corrupt { place: place.into(), detail: format!("{row}: {error}") }
    }
}
