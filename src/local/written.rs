//! The files a run writes: the output, and what could not be judged. With a state that outlives the run it is the state
//! that knows how much of each is right; whatever follows that was written by a run that was cut off, and is written
//! again.

use std::path::Path;

use crate::store::{InputName, Progress};

use super::sink::{Sink, SinkError};
use super::source::Source;
use super::{Job, resume};

/// Where lines go, and what the state remembers them by.
pub(super) struct Written {
    sink: Sink,
    name: Option<InputName>,
}

impl Written {
    fn open(kind: &str, path: &Path, job: &Job, before: &Progress) -> Result<Written, SinkError> {
        if job.reading.sources.iter().any(|source| matches!(source, Source::File(file) if same(file, path))) {
            return Err(SinkError::Input { path: path.to_owned() });
        }
        if !job.resume {
            return Ok(Written { sink: Sink::create(path)?, name: None });
        }
        let failed = |error| SinkError::File { path: path.to_owned(), error };
        let known = |name: &InputName| before.inputs.get(name).map_or(0, |written| written.next);
        // A file that is not there has no absolute path yet; if the state knows it all the same, it is too short.
        if let (Err(_), Some(parent)) = (path.canonicalize(), path.parent()) {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            let place = parent.canonicalize().map_err(failed)?.join(path.file_name().unwrap_or_default());
            let expected = known(&InputName::new(&format!("{kind}:{}", place.display())));
            if expected > 0 {
                return Err(SinkError::Shortened { path: path.to_owned(), expected, found: 0 });
            }
            drop(Sink::create(path)?);
        }
        let name = resume::written_name(kind, path).map_err(failed)?;
        Ok(Written { sink: Sink::resume(path, known(&name))?, name: Some(name) })
    }

    /// Writes lines. Where they are to be continued, they are safe then; and under which name the state is to remember
    /// how many bytes, if that is known.
    pub(super) fn add(&mut self, lines: &[u8]) -> Result<Option<(&InputName, Option<u64>)>, SinkError> {
        self.sink.write(lines)?;
        match &self.name {
            Some(name) => Ok(Some((name, self.sink.settle()?))),
            None => Ok(None),
        }
    }
}

/// The output, and the file of dead letters if there is one.
pub(super) fn open(job: &Job, before: &Progress) -> Result<(Written, Option<Written>), SinkError> {
    let output = match &job.output {
        None => Written { sink: Sink::Stdout, name: None },
        Some(path) => Written::open("output", path, job, before)?,
    };
    let letters = match (&job.dead_letters, &job.output) {
        (Some(path), Some(output)) if same(path, output) => {
            return Err(SinkError::Output { path: path.clone() });
        }
        (Some(path), _) => Some(Written::open("dead-letters", path, job, before)?),
        (None, _) => None,
    };
    Ok((output, letters))
}

fn same(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
