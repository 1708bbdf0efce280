//! The columns of an output that has some: all columns of the inputs that can be read twice, found before the first
//! verdict. A table that an earlier run began is continued only with the columns that it has.

use std::sync::Arc;

use crate::formats::Owner;
use crate::formats::fields::Fields;

use super::job::{FileRunError, Job};
use super::output_file::OutputFile;
use super::output_format::{ColumnKind, Encoder, InputColumn, OutputFormat};
use super::read_as::{LOOKED_AT, ReadAs};
use super::records::{FileFormat, Records};
use super::source::Source;
use super::stage::InputSpec;

/// The columns of the inputs that can be read twice.
#[derive(Debug, Default)]
pub(super) struct FileColumns {
    pub(super) columns: Vec<InputColumn>,
    /// The column that holds the id, if all inputs have it.
    pub(super) id: Option<String>,
    /// All inputs are files.
    pub(super) is_all: bool,
}

/// Reads the header, or the first records, of every input that is a file. An output with columns has all of them.
pub(super) fn columns_of_files(reading: &InputSpec) -> Result<FileColumns, FileRunError> {
    let mut columns = FileColumns { is_all: true, ..FileColumns::default() };
    let mut ids: Vec<Option<String>> = Vec::new();
    for source in &reading.sources {
        if !source.is_readable_again() {
            columns.is_all = false;
            continue;
        }
        let (mut records, opened) = Records::open(source, reading, &Arc::default())?;
        let mut first = Vec::new();
        while first.len() < LOOKED_AT {
            // An unreadable rest is reported when it is judged.
            let Ok(Some(record)) = records.next() else { break };
            first.push(record);
        }
        let read_as = ReadAs::new(source.name(), &opened, &records, &first, reading, false);
        columns.add(&read_as.columns);
        ids.push(read_as.id_column().map(str::to_owned));
    }
    let id = ids.first().cloned().flatten();
    columns.id = id.filter(|_| ids.windows(2).all(|pair| pair[0] == pair[1]));
    Ok(columns)
}

impl FileColumns {
    pub(super) fn add(&mut self, columns: &[InputColumn]) {
        for column in columns {
            match self.columns.iter_mut().find(|known| known.name == column.name) {
                None => self.columns.push(column.clone()),
                // Inputs that disagree have only the text of a value in common.
                Some(known) if known.kind != column.kind => known.kind = ColumnKind::Text,
                Some(_) => {}
            }
        }
    }
}

/// Checks the header of a table that an earlier run began, and has this run write its rows after it.
pub(super) fn continue_columns(
    job: &Job,
    output: &OutputFile,
    known: &FileColumns,
    encoder: &mut Encoder,
) -> Result<(), FileRunError> {
    let (Some(path), true) = (&job.output, output.length > 0) else { return Ok(()) };
    let mut reading = InputSpec::new(Vec::new(), Fields::default(), Owner::default(), job.reading.limit);
    reading.format = Some(if job.to == OutputFormat::Tsv { FileFormat::Tsv } else { FileFormat::Csv });
    let (records, _) = Records::open(&Source::File(path.clone()), &reading, &Arc::default())?;
    let mut expected = Encoder::new(job.to, job.article, job.evidence);
    expected.set_columns(&known.columns, known.id.as_deref(), true);
    if records.columns().map(<[String]>::to_vec) != expected.column_names() {
        return Err(FileRunError::OtherColumns(path.clone()));
    }
    *encoder = expected;
    Ok(())
}
