//! Everything about the cluster that is not the turn itself. `wanted` says how topics must be, `topics` creates and
//! checks them, with the metadata of `survey` and the words of `problem`; `limits`, `values`, `preflight` and `ids` read limits, schemas, recorded settings and ids; `purge`
//! deletes routed records and `control` writes control records. The stage reads its first record only after the checks
//! have passed.

pub mod control;
pub(crate) mod ids;
pub(crate) mod limits;
pub mod notes;
pub(crate) mod preflight;
mod problem;
pub(crate) mod purge;
pub mod reset;
mod survey;
pub mod topics;
pub(crate) mod values;
mod wanted;
