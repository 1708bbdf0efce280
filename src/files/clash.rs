//! Refuses a run whose outputs would overwrite one of its own files: an input, the settings, another output,
//! or the state. Files are compared by identity ([`super::paths`]), and all of them before any is opened for
//! writing.

use std::fs;
use std::path::{Path, PathBuf};

use super::Job;
use super::paths::{self, FileId};
use super::source::Source;

/// Two arguments of a command name the same file. Nothing has been written.
#[derive(Debug, thiserror::Error)]
pub enum ClashError {
    /// An output is also an input, the settings file, or another output.
    #[error("{output} and {other} are the same file; nothing was written: choose another file")]
    SameFile {
        /// Role and name of the output.
        output: String,
        /// Role and name of the other file.
        other: String,
    },
    /// An output lies inside the state directory, or the state directory inside an output's path.
    #[error("{output} overlaps with the state directory {}; nothing was written: choose a file outside of it", state.display())]
    State {
        /// Role and name of the output.
        output: String,
        /// The state directory as given on the command line.
        state: PathBuf,
    },
}

impl Job {
    /// Checks that no output is an input, another output, or part of the state.
    ///
    /// # Errors
    /// [`ClashError`] names both files. Nothing has been opened for writing.
    pub fn refuse_clashes(&self) -> Result<(), ClashError> {
        let mut taken: Vec<(String, FileId)> = Vec::new();
        for source in &self.reading.sources {
            let (name, id) = match source {
                Source::File(path) => (format!("the input {}", path.display()), FileId::of_path(path)),
                Source::Pipe => ("standard input".to_owned(), FileId::of_stdin()),
            };
            taken.extend(id.map(|id| (name, id)));
        }
        for (role, path) in [("the settings file", &self.settings), ("the pairs", &self.pairs)] {
            let Some(path) = path else { continue };
            let name = format!("{role} {}", path.display());
            taken.extend(FileId::of_path(path).map(|id| (name, id)));
        }
        let outputs = [
            ("--output", &self.output),
            ("--dead-letters", &self.dead_letters),
            ("--clusters", &self.clusters),
            ("--html", &self.html),
        ];
        if self.output.is_none() {
            let (name, id) = ("standard output".to_owned(), FileId::of_stdout());
            claim(&mut taken, name.clone(), id.clone())?;
            if let (Some(id), Some(state)) = (id, &self.state) {
                unlinked(&name, &id, state)?;
            }
        }
        for (role, path) in outputs {
            let Some(path) = path else { continue };
            let name = format!("{role} {}", path.display());
            claim(&mut taken, name.clone(), FileId::of_path(path))?;
            if let Some(state) = &self.state {
                outside(&name, path, state)?;
            }
        }
        Ok(())
    }
}

fn claim(taken: &mut Vec<(String, FileId)>, output: String, id: Option<FileId>) -> Result<(), ClashError> {
    let Some(id) = id else { return Ok(()) };
    if let Some((other, _)) = taken.iter().find(|(_, other)| *other == id) {
        return Err(ClashError::SameFile { output, other: other.clone() });
    }
    taken.push((output, id));
    Ok(())
}

/// Refuses an output below the state directory, above it, or linked to one of its files.
fn outside(output: &str, path: &Path, state: &Path) -> Result<(), ClashError> {
    let (below, above) = (paths::absolute(path), paths::absolute(state));
    let directory = paths::node_id(state);
    let inside = below.ancestors().any(|part| directory.is_some() && paths::node_id(part) == directory);
    if inside || below.starts_with(&above) || above.starts_with(&below) {
        return Err(ClashError::State { output: output.to_owned(), state: state.to_owned() });
    }
    FileId::of_path(path).map_or(Ok(()), |id| unlinked(output, &id, state))
}

/// Refuses an output that is a file of the state under another name.
fn unlinked(output: &str, id: &FileId, state: &Path) -> Result<(), ClashError> {
    match linked(id, state) {
        Some(file) => {
            let other = format!("the state's file {}", file.display());
            Err(ClashError::SameFile { output: output.to_owned(), other })
        }
        None => Ok(()),
    }
}

/// Finds the file below `directory` that is the same file as `id`.
fn linked(id: &FileId, directory: &Path) -> Option<PathBuf> {
    for entry in fs::read_dir(directory).ok()?.flatten() {
        let path = entry.path();
        let found = match entry.file_type() {
            Ok(kind) if kind.is_dir() => linked(id, &path),
            _ => (FileId::of_path(&path).as_ref() == Some(id)).then_some(path),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}
