//! Our own schemas in the registry: each under the subject that consumers look for (`<topic>-value`).

use serde_json::{Value, json};

use crate::config::{Bus, ValueForm};
use crate::formats::schemas;

use super::{NO_SCHEMA, NO_SUBJECT, Registry, RegistryError, escaped};

/// A schema of ours, and where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Its topic.
    pub topic: String,
    /// Its name in the registry.
    pub name: String,
    /// Its schema.
    pub schema: &'static str,
}

/// How a schema of ours stands in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectStatus {
    /// It is there, under this id.
    Registered(u32),
    /// It is not there, but may be put there.
    Missing,
    /// It is not there, and readers of what is could not read it.
    Incompatible,
}

impl Subject {
    fn new(topic: &str, schema: &'static str) -> Subject {
        Subject { topic: topic.to_owned(), name: value_subject(topic), schema }
    }

    /// All subjects of what is written with these settings.
    pub fn all(bus: &Bus) -> Vec<Subject> {
        let names = &bus.topics;
        let mut all = Vec::new();
        if bus.value == ValueForm::Envelope {
            all.push(Subject::new(&names.unique, schemas::TAGGED_ARTICLE));
            if names.near_duplicate != names.unique {
                all.push(Subject::new(&names.near_duplicate, schemas::TAGGED_ARTICLE));
            }
        }
        all.push(Subject::new(&names.clusters, schemas::CLUSTER));
        all
    }
}

/// What the values of a topic are registered under.
pub fn value_subject(topic: &str) -> String {
    format!("{topic}-value")
}

impl Registry {
    /// How a schema of ours stands.
    ///
    /// # Errors
    /// The registry is in trouble.
    pub fn standing(&self, subject: &Subject) -> Result<SubjectStatus, RegistryError> {
        let name = escaped(&subject.name);
        let found = self.post(&format!("/subjects/{name}"), subject.schema)?;
        match self.expect(found, &[NO_SUBJECT, NO_SCHEMA], String::new) {
            Ok(found) => return self.id(&found).map(SubjectStatus::Registered),
            Err(RegistryError::No(_)) => {}
            Err(error) => return Err(error),
        }
        let fits = self.post(&format!("/compatibility/subjects/{name}/versions/latest"), subject.schema)?;
        match self.expect(fits, &[NO_SUBJECT, super::NO_VERSION], String::new) {
            Ok(answer) => match answer.get("is_compatible").and_then(Value::as_bool) {
                Some(true) => Ok(SubjectStatus::Missing),
                Some(false) => Ok(SubjectStatus::Incompatible),
                None => Err(self.garbage("a word on compatibility")),
            },
            Err(RegistryError::No(_)) => Ok(SubjectStatus::Missing),
            Err(error) => Err(error),
        }
    }

    /// Puts a schema of ours there, and holds later ones to what its readers can read (`BACKWARD`).
    ///
    /// # Errors
    /// [`RegistryError::No`] where the registry refuses it.
    pub fn register(&self, subject: &Subject) -> Result<u32, RegistryError> {
        let name = escaped(&subject.name);
        let answer = self.post(&format!("/subjects/{name}/versions"), subject.schema)?;
        if matches!(answer.status, 409 | 422) {
            let body = serde_json::from_slice(&answer.body).ok();
            return Err(RegistryError::No(self.complaint(answer.status, body.as_ref())));
        }
        let id = self.expect(answer, &[], String::new).and_then(|answer| self.id(&answer))?;
        // After the schema: some registries know no settings of a subject that has none.
        let level = json!({ "compatibility": "BACKWARD" });
        let answer = self.client.send("PUT", &format!("/config/{name}"), &level)?;
        self.expect(answer, &[], String::new)?;
        Ok(id)
    }

    fn id(&self, answer: &Value) -> Result<u32, RegistryError> {
        let id = answer.get("id").and_then(Value::as_u64).and_then(|id| u32::try_from(id).ok());
        id.ok_or_else(|| self.garbage("a schema id"))
    }
}
