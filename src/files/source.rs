//! Opens a file or standard input and decompresses it (gzip, zstd), detected by its first bytes.
//!
//! [`super::records`] splits the bytes into records. Formats that are not supported are refused by name, with
//! the command that converts them.

use std::fs::File;
use std::io::{self, BufReader, Cursor, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::zst::Zst;

/// Read buffer size. A chunk ends when the buffer is drained, so this also bounds what is fingerprinted
/// together.
const BUFFER: usize = 256 * 1024;
/// The most bytes that format detection reads ahead.
const PEEK_LIMIT: usize = 64 * 1024;

/// The decompressed bytes of an input, buffered.
pub(crate) type Bytes = BufReader<Box<dyn Read + Send>>;

/// An input that articles are read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Pipe,
}

/// Why an input cannot be opened. None of its records has been judged.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file does not exist or may not be read.
    #[error("cannot read {name}")]
    Unreadable {
        /// The input as given on the command line.
        name: String,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The input is a directory, and it is unclear which of its files are meant.
    #[error("{name} is a directory; name the files in it, for example {name}/*.ndjson")]
    Directory {
        /// The input as given on the command line.
        name: String,
    },
    /// The compression format is not supported.
    #[error("{name} is compressed with {with}; use a pipe: {tool} {name} | samestory file -")]
    Compressed {
        /// The input as given on the command line.
        name: String,
        /// The compression format.
        with: &'static str,
        /// The command that decompresses it.
        tool: &'static str,
    },
    /// The input is UTF-16, which is not supported.
    #[error("{name} is UTF-16; convert it: iconv -f utf-16 -t utf-8 {name} | samestory file -")]
    Utf16 {
        /// The input as given on the command line.
        name: String,
    },
    /// The format cannot be detected from the name or the content.
    #[error("cannot detect the format of {name}; pass --format ndjson, json, csv or tsv")]
    Unknown {
        /// The input as given on the command line.
        name: String,
    },
}

impl Source {
    /// An input by its name on the command line; `-` is standard input.
    pub fn new(name: &Path) -> Source {
        if name.as_os_str() == "-" { Source::Pipe } else { Source::File(name.to_path_buf()) }
    }

    /// The name used in positions and messages.
    pub fn name(&self) -> String {
        match self {
            Source::File(path) => path.display().to_string(),
            Source::Pipe => "-".to_owned(),
        }
    }

    /// Checks that the input can be opened; returns its size where that is known.
    ///
    /// # Errors
    /// The input is missing, unreadable or a directory.
    pub fn check(&self) -> Result<Option<u64>, SourceError> {
        let Source::File(path) = self else { return Ok(None) };
        let unreadable = |error| SourceError::Unreadable { name: self.name(), error };
        if path.is_dir() {
            return Err(SourceError::Directory { name: self.name() });
        }
        let data = File::open(path).and_then(|file| file.metadata()).map_err(unreadable)?;
        Ok(data.is_file().then_some(data.len()))
    }

    /// Opens the input; adds the number of compressed bytes read from it to `read`.
    pub(crate) fn open(&self, read: &Arc<AtomicU64>) -> Result<Bytes, SourceError> {
        let unreadable = |error| SourceError::Unreadable { name: self.name(), error };
        self.check()?;
        let raw: Box<dyn Read + Send> = match self {
            Source::File(path) => Box::new(File::open(path).map_err(unreadable)?),
            Source::Pipe => {
                if io::stdin().is_terminal() {
                    eprintln!("samestory: reading articles from the terminal; end with Ctrl-D");
                }
                Box::new(io::stdin())
            }
        };
        let counted = Counted { inner: raw, read: Arc::clone(read) };
        let (start, rest) = peek(counted, |start| start.len() >= 6).map_err(unreadable)?;
        let compressed = BufReader::with_capacity(BUFFER, Cursor::new(start.clone()).chain(rest));
        let bytes: Box<dyn Read + Send> = match start[..] {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(compressed)),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Box::new(Zst::new(compressed))
            }
            [b'B', b'Z', b'h', ..] => return Err(self.compressed("bzip2", "bzcat")),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => return Err(self.compressed("xz", "xzcat")),
            [b'P', b'K', 3, 4, ..] => return Err(self.compressed("zip", "unzip -p")),
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Err(SourceError::Utf16 { name: self.name() }),
            // Not compressed, so one buffer is enough.
            _ => return Ok(BufReader::with_capacity(BUFFER, Box::new(compressed.into_inner()))),
        };
        Ok(BufReader::with_capacity(BUFFER, bytes))
    }

    fn compressed(&self, with: &'static str, tool: &'static str) -> SourceError {
        SourceError::Compressed { name: self.name(), with, tool }
    }
}

/// Reads ahead until `enough`, the end of the input, or the limit.
pub(crate) fn peek<R: Read>(mut from: R, enough: impl Fn(&[u8]) -> bool) -> io::Result<(Vec<u8>, R)> {
    let mut start = Vec::new();
    let mut part = vec![0; PEEK_LIMIT];
    while start.len() < PEEK_LIMIT && !enough(&start) {
        match from.read(&mut part) {
            Ok(0) => break,
            Ok(read) => start.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((start, from))
}

/// Counts the bytes read, for the progress bar.
struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
