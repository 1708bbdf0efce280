//! The reference of all settings. Names and types come from the settings structs; defaults and explanations come from the
//! sample file, and a test checks that it is complete. So the sample, the document, the chart and the program cannot disagree.
//!
//! `samestory.toml` is compiled in. A comment belongs to the keys that follow it without a blank line; a line that begins
//! with `#= ` is an example of a setting that has no default.

use std::sync::LazyLock;

use serde::Deserialize;
use toml::{Table, Value};

use super::Settings;

const SAMPLE: &str = include_str!("../../samestory.toml");

/// One setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The table it stands in.
    pub table: &'static str,
    /// Its name there.
    pub key: &'static str,
    /// Its default, or an example where it has none.
    pub value: Value,
    /// As written in the sample.
    pub written: &'static str,
    /// Whether the value is its default.
    pub is_default: bool,
    /// What it does.
    pub help: String,
}

static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| read(SAMPLE));

/// Every setting but those of single languages, which are those of `[match]`.
pub fn settings() -> &'static [Setting] {
    &SETTINGS
}

/// Properties of `[kafka]` with one of these words in their names are secret.
pub const SECRET_WORDS: &[&str] =
    &["password", "passphrase", "secret", "jaas", "key.pem", "oauthbearer.config"];

/// Every key that has a name of its own, table by table. Those of `[kafka]`, `[input.fields]` and `[languages.<code>]` are
/// not among them.
pub fn keys() -> Vec<(String, String)> {
    let tables = known(&[]).into_iter();
    tables
        .flat_map(|table| {
            let keys = known(std::slice::from_ref(&table));
            keys.into_iter().map(move |key| (table.clone(), key))
        })
        .collect()
}

/// The names that a table has: serde lists them when it meets another one.
fn known(path: &[String]) -> Vec<String> {
    let unknown = [path, &["no_such_key".to_owned()]].concat();
    let Err(error) = Settings::deserialize(nested(&unknown, Value::Integer(1))) else { return Vec::new() };
    let names = error.message().split('`').skip(1).step_by(2).skip(1);
    names.map(str::to_owned).collect()
}

/// Whether a setting takes a value of this type.
pub fn takes(path: &[String], value: Value) -> bool {
    Settings::deserialize(nested(path, value)).is_ok()
}

/// The tables around one value.
pub(super) fn nested(path: &[String], value: Value) -> Table {
    let inside =
        path.iter().rev().fold(value, |value, key| Value::Table(Table::from_iter([(key.clone(), value)])));
    match inside {
        Value::Table(table) => table,
        _ => Table::new(),
    }
}

/// What a setting looks like in the sample, if it is there.
#[cfg(test)]
fn find(path: &[String]) -> Option<&'static Setting> {
    let (table, key) = match path {
        [languages, _, key] if languages == "languages" => ("match".to_owned(), key.clone()),
        [table, key] => (table.clone(), key.clone()),
        [outer, inner, key] => (format!("{outer}.{inner}"), key.clone()),
        _ => return None,
    };
    SETTINGS.iter().find(|setting| setting.table == table && setting.key == key)
}

fn read(sample: &'static str) -> Vec<Setting> {
    let mut settings = Vec::new();
    let (mut table, mut help, mut fresh) = ("", String::new(), true);
    for line in sample.lines() {
        let (line, is_default) = match line.strip_prefix("#= ") {
            Some(example) => (example, false),
            None => (line, true),
        };
        if let Some(comment) = line.strip_prefix('#') {
            if !fresh {
                help.clear();
            }
            fresh = true;
            help.push(' ');
            help.push_str(comment.trim());
        } else if let Some(name) = line.strip_prefix('[') {
            table = name.trim_end_matches(']');
            help.clear();
        } else if let Some((key, written)) = line.split_once(" = ") {
            fresh = false;
            let value = toml::from_str::<toml::Table>(&format!("v = {written}")).ok();
            let value = value.and_then(|mut table| table.remove("v"));
            if let Some(value) = value.filter(|_| !table.starts_with("languages")) {
                let (key, help) = (key.trim_matches('"'), help.trim().to_owned());
                settings.push(Setting { table, key, value, written, is_default, help });
            }
        } else {
            help.clear();
        }
    }
    settings
}

