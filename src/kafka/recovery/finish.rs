//! The last part of a restore from nothing: what was read from the log gets its postings, on a thread of its own, so that
//! other partitions go on meanwhile.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::status::Restore;
use samestory_engine::index::{Rebanded, Rocks, RocksOptions, StoreError};

/// How long a look takes at one that is not done.
const LOOK: Duration = Duration::from_millis(20);

/// Postings in the making. It ends when it is dropped.
pub(crate) struct Finishing {
    partition: i32,
    directory: PathBuf,
    so_far: Restore,
    began: Instant,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Rocks, StoreError>>>,
}

impl Finishing {
    /// Begins. The store must be closed.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(crate) fn start(
        partition: i32,
        directory: PathBuf,
        options: RocksOptions,
        so_far: Restore,
    ) -> Result<Finishing, StoreError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, place) = (Arc::clone(&stop), directory.clone());
        let work = move || {
            Rocks::reband(&place, &options, &mut |done| match told.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => said(partition, done),
            })
        };
        let thread = std::thread::Builder::new().name(format!("postings-{partition}")).spawn(work);
        let thread = thread.map_err(|error| StoreError::Failing {
            place: directory.display().to_string(),
            detail: format!("no thread to make its postings: {error}"),
        })?;
        Ok(Finishing { partition, directory, so_far, began: Instant::now(), stop, thread: Some(thread) })
    }

    /// Waits a moment; the store, once it is complete.
    pub(crate) fn look(&mut self) -> Result<Option<Rocks>, StoreError> {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            std::thread::sleep(LOOK);
            return Ok(None);
        }
        let outcome = self.thread.take().map(JoinHandle::join);
        let outcome = outcome.and_then(Result::ok);
        outcome.unwrap_or_else(|| Err(unusable(&self.directory, "a thread panicked".into()))).map(Some)
    }

    pub(crate) fn partition(&self) -> i32 {
        self.partition
    }

    /// How far the restore has come: all is read.
    pub(crate) fn so_far(&self) -> Restore {
        Restore { seconds: self.so_far.seconds + self.began.elapsed().as_secs_f64(), ..self.so_far }
    }
}

impl Drop for Finishing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The directory must be free for whoever opens it next.
            drop(thread.join());
        }
    }
}

fn said(partition: i32, done: Rebanded) -> ControlFlow<()> {
    let Rebanded { language, documents, of } = done;
    if documents == of || documents.is_multiple_of(100_000) {
        tracing::info!(partition, %language, documents, of, "restoring: postings");
    }
    ControlFlow::Continue(())
}

fn unusable(directory: &std::path::Path, detail: String) -> StoreError {
    StoreError::Unusable { place: directory.display().to_string(), detail }
}
