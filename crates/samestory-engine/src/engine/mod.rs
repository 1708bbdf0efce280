//! Deciding: what an article is to those seen before it.
//!
//! An [`Article`](crate::model::Article) is [prepared](prepare) on any thread, without state. A [`Batch`] of prepared
//! articles is [planned](Engine::plan) in order against the state: the [`Plan`] says what goes out and what changes,
//! and does neither. A verdict is a function of the articles that came before, of nothing else.

mod batch;
mod candidates;
mod cluster;
pub mod compare;
mod constraints;
mod judge;
pub mod prepare;
mod settings;

use crate::model::Lang;

pub use batch::{Batch, Decided, Incoming, Item, Notice, Output, Plan, Stats};
pub use candidates::{Candidate, Candidates};
pub use constraints::{Bond, BondError, Constraints};
pub use judge::Judged;
pub use prepare::{Prepared, Preparer};
pub use settings::{Algorithm, CanonicalPolicy, EmptyUpdate, LanguageSettings, Settings};

/// Decides. It holds settings and nothing else: all it knows of earlier articles it reads from the state it is given.
#[derive(Clone, Debug)]
pub struct Engine {
    settings: Settings,
}

impl Engine {
    /// How many sampled shingles a document should post so that its parts are found.
    pub const SAMPLES: u8 = 16;

    /// An engine with these settings.
    pub fn new(settings: Settings) -> Engine {
        Engine { settings }
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings of a language.
    pub fn of(&self, language: Lang) -> &LanguageSettings {
        self.settings.languages.get(&language).unwrap_or(&self.settings.default)
    }
}
