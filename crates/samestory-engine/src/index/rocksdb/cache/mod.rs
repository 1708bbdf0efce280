//! Caches beside RocksDB's own block cache: recent documents, canonicals, rows of segments, and the
//! membership filter.
//!
//! [`super::read`] consults them and every write updates them. A cache entry equals what the store holds, or
//! is absent, so caches never affect a verdict.

pub(crate) mod blocks;
pub(crate) mod bloom;
pub(crate) mod documents;
pub(crate) mod generations;
pub(crate) mod membership;
pub(crate) mod rows;
