//! Work on a whole store: compaction and inspection for operators, and rebuilding its postings.

pub(crate) mod reband;
pub(crate) mod upkeep;
