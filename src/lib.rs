//! samestory recognises articles whose text has been seen before.

pub mod fingerprint;
pub mod lsh;
pub mod model;
pub mod store;
pub mod text;
