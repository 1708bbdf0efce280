//! Maintenance of a whole store: inspection and compaction for operators, and rebuilding its postings.
//!
//! The `state` commands and the restore from the changelog call it. Interrupted maintenance leaves a store
//! that says so when it is opened.

pub(crate) mod reband;
pub(crate) mod upkeep;
