//! Everything that decides a verdict, as one value: text preparation, comparison settings and index schemes.
//! The front door and the stage build their engine and index from it, so equal options and equal input mean
//! equal verdicts.

use crate::engine::{LanguageSettings, Settings};
use crate::index::IndexSchemes;
use crate::model::Lang;
use crate::text;

/// Settings of an engine and its index. [`Options::default`] equals the `samestory` program without a settings file.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How bodies become normalised text.
    pub text: text::Options,
    /// How articles are judged.
    pub settings: Settings,
    /// How documents are indexed, per language.
    pub schemes: IndexSchemes,
}

impl Options {
    /// The settings that apply to `language`.
    pub fn language(&self, language: Lang) -> &LanguageSettings {
        self.settings.languages.get(&language).unwrap_or(&self.settings.default)
    }
}
