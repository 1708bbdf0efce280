//! What is kept in memory beside RocksDB's own block cache: documents read lately, hot buckets, and a membership filter.
//!
//! A cache holds what the store holds, or nothing. It never shows in a verdict.

pub(crate) mod blocks;
pub(crate) mod bloom;
pub(crate) mod documents;
pub(crate) mod hot_buckets;
pub(crate) mod membership;
#[cfg(test)]
mod stale_tests;
