//! How a state directory remembers files: the number of records judged of each input, and the length of each
//! output.
//!
//! The entries are part of the state's progress record, so they change atomically with the verdicts. A hash
//! of the file's first bytes detects a different file under the same name.
//!
//! | entry | next | note |
//! |---|---|---|
//! | `file:` + absolute path | records judged | `begins <n> <hash>`: XXH3 of the file's first n bytes, at most 4096 |
//! | `output:` + absolute path | bytes written | `begins <n> <hash>` of the written bytes |
//! | `dead-letters:` + absolute path | bytes written | the same |

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use samestory_engine::index::{Input, InputName, Progress};
use samestory_engine::model::BoundedStr;

/// Bytes at the start of a file that identify it.
pub(super) const BEGINNING: u64 = 4096;

/// An input file as the state remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    name: InputName,
    note: BoundedStr<4096>,
    /// Records of this file that earlier runs judged.
    pub(super) judged: u64,
}

impl Identity {
    /// Looks up a file in the state's progress. A file that starts with other bytes than it did then counts
    /// as new.
    pub(super) fn find(path: &Path, progress: &Progress) -> io::Result<Identity> {
        let name = InputName::new(&format!("file:{}", path.canonicalize()?.display()));
        let known = progress.inputs.get(&name);
        // A file that has grown is still the same file, so hash as many bytes as were hashed then.
        let hashed = known.and_then(|input| noted_length(input.note.as_ref()?.as_str()));
        let (judged, note) = match (known, hashed) {
            (Some(input), Some(length)) if input.note.as_ref() == Some(&note_on_file(path, length)?) => {
                (input.next, note_on_file(path, length)?)
            }
            _ => (0, note_on_file(path, BEGINNING)?),
        };
        Ok(Identity { name, note, judged })
    }

    /// The progress entry to store once `judged` records are judged.
    pub(super) fn entry(&self, judged: u64) -> (InputName, Input) {
        (self.name.clone(), Input { next: judged, note: Some(self.note.clone()) })
    }

    pub(super) fn name(&self) -> &InputName {
        &self.name
    }
}

/// The number of bytes that a note's hash covers.
fn noted_length(note: &str) -> Option<u64> {
    note.strip_prefix("begins ")?.split(' ').next()?.parse().ok()
}

fn note_on_file(path: &Path, length: u64) -> io::Result<BoundedStr<4096>> {
    let mut start = Vec::new();
    File::open(path)?.take(length).read_to_end(&mut start)?;
    Ok(note_on(&start))
}

/// The note for a file that starts with these bytes.
pub(super) fn note_on(start: &[u8]) -> BoundedStr<4096> {
    BoundedStr::new(&format!("begins {} {:016x}", start.len(), xxh3_64(start)))
}

/// Whether a file still starts with the bytes that its note describes.
pub(super) fn matches_note(path: &Path, known: &Input) -> io::Result<bool> {
    match known.note.as_ref().and_then(|note| noted_length(note.as_str())) {
        Some(0) | None => Ok(true),
        Some(length) => Ok(known.note.as_ref() == Some(&note_on_file(path, length)?)),
    }
}
