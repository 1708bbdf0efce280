//! Splits a JSON array, or a sequence of JSON values, into its elements without holding it in memory.
//!
//! The scanner for [`super::records`] looks only at brackets, strings and commas; the decoder checks later
//! that an element is valid JSON. A malformed element therefore costs only itself, and nesting depth costs
//! nothing.

use std::io::{self, BufRead};

use crate::formats::fields::DecodeFailure;
use samestory_engine::model::DeadLetterReason;

use super::records::{BoundedBuffer, InputRecord, fill};
use super::source::Bytes;
use super::walk::{Arrived, RecordsPath, Walk};

pub(crate) struct Array {
    pub(crate) bytes: Bytes,
    line: u64,
    limit: usize,
    /// The outer bracket has been opened and not yet closed.
    open: bool,
    /// The keys under which the array lies, if it is inside an object.
    path: Option<RecordsPath>,
}

/// Scanner state within one element.
#[derive(Default)]
pub(super) struct Element {
    depth: u64,
    string: bool,
    escaped: bool,
}

/// How a byte relates to the current element.
#[derive(PartialEq, Eq)]
pub(super) enum ByteRole {
    Inside,
    Last,
    After,
}

impl Element {
    /// True if the next byte is inside neither a bracket nor a string.
    pub(super) fn is_outside(&self) -> bool {
        self.depth == 0 && !self.string
    }

    pub(super) fn advance(&mut self, byte: u8) -> ByteRole {
        if self.string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.string = false,
                _ => {}
            }
            return if self.string || self.depth > 0 { ByteRole::Inside } else { ByteRole::Last };
        }
        match byte {
            b'"' => self.string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' if self.depth > 0 => {
                self.depth -= 1;
                if self.depth == 0 {
                    return ByteRole::Last;
                }
            }
            b']' | b',' | b' ' | b'\t' | b'\n' | b'\r' if self.depth == 0 => return ByteRole::After,
            _ => {}
        }
        ByteRole::Inside
    }
}

impl Array {
    /// Reads the array under these keys; without keys, the one that the input is.
    pub(crate) fn new(bytes: Bytes, limit: usize, keys: Option<&[String]>) -> Array {
        let path = keys.map(|keys| RecordsPath::new(keys.to_vec()));
        Array { bytes, line: 1, limit, open: false, path }
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<InputRecord>> {
        loop {
            if self.path.is_some() && !self.open {
                match self.enter()? {
                    Arrived::List => self.open = true,
                    Arrived::End => return Ok(self.refusal()),
                    Arrived::Truncated => {
                        self.path = None;
                        return Ok(Some(self.truncated("object")));
                    }
                }
            }
            if self.skip_to_element()? {
                break;
            }
            if std::mem::take(&mut self.open) {
                self.path = None;
                return Ok(Some(self.truncated("array")));
            }
            if self.path.is_none() {
                return Ok(None);
            }
        }
        let line = self.line;
        let mut element = Element::default();
        let mut record = BoundedBuffer::default();
        loop {
            let part = fill(&mut self.bytes)?;
            let mut end = None;
            for (at, &byte) in part.iter().enumerate() {
                match element.advance(byte) {
                    ByteRole::Inside => continue,
                    ByteRole::Last => end = Some(at + 1),
                    ByteRole::After => end = Some(at),
                }
                break;
            }
            let used = end.unwrap_or(part.len());
            record.push(&part[..used], self.limit);
            self.line += memchr::memchr_iter(b'\n', &part[..used]).count() as u64;
            self.bytes.consume(used);
            if end.is_some() || used == 0 {
                let (content, unfinished) = (record.take(), end.is_none());
                return Ok(Some(InputRecord { line, content, original: None, unfinished }));
            }
        }
    }

    fn enter(&mut self) -> io::Result<Arrived> {
        match &mut self.path {
            Some(path) => path.enter(&mut Walk::new(&mut self.bytes, &mut self.line)),
            None => Ok(Arrived::End),
        }
    }

    /// At the end of the input: says so if there was no list under the keys.
    fn refusal(&mut self) -> Option<InputRecord> {
        let message = self.path.take()?.missing()?;
        let content = Err(DecodeFailure::new(DeadLetterReason::WrongType, message));
        Some(InputRecord { line: self.line, content, original: None, unfinished: false })
    }

    fn truncated(&self, what: &str) -> InputRecord {
        let message = format!("the JSON {what} is not closed: the input is truncated");
        let content = Err(DecodeFailure::new(DeadLetterReason::Undecodable, message));
        InputRecord { line: self.line, content, original: None, unfinished: true }
    }

    /// Skips separators up to the next element; false at the end of the array or of the input.
    fn skip_to_element(&mut self) -> io::Result<bool> {
        loop {
            let part = fill(&mut self.bytes)?;
            let Some(&byte) = part.first() else { return Ok(false) };
            match byte {
                b'\n' => self.line += 1,
                b' ' | b'\t' | b'\r' | b',' => {}
                b'[' if !self.open => self.open = true,
                b']' => {
                    self.open = false;
                    if self.path.is_some() {
                        self.bytes.consume(1);
                        return Ok(false);
                    }
                }
                _ => return Ok(true),
            }
            self.bytes.consume(1);
        }
    }
}
