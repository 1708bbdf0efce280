//! Bytes → records: a line of NDJSON, an element of a JSON array, or a row of a table.
//!
//! [`Records`] detects the format and dispatches to [`super::lines`], [`super::array`] or [`super::table`].
//! The size of a record is bounded while it is read, and an unusable record does not stop the ones after it.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde_json::value::RawValue;

use crate::formats::fields::{DecodeFailure, Field, Fields};
use crate::formats::json;
use samestory_engine::model::DeadLetterReason;

use super::array::Array;
#[cfg(feature = "parquet")]
use super::columnar::ColumnarReader;
use super::encoding::TextEncoding;
use super::lines::Lines;
use super::source::{Bytes, PEEK_LIMIT, Source, SourceError, peek};
use super::stage::InputSpec;
use super::table::TableReader;
use super::walk;

/// The format of an input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// One JSON object per line.
    Ndjson,
    /// A JSON array of objects, or a sequence of objects that may span lines.
    Json,
    /// A table with a header row, separated by commas or semicolons.
    Csv,
    /// A table with a header row, separated by tabs.
    Tsv,
    /// Apache Parquet.
    #[cfg(feature = "parquet")]
    Parquet,
    /// Apache Arrow's IPC format, as a file or a stream.
    #[cfg(feature = "parquet")]
    Arrow,
}

/// One record of an input: its JSON, or the reason why it has none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InputRecord {
    /// The line on which it starts, counted from 1.
    pub(crate) line: u64,
    pub(crate) content: Result<Vec<u8>, DecodeFailure>,
    /// The bytes in the file, where they differ from `content`.
    pub(crate) original: Option<Vec<u8>>,
    /// The input ended before the record did, so the rest of it may still be written.
    pub(crate) unfinished: bool,
}

/// The records of one input.
pub(crate) enum Records {
    Lines(Lines),
    Array(Array),
    Table(Box<TableReader>),
    #[cfg(feature = "parquet")]
    Rows(Box<ColumnarReader>),
}

/// How an input is read, beside its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenedInput {
    pub(crate) format: FileFormat,
    /// The delimiter of a table.
    pub(crate) delimiter: u8,
    /// The encoding, if it is not UTF-8.
    pub(crate) encoding: Option<TextEncoding>,
}

impl Records {
    /// Opens an input. The format is the requested one, else it is known by the file name, else by the first bytes.
    pub(crate) fn open(
        source: &Source,
        reading: &InputSpec,
        read: &Arc<AtomicU64>,
    ) -> Result<(Records, OpenedInput), SourceError> {
        let name = || source.name();
        let unreadable = |error| SourceError::Unreadable { name: name(), error };
        #[cfg(feature = "parquet")]
        if let Some((rows, format)) = ColumnarReader::open(source, reading, read)? {
            if reading.records.is_some() {
                return Err(SourceError::NoKeys { name: name(), format: "a table" });
            }
            let opened = OpenedInput { format, delimiter: b',', encoding: None };
            return Ok((Records::Rows(Box::new(rows)), opened));
        }
        let (bytes, encoding) = source.open_text(reading.encoding, read)?;
        let capacity = bytes.capacity();
        let (start, rest) = peek(bytes, PEEK_LIMIT, |start| start.contains(&b'\n')).map_err(unreadable)?;
        let mark = if start.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let beginning = &start[mark..];
        // Decompressed: a file of these formats is read from its end.
        for (magic, kind) in [(&b"PAR1"[..], "Parquet"), (b"ARROW1", "Arrow IPC")] {
            if beginning.starts_with(magic) {
                return Err(source.columnar(kind));
            }
        }
        let named = named_delimiter(beginning);
        let detected = || {
            let table = named.as_ref().map(|_| FileFormat::Csv);
            by_name(&name()).or(table).or_else(|| by_content(beginning))
        };
        let format = match (reading.format.or_else(detected), &reading.records) {
            (Some(FileFormat::Csv | FileFormat::Tsv), Some(_)) => {
                return Err(SourceError::NoKeys { name: name(), format: "a table" });
            }
            (_, Some(_)) => FileFormat::Json,
            (Some(format), None) => format,
            (None, None) => return Err(SourceError::Unknown { name: name() }),
        };
        let delimiter = match (&named, format) {
            (Some(named), _) => named.delimiter,
            (None, FileFormat::Tsv) => b'\t',
            (None, _) => delimiter(beginning),
        };
        if let (FileFormat::Ndjson | FileFormat::Json, None) = (format, &reading.records) {
            let is = |field: Field, key: &str| reading.fields.is_name(field, key);
            let is_field =
                |key: &str| [Field::Body, Field::Title, Field::Url].into_iter().any(|field| is(field, key));
            if let Some(key) = walk::suggestion(beginning, |key| is(Field::Body, key), is_field)
                && !is_article(beginning, &reading.fields)
            {
                return Err(SourceError::Records { name: name(), key });
            }
        }
        let (skipped, header) = match (&named, format) {
            (Some(named), FileFormat::Csv | FileFormat::Tsv) => (mark + named.length, 2),
            _ => (mark, 1),
        };
        let mut start = Cursor::new(start);
        start.set_position(skipped as u64);
        let bytes = Bytes::with_capacity(capacity, Box::new(start.chain(rest)));
        let limit = reading.limit;
        let records = match format {
            FileFormat::Ndjson => Records::Lines(Lines::new(bytes, limit)),
            FileFormat::Json => Records::Array(Array::new(bytes, limit, reading.records.as_deref())),
            FileFormat::Csv | FileFormat::Tsv => {
                let table = TableReader::new(bytes, delimiter, header, limit).map_err(unreadable)?;
                Records::Table(Box::new(table))
            }
            #[cfg(feature = "parquet")]
            FileFormat::Parquet | FileFormat::Arrow => return Err(SourceError::Unknown { name: name() }),
        };
        Ok((records, OpenedInput { format, delimiter, encoding }))
    }

