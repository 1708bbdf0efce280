//! Where a run over files resumes: [`starts`] says how many records of each input earlier runs have judged, and
//! [`register`] remembers the outputs before their first line.
//!
//! The positions are part of the state's progress record, so they change atomically with the verdicts. A hash
//! of the file's first bytes detects a different file under the same name. [`super::output_file`] truncates an output
//! to the length that the state knows.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use samestory_engine::index::{
    Change, FileBeginning, FilePath, FilePosition, FileProgress, PairList, Progress, Store,
};

use super::job::{FileRunError, Job};
use super::output_file::OutputFile;
use super::pairs::PairsError;
use super::source::{Source, SourceError};
use super::stage::Start;

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

/// Registers the outputs in the state and flushes it before the first line is written. Otherwise a run that
/// is killed early leaves a file that the next run must refuse as foreign.
pub(super) fn register(
    state: &mut impl Store,
    before: &mut Progress,
    pairs: Option<PairList>,
    sink: &mut OutputFile,
    letters: Option<&mut OutputFile>,
) -> Result<(), FileRunError> {
    let letters = letters.map_or(Ok(None), OutputFile::registration)?;
    let new = FileProgress {
        outputs: sink.registration()?.into_iter().collect(),
        dead_letters: letters.into_iter().collect(),
        pairs: pairs.filter(|_| before.files.pairs.is_none()),
        ..FileProgress::default()
    };
    if new.is_empty() {
        return Ok(());
    }
    before.files.extend(new);
    state.apply_own_changes(&[Change::Progress(before.clone())])?;
    Ok(state.flush()?)
}

/// Refuses pairs that differ from those the state was built with.
pub(super) fn refuse_other_pairs(
    job: &Job,
    before: &Progress,
    ours: Option<PairList>,
) -> Result<(), PairsError> {
    let known = before.files.pairs;
    let is_new = known.is_none() && before.languages.is_empty();
    if job.state.is_none() || is_new || known == ours {
        return Ok(());
    }
    Err(PairsError::Others { known: known.map_or(0, |known| known.count) })
}

/// Looks up each source in the state's progress; None for what cannot be read again, and for all sources without a state
/// directory.
pub(super) fn identify(job: &Job, before: &Progress) -> Result<Vec<Option<Identity>>, FileRunError> {
    let mut names = BTreeSet::new();
    let mut files = Vec::new();
    for source in &job.reading.sources {
        let Source::File(path) = source else {
            files.push(None);
            continue;
        };
        if job.state.is_none() || !source.is_readable_again() {
            files.push(None);
            continue;
        }
        let file = Identity::find(path, before)
            .map_err(|error| SourceError::Unreadable { name: source.name(), error })?;
        if !names.insert(file.path().clone()) {
            return Err(FileRunError::Twice(source.name()));
        }
        files.push(Some(file));
    }
    Ok(files)
}

/// Where to begin in each source: after the records that earlier runs judged.
pub(super) fn starts(files: &[Option<Identity>]) -> Vec<Start> {
    let start = |(source, file): (usize, &Option<Identity>)| Start {
        source,
        skip: file.as_ref().map_or(0, |file| file.judged),
        grows: file.is_some(),
    };
    files.iter().enumerate().map(start).collect()
}
