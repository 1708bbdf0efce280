//! How values are written, and the schema registry that says how those of others are.

use std::path::PathBuf;
use std::time::Duration;

use super::bus::{Secret, kept};
use super::check::duration;
use super::written::{RegistrySettings, Settings};
use super::{ConfigError, invalid};

/// How values that come in are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// Told from each value's first byte: Avro begins with a zero, which JSON cannot.
    Auto,
    /// JSON.
    Json,
    /// Avro behind a schema id.
    Avro,
}

/// How values that go out are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// JSON.
    Json,
    /// Avro behind a schema id.
    Avro,
}

/// What an envelope holds of the article itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvelopeArticle {
    /// The article in our own fields.
    Mapped,
    /// The record as it came.
    Original,
}

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats {
    /// Those that come in.
    pub input: InputFormat,
    /// Those that go out.
    pub output: OutputFormat,
    /// The article in envelopes.
    pub article: EnvelopeArticle,
}

/// A Confluent-compatible schema registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryConfig {
    /// Where it is, without a slash at the end.
    pub url: String,
    /// Who we are to it.
    pub credentials: Credentials,
    /// Certificates that its own must lead to, instead of the system's.
    pub ca: Option<PathBuf>,
    /// How long one question may take, all in all.
    pub timeout: Duration,
    /// The largest answer that is read.
    pub max_bytes: u64,
    /// How many schemas are remembered.
    pub cache: usize,
    /// How long a schema that is not there is not asked for again.
    pub negative: Duration,
    /// Whether `run` registers our schemas by itself.
    pub auto_register: bool,
}

/// Who we are to a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// Nobody in particular.
    None,
    /// A name and a password.
    Basic {
        /// The name.
        username: String,
        /// The password.
        password: Secret,
    },
    /// A token.
    Bearer(Secret),
}

pub(super) fn formats(settings: &Settings) -> Result<Formats, ConfigError> {
    let input = match settings.input.format.as_deref().unwrap_or("auto") {
        "auto" => InputFormat::Auto,
        "json" => InputFormat::Json,
        "avro" => InputFormat::Avro,
        other => return Err(invalid("input.format", other, "write auto, json or avro")),
    };
    let output = match settings.output.format.as_deref().unwrap_or("json") {
        "json" => OutputFormat::Json,
        "avro" => OutputFormat::Avro,
        other => return Err(invalid("output.format", other, "write json or avro")),
    };
    let article = match (settings.envelope.article.as_deref(), output) {
        (Some("mapped"), _) | (None, OutputFormat::Avro) => EnvelopeArticle::Mapped,
        (Some("original"), _) | (None, OutputFormat::Json) => EnvelopeArticle::Original,
        (Some(other), _) => return Err(invalid("envelope.article", other, "write mapped or original")),
    };
    if settings.registry.url.is_none() {
        let fix = "set registry.url: Avro needs a schema registry";
        if input == InputFormat::Avro {
            return Err(invalid("input.format", "avro", fix));
        }
        if output == OutputFormat::Avro {
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
        return Err(invalid("registry.url", url, "give an address such as https://registry.example:8081"));
    }
    if address.contains('@') {
        return Err(invalid(
            "registry.url",
            "…",
            "put the name and password into registry.username and registry.password",
        ));
    }
    let secret = |key: &str, value: &Option<_>| value.as_ref().map(|value| kept(key, value)).transpose();
    let password = secret("registry.password", &written.password)?;
    let token = secret("registry.token", &written.token)?;
    let credentials = match (written.username.clone(), password, token) {
        (None, None, None) => Credentials::None,
        (Some(username), Some(password), None) => Credentials::Basic { username, password },
        (None, None, Some(token)) => Credentials::Bearer(token),
        (Some(name), None, None) => {
            return Err(invalid("registry.username", name, "give registry.password too"));
        }
        (None, Some(_), None) => return Err(invalid("registry.password", "…", "give registry.username too")),
        (_, _, Some(_)) => {
            return Err(invalid("registry.token", "…", "give a token, or a name and a password, not both"));
        }
    };
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    if scheme == "http" && !here && credentials != Credentials::None {
        return Err(invalid(
            "registry.url",
            url,
            "use https: a password would go over the network in the clear",
        ));
    }
    let span = |key: &str, written: &Option<String>, default: u64| match written {
        Some(text) => duration(key, text).map(Duration::from_millis),
        None => Ok(Duration::from_millis(default)),
    };
    Ok(Some(RegistryConfig {
        url: url.to_owned(),
        credentials,
        ca: written.ca.clone(),
        timeout: span("registry.timeout", &written.timeout, 5_000)?.max(Duration::from_millis(10)),
        max_bytes: written.max_bytes.unwrap_or(1 << 20),
        cache: match written.cache {
            Some(0) => return Err(invalid("registry.cache", 0, "give a number of schemas, at least 1")),
            cache => cache.unwrap_or(1000),
        },
        negative: span("registry.negative_cache", &written.negative_cache, 30_000)?,
        auto_register: written.auto_register.unwrap_or(false),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, refusal};
    use super::*;

    #[test]
    fn avro_needs_a_registry_and_says_so() {
        assert!(refusal("[input]\nformat = \"avro\"").contains("registry.url"));
        assert!(refusal("[output]\nformat = \"avro\"").contains("registry.url"));
        let formats = config("").unwrap().bus.formats;
        assert_eq!((formats.input, formats.output), (InputFormat::Auto, OutputFormat::Json));
        assert_eq!(formats.article, EnvelopeArticle::Original);
        let avro =
            config("[output]\nformat = \"avro\"\n[registry]\nurl = \"http://localhost:8081/\"").unwrap().bus;
        assert_eq!(avro.formats.article, EnvelopeArticle::Mapped);
        assert_eq!(avro.registry.unwrap().url, "http://localhost:8081");
        assert!(refusal("[envelope]\narticle = \"both\"").contains("mapped or original"));
    }

    #[test]
    fn a_password_is_not_sent_in_the_clear_nor_shown() {
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
