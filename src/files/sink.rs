//! Where tagged articles go: standard output, a stream, a file that is continued, or a file that appears at the end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::replace::{self, Replacement};
use super::resume::{BEGINNING, beginning_of};

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
    /// A run with a state continues its output in place, so a file of somebody else would be lost.
    #[error(
        "{} exists, and this state did not write it; remove it, or choose another file (with --state an output is continued in place)",
        path.display()
    )]
    Foreign {
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
    /// A pipe, a device, an open file of this process.
    Stream {
        path: PathBuf,
        file: File,
    },
    /// Written in place, so that a later run can continue it.
    Continued {
        path: PathBuf,
        file: File,
        length: u64,
        beginning: Vec<u8>,
    },
    /// Gets its name when it is complete.
    Replaced {
        path: PathBuf,
        replacement: Replacement,
    },
}

impl Sink {
    /// A pipe or a device.
    pub(super) fn stream(path: &Path) -> Result<Sink, SinkError> {
        let file = replace::open_stream(path).map_err(|error| failed(path, error))?;
        Ok(Sink::Stream { path: path.to_owned(), file })
    }

    /// A file that replaces what is there at the end.
    pub(super) fn replace(path: &Path) -> Result<Sink, SinkError> {
        let replacement = Replacement::create(path).map_err(|error| failed(path, error))?;
        Ok(Sink::Replaced { path: path.to_owned(), replacement })
    }

    /// A file that is written anew by every run.
    pub(super) fn whole(path: &Path) -> Result<Sink, SinkError> {
        if replace::is_stream(path) { Sink::stream(path) } else { Sink::replace(path) }
    }

    /// A file whose first `length` bytes stay; it has at least so many. What follows them was written after the last verdict that the state
    /// knows of, and is written again.
    pub(super) fn resume(path: &Path, length: u64) -> Result<Sink, SinkError> {
        let failed = |error| failed(path, error);
        let mut options = OpenOptions::new();
        let options = replace::for_output(options.read(true).write(true).create(true).truncate(false));
        let mut file = options.open(path).map_err(failed)?;
        let mut beginning = Vec::new();
        (&file).take(length.min(BEGINNING)).read_to_end(&mut beginning).map_err(failed)?;
        file.set_len(length).map_err(failed)?;
        file.seek(SeekFrom::Start(length)).map_err(failed)?;
        Ok(Sink::Continued { path: path.to_owned(), file, length, beginning })
    }

    /// Writes all of it; it may not be safe yet.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        match self {
            Sink::Stdout => {
                let mut out = crate::terminal::stdout();
                out.write_all(bytes).and_then(|()| out.flush()).map_err(SinkError::Stdout)
            }
            Sink::Stream { path, file } => file.write_all(bytes).map_err(|error| failed(path, error)),
            Sink::Continued { path, file, length, beginning } => {
                *length += bytes.len() as u64;
                let room = (BEGINNING as usize).saturating_sub(beginning.len());
                beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
                file.write_all(bytes).map_err(|error| failed(path, error))
            }
            Sink::Replaced { path, replacement } => {
                replacement.write(bytes).map_err(|error| failed(path, error))
            }
        }
    }

    /// Makes a file that is continued survive a loss of power; how the state remembers it then.
    pub(super) fn settle(&mut self) -> Result<Option<samestory_engine::index::Input>, SinkError> {
        match self {
            Sink::Continued { path, file, length, beginning } => {
                file.sync_data().map_err(|error| failed(path, error))?;
                Ok(Some(samestory_engine::index::Input {
                    next: *length,
                    note: Some(beginning_of(beginning)),
                }))
            }
            Sink::Stdout | Sink::Stream { .. } | Sink::Replaced { .. } => Ok(None),
        }
    }

    /// Ends a run that went well: a file that was written beside its target takes its place.
    pub(super) fn finish(self) -> Result<(), SinkError> {
        match self {
            Sink::Replaced { path, replacement } => {
                replacement.finish().map_err(|error| failed(&path, error))
            }
            Sink::Stdout | Sink::Stream { .. } | Sink::Continued { .. } => Ok(()),
        }
    }

    /// Ends a run that failed: where the lines are that were written until then, if not at their target.
    pub(super) fn keep(self) -> Option<PathBuf> {
        match self {
            Sink::Replaced { replacement, .. } => replacement.keep(),
            Sink::Stdout | Sink::Stream { .. } | Sink::Continued { .. } => None,
        }
    }
}

fn failed(path: &Path, error: io::Error) -> SinkError {
    SinkError::File { path: path.to_owned(), error }
}
