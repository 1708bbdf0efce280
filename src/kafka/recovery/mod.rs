//! How a partition changes hands: taking it over, restoring its state, and following an older generation.

pub(crate) mod finish;
pub mod generations;
pub(crate) mod leftovers;
pub(crate) mod restore;
pub(crate) mod takeover;
