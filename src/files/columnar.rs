//! Parquet and Arrow IPC: [`Rows`] reads them as [`super::records`] reads lines, one JSON object per row, and [`ParquetWriter`]
//! writes verdicts. The line of a record is its row, counted from 1.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_json::writer::{LineDelimited, WriterBuilder};
use arrow_schema::{ArrowError, DataType, Field as Column, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::value::RawValue;

use samestory_engine::model::Verdict;

use super::output_format::Columns;
use super::records::{BoundedBuffer, Format, Record};
use super::source::{Source, SourceError};
use super::stage::InputSpec;

/// Rows that are read, or collected, at a time.
const READ_ROWS: usize = 256;
const WRITTEN_ROWS: usize = 8192;

/// The rows of a Parquet or Arrow file.
pub(crate) struct Rows {
    pub(crate) columns: Vec<String>,
    batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>,
    /// The rows of the current batch as lines of JSON, and where the next one begins.
    lines: Vec<u8>,
    at: usize,
    row: u64,
    limit: usize,
    read: Arc<AtomicU64>,
    /// Bytes of the file, and its rows if they are known: they say how far the reading is.
    size: u64,
    rows: Option<u64>,
}

impl Rows {
    /// Opens a file that is Parquet or Arrow IPC by its first bytes; `None` if it is neither.
    pub(super) fn open(
        source: &Source,
        reading: &InputSpec,
        read: &Arc<AtomicU64>,
    ) -> Result<Option<(Rows, Format)>, SourceError> {
        let Source::File(path) = source else { return Ok(None) };
        let failed = |error| SourceError::Unreadable { name: source.name(), error };
        if !path.is_file() {
            return Ok(None);
        }
        let mut start = Vec::new();
        let file = File::open(path).map_err(failed)?;
        (&file).take(6).read_to_end(&mut start).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let file = File::open(path).map_err(failed)?;
        let mut known = None;
        let (schema, batches, format): (_, Box<dyn Iterator<Item = _> + Send>, _) = match start[..] {
            [b'P', b'A', b'R', b'1', ..] => {
                let builder = ParquetRecordBatchReaderBuilder::try_new(file)
                    .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))?;
                known = u64::try_from(builder.metadata().file_metadata().num_rows()).ok();
                let schema = Arc::clone(builder.schema());
                let reader = builder
                    .with_batch_size(READ_ROWS)
                    .build()
                    .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))?;
                (schema, Box::new(reader), Format::Parquet)
            }
            [b'A', b'R', b'R', b'O', b'W', b'1'] => {
                let reader = arrow_ipc::reader::FileReader::try_new_buffered(file, None)
                    .map_err(|error| failed(damaged(error)))?;
                (reader.schema(), Box::new(reader), Format::Arrow)
            }
            [0xff, 0xff, 0xff, 0xff, ..] => {
                let reader = arrow_ipc::reader::StreamReader::try_new_buffered(file, None)
                    .map_err(|error| failed(damaged(error)))?;
                (reader.schema(), Box::new(reader), Format::Arrow)
            }
            _ => return Ok(None),
        };
        let columns = schema.fields().iter().map(|field| field.name().clone()).collect();
        let rows = Rows {
            columns,
            batches,
            lines: Vec::new(),
            at: 0,
            row: 0,
            limit: reading.limit,
            read: Arc::clone(read),
            size,
            rows: known,
        };
        Ok(Some((rows, format)))
    }

    /// The next row.
    pub(crate) fn next(&mut self) -> io::Result<Option<Record>> {
        loop {
            let rest = self.lines.get(self.at..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', rest) {
                let mut record = BoundedBuffer::default();
                record.push(&rest[..end], self.limit);
                self.at += end + 1;
                self.row += 1;
                let content = record.take();
                return Ok(Some(Record { line: self.row, content, original: None, unfinished: false }));
            }
            let Some(batch) = self.batches.next().transpose().map_err(damaged)? else { return Ok(None) };
            if let Some(rows) = self.rows.filter(|&rows| rows > 0) {
                let bytes = u128::from(self.size) * batch.num_rows() as u128 / u128::from(rows);
                self.read.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            (self.lines, self.at) = (json_lines(&batch).map_err(damaged)?, 0);
        }
    }
}

