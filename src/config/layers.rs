//! Merges the sources of settings: the file, then environment variables, then `--set`; a later source overrides an earlier
//! one. Each value is parsed as [`Settings`] when it is read, so an error names the file and line, the variable or the argument
//! that has it. No error repeats a value that may be secret.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Table, Value};

use super::renamed::{RENAMED, SourceKeys, rename_keys};
use super::{ConfigError, Settings, reference};

/// Prefix of environment variables that are settings. It has two underscores because Kubernetes generates variables with
/// one from the names of services.
const PREFIX: &str = "SAMESTORY__";

/// The settings of all sources, merged.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// The settings file, if there is one.
    pub file: Option<PathBuf>,
    /// Names of the environment variables that are settings.
    pub environment: Vec<String>,
    /// Keys that `--set` sets.
    pub set: Vec<String>,
    /// The merged tables, under the current names of all keys.
    pub table: Table,
    /// One warning for each deprecated key.
    pub warnings: Vec<String>,
}

impl Layers {
    /// Reads `file` or the file that `SAMESTORY_CONFIG` names, then the environment, then `set` (`key=value`).
    ///
    /// # Errors
    /// A source cannot be read or parsed; the error names it.
    pub fn read(file: Option<&Path>, set: &[String]) -> Result<Layers, ConfigError> {
        let named = std::env::var_os("SAMESTORY_CONFIG").map(PathBuf::from);
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let environment = environment.filter(|(name, _)| name.starts_with(PREFIX)).collect();
        Layers::merge(file.map(Path::to_path_buf).or(named), environment, set)
    }

    fn merge(
        file: Option<PathBuf>,
        mut environment: Vec<(String, String)>,
        set: &[String],
    ) -> Result<Layers, ConfigError> {
        let mut layers = Layers { file, ..Layers::default() };
        if let Some(path) = &layers.file {
            let content = fs::read_to_string(path)
                .map_err(|error| ConfigError::Unreadable { path: path.clone(), error })?;
            let origin = format!("settings in {}", path.display());
            layers.table =
                toml::from_str(&content).map_err(|error| rejected(origin.clone(), &error, Some(&content)))?;
            rename_keys(&mut layers.table, &origin, &mut layers.warnings)?;
            // Parsed from the text once more: only these errors have a line number.
            toml::from_str::<Settings>(&content).map_err(|error| rejected(origin, &error, Some(&content)))?;
        }
        environment.sort();
        let mut keys = SourceKeys::default();
        for (name, text) in environment {
            let mut path: Vec<String> =
                name[PREFIX.len()..].split("__").map(str::to_ascii_lowercase).collect();
            if path[0] == "kafka" {
                let key = path.split_off(1).join("_").replace('_', ".");
                path.push(key);
            }
            let origin = format!("environment variable {name}");
            let path = keys.resolve(path, &origin, &mut layers.warnings)?;
            layers.set_value(&path, &text, origin)?;
            layers.environment.push(name);
        }
        let mut keys = SourceKeys::default();
        for argument in set {
            let origin = format!("--set {}", argument.split('=').next().unwrap_or_default());
            let Some((key, text)) = argument.split_once('=') else {
                return Err(ConfigError::Rejected { origin, why: "write it as key=value".into() });
            };
            let path: Vec<String> = match key.trim().strip_prefix("kafka.") {
                Some(property) => vec!["kafka".into(), property.trim_matches('"').into()],
                None => key.trim().split('.').map(str::to_owned).collect(),
            };
            if is_secret(&path) && !text.starts_with('{') {
                let why = "everyone on this machine can read a command line; use an environment variable or \
                           { file = … }";
                return Err(ConfigError::Rejected { origin, why: why.into() });
            }
            let path = keys.resolve(path, &origin, &mut layers.warnings)?;
            layers.set_value(&path, text, origin)?;
            layers.set.push(key.trim().to_owned());
        }
        Ok(layers)
    }

