//! A client for a Confluent-compatible schema registry: writer schemas by id, our own schemas by subject.
//!
//! A request has one of three results: the schema; a definite no, because the registry says that it does not exist; or
//! a failure, which says nothing about the data and is retried. Only a definite no may lead to a dead letter. It must
//! be in the registry's own error codes, because a server at a wrong address answers 404 to everything.

mod http;
mod schema_cache;
mod subjects;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

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

/// A schema as the registry answers with it. Nothing in an answer is taken for granted: a server at a wrong address may
/// answer with any JSON.
#[derive(Deserialize)]
struct SchemaAnswer {
    schema: Option<String>,
    #[serde(rename = "schemaType")]
    schema_type: Option<String>,
    references: Option<Vec<SchemaReference>>,
}

/// Another schema that a schema refers to.
#[derive(Deserialize)]
struct SchemaReference {
    subject: Option<String>,
    version: Option<i64>,
}

/// What the registry says when it refuses a request.
#[derive(Default, Deserialize)]
struct RegistryComplaint {
    error_code: Option<i64>,
    message: Option<String>,
}

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
        let no = || format!("the registry has no schema with id {id}");
        let found = self.expect(found, "a schema", &[NO_SCHEMA], no)?;
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
        let no = || format!("no schema is registered for {subject}");
        self.expect(found, "a list of versions", &[NO_SUBJECT], no)
    }

    fn written(&self, subject: &str, version: &str) -> Result<SchemaAnswer, RegistryError> {
        let found = self.client.get(&format!("/subjects/{}/versions/{version}", escaped(subject)))?;
        let no = || format!("no schema is registered for {subject} (version {version})");
        self.expect(found, "a schema", &[NO_SUBJECT, NO_VERSION], no)
    }

    /// Parses the schema in an answer, and fetches those that it refers to.
    fn read(&self, answer: &SchemaAnswer) -> Result<Schema, RegistryError> {
        let schema = answer.schema.as_deref().ok_or_else(|| self.unexpected("a schema"))?;
        match answer.schema_type.as_deref() {
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
        answer: &SchemaAnswer,
        seen: &mut Vec<(String, i64)>,
        out: &mut Vec<String>,
    ) -> Result<(), RegistryError> {
        for reference in answer.references.iter().flatten() {
            let SchemaReference { subject: Some(subject), version: Some(version) } = reference else {
                return Err(self.unexpected("a reference with subject and version"));
            };
            let name = (subject.clone(), *version);
            if seen.contains(&name) {
                continue;
            }
            if seen.len() >= REFERENCES {
                return Err(RegistryError::No(format!("it refers to more than {REFERENCES} others")));
            }
            seen.push(name);
            let found = self.written(subject, &version.to_string())?;
            self.collect(&found, seen, out)?;
            out.push(found.schema.ok_or_else(|| self.unexpected("a schema"))?);
        }
        Ok(())
    }

    /// A successful answer, which is `wanted`. It is a definite no only if the registry's error code is in `noes`.
    fn expect<T: DeserializeOwned>(
        &self,
        answer: RegistryAnswer,
        wanted: &str,
        noes: &[i64],
        no: impl FnOnce() -> String,
    ) -> Result<T, RegistryError> {
        let RegistryAnswer { status, body } = answer;
        if let 200..=299 = status {
            return serde_json::from_slice(&body).map_err(|error| match error.is_data() {
                true => self.unexpected(wanted),
                false => self.unexpected("JSON"),
            });
        }
        let complaint: RegistryComplaint = serde_json::from_slice(&body).unwrap_or_default();
        match (status, complaint.error_code) {
            (404, Some(code)) if noes.contains(&code) => Err(RegistryError::No(no())),
            _ => Err(RegistryError::Away(self.complaint(status, &complaint))),
        }
    }

    fn unexpected(&self, wanted: &str) -> RegistryError {
        let url = &self.config.url;
        RegistryError::Away(format!("{url} did not answer with {wanted}; is registry.url right?"))
    }

    fn complaint(&self, status: u16, complaint: &RegistryComplaint) -> String {
        let message = complaint.message.as_deref().unwrap_or_default();
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
