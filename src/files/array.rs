//! A JSON array, or values one after the other, cut into its elements without being held whole.
//!
//! Only brackets, strings and commas are looked at; whether an element is JSON is found when it is decoded. So one
//! bad element costs itself, and depth costs nothing.

use std::io::{self, BufRead};

use crate::formats::fields::DecodeFailure;
use samestory_engine::model::DeadLetterReason;

use super::records::{Bounded, Record, fill};
use super::source::Bytes;

pub(crate) struct Array {
    pub(crate) bytes: Bytes,
    line: u64,
    limit: usize,
    /// Inside the outer brackets.
    open: bool,
}

/// Where in an element the reader is.
#[derive(Default)]
struct Element {
    depth: u64,
    string: bool,
    escaped: bool,
}

/// What a byte is to an element.
#[derive(PartialEq, Eq)]
enum Step {
    Inside,
    Last,
    Behind,
}

impl Element {
    fn step(&mut self, byte: u8) -> Step {
        if self.string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.string = false,
                _ => {}
            }
            return if self.string || self.depth > 0 { Step::Inside } else { Step::Last };
        }
        match byte {
            b'"' => self.string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' if self.depth > 0 => {
                self.depth -= 1;
                if self.depth == 0 {
                    return Step::Last;
                }
            }
            b']' | b',' | b' ' | b'\t' | b'\n' | b'\r' if self.depth == 0 => return Step::Behind,
            _ => {}
        }
        Step::Inside
    }
}

impl Array {
    pub(crate) fn new(bytes: Bytes, limit: usize) -> Array {
        Array { bytes, line: 1, limit, open: false }
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Record>> {
        if !self.reach_element()? {
            if std::mem::take(&mut self.open) {
                let refusal = DecodeFailure::new(
                    DeadLetterReason::Undecodable,
                    "the array is not closed: the rest is missing",
                );
                let content = Err(refusal);
                return Ok(Some(Record { line: self.line, content, original: None, unfinished: true }));
            }
            return Ok(None);
        }
        let line = self.line;
        let mut element = Element::default();
        let mut record = Bounded::default();
        loop {
            let part = fill(&mut self.bytes)?;
            let mut end = None;
            for (at, &byte) in part.iter().enumerate() {
                match element.step(byte) {
                    Step::Inside => continue,
                    Step::Last => end = Some(at + 1),
                    Step::Behind => end = Some(at),
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

    /// Passes over what stands between elements; false at the end.
    fn reach_element(&mut self) -> io::Result<bool> {
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
