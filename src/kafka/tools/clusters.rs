//! Reads the current record of every cluster from the clusters topic, for `samestory clusters`. The topic is compacted, but older
//! records remain in it for a while, so a first pass finds the last record of each key, and a second one reads those.

use std::collections::BTreeSet;
use std::collections::HashMap;

use crate::config::Config;
use crate::formats::avro;
use crate::formats::registry::SchemaCache;
use crate::kafka::admin::values;
use crate::kafka::turn::record::Record;

use super::scan::{ScanError, Scanner};

/// Why clusters could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ClustersError {
    /// The topic could not be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The schema registry is unreachable or refuses access.
    #[error("schema registry: {0}")]
    Registry(String),
}

/// Passes the current record of each cluster as one line of JSON to `visit`, in the order of the topic's partitions, until it
/// returns false. Returns how many clusters there are.
///
/// # Errors
/// See [`ClustersError`].
pub fn each(config: &Config, mut visit: impl FnMut(&[u8]) -> bool) -> Result<u64, ClustersError> {
    let scanner = Scanner::new(&config.bus, "samestory-clusters")?;
    let topic = &config.bus.topics.clusters;
    let registry = values::registry(config).map_err(|error| ClustersError::Registry(error.to_string()))?;
    let mut schemas = registry.map(SchemaCache::new);
    let (low, high) = scanner.ranges(topic)?;
    // By a hash of the key: keys are short, but there may be millions.
    let hash = |key: &[u8]| xxhash_rust::xxh3::xxh3_128(key);
    let mut last: HashMap<u128, (i32, i64)> = HashMap::new();
    scanner.read(topic, (&low, &high), |partition, record| {
        let key = hash(record.key.as_deref().unwrap_or_default());
        match record.value {
            Some(_) => drop(last.insert(key, (partition, record.offset))),
            None => drop(last.remove(&key)),
        }
        Ok(())
    })?;
    let (mut goes_on, mut failed) = (true, None);
    scanner.read(topic, (&low, &high), |partition, record| {
        let key = hash(record.key.as_deref().unwrap_or_default());
        if goes_on && failed.is_none() && last.get(&key) == Some(&(partition, record.offset)) {
            match as_json(&record, schemas.as_mut()) {
                Ok(line) => goes_on = visit(&line),
                Err(error) => failed = Some(error),
            }
        }
        Ok(())
    })?;
    failed.map_or(Ok(last.len() as u64), |error| Err(ClustersError::Registry(error)))
}

/// The record's value as JSON, whichever format it was written in.
fn as_json(record: &Record, schemas: Option<&mut SchemaCache>) -> Result<Vec<u8>, String> {
    let value = record.value.as_deref().unwrap_or_default();
    if !avro::is_framed(value) {
        return Ok(value.to_vec());
    }
    let schemas = schemas.ok_or("the topic holds Avro; set registry.url")?;
    let failure = |failure: crate::formats::fields::DecodeFailure| failure.message;
    let framed = avro::unframe(value).map_err(failure)?;
    schemas.load(&BTreeSet::from([framed.id]))?;
    let datum =
        avro::Datum::parse(schemas.get(framed.id).map_err(failure)?, framed.datum).map_err(failure)?;
    Ok(avro::as_json(&datum))
}
