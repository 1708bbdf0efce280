//! One test binary; a line of comment per module.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

// Languages on real articles, our own paragraphs, and hostile texts.
mod language;
// What several of them need.
mod support;
