//! One test binary; a line of comment per module.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

// SimHash and MinHash against the JavaScript original.
mod original;
// Random text in every script.
mod scripts;
// Real articles, if they are available beside the repository.
mod shared_data;
// Our txtfp-compatible functions against txtfp itself.
mod txtfp;