    /// Sets one value over the earlier ones.
    fn set_value(&mut self, path: &[String], text: &str, origin: String) -> Result<(), ConfigError> {
        let one = reference::nested(path, value(path, text));
        Settings::deserialize(one.clone()).map_err(|error| rejected(origin, &error, None))?;
        merge_tables(&mut self.table, one);
        Ok(())
    }

    /// The merged tables as settings.
    ///
    /// # Errors
    /// The sources are valid alone but not together.
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        Settings::deserialize(self.table.clone()).map_err(|error| rejected("settings".into(), &error, None))
    }

    /// The effective settings as TOML, defaults included. Values that may be secret are replaced by `…`.
    pub fn redacted(&self) -> String {
        toml::to_string(&self.effective()).unwrap_or_default()
    }

    /// The effective settings as TOML, of the tables that verdicts depend on. None of them holds a secret.
    pub fn decisive(&self) -> String {
        const TABLES: &[&str] =
            &["text", "language", "match", "languages", "lsh", "clusters", "review", "input", "output"];
        let mut all = self.effective();
        all.retain(|table, _| TABLES.contains(&table));
        toml::to_string(&all).unwrap_or_default()
    }

    fn effective(&self) -> Table {
        let mut all = Table::new();
        for setting in reference::settings().iter().filter(|setting| setting.is_default) {
            let path = setting.table.split('.').chain([setting.key]);
            let path: Vec<String> = match setting.table {
                "kafka" => vec!["kafka".into(), setting.key.into()],
                _ => path.map(str::to_owned).collect(),
            };
            merge_tables(&mut all, reference::nested(&path, setting.value.clone()));
        }
        merge_tables(&mut all, self.table.clone());
        for (table, entries) in &mut all {
            for (key, value) in entries.as_table_mut().into_iter().flatten() {
                // A table says where the secret is kept, which is not secret.
                if is_secret(&[table.clone(), key.clone()]) && !value.is_table() {
                    *value = Value::String("…".into());
                }
            }
        }
        all
    }
}

/// True if the value of a setting must not be shown.
fn is_secret(path: &[String]) -> bool {
    match path {
        [table, key] if table == "kafka" => !is_harmless(key),
        [table, key] => matches!(
            (table.as_str(), key.as_str()),
            ("http", "token") | ("registry", "password" | "token") | ("webhook", "url" | "secret")
        ),
        _ => false,
    }
}

/// True if the value of a librdkafka property may be shown. Every property that is not listed may be a secret.
fn is_harmless(key: &str) -> bool {
    const SHOWN: &[&str] = &[
        "bootstrap.servers",
        "metadata.broker.list",
        "security.protocol",
        "sasl.mechanism",
        "sasl.mechanisms",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.endpoint.identification.algorithm",
        "client.rack",
        "compression.type",
    ];
    SHOWN.contains(&key) || [".ms", ".bytes", ".kbytes", ".messages"].iter().any(|end| key.ends_with(end))
}

