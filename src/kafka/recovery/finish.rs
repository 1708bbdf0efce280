//! Builds a store's posting lists on a separate thread, after a restore from zero or a change of the bands. The worker
//! polls for the result and serves its other partitions meanwhile. The store stays closed until its posting lists are
//! complete.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::status::Restore;
use samestory_engine::index::{Rebanded, Rocks, RocksOptions, StoreError};

/// How long one step waits for the result.
const STEP: Duration = Duration::from_millis(20);

/// A running build of posting lists. Dropping it stops the build.
pub(crate) struct Finishing {
    partition: i32,
    directory: PathBuf,
    so_far: Restore,
    began: Instant,
    stop: Arc<AtomicBool>,
    built: Receiver<Result<Rocks, StoreError>>,
    thread: Option<JoinHandle<()>>,
}

impl Finishing {
    /// Starts the build. The store must be closed.
    ///
    /// # Errors
    /// The operating system refused to start a thread.
    pub(crate) fn start(
        partition: i32,
        directory: PathBuf,
        options: RocksOptions,
        so_far: Restore,
    ) -> Result<Finishing, StoreError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, path) = (Arc::clone(&stop), directory.clone());
        let (build, built) = sync_channel(1);
        let work = move || {
            let outcome = Rocks::reband(&path, &options, &mut |done| match stopped.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => log_progress(partition, done),
            });
            // Nobody waits for it if the partition was revoked.
            let _unwanted = build.send(outcome);
        };
        let thread = std::thread::Builder::new().name(format!("postings-{partition}")).spawn(work);
        let thread = thread.map_err(|error| StoreError::Failing {
            place: directory.display().to_string(),
            detail: format!("cannot start a thread to build its posting lists: {error}"),
        })?;
        Ok(Finishing {
            partition,
            directory,
            so_far,
            began: Instant::now(),
            stop,
            built,
            thread: Some(thread),
        })
    }

    /// Waits a moment, and returns the open store once it is complete.
    pub(crate) fn poll(&mut self) -> Result<Option<Rocks>, StoreError> {
        match self.built.recv_timeout(STEP) {
            Ok(outcome) => outcome.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(unusable(&self.directory, "a thread panicked".into())),
        }
    }

    pub(crate) fn partition(&self) -> i32 {
        self.partition
    }

    /// Progress of the restore. All records are read, only the time grows.
    pub(crate) fn so_far(&self) -> Restore {
        Restore { seconds: self.so_far.seconds + self.began.elapsed().as_secs_f64(), ..self.so_far }
    }
}

impl Drop for Finishing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The next owner must be able to open the directory.
            drop(thread.join());
        }
    }
}

fn log_progress(partition: i32, done: Rebanded) -> ControlFlow<()> {
    let Rebanded { language, documents, of } = done;
    if documents == of || documents.is_multiple_of(100_000) {
        tracing::info!(partition, %language, documents, of, "restoring: building posting lists");
    }
    ControlFlow::Continue(())
}

fn unusable(directory: &std::path::Path, detail: String) -> StoreError {
    StoreError::Unusable { place: directory.display().to_string(), detail }
}
