//! Everything that decides a verdict, as one value: text preparation, comparison settings and index schemes.
//! The front door and the stage build their engine and index from it, so equal options and equal input mean
//! equal verdicts.

use crate::engine::compare::Rules;
use crate::engine::{Engine, LanguageSettings, Settings};
use crate::fingerprint::LANES;
use crate::index::{IndexScheme, IndexSchemes, Retention, SimHashBands};
use crate::lsh::Banding;
use crate::model::Lang;
use crate::text;

/// Settings of an engine and its index. [`Options::default`] judges as `samestory file` does
/// without a settings file: it remembers every article for good.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How bodies become normalised text.
    pub text: text::Options,
    /// How articles are judged.
    pub settings: Settings,
    /// How documents are indexed, per language.
    pub schemes: IndexSchemes,
}

impl Default for Options {
    fn default() -> Options {
        let default = LanguageSettings { retention: Retention::Forever, ..LanguageSettings::default() };
        let minhash = Banding::for_recall(default.rules.threshold, Options::BAND_RECALL, LANES).ok();
        let scheme = IndexScheme {
            minhash,
            simhash: SimHashBands::None,
            samples: Engine::SAMPLES,
            shortest: Rules::SHORTEST,
        };
        Options {
            text: text::Options::default(),
            settings: Settings { default, ..Settings::default() },
            schemes: IndexSchemes::new(scheme),
        }
    }
}

impl Options {
    /// Share of pairs at the threshold that the bands alone find. Sampled shingles find nearly all of the others: at that
    /// similarity two texts share ten or eleven of their sixteen. Every band is one more posting to look up and to store.
    pub const BAND_RECALL: f64 = 0.6;

    /// Calls an article a duplicate from this confidence on (0 to 1, 0.5 by default).
    #[must_use]
    pub fn min_confidence(mut self, confidence: f64) -> Options {
        let languages = self.settings.languages.values_mut();
        for language in languages.chain([&mut self.settings.default]) {
            language.rules.min_confidence = confidence.clamp(0.0, 1.0);
        }
        self
    }

    /// Attaches to each verdict what every measure contributed to it.
    #[must_use]
    pub fn with_evidence(mut self) -> Options {
        self.settings.evidence = true;
        self
    }

    /// The settings of a language.
    pub fn language(&self, language: Lang) -> &LanguageSettings {
        self.settings.languages.get(&language).unwrap_or(&self.settings.default)
    }
}
