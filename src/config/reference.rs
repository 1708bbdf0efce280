//! The reference of all settings, for `samestory config print` and `samestory config reference`. Keys and types come from the
//! structs of [`Settings`]; defaults and explanations come from `samestory.toml`, which is compiled in, and tests check that the
//! sample, docs/configuration.md and the Helm chart have every key.
//!
//! In the sample, a comment belongs to the keys that follow it without a blank line; a line that begins with `#= ` is an example
//! of a setting without a default.

use std::sync::LazyLock;

use serde::Deserialize;
use toml::{Table, Value};

use super::{RENAMED, Settings};

const SAMPLE: &str = include_str!("../../samestory.toml");

/// One setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its table, such as `match` or `input.fields`.
    pub table: &'static str,
    /// Its key in the table.
    pub key: &'static str,
    /// Its default, or an example if it has none.
    pub value: Value,
    /// The value as TOML, as in the sample.
    pub written: &'static str,
    /// True if `value` is the default.
    pub is_default: bool,
    /// The explanation in the sample.
    pub help: String,
}

static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| read(SAMPLE));

/// Every setting in the order of the sample. `[languages.<code>]` is left out: its keys are those of `[match]`.
pub fn settings() -> &'static [Setting] {
    &SETTINGS
}

/// A property of `[kafka]` whose name contains one of these words is a secret.
pub const SECRET_WORDS: &[&str] =
    &["password", "passphrase", "secret", "jaas", "key.pem", "oauthbearer.config"];

/// Table and key of every setting, under its current name. The free-form tables `[kafka]`, `[input.fields]` and
/// `[languages.<code>]` are left out.
pub fn keys() -> Vec<(String, String)> {
    let tables = known(&[]).into_iter();
    tables
        .flat_map(|table| {
            let keys = known(std::slice::from_ref(&table));
            keys.into_iter().map(move |key| (table.clone(), key))
        })
        .collect()
}

/// The keys of a table. serde has no list of them, but its error for an unknown key names all that it expects.
fn known(path: &[String]) -> Vec<String> {
    let unknown = [path, &["no_such_key".to_owned()]].concat();
    let Err(error) = Settings::deserialize(nested(&unknown, Value::Integer(1))) else { return Vec::new() };
    let names = error.message().split('`').skip(1).step_by(2).skip(1);
    let is_old = |name: &&str| RENAMED.iter().any(|(table, old, _)| path == [*table] && old == name);
    names.filter(|name| !is_old(name)).map(str::to_owned).collect()
}

/// True if a setting accepts a value of this type.
pub fn takes(path: &[String], value: Value) -> bool {
    Settings::deserialize(nested(path, value)).is_ok()
}

/// Wraps one value in the tables of its path.
pub(super) fn nested(path: &[String], value: Value) -> Table {
    let inside =
        path.iter().rev().fold(value, |value, key| Value::Table(Table::from_iter([(key.clone(), value)])));
    match inside {
        Value::Table(table) => table,
        _ => Table::new(),
    }
}

/// The setting in the sample, if it is there.
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

/// The text of `docs/configuration.md`.
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
`\"$key\"` is the record's key and `\"$header.x\"` its header x. A path that begins with `=` is a constant. If a schema is
registered for the raw topic, paths are checked against it at startup.

`[kafka]` takes any property of librdkafka under the name of its manual; those that exactly-once depends on are refused. Values
that may be secret are never shown; `{ env = \"VARIABLE\" }` and `{ file = \"path\" }` keep them out of the file.

Some keys have been renamed: `input.skew` is now `input.max_clock_skew`, `match.coverage` is `match.containment_threshold` and
`match.floor` is `match.cluster_threshold`. An old key still works, in every source and in `[languages.<code>]`, and gives one
warning at startup. A source with both names is refused.

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
    fn every_setting_is_explained_in_the_sample() {
        let keys = keys();
        assert!(keys.len() > 60, "{keys:?}");
        for (table, key) in keys.iter().filter(|(_, key)| key != "fields") {
            let setting = find(&[table.clone(), key.clone()]);
            let setting = setting.unwrap_or_else(|| panic!("[{table}] {key} is not in samestory.toml"));
            assert!(setting.help.len() > 10, "[{table}] {key} has no comment: {:?}", setting.help);
        }
    }

    #[test]
    fn a_comment_belongs_to_the_keys_after_it() {
        let settings =
            read("[a]\n# One,\n# two.\nx = 1\ny = \"s\"\n# Three.\n#= z = [1]\n\n# Lost.\n\nlast = true\n");
        let explained: Vec<_> = settings.iter().map(|s| (s.key, s.is_default, s.help.as_str())).collect();
        assert_eq!(
            explained,
            [("x", true, "One, two."), ("y", true, "One, two."), ("z", false, "Three."), ("last", true, "")]
        );
    }
}
