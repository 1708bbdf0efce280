//! Writes the `--clusters` file at the end of a run: one JSON cluster record with all its members per line, or a table with
//! one row per member.

use samestory_engine::engine::Engine;
use samestory_engine::index::View;

use super::FileRunError;
use super::output_file::OutputFile;
use super::output_format::{ClusterEncoder, OutputFormat};

/// Bytes collected before a write.
const WRITE_BYTES: usize = 256 * 1024;

pub(super) fn write(
    engine: &Engine,
    state: &impl View,
    mut file: OutputFile,
    format: OutputFormat,
) -> Result<(), FileRunError> {
    let mut encoder = ClusterEncoder::new(format);
    let mut lines = Vec::new();
    let encode = |error| FileRunError::Encode { error };
    let mut outcome: Result<(), FileRunError> = Ok(());
    engine.each_cluster(state, &mut |cluster| {
        outcome = encoder.add(&cluster, &mut lines).map_err(encode);
        if lines.len() >= WRITE_BYTES && outcome.is_ok() {
            outcome = file.add(&lines).map(|_| ()).map_err(FileRunError::from);
            lines.clear();
        }
        outcome.is_ok()
    })?;
    outcome?;
    encoder.finish(&mut lines).map_err(encode)?;
    Ok(file.finish(&lines)?)
}