    /// The next record; none at the end of the input.
    pub(crate) fn next(&mut self) -> io::Result<Option<InputRecord>> {
        match self {
            Records::Lines(lines) => lines.next(),
            Records::Array(array) => array.next(),
            Records::Table(table) => table.next(),
            #[cfg(feature = "parquet")]
            Records::Rows(rows) => rows.next(),
        }
    }

    /// True if the read buffer is empty, so that the next record may take a while to arrive.
    pub(crate) fn drained(&self) -> bool {
        match self {
            Records::Lines(lines) => lines.bytes.buffer().is_empty(),
            Records::Array(array) => array.bytes.buffer().is_empty(),
            Records::Table(table) => table.bytes.buffer().is_empty(),
            #[cfg(feature = "parquet")]
            Records::Rows(_) => false,
        }
    }

    /// The column names of a table; none for the other formats.
    pub(crate) fn columns(&self) -> Option<&[String]> {
        match self {
            Records::Table(table) => Some(&table.columns),
            #[cfg(feature = "parquet")]
            Records::Rows(rows) => Some(&rows.columns),
            Records::Lines(_) | Records::Array(_) => None,
        }
    }
}

fn by_name(name: &str) -> Option<FileFormat> {
    let name = name.to_ascii_lowercase();
    let name = [".gz", ".zst"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(&name);
    match name.rsplit_once('.')?.1 {
        "ndjson" | "jsonl" | "jsonlines" | "ldjson" => Some(FileFormat::Ndjson),
        "csv" => Some(FileFormat::Csv),
        "tsv" | "tab" => Some(FileFormat::Tsv),
        _ => None,
    }
}

/// An array starts with a bracket. An object that spans lines starts with a brace alone on its line.
fn by_content(start: &[u8]) -> Option<FileFormat> {
    let start = start.trim_ascii_start();
    let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    match start.first() {
        None => Some(FileFormat::Ndjson),
        Some(b'[') => Some(FileFormat::Json),
        Some(b'{') if line == b"{" => Some(FileFormat::Json),
        Some(b'{') => Some(FileFormat::Ndjson),
        Some(_) if line.contains(&b'\t') => Some(FileFormat::Tsv),
        Some(_) if [b',', b';', b'|'].iter().any(|delimiter| line.contains(delimiter)) => {
            Some(FileFormat::Csv)
        }
        Some(_) => None,
    }
}

/// True if the input begins with a whole object that has a body: an article, whatever lists it has beside it.
fn is_article(start: &[u8], fields: &Fields) -> bool {
    let mut values = serde_json::Deserializer::from_slice(start).into_iter::<&RawValue>();
    let Some(Ok(first)) = values.next() else { return false };
    let record = json::JsonRecord::parse(first.get().as_bytes());
    record.is_ok_and(|record| fields.source(&record, Field::Body).is_some())
}

/// A line such as `sep=;` before the header row, with which Excel is told the delimiter.
struct NamedDelimiter {
    delimiter: u8,
    /// Bytes of the line, with its end.
    length: usize,
}

fn named_delimiter(start: &[u8]) -> Option<NamedDelimiter> {
    let line = start.split_inclusive(|&byte| byte == b'\n').next()?;
    let length = line.len();
    // Not trimmed: the delimiter may be a tab.
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    let (key, &[delimiter]) = line.split_at_checked(4)? else { return None };
    let is_delimiter = delimiter == b'\t' || (delimiter.is_ascii_punctuation() && delimiter != b'"');
    if !key.eq_ignore_ascii_case(b"sep=") || !is_delimiter {
        return None;
    }
    Some(NamedDelimiter { delimiter, length })
}

/// The delimiter that occurs most often in the header row.
fn delimiter(start: &[u8]) -> u8 {
    let header = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let count = |delimiter| header.iter().filter(|&&byte| byte == delimiter).count();
    [b',', b';', b'\t', b'|'].into_iter().rev().max_by_key(|&delimiter| count(delimiter)).unwrap_or(b',')
}

/// Collects a record's bytes up to a limit, and counts those beyond it.
#[derive(Debug, Default)]
pub(crate) struct BoundedBuffer {
    bytes: Vec<u8>,
    length: u64,
}

impl BoundedBuffer {
    pub(crate) fn push(&mut self, part: &[u8], limit: usize) {
        self.length += part.len() as u64;
        let room = limit.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&part[..part.len().min(room)]);
    }

    /// The record, or a `too-large` failure if it exceeded the limit.
    pub(crate) fn take(&mut self) -> Result<Vec<u8>, DecodeFailure> {
        let BoundedBuffer { bytes, length } = std::mem::take(self);
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(too_large(length, bytes.len())) }
    }
}

pub(crate) fn too_large(length: u64, limit: usize) -> DecodeFailure {
    let message = format!(
        "{length} bytes; at most {limit} are read (twice text.max_raw_bytes, or eight times text.max_bytes)"
    );
    DecodeFailure::new(DeadLetterReason::TooLarge, message)
}

/// [`BufRead::fill_buf`] that retries when a signal interrupts it.
pub(crate) fn fill<R: Read>(bytes: &mut BufReader<R>) -> io::Result<&[u8]> {
    while let Err(error) = bytes.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(bytes.buffer())
}
