//! One test binary; a line of comment per module.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

/// State: applying, laying over, restoring and its bytes, over random histories.
mod laws_store;
