//! Writes the `--clusters` file at the end of a run: one JSON cluster record with all its members per line, or a table with
//! one row per member.

use samestory_engine::engine::Engine;
use samestory_engine::index::View;

use super::RunError;
use super::output_file::OutputFile;
use super::output_format::{ClusterEncoder, OutputFormat};
use super::sink::SinkError;

/// Bytes collected before a write.
const WRITE_BYTES: usize = 256 * 1024;

pub(super) fn write(
    engine: &Engine,
    state: &impl View,
    mut file: OutputFile,
    format: OutputFormat,
) -> Result<(), RunError> {
    let mut encoder = ClusterEncoder::new(format);
    let mut lines = Vec::new();
    encoder.header(&mut lines);
    let mut outcome: Result<(), SinkError> = Ok(());
    engine.each_cluster(state, &mut |cluster| {
        encoder.add(&cluster, &mut lines);
        if lines.len() >= WRITE_BYTES {
            outcome = file.add(&lines).map(|_| ());
            lines.clear();
        }
        outcome.is_ok()
    })?;
    outcome?;
    Ok(file.finish(&lines)?)
}
