//! The schemas that a reader knows: asked for before a batch is decided, so that deciding asks nobody.
//!
//! Bounded; a definite no is remembered for a while, so that a flood of records with an unknown id is not a flood of
//! questions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::formats::avro::Schema;
use crate::formats::fields::DecodeFailure;
use samestory_engine::model::DeadLetterReason;

use super::{Registry, RegistryError};

/// How long one batch may ask, so that its reader stays a member of its group.
const LONGEST: Duration = Duration::from_secs(30);

/// The schemas that a reader knows.
#[derive(Clone, Debug)]
pub struct Known {
    registry: Arc<Registry>,
    entries: BTreeMap<u32, Entry>,
    /// Counts batches.
    now: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    schema: Result<Arc<Schema>, String>,
    asked: Instant,
    /// The last batch that needed it.
    used: u64,
}

impl Known {
    /// Knows nothing yet.
    pub fn new(registry: Arc<Registry>) -> Known {
        Known { registry, entries: BTreeMap::new(), now: 0 }
    }

    /// Asks for the schemas of these ids, as far as they are not known.
    ///
    /// # Errors
    /// The registry is in trouble: keep the batch, wait, ask again. What is known already stays known.
    pub fn gather(&mut self, ids: &BTreeSet<u32>) -> Result<(), String> {
        let began = Instant::now();
        for &id in ids {
            let now = self.now;
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.used = now;
                continue;
            }
            if began.elapsed() > LONGEST {
                return Err("the registry answers slowly; going on with what it has not told yet".into());
            }
            let schema = match self.registry.schema(id) {
                Ok(schema) => Ok(Arc::new(schema)),
                Err(RegistryError::No(why)) => Err(why),
                Err(RegistryError::Away(why) | RegistryError::Settings(why)) => return Err(why),
            };
            self.entries.insert(id, Entry { schema, asked: Instant::now(), used: now });
        }
        Ok(())
    }

    /// The batch is decided: what is too much is forgotten, and what was not there may be asked for again. Not earlier,
    /// or a slow registry with many unknown ids would be asked in circles.
    pub fn settle(&mut self) {
        let config = self.registry.config();
        self.entries.retain(|_, entry| entry.schema.is_ok() || entry.asked.elapsed() < config.negative);
        while self.entries.len() > config.cache {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(&id, _)| id);
            let Some(oldest) = oldest else { break };
            self.entries.remove(&oldest);
        }
        self.now += 1;
    }

    /// The schema of an id that was gathered.
    ///
    /// # Errors
    /// It is definitely not there, or cannot be used: a dead letter.
    pub fn get(&self, id: u32) -> Result<&Schema, DecodeFailure> {
        let refuse = |why: &str| DecodeFailure::new(DeadLetterReason::UnknownSchema, why);
        match self.entries.get(&id).map(|entry| &entry.schema) {
            Some(Ok(schema)) => Ok(schema),
            Some(Err(why)) => Err(refuse(why)),
            None => Err(refuse("its schema was not asked for")),
        }
    }
}
