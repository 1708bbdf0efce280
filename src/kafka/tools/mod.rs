//! Commands beside the stage that join no group: probe, produce, follow, and the replay that tests compare with.

pub mod follow;
pub mod probe;
pub mod produce;
#[doc(hidden)]
pub mod replay;
