//! Everything that decides a verdict, as one value: how text is read, how pairs are judged, how documents are indexed.

use crate::engine::{LanguageSettings, Settings};
use crate::index::IndexSchemes;
use crate::model::Lang;
use crate::text;

/// Settings of an engine and its index. [`Options::default`] is what the `samestory` program uses without a settings file.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// From article to normalised text.
    pub text: text::Options,
    /// How articles are judged.
    pub settings: Settings,
    /// How documents are found again, language by language.
    pub schemes: IndexSchemes,
}

impl Options {
    /// The settings of a language.
    pub fn language(&self, language: Lang) -> &LanguageSettings {
        self.settings.languages.get(&language).unwrap_or(&self.settings.default)
    }
}
