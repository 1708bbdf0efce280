//! Settings of value formats and of the schema registry. Avro without a registry is refused here, and so are credentials that
//! would cross the network unencrypted.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::bus::{Secret, resolve_secret};
use super::check::{choice, duration};
use super::written::{RegistrySettings, Settings};
use super::{ConfigError, invalid};

/// Format of input values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputFormat {
    /// Decided by the first byte of each value: Avro begins with a zero byte, which no JSON value does.
    Auto,
    /// JSON.
    Json,
    /// Avro after a schema id.
    Avro,
}

/// Format of output values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueFormat {
    /// JSON.
    Json,
    /// Avro after a schema id.
    Avro,
}

/// The article inside an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnvelopeArticle {
    /// In samestory's own fields.
    Mapped,
    /// The record unchanged.
    Original,
}

/// Formats of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats {
    /// Format of input values.
    pub input: InputFormat,
    /// Format of output values.
    pub output: ValueFormat,
    /// The article inside an envelope.
    pub article: EnvelopeArticle,
}

/// A Confluent-compatible schema registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryConfig {
    /// URL without a trailing slash.
    pub url: String,
    /// Credentials that every request carries.
    pub credentials: Credentials,
    /// CA certificates that the registry's certificate is verified against, instead of the system's.
    pub ca: Option<PathBuf>,
    /// Timeout of one request, from connecting to the last byte.
    pub timeout: Duration,
    /// The largest response that is read, in bytes.
    pub max_bytes: u64,
    /// How many schemas are cached.
    pub cache: usize,
    /// How long a missing schema is not requested again.
    pub negative: Duration,
    /// True if `samestory run` registers the output schemas.
    pub auto_register: bool,
}

/// Credentials for the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// No authentication.
    None,
    /// Basic authentication.
    Basic {
        /// User name.
        username: String,
        /// Password.
        password: Secret,
    },
    /// Bearer token.
    Bearer(Secret),
}

pub(super) fn formats(settings: &Settings) -> Result<Formats, ConfigError> {
    let input = choice("input.format", settings.input.format.as_deref(), InputFormat::Auto)?;
    let output = choice("output.format", settings.output.format.as_deref(), ValueFormat::Json)?;
    let default_article = match output {
        ValueFormat::Json => EnvelopeArticle::Original,
        ValueFormat::Avro => EnvelopeArticle::Mapped,
    };
    let article = choice("envelope.article", settings.envelope.article.as_deref(), default_article)?;
    if settings.registry.url.is_none() {
        let fix = "set registry.url: Avro needs a schema registry";
        if input == InputFormat::Avro {
            return Err(invalid("input.format", "avro", fix));
        }
        if output == ValueFormat::Avro {
            return Err(invalid("output.format", "avro", fix));
        }
    }
    Ok(Formats { input, output, article })
}

pub(super) fn registry(written: &RegistrySettings) -> Result<Option<RegistryConfig>, ConfigError> {
    let Some(url) = &written.url else {
        return Ok(None);
    };
    let url = url.trim_end_matches('/');
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let address = rest.split('/').next().unwrap_or_default();
    if !matches!(scheme, "http" | "https") || address.is_empty() || url.contains(char::is_whitespace) {
        return Err(invalid("registry.url", url, "use a URL such as https://registry.example:8081"));
    }
    if address.contains('@') {
        return Err(invalid(
            "registry.url",
            "…",
            "move the credentials to registry.username and registry.password",
        ));
    }
    let secret =
        |key: &str, value: &Option<_>| value.as_ref().map(|value| resolve_secret(key, value)).transpose();
    let password = secret("registry.password", &written.password)?;
    let token = secret("registry.token", &written.token)?;
    let credentials = match (written.username.clone(), password, token) {
        (None, None, None) => Credentials::None,
        (Some(username), Some(password), None) => Credentials::Basic { username, password },
        (None, None, Some(token)) => Credentials::Bearer(token),
        (Some(name), None, None) => {
            return Err(invalid("registry.username", name, "set registry.password too"));
        }
        (None, Some(_), None) => return Err(invalid("registry.password", "…", "set registry.username too")),
        (_, _, Some(_)) => {
            return Err(invalid(
                "registry.token",
                "…",
                "use a token, or a user name and a password, but not both",
            ));
        }
    };
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let is_loopback = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    if scheme == "http" && !is_loopback && credentials != Credentials::None {
        return Err(invalid(
            "registry.url",
            url,
            "use https: credentials would cross the network unencrypted",
        ));
    }
    let millis = |key: &str, written: &Option<String>, default: u64| match written {
        Some(text) => duration(key, text).map(Duration::from_millis),
        None => Ok(Duration::from_millis(default)),
    };
    Ok(Some(RegistryConfig {
        url: url.to_owned(),
        credentials,
        ca: written.ca.clone(),
        timeout: millis("registry.timeout", &written.timeout, 5_000)?.max(Duration::from_millis(10)),
        max_bytes: written.max_bytes.unwrap_or(1 << 20),
        cache: match written.cache {
            Some(0) => return Err(invalid("registry.cache", 0, "use a number of schemas, at least 1")),
            cache => cache.unwrap_or(1000),
        },
        negative: millis("registry.negative_cache", &written.negative_cache, 30_000)?,
        auto_register: written.auto_register.unwrap_or(false),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, refusal};
    use super::*;

    #[test]
    fn avro_without_a_registry_is_refused() {
        assert!(refusal("[input]\nformat = \"avro\"").contains("registry.url"));
        assert!(refusal("[output]\nformat = \"avro\"").contains("registry.url"));
        let formats = config("").unwrap().bus.formats;
        assert_eq!((formats.input, formats.output), (InputFormat::Auto, ValueFormat::Json));
        assert_eq!(formats.article, EnvelopeArticle::Original);
        let avro =
            config("[output]\nformat = \"avro\"\n[registry]\nurl = \"http://localhost:8081/\"").unwrap().bus;
        assert_eq!(avro.formats.article, EnvelopeArticle::Mapped);
        assert_eq!(avro.registry.unwrap().url, "http://localhost:8081");
        assert!(refusal("[envelope]\narticle = \"both\"").contains("mapped or original"));
    }

    #[test]
    fn credentials_are_neither_sent_unencrypted_nor_shown() {
        let basic = "username = \"crawler\"\npassword = \"hush\"\n";
        let clear = refusal(&format!("[registry]\nurl = \"http://registry.example\"\n{basic}"));
        assert!(clear.contains("https") && !clear.contains("hush"), "{clear}");
        let secure = config(&format!("[registry]\nurl = \"https://registry.example\"\n{basic}")).unwrap();
        assert!(!format!("{secure:?}").contains("hush"));
        assert!(config(&format!("[registry]\nurl = \"http://127.0.0.1:8081\"\n{basic}")).is_ok());
        assert!(refusal("[registry]\nurl = \"https://a:hush@b.example\"").contains("registry.password"));
        assert!(
            refusal(&format!("[registry]\nurl = \"https://b.example\"\ntoken = \"t\"\n{basic}"))
                .contains("not both")
        );
        assert!(
            refusal("[registry]\nurl = \"https://b.example\"\nusername = \"u\"")
                .contains("registry.password")
        );
        for wrong in ["registry:8081", "ftp://registry", "http://", "https://a b"] {
            assert!(refusal(&format!("[registry]\nurl = \"{wrong}\"")).contains("registry.url"), "{wrong}");
        }
    }
}
