//! The bytes of the state: keys, values, and the header that says what a store was made with.
//!
//! [`key`] and [`value`] open with tables of their layouts. The changelog carries the same bytes, so that a document is
//! encoded once. [`bytes`] reads and writes the pieces and never trusts a length.

pub mod bytes;
pub(crate) mod header;
pub mod key;
pub mod value;