/// `docs/configuration.md`.
pub fn markdown() -> String {
    let mut text = String::from(INTRODUCTION);
    let mut table = "";
    for setting in settings() {
        if setting.table != table {
            table = setting.table;
            text += &format!("\n## `[{table}]`\n\n| key | default | what it does |\n|---|---|---|\n");
        }
        let value = match setting.is_default {
            true => format!("`{}`", setting.written),
            false => format!("none; for example `{}`", setting.written),
        };
        text += &format!("| `{}` | {value} | {} |\n", setting.key, setting.help.replace('|', "\\|"));
    }
    text += LANGUAGES;
    text
}

const INTRODUCTION: &str = "\
# Settings

Generated from `samestory.toml`, which is compiled in; `samestory config reference` prints this page, and a test keeps it
current.

Later sources override earlier ones:

1. the defaults below;
2. a TOML file: `--config FILE`, or the environment variable `SAMESTORY_CONFIG`;
3. environment variables: `SAMESTORY__MATCH__THRESHOLD=0.6` is `[match] threshold`, `SAMESTORY__KAFKA__BOOTSTRAP_SERVERS`
   is `[kafka] \"bootstrap.servers\"` (dots become underscores), `SAMESTORY__LANGUAGES__HI__RETENTION=30d` is
   `[languages.hi] retention`;
4. `--set match.threshold=0.6` on the command line, any number of times. Secrets are refused there, because everyone on the
   machine can read a command line.

An unknown key is refused with the nearest key that exists. `samestory config check` validates the settings;
`samestory config print --redacted` shows the effective ones. Durations are a whole number and a unit: ms, s, m, h, d or w.

`[input.fields]` maps your crawler's fields: each key is a path, or several in order of preference. samestory understands the
usual names (id, _id, guid …; body, text, content …; lang, language …) without an entry. `[]` joins an array. On the bus,
`\"$key\"` is the record's key and `\"$header.x\"` its header x. A path that begins with `\"=\"` is a constant. If a schema is
registered for the raw topic, paths are checked against it at startup.

`[kafka]` takes any property of librdkafka under the name of its manual; those that exactly-once depends on are refused. Values
that may be secret are never shown; `{ env = \"VARIABLE\" }` and `{ file = \"path\" }` keep them out of the file.

These environment variables are not settings: `SAMESTORY_CONFIG` (the file), `SAMESTORY_INSTANCE` (the default of
`stage.instance`), `SAMESTORY_LOG` (error, warn, info, debug or trace).
";

const LANGUAGES: &str = "
## `[languages.<code>]`

Overrides for a language of `samestory languages`: every key of `[match]` is allowed. Languages that share a home
(Croatian, Serbian and Bosnian; Indonesian and Malay; Norwegian and Danish) share one table, under the code of any of them.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_in_the_sample_with_a_word_of_explanation() {
        let keys = keys();
        assert!(keys.len() > 60, "{keys:?}");
        for (table, key) in keys.iter().filter(|(_, key)| key != "fields") {
            let setting = find(&[table.clone(), key.clone()]);
            let setting = setting.unwrap_or_else(|| panic!("[{table}] {key} is not in samestory.toml"));
            assert!(setting.help.len() > 10, "[{table}] {key} has no comment: {:?}", setting.help);
        }
    }

    #[test]
    fn a_comment_belongs_to_the_keys_behind_it() {
        let settings =
            read("[a]\n# One,\n# two.\nx = 1\ny = \"s\"\n# Three.\n#= z = [1]\n\n# Lost.\n\nlast = true\n");
        let told: Vec<_> = settings.iter().map(|s| (s.key, s.is_default, s.help.as_str())).collect();
        assert_eq!(
            told,
            [("x", true, "One, two."), ("y", true, "One, two."), ("z", false, "Three."), ("last", true, "")]
        );
    }
}
