//! Destinations for output lines: standard output, a stream, a file continued in place, or a file that is
//! renamed into place at the end. [`super::output_file`] chooses one; only a continued file is synced and
//! remembered by the state.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use samestory_engine::index::FilePosition;

use super::replace::{self, Replacement};
use super::resume::{self, BEGINNING};

/// Why an output cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// Standard output is closed, or its disk is full.
    #[error("cannot write to standard output")]
    Stdout(#[source] io::Error),
    /// The file cannot be written.
    #[error("cannot write {}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// A run with a state continues its output in place, which would destroy a file from elsewhere.
    #[error(
        "{} exists, and this state did not write it; remove it, or choose another file (with --state, an output is continued in place)",
        path.display()
    )]
    Foreign {
        /// Which file.
        path: PathBuf,
    },
    /// The file is shorter than the state recorded, so it cannot be continued.
    #[error(
        "{} has {found} bytes, but the state recorded {expected}; restore the file, or choose another --output and --state",
        path.display()
    )]
    Shortened {
        /// Which file.
        path: PathBuf,
        /// Bytes that were written and synced.
        expected: u64,
        /// Bytes in the file now.
        found: u64,
    },
}

impl SinkError {
    /// True if the reader of standard output closed the pipe, as `head` does.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, SinkError::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// A destination for output lines.
#[derive(Debug)]
pub(super) enum Sink {
    Stdout,
    /// A pipe, a device, or a file descriptor of this process.
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
    /// Renamed to `path` when it is complete.
    Replaced {
        path: PathBuf,
        replacement: Replacement,
    },
}

impl Sink {
    pub(super) fn stream(path: &Path) -> Result<Sink, SinkError> {
        let file = replace::open_stream(path).map_err(|error| failed(path, error))?;
        Ok(Sink::Stream { path: path.to_owned(), file })
    }

    /// A file that replaces the existing one when the run ends.
    pub(super) fn replace(path: &Path) -> Result<Sink, SinkError> {
        let replacement = Replacement::create(path).map_err(|error| failed(path, error))?;
        Ok(Sink::Replaced { path: path.to_owned(), replacement })
    }

    /// An output that every run writes from the start.
    pub(super) fn create(path: &Path) -> Result<Sink, SinkError> {
        if replace::is_stream(path) { Sink::stream(path) } else { Sink::replace(path) }
    }

    /// Continues a file after its first `length` bytes, which must exist. Anything beyond them was written
    /// after the last verdict in the state; it is truncated and written again.
    pub(super) fn resume(path: &Path, length: u64) -> Result<Sink, SinkError> {
        let failed = |error| failed(path, error);
        let mut options = OpenOptions::new();
        let options = replace::for_output(options.read(true).write(true).create(true).truncate(false));
        let mut file = options.open(path).map_err(failed)?;
        let mut beginning = Vec::new();
        (&file).take(length.min(BEGINNING.into())).read_to_end(&mut beginning).map_err(failed)?;
        file.set_len(length).map_err(failed)?;
        file.seek(SeekFrom::Start(length)).map_err(failed)?;
        Ok(Sink::Continued { path: path.to_owned(), file, length, beginning })
    }

    /// Writes all bytes; they are not necessarily on disk yet.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        match self {
            Sink::Stdout => {
                let mut out = crate::terminal::stdout();
                out.write_all(bytes).and_then(|()| out.flush()).map_err(SinkError::Stdout)
            }
            Sink::Stream { path, file } => file.write_all(bytes).map_err(|error| failed(path, error)),
            Sink::Continued { path, file, length, beginning } => {
                *length += bytes.len() as u64;
                let room = usize::from(BEGINNING).saturating_sub(beginning.len());
                beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
                file.write_all(bytes).map_err(|error| failed(path, error))
            }
            Sink::Replaced { path, replacement } => {
                replacement.write(bytes).map_err(|error| failed(path, error))
            }
        }
    }

    /// Syncs a continued file to disk, and returns the position to store in the state. None for the other
    /// destinations.
    pub(super) fn sync(&mut self) -> Result<Option<FilePosition>, SinkError> {
        match self {
            Sink::Continued { path, file, length, beginning } => {
                file.sync_data().map_err(|error| failed(path, error))?;
                Ok(Some(FilePosition { next: *length, begins: resume::beginning(beginning) }))
            }
            Sink::Stdout | Sink::Stream { .. } | Sink::Replaced { .. } => Ok(None),
        }
    }

    /// Ends a successful run: a replacement is renamed to its target.
    pub(super) fn finish(self) -> Result<(), SinkError> {
        match self {
            Sink::Replaced { path, replacement } => {
                replacement.finish().map_err(|error| failed(&path, error))
            }
            Sink::Stdout | Sink::Stream { .. } | Sink::Continued { .. } => Ok(()),
        }
    }

    /// The partial file of a replacement.
    pub(super) fn partial(&self) -> Option<&Path> {
        match self {
            Sink::Replaced { replacement, .. } => Some(replacement.partial()),
            Sink::Stdout | Sink::Stream { .. } | Sink::Continued { .. } => None,
        }
    }

    /// Ends a failed run. Returns the partial file that holds the lines written so far, if there is one.
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
