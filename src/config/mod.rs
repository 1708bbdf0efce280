//! Settings, as written → [`Config`], as usable.
//!
//! Every default and every check is here. A refusal names the key, the value and what to do.

mod bus;
mod check;
mod home;
mod http;
mod layers;
pub mod reference;
mod registry;
mod written;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::detect::compare::Rules;
use crate::detect::{Algorithm, CanonicalPolicy, Engine, LanguageSettings, Settings as EngineSettings};
use crate::event::fields::{Field, Fields};
use crate::event::time;
use crate::fingerprint::LANES;
use crate::lsh::{Banding, BandingError};
use crate::model::{Lang, Share};
use crate::store::{Posting, Postings, SimHashBands};
use crate::text::language::{LANGUAGES, Segment};
use crate::text::{Options, language};

use check::{duration, language_settings};

pub use bus::{BatchLimits, Bus, Mode, Secret, StartAt, TopicNames, ValueForm};
pub use home::home;
pub use http::{Http, Peer};
pub use layers::Layers;
pub use registry::{Credentials, EnvelopeArticle, Formats, InputFormat, OutputFormat, RegistryConfig};
pub use written::{
    BatchSettings, ClusterSettings, EnvelopeSettings, HttpSettings, InputSettings, Kept, LshSettings,
    MatchSettings, OutputSettings, Paths, Property, RegistrySettings, ReviewSettings, Settings,
    StageSettings, TextSettings, TopicSettings,
};

/// Ready values: nothing later can find them wrong.
#[derive(Clone, Debug)]
pub struct Config {
    /// From article to canonical text.
    pub text: Options,
    /// The crawler's field names.
    pub fields: Fields,
    /// How articles are judged.
    pub engine: EngineSettings,
    /// Which texts are looked at together, unless the language says otherwise.
    pub banding: Banding,
    /// How documents are found again, language by language.
    pub postings: Postings,
    /// How the program runs on the bus.
    pub bus: Bus,
    /// Where the stage is asked how it is.
    pub http: Http,
    /// What is allowed and may surprise: to be said at the start.
    pub warnings: Vec<String>,
    /// The file that the settings came from, if there is one.
    pub file: Option<PathBuf>,
}

impl Config {
    /// The rules for a language.
    pub fn rules(&self, lang: Lang) -> &Rules {
        &self.of(lang).rules
    }

    /// How a language is judged.
    pub fn of(&self, lang: Lang) -> &LanguageSettings {
        self.engine.languages.get(&lang).unwrap_or(&self.engine.default)
    }

    /// The longest record that is read: JSON writes a character with six bytes at the most, and an article has more
    /// than its text.
    pub fn max_record(&self) -> usize {
        self.text.max_bytes.saturating_mul(8)
    }

    /// Reads `file` or the file named by `SAMESTORY_CONFIG`, then the environment; what neither says is a default.
    ///
    /// # Errors
    /// Names the place and what is wrong there; correct that and start again.
    pub fn load(file: Option<&Path>) -> Result<Config, ConfigError> {
        Config::load_with(file, &[])
    }

    /// The same, with what the command line sets on top, as `key=value`.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load_with(file: Option<&Path>, set: &[String]) -> Result<Config, ConfigError> {
        let layers = Layers::read(file, set)?;
        let config: Config = layers.settings()?.try_into()?;
        Ok(Config { file: layers.file, ..config })
    }
}

impl TryFrom<Settings> for Config {
    type Error = ConfigError;

