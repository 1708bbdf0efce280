//! One test binary; a line of comment per module.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

/// Random histories of state, and the oracle for them.
mod history;
/// State in RocksDB: the same as in memory, through crashes, damage and other settings.
#[cfg(feature = "rocksdb")]
mod laws_rocks;
/// State: applying, laying over, restoring and its bytes, over random histories.
mod laws_store;
