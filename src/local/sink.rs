//! Where tagged articles go: standard output, or a file that can be continued.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Why verdicts cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// Standard output is gone or full.
    #[error("cannot write to standard output")]
    Stdout(#[source] io::Error),
    /// The file cannot be written.
    #[error("cannot write {}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The output would overwrite what is read.
    #[error("{} is an input; choose another file for the output", path.display())]
    Input {
        /// Which file.
        path: PathBuf,
    },
    /// Two kinds of lines would stand in one file.
    #[error("{} is the output; choose another file for dead letters", path.display())]
    Output {
        /// Which file.
        path: PathBuf,
    },
    /// What was written before is gone, so it cannot be continued.
    #[error(
        "{} has {found} bytes, but the state knows of {expected} written there; put it back, or choose another --output and --state",
        path.display()
    )]
    Shortened {
        /// Which file.
        path: PathBuf,
        /// Bytes that were written and are safe.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
}

impl SinkError {
    /// The reader has seen enough.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, SinkError::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Where tagged articles go.
#[derive(Debug)]
pub(super) enum Sink {
    Stdout,
    File { path: PathBuf, file: File, length: u64 },
}

impl Sink {
    /// A file, from its start.
    pub(super) fn create(path: &Path) -> Result<Sink, SinkError> {
        Sink::resume(path, 0)
    }

    /// A file whose first `length` bytes stay. What follows them was written after the last verdict that the state
    /// knows of, and is written again.
    pub(super) fn resume(path: &Path, length: u64) -> Result<Sink, SinkError> {
        let failed = |error| SinkError::File { path: path.to_owned(), error };
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let mut file = options.open(path).map_err(failed)?;
        let data = file.metadata().map_err(failed)?;
        if data.len() < length {
            return Err(SinkError::Shortened { path: path.to_owned(), expected: length, found: data.len() });
        }
        // /dev/null and pipes have no length to set.
        if data.is_file() {
            file.set_len(length).map_err(failed)?;
            file.seek(SeekFrom::Start(length)).map_err(failed)?;
        }
        Ok(Sink::File { path: path.to_owned(), file, length })
    }

    /// Writes all of it; it may not be safe yet.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        match self {
            Sink::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush()).map_err(SinkError::Stdout)
            }
            Sink::File { path, file, length } => {
                *length += bytes.len() as u64;
                file.write_all(bytes).map_err(|error| SinkError::File { path: path.clone(), error })
            }
        }
    }

    /// Makes what was written survive a loss of power; its length then, if it has one.
    pub(super) fn settle(&mut self) -> Result<Option<u64>, SinkError> {
        match self {
            Sink::Stdout => Ok(None),
            Sink::File { path, file, length } => {
                file.sync_data().map_err(|error| SinkError::File { path: path.clone(), error })?;
                Ok(Some(*length))
            }
        }
    }
}
