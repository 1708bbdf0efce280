//! Applies what a restore reads from the changelog, on a thread of its own: decoding and writing take longer than reading, and
//! the worker's thread polls Kafka for all its partitions. `replay` reads and hands over chunk by chunk. The thread ends
//! with the restore, and the next owner can open the directory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use samestory_engine::index::{ChangelogRecord, ReplayError, Rows, Store, StoreError};

use super::replay::Followed;
use crate::kafka::client::left_until;
use crate::kafka::faults::{FAULTS, Faults, Point};

/// Chunks that have been read and are not applied yet: one that is being applied, and one that waits.
const AHEAD: usize = 2;

/// Records that are applied together.
struct Chunk {
    records: Vec<ChangelogRecord>,
    /// The offset after the last of them.
    end: u64,
}

/// A store to which chunks are being applied. Dropping it closes the store.
pub(super) struct Applier {
    chunks: Option<SyncSender<Chunk>>,
    applied: Receiver<Result<(), ReplayError>>,
    outstanding: usize,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Followed>>,
}

impl Applier {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system refused to start one.
    pub(super) fn start(partition: i32, mut followed: Followed) -> Result<Applier, StoreError> {
        let place = followed.store.place().to_owned();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (chunks, handed_over) = sync_channel::<Chunk>(AHEAD);
        let (done, applied) = sync_channel(AHEAD);
        let work = move || {
            for Chunk { records, end } in handed_over {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let Followed { store, attestor } = &mut followed;
                let outcome = store.replay(&records, &attestor.attest(end));
                FAULTS.reach(Point::Restore);
                let failed = outcome.is_err();
                if done.send(outcome).is_err() || failed {
                    break;
                }
            }
            followed
        };
        let thread = std::thread::Builder::new().name(format!("restore-{partition}")).spawn(work);
        let thread = thread.map_err(|error| StoreError::Failing {
            place,
            detail: format!("cannot start a thread to apply the changelog: {error}"),
        })?;
        Ok(Applier { chunks: Some(chunks), applied, outstanding: 0, stop, thread: Some(thread) })
    }

    /// Hands records over; there must be room.
    pub(super) fn apply(&mut self, records: Vec<ChangelogRecord>, end: u64) {
        if let Some(chunks) = &self.chunks {
            // If the thread has ended, its last answer says why.
            let _ended = chunks.send(Chunk { records, end });
            self.outstanding += 1;
        }
    }

    /// Waits until there is room for another chunk, and returns whether there is.
    pub(super) fn has_room(&mut self, deadline: Instant) -> Result<bool, ReplayError> {
        self.wait(AHEAD - 1, deadline)
    }

    /// Waits until everything is applied, and returns whether it is.
    pub(super) fn is_done(&mut self, deadline: Instant) -> Result<bool, ReplayError> {
        self.wait(0, deadline)
    }

    /// True if nothing is being applied.
    pub(super) fn is_idle(&self) -> bool {
        self.outstanding == 0
    }

    fn wait(&mut self, most: usize, deadline: Instant) -> Result<bool, ReplayError> {
        while self.outstanding > most {
            match self.applied.recv_timeout(left_until(deadline)) {
                Ok(outcome) => outcome?,
                Err(RecvTimeoutError::Timeout) => return Ok(false),
                Err(RecvTimeoutError::Disconnected) => self.panic_likewise(),
            }
            self.outstanding -= 1;
        }
        Ok(true)
    }

    /// The store, once everything is applied.
    pub(super) fn finish(mut self) -> Followed {
        self.chunks = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(followed)) => followed,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => unreachable!("the thread is joined once"),
        }
    }

    /// The thread ended without an answer, so it has panicked: a worker that panics ends the process.
    fn panic_likewise(&mut self) -> ! {
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            _ => unreachable!("the thread answers for every chunk, or panics"),
        }
    }
}

impl Drop for Applier {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.chunks = None;
        if let Some(thread) = self.thread.take() {
            // The next owner must be able to open the directory.
            drop(thread.join());
        }
    }
}