fn damaged(error: ArrowError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// A batch as one JSON object per row, without nulls. Bytes are read as text, because some writers do not mark text as such.
fn json_lines(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let column: ArrayRef = match column.data_type() {
            DataType::Binary => text(column.as_binary::<i32>().iter()),
            DataType::LargeBinary => text(column.as_binary::<i64>().iter()),
            DataType::BinaryView => text(column.as_binary_view().iter()),
            _ => Arc::clone(column),
        };
        fields.push(Column::new(field.name(), column.data_type().clone(), true));
        columns.push(column);
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    let mut writer = WriterBuilder::new().with_explicit_nulls(false).build::<_, LineDelimited>(Vec::new());
    writer.write(&batch)?;
    writer.finish()?;
    Ok(writer.into_inner())
}

fn text<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> ArrayRef {
    let values = values.map(|value| value.map(|bytes| String::from_utf8_lossy(bytes).into_owned()));
    Arc::new(values.collect::<StringArray>())
}

/// Writes verdicts as Parquet: the columns of the articles as text, those of the verdict beside them.
pub(super) struct ParquetWriter {
    pub(super) columns: Columns,
    writer: Option<ArrowWriter<Vec<u8>>>,
    rows: Vec<Vec<Option<String>>>,
}

impl std::fmt::Debug for ParquetWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetWriter").field("columns", &self.columns).finish_non_exhaustive()
    }
}

/// The columns of the verdict that hold numbers, counted from the last column.
const NUMBERS: [usize; 2] = [3, 2];

impl ParquetWriter {
    pub(super) fn new(article: bool) -> ParquetWriter {
        ParquetWriter { columns: Columns::new(article), writer: None, rows: Vec::new() }
    }

    pub(super) fn add(
        &mut self,
        tagged: &Verdict,
        article: Option<&RawValue>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let mut row = self.columns.row(tagged, article);
        let texts = super::output_format::verdict_texts(tagged);
        row.extend(texts.into_iter().map(|text| (!text.is_empty()).then_some(text)));
        self.rows.push(row);
        if self.rows.len() >= WRITTEN_ROWS { self.flush(out) } else { Ok(()) }
    }

    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.flush(out)?;
        if let Some(writer) = self.writer.take() {
            out.extend(writer.into_inner().map_err(io::Error::other)?);
        }
        Ok(())
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let names = self.columns.names();
        let is_number = |at: usize| NUMBERS.contains(&(names.len() - 1 - at));
        let columns = names.iter().enumerate().map(|(at, name)| {
            let kind = if is_number(at) { DataType::Float64 } else { DataType::Utf8 };
            Column::new(name, kind, true)
        });
        let schema = Arc::new(Schema::new(columns.collect::<Vec<_>>()));
        let arrays = (0..names.len()).map(|at| -> ArrayRef {
            let values = self.rows.iter_mut().map(|row| row.get_mut(at).and_then(Option::take));
            if is_number(at) {
                Arc::new(values.map(|value| value?.parse::<f64>().ok()).collect::<Float64Array>())
            } else {
                Arc::new(values.collect::<StringArray>())
            }
        });
        let arrays: Vec<ArrayRef> = arrays.collect();
        self.rows.clear();
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties));
                self.writer.insert(writer.map_err(io::Error::other)?)
            }
        };
        let batch = RecordBatch::try_new(schema, arrays).map_err(io::Error::other)?;
        writer.write(&batch).and_then(|()| writer.flush()).map_err(io::Error::other)?;
        out.append(writer.inner_mut());
        Ok(())
    }
}
