//! What a state directory remembers of files: how many records of each were judged, and how long the output was
//! then. It stands in the state's own progress record, so it changes together with the verdicts or not at all.
//!
//! | entry | next | note |
//! |---|---|---|
//! | `file:` + absolute path | records judged | `begins <n> <hash>`: XXH3 of the file's first n bytes, at most 4096 |
//! | `output:` + absolute path | bytes written | `begins <n> <hash>` of what was written |
//! | `dead-letters:` + absolute path | bytes written | the same |

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use samestory_engine::index::{Input, InputName, Progress};
use samestory_engine::model::BoundedStr;

/// How much of a file tells it from another of the same name.
pub(super) const BEGINNING: u64 = 4096;

/// A file as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    name: InputName,
    note: BoundedStr<4096>,
    /// How many of its records were judged before.
    pub(super) judged: u64,
}

impl Identity {
    /// What is known of a file.
    pub(super) fn find(path: &Path, progress: &Progress) -> io::Result<Identity> {
        let name = InputName::new(&format!("file:{}", path.canonicalize()?.display()));
        let known = progress.inputs.get(&name);
        // A file that has grown is the same file: it is asked for as many bytes as were looked at then.
        let then = known.and_then(|input| begins(input.note.as_ref()?.as_str()));
        let (judged, note) = match (known, then) {
            (Some(input), Some(length)) if input.note.as_ref() == Some(&beginning(path, length)?) => {
                (input.next, beginning(path, length)?)
            }
            _ => (0, beginning(path, BEGINNING)?),
        };
        Ok(Identity { name, note, judged })
    }

    /// What to remember once so many records are judged.
    pub(super) fn entry(&self, judged: u64) -> (InputName, Input) {
        (self.name.clone(), Input { next: judged, note: Some(self.note.clone()) })
    }

    pub(super) fn name(&self) -> &InputName {
        &self.name
    }
}

fn begins(note: &str) -> Option<u64> {
    note.strip_prefix("begins ")?.split(' ').next()?.parse().ok()
}

fn beginning(path: &Path, length: u64) -> io::Result<BoundedStr<4096>> {
    let mut start = Vec::new();
    File::open(path)?.take(length).read_to_end(&mut start)?;
    Ok(beginning_of(&start))
}

/// The note on a file that begins with these bytes.
pub(super) fn beginning_of(start: &[u8]) -> BoundedStr<4096> {
    BoundedStr::new(&format!("begins {} {:016x}", start.len(), xxh3_64(start)))
}

/// Compares the beginning of a file with the note on it.
pub(super) fn begins_as(path: &Path, known: &Input) -> io::Result<bool> {
    match known.note.as_ref().and_then(|note| begins(note.as_str())) {
        Some(0) | None => Ok(true),
        Some(length) => Ok(known.note.as_ref() == Some(&beginning(path, length)?)),
    }
}
