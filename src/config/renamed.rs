//! Setting keys that were renamed. [`Layers`](super::Layers) replaces an old key by its current name while it reads a source,
//! so everything behind it (checks, defaults, the `config` hash) knows only current names. An old key gives one warning; a
//! source that has both names is refused.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::ConfigError;

/// Renamed keys: table, old key, current key. `[languages.<code>]` has the keys of `[match]`.
pub const RENAMED: &[(&str, &str, &str)] = &[
    ("input", "skew", "max_clock_skew"),
    ("match", "coverage", "containment_threshold"),
    ("match", "floor", "cluster_threshold"),
];

/// The current name of the last key in `path`, if `path` ends in an old one.
fn current_key(path: &[String]) -> Option<&'static str> {
    let (table, key) = match path {
        [languages, _, key] if languages == "languages" => ("match", key),
        [table, key] => (table.as_str(), key),
        _ => return None,
    };
    RENAMED.iter().find(|(known, old, _)| *known == table && old == key).map(|(.., current)| *current)
}

/// The keys that one source has written so far.
#[derive(Default)]
pub(super) struct SourceKeys {
    /// Current path → path as written.
    written: BTreeMap<Vec<String>, Vec<String>>,
}

impl SourceKeys {
    /// Replaces an old key at the end of `path` by its current name, and adds a warning for it.
    ///
    /// # Errors
    /// The source has the setting under both names.
    pub(super) fn resolve(
        &mut self,
        path: Vec<String>,
        origin: &str,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<String>, ConfigError> {
        let mut current = path.clone();
        if let (Some(key), Some(last)) = (current_key(&path), current.last_mut()) {
            *last = key.to_owned();
            let (old, new) = (path.join("."), current.join("."));
            let warning = format!("{old} is deprecated: rename it to {new}; the old key still works");
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        match self.written.insert(current.clone(), path.clone()) {
            Some(other) if other != path => {
                let old = if path == current { other } else { path }.join(".");
                let why =
                    format!("{old} is the old name of {}, and both are set: remove {old}", current.join("."));
                Err(ConfigError::Rejected { origin: origin.to_owned(), why })
            }
            _ => Ok(current),
        }
    }
}

/// Replaces the old keys of a file's tables by their current names.
///
/// # Errors
/// The file has a setting under both names.
pub(super) fn rename_keys(
    file: &mut Table,
    origin: &str,
    warnings: &mut Vec<String>,
) -> Result<(), ConfigError> {
    for (name, value) in file.iter_mut() {
        let Value::Table(table) = value else { continue };
        if name == "languages" {
            for (code, own) in table.iter_mut() {
                let Value::Table(own) = own else { continue };
                rename_in(own, &[name.clone(), code.clone()], origin, warnings)?;
            }
        } else {
            rename_in(table, std::slice::from_ref(name), origin, warnings)?;
        }
    }
    Ok(())
}

fn rename_in(
    table: &mut Table,
    path: &[String],
    origin: &str,
    warnings: &mut Vec<String>,
) -> Result<(), ConfigError> {
    let mut keys = SourceKeys::default();
    for (key, value) in std::mem::take(table) {
        let mut current = keys.resolve([path, &[key]].concat(), origin, warnings)?;
        table.extend(current.pop().map(|key| (key, value)));
    }
    Ok(())
}
