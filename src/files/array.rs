//! Splits a JSON array, or a sequence of JSON values, into its elements without holding it in memory.
//!
//! The scanner for [`super::records`] looks only at brackets, strings and commas; the decoder checks later
//! that an element is valid JSON. A malformed element therefore costs only itself, and nesting depth costs
//! nothing.

use std::io::{self, BufRead};

use crate::formats::fields::DecodeFailure;
use samestory_engine::model::DeadLetterReason;

use super::records::{BoundedBuffer, Record, fill};
use super::source::Bytes;

pub(crate) struct Array {
    pub(crate) bytes: Bytes,
    line: u64,
    limit: usize,
    /// The outer bracket has been opened and not yet closed.
    open: bool,
}

/// Scanner state within one element.
#[derive(Default)]
struct Element {
    depth: u64,
    string: bool,
    escaped: bool,
}

/// How a byte relates to the current element.
#[derive(PartialEq, Eq)]
enum ByteRole {
    Inside,
    Last,
    After,
}

impl Element {
    fn advance(&mut self, byte: u8) -> ByteRole {
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
    pub(crate) fn new(bytes: Bytes, limit: usize) -> Array {
        Array { bytes, line: 1, limit, open: false }
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Record>> {
        if !self.skip_to_element()? {
            if std::mem::take(&mut self.open) {
                let message = "the JSON array is not closed: the input is truncated";
                let content = Err(DecodeFailure::new(DeadLetterReason::Undecodable, message));
                return Ok(Some(Record { line: self.line, content, original: None, unfinished: true }));
            }
            return Ok(None);
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
                return Ok(Some(Record { line, content, original: None, unfinished }));
            }
        }
    }

    /// Skips separators up to the next element; false at the end of the input.
    fn skip_to_element(&mut self) -> io::Result<bool> {
        loop {
            let part = fill(&mut self.bytes)?;
            let Some(&byte) = part.first() else { return Ok(false) };
            match byte {
                b'\n' => self.line += 1,
                b' ' | b'\t' | b'\r' | b',' => {}
                b'[' if !self.open => self.open = true,
                b']' => self.open = false,
                _ => return Ok(true),
            }
            self.bytes.consume(1);
        }
    }
}
