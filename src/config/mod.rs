//! Turns settings as written ([`Settings`]) into a [`Config`] that the rest of the program uses without further checks.
//! [`Layers`] merges the file, the environment and `--set`; `TryFrom<Settings>` applies every default and every check. An
//! error names the key, the value and the fix.

mod bus;
mod check;
mod home;
mod http;
mod layers;
pub mod reference;
mod registry;
mod renamed;
mod retry;
mod webhook;
mod written;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::formats::fields::{Field, Fields};
use crate::formats::{Owner, time};
use samestory_engine::engine::compare::Rules;
use samestory_engine::engine::{Constraints, LanguageSettings, Settings as EngineSettings};
use samestory_engine::fingerprint::LANES;
use samestory_engine::index::{BUDGET_BYTES, IndexSchemes, Retention};
use samestory_engine::lsh::{Banding, BandingError};
use samestory_engine::model::{Fraction, Lang};
use samestory_engine::text::{Options, language};
use samestory_engine::{BandChoice, Options as EngineOptions};

use check::{choice, duration, language_settings, shingling};

#[cfg(all(test, feature = "kafka"))]
pub(crate) use bus::ALIASES;
pub use bus::{BatchLimits, Bus, Mode, Secret, StartAt, TopicNames, ValueForm};
pub use home::home;
pub use http::{Http, Peer};
pub use layers::Layers;
pub use registry::{Credentials, EnvelopeArticle, Formats, InputFormat, RegistryConfig, ValueFormat};
pub use renamed::RENAMED;
pub use retry::{Backoff, Retry};
pub use webhook::{DeadLetterTarget, Webhook, WebhookEvent, WebhookFormat, WebhookStart};
pub use written::{
    BatchSettings, ClusterSettings, EnvelopeSettings, HttpSettings, InputSettings, LshSettings,
    MatchSettings, MetricsSettings, OutputSettings, Paths, PlacementSettings, Property, RegistrySettings,
    RetrySettings, ReviewSettings, SecretSource, Settings, ShingleSettings, StageSettings, StoreSettings,
    TextSettings, TopicSettings, WebhookSettings,
};

/// With less memory, a store would do little but freeze postings and flush memtables.
const LEAST_STORE_MEMORY: usize = 64 << 20;

/// Checked settings, with every default filled in.
#[derive(Clone, Debug)]
pub struct Config {
    /// How bodies become normalised text.
    pub text: Options,
    /// Paths of the fields in the crawler's articles.
    pub fields: Fields,
    /// The owner of an id: the only one who may write about it.
    pub owner: Owner,
    /// Settings of the engine, language by language.
    pub engine: EngineSettings,
    /// Bands and rows of every language that does not override the threshold.
    pub banding: Banding,
    /// Index schemes, language by language.
    pub postings: IndexSchemes,
    /// Bytes of memory that all stores of the process share.
    pub store_memory: usize,
    /// Settings of the stage on Kafka.
    pub bus: Bus,
    /// Settings of the HTTP endpoints.
    pub http: Http,
    /// A file of articles that people have judged; the stage measures its verdicts on them.
    pub judged: Option<PathBuf>,
    /// Delivery of verdicts over HTTP, if it is wanted.
    pub webhook: Option<Webhook>,
    /// Warnings to log at startup: deprecated keys, and values that are allowed but may surprise.
    pub warnings: Vec<String>,
    /// The settings file, if there is one.
    pub file: Option<PathBuf>,
    /// The effective settings that verdicts depend on, as TOML; empty if the settings were not loaded from layers.
    pub decisive: String,
}

impl Config {
    /// Everything that a verdict depends on, for the engine.
    pub fn options(&self) -> EngineOptions {
        EngineOptions::with_schemes(self.text.clone(), self.engine.clone(), self.postings.clone())
    }

    /// The rules of a language.
    pub fn rules(&self, lang: Lang) -> &Rules {
        &self.language(lang).rules
    }

    /// The settings of a language: its own, or those of `[match]`.
    pub fn language(&self, lang: Lang) -> &LanguageSettings {
        self.engine.languages.get(&lang).unwrap_or(&self.engine.default)
    }

    /// The longest record that is read, in bytes. JSON needs at most six bytes per character of text (`\uXXXX`), and an article
    /// has other fields beside its text; markup is mostly unescaped.
    pub fn max_record(&self) -> usize {
        self.text.max_bytes.saturating_mul(8).max(self.text.max_raw_bytes.saturating_mul(2))
    }

