//! Measures the quality of verdicts on labelled articles.
//!
//! [`labelled`] reads the files, [`run`](run::run) feeds them to the engine in order, [`score`] turns counts
//! into rates with confidence intervals, a [`Report`] lines them up, and [`tune`] searches for settings.
//! `docs/labelled-data.md` describes the file format.

pub mod compat;
pub mod evidence;
pub mod homes;
pub mod labelled;
mod pairs;
mod report;
pub mod run;
pub mod score;
mod table;
pub mod tune;

pub use labelled::{Expect, Label, LabelledError, Set};
pub use report::{Accuracy, Cell, PairCell, Report};
pub use run::{Outcome, Run, RunOptions};
