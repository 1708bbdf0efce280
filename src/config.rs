//! Settings, as written → [`Config`], as usable.
//!
//! Every default and every check is here. A refusal names the key, the value and what to do.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::detect::compare::Rules;
use crate::fingerprint::LANES;
use crate::lsh::{Banding, BandingError};
use crate::model::Lang;
use crate::text::{Options, language};

/// The file, exactly as written. Unknown keys are refused.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// `[text]`: from article to canonical text.
    pub text: TextSettings,
    /// `[match]`: when two texts count as the same.
    #[serde(rename = "match")]
    pub matching: MatchSettings,
    /// `[lsh]`: which texts are looked at together.
    pub lsh: LshSettings,
    /// `[languages.<code>]`: what differs for a language.
    pub languages: BTreeMap<String, MatchSettings>,
}

/// `[text]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TextSettings {
    /// The longest text that is looked at, in bytes.
    pub max_bytes: Option<usize>,
    /// Merge look-alike characters (UTS #39).
    pub skeleton: Option<bool>,
}

/// `[match]` and `[languages.<code>]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MatchSettings {
    /// Similarity from which on texts are near-duplicates.
    pub threshold: Option<f64>,
    /// Share of a text that must be in another to be a part of it.
    pub coverage: Option<f64>,
    /// Texts with fewer tokens are compared word for word only.
    pub min_tokens: Option<u32>,
    /// Distinct numbers both texts must have for the numerals guard to speak.
    pub numerals: Option<u32>,
    /// Share of numbers below which the guard calls it the same template.
    pub numerals_share: Option<f64>,
}

/// `[lsh]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LshSettings {
    /// Share of pairs at the threshold that must be found.
    pub recall: Option<f64>,
    /// Bands, if chosen by hand.
    pub bands: Option<u16>,
    /// Rows, if chosen by hand.
    pub rows: Option<u16>,
}

/// Ready values: nothing later can find them wrong.
#[derive(Clone, Debug)]
pub struct Config {
    /// From article to canonical text.
    pub text: Options,
    /// When two texts count as the same, unless the language says otherwise.
    rules: Rules,
    languages: BTreeMap<Lang, Rules>,
    /// Which texts are looked at together.
    pub banding: Banding,
}

impl Config {
    /// The rules for a language.
    pub fn rules(&self, lang: Lang) -> &Rules {
        self.languages.get(&lang).unwrap_or(&self.rules)
    }

    /// Reads `file`, or the file named by `SAMESTORY_CONFIG`, or takes the defaults.
    ///
    /// # Errors
    /// Names the file and what is wrong with it; correct that and start again.
    pub fn load(file: Option<&Path>) -> Result<Config, ConfigError> {
        let named =
            file.map(Path::to_path_buf).or_else(|| std::env::var_os("SAMESTORY_CONFIG").map(PathBuf::from));
        let Some(path) = named else {
            return Settings::default().try_into();
        };
        let content = fs::read_to_string(&path)
            .map_err(|error| ConfigError::Unreadable { path: path.clone(), error })?;
        let settings: Settings =
            toml::from_str(&content).map_err(|error| ConfigError::Syntax { path, error: Box::new(error) })?;
        settings.try_into()
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
        let rules = rules("match", &settings.matching, Rules::default())?;
        let mut languages = BTreeMap::new();
        for (code, own) in &settings.languages {
            let table = format!("languages.{code}");
            let known = language::find(code)
                .ok_or_else(|| invalid(&table, code, "take a code that `samestory languages` lists"))?;
            languages.insert(known.lang, self::rules(&table, own, rules)?);
        }
        let banding = match (settings.lsh.bands, settings.lsh.rows) {
            (Some(bands), Some(rows)) => Banding::new(bands, rows, LANES)?,
            (None, None) => Banding::for_recall(rules.threshold, settings.lsh.recall.unwrap_or(0.99), LANES)?,
            (Some(bands), None) => return Err(invalid("lsh.bands", bands, "give lsh.rows too, or neither")),
            (None, Some(rows)) => return Err(invalid("lsh.rows", rows, "give lsh.bands too, or neither")),
        };
        Ok(Config { text, rules, languages, banding })
    }
}

fn rules(table: &str, own: &MatchSettings, base: Rules) -> Result<Rules, ConfigError> {
    let share = |name: &str, value: Option<f64>, default: f64| match value {
        None => Ok(default),
        Some(value) if value > 0.0 && value < 1.0 => Ok(value),
        Some(value) => Err(invalid(&format!("{table}.{name}"), value, "give a share above 0 and below 1")),
    };
    Ok(Rules {
        threshold: share("threshold", own.threshold, base.threshold)?,
        coverage: share("coverage", own.coverage, base.coverage)?,
        numerals_share: share("numerals_share", own.numerals_share, base.numerals_share)?,
        min_tokens: own.min_tokens.unwrap_or(base.min_tokens),
        numerals: own.numerals.unwrap_or(base.numerals),
    })
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
    /// The file is not what it should be; the parser says where.
    #[error("settings in {}", path.display())]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Line, column, and what was expected there.
        #[source]
        error: Box<toml::de::Error>,
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

    fn config(text: &str) -> Result<Config, ConfigError> {
        toml::from_str::<Settings>(text).unwrap().try_into()
    }

    fn refusal(text: &str) -> String {
        config(text).unwrap_err().to_string()
    }

    #[test]
    fn nothing_written_is_the_defaults() {
        let config = config("").unwrap();
        assert_eq!(*config.rules(Lang::UND), Rules::default());
        assert!(config.banding.collision(Rules::default().threshold) >= 0.99);
    }

    #[test]
    fn a_language_differs_only_where_it_says_so() {
        let config = config("[match]\ncoverage = 0.7\n[languages.hi]\nthreshold = 0.6").unwrap();
        let hindi = config.rules(language::find("hi").unwrap().lang);
        assert_eq!((hindi.threshold, hindi.coverage), (0.6, 0.7));
        assert_eq!(config.rules(Lang::UND).threshold, Rules::default().threshold);
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
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        let error = toml::from_str::<Settings>("[match]\ntreshold = 0.5").unwrap_err().to_string();
        assert!(error.contains("treshold") && error.contains("threshold"), "{error}");
    }
}
