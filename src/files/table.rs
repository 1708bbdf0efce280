//! Reads CSV and TSV with a header row for [`super::records`]: each row becomes a JSON object with one string
//! per column.
//!
//! Built on `csv-core` rather than `csv`, which would buffer the whole file after a quote that is never
//! closed.

use std::collections::HashMap;
use std::io::{self, BufRead};

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::formats::fields::DecodeFailure;
use crate::formats::json;
use samestory_engine::model::DeadLetterReason;

use super::records::{InputRecord, fill, too_large};
use super::source::Bytes;

pub(crate) struct TableReader {
    pub(crate) bytes: Bytes,
    pub(crate) columns: Vec<String>,
    reader: Reader,
    line: u64,
    limit: usize,
    /// The concatenated values of a row, and the end of each.
    values: Vec<u8>,
    ends: Vec<usize>,
    /// The row's bytes in the file, up to the limit.
    raw: Vec<u8>,
    /// The last byte of the row, line end included.
    last: u8,
    /// The row has an odd number of quotes, so one of them is not closed unless it stands inside a plain value.
    odd_quotes: bool,
    delimiter: u8,
}

/// The most columns a row may have.
const COLUMNS: usize = 4096;

impl TableReader {
    /// Reads the header row, which stands on this line or after it.
    pub(crate) fn new(bytes: Bytes, delimiter: u8, line: u64, limit: usize) -> io::Result<TableReader> {
        let reader = ReaderBuilder::new().delimiter(delimiter).build();
        let (values, ends) = (vec![0; 4096], vec![0; 64]);
        let mut table = TableReader {
            bytes,
            columns: Vec::new(),
            reader,
            line,
            limit,
            values,
            ends,
            raw: Vec::new(),
            last: 0,
            odd_quotes: false,
            delimiter,
        };
        if let Some((_, header)) = table.row()? {
            let unusable = |why| {
                let message = format!("the header row cannot be used: {why}");
                io::Error::new(io::ErrorKind::InvalidData, message)
            };
            let count = header.map_err(|failure| unusable(failure.message))?;
            let header = (0..count).map(|at| String::from_utf8_lossy(table.value(at)).trim().to_owned());
            table.columns = header.collect();
            if let Some(why) = same_name(&table.columns) {
                return Err(unusable(why));
            }
        }
        Ok(table)
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<InputRecord>> {
        let Some((line, row)) = self.row()? else { return Ok(None) };
        let lines = self.line - line;
        let is_unclosed = self.unclosed(lines);
        let content = match () {
            () if is_unclosed => Err(unclosed(line, lines)),
            () if goes_on_after_quote(&self.raw, self.delimiter) => Err(swallowed(&self.raw)),
            () => row.and_then(|count| self.object(count, lines)),
        };
        // A last row without a line end is complete only if it has all its values and the last one is quoted.
        let unfinished = match self.last {
            _ if is_unclosed => true,
            b'\n' | b'\r' => false,
            last => last != b'"' || content.is_err(),
        };
        self.raw.truncate(self.raw.trim_ascii_end().len());
        let original = (self.raw.len() < self.limit).then(|| self.raw.clone());
        Ok(Some(InputRecord { line, content, original, unfinished }))
    }

    /// True if the row swallowed the rest of the file: the file ended inside a quoted value.
    fn unclosed(&mut self, lines: u64) -> bool {
        let opens = || {
            let after = [self.delimiter, b'"'];
            self.raw.starts_with(b"\"") || memchr::memmem::find(&self.raw, &after).is_some()
        };
        self.odd_quotes && (lines > 1 || opens()) && self.bytes.buffer().is_empty() && {
            // The buffer may be empty in the middle of the file.
            fill(&mut self.bytes).is_ok_and(<[u8]>::is_empty)
        }
    }

    fn object(&self, count: usize, lines: u64) -> Result<Vec<u8>, DecodeFailure> {
        let undecodable = |message| DecodeFailure::new(DeadLetterReason::Undecodable, message);
        if count != self.columns.len() {
            let columns = self.columns.len();
            let over = match lines {
                0 | 1 => String::new(),
                lines => format!(" and covers {lines} lines: a quote may be missing"),
            };
            let message = format!("the row has {count} values{over}, and the header has {columns}");
            return Err(undecodable(message));
        }
        let mut members = Vec::with_capacity(count);
        for (at, column) in self.columns.iter().enumerate() {
            let value = std::str::from_utf8(self.value(at))
                .map_err(|_| undecodable(format!("the value of column \"{column}\" is not UTF-8")))?;
            members.push((column.as_str(), value));
        }
        Ok(json::object(members))
    }

    fn value(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.values[start..self.ends[at]]
    }

    /// Reads a row; returns the line it starts on and its number of values.
    fn row(&mut self) -> io::Result<Option<(u64, Result<usize, DecodeFailure>)>> {
        // Skip blank lines and the rest of the previous line end, so that the line number is that of the row.
        while let Some(&byte @ (b'\n' | b'\r')) = fill(&mut self.bytes)?.first() {
            self.line += u64::from(byte == b'\n');
            self.bytes.consume(1);
        }
        let line = self.line;
        self.raw.clear();
        self.odd_quotes = false;
        let (mut written, mut count, mut length, mut over, mut wide) = (0, 0, 0, false, false);
        loop {
            let part = fill(&mut self.bytes)?;
            let (result, read, wrote, ended) =
                self.reader.read_record(part, &mut self.values[written..], &mut self.ends[count..]);
            self.line += memchr::memchr_iter(b'\n', &part[..read]).count() as u64;
            self.odd_quotes ^= memchr::memchr_iter(b'"', &part[..read]).count() % 2 == 1;
            let room = self.limit.saturating_sub(self.raw.len());
            self.raw.extend_from_slice(&part[..read.min(room)]);
            self.last = part[..read].last().copied().unwrap_or(self.last);
            self.bytes.consume(read);
            (written, count, length) = (written + wrote, count + ended, length + read as u64);
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if self.values.len() < self.limit => {
                    self.values.resize(self.limit.min(self.values.len() * 2), 0);
                }
                ReadRecordResult::OutputEndsFull if self.ends.len() < COLUMNS => {
                    self.ends.resize(self.ends.len() * 2, 0);
                }
                // Too large: read the rest of the row over the values collected so far.
                ReadRecordResult::OutputFull => (written, over) = (0, true),
                ReadRecordResult::OutputEndsFull => (count, over, wide) = (0, true, true),
                ReadRecordResult::Record if over => {
                    let failure = if wide { too_wide() } else { too_large(length, self.limit) };
                    return Ok(Some((line, Err(failure))));
                }
                ReadRecordResult::Record => return Ok(Some((line, Ok(count)))),
                ReadRecordResult::End => return Ok(None),
            }
        }
    }
}

