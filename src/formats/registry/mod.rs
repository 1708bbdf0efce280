//! A client for a Confluent-compatible schema registry: writer schemas by id, our own schemas by subject.
//!
//! A request has one of three results: the schema; a definite no, because the registry says that it does not exist; or
//! a failure, which says nothing about the data and is retried. Only a definite no may lead to a dead letter. It must
//! be in the registry's own error codes, because a server at a wrong address answers 404 to everything.

mod http;
mod schema_cache;
mod subjects;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde_json::{Value, json};

use super::avro::Schema;
use crate::config::RegistryConfig;

use http::{Client, RegistryAnswer};

pub use schema_cache::SchemaCache;
pub use subjects::{Subject, SubjectStatus, value_subject};

/// Why a request to the registry failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// The registry answered: the schema does not exist or cannot be used. Retrying does not help.
    #[error("{0}")]
    No(String),
    /// No answer, or not one of a registry. Retry later.
    #[error("{0}")]
    Away(String),
    /// The settings in `[registry]` cannot be used.
    #[error("{0}")]
    Settings(String),
}

/// A schema registry.
#[derive(Debug)]
pub struct Registry {
    client: Client,
    config: RegistryConfig,
}

/// Most schemas that one schema may refer to, directly or indirectly.
const REFERENCES: usize = 64;

/// The registry's error codes for subjects, versions and schemas that do not exist.
const NO_SUBJECT: i64 = 40401;
const NO_VERSION: i64 = 40402;
const NO_SCHEMA: i64 = 40403;

impl Registry {
    /// Creates a client. It sends no request yet.
    ///
    /// # Errors
    /// The certificates cannot be read.
    pub fn new(config: &RegistryConfig) -> Result<Registry, RegistryError> {
        Ok(Registry { client: Client::new(config)?, config: config.clone() })
    }

    /// The settings of this client.
    pub fn config(&self) -> &RegistryConfig {
        &self.config
    }

    /// Fetches the schema with this id.
    ///
    /// # Errors
    /// See [`RegistryError`].
    pub fn schema(&self, id: u32) -> Result<Schema, RegistryError> {
        let found = self.client.get(&format!("/schemas/ids/{id}"))?;
        let found =
            self.expect(found, &[NO_SCHEMA], || format!("the registry has no schema with id {id}"))?;
        self.read(&found).map_err(|error| match error {
            RegistryError::No(why) => {
                RegistryError::No(format!("the schema with id {id} cannot be used: {why}"))
            }
            other => other,
        })
    }

    /// Fetches the newest schema of a subject.
    ///
    /// # Errors
    /// See [`RegistryError`].
    pub fn latest(&self, subject: &str) -> Result<Schema, RegistryError> {
        self.version(subject, "latest")
    }

    /// Fetches one version of a subject's schema.
    pub(crate) fn version(&self, subject: &str, version: &str) -> Result<Schema, RegistryError> {
        self.read(&self.written(subject, version)?)
    }

    /// Fetches the version numbers of a subject, oldest first.
    ///
    /// # Errors
    /// See [`RegistryError`].
    pub fn versions(&self, subject: &str) -> Result<Vec<i64>, RegistryError> {
        let found = self.client.get(&format!("/subjects/{}/versions", escaped(subject)))?;
        let found = self.expect(found, &[NO_SUBJECT], || format!("no schema is registered for {subject}"))?;
        match found.as_array() {
            Some(versions) => Ok(versions.iter().filter_map(Value::as_i64).collect()),
            None => Err(self.unexpected("a list of versions")),
        }
    }

    fn written(&self, subject: &str, version: &str) -> Result<Value, RegistryError> {
        let found = self.client.get(&format!("/subjects/{}/versions/{version}", escaped(subject)))?;
        self.expect(found, &[NO_SUBJECT, NO_VERSION], || {
            format!("no schema is registered for {subject} (version {version})")
        })
    }

