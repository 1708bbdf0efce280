//! The cluster around the stage: topics, limits, schemas and what the changelog records, checked before anything is read.

pub mod control;
pub(crate) mod ids;
pub(crate) mod limits;
pub(crate) mod preflight;
pub(crate) mod purge;
pub mod topics;
pub(crate) mod values;
mod wanted;
