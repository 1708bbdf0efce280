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

use super::sink::{Sink, SinkError};
use super::{Job, paths, replace, resume};

/// A destination for lines, and how the state remembers it.
pub(super) struct OutputFile {
    sink: Sink,
    /// Its absolute path, if the state remembers it.
    path: Option<FilePath>,
    /// The state has not registered the path yet.
    is_new: bool,
}

impl OutputFile {
    fn open(
        path: &Path,
        job: &Job,
        registered: &BTreeMap<FilePath, FilePosition>,
    ) -> Result<OutputFile, SinkError> {
        if replace::is_stream(path) || job.state.is_none() {
            return Ok(OutputFile { sink: Sink::create(path)?, path: None, is_new: false });
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
        Ok(OutputFile { sink: Sink::resume(path, length)?, path: Some(name), is_new: known.is_none() })
    }

    /// Writes lines. A continued file is synced, and the position to store with the verdicts is
    /// returned.
    pub(super) fn add(&mut self, lines: &[u8]) -> Result<Option<(FilePath, FilePosition)>, SinkError> {
        self.sink.write(lines)?;
        let position = self.sink.sync()?;
        Ok(self.path.clone().zip(position))
    }

    /// The position that the state must store before the first line is written, if the file is new to it.
    pub(super) fn registration(&mut self) -> Result<Option<(FilePath, FilePosition)>, SinkError> {
        let position = if self.is_new { self.sink.sync()? } else { None };
        Ok(self.path.clone().zip(position))
    }

    /// Ends a successful run.
    pub(super) fn finish(self) -> Result<(), SinkError> {
        self.sink.finish()
    }

    /// Ends a failed run. Returns the partial file that holds the lines written so far, if there is one.
    pub(super) fn keep(self) -> Option<PathBuf> {
        self.sink.keep()
    }
}

/// Opens the output, and the dead-letter file if the job has one.
pub(super) fn open(job: &Job, before: &FileProgress) -> Result<(OutputFile, Option<OutputFile>), SinkError> {
    let output = match &job.output {
        None => OutputFile { sink: Sink::Stdout, path: None, is_new: false },
        Some(path) => OutputFile::open(path, job, &before.outputs)?,
    };
    let letters = match &job.dead_letters {
        Some(path) => Some(OutputFile::open(path, job, &before.dead_letters)?),
        None => None,
    };
    Ok((output, letters))
}
