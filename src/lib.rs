//! The product: the engine of `samestory-engine` on files and on a Kafka bus.

pub use samestory_compat as compat;
pub use samestory_eval as eval;

pub mod config;
pub mod files;
pub mod formats;
#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(feature = "http")]
pub mod metrics;
pub mod report;
#[cfg(feature = "http")]
pub mod serve;
pub mod status;
#[cfg(test)]
mod temporary;
pub mod terminal;
