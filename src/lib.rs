//! samestory recognises articles whose text has been seen before.

pub mod compat;
pub mod config;
pub mod detect;
pub mod event;
pub mod fingerprint;
pub mod local;
pub mod lsh;
pub mod model;
pub mod store;
pub mod text;
