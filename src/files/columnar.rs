//! Parquet and Arrow IPC: [`ColumnarReader`] reads them as [`super::records`] reads lines, one JSON object per row, and [`ParquetTable`]
//! writes verdicts and clusters. The line of a record is its row, counted from 1.
//!
//! A file is read in batches of [`READ_ROWS`] rows, page by page, so memory does not grow with its row groups.

use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, make_array,
    new_null_array,
};
use arrow_json::writer::{LineDelimited, WriterBuilder};
use arrow_schema::{ArrowError, DataType, Field as Column, FieldRef, Fields as Members, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::output_format::{ColumnKind, InputColumn};
use super::records::{BoundedBuffer, FileFormat, InputRecord};
use super::source::{Source, SourceError};
use super::stage::InputSpec;

/// Rows that are read at a time: with the longest bodies that are allowed, half a gigabyte.
const READ_ROWS: usize = 64;
/// Rows, and bytes, that are collected before a row group is written.
const WRITTEN_ROWS: usize = 8192;
const WRITTEN_BYTES: usize = 16 * 1024 * 1024;

/// The rows of a Parquet or Arrow file.
pub(crate) struct ColumnarReader {
    /// The columns that are read, and what each holds.
    pub(crate) columns: Vec<String>,
    kinds: Vec<ColumnKind>,
    /// Columns of a type that has no JSON form, with the type.
    pub(crate) unreadable: Vec<String>,
    /// Where the columns that are read stand in the file.
    kept: Vec<usize>,
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

impl ColumnarReader {
    /// Opens a file that is Parquet or Arrow IPC by its first bytes; `None` if it is neither.
    pub(super) fn open(
        source: &Source,
        reading: &InputSpec,
        read: &Arc<AtomicU64>,
    ) -> Result<Option<(ColumnarReader, FileFormat)>, SourceError> {
        let Source::File(path) = source else { return Ok(None) };
        if !path.is_file() {
            return Ok(None);
        }
        let unreadable = |error| SourceError::Unreadable { name: source.name(), error };
        let file = File::open(path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        let mut start = Vec::new();
        (&file).take(6).read_to_end(&mut start).map_err(unreadable)?;
        let format = match start[..] {
            [b'P', b'A', b'R', b'1', ..] => FileFormat::Parquet,
            [b'A', b'R', b'R', b'O', b'W', b'1'] | [0xff, 0xff, 0xff, 0xff, ..] => FileFormat::Arrow,
            _ if is_named_parquet(path) => {
                let error = io::Error::new(io::ErrorKind::InvalidData, "it does not begin as Parquet does");
                return Err(unreadable(error));
            }
            _ => return Ok(None),
        };
        let file = File::open(path).map_err(unreadable)?;
        let is_file_format = start.starts_with(b"ARROW1");
        let OpenedTable { schema, batches, rows } = guarded(|| match format {
            FileFormat::Parquet => open_parquet(file),
            _ if is_file_format => {
                let reader = arrow_ipc::reader::FileReader::try_new_buffered(file, None)?;
                Ok(OpenedTable { schema: reader.schema(), batches: Box::new(reader), rows: None })
            }
            _ => {
                let reader = arrow_ipc::reader::StreamReader::try_new_buffered(file, None)?;
                Ok(OpenedTable { schema: reader.schema(), batches: Box::new(reader), rows: None })
            }
        })
        .map_err(unreadable)?;
        let (mut columns, mut kinds, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let mut without_json = Vec::new();
        for (at, field) in schema.fields().iter().enumerate() {
            if guarded(|| has_json(field)).is_ok() {
                columns.push(field.name().clone());
                kinds.push(kind_of(field.data_type()));
                kept.push(at);
            } else {
                without_json.push(format!("{} ({})", field.name(), field.data_type()));
            }
        }
        let rows = ColumnarReader {
            columns,
            kinds,
            unreadable: without_json,
            kept,
            batches,
            lines: Vec::new(),
            at: 0,
            row: 0,
            limit: reading.limit,
            read: Arc::clone(read),
            size,
            rows,
        };
        Ok(Some((rows, format)))
    }

    pub(super) fn input_columns(&self) -> Vec<InputColumn> {
        let columns = self.columns.iter().zip(&self.kinds);
        columns.map(|(name, &kind)| InputColumn { name: name.clone(), kind }).collect()
    }

    /// The next row.
    pub(crate) fn next(&mut self) -> io::Result<Option<InputRecord>> {
        loop {
            let rest = self.lines.get(self.at..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', rest) {
                let mut record = BoundedBuffer::default();
                record.push(&rest[..end], self.limit);
                self.at += end + 1;
                self.row += 1;
                let content = record.take();
                return Ok(Some(InputRecord { line: self.row, content, original: None, unfinished: false }));
            }
            let Some(batch) = guarded(|| self.batches.next().transpose())? else { return Ok(None) };
            if let Some(rows) = self.rows.filter(|&rows| rows > 0) {
                let bytes = u128::from(self.size) * batch.num_rows() as u128 / u128::from(rows);
                self.read.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
            (self.lines, self.at) = (guarded(|| json_lines(&batch, &self.kept))?, 0);
        }
    }
}

/// A file that was opened, before its columns are looked at.
struct OpenedTable {
    schema: SchemaRef,
    batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>,
    rows: Option<u64>,
}

fn open_parquet(file: File) -> Result<OpenedTable, ArrowError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
    let rows = u64::try_from(builder.metadata().file_metadata().num_rows()).ok();
    let schema = Arc::clone(builder.schema());
    let reader = builder.with_batch_size(READ_ROWS).build()?;
    Ok(OpenedTable { schema, batches: Box::new(reader), rows })
}

fn is_named_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"))
}

/// Runs the readers of a format that is full of offsets and lengths. A damaged file is an error, also where it makes them panic.
fn guarded<T>(read: impl FnOnce() -> Result<T, ArrowError>) -> io::Result<T> {
    let damaged = |error: String| io::Error::new(io::ErrorKind::InvalidData, error);
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|error| damaged(error.to_string())),
        Err(_) => Err(damaged("the file is damaged: its parser panicked".to_owned())),
    }
}

/// Writes a null of the column's type, which fails if the type has no JSON form.
fn has_json(field: &FieldRef) -> Result<(), ArrowError> {
    let column = Column::new(field.name(), field.data_type().clone(), true);
    let null = new_null_array(field.data_type(), 1);
    json_lines(&RecordBatch::try_new(Arc::new(Schema::new(vec![column])), vec![null])?, &[0]).map(|_| ())
}

/// The kept columns of a batch as one JSON object per row. Null and not-a-number are missing members.
fn json_lines(batch: &RecordBatch, kept: &[usize]) -> Result<Vec<u8>, ArrowError> {
    let schema = batch.schema();
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for &at in kept {
        let column = readable(batch.column(at))?;
        fields.push(Column::new(schema.field(at).name(), column.data_type().clone(), true));
        columns.push(column);
    }
    if columns.is_empty() {
        return Ok(b"{}\n".repeat(batch.num_rows()));
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    let mut writer = WriterBuilder::new().with_explicit_nulls(false).build::<_, LineDelimited>(Vec::new());
    writer.write(&batch)?;
    writer.finish()?;
    Ok(writer.into_inner())
}

/// Bytes as text, because some writers do not mark text as such, and times in UTC, because JSON needs an offset and not the
/// name of a zone.
fn readable(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    Ok(match column.data_type() {
        DataType::Binary => text(column.as_binary::<i32>().iter()),
        DataType::LargeBinary => text(column.as_binary::<i64>().iter()),
        DataType::BinaryView => text(column.as_binary_view().iter()),
        kind => match in_utc(kind) {
            Some(_) => make_array(with_utc(column.to_data())?),
            None => Arc::clone(column),
        },
    })
}

/// Bytes that are not UTF-8 are no text: a missing value.
fn text<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> ArrayRef {
    Arc::new(values.map(|value| std::str::from_utf8(value?).ok()).collect::<StringArray>())
}

/// The same array with every named time zone replaced: Arrow stores such times in UTC.
fn with_utc(data: arrow_data::ArrayData) -> Result<arrow_data::ArrayData, ArrowError> {
    let Some(kind) = in_utc(data.data_type()) else { return Ok(data) };
    let children = data.child_data().iter().cloned().map(with_utc).collect::<Result<_, _>>()?;
    data.into_builder().data_type(kind).child_data(children).build()
}

/// The type with every time zone replaced by UTC; `None` if it has none.
fn in_utc(kind: &DataType) -> Option<DataType> {
    let member = |field: &FieldRef| -> Option<FieldRef> {
        Some(Arc::new(field.as_ref().clone().with_data_type(in_utc(field.data_type())?)))
    };
    match kind {
        DataType::Timestamp(unit, Some(_)) => Some(DataType::Timestamp(*unit, Some("+00:00".into()))),
        DataType::List(field) => member(field).map(DataType::List),
        DataType::LargeList(field) => member(field).map(DataType::LargeList),
        DataType::FixedSizeList(field, size) => {
            member(field).map(|field| DataType::FixedSizeList(field, *size))
        }
        DataType::Map(field, sorted) => member(field).map(|field| DataType::Map(field, *sorted)),
        DataType::Dictionary(key, value) => {
            in_utc(value).map(|value| DataType::Dictionary(key.clone(), Box::new(value)))
        }
        DataType::Struct(fields) if fields.iter().any(|field| member(field).is_some()) => {
            let fields = fields.iter().map(|field| member(field).unwrap_or_else(|| Arc::clone(field)));
            Some(DataType::Struct(fields.collect::<Members>()))
        }
        _ => None,
    }
}

/// What a column of this type holds, when it is written again.
fn kind_of(kind: &DataType) -> ColumnKind {
    match kind {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => ColumnKind::Integer,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => ColumnKind::Integer,
        DataType::Float32 | DataType::Float64 => ColumnKind::Number,
        DataType::Boolean => ColumnKind::Boolean,
        DataType::Dictionary(_, value) => kind_of(value),
        _ => ColumnKind::Text,
    }
}

/// Writes rows of texts as Parquet.
pub(super) struct ParquetTable {
    columns: Vec<(String, ColumnKind)>,
    writer: Option<ArrowWriter<Vec<u8>>>,
    rows: Vec<Vec<Option<String>>>,
    /// Bytes of the rows that are collected.
    bytes: usize,
}

impl std::fmt::Debug for ParquetTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetTable").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl ParquetTable {
    pub(super) fn new(columns: Vec<(String, ColumnKind)>) -> ParquetTable {
        ParquetTable { columns, writer: None, rows: Vec::new(), bytes: 0 }
    }

    /// Takes a row with a value for each column, and appends to `out` what can be written.
    pub(super) fn add(&mut self, row: Vec<Option<String>>, out: &mut Vec<u8>) -> io::Result<()> {
        self.bytes += row.iter().flatten().map(String::len).sum::<usize>();
        self.rows.push(row);
        let is_full = self.rows.len() >= WRITTEN_ROWS || self.bytes >= WRITTEN_BYTES;
        if is_full { self.flush(out) } else { Ok(()) }
    }

    /// Appends the rest, and what a file ends with. A file without rows has its columns.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.flush(out)?;
        if let Some(writer) = self.writer.take() {
            out.extend(writer.into_inner().map_err(io::Error::other)?);
        }
        Ok(())
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let columns = self.columns.iter().map(|(name, kind)| {
            let kind = match kind {
                ColumnKind::Text => DataType::Utf8,
                ColumnKind::Integer => DataType::Int64,
                ColumnKind::Number => DataType::Float64,
                ColumnKind::Boolean => DataType::Boolean,
            };
            Column::new(name, kind, true)
        });
        let schema = Arc::new(Schema::new(columns.collect::<Vec<_>>()));
        let arrays = self.columns.iter().enumerate().map(|(at, (_, kind))| -> ArrayRef {
            let values = self.rows.iter_mut().map(|row| row.get_mut(at).and_then(Option::take));
            match kind {
                ColumnKind::Text => Arc::new(values.collect::<StringArray>()),
                ColumnKind::Integer => {
                    Arc::new(values.map(|value| value?.parse::<i64>().ok()).collect::<Int64Array>())
                }
                ColumnKind::Number => {
                    Arc::new(values.map(|value| value?.parse::<f64>().ok()).collect::<Float64Array>())
                }
                ColumnKind::Boolean => {
                    Arc::new(values.map(|value| value?.parse::<bool>().ok()).collect::<BooleanArray>())
                }
            }
        });
        let arrays: Vec<ArrayRef> = arrays.collect();
        let is_empty = self.rows.is_empty();
        self.rows.clear();
        self.bytes = 0;
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties));
                self.writer.insert(writer.map_err(io::Error::other)?)
            }
        };
        if is_empty {
            return Ok(());
        }
        let batch = RecordBatch::try_new(schema, arrays).map_err(io::Error::other)?;
        writer.write(&batch).and_then(|()| writer.flush()).map_err(io::Error::other)?;
        out.append(writer.inner_mut());
        Ok(())
    }
}
