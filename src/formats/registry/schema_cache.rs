//! A cache of writer schemas. A batch's schemas are loaded before it is planned, so that planning makes no requests.
//! The cache is bounded, and it remembers for a while which ids do not exist, so that a flood of records with an
//! unknown id does not become a flood of requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::formats::avro::Schema;
use crate::formats::fields::DecodeFailure;
use samestory_engine::model::DeadLetterReason;

use super::{Registry, RegistryError};

/// Most time that one batch may spend on requests, so that the consumer stays a member of its group.
const MAX_LOAD_TIME: Duration = Duration::from_secs(30);

/// A cache of writer schemas by id.
#[derive(Clone, Debug)]
pub struct SchemaCache {
    registry: Arc<Registry>,
    entries: BTreeMap<u32, CachedSchema>,
    /// Number of batches so far.
    batches: u64,
}

#[derive(Clone, Debug)]
struct CachedSchema {
    schema: Result<Arc<Schema>, String>,
    asked: Instant,
    /// The last batch that needed it.
    used: u64,
}

impl SchemaCache {
    /// An empty cache in front of a registry.
    pub fn new(registry: Arc<Registry>) -> SchemaCache {
        SchemaCache { registry, entries: BTreeMap::new(), batches: 0 }
    }

    /// Fetches the schemas of these ids that are not cached.
    ///
    /// # Errors
    /// The registry is unavailable: keep the batch and retry. Schemas fetched so far stay cached.
    pub fn load(&mut self, ids: &BTreeSet<u32>) -> Result<(), String> {
        let began = Instant::now();
        for &id in ids {
            let now = self.batches;
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.used = now;
                continue;
            }
            if began.elapsed() > MAX_LOAD_TIME {
                return Err("the schema registry responds slowly; retrying for the remaining schemas".into());
            }
            let schema = match self.registry.schema(id) {
                Ok(schema) => Ok(Arc::new(schema)),
                Err(RegistryError::No(why)) => Err(why),
                Err(RegistryError::Away(why) | RegistryError::Settings(why)) => return Err(why),
            };
            self.entries.insert(id, CachedSchema { schema, asked: Instant::now(), used: now });
        }
        Ok(())
    }

    /// Called after each batch: evicts the least recently used schemas beyond the limit, and unknown ids that are due for
    /// another request. Not earlier: a slow registry and many unknown ids would otherwise lead to endless requests.
    pub fn evict(&mut self) {
        let config = self.registry.config();
        self.entries.retain(|_, entry| entry.schema.is_ok() || entry.asked.elapsed() < config.negative);
        while self.entries.len() > config.cache {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(&id, _)| id);
            let Some(oldest) = oldest else { break };
            self.entries.remove(&oldest);
        }
        self.batches += 1;
    }

    /// The schema of an id that was loaded.
    ///
    /// # Errors
    /// The registry has no such schema, or it cannot be used: the record is a dead letter.
    pub fn get(&self, id: u32) -> Result<&Schema, DecodeFailure> {
        let refuse = |why: &str| DecodeFailure::new(DeadLetterReason::UnknownSchema, why);
        match self.entries.get(&id).map(|entry| &entry.schema) {
            Some(Ok(schema)) => Ok(schema),
            Some(Err(why)) => Err(refuse(why)),
            None => Err(refuse("its schema was not loaded")),
        }
    }
}
