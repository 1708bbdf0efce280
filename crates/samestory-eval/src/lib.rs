//! How good the verdicts are, measured on labelled articles.
//!
//! [`labelled`] files are read, [`run`](run::run) gives them to the engine in their order, [`score`] turns counts into
//! shares with their uncertainty, a [`Report`] puts them beside each other, and [`tune`] looks for settings. The
//! format of the files is described in `docs/labelled-data.md`.

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
pub use report::{Cell, PairCell, Report};
pub use run::{Options, Outcome, Run};