/// Parses a value from a variable or an argument, where strings need no quotes.
fn value(path: &[String], text: &str) -> Value {
    let parsed = || toml::from_str::<Table>(&format!("v = {text}")).ok()?.remove("v");
    let is_text = path.first().is_some_and(|table| table == "kafka")
        || is_secret(path)
        || reference::takes(path, Value::String("text".into()));
    let quoted = text.starts_with(['[', '{', '"', '\'']);
    let value = if is_text && !quoted { None } else { parsed() };
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

fn merge_tables(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            // `{ env = … }` replaces `{ file = … }`: merging the two would give a secret two sources. Nor does a language have
            // shingles of words and of characters.
            (Some(Value::Table(below)), Value::Table(above))
                if !is_secret_source(&above) && key != "shingle" =>
            {
                merge_tables(below, above);
            }
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

fn is_secret_source(table: &Table) -> bool {
    table.len() == 1
        && (table.get("env").is_some_and(Value::is_str) || table.get("file").is_some_and(Value::is_str))
}

/// Describes a parse error by its line number and message. The parser's full text quotes the line, which may hold a secret.
fn rejected(origin: String, error: &toml::de::Error, content: Option<&str>) -> ConfigError {
    let line = content.zip(error.span()).map(|(content, span)| {
        let before = &content.as_bytes()[..span.start.min(content.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    });
    let line = line.map_or_else(String::new, |line| format!("line {line}: "));
    let message = without_old_keys(error.message());
    let hint = nearest(&message).map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
    ConfigError::Rejected { origin, why: format!("{line}{message}{hint}") }
}

/// serde lists aliases among the keys that it expects; nobody should learn an old key from an error.
fn without_old_keys(message: &str) -> String {
    let Some((unknown, expected)) = message.split_once(", expected ") else { return message.to_owned() };
    let expected = RENAMED
        .iter()
        .fold(expected.to_owned(), |expected, (_, old, _)| expected.replace(&format!(", `{old}`"), ""));
    format!("{unknown}, expected {expected}")
}

/// The known name that is closest to the unknown one in serde's message.
fn nearest(message: &str) -> Option<&str> {
    let mut names = message.strip_prefix("unknown field `")?.split('`');
    let unknown = names.next()?;
    let known = names.skip(1).step_by(2);
    let (far, name) = known.map(|name| (strsim::levenshtein(unknown, name), name)).min()?;
    (far <= 2 + unknown.len() / 4).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(file: &str, environment: &[(&str, &str)], set: &[&str]) -> Result<Layers, ConfigError> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("samestory-layers-{}-{number}.toml", std::process::id()));
        fs::write(&path, file).unwrap();
        let environment = environment.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
        let layers = Layers::merge(Some(path.clone()), environment.collect(), &set);
        fs::remove_file(path).unwrap();
        layers
    }

    fn refusal(file: &str, environment: &[(&str, &str)], set: &[&str]) -> String {
        merged(file, environment, set).unwrap_err().to_string()
    }

    #[test]
    fn the_command_line_overrides_the_environment_and_that_the_file() {
        let file = "[match]\nthreshold = 0.3\ncontainment_threshold = 0.3\ncluster_threshold = 0.3\n[kafka]\n\"bootstrap.servers\" = \"file\"";
        let environment = [
            ("SAMESTORY__MATCH__CONTAINMENT_THRESHOLD", "0.4"),
            ("SAMESTORY__MATCH__THRESHOLD", "0.4"),
            ("SAMESTORY__KAFKA__BOOTSTRAP_SERVERS", "env:9092"),
            ("SAMESTORY__LANGUAGES__HI__RETENTION", "30d"),
            ("SAMESTORY__STAGE__INSTANCE", "7"),
            ("SAMESTORY__STAGE__LANGUAGES", "[\"en\", \"hi\"]"),
            ("SAMESTORY__INPUT__FIELDS__BODY", "content.text"),
        ];
        let set = ["match.threshold=0.5", "kafka.client.rack=r1", "input.fields.title=[\"a\", \"b\"]"];
        let settings = merged(file, &environment, &set).unwrap().settings().unwrap();
        let matching = &settings.matching;
        assert_eq!(
            (matching.threshold, matching.containment_threshold, matching.cluster_threshold),
            (Some(0.5), Some(0.4), Some(0.3))
        );
        assert_eq!(settings.languages["hi"].retention.as_deref(), Some("30d"));
        // A string setting stays a string even if its value looks like a number.
        assert_eq!(settings.stage.instance.as_deref(), Some("7"));
        assert_eq!(settings.stage.languages.as_deref(), Some(&["en".to_owned(), "hi".to_owned()][..]));
        assert_eq!(settings.input.fields["title"].iter().collect::<Vec<_>>(), ["a", "b"]);
        let shown = merged(file, &environment, &set).unwrap().redacted();
        for part in [
            "threshold = 0.5",
            "containment_threshold = 0.4",
            "\"bootstrap.servers\" = \"env:9092\"",
            "rows",
            "workers = 1",
        ] {
            assert_eq!(shown.contains(part), part != "rows", "{part}: {shown}");
        }
    }

    // Merged, the two tables were one with two keys, which is refused.
    #[test]
    fn shingles_replace_those_of_an_earlier_source() {
        use crate::config::ShingleSettings;

        let file = "[languages.en]\nshingle = { characters = 5 }\nretention = \"30d\"";
        let settings = merged(file, &[], &["languages.en.shingle={words=4}"]).unwrap().settings().unwrap();
        let english = &settings.languages["en"];
        assert!(matches!(english.shingle, Some(ShingleSettings::Words(4))), "{english:?}");
        assert_eq!(english.retention.as_deref(), Some("30d"));
    }

    #[test]
    fn an_error_names_the_source_and_the_nearest_key() {
        let refused = refusal("[match]\n\ntreshold = 0.5", &[], &[]);
        assert!(refused.contains("line 3") && refused.contains("did you mean `threshold`?"), "{refused}");
        let refused = refusal("", &[("SAMESTORY__HTTP__LISTN", "x")], &[]);
        assert!(refused.contains("SAMESTORY__HTTP__LISTN") && refused.contains("`listen`"), "{refused}");
        let refused = refusal("", &[("SAMESTORY__MTACH__THRESHOLD", "1")], &[]);
        assert!(refused.contains("did you mean `match`?"), "{refused}");
        let refused = refusal("", &[], &["stage.worker=3"]);
        assert!(refused.contains("--set stage.worker") && refused.contains("`workers`"), "{refused}");
        let refused = refusal("", &[], &["match.threshold=high"]);
        assert!(refused.contains("--set match.threshold") && refused.contains("f64"), "{refused}");
        assert!(refusal("", &[], &["nonsense"]).contains("key=value"));
        assert!(!refusal("[match]\nzzzzzzzzzzzz = 1", &[], &[]).contains("did you mean"));
    }

    #[test]
    fn an_error_does_not_repeat_a_secret() {
        for file in ["[kafka]\n\"sasl.password\" = \"hunter2", "[kafka]\n\"sasl.password\" = [\"hunter2\"]"] {
            let refused = refusal(file, &[], &[]);
            assert!(!refused.contains("hunter2") && refused.contains("line 2"), "{refused}");
        }
        let refused = refusal("", &[], &["kafka.sasl.password=hunter2"]);
        assert!(!refused.contains("hunter2") && refused.contains("command line"), "{refused}");
        merged("", &[], &["kafka.sasl.password={ file = \"/run/secret\" }"]).unwrap();
    }

    #[test]
    fn values_that_may_be_secret_are_not_printed() {
        let file = "[kafka]\n\"sasl.password\" = \"hunter2\"\n\"ssl.key.password\" = 4711\n\"x.unknown\" = \"hunter3\"\n\
                    \"sasl.username\" = { env = \"KAFKA_USER\" }\n\"session.timeout.ms\" = 6000";
        let shown = merged(file, &[("SAMESTORY__KAFKA__SSL_KEY_PEM", "hunter4")], &[]).unwrap().redacted();
        assert!(!shown.contains("hunter") && !shown.contains("4711"), "{shown}");
        assert!(
            shown.contains("KAFKA_USER") && shown.contains("6000") && shown.contains("ssl.key.pem"),
            "{shown}"
        );
    }

    // The type of a value was looked up in the sample file, which had no line for registry.username: a user name of digits
    // was parsed as a number and refused.
    #[test]
    fn a_registry_user_name_of_digits_is_a_string() {
        let environment = [("SAMESTORY__REGISTRY__USERNAME", "12345"), ("SAMESTORY__REGISTRY__CACHE", "7")];
        let settings = merged("", &environment, &["stage.app=42"]).unwrap().settings().unwrap();
        assert_eq!(settings.registry.username.as_deref(), Some("12345"));
        assert_eq!((settings.registry.cache, settings.stage.app.as_deref()), (Some(7), Some("42")));
    }

    #[test]
    fn old_keys_set_the_renamed_settings_with_one_warning_each() {
        let file = "[input]\nskew = \"5m\"\n[match]\ncoverage = 0.7\n[languages.hi]\nfloor = 0.2\n";
        let environment =
            [("SAMESTORY__MATCH__FLOOR", "0.25"), ("SAMESTORY__LANGUAGES__HI__COVERAGE", "0.9")];
        let layers = merged(file, &environment, &["match.floor=0.35"]).unwrap();
        let settings = layers.settings().unwrap();
        assert_eq!(settings.input.max_clock_skew.as_deref(), Some("5m"));
        let thresholds =
            |own: &super::super::MatchSettings| (own.containment_threshold, own.cluster_threshold);
        assert_eq!(thresholds(&settings.matching), (Some(0.7), Some(0.35)));
        assert_eq!(thresholds(&settings.languages["hi"]), (Some(0.9), Some(0.2)));
        for (old, new) in [
            ("input.skew", "input.max_clock_skew"),
            ("match.coverage", "match.containment_threshold"),
            ("match.floor", "match.cluster_threshold"),
            ("languages.hi.coverage", "languages.hi.containment_threshold"),
            ("languages.hi.floor", "languages.hi.cluster_threshold"),
        ] {
            let naming = |warning: &&String| warning.starts_with(&format!("{old} ")) && warning.contains(new);
            assert_eq!(layers.warnings.iter().filter(naming).count(), 1, "{old}: {:?}", layers.warnings);
        }
        assert_eq!(layers.warnings.len(), 5, "{:?}", layers.warnings);
        let printed = layers.redacted();
        assert!(printed.contains("cluster_threshold = 0.35") && !printed.contains("floor"), "{printed}");
    }

    #[test]
    fn a_later_source_overrides_an_earlier_one_under_either_name() {
        let new_over_old =
            merged("[match]\nfloor = 0.3", &[("SAMESTORY__MATCH__CLUSTER_THRESHOLD", "0.2")], &[]).unwrap();
        let old_over_new =
            merged("[match]\ncluster_threshold = 0.3", &[("SAMESTORY__MATCH__FLOOR", "0.2")], &[]).unwrap();
        for layers in [new_over_old, old_over_new] {
            assert_eq!(layers.settings().unwrap().matching.cluster_threshold, Some(0.2));
            assert_eq!(layers.warnings.len(), 1, "{:?}", layers.warnings);
        }
    }

    #[test]
    fn both_names_in_one_source_are_refused() {
        let environment =
            [("SAMESTORY__MATCH__CLUSTER_THRESHOLD", "0.2"), ("SAMESTORY__MATCH__FLOOR", "0.3")];
        for refused in [
            refusal("[match]\nfloor = 0.3\ncluster_threshold = 0.2", &[], &[]),
            refusal("", &environment, &[]),
            refusal("", &[], &["match.floor=0.3", "match.cluster_threshold=0.2"]),
            refusal("", &[], &["match.cluster_threshold=0.2", "match.floor=0.3"]),
        ] {
            assert!(
                refused.contains("match.floor") && refused.contains("match.cluster_threshold"),
                "{refused}"
            );
        }
        let refused = refusal("[languages.hi]\ncoverage = 0.3\ncontainment_threshold = 0.2", &[], &[]);
        assert!(
            refused.contains("languages.hi.coverage")
                && refused.contains("languages.hi.containment_threshold"),
            "{refused}"
        );
        let refused = refusal("[input]\nskew = \"1h\"\nmax_clock_skew = \"2h\"", &[], &[]);
        assert!(refused.contains("input.skew") && refused.contains("input.max_clock_skew"), "{refused}");
        merged("", &[], &["match.floor=0.3", "match.floor=0.2"]).unwrap();
    }

    #[test]
    fn an_old_key_keeps_its_line_number_and_is_never_suggested() {
        let refused = refusal("[match]\n\nfloor = \"low\"", &[], &[]);
        assert!(refused.contains("line 3"), "{refused}");
        let refused = refusal("[match]\nflor = 0.3\n", &[], &[]);
        assert!(!refused.contains("`floor`") && !refused.contains("`coverage`"), "{refused}");
        assert!(!refusal("[input]\nskewed = 1\n", &[], &[]).contains("`skew`"));
    }
}
