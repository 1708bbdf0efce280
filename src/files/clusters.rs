//! The clusters at the end of a run, one on each line: a cluster record with all its members.

use crate::formats::json;
use samestory_engine::engine::Engine;
use samestory_engine::index::View;

use super::RunError;
use super::sink::{Sink, SinkError};

/// Lines that are written together.
const TOGETHER: usize = 256 * 1024;

pub(super) fn write(engine: &Engine, state: &impl View, mut file: Sink) -> Result<(), RunError> {
    let mut lines = Vec::new();
    let mut outcome: Result<(), SinkError> = Ok(());
    engine.each_cluster(state, &mut |cluster| {
        json::write_cluster(&cluster, &mut lines);
        if lines.len() >= TOGETHER {
            outcome = file.write(&lines);
            lines.clear();
        }
        outcome.is_ok()
    })?;
    outcome?;
    file.write(&lines)?;
    Ok(file.finish()?)
}
