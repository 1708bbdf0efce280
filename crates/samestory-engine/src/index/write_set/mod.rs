//! Pending writes: changes staged over the committed state, and the write set that a store applies.
//!
//! A [`change`] carries the complete value of its key. The `overlay` stages changes over a store, so that
//! reads see them at once; the store itself applies them only with proof of commit.

pub mod change;
pub(crate) mod overlay;
pub(crate) mod pending;
pub(crate) mod staged_postings;
