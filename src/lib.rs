//! samestory recognises articles whose *text* has been seen before: word for word, lightly edited, re-headlined,
//! truncated, or wrapped in another site's boilerplate.
//!
//! Data flows one way, and each arrow is one verb:
//!
//! ```text
//! Record ─decode→ Article ─shingles→ Shingles ─sketch→ Fingerprint ─keys→ BandKeys
//!        ─bucket→ Candidates ─judge→ Verdict ─plan→ Plan ─commit→ Committed ─apply→ Store
//! ```
//!
//! Left of `Plan` everything is a plain function of its inputs; right of it things happen. In flow order:
//!
//! - [`model`]: the nouns
//! - [`event`]: what comes in and what goes out
//! - [`text`]: markup → canonical text → language → shingles
//! - [`fingerprint`]: shingles → all that is kept of a text
//! - [`lsh`]: which fingerprints are looked at together
//! - [`store`]: state, and the changes to it
//! - [`detect`]: what one text is to another; verdicts
//! - [`config`]: settings as written → values as usable
//! - [`health`]: how the stage is doing, for those who ask
//! - [`schemas`]: the schemas of what comes in and goes out
//! - [`eval`]: how good the verdicts are
//! - [`compat`]: functions that other systems define, apart from the flow
#![cfg_attr(feature = "http", doc = "- [`metrics`]: what is counted; [`http`]: where it is asked for")]
#![cfg_attr(feature = "kafka", doc = "- [`stream`]: the stage on the bus")]

#[macro_use]
mod listed;

pub use samestory_compat as compat;

pub mod config;
pub mod detect;
pub mod eval;
pub mod event;
pub mod fingerprint;
pub mod health;
#[cfg(feature = "http")]
pub mod http;
pub mod local;
pub mod lsh;
#[cfg(feature = "http")]
pub mod metrics;
pub mod model;
#[cfg(feature = "registry")]
pub mod registry;
pub mod schemas;
pub mod store;
#[cfg(feature = "kafka")]
pub mod stream;
#[cfg(test)]
mod temporary;
pub mod terminal;
pub mod text;