    fn try_from(settings: Settings) -> Result<Config, ConfigError> {
        let defaults = Options::default();
        let text = Options {
            max_bytes: settings.text.max_bytes.unwrap_or(defaults.max_bytes),
            skeleton: settings.text.skeleton.unwrap_or(defaults.skeleton),
        };
        if text.max_bytes == 0 {
            return Err(invalid("text.max_bytes", 0, "give a number of bytes, at least 1"));
        }
        let mut warnings = Vec::new();
        let default = language_settings("match", &settings.matching, None, &mut warnings)?;
        let mut engine = EngineSettings { default, ..EngineSettings::default() };
        if settings.matching.rewritten.is_none() {
            let unspaced = LANGUAGES.iter().filter(|row| row.segment == Segment::Characters);
            let mut own = default;
            own.rules.rewritten *= UNSPACED;
            engine.languages.extend(unspaced.map(|row| (row.lang, own)));
        }
        for (code, own) in &settings.languages {
            let table = format!("languages.{code}");
            let known = language::find(code)
                .ok_or_else(|| invalid(&table, code, "take a code that `samestory languages` lists"))?;
            let base = engine.languages.get(&known.lang).unwrap_or(&default);
            let own = language_settings(&table, own, Some(base), &mut warnings)?;
            engine.languages.insert(known.lang, own);
        }
        engine.canonical = match settings.clusters.canonical.as_deref() {
            None => engine.canonical,
            Some("first-seen") => CanonicalPolicy::FirstSeen,
            Some("first-published") => CanonicalPolicy::FirstPublished,
            Some("newest") => CanonicalPolicy::Newest,
            Some("longest") => CanonicalPolicy::Longest,
            Some(other) => {
                let fix = "write first-seen, first-published, newest or longest";
                return Err(invalid("clusters.canonical", other, fix));
            }
        };
        engine.max_bucket = match settings.lsh.max_bucket {
            Some(0) => return Err(invalid("lsh.max_bucket", 0, "give a number of articles, at least 1")),
            max_bucket => max_bucket.unwrap_or(engine.max_bucket),
        };
        if let Some([from, to]) = settings.review.between {
            if !(0.0 <= from && from <= to && to <= 1.0) {
                let fix = "give two shares between 0 and 1, the smaller first";
                return Err(invalid("review.between", format!("[{from}, {to}]"), fix));
            }
            engine.review = Some((Share::new(from), Share::new(to)));
        }
        if let Some(skew) = &settings.input.skew {
            engine.skew_millis = duration("input.skew", skew)?;
        }
        if let Some(from) = &settings.output.publish_from {
            let fix = "give a time such as 2026-03-02T06:00:00Z";
            let from = time::parse(from).ok_or_else(|| invalid("output.publish_from", from, fix))?;
            engine.publish_from = Some(from);
        }
        let banding = banding(&settings.lsh, &default)?;
        let mut postings = Postings::new(posting(&default, banding));
        for (&language, own) in &engine.languages {
            let banding = self::banding(&settings.lsh, own)?;
            postings = postings.with(language, posting(own, banding));
        }
        let fields = fields(&settings.input)?;
        engine.config = hash(&text, &engine, &postings);
        let bus = Bus::checked(&settings)?;
        let http = Http::checked(&settings.http)?;
        Ok(Config { text, fields, engine, banding, postings, bus, http, warnings, file: None })
    }
}

/// As written, or those that find what must be found at the language's threshold.
fn banding(written: &LshSettings, language: &LanguageSettings) -> Result<Banding, ConfigError> {
    match (written.bands, written.rows) {
        (Some(bands), Some(rows)) => Ok(Banding::new(bands, rows, LANES)?),
        (None, None) => {
            let recall = written.recall.unwrap_or(RECALL);
            Ok(Banding::for_recall(language.rules.threshold, recall, LANES)?)
        }
        (Some(bands), None) => Err(invalid("lsh.bands", bands, "give lsh.rows too, or neither")),
        (None, Some(rows)) => Err(invalid("lsh.rows", rows, "give lsh.bands too, or neither")),
    }
}

/// Share of pairs at the threshold that the bands must find. Of the sixteen sampled shingles of a text, another at that
/// similarity has ten or eleven, so those find nearly every pair that bands miss; and every band is a row to look for, to
/// write and to keep. docs/quality.md has what is found with others.
pub const RECALL: f64 = 0.6;

/// How much more alike rewrites must be where shingles are a few characters: two reports of one event share more of those.
const UNSPACED: f64 = 2.0;

fn posting(language: &LanguageSettings, banding: Banding) -> Posting {
    let (minhash, simhash) = match language.algorithm {
        Algorithm::Minhash | Algorithm::Combined => (Some(banding), SimHashBands::None),
        Algorithm::Simhash128 => (None, SimHashBands::Of128),
        Algorithm::Simhash64 => (None, SimHashBands::Of64),
    };
    Posting { minhash, simhash, samples: Engine::SAMPLES, shortest: language.rules.shortest() }
}

