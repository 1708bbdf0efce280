//! The files a run writes: the output, and what could not be judged.
//!
//! Without a state both appear when they are complete. With a state that outlives the run they are continued in place, and it is
//! the state that knows how much of each is right; whatever follows that was written by a run that was cut off, and is written
//! again. The state therefore knows a file's name before the first byte is written, and refuses files that it does not know.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use samestory_engine::index::{Input, InputName, Progress};

use super::sink::{Sink, SinkError};
use super::{Job, place, replace, resume};

/// Where lines go, and what the state remembers them by.
pub(super) struct Written {
    sink: Sink,
    name: Option<InputName>,
    /// The state does not know the name yet.
    is_new: bool,
}

impl Written {
    fn open(kind: &str, path: &Path, job: &Job, before: &Progress) -> Result<Written, SinkError> {
        if replace::is_stream(path) || job.state.is_none() {
            return Ok(Written { sink: Sink::whole(path)?, name: None, is_new: false });
        }
        let failed = |error| SinkError::File { path: path.to_owned(), error };
        let name = InputName::new(&format!("{kind}:{}", place::absolute(path).display()));
        let found = path.metadata().ok().filter(Metadata::is_file).map_or(0, |data| data.len());
        let known = before.inputs.get(&name);
        let length = known.map_or(0, |known| known.next);
        if found < length {
            return Err(SinkError::Shortened { path: path.to_owned(), expected: length, found });
        }
        let ours = match known {
            Some(known) => resume::begins_as(path, known).map_err(failed)?,
            None => found == 0,
        };
        if !ours {
            return Err(SinkError::Foreign { path: path.to_owned() });
        }
        Ok(Written { sink: Sink::resume(path, length)?, name: Some(name), is_new: known.is_none() })
    }

    /// Writes lines. Where they are to be continued, they are safe then; and under which name the state is to remember
    /// what.
    pub(super) fn add(&mut self, lines: &[u8]) -> Result<Option<(&InputName, Input)>, SinkError> {
        self.sink.write(lines)?;
        let input = self.sink.settle()?;
        Ok(self.name.as_ref().zip(input))
    }

    /// What the state must know before the first line.
    pub(super) fn entry(&mut self) -> Result<Option<(InputName, Input)>, SinkError> {
        let input = if self.is_new { self.sink.settle()? } else { None };
        Ok(self.name.clone().zip(input))
    }

    /// The run went well.
    pub(super) fn finish(self) -> Result<(), SinkError> {
        self.sink.finish()
    }

    /// The run failed: where the lines are that were written until then, if not at their target.
    pub(super) fn keep(self) -> Option<PathBuf> {
        self.sink.keep()
    }
}

/// The output, and the file of dead letters if there is one.
pub(super) fn open(job: &Job, before: &Progress) -> Result<(Written, Option<Written>), SinkError> {
    let output = match &job.output {
        None => Written { sink: Sink::Stdout, name: None, is_new: false },
        Some(path) => Written::open("output", path, job, before)?,
    };
    let letters = match &job.dead_letters {
        Some(path) => Some(Written::open("dead-letters", path, job, before)?),
        None => None,
    };
    Ok((output, letters))
}
