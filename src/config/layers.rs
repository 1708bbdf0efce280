//! Settings from several places: the file, the environment, the command line. What is written later wins, and what is
//! wrong is named with the place where it was written. A refusal never repeats a value that may be secret.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Table, Value};

use super::{ConfigError, Settings, reference};

/// How an environment variable begins that is a setting. Two underscores: an orchestrator makes variables with one out
/// of the names of services.
const PREFIX: &str = "SAMESTORY__";

/// What was written, merged.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// Environment variables that are settings.
    pub environment: Vec<String>,
    /// What the command line sets.
    pub set: Vec<String>,
    /// All of it; the later in place of the earlier.
    pub table: Table,
}

impl Layers {
    /// Reads `file`, or the one that `SAMESTORY_CONFIG` names; then the environment; then `set`, as `key=value`.
    ///
    /// # Errors
    /// Names where something wrong is written.
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
            let place = || format!("settings in {}", path.display());
            // As settings first: only then does an error know its line.
            toml::from_str::<Settings>(&content).map_err(|error| wrong(place(), &error, Some(&content)))?;
            layers.table =
                toml::from_str(&content).map_err(|error| wrong(place(), &error, Some(&content)))?;
        }
        environment.sort();
        for (name, text) in environment {
            let mut path: Vec<String> =
                name[PREFIX.len()..].split("__").map(str::to_ascii_lowercase).collect();
            if path[0] == "kafka" {
                let key = path.split_off(1).join("_").replace('_', ".");
                path.push(key);
            }
            layers.lay(&path, &text, format!("environment variable {name}"))?;
            layers.environment.push(name);
        }
        for written in set {
            let place = || format!("--set {}", written.split('=').next().unwrap_or_default());
            let Some((key, text)) = written.split_once('=') else {
                return Err(ConfigError::Override { place: place(), why: "write it as key=value".into() });
            };
            let path: Vec<String> = match key.trim().strip_prefix("kafka.") {
                Some(property) => vec!["kafka".into(), property.trim_matches('"').into()],
                None => key.trim().split('.').map(str::to_owned).collect(),
            };
            if is_secret(&path) && !text.starts_with('{') {
                let why =
                    "everybody on this machine can read a command line; use the environment, or { file = … }";
                return Err(ConfigError::Override { place: place(), why: why.into() });
            }
            layers.lay(&path, text, place())?;
            layers.set.push(key.trim().to_owned());
        }
        Ok(layers)
    }

    /// One value on top of what is there.
    fn lay(&mut self, path: &[String], text: &str, place: String) -> Result<(), ConfigError> {
        let one = reference::nested(path, value(path, text));
        Settings::deserialize(one.clone()).map_err(|error| wrong(place, &error, None))?;
        lay_over(&mut self.table, one);
        Ok(())
    }

    /// As settings.
    ///
    /// # Errors
    /// They cannot be read together.
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        Settings::deserialize(self.table.clone()).map_err(|error| wrong("settings".into(), &error, None))
    }

    /// What holds in the end, defaults included, as TOML; nothing that may be secret.
    pub fn redacted(&self) -> String {
        let mut all = Table::new();
        for setting in reference::settings().iter().filter(|setting| setting.is_default) {
            let path = setting.table.split('.').chain([setting.key]);
            let path: Vec<String> = match setting.table {
                "kafka" => vec!["kafka".into(), setting.key.into()],
                _ => path.map(str::to_owned).collect(),
            };
            lay_over(&mut all, reference::nested(&path, setting.value.clone()));
        }
        lay_over(&mut all, self.table.clone());
        for (table, entries) in &mut all {
            for (key, value) in entries.as_table_mut().into_iter().flatten() {
                // Where a secret is kept is no secret.
                if is_secret(&[table.clone(), key.clone()]) && !value.is_table() {
                    *value = Value::String("…".into());
                }
            }
        }
        toml::to_string(&all).unwrap_or_default()
    }
}

/// Whether a value is not to be shown.
fn is_secret(path: &[String]) -> bool {
    match path {
        [table, key] if table == "kafka" => !is_harmless(key),
        [table, key] => matches!(
            (table.as_str(), key.as_str()),
            ("http", "token") | ("registry", "password") | ("registry", "token")
        ),
        _ => false,
    }
}

/// Properties whose values are shown; whatever else an operator writes may be a secret.
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

