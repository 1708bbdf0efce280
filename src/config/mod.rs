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

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::formats::fields::{Field, Fields};
use crate::formats::{Owner, time};
use samestory_engine::engine::compare::Rules;
use samestory_engine::engine::{
    Algorithm, CanonicalPolicy, Constraints, EmptyUpdate, Engine, LanguageSettings,
    Settings as EngineSettings,
};
use samestory_engine::fingerprint::LANES;
use samestory_engine::index::{IndexScheme, IndexSchemes, Retention, SimHashBands};
use samestory_engine::lsh::{Banding, BandingError};
use samestory_engine::model::{Fraction, Lang};
use samestory_engine::text::language::{TABLE_VERSION, Trust};
use samestory_engine::text::{Options, language};

use check::{duration, language_settings};

#[cfg(all(test, feature = "kafka"))]
pub(crate) use bus::ALIASES;
pub use bus::{BatchLimits, Bus, Mode, Secret, StartAt, TopicNames, ValueForm};
pub use home::home;
pub use http::{Http, Peer};
pub use layers::Layers;
pub use registry::{Credentials, EnvelopeArticle, Formats, InputFormat, OutputFormat, RegistryConfig};
pub use written::{
    BatchSettings, ClusterSettings, EnvelopeSettings, HttpSettings, InputSettings, Kept, LshSettings,
    MatchSettings, OutputSettings, Paths, PlacementSettings, Property, RegistrySettings, ReviewSettings,
    Settings, StageSettings, TextSettings, TopicSettings,
};

/// Ready values: nothing later can find them wrong.
#[derive(Clone, Debug)]
pub struct Config {
    /// From article to canonical text.
    pub text: Options,
    /// The crawler's field names.
    pub fields: Fields,
    /// Who may write about an id.
    pub owner: Owner,
    /// How articles are judged.
    pub engine: EngineSettings,
    /// Which texts are looked at together, unless the language says otherwise.
    pub banding: Banding,
    /// How documents are found again, language by language.
    pub postings: IndexSchemes,
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
    /// What decides a verdict, for the engine.
    pub fn options(&self) -> samestory_engine::Options {
        samestory_engine::Options {
            text: self.text,
            settings: self.engine.clone(),
            schemes: self.postings.clone(),
        }
    }

    /// The rules for a language.
    pub fn rules(&self, lang: Lang) -> &Rules {
        &self.of(lang).rules
    }

    /// How a language is judged.
    pub fn of(&self, lang: Lang) -> &LanguageSettings {
        self.engine.languages.get(&lang).unwrap_or(&self.engine.default)
    }

    /// The longest record that is read: JSON writes a character of text with six bytes at the most, and an article has
    /// more than its text. Markup is mostly written as it is.
    pub fn max_record(&self) -> usize {
        self.text.max_bytes.saturating_mul(8).max(self.text.max_raw_bytes.saturating_mul(2))
    }

