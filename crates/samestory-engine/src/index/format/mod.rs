//! The byte format of the state: keys, values, and the header that records what a store was created with.
//!
//! [`key`], [`value`] and `segment` open with tables of their layouts. The changelog carries the same bytes, so a
//! document is encoded once. [`bytes`] reads and writes the primitives and never trusts a length.

pub mod bytes;
pub(crate) mod header;
pub mod key;
#[cfg(feature = "rocksdb")]
pub(crate) mod segment;
pub mod value;
