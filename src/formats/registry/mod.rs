//! A Confluent-compatible schema registry: schemas of others by their id, ours by their subject.
//!
//! Every answer is one of three: what was asked for; a definite no (the registry answered, and it is not there); or
//! trouble, which says nothing about the data and is asked again. Only a definite no may make a dead letter. A status or a
//! body that is not the registry's own way of saying no is trouble: a wrong address answers 404 to everything.

mod http;
mod known;
mod subjects;

use serde_json::{Value, json};

use super::avro::Schema;
use crate::config::RegistryConfig;

use http::{Answer, Client};

pub use known::Known;
pub use subjects::{Subject, SubjectStatus, value_subject};

/// Why the registry did not give what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// It answered, and what was asked for is not there or cannot be used. Asking again changes nothing.
    #[error("{0}")]
    No(String),
    /// It did not answer, or not as a registry does. Ask again later.
    #[error("{0}")]
    Away(String),
    /// What the settings say of it cannot be used.
    #[error("{0}")]
    Settings(String),
}

/// A registry.
#[derive(Debug)]
pub struct Registry {
    client: Client,
    config: RegistryConfig,
}

/// How many schemas one may refer to, all in all.
const REFERENCES: usize = 64;

/// The registry's own words for what is not there.
const NO_SUBJECT: i64 = 40401;
const NO_VERSION: i64 = 40402;
const NO_SCHEMA: i64 = 40403;

impl Registry {
    /// Nothing is asked yet.
    ///
    /// # Errors
    /// The certificates cannot be read.
    pub fn new(config: &RegistryConfig) -> Result<Registry, RegistryError> {
        Ok(Registry { client: Client::new(config)?, config: config.clone() })
    }

    /// How it is set up.
    pub fn config(&self) -> &RegistryConfig {
        &self.config
    }

    /// The schema of this id.
    ///
    /// # Errors
    /// See [`RegistryError`].
    pub fn schema(&self, id: u32) -> Result<Schema, RegistryError> {
        let found = self.client.get(&format!("/schemas/ids/{id}"))?;
        let found =
            self.expect(found, &[NO_SCHEMA], || format!("the registry knows no schema with id {id}"))?;
        self.read(&found).map_err(|error| match error {
            RegistryError::No(why) => {
                RegistryError::No(format!("the schema with id {id} cannot be used: {why}"))
            }
            other => other,
        })
    }

    /// The newest schema of a subject.
    ///
    /// # Errors
    /// See [`RegistryError`].
    pub fn latest(&self, subject: &str) -> Result<Schema, RegistryError> {
        self.version(subject, "latest")
    }

    /// A schema of a subject by its version.
    pub(crate) fn version(&self, subject: &str, version: &str) -> Result<Schema, RegistryError> {
        self.read(&self.written(subject, version)?)
    }

    /// The versions of a subject, oldest first.
    ///
    /// # Errors
    /// See [`RegistryError`].
    pub fn versions(&self, subject: &str) -> Result<Vec<i64>, RegistryError> {
        let found = self.client.get(&format!("/subjects/{}/versions", escaped(subject)))?;
        let found = self.expect(found, &[NO_SUBJECT], || format!("no schema is registered for {subject}"))?;
        match found.as_array() {
            Some(versions) => Ok(versions.iter().filter_map(Value::as_i64).collect()),
            None => Err(self.garbage("a list of versions")),
        }
    }

    fn written(&self, subject: &str, version: &str) -> Result<Value, RegistryError> {
        let found = self.client.get(&format!("/subjects/{}/versions/{version}", escaped(subject)))?;
        self.expect(found, &[NO_SUBJECT, NO_VERSION], || {
            format!("no schema is registered for {subject} (version {version})")
        })
    }

    /// Reads a schema out of an answer, and asks for those it refers to.
    fn read(&self, answer: &Value) -> Result<Schema, RegistryError> {
        let Some(schema) = answer.get("schema").and_then(Value::as_str) else {
            return Err(self.garbage("a schema"));
        };
        match answer.get("schemaType").and_then(Value::as_str) {
            None | Some("AVRO") => {}
            Some(other) => {
                let other: String = other.chars().take(20).collect();
                return Err(RegistryError::No(format!("it is of type {other}, not AVRO")));
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
                return Err(self.garbage("a reference with subject and version"));
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
                None => return Err(self.garbage("a schema")),
            }
        }
        Ok(())
    }

    /// What an answer holds; a definite no only if it is one of these, in the registry's own words.
    fn expect(
        &self,
        answer: Answer,
        noes: &[i64],
        no: impl FnOnce() -> String,
    ) -> Result<Value, RegistryError> {
        let Answer { status, body } = answer;
        let body: Option<Value> = serde_json::from_slice(&body).ok();
        let code = body.as_ref().and_then(|body| body.get("error_code")).and_then(Value::as_i64);
        match (status, body) {
            (200..=299, Some(body)) => Ok(body),
            (200..=299, None) => Err(self.garbage("JSON")),
            (404, _) if code.is_some_and(|code| noes.contains(&code)) => Err(RegistryError::No(no())),
            (status, body) => Err(RegistryError::Away(self.complaint(status, body.as_ref()))),
        }
    }

    fn garbage(&self, wanted: &str) -> RegistryError {
        let url = &self.config.url;
        RegistryError::Away(format!(
            "{url} answers with something else than {wanted}; is registry.url right?"
        ))
    }

    fn complaint(&self, status: u16, body: Option<&Value>) -> String {
        let said = body.and_then(|body| body.get("message")).and_then(Value::as_str).unwrap_or_default();
        let said: String = said.chars().filter(|c| !c.is_control()).take(200).collect();
        let hint = match status {
            300..=399 => "a redirect, which is not followed; set registry.url to where it leads",
            401 | 403 => "check registry.username and registry.password, or registry.token",
            404 => "is registry.url right?",
            _ => "",
        };
        let words = [said.as_str(), hint].into_iter().filter(|words| !words.is_empty());
        let words = words.map(|words| format!(": {words}")).collect::<String>();
        format!("{} answers with status {status}{words}", self.config.url)
    }

    fn post(&self, path: &str, schema: &str) -> Result<Answer, RegistryError> {
        self.client.send("POST", path, &json!({ "schema": schema, "schemaType": "AVRO" }))
    }
}

/// A subject as it stands in an address.
fn escaped(subject: &str) -> String {
    let mut out = String::with_capacity(subject.len());
    for byte in subject.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}
