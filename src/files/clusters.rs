//! Writes the `--clusters` file at the end of a run: one JSON cluster record with all its members per line, or a table with
//! one row per member.

use crate::formats::json;
use samestory_engine::engine::Engine;
use samestory_engine::index::View;
use samestory_engine::model::ClusterRecord;

use super::FileRunError;
#[cfg(feature = "parquet")]
use super::columnar::ParquetTable;
use super::output_file::OutputFile;
#[cfg(feature = "parquet")]
use super::output_format::ColumnKind;
use super::output_format::{OutputFormat, write_row};

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

/// The columns of a table of clusters: one row per member.
const CLUSTER_COLUMNS: [&str; 9] =
    ["cluster_id", "size", "canonical_id", "id", "match_type", "title", "host", "url", "published_at"];

/// Writes clusters, one JSON object per line or one row per member.
#[derive(Debug)]
struct ClusterEncoder {
    delimiter: Option<u8>,
    started: bool,
    #[cfg(feature = "parquet")]
    parquet: Option<ParquetTable>,
}

impl ClusterEncoder {
    fn new(format: OutputFormat) -> ClusterEncoder {
        ClusterEncoder {
            delimiter: format.delimiter(),
            started: false,
            #[cfg(feature = "parquet")]
            parquet: (format == OutputFormat::Parquet).then(|| {
                let kind = |name| if name == "size" { ColumnKind::Integer } else { ColumnKind::Text };
                ParquetTable::new(CLUSTER_COLUMNS.map(|name| (name.to_owned(), kind(name))).into())
            }),
        }
    }

    /// The header, if the format has one and it is not written yet.
    fn header(&mut self, out: &mut Vec<u8>) {
        if let (Some(delimiter), false) = (self.delimiter, std::mem::replace(&mut self.started, true)) {
            write_row(CLUSTER_COLUMNS.into_iter(), delimiter, out);
        }
    }

    /// The end of the file.
    fn finish(&mut self, out: &mut Vec<u8>) -> std::io::Result<()> {
        #[cfg(feature = "parquet")]
        if let Some(parquet) = &mut self.parquet {
            return parquet.finish(out);
        }
        self.header(out);
        Ok(())
    }

    fn add(&mut self, cluster: &ClusterRecord, out: &mut Vec<u8>) -> std::io::Result<()> {
        if !self.is_table() {
            json::write_cluster(cluster, out);
            return Ok(());
        }
        self.header(out);
        let (id, size, canonical) =
            (cluster.id.to_string(), cluster.size.to_string(), cluster.canonical.to_string());
        for member in &cluster.members {
            let published = member.published_at.map(|time| time.to_string()).unwrap_or_default();
            let text = |value: &'_ Option<String>| value.clone().unwrap_or_default();
            let (title, host, url) = (text(&member.title), text(&member.host), text(&member.url));
            let match_type = member.match_type.map(|kind| kind.as_str()).unwrap_or_default();
            let values =
                [&id, &size, &canonical, member.id.as_str(), match_type, &title, &host, &url, &published];
            #[cfg(feature = "parquet")]
            if let Some(parquet) = &mut self.parquet {
                let row = values.map(|text: &str| (!text.is_empty()).then(|| text.to_owned()));
                parquet.add(row.into(), out)?;
            }
            if let Some(delimiter) = self.delimiter {
                write_row(values.into_iter(), delimiter, out);
            }
        }
        Ok(())
    }

    fn is_table(&self) -> bool {
        #[cfg(feature = "parquet")]
        if self.parquet.is_some() {
            return true;
        }
        self.delimiter.is_some()
    }
}
