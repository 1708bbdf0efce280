//! Notes beside the generation-end records: the pause of an application, and the settings behind a `config` hash. Both are
//! JSON objects; an unreadable one counts as none, because no verdict depends on it.

use serde::{Deserialize, Serialize};

/// An application's pause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// The roles that read nothing: `route`, `match`, `direct`.
    pub roles: Vec<String>,
    /// When the operator paused them, as ISO 8601.
    pub since: String,
    /// The operator's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The settings behind a `config` hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsNote {
    /// The hash, as verdicts carry it.
    pub config: String,
    /// The values that the hash covers; it is the hash of this text.
    pub covers: String,
    /// The settings as TOML, without those that no verdict depends on.
    pub settings: String,
    /// The program's version.
    pub version: String,
    /// When they were first used, as ISO 8601.
    pub since: String,
}

impl Pause {
    /// The pause as JSON.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The pause that these bytes hold, if they can be read.
    pub fn decode(bytes: &[u8]) -> Option<Pause> {
        serde_json::from_slice(bytes).ok()
    }
}

impl SettingsNote {
    /// The note as JSON.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The note that these bytes hold, if they can be read.
    pub fn decode(bytes: &[u8]) -> Option<SettingsNote> {
        serde_json::from_slice(bytes).ok()
    }
}
