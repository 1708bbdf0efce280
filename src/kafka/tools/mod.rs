//! Kafka tools beside the stage: [`probe`], [`produce`] and [`follow`] serve commands, and `replay` serves tests. None
//! of them joins a consumer group or takes part in the exactly-once guarantee.

pub mod follow;
pub mod probe;
pub mod produce;
#[doc(hidden)]
pub mod replay;
pub mod route_model;
