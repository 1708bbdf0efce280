//! The `--output` and `--dead-letters` files of a run.
//!
//! Without a state, each file replaces its target when it is complete. With a state, files are continued in
//! place, and the state records how many bytes of each are valid: the bytes after them come from an
//! interrupted run and are written again. The state therefore registers a file before its first byte is
//! written, and refuses existing files it did not register.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use samestory_engine::index::{FilePath, FilePosition, FileProgress};

use super::compress::{Compression, Compressor};
use super::sink::{Sink, SinkError};
use super::{Job, paths, replace, resume};

/// A destination for lines, and how the state remembers it.
pub(super) struct OutputFile {
    sink: Sink,
    /// Its absolute path, if the state remembers it.
    registered: Option<FilePath>,
    /// The state has not registered the path yet.
    is_new: bool,
    path: Option<PathBuf>,
    compressor: Option<Compressor>,
    /// Bytes that earlier runs wrote.
    pub(super) length: u64,
}

impl OutputFile {
    fn new(sink: Sink, path: &Path) -> OutputFile {
        OutputFile {
            sink,
            registered: None,
            is_new: false,
            path: Some(path.to_owned()),
            compressor: Compression::by_name(&path.to_string_lossy()).0.map(Compressor::new),
            length: 0,
        }
    }

    fn open(
        path: &Path,
        job: &Job,
        registered: &BTreeMap<FilePath, FilePosition>,
    ) -> Result<OutputFile, SinkError> {
        if replace::is_stream(path) || job.state.is_none() {
            return OutputFile::create(path);
        }
        let failed = |error| SinkError::File { path: path.to_owned(), error };
        let name = FilePath::new(&paths::absolute(path).display().to_string());
        let found = path.metadata().ok().filter(Metadata::is_file).map_or(0, |data| data.len());
        let known = registered.get(&name);
        let length = known.map_or(0, |known| known.next);
        if found < length {
            return Err(SinkError::Shortened { path: path.to_owned(), expected: length, found });
        }
        let ours = match known {
            Some(known) => resume::still_begins(path, known).map_err(failed)?,
            None => found == 0,
        };
        if !ours {
            return Err(SinkError::Foreign { path: path.to_owned() });
        }
        let sink = Sink::resume(path, length)?;
        let is_new = known.is_none();
        Ok(OutputFile { registered: Some(name), is_new, length, ..OutputFile::new(sink, path) })
    }

    /// A file that is written from the start by every run.
    pub(super) fn create(path: &Path) -> Result<OutputFile, SinkError> {
        Ok(OutputFile::new(Sink::create(path)?, path))
    }

    /// The file that holds what is written so far, if it is not yet the output.
    pub(super) fn partial(&self) -> Option<&Path> {
        self.sink.partial()
    }

    /// True if a later run continues the file.
    pub(super) fn is_continued(&self) -> bool {
        self.registered.is_some()
    }

    /// Writes lines. A continued file is synced, and the position to store with the verdicts is
    /// returned.
    pub(super) fn add(&mut self, lines: &[u8]) -> Result<Option<(FilePath, FilePosition)>, SinkError> {
        let continued = self.is_continued();
        match &mut self.compressor {
            None => self.sink.write(lines)?,
            Some(_) if lines.is_empty() => {}
            Some(compressor) => {
                let compressed = compressor.add(lines).and_then(|mut bytes| {
                    if continued {
                        bytes.extend(compressor.end()?);
                    }
                    Ok(bytes)
                });
                let bytes = compressed.map_err(|error| self.failed(error))?;
                self.sink.write(&bytes)?;
            }
        }
        let position = self.sink.sync()?;
        Ok(self.registered.clone().zip(position))
    }

    fn failed(&self, error: std::io::Error) -> SinkError {
        match &self.path {
            Some(path) => SinkError::File { path: path.clone(), error },
            None => SinkError::Stdout(error),
        }
    }

    /// The position that the state must store before the first line is written, if the file is new to it.
    pub(super) fn registration(&mut self) -> Result<Option<(FilePath, FilePosition)>, SinkError> {
        let position = if self.is_new { self.sink.sync()? } else { None };
        Ok(self.registered.clone().zip(position))
    }

    /// Ends a successful run. `end` is what the format has after its last record.
    pub(super) fn finish(mut self, end: &[u8]) -> Result<(), SinkError> {
        // A continued file has nothing after its last record: the next run continues there.
        if !self.is_continued() {
            self.add(end)?;
            if let Some(compressor) = &mut self.compressor {
                let bytes = compressor.end();
                let bytes = bytes.map_err(|error| self.failed(error))?;
                self.sink.write(&bytes)?;
            }
        }
        self.sink.finish()
    }

    /// Ends a failed run. Returns the partial file that holds the lines written so far, if there is one.
    pub(super) fn keep(mut self) -> Option<PathBuf> {
        if let Some(rest) = self.compressor.as_mut().and_then(|compressor| compressor.end().ok()) {
            // The run has failed already; the partial file is kept without the rest if that fails too.
            let _written = self.sink.write(&rest);
        }
        self.sink.keep()
    }
}

/// Opens the output, and the dead-letter file if the job has one.
pub(super) fn open(job: &Job, before: &FileProgress) -> Result<(OutputFile, Option<OutputFile>), SinkError> {
    let output = match &job.output {
        None => OutputFile {
            sink: Sink::Stdout,
            registered: None,
            is_new: false,
            path: None,
            compressor: None,
            length: 0,
        },
        Some(path) => OutputFile::open(path, job, &before.outputs)?,
    };
    let letters = match &job.dead_letters {
        Some(path) => Some(OutputFile::open(path, job, &before.dead_letters)?),
        None => None,
    };
    Ok((output, letters))
}