    /// The settings of a file run: it remembers articles forever unless `retention` is given (`match.retention` is for the bus),
    /// and follows the pairs that an editor has judged.
    ///
    /// # Errors
    /// `retention` is not a duration.
    pub fn for_files(
        &self,
        retention: Option<&str>,
        constraints: Constraints,
    ) -> Result<Config, ConfigError> {
        let retention =
            retention.map_or(Ok(Retention::Forever), |text| check::retention("--retention", text))?;
        let mut config = self.clone();
        let languages = config.engine.languages.values_mut();
        languages.chain([&mut config.engine.default]).for_each(|own| own.retention = retention);
        config.engine.constraints = Arc::new(constraints);
        config.engine.config = config.options().hash();
        Ok(config)
    }

    /// Loads `file` or the file that `SAMESTORY_CONFIG` names, then the environment.
    ///
    /// # Errors
    /// A source or a value is invalid; the error names it.
    pub fn load(file: Option<&Path>) -> Result<Config, ConfigError> {
        Config::load_with(file, &[])
    }

    /// As [`Config::load`], with `--set` arguments (`key=value`) over both.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load_with(file: Option<&Path>, set: &[String]) -> Result<Config, ConfigError> {
        let mut layers = Layers::read(file, set)?;
        let config: Config = layers.settings()?.try_into()?;
        layers.warnings.extend(config.warnings);
        Ok(Config { decisive: layers.decisive(), file: layers.file, warnings: layers.warnings, ..config })
    }
}

impl TryFrom<Settings> for Config {
    type Error = ConfigError;

    fn try_from(settings: Settings) -> Result<Config, ConfigError> {
        let defaults = Options::default();
        let written = &settings.text;
        let max_bytes = written.max_bytes.unwrap_or(defaults.max_bytes);
        let mut text = Options {
            max_raw_bytes: written.max_raw_bytes.unwrap_or(defaults.max_raw_bytes.max(max_bytes)),
            max_bytes,
            skeleton: written.skeleton.unwrap_or(defaults.skeleton),
            fold_accents: written.fold_accents.unwrap_or(defaults.fold_accents),
            fold_serbian: written.fold_serbian.unwrap_or(defaults.fold_serbian),
            fold_han: written.fold_han.unwrap_or(defaults.fold_han),
            trust: choice("language.trust", settings.language.trust.as_deref(), defaults.trust)?,
            ..defaults
        };
        if text.max_bytes == 0 {
            return Err(invalid("text.max_bytes", 0, "use a number of bytes, at least 1"));
        }
        if text.max_raw_bytes < text.max_bytes {
            let fix = "use at least text.max_bytes: a body is never shorter than its text";
            return Err(invalid("text.max_raw_bytes", text.max_raw_bytes, fix));
        }
        let mut warnings = Vec::new();
        let default = language_settings("match", &settings.matching, None, &mut warnings)?;
        if let Some(shingle) = &settings.matching.shingle {
            text.shinglings.set_all(&shingling("match", shingle)?);
        }
        let mut engine = EngineSettings { default, ..EngineSettings::default() };
        let mut written = BTreeMap::new();
        for (code, own) in &settings.languages {
            let table = format!("languages.{code}");
            let known = language::find(code)
                .ok_or_else(|| invalid(&table, code, "use a code of `samestory languages`"))?;
            let home = known.home();
            if let Some(other) = written.insert(home, code) {
                let why = format!("{code} and {other} share the home of {home}: write one table for both");
                return Err(ConfigError::Rejected { origin: table, why });
            }
            if let Some(shingle) = &own.shingle {
                text.shinglings.set(known, shingling(&table, shingle)?);
            }
            let base = engine.languages.get(&home).unwrap_or(&default);
            let own = language_settings(&table, own, Some(base), &mut warnings)?;
            engine.languages.insert(home, own);
        }
        let canonical = settings.clusters.canonical.as_deref();
        engine.canonical = choice("clusters.canonical", canonical, engine.canonical)?;
        engine.published_within = match settings.clusters.published_within.as_deref() {
            None => engine.published_within,
            Some(text) => check::retention("clusters.published_within", text)?,
        };
        engine.max_bucket = match settings.lsh.max_bucket {
            Some(0) => return Err(invalid("lsh.max_bucket", 0, "use a number of documents, at least 1")),
            max_bucket => max_bucket.unwrap_or(engine.max_bucket),
        };
        if let Some([from, to]) = settings.review.between {
            if !(0.0 <= from && from <= to && to <= 1.0) {
                let fix = "use two numbers from 0 to 1, the smaller first";
                return Err(invalid("review.between", format!("[{from}, {to}]"), fix));
            }
            engine.review = Some((Fraction::new(from), Fraction::new(to)));
        }
        if let Some(max_clock_skew) = &settings.input.max_clock_skew {
            engine.max_clock_skew_millis = duration("input.max_clock_skew", max_clock_skew)?;
        }
        let empty_update = settings.input.empty_update.as_deref();
        engine.empty_update = choice("input.empty_update", empty_update, engine.empty_update)?;
        if let Some(from) = &settings.output.publish_from {
            let fix = "use a time such as 2026-03-02T06:00:00Z";
            let from = time::parse(from).ok_or_else(|| invalid("output.publish_from", from, fix))?;
            engine.publish_from = Some(from);
        }
        engine.evidence = settings.output.evidence.unwrap_or(engine.evidence);
        let bands = bands(&settings.lsh)?;
        let banding = bands.for_threshold(default.rules.threshold)?;
        let options = EngineOptions::new(text.clone(), engine, bands)?;
        let fields = fields(&settings.input)?;
        let owner = match settings.input.owner.as_deref() {
            None => Owner::default(),
            Some(text) => Owner::parse(text)
                .ok_or_else(|| invalid("input.owner", text, "write none, host or header:NAME"))?,
        };
        let config = options.hash();
        let EngineOptions { settings: engine, schemes, .. } = options;
        let engine = EngineSettings { config, ..engine };
        let store_memory = settings.store.memory.unwrap_or(BUDGET_BYTES);
        if store_memory < LEAST_STORE_MEMORY {
            let fix = format!("use a number of bytes, at least {LEAST_STORE_MEMORY}");
            return Err(invalid("store.memory", store_memory, fix));
        }
        let bus = Bus::checked(&settings)?;
        let http = Http::checked(&settings.http)?;
        let webhook = Webhook::checked(&settings.webhook)?;
        Ok(Config {
            text,
            fields,
            owner,
            engine,
            banding,
            postings: schemes,
            store_memory,
            bus,
            http,
            judged: settings.metrics.judged,
            webhook,
            warnings,
            file: None,
            decisive: String::new(),
        })
    }
}