fn fields(input: &InputSettings) -> Result<Fields, ConfigError> {
    let mut fields = Fields::default();
    for (name, paths) in &input.fields {
        let key = format!("input.fields.{name}");
        let field = Field::from_name(name)
            .ok_or_else(|| invalid("input.fields", name, "the fields are listed in the sample settings"))?;
        for path in paths.iter() {
            let fix = "give a path such as text, content.text or paragraphs[]";
            fields = fields.with(field, path).map_err(|_| invalid(&key, path, fix))?;
        }
    }
    Ok(fields)
}

/// Names the settings that verdicts depend on. Two programs with the same settings write the same hash.
fn hash(text: &Options, engine: &EngineSettings, postings: &Postings) -> u32 {
    let mut all = format!("text {} {}", text.max_bytes, text.skeleton);
    let languages = engine.languages.iter().map(|(language, own)| (*language, own));
    for (language, own) in std::iter::once((Lang::UND, &engine.default)).chain(languages) {
        let rules = &own.rules;
        // Writing to a string cannot fail.
        let _written = write!(
            all,
            "; {language} {} {} {} {} {} {} {} {} {:?} {} {} {:?} {}",
            rules.threshold,
            rules.coverage,
            rules.min_tokens,
            rules.rewritten,
            rules.brief,
            rules.furniture,
            rules.numerals,
            rules.numerals_share,
            own.algorithm,
            own.hamming,
            own.floor,
            own.retention,
            postings.of(language),
        );
    }
    let review = engine.review.map(|(from, to)| (from.steps(), to.steps()));
    let rest = (engine.canonical, engine.max_bucket, review, engine.skew_millis, engine.publish_from);
    let _written = write!(all, "; {rest:?}");
    xxh3_64(all.as_bytes()) as u32
}

