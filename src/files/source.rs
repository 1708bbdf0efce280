//! A file or a pipe → its bytes, whatever they are compressed with.

use std::fs::File;
use std::io::{self, BufReader, Cursor, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::zst::Zst;

/// How much is read at once. A batch is what was read at once, so this is also what is fingerprinted at once.
const BUFFER: usize = 256 * 1024;
/// The most that is read ahead to tell what an input is.
const GLIMPSE: usize = 64 * 1024;

/// Bytes as they were written, read ahead.
pub(crate) type Bytes = BufReader<Box<dyn Read + Send>>;

/// What articles are read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Pipe,
}

/// Why an input cannot be read. Nothing of it has been judged.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It is not there, or it may not be read.
    #[error("cannot read {name}")]
    Unreadable {
        /// As it was given.
        name: String,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// There is no telling which of its files are meant.
    #[error("{name} is a directory; name the files in it, for example {name}/*.ndjson")]
    Directory {
        /// As it was given.
        name: String,
    },
    /// Compressed in a way that is not read here.
    #[error("{name} is compressed with {with}; use a pipe: {tool} {name} | samestory file -")]
    Compressed {
        /// As it was given.
        name: String,
        /// The format.
        with: &'static str,
        /// What reads it.
        tool: &'static str,
    },
    /// In another encoding.
    #[error("{name} is UTF-16; convert it: iconv -f utf-16 -t utf-8 {name} | samestory file -")]
    Utf16 {
        /// As it was given.
        name: String,
    },
    /// Nothing in it tells how it is written.
    #[error("cannot tell how {name} is written; say --format ndjson, json, csv or tsv")]
    Unknown {
        /// As it was given.
        name: String,
    },
}

impl Source {
    /// `-` is standard input.
    pub fn new(name: &Path) -> Source {
        if name.as_os_str() == "-" { Source::Pipe } else { Source::File(name.to_path_buf()) }
    }

    /// As it stands in positions.
    pub fn name(&self) -> String {
        match self {
            Source::File(path) => path.display().to_string(),
            Source::Pipe => "-".to_owned(),
        }
    }

    /// Whether it can be opened, and how large it is if that is known.
    ///
    /// # Errors
    /// It cannot, and why.
    pub fn check(&self) -> Result<Option<u64>, SourceError> {
        let Source::File(path) = self else { return Ok(None) };
        let unreadable = |error| SourceError::Unreadable { name: self.name(), error };
        if path.is_dir() {
            return Err(SourceError::Directory { name: self.name() });
        }
        let data = File::open(path).and_then(|file| file.metadata()).map_err(unreadable)?;
        Ok(data.is_file().then_some(data.len()))
    }

    /// Opens it, adding to `read` what is read of it before it is unpacked.
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
        let (start, rest) = glimpse(counted, |start| start.len() >= 6).map_err(unreadable)?;
        let packed = BufReader::with_capacity(BUFFER, Cursor::new(start.clone()).chain(rest));
        let bytes: Box<dyn Read + Send> = match start[..] {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(packed)),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Box::new(Zst::new(packed)),
            [b'B', b'Z', b'h', ..] => return Err(self.compressed("bzip2", "bzcat")),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => return Err(self.compressed("xz", "xzcat")),
            [b'P', b'K', 3, 4, ..] => return Err(self.compressed("zip", "unzip -p")),
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Err(SourceError::Utf16 { name: self.name() }),
            // Not packed, so it need not be buffered twice.
            _ => return Ok(BufReader::with_capacity(BUFFER, Box::new(packed.into_inner()))),
        };
        Ok(BufReader::with_capacity(BUFFER, bytes))
    }

    fn compressed(&self, with: &'static str, tool: &'static str) -> SourceError {
        SourceError::Compressed { name: self.name(), with, tool }
    }
}

/// Reads ahead until it is enough, or there is no more, or it is too much.
pub(crate) fn glimpse<R: Read>(mut from: R, enough: impl Fn(&[u8]) -> bool) -> io::Result<(Vec<u8>, R)> {
    let mut start = Vec::new();
    let mut part = vec![0; GLIMPSE];
    while start.len() < GLIMPSE && !enough(&start) {
        match from.read(&mut part) {
            Ok(0) => break,
            Ok(read) => start.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((start, from))
}

/// Counts what is read, for the progress bar.
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
