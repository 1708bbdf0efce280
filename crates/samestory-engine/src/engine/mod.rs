//! The decision engine: judges each article against the articles that came before it.
//!
//! [`Preparer`] turns an [`RawArticle`](crate::model::RawArticle) into a [`Prepared`] one on any thread, without
//! state. [`Engine::plan`] decides a [`Batch`] of prepared articles in order against the index; the [`Plan`]
//! that it returns lists the records to publish and the changes to the state, and carries out neither. A
//! verdict depends only on the settings and on the articles that came before.

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

/// Judges articles. It holds only its settings; everything about earlier articles comes from the index view
/// that the caller passes in.
#[derive(Clone, Debug)]
pub struct Engine {
    settings: Settings,
}

impl Engine {
    /// How many sampled shingles each document posts, so that excerpts of it can be found.
    pub const POSTED_SAMPLES: u8 = 16;

    /// Creates an engine with these settings.
    pub fn new(settings: Settings) -> Engine {
        Engine { settings }
    }

    /// The settings that this engine was created with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings for a language: its own, or the defaults.
    pub fn settings_for(&self, language: Lang) -> &LanguageSettings {
        self.settings.languages.get(&language).unwrap_or(&self.settings.default)
    }
}