/// A value as it is written in a variable or on the command line: texts need no quotes.
fn value(path: &[String], text: &str) -> Value {
    let parsed = || toml::from_str::<Table>(&format!("v = {text}")).ok()?.remove("v");
    let is_text = path.first().is_some_and(|table| table == "kafka")
        || is_secret(path)
        || reference::takes(path, Value::String("text".into()));
    let quoted = text.starts_with(['[', '{', '"', '\'']);
    let value = if is_text && !quoted { None } else { parsed() };
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

fn lay_over(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            // A secret is one value, wherever it is kept.
            (Some(Value::Table(below)), Value::Table(above)) if !is_kept(&above) => lay_over(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

fn is_kept(table: &Table) -> bool {
    table.len() == 1
        && (table.get("env").is_some_and(Value::is_str) || table.get("file").is_some_and(Value::is_str))
}

/// The parser's own words quote the line, and the line may hold a secret: so only its number is told.
fn wrong(place: String, error: &toml::de::Error, content: Option<&str>) -> ConfigError {
    let line = content.zip(error.span()).map(|(content, span)| {
        let before = &content.as_bytes()[..span.start.min(content.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    });
    let line = line.map_or_else(String::new, |line| format!("line {line}: "));
    let message = error.message();
    let hint = nearest(message).map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
    ConfigError::Override { place, why: format!("{line}{message}{hint}") }
}

/// Of the names that would have been right, the one that an unknown name is nearest to.
fn nearest(message: &str) -> Option<&str> {
    let mut names = message.strip_prefix("unknown field `")?.split('`');
    let unknown = names.next()?;
    let right = names.skip(1).step_by(2);
    let (far, name) = right.map(|name| (distance(unknown, name), name)).min()?;
    (far <= 2 + unknown.len() / 4).then_some(name)
}

/// Letters to change, add or take away to make one word the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, y) in b.chars().enumerate() {
            let changed = before + usize::from(x != y);
            before = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(before + 1);
        }
    }
    row[b.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(file: &str, environment: &[(&str, &str)], set: &[&str]) -> Result<Layers, ConfigError> {
        static MADE: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
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
    fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
        let file = "[match]\nthreshold = 0.3\ncoverage = 0.3\nfloor = 0.3\n[kafka]\n\"bootstrap.servers\" = \"file\"";
        let environment = [
            ("SAMESTORY__MATCH__COVERAGE", "0.4"),
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
            (matching.threshold, matching.coverage, matching.floor),
            (Some(0.5), Some(0.4), Some(0.3))
        );
        assert_eq!(settings.languages["hi"].retention.as_deref(), Some("30d"));
        // A name that looks like a number is still a name.
        assert_eq!(settings.stage.instance.as_deref(), Some("7"));
        assert_eq!(settings.stage.languages.as_deref(), Some(&["en".to_owned(), "hi".to_owned()][..]));
        assert_eq!(settings.input.fields["title"].iter().collect::<Vec<_>>(), ["a", "b"]);
        let shown = merged(file, &environment, &set).unwrap().redacted();
        for part in [
            "threshold = 0.5",
            "coverage = 0.4",
            "\"bootstrap.servers\" = \"env:9092\"",
            "rows",
            "workers = 1",
        ] {
            assert_eq!(shown.contains(part), part != "rows", "{part}: {shown}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place_and_the_nearest_name() {
        let refused = refusal("[match]\n\ntreshold = 0.5", &[], &[]);
        assert!(refused.contains("line 3") && refused.contains("did you mean `threshold`?"), "{refused}");
        let refused = refusal("", &[("SAMESTORY__HTTP__LISTN", "x")], &[]);
        assert!(refused.contains("SAMESTORY__HTTP__LISTN") && refused.contains("`listen`"), "{refused}");
        let refused = refusal("", &[("SAMESTORY__MTACH__FLOOR", "1")], &[]);
        assert!(refused.contains("did you mean `match`?"), "{refused}");
        let refused = refusal("", &[], &["stage.worker=3"]);
        assert!(refused.contains("--set stage.worker") && refused.contains("`workers`"), "{refused}");
        let refused = refusal("", &[], &["match.threshold=high"]);
        assert!(refused.contains("--set match.threshold") && refused.contains("f64"), "{refused}");
        assert!(refusal("", &[], &["nonsense"]).contains("key=value"));
        assert!(!refusal("[match]\nzzzzzzzzzzzz = 1", &[], &[]).contains("did you mean"));
    }

    #[test]
    fn a_refusal_does_not_repeat_a_secret() {
        for file in ["[kafka]\n\"sasl.password\" = \"hunter2", "[kafka]\n\"sasl.password\" = [\"hunter2\"]"] {
            let refused = refusal(file, &[], &[]);
            assert!(!refused.contains("hunter2") && refused.contains("line 2"), "{refused}");
        }
        let refused = refusal("", &[], &["kafka.sasl.password=hunter2"]);
        assert!(!refused.contains("hunter2") && refused.contains("command line"), "{refused}");
        merged("", &[], &["kafka.sasl.password={ file = \"/run/secret\" }"]).unwrap();
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        let file = "[kafka]\n\"sasl.password\" = \"hunter2\"\n\"ssl.key.password\" = 4711\n\"x.unknown\" = \"hunter3\"\n\
                    \"sasl.username\" = { env = \"KAFKA_USER\" }\n\"session.timeout.ms\" = 6000";
        let shown = merged(file, &[("SAMESTORY__KAFKA__SSL_KEY_PEM", "hunter4")], &[]).unwrap().redacted();
        assert!(!shown.contains("hunter") && !shown.contains("4711"), "{shown}");
        assert!(
            shown.contains("KAFKA_USER") && shown.contains("6000") && shown.contains("ssl.key.pem"),
            "{shown}"
        );
    }

    // Whether a value is text was read off the sample file, which had no line for the name: a name of digits was taken for
    // a number and refused.
    #[test]
    fn a_registry_name_of_digits_is_a_name() {
        let environment = [("SAMESTORY__REGISTRY__USERNAME", "12345"), ("SAMESTORY__REGISTRY__CACHE", "7")];
        let settings = merged("", &environment, &["stage.app=42"]).unwrap().settings().unwrap();
        assert_eq!(settings.registry.username.as_deref(), Some("12345"));
        assert_eq!((settings.registry.cache, settings.stage.app.as_deref()), (Some(7), Some("42")));
    }
}