/// Says which two columns have the same name. Columns without a name are what spreadsheets leave behind, and no field is read
/// from them.
fn same_name(columns: &[String]) -> Option<String> {
    let mut first = HashMap::new();
    columns.iter().enumerate().filter(|(_, name)| !name.is_empty()).find_map(|(at, name)| {
        let before = first.insert(name, at)?;
        let (before, at) = (before + 1, at + 1);
        Some(format!("columns {before} and {at} are both called \"{name}\"; rename one of them"))
    })
}

fn too_wide() -> DecodeFailure {
    DecodeFailure::new(DeadLetterReason::Undecodable, format!("more than {COLUMNS} columns"))
}

/// True if a row covers several lines, and something other than a delimiter follows a quote that closes a value. Then that quote
/// opens a value of a later row, and the one in between is missing.
fn goes_on_after_quote(row: &[u8], delimiter: u8) -> bool {
    if !row.trim_ascii_end().contains(&b'\n') {
        return false;
    }
    let is_end = |byte: u8| byte == delimiter || byte == b'\n' || byte == b'\r';
    let mut rest = row;
    loop {
        if let Some(mut inside) = rest.strip_prefix(b"\"") {
            loop {
                let Some(quote) = memchr::memchr(b'"', inside) else { return false };
                let after = &inside[quote + 1..];
                match after.strip_prefix(b"\"") {
                    Some(escaped) => inside = escaped,
                    None => {
                        let next = after.iter().find(|byte| **byte != b' ');
                        if next.is_some_and(|&byte| !is_end(byte)) {
                            return true;
                        }
                        rest = after;
                        break;
                    }
                }
            }
        }
        let Some(end) = rest.iter().position(|&byte| is_end(byte)) else { return false };
        rest = &rest[end + 1..];
    }
}

fn swallowed(row: &[u8]) -> DecodeFailure {
    let lines = memchr::memchr_iter(b'\n', row.trim_ascii_end()).count() + 1;
    let message = format!(
        "text follows a closing quote in a row that covers {lines} lines: a quote is missing, or one inside a value is not doubled"
    );
    DecodeFailure::new(DeadLetterReason::Undecodable, message)
}

/// The quote that a row opens is not closed before the end of the file. The row may be most of the file.
fn unclosed(line: u64, lines: u64) -> DecodeFailure {
    let rest = match lines {
        0 | 1 => "the file ends inside it".to_owned(),
        lines => format!("the {lines} lines to the end of the file would be one value"),
    };
    let message = format!("a quote in the row that begins on line {line} is not closed; {rest}");
    DecodeFailure::new(DeadLetterReason::Undecodable, message)
}
