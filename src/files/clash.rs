//! Refuses a run that would write over one of its own files: an input, the settings, another output, or the state. Everything is
//! compared before anything is opened for writing.

use std::fs;
use std::path::{Path, PathBuf};

use super::Job;
use super::place::{self, Place};
use super::source::Source;

/// Two names of a command that lead to one file. Nothing was touched.
#[derive(Debug, thiserror::Error)]
pub enum ClashError {
    /// An output is another file of this run.
    #[error("{output} and {other} are the same file; nothing was written: choose another file")]
    SameFile {
        /// Its role and name.
        output: String,
        /// The other role and name.
        other: String,
    },
    /// An output would be one of the files of the state, or the state one of its own.
    #[error("{output} overlaps with the state directory {}; nothing was written: choose a file outside of it", state.display())]
    State {
        /// Its role and name.
        output: String,
        /// The directory as it was given.
        state: PathBuf,
    },
}

impl Job {
    /// Looks for outputs that are also read, also written, or part of the state.
    ///
    /// # Errors
    /// Names both. Nothing has been opened for writing.
    pub fn refuse_clashes(&self) -> Result<(), ClashError> {
        let mut taken: Vec<(String, Place)> = Vec::new();
        for source in &self.reading.sources {
            let (name, place) = match source {
                Source::File(path) => (format!("the input {}", path.display()), Place::of(path)),
                Source::Pipe => ("standard input".to_owned(), Place::of_stdin()),
            };
            taken.extend(place.map(|place| (name, place)));
        }
        for (role, path) in [("the settings file", &self.settings), ("the pairs", &self.pairs)] {
            let Some(path) = path else { continue };
            let name = format!("{role} {}", path.display());
            taken.extend(Place::of(path).map(|place| (name, place)));
        }
        let outputs = [
            ("--output", &self.output),
            ("--dead-letters", &self.dead_letters),
            ("--clusters", &self.clusters),
            ("--html", &self.html),
        ];
        if self.output.is_none() {
            let (name, place) = ("standard output".to_owned(), Place::of_stdout());
            claim(&mut taken, name.clone(), place.clone())?;
            if let (Some(place), Some(state)) = (place, &self.state) {
                unlinked(&name, &place, state)?;
            }
        }
        for (role, path) in outputs {
            let Some(path) = path else { continue };
            let name = format!("{role} {}", path.display());
            claim(&mut taken, name.clone(), Place::of(path))?;
            if let Some(state) = &self.state {
                outside(&name, path, state)?;
            }
        }
        Ok(())
    }
}

fn claim(taken: &mut Vec<(String, Place)>, output: String, place: Option<Place>) -> Result<(), ClashError> {
    let Some(place) = place else { return Ok(()) };
    if let Some((other, _)) = taken.iter().find(|(_, other)| *other == place) {
        return Err(ClashError::SameFile { output, other: other.clone() });
    }
    taken.push((output, place));
    Ok(())
}

/// Refuses an output below the state's directory, above it, or linked to one of its files.
fn outside(output: &str, path: &Path, state: &Path) -> Result<(), ClashError> {
    let (below, above) = (place::absolute(path), place::absolute(state));
    let directory = place::id(state);
    let inside = below.ancestors().any(|part| directory.is_some() && place::id(part) == directory);
    if inside || below.starts_with(&above) || above.starts_with(&below) {
        return Err(ClashError::State { output: output.to_owned(), state: state.to_owned() });
    }
    Place::of(path).map_or(Ok(()), |place| unlinked(output, &place, state))
}

/// Refuses an output that is one of the state's files under another name.
fn unlinked(output: &str, place: &Place, state: &Path) -> Result<(), ClashError> {
    match linked(place, state) {
        Some(file) => {
            let other = format!("the state's file {}", file.display());
            Err(ClashError::SameFile { output: output.to_owned(), other })
        }
        None => Ok(()),
    }
}

/// The file below a directory that is the same as this one.
fn linked(place: &Place, directory: &Path) -> Option<PathBuf> {
    for entry in fs::read_dir(directory).ok()?.flatten() {
        let path = entry.path();
        let found = match entry.file_type() {
            Ok(kind) if kind.is_dir() => linked(place, &path),
            _ => (Place::of(&path).as_ref() == Some(place)).then_some(path),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}
