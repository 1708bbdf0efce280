//! Reads one record per line (NDJSON) for [`super::records`], bounded in size; blank lines are skipped.

use std::io::{self, BufRead};

use super::records::{BoundedBuffer, InputRecord, fill};
use super::source::Bytes;

pub(crate) struct Lines {
    pub(crate) bytes: Bytes,
    line: u64,
    limit: usize,
}

impl Lines {
    pub(crate) fn new(bytes: Bytes, limit: usize) -> Lines {
        Lines { bytes, line: 0, limit }
    }

    /// The next line that is not blank.
    pub(crate) fn next(&mut self) -> io::Result<Option<InputRecord>> {
        let mut record = BoundedBuffer::default();
        loop {
            let part = fill(&mut self.bytes)?;
            let end = memchr::memchr(b'\n', part);
            record.push(&part[..end.unwrap_or(part.len())], self.limit);
            let (used, over) = (end.map_or(part.len(), |end| end + 1), part.is_empty());
            self.bytes.consume(used);
            if end.is_none() && !over {
                continue;
            }
            self.line += 1;
            let mut content = record.take();
            if let Ok(line) = &mut content {
                line.truncate(line.trim_ascii_end().len());
            }
            if !matches!(&content, Ok(line) if line.is_empty()) {
                let unfinished = end.is_none() && !matches!(&content, Ok(line) if is_complete(line));
                return Ok(Some(InputRecord { line: self.line, content, original: None, unfinished }));
            }
            if over {
                return Ok(None);
            }
        }
    }
}

/// True if a line without a line end is a complete article: nothing can follow a closed JSON object.
fn is_complete(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}