    /// The same for files, which remember for ever unless told otherwise: `match.retention` is meant for the bus. And with what
    /// an editor has said of pairs of articles.
    ///
    /// # Errors
    /// `retention` is not a duration.
    pub fn for_files(
        &self,
        retention: Option<&str>,
        constraints: Constraints,
    ) -> Result<Config, ConfigError> {
        let retention = retention.map_or(Ok(Retention::Forever), |text| check::span("--retention", text))?;
        let mut config = self.clone();
        let languages = config.engine.languages.values_mut();
        languages.chain([&mut config.engine.default]).for_each(|own| own.retention = retention);
        config.engine.constraints = Arc::new(constraints);
        config.engine.config = hash(&config.text, &config.engine, &config.postings);
        Ok(config)
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
        let written = &settings.text;
        let max_bytes = written.max_bytes.unwrap_or(defaults.max_bytes);
        let text = Options {
            max_raw_bytes: written.max_raw_bytes.unwrap_or(defaults.max_raw_bytes.max(max_bytes)),
            max_bytes,
            skeleton: written.skeleton.unwrap_or(defaults.skeleton),
            fold_accents: written.fold_accents.unwrap_or(defaults.fold_accents),
            fold_serbian: written.fold_serbian.unwrap_or(defaults.fold_serbian),
            fold_han: written.fold_han.unwrap_or(defaults.fold_han),
            trust: match settings.language.trust.as_deref() {
                None => defaults.trust,
                Some("text") => Trust::Text,
                Some("declared") => Trust::Declared,
                Some(other) => return Err(invalid("language.trust", other, "write text or declared")),
            },
        };
        if text.max_bytes == 0 {
            return Err(invalid("text.max_bytes", 0, "give a number of bytes, at least 1"));
        }
        if text.max_raw_bytes < text.max_bytes {
            let fix = "give at least text.max_bytes: a body is never shorter than its text";
            return Err(invalid("text.max_raw_bytes", text.max_raw_bytes, fix));
        }
        let mut warnings = Vec::new();
        let default = language_settings("match", &settings.matching, None, &mut warnings)?;
        let mut engine = EngineSettings { default, ..EngineSettings::default() };
        let mut written = BTreeMap::new();
        for (code, own) in &settings.languages {
            let table = format!("languages.{code}");
            let known = language::find(code)
                .ok_or_else(|| invalid(&table, code, "take a code that `samestory languages` lists"))?;
            let home = known.home();
            if let Some(other) = written.insert(home, code) {
                let why = format!("{code} and {other} share the home of {home}: write one table for both");
                return Err(ConfigError::Override { place: table, why });
            }
            let base = engine.languages.get(&home).unwrap_or(&default);
            let own = language_settings(&table, own, Some(base), &mut warnings)?;
            engine.languages.insert(home, own);
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
        engine.published_within = match settings.clusters.published_within.as_deref() {
            None => engine.published_within,
            Some(text) => check::span("clusters.published_within", text)?,
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
            engine.review = Some((Fraction::new(from), Fraction::new(to)));
        }
        if let Some(skew) = &settings.input.skew {
            engine.max_clock_skew_millis = duration("input.skew", skew)?;
        }
        engine.empty_update = match settings.input.empty_update.as_deref() {
            None => engine.empty_update,
            Some("keep") => EmptyUpdate::Keep,
            Some("refuse") => EmptyUpdate::Refuse,
            Some(other) => return Err(invalid("input.empty_update", other, "write keep or refuse")),
        };
        if let Some(from) = &settings.output.publish_from {
            let fix = "give a time such as 2026-03-02T06:00:00Z";
            let from = time::parse(from).ok_or_else(|| invalid("output.publish_from", from, fix))?;
            engine.publish_from = Some(from);
        }
        engine.evidence = settings.output.evidence.unwrap_or(engine.evidence);
        let banding = banding(&settings.lsh, &default)?;
        let mut postings = IndexSchemes::new(posting(&default, banding));
        for (&language, own) in &engine.languages {
            let banding = self::banding(&settings.lsh, own)?;
            postings = postings.with(language, posting(own, banding));
        }
        let fields = fields(&settings.input)?;
        let owner = match settings.input.owner.as_deref() {
            None => Owner::default(),
            Some(text) => Owner::parse(text)
                .ok_or_else(|| invalid("input.owner", text, "write none, host or header:NAME"))?,
        };
        engine.config = hash(&text, &engine, &postings);
        let bus = Bus::checked(&settings)?;
        let http = Http::checked(&settings.http)?;
        Ok(Config { text, fields, owner, engine, banding, postings, bus, http, warnings, file: None })
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

fn posting(language: &LanguageSettings, banding: Banding) -> IndexScheme {
    let (minhash, simhash) = match language.algorithm {
        Algorithm::Minhash | Algorithm::Combined => (Some(banding), SimHashBands::None),
        Algorithm::Simhash128 => (None, SimHashBands::Of128),
        Algorithm::Simhash64 => (None, SimHashBands::Of64),
    };
    IndexScheme { minhash, simhash, samples: Engine::SAMPLES, shortest: Rules::SHORTEST }
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
fn hash(text: &Options, engine: &EngineSettings, postings: &IndexSchemes) -> u32 {
    let Options { max_raw_bytes, max_bytes, skeleton, fold_accents, fold_serbian, fold_han, trust } = text;
    let mut all =
        format!("text {max_raw_bytes} {max_bytes} {skeleton} {fold_accents} {fold_serbian} {fold_han}");
    // Writing to a string cannot fail.
    let _written = write!(all, "; languages {TABLE_VERSION} {}", trust.as_str());
    let languages = engine.languages.iter().map(|(language, own)| (*language, own));
    for (language, own) in std::iter::once((Lang::UND, &engine.default)).chain(languages) {
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
            postings.of(language),
        );
    }
    let review = engine.review.map(|(from, to)| (from.steps(), to.steps()));
    let rest = (
        engine.canonical,
        engine.published_within,
        engine.empty_update,
        engine.max_bucket,
        review,
        engine.max_clock_skew_millis,
        engine.publish_from,
    );
    let _written = write!(all, "; {rest:?}");
    if !engine.constraints.is_empty() {
        let _written = write!(all, "; pairs {:016x}", engine.constraints.hash());
    }
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
        assert_eq!((hindi.threshold, hindi.containment_threshold), (0.6, 0.7));
        assert_eq!(config.rules(Lang::UND).threshold, Rules::default().threshold);
    }

    #[test]
    fn the_settings_of_a_relative_are_those_of_its_home() {
        let config = config("[languages.da]\nthreshold = 0.6").unwrap();
        assert_eq!(config.rules(language::find("no").unwrap().lang).threshold, 0.6);
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
    fn what_the_sample_settings_leave_out_works_as_it_says() {
        let all = include_str!("../../samestory.toml").replace("\n#= ", "\n");
        // A token takes the place of a name and a password.
        let all = all.replace("token = { file = \"/run/secrets/registry-token\" }\n", "");
        let settings: Settings = toml::from_str(&all).unwrap();
        let config = Config::try_from(settings.without_secrets()).unwrap();
        assert!(config.engine.review.is_some() && config.engine.publish_from.is_some());
        assert_eq!(config.engine.languages.len(), 2);
        assert_ne!(config.fields, Fields::default());
    }

    // A check without secrets looked for those of the registry all the same, and failed where they were not mounted.
    // Whichever setting may be kept elsewhere is left alone; which ones may is read off their types.
    #[test]
    fn a_check_without_secrets_looks_for_none() {
        let kept: toml::Value =
            toml::from_str::<toml::Table>("env = \"SAMESTORY_TEST_NO_SUCH\"").unwrap().into();
        let mut keys: Vec<[String; 2]> =
            reference::keys().into_iter().map(|(table, key)| [table, key]).collect();
        keys.push(["kafka", "sasl.password"].map(str::to_owned));
        keys.retain(|key| reference::takes(key, kept.clone()) && key[1] != "fields");
        assert!(keys.len() >= 4, "{keys:?}");
        for key in keys {
            let mut table = reference::nested(&key, kept.clone());
            if let Some(toml::Value::Table(registry)) = table.get_mut("registry") {
                registry.insert("url".into(), "https://registry.example".into());
                if key[1] == "password" {
                    registry.insert("username".into(), "samestory".into());
                }
            }
            let settings = <Settings as serde::Deserialize>::deserialize(table).unwrap();
            let refused = Config::try_from(settings.clone()).unwrap_err().to_string();
            assert!(refused.contains("SAMESTORY_TEST_NO_SUCH"), "{key:?}: {refused}");
            Config::try_from(settings.without_secrets()).unwrap();
        }
    }

    #[test]
    fn the_hash_tells_settings_apart() {
        let hash = |text: &str| config(text).unwrap().engine.config;
        assert_eq!(hash(""), hash("[match]\nthreshold = 0.5"));
        assert_ne!(hash(""), hash("[match]\nthreshold = 0.6"));
        assert_ne!(hash(""), hash("[languages.hi]\nretention = \"forever\""));
        for own in [
            "skeleton = true",
            "fold_accents = true",
            "fold_serbian = true",
            "fold_han = true",
            "max_bytes = 9",
        ] {
            assert_ne!(hash(""), hash(&format!("[text]\n{own}")), "{own}");
        }
        assert_ne!(hash(""), hash("[language]\ntrust = \"declared\""));
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
        assert!(refusal("[languages.no]\n[languages.da]").contains("share the home of no"));
        assert!(refusal("[language]\ntrust = \"header\"").contains("language.trust = header"));
        assert!(refusal("[text]\nmax_bytes = 0").contains("text.max_bytes"));
        assert!(refusal("[text]\nmax_raw_bytes = 1000").contains("text.max_raw_bytes"));
        assert!(refusal("[match]\nalgorithm = \"tlsh\"").contains("match.algorithm = tlsh"));
        assert!(refusal("[match]\nretention = \"7 moons\"").contains("match.retention = 7 moons"));
        assert!(refusal("[match]\nfloor = 0.7").contains("threshold"));
        assert!(refusal("[review]\nbetween = [0.9, 0.1]").contains("review.between = [0.9, 0.1]"));
        assert!(refusal("[clusters]\ncanonical = \"oldest\"").contains("first-seen"));
        // A token of blanks was taken, and no header can carry it.
        for token in ["", " ", "\\t", " padded", "t\u{f6}ken", "a\\nb"] {
            assert!(refusal(&format!("[http]\ntoken = \"{token}\"")).contains("http.token"), "{token:?}");
        }
        assert!(refusal("[http]\nhosts = [\"news.example:80\"]").contains("http.hosts = news.example:80"));
        assert!(refusal("[http]\nlisten = \"everywhere\"").contains("http.listen = everywhere"));
        assert!(refusal("[lsh]\nmax_bucket = 0").contains("lsh.max_bucket"));
        assert!(refusal("[input]\nowner = \"header:\"").contains("input.owner = header:"));
        assert!(refusal("[input.fields]\nbdoy = \"text\"").contains("bdoy"));
        assert!(refusal("[input.fields]\nbody = \"a..b\"").contains("input.fields.body = a..b"));
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        let error = toml::from_str::<Settings>("[match]\ntreshold = 0.5").unwrap_err().to_string();
        assert!(error.contains("treshold") && error.contains("threshold"), "{error}");
    }
}
