//! samestory recognises articles whose text has been seen before.

pub mod compat;
pub mod model;
pub mod text;