/// The bands as written, or the fewest that reach the recall.
fn bands(written: &LshSettings) -> Result<BandChoice, ConfigError> {
    match (written.bands, written.rows) {
        (Some(bands), Some(rows)) => Ok(BandChoice::Fixed(Banding::new(bands, rows, LANES)?)),
        (None, None) => Ok(BandChoice::Recall(written.recall.unwrap_or(EngineOptions::BAND_RECALL))),
        (Some(bands), None) => Err(invalid("lsh.bands", bands, "set lsh.rows too, or neither")),
        (None, Some(rows)) => Err(invalid("lsh.rows", rows, "set lsh.bands too, or neither")),
    }
}

fn fields(input: &InputSettings) -> Result<Fields, ConfigError> {
    let mut fields = Fields::default();
    for (name, paths) in &input.fields {
        let key = format!("input.fields.{name}");
        let field = Field::from_name(name).ok_or_else(|| {
            invalid("input.fields", name, "use a field of [input.fields] in samestory.toml")
        })?;
        for path in paths.iter() {
            let fix = "use a path such as text, content.text or paragraphs[]";
            fields = fields.with(field, path).map_err(|_| invalid(&key, path, fix))?;
        }
    }
    Ok(fields)
}

/// A fault that a test injects through an environment variable.
#[cfg(feature = "faults")]
pub(crate) fn fault(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

fn invalid(key: &str, value: impl ToString, fix: impl Into<Cow<'static, str>>) -> ConfigError {
    ConfigError::Value { key: key.to_owned(), value: value.to_string(), fix: fix.into() }
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read settings from {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        error: std::io::Error,
    },
    /// A source cannot be parsed, or contradicts itself.
    #[error("{origin}: {why}")]
    Rejected {
        /// The file, environment variable, argument or table.
        origin: String,
        /// The line, if it is known, and what is wrong.
        why: String,
    },
    /// A value cannot be used.
    #[error("{key} = {value}: {fix}")]
    Value {
        /// The full key.
        key: String,
        /// The value as written.
        value: String,
        /// The value to write instead.
        fix: Cow<'static, str>,
    },
    /// Bands and rows do not fit the signature.
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
    fn empty_settings_are_the_defaults() {
        let config = config("").unwrap();
        assert_eq!(*config.rules(Lang::UND), Rules::default());
        assert!(config.banding.collision(Rules::default().threshold) >= EngineOptions::BAND_RECALL);
    }

    #[test]
    fn a_language_inherits_what_it_does_not_override() {
        let config = config("[match]\ncontainment_threshold = 0.7\n[languages.hi]\nthreshold = 0.6").unwrap();
        let hindi = config.rules(language::find("hi").unwrap().lang);
        assert_eq!((hindi.threshold, hindi.containment_threshold), (0.6, 0.7));
        assert_eq!(config.rules(Lang::UND).threshold, Rules::default().threshold);
    }

    #[test]
    fn languages_that_share_a_home_share_settings() {
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
    fn the_examples_in_the_sample_settings_are_valid() {
        let all = include_str!("../../samestory.toml").replace("\n#= ", "\n");
        // A token and a password exclude each other.
        let all = all.replace("token = { file = \"/run/secrets/registry-token\" }\n", "");
        let settings: Settings = toml::from_str(&all).unwrap();
        let config = Config::try_from(settings.without_secrets()).unwrap();
        assert!(config.engine.review.is_some() && config.engine.publish_from.is_some());
        assert_eq!(config.engine.languages.len(), 3);
        assert_ne!(config.fields, Fields::default());
    }

    // `config check --without-secrets` resolved the registry's secrets all the same, and failed where they were not mounted.
    // The test finds the settings that take a reference by their types, so a new one is covered.
    #[test]
    fn a_check_without_secrets_resolves_none() {
        let secret: toml::Value =
            toml::from_str::<toml::Table>("env = \"SAMESTORY_TEST_NO_SUCH\"").unwrap().into();
        let mut keys: Vec<[String; 2]> =
            reference::keys().into_iter().map(|(table, key)| [table, key]).collect();
        keys.push(["kafka", "sasl.password"].map(str::to_owned));
        keys.retain(|key| reference::takes(key, secret.clone()) && key[1] != "fields");
        assert!(keys.len() >= 4, "{keys:?}");
        for key in keys {
            let mut table = reference::nested(&key, secret.clone());
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

    // The library's verdicts carried the hash 0, and its defaults were a second copy of those of `samestory file`.
    #[test]
    fn a_file_run_without_settings_judges_as_the_library_does_by_default() {
        let files = config("").unwrap().for_files(None, Constraints::default()).unwrap();
        let library = EngineOptions::default();
        assert_eq!(files.options().hash(), library.hash());
        assert_eq!(files.engine.config, library.hash());
        assert_eq!(files.postings, library.schemes);
    }

    #[test]
    fn different_settings_have_different_hashes() {
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

    // Persisted with every verdict: a new value means that equal settings look different to consumers.
    #[test]
    fn the_hash_of_equal_settings_does_not_depend_on_key_names() {
        let hash = |text: &str| config(text).unwrap().engine.config;
        assert_eq!(format!("{:08x}", hash("")), "5dfdc1d2");
        for (old, new) in [
            ("[match]\nfloor = 0.2", "[match]\ncluster_threshold = 0.2"),
            ("[match]\ncoverage = 0.7", "[match]\ncontainment_threshold = 0.7"),
            ("[input]\nskew = \"2h\"", "[input]\nmax_clock_skew = \"2h\""),
            ("[languages.hi]\nfloor = 0.2", "[languages.hi]\ncluster_threshold = 0.2"),
        ] {
            assert_eq!(hash(old), hash(new), "{old}");
            assert_ne!(hash(old), hash(""), "{old}");
        }
    }

    #[test]
    fn the_shingles_of_a_language_are_words_characters_or_those_of_a_tokeniser() {
        let shingling = |text: &str, code: &str| {
            let home = language::find(code).unwrap().home();
            config(text).unwrap().text.shinglings.of(home).map(|own| own.to_string())
        };
        let own = "[match.shingle]\ncharacters = 5\n[languages.da]\nshingle = { words = 2 }\n[languages.fr]\nshingle = { words = 3 }\n\
                   [languages.hi]\nshingle = { tokenizer = \"shingle-k=4/grapheme-uax29\" }";
        for (code, expected) in [
            ("en", Some("shingle-k=5/characters")),
            ("und", Some("shingle-k=5/characters")),
            ("no", Some("shingle-k=2/words")),
            ("hi", Some("shingle-k=4/\"grapheme-uax29\"")),
            // As the language table cuts them.
            ("fr", None),
            ("ja", None),
        ] {
            assert_eq!(shingling(own, code).as_deref(), expected, "{code}");
        }
    }

    // Fingerprints of two segmentations cannot be compared, and nothing but the hash tells them apart.
    #[test]
    fn another_segmentation_changes_both_hashes_and_the_usual_one_neither() {
        let hashes = |text: &str| {
            let config = config(text).unwrap();
            (config.engine.config, samestory_engine::fingerprint::config_hash(&config.text))
        };
        let usual = hashes("");
        // A table of its own is part of the verdicts' hash, even an empty one.
        assert_eq!(hashes("[languages.en]\nshingle = { words = 3 }"), hashes("[languages.en]"));
        assert_eq!(hashes("[languages.ja]\nshingle = { characters = 5 }"), hashes("[languages.ja]"));
        assert_eq!(hashes("[languages.en]\nshingle = { words = 3 }").1, usual.1);
        let mut seen = vec![usual];
        for own in [
            "[languages.en]\nshingle = { characters = 5 }",
            "[languages.en]\nshingle = { characters = 6 }",
            "[languages.fr]\nshingle = { characters = 5 }",
            "[languages.en]\nshingle = { tokenizer = \"word-uax29\" }",
            "[match]\nshingle = { characters = 5 }",
        ] {
            let found = hashes(own);
            assert!(seen.iter().all(|(all, text)| *all != found.0 && *text != found.1), "{own}");
            seen.push(found);
        }
    }

    #[test]
    fn a_segmentation_that_is_not_in_this_build_is_refused_by_name() {
        assert_eq!(
            refusal("[languages.en]\nshingle = { characters = 0 }"),
            "languages.en.shingle = { characters = 0 }: 0 tokens per shingle; use 1 to 64"
        );
        let unknown = refusal("[match]\nshingle = { tokenizer = \"words\" }");
        assert!(unknown.starts_with("match.shingle = { tokenizer = \"words\" }: "), "{unknown}");
        assert!(unknown.contains("word-uax29") && unknown.contains("grapheme-uax29"), "{unknown}");
        let jieba = "[languages.zh]\nshingle = { tokenizer = \"shingle-k=2/cjk-jieba\" }";
        if cfg!(feature = "jieba") {
            let chinese = language::find("zh").unwrap().lang;
            assert!(config(jieba).unwrap().text.shinglings.of(chinese).is_some());
        } else {
            let refused = refusal(jieba);
            assert!(
                refused.contains("languages.zh.shingle") && refused.contains("feature jieba"),
                "{refused}"
            );
        }
        let both = toml::from_str::<Settings>("[match]\nshingle = { words = 3, characters = 5 }");
        assert!(both.is_err());
    }

    #[test]
    fn a_lower_threshold_gets_bands_that_reach_the_recall() {
        let config = config("[languages.hi]\nthreshold = 0.3").unwrap();
        let hindi = config.postings.for_language(language::find("hi").unwrap().lang).minhash.unwrap();
        assert!(
            hindi.collision(0.3) >= EngineOptions::BAND_RECALL
                && config.banding.collision(0.3) < EngineOptions::BAND_RECALL
        );
    }

    #[test]
    fn a_distance_beyond_the_guarantee_of_the_bands_gives_a_warning() {
        assert_eq!(config("[match]\nalgorithm = \"simhash128\"").unwrap().warnings, [""; 0]);
        let config = config("[match]\nalgorithm = \"simhash64\"\nhamming = 6").unwrap();
        assert!(config.warnings[0].contains("match.hamming = 6"), "{:?}", config.warnings);
    }

    #[test]
    fn errors_name_key_value_and_fix() {
        assert_eq!(
            refusal("[match]\nthreshold = 1.2"),
            "match.threshold = 1.2: use a number above 0 and below 1"
        );
        assert!(refusal("[lsh]\nbands = 32\nrows = 5").contains("32 × 5"));
        assert!(refusal("[lsh]\nbands = 32").contains("lsh.rows"));
        assert!(refusal("[languages.klingon]").contains("samestory languages"));
        assert!(refusal("[languages.no]\n[languages.da]").contains("share the home of no"));
        assert!(refusal("[language]\ntrust = \"header\"").contains("language.trust = header"));
        assert!(refusal("[text]\nmax_bytes = 0").contains("text.max_bytes"));
        assert!(refusal("[text]\nmax_raw_bytes = 1000").contains("text.max_raw_bytes"));
        assert_eq!(
            refusal("[match]\nalgorithm = \"tlsh\""),
            "match.algorithm = tlsh: write minhash, simhash128, simhash64 or combined"
        );
        assert_eq!(
            refusal("[input]\nempty_update = \"drop\""),
            "input.empty_update = drop: write keep or refuse"
        );
        assert!(refusal("[match]\nretention = \"7 moons\"").contains("match.retention = 7 moons"));
        assert!(refusal("[match]\ncluster_threshold = 0.7").contains("threshold"));
        assert!(refusal("[review]\nbetween = [0.9, 0.1]").contains("review.between = [0.9, 0.1]"));
        assert!(refusal("[clusters]\ncanonical = \"oldest\"").contains("first-seen"));
        // A token of blanks was accepted, although no header can carry it.
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
