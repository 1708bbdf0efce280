//! Kafka tools beside the stage: [`probe`], [`produce`], [`follow`] and [`reconcile`] serve
//! commands, `scan` reads topics for them, and `replay` serves tests. None
//! of them joins a consumer group or takes part in the exactly-once guarantee.

pub mod clusters;
pub mod dead_letters;
pub mod drain;
pub mod erase;
pub mod follow;
pub mod probe;
pub mod produce;
pub mod reconcile;
#[doc(hidden)]
pub mod replay;
pub mod route_model;
pub mod scan;
