//! Compresses an output (`.gz`, `.zst`). Both formats allow several members in one file, so an output that a later run
//! continues ends one at every sync; any reader sees them as one.

use std::io::{self, Write};

use flate2::Compression as Level;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Bytes in a zstd frame; the encoder takes a frame at a time.
const FRAME: usize = 1024 * 1024;

/// How an output is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    /// The compression that a file name asks for, and the name without that ending.
    pub(super) fn by_name(name: &str) -> (Option<Compression>, &str) {
        let ending =
            |ending| name.len().checked_sub(4).filter(|_| name.to_ascii_lowercase().ends_with(ending));
        match (name.to_ascii_lowercase().strip_suffix(".gz"), ending(".zst")) {
            (Some(rest), _) => (Some(Compression::Gzip), &name[..rest.len()]),
            (None, Some(end)) => (Some(Compression::Zstd), &name[..end]),
            (None, None) => (None, name),
        }
    }
}

/// Compresses bytes as they come.
#[derive(Debug)]
pub(super) enum Compressor {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(Vec<u8>),
}

impl Compressor {
    pub(super) fn new(compression: Compression) -> Compressor {
        match compression {
            Compression::Gzip => Compressor::Gzip(GzEncoder::new(Vec::new(), Level::default())),
            Compression::Zstd => Compressor::Zstd(Vec::new()),
        }
    }

    /// Takes bytes, and returns what can be written of them.
    pub(super) fn add(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Compressor::Gzip(encoder) => {
                encoder.write_all(bytes)?;
                Ok(std::mem::take(encoder.get_mut()))
            }
            Compressor::Zstd(waiting) => {
                waiting.extend_from_slice(bytes);
                let mut out = Vec::new();
                while waiting.len() >= FRAME {
                    let rest = waiting.split_off(FRAME);
                    out.extend(compress_to_vec(waiting.as_slice(), CompressionLevel::Fastest));
                    *waiting = rest;
                }
                Ok(out)
            }
        }
    }

    /// Ends the member or frame, so that everything so far can be read; nothing if nothing was added.
    pub(super) fn end(&mut self) -> io::Result<Vec<u8>> {
        match self {
            Compressor::Gzip(encoder) => {
                std::mem::replace(encoder, GzEncoder::new(Vec::new(), Level::default())).finish()
            }
            Compressor::Zstd(waiting) if waiting.is_empty() => Ok(Vec::new()),
            Compressor::Zstd(waiting) => {
                Ok(compress_to_vec(std::mem::take(waiting).as_slice(), CompressionLevel::Fastest))
            }
        }
    }
}
