//! Our own schemas in the registry, each under the subject where consumers look for it (`<topic>-value`). `samestory
//! schemas` registers and checks them; the stage only looks up their ids. Registered subjects are held to `BACKWARD`
//! compatibility.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use crate::config::{Bus, ValueForm};
use crate::formats::schemas;

use super::{NO_SCHEMA, NO_SUBJECT, Registry, RegistryError, escaped};

/// One of our schemas and the subject that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The topic whose values have this schema.
    pub topic: String,
    /// The subject in the registry.
    pub name: String,
    /// The Avro schema.
    pub schema: &'static str,
}

/// True if one of our schemas is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectStatus {
    /// Registered with this id.
    Registered(u32),
    /// Not registered, but compatible with what is.
    Missing,
    /// Not registered, and incompatible with the latest registered schema.
    Incompatible,
}

/// The answer to a registration, or to the question whether a schema is registered.
#[derive(Deserialize)]
struct SchemaId {
    id: Option<u32>,
}

/// The answer to the question whether a schema could be registered.
#[derive(Deserialize)]
struct Compatibility {
    is_compatible: Option<bool>,
}

impl Subject {
    fn new(topic: &str, schema: &'static str) -> Subject {
        Subject { topic: topic.to_owned(), name: value_subject(topic), schema }
    }

    /// The subjects of everything that is written with these settings.
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

/// The subject of a topic's values.
pub fn value_subject(topic: &str) -> String {
    format!("{topic}-value")
}

impl Registry {
    /// Looks up whether a schema is registered, and if not, whether it could be.
    ///
    /// # Errors
    /// The registry is unavailable.
    pub fn status(&self, subject: &Subject) -> Result<SubjectStatus, RegistryError> {
        let name = escaped(&subject.name);
        let found = self.post(&format!("/subjects/{name}"), subject.schema)?;
        match self.expect(found, "a schema id", &[NO_SUBJECT, NO_SCHEMA], String::new) {
            Ok(found) => return self.id(found).map(SubjectStatus::Registered),
            Err(RegistryError::No(_)) => {}
            Err(error) => return Err(error),
        }
        let fits = self.post(&format!("/compatibility/subjects/{name}/versions/latest"), subject.schema)?;
        match self.expect(fits, "a compatibility result", &[NO_SUBJECT, super::NO_VERSION], String::new) {
            Ok(Compatibility { is_compatible }) => match is_compatible {
                Some(true) => Ok(SubjectStatus::Missing),
                Some(false) => Ok(SubjectStatus::Incompatible),
                None => Err(self.unexpected("a compatibility result")),
            },
            Err(RegistryError::No(_)) => Ok(SubjectStatus::Missing),
            Err(error) => Err(error),
        }
    }

    /// Registers a schema and sets the compatibility of its subject to `BACKWARD`. Returns the schema's id.
    ///
    /// # Errors
    /// [`RegistryError::No`] if the registry refuses the schema.
    pub fn register(&self, subject: &Subject) -> Result<u32, RegistryError> {
        let name = escaped(&subject.name);
        let answer = self.post(&format!("/subjects/{name}/versions"), subject.schema)?;
        if matches!(answer.status, 409 | 422) {
            let complaint = serde_json::from_slice(&answer.body).unwrap_or_default();
            return Err(RegistryError::No(self.complaint(answer.status, &complaint)));
        }
        let id = self.expect(answer, "a schema id", &[], String::new).and_then(|answer| self.id(answer))?;
        // After the schema: some registries refuse settings for a subject that has no schema yet.
        let level = json!({ "compatibility": "BACKWARD" });
        let answer = self.client.send("PUT", &format!("/config/{name}"), &level)?;
        self.expect::<IgnoredAny>(answer, "JSON", &[], String::new)?;
        Ok(id)
    }

    fn id(&self, answer: SchemaId) -> Result<u32, RegistryError> {
        answer.id.ok_or_else(|| self.unexpected("a schema id"))
    }
}
