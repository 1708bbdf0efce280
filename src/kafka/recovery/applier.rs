//! Applies what a restore reads from the changelog, on a thread of its own: the worker's thread reads and decodes meanwhile,
//! and polls Kafka for all its partitions. `replay` hands over chunk by chunk, at most [`AHEAD`] of them. The thread ends
//! with the restore, so that the next owner can open the directory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use samestory_engine::index::{ChangelogRecord, Store, StoreError, View};

use super::replay::Followed;
use crate::kafka::client::left_until;
use crate::kafka::faults::{FAULTS, Faults, Point};

/// Chunks that are read and not applied yet: one that is being applied, and one that waits.
const AHEAD: usize = 2;

/// Records that are applied together.
struct Chunk {
    records: Vec<ChangelogRecord>,
    /// The offset after the last of them.
    end: i64,
}

/// A store to which chunks are being applied. Dropping it closes the store.
pub(super) struct Applier {
    chunks: Option<SyncSender<Chunk>>,
    answers: Receiver<Result<i64, StoreError>>,
    /// The offset after the last record that is applied.
    applied: i64,
    /// Chunks that were handed over and have no answer yet.
    outstanding: usize,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Followed>>,
}

impl Applier {
    /// Starts the thread. The store has everything below offset `from`.
    ///
    /// # Errors
    /// The operating system refused to start one.
    pub(super) fn start(partition: i32, from: i64, mut followed: Followed) -> Result<Applier, StoreError> {
        let place = followed.store.place().to_owned();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (chunks, handed_over) = sync_channel::<Chunk>(AHEAD);
        let (answer, answers) = sync_channel(AHEAD);
        let work = move || {
            for Chunk { records, end } in handed_over {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let Followed { store, attestor } = &mut followed;
                let proof = attestor.attest(u64::try_from(end).unwrap_or(0));
                let outcome = store.replay(records, &proof).map(|()| end);
                FAULTS.reach(Point::Restore);
                let failed = outcome.is_err();
                // Nobody waits for the answer if the partition was revoked.
                if answer.send(outcome).is_err() || failed {
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
        let (chunks, thread) = (Some(chunks), Some(thread));
        Ok(Applier { chunks, answers, applied: from, outstanding: 0, stop, thread })
    }

    /// Hands records over, up to this offset. It waits if there is no room.
    pub(super) fn apply(&mut self, records: Vec<ChangelogRecord>, end: i64) {
        if let Some(chunks) = &self.chunks {
            // If the thread has ended, its last answer says why.
            let _ended = chunks.send(Chunk { records, end });
            self.outstanding += 1;
        }
    }

    /// Waits until there is room for another chunk. Returns whether there is.
    pub(super) fn has_room(&mut self, deadline: Instant) -> Result<bool, StoreError> {
        self.wait(AHEAD - 1, deadline)
    }

    /// Waits until everything is applied. Returns whether it is.
    pub(super) fn is_done(&mut self, deadline: Instant) -> Result<bool, StoreError> {
        self.wait(0, deadline)
    }

    /// The offset after the last record that is applied.
    pub(super) fn applied(&self) -> i64 {
        self.applied
    }

    /// True if nothing is being applied.
    pub(super) fn is_idle(&self) -> bool {
        self.outstanding == 0
    }

    fn wait(&mut self, most: usize, deadline: Instant) -> Result<bool, StoreError> {
        while self.outstanding > most {
            match self.answers.recv_timeout(left_until(deadline)) {
                Ok(outcome) => self.applied = outcome?,
                Err(RecvTimeoutError::Timeout) => return Ok(false),
                Err(RecvTimeoutError::Disconnected) => self.panic_likewise(),
            }
            self.outstanding -= 1;
        }
        Ok(true)
    }

    /// The store. Everything must be applied.
    pub(super) fn finish(mut self) -> Followed {
        self.chunks = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(followed)) => followed,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => unreachable!("the thread is joined once"),
        }
    }

    /// The thread has ended without an answer, so it has panicked. A worker that panics ends the process.
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
            // The next owner must be able to open the directory. A panic was reported where it happened.
            drop(thread.join());
        }
    }
}
