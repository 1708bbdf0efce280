//! Opens a file or standard input and decompresses it (gzip, zstd), detected by its first bytes.
//!
//! [`super::records`] splits the bytes into records. Formats that are not supported are refused by name, with
//! the command that converts them.

use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::encoding::TextEncoding;
use super::zst::Zst;

/// Read buffer size. A chunk ends when the buffer is drained, so this also bounds what is fingerprinted
/// together.
const BUFFER: usize = 256 * 1024;
/// The most bytes that format detection reads ahead.
pub(super) const PEEK_LIMIT: usize = 64 * 1024;
/// The bytes of a file from which its encoding is guessed. A pipe may be slow: of one, only what is there is looked at.
const SAMPLE: usize = 1024 * 1024;

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
    /// The input is a spreadsheet.
    #[error(
        "{name} is a workbook ({kind}), not a table of text; save the sheet as CSV UTF-8 in the spreadsheet program, or convert it: libreoffice --headless --convert-to csv {name}"
    )]
    Workbook {
        /// The input as given on the command line.
        name: String,
        /// The kind of workbook.
        kind: &'static str,
    },
    /// The input is Parquet or Arrow IPC, and this build cannot read it, or it is no plain file.
    #[error("{name} is {kind}; {fix}")]
    Columnar {
        /// The input as given on the command line.
        name: String,
        /// Parquet or Arrow IPC.
        kind: &'static str,
        /// How it can be read.
        fix: &'static str,
    },
    /// The records are inside an object, and it was not said under which key.
    #[error("{name} has its records under the key \"{key}\"; pass --records {key}")]
    Records {
        /// The input as given on the command line.
        name: String,
        /// The key, as `--records` takes it.
        key: String,
    },
    /// `--records` was given for a format that has no keys.
    #[error("{name} is {format}; --records is for JSON")]
    NoKeys {
        /// The input as given on the command line.
        name: String,
        /// The format.
        format: &'static str,
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

    /// True if the input is a file whose bytes are still there after they have been read. Those of a pipe, named or not, are
    /// gone.
    pub(crate) fn is_readable_again(&self) -> bool {
        matches!(self, Source::File(path) if fs::metadata(path).is_ok_and(|data| data.is_file()))
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
        // A pipe with a name is opened once, to be read: whoever writes to it would find it closed.
        if !self.is_readable_again() {
            return path.metadata().map(|_| None).map_err(unreadable);
        }
        let data = File::open(path).and_then(|file| file.metadata()).map_err(unreadable)?;
        Ok(data.is_file().then_some(data.len()))
    }

    /// Opens the input and decompresses it; adds the number of compressed bytes read from it to `read`.
    pub(super) fn open_bytes(&self, read: &Arc<AtomicU64>) -> Result<Bytes, SourceError> {
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
        let (start, rest) = peek(counted, PEEK_LIMIT, |start| start.len() >= 6).map_err(unreadable)?;
        let compressed = BufReader::with_capacity(BUFFER, Cursor::new(start.clone()).chain(rest));
        let bytes: Box<dyn Read + Send> = match start[..] {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(compressed)),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Box::new(Zst::new(compressed))
            }
            [b'B', b'Z', b'h', ..] => return Err(self.compressed("bzip2", "bzcat")),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => return Err(self.compressed("xz", "xzcat")),
            [b'P', b'K', 3, 4, ..] => {
                return Err(match self.workbook(&start) {
                    Some(kind) => SourceError::Workbook { name: self.name(), kind },
                    None => self.compressed("zip", "unzip -p"),
                });
            }
            // The container of the older Office formats.
            [0xd0, 0xcf, 0x11, 0xe0, ..] => {
                return Err(SourceError::Workbook { name: self.name(), kind: "xls" });
            }
            [b'P', b'A', b'R', b'1', ..] => return Err(self.columnar("Parquet")),
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xff, 0xff, 0xff, 0xff, ..] => {
                return Err(self.columnar("Arrow IPC"));
            }
            [b'F', b'E', b'A', b'1', ..] => {
                let fix =
                    "write it again with a current pyarrow, pandas or Polars: their Feather is Arrow IPC";
                return Err(SourceError::Columnar { name: self.name(), kind: "Feather version 1", fix });
            }
            // Not compressed, so one buffer is enough.
            _ => return Ok(BufReader::with_capacity(BUFFER, Box::new(compressed.into_inner()))),
        };
        Ok(BufReader::with_capacity(BUFFER, bytes))
    }

    /// Opens the input as UTF-8 text, in the encoding that was asked for, or else in the one that its beginning suggests.
    /// Returns the encoding if it is not UTF-8.
    pub(super) fn open_text(
        &self,
        asked: Option<TextEncoding>,
        read: &Arc<AtomicU64>,
    ) -> Result<(Bytes, Option<TextEncoding>), SourceError> {
        let bytes = self.open_bytes(read)?;
        let unreadable = |error| SourceError::Unreadable { name: self.name(), error };
        let limit = match self {
            Source::File(path) if path.is_file() => SAMPLE,
            _ => 1,
        };
        let capacity = bytes.capacity();
        let (sample, rest) = peek(bytes, limit, |_| false).map_err(unreadable)?;
        let encoding = asked.or_else(|| TextEncoding::guess(&sample)).filter(|encoding| !encoding.is_utf8());
        let bytes = Cursor::new(sample).chain(rest);
        Ok(match encoding {
            Some(encoding) => (encoding.decode(bytes, capacity), Some(encoding)),
            None => (Bytes::with_capacity(capacity, Box::new(bytes)), None),
        })
    }

    /// The kind of workbook that a ZIP file is.
    fn workbook(&self, start: &[u8]) -> Option<&'static str> {
        let name = self.name().to_ascii_lowercase();
        let has = |part: &[u8]| memchr::memmem::find(start, part).is_some();
        match () {
            () if name.ends_with(".xlsx") || name.ends_with(".xlsm") || has(b"xl/") => Some("xlsx"),
            () if name.ends_with(".ods") || has(b"opendocument.spreadsheet") => Some("ods"),
            () => None,
        }
    }

    /// A build that can read these formats sends only what is no file here. Files are read from their end.
    fn columnar(&self, kind: &'static str) -> SourceError {
        let fix = if cfg!(feature = "parquet") {
            "it cannot be read from a pipe or compressed as a whole; name the file itself"
        } else {
            "this samestory was built without it: build with --features parquet, or convert the file to NDJSON or CSV"
        };
        SourceError::Columnar { name: self.name(), kind, fix }
    }

    fn compressed(&self, with: &'static str, tool: &'static str) -> SourceError {
        SourceError::Compressed { name: self.name(), with, tool }
    }
}

/// Reads ahead until `enough`, the end of the input, or at least `limit` bytes.
pub(super) fn peek<R: Read>(
    mut from: R,
    limit: usize,
    enough: impl Fn(&[u8]) -> bool,
) -> io::Result<(Vec<u8>, R)> {
    let mut start = Vec::new();
    let mut part = vec![0; PEEK_LIMIT];
    while start.len() < limit && !enough(&start) {
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
