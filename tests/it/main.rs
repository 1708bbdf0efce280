//! One test binary; a line of comment per module.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

// The compatibility functions beside the crate they must equal.
mod compat;
// The demo articles get the verdicts that the demo promises.
mod demo;
// An engine with its state, for the tests of verdicts.
mod desk;
// What must hold for any bytes; shared with the fuzz targets.
mod fuzz_checks;
// Markup bombs: defined outcomes, linear work.
mod hostile_markup;
// Languages on real articles, our own paragraphs, and hostile texts.
mod language;
// State: applying, laying over, restoring and its bytes, over random histories.
mod laws_store;
// Floors under the measured quality of verdicts.
mod quality;
// What several modules need: where the shared articles are.
mod support;
