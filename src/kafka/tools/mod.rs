//! Kafka tools beside the stage: [`probe`], [`produce`], [`follow`] and [`webhook`] serve commands, and `replay` serves tests.
//! None of them takes part in the exactly-once guarantee, and only `webhook` joins a consumer group, one of its own.

pub mod follow;
pub mod probe;
pub mod produce;
#[doc(hidden)]
pub mod replay;
pub mod route_model;
pub mod webhook;
