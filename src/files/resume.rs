//! How a state directory remembers files: the number of records judged of each input, and the length of each
//! output.
//!
//! The positions are part of the state's progress record, so they change atomically with the verdicts. A hash
//! of the file's first bytes detects a different file under the same name.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use samestory_engine::index::{FileBeginning, FilePath, FilePosition, Progress};

/// Bytes at the start of a file that identify it.
pub(super) const BEGINNING: u16 = 4096;

/// An input file as the state remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    path: FilePath,
    begins: FileBeginning,
    /// Records of this file that earlier runs judged.
    pub(super) judged: u64,
}

impl Identity {
    /// Looks up a file in the state's progress. A file that starts with other bytes than it did then counts
    /// as new.
    pub(super) fn find(path: &Path, progress: &Progress) -> io::Result<Identity> {
        let name = FilePath::new(&path.canonicalize()?.display().to_string());
        let known = progress.files.inputs.get(&name);
        // A file that has grown is still the same file, so hash as many bytes as were hashed then.
        if let Some(known) = known
            && beginning_of(path, known.begins.bytes)? == known.begins
        {
            return Ok(Identity { path: name, begins: known.begins, judged: known.next });
        }
        Ok(Identity { path: name, begins: beginning_of(path, BEGINNING)?, judged: 0 })
    }

    /// The position to store once `judged` records are judged.
    pub(super) fn position(&self, judged: u64) -> (FilePath, FilePosition) {
        (self.path.clone(), FilePosition { next: judged, begins: self.begins })
    }

    pub(super) fn path(&self) -> &FilePath {
        &self.path
    }
}

fn beginning_of(path: &Path, length: u16) -> io::Result<FileBeginning> {
    let mut start = Vec::new();
    File::open(path)?.take(length.into()).read_to_end(&mut start)?;
    Ok(beginning(&start))
}

/// The identity of a file that starts with these bytes, of which at most [`BEGINNING`] count.
pub(super) fn beginning(start: &[u8]) -> FileBeginning {
    let start = &start[..start.len().min(BEGINNING.into())];
    FileBeginning { bytes: start.len() as u16, hash: xxh3_64(start) }
}

/// True if a file still starts as it did when its position was stored.
pub(super) fn still_begins(path: &Path, known: &FilePosition) -> io::Result<bool> {
    Ok(known.begins.bytes == 0 || beginning_of(path, known.begins.bytes)? == known.begins)
}
