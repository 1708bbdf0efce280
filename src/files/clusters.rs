//! Writes the `--clusters` file at the end of a run: one JSON cluster record with all its members per line.

use crate::formats::json;
use samestory_engine::engine::Engine;
use samestory_engine::index::View;

use super::RunError;
use super::sink::{Sink, SinkError};

/// Bytes collected before a write.
const WRITE_BYTES: usize = 256 * 1024;

pub(super) fn write(engine: &Engine, state: &impl View, mut file: Sink) -> Result<(), RunError> {
    let mut lines = Vec::new();
    let mut outcome: Result<(), SinkError> = Ok(());
    engine.each_cluster(state, &mut |cluster| {
        json::write_cluster(&cluster, &mut lines);
        if lines.len() >= WRITE_BYTES {
            outcome = file.write(&lines);
            lines.clear();
        }
        outcome.is_ok()
    })?;
    outcome?;
    file.write(&lines)?;
    Ok(file.finish()?)
}
