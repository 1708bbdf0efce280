//! One test binary; a line of comment per module.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

// SimHash and MinHash beside the original in JavaScript.
mod original;
// Random text of every script.
mod scripts;
// Real articles, where they lie beside the repository.
mod shared_data;
// Our txtfp-compatible functions and txtfp itself, side by side.
mod txtfp;
