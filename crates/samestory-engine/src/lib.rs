//! Recognises articles whose *text* has been seen before: word for word, lightly edited, re-headlined, truncated, or
//! wrapped in another site's boilerplate.

#[macro_use]
mod listed;

#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod fingerprint;
#[doc(hidden)]
pub mod index;
#[doc(hidden)]
pub mod lsh;
#[doc(hidden)]
pub mod model;
mod options;
#[doc(hidden)]
pub mod text;

pub use options::Options;
