//! Everything that decides a verdict, as one value: text preparation, comparison settings and index schemes.
//! The front door and the stage build their engine and index from it, so equal options and equal input mean
//! equal verdicts. [`Options::hash`] is the `config` that every verdict carries.

use std::fmt::Write;

use xxhash_rust::xxh3::xxh3_64;

use crate::engine::compare::Rules;
use crate::engine::{Algorithm, Engine, LanguageSettings, Settings};
use crate::fingerprint::LANES;
use crate::index::{IndexScheme, IndexSchemes, Retention, SimHashBands};
use crate::lsh::{Banding, BandingError};
use crate::model::Lang;
use crate::text;
use crate::text::language::{TABLE_VERSION, find, row};
use crate::text::shingling::{Shingling, ShinglingError};

/// Settings of an engine and its index. [`Options::default`] judges as `samestory file` does
/// without a settings file: it remembers every article for good.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// How bodies become normalised text.
    pub text: text::Options,
    /// How articles are judged.
    pub settings: Settings,
    /// How documents are indexed, per language.
    #[doc(hidden)]
    pub schemes: IndexSchemes,
}

/// How a MinHash signature is cut into bands.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BandChoice {
    /// The fewest bands that find this share of the pairs at a language's threshold.
    Recall(f64),
    /// The same bands for every language.
    Fixed(Banding),
}

impl BandChoice {
    /// The bands for a threshold.
    ///
    /// # Errors
    /// No banding of the signature reaches the recall.
    pub fn for_threshold(self, threshold: f64) -> Result<Banding, BandingError> {
        match self {
            BandChoice::Recall(recall) => Banding::for_recall(threshold, recall, LANES),
            BandChoice::Fixed(banding) => Ok(banding),
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        let default = LanguageSettings { retention: Retention::Forever, ..LanguageSettings::default() };
        let settings = Settings { default, ..Settings::default() };
        let bands = BandChoice::Recall(Options::BAND_RECALL);
        #[expect(clippy::expect_used)] // A constant, which every test of this crate passes through.
        Options::new(text::Options::default(), settings, bands).expect("the default threshold has bands")
    }
}

impl Options {
    /// Share of pairs at the threshold that the bands alone find. Two texts at that similarity share ten or eleven of their
    /// sixteen sampled shingles, so the samples find nearly every pair that bands miss, and each band costs a posting to look
    /// up, write and keep. docs/quality.md compares other values.
    pub const BAND_RECALL: f64 = 0.6;

    /// Options with the index scheme that each language's algorithm and threshold call for.
    ///
    /// # Errors
    /// A language's threshold has no such bands.
    #[doc(hidden)]
    pub fn new(text: text::Options, settings: Settings, bands: BandChoice) -> Result<Options, BandingError> {
        let mut schemes = IndexSchemes::new(scheme(&settings.default, bands)?);
        for (&language, own) in &settings.languages {
            schemes = schemes.with(language, scheme(own, bands)?);
        }
        Ok(Options { text, settings, schemes })
    }

    /// Options with these index schemes, whatever the settings call for.
    #[doc(hidden)]
    pub fn with_schemes(text: text::Options, settings: Settings, schemes: IndexSchemes) -> Options {
        Options { text, settings, schemes }
    }

    /// Hash of everything that verdicts depend on; every verdict carries it. It covers values only: equal settings have
    /// equal hashes whatever their keys are called.
    pub fn hash(&self) -> u32 {
        xxh3_64(self.describe().as_bytes()) as u32
    }

    /// The values that [`Options::hash`] covers, as the text that it hashes.
    pub fn describe(&self) -> String {
        let Options { text, settings, schemes } = self;
        let text::Options {
            max_raw_bytes,
            max_bytes,
            skeleton,
            fold_accents,
            fold_serbian,
            fold_han,
            trust,
            shinglings,
        } = text;
        let mut all =
            format!("text {max_raw_bytes} {max_bytes} {skeleton} {fold_accents} {fold_serbian} {fold_han}");
        // Writing to a string cannot fail.
        let _written = write!(all, "; languages {TABLE_VERSION} {}", trust.as_str());
        let languages = settings.languages.iter().map(|(language, own)| (*language, own));
        for (language, own) in std::iter::once((Lang::UND, &settings.default)).chain(languages) {
            let rules = &own.rules;
            let _written = write!(
                all,
                "; {language} {} {} {} {} {} {:?} {:?} {} {} {:?} {}",
                rules.threshold,
                rules.containment_threshold,
                rules.min_confidence,
                rules.min_tokens,
                rules.wall_tokens,
                own.algorithm,
                own.weights,
                own.hamming,
                own.cluster_threshold,
                own.retention,
                schemes.for_language(language),
            );
        }
        let review = settings.review.map(|(from, to)| (from.steps(), to.steps()));
        let rest = (
            settings.canonical,
            settings.published_within,
            settings.empty_update,
            settings.max_bucket,
            review,
            settings.max_clock_skew_millis,
            settings.publish_from,
        );
        let _written = write!(all, "; {rest:?}");
        if !settings.constraints.is_empty() {
            let _written = write!(all, "; pairs {:016x}", settings.constraints.hash());
        }
        let _written = write!(all, "{shinglings}");
        all
    }

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

    /// Cuts the shingles of a language, and of those that share its home, in this way. A code of the language table, or `und`
    /// for texts in no known language.
    ///
    /// Confidence is calibrated for the shingles of the language table; measure with your own pairs what another choice does.
    ///
    /// # Errors
    /// [`ShinglingError::Language`].
    pub fn with_shingling(mut self, language: &str, shingling: Shingling) -> Result<Options, ShinglingError> {
        let row = match language {
            "und" => Some(row(Lang::UND)),
            code => find(code),
        };
        let row = row.ok_or_else(|| ShinglingError::Language(language.to_owned()))?;
        self.text.shinglings.set(row, shingling);
        Ok(self)
    }

    /// The settings of a language.
    pub fn language(&self, language: Lang) -> &LanguageSettings {
        self.settings.languages.get(&language).unwrap_or(&self.settings.default)
    }
}

/// How the documents of a language are indexed: by the signature that its algorithm compares.
fn scheme(language: &LanguageSettings, bands: BandChoice) -> Result<IndexScheme, BandingError> {
    let banding = bands.for_threshold(language.rules.threshold)?;
    let (minhash, simhash) = match language.algorithm {
        Algorithm::Minhash | Algorithm::Combined => (Some(banding), SimHashBands::None),
        Algorithm::Simhash128 => (None, SimHashBands::Of128),
        Algorithm::Simhash64 => (None, SimHashBands::Of64),
    };
    Ok(IndexScheme { minhash, simhash, samples: Engine::POSTED_SAMPLES, shortest: Rules::SHORTEST })
}