/// What a test wants to go wrong.
#[cfg(feature = "faults")]
pub(crate) fn fault(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

fn invalid(key: &str, value: impl ToString, fix: &'static str) -> ConfigError {
    ConfigError::Value { key: key.to_owned(), value: value.to_string(), fix }
}

/// Why the program does not start with these settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read settings from {}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: std::io::Error,
    },
    /// What is written somewhere is not what it should be.
    #[error("{place}: {why}")]
    Override {
        /// Which file, variable or argument.
        place: String,
        /// The line, if there is one, and what was expected there.
        why: String,
    },
    /// A value that cannot be used.
    #[error("{key} = {value}: {fix}")]
    Value {
        /// Which key.
        key: String,
        /// As written.
        value: String,
        /// What to write instead.
        fix: &'static str,
    },
    /// Bands and rows that do not fit.
    #[error(transparent)]
    Banding(#[from] BandingError),
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn config(text: &str) -> Result<Config, ConfigError> {
        toml::from_str::<Settings>(text).unwrap().try_into()
    }

    pub(super) fn refusal(text: &str) -> String {
        config(text).unwrap_err().to_string()
    }

    #[test]
    fn nothing_written_is_the_defaults() {
        let config = config("").unwrap();
        assert_eq!(*config.rules(Lang::UND), Rules::default());
        assert!(config.banding.collision(Rules::default().threshold) >= RECALL);
    }

    #[test]
    fn a_language_differs_only_where_it_says_so() {
        let config = config("[match]\ncoverage = 0.7\n[languages.hi]\nthreshold = 0.6").unwrap();
        let hindi = config.rules(language::find("hi").unwrap().lang);
        assert_eq!((hindi.threshold, hindi.coverage), (0.6, 0.7));
        assert_eq!(config.rules(Lang::UND).threshold, Rules::default().threshold);
    }

    #[test]
    fn the_sample_settings_are_the_defaults() {
        let sample: Settings = toml::from_str(include_str!("../../samestory.toml")).unwrap();
        let (sample, defaults) = (Config::try_from(sample).unwrap(), config("").unwrap());
        assert_eq!(sample.engine, defaults.engine);
        assert_eq!(
            (sample.text, sample.fields, sample.banding),
            (defaults.text, defaults.fields, defaults.banding)
        );
        assert_eq!(sample.postings, defaults.postings);
    }

    #[test]
    fn rewrites_are_more_alike_where_words_are_not_spaced_unless_it_is_said() {
        let rewritten = |text: &str, code: &str| {
            config(text).unwrap().rules(language::find(code).unwrap().lang).rewritten
        };
        let default = Rules::default().rewritten;
        assert_eq!(["en", "ja"].map(|code| rewritten("", code)), [default, UNSPACED * default]);
        let own = "[languages.ja]\nretention = \"1d\"";
        assert_eq!(rewritten(own, "ja"), UNSPACED * default);
        assert_eq!(["en", "ja"].map(|code| rewritten("[match]\nrewritten = 0.2", code)), [0.2; 2]);
    }

    #[test]
    fn what_the_sample_settings_leave_out_works_as_it_says() {
        let all = include_str!("../../samestory.toml").replace("\n#= ", "\n");
        let settings: Settings = toml::from_str(&all).unwrap();
        let config = Config::try_from(settings.without_secrets()).unwrap();
        assert!(config.engine.review.is_some() && config.engine.publish_from.is_some());
        assert_eq!(config.engine.languages.len(), 2);
        assert_ne!(config.fields, Fields::default());
    }

    #[test]
    fn the_hash_tells_settings_apart() {
        let hash = |text: &str| config(text).unwrap().engine.config;
        assert_eq!(hash(""), hash("[match]\nthreshold = 0.5"));
        assert_ne!(hash(""), hash("[match]\nthreshold = 0.6"));
        assert_ne!(hash(""), hash("[languages.hi]\nretention = \"forever\""));
        assert_ne!(hash(""), hash("[text]\nskeleton = true"));
    }

    #[test]
    fn a_language_with_a_lower_threshold_gets_bands_that_find_it() {
        let config = config("[languages.hi]\nthreshold = 0.3").unwrap();
        let hindi = config.postings.of(language::find("hi").unwrap().lang).minhash.unwrap();
        assert!(hindi.collision(0.3) >= RECALL && config.banding.collision(0.3) < RECALL);
    }

    #[test]
    fn a_distance_that_bands_cannot_promise_is_allowed_and_said() {
        assert_eq!(config("[match]\nalgorithm = \"simhash128\"").unwrap().warnings, [""; 0]);
        let config = config("[match]\nalgorithm = \"simhash64\"\nhamming = 6").unwrap();
        assert!(config.warnings[0].contains("match.hamming = 6"), "{:?}", config.warnings);
    }

    #[test]
    fn refusals_name_key_value_and_fix() {
        assert_eq!(
            refusal("[match]\nthreshold = 1.2"),
            "match.threshold = 1.2: give a share above 0 and below 1"
        );
        assert!(refusal("[lsh]\nbands = 32\nrows = 5").contains("32 × 5"));
        assert!(refusal("[lsh]\nbands = 32").contains("lsh.rows"));
        assert!(refusal("[languages.klingon]").contains("samestory languages"));
        assert!(refusal("[text]\nmax_bytes = 0").contains("text.max_bytes"));
        assert!(refusal("[match]\nalgorithm = \"tlsh\"").contains("match.algorithm = tlsh"));
        assert!(refusal("[match]\nretention = \"7 moons\"").contains("match.retention = 7 moons"));
        assert!(refusal("[match]\nfloor = 0.7").contains("threshold"));
        assert!(refusal("[review]\nbetween = [0.9, 0.1]").contains("review.between = [0.9, 0.1]"));
        assert!(refusal("[clusters]\ncanonical = \"oldest\"").contains("first-seen"));
        assert!(refusal("[http]\ntoken = \"\"").contains("http.token"));
        assert!(refusal("[http]\nlisten = \"everywhere\"").contains("http.listen = everywhere"));
        assert!(refusal("[lsh]\nmax_bucket = 0").contains("lsh.max_bucket"));
        assert!(refusal("[input.fields]\nbdoy = \"text\"").contains("bdoy"));
        assert!(refusal("[input.fields]\nbody = \"a..b\"").contains("input.fields.body = a..b"));
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        let error = toml::from_str::<Settings>("[match]\ntreshold = 0.5").unwrap_err().to_string();
        assert!(error.contains("treshold") && error.contains("threshold"), "{error}");
    }
}