    /// Parses the schema in an answer, and fetches those that it refers to.
    fn read(&self, answer: &Value) -> Result<Schema, RegistryError> {
        let Some(schema) = answer.get("schema").and_then(Value::as_str) else {
            return Err(self.unexpected("a schema"));
        };
        match answer.get("schemaType").and_then(Value::as_str) {
            None | Some("AVRO") => {}
            Some(other) => {
                let other: String = other.chars().take(20).collect();
                return Err(RegistryError::No(format!("its type is {other}, not AVRO")));
            }
        }
        let mut references = Vec::new();
        self.collect(answer, &mut Vec::new(), &mut references)?;
        Schema::parse(schema, &references).map_err(|error| RegistryError::No(error.to_string()))
    }

    fn collect(
        &self,
        answer: &Value,
        seen: &mut Vec<(String, i64)>,
        out: &mut Vec<String>,
    ) -> Result<(), RegistryError> {
        let references = answer.get("references").and_then(Value::as_array);
        for reference in references.into_iter().flatten() {
            let subject = reference.get("subject").and_then(Value::as_str);
            let version = reference.get("version").and_then(Value::as_i64);
            let (Some(subject), Some(version)) = (subject, version) else {
                return Err(self.unexpected("a reference with subject and version"));
            };
            let name = (subject.to_owned(), version);
            if seen.contains(&name) {
                continue;
            }
            if seen.len() >= REFERENCES {
                return Err(RegistryError::No(format!("it refers to more than {REFERENCES} others")));
            }
            seen.push(name);
            let found = self.written(subject, &version.to_string())?;
            self.collect(&found, seen, out)?;
            match found.get("schema").and_then(Value::as_str) {
                Some(schema) => out.push(schema.to_owned()),
                None => return Err(self.unexpected("a schema")),
            }
        }
        Ok(())
    }

    /// The JSON of a successful answer. It is a definite no only if the registry's error code is in `noes`.
    fn expect(
        &self,
        answer: RegistryAnswer,
        noes: &[i64],
        no: impl FnOnce() -> String,
    ) -> Result<Value, RegistryError> {
        let RegistryAnswer { status, body } = answer;
        let body: Option<Value> = serde_json::from_slice(&body).ok();
        let code = body.as_ref().and_then(|body| body.get("error_code")).and_then(Value::as_i64);
        match (status, body) {
            (200..=299, Some(body)) => Ok(body),
            (200..=299, None) => Err(self.unexpected("JSON")),
            (404, _) if code.is_some_and(|code| noes.contains(&code)) => Err(RegistryError::No(no())),
            (status, body) => Err(RegistryError::Away(self.complaint(status, body.as_ref()))),
        }
    }

    fn unexpected(&self, wanted: &str) -> RegistryError {
        let url = &self.config.url;
        RegistryError::Away(format!("{url} did not answer with {wanted}; is registry.url right?"))
    }

    fn complaint(&self, status: u16, body: Option<&Value>) -> String {
        let message = body.and_then(|body| body.get("message")).and_then(Value::as_str).unwrap_or_default();
        let message: String = message.chars().filter(|c| !c.is_control()).take(200).collect();
        let hint = match status {
            300..=399 => "a redirect, which is not followed; set registry.url to its target",
            401 | 403 => "check registry.username and registry.password, or registry.token",
            404 => "is registry.url right?",
            _ => "",
        };
        let details = [message.as_str(), hint].into_iter().filter(|part| !part.is_empty());
        let details = details.map(|part| format!(": {part}")).collect::<String>();
        format!("{} answered with status {status}{details}", self.config.url)
    }

    fn post(&self, path: &str, schema: &str) -> Result<RegistryAnswer, RegistryError> {
        self.client.send("POST", path, &json!({ "schema": schema, "schemaType": "AVRO" }))
    }
}

/// Everything but letters, digits, `.`, `_` and `-` is escaped in a subject.
const SUBJECT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

/// A subject, percent-encoded for a URL.
fn escaped(subject: &str) -> PercentEncode<'_> {
    utf8_percent_encode(subject, SUBJECT)
}
