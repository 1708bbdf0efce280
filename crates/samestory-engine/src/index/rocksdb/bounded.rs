//! Bounded calls into RocksDB: writes, flushes and closes that would otherwise wait indefinitely.
//!
//! A flush or compaction that finds no space fails in the background. RocksDB then waits on its own until a
//! whole memtable (48 MB) is free (`SstFileManagerImpl::ClearError`), however long that takes, and a stalled
//! write waits with it (`DBImpl::DelayWrite`). The thread that would wait is the one that polls Kafka and
//! reports the health of its partitions. So a write never stalls inside RocksDB, flushing and closing happen
//! on their own threads, and a store with a background error is closed and reopened instead of being repaired
//! while it is in use.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rocksdb::{BoundColumnFamily, DB, ErrorKind, FlushOptions, WriteBatch, properties};

use super::{Opened, open};
use crate::index::{Durability, StoreError};

/// How long to wait for a flush or a close: 64 MB at 3 MB a second.
const FLUSH: Duration = Duration::from_secs(20);
/// How long a write waits for flushes and compactions that have not failed. Shorter than
/// `max.poll.interval.ms`, after which the partition would be revoked.
const STALL: Duration = Duration::from_secs(120);
/// Pause between two checks of a stalled store.
const PAUSE: Duration = Duration::from_millis(2);

/// An open database. Dropping it waits a bounded time for the close; until it is closed, its directory is in
/// use.
pub(super) struct Database(Option<Arc<DB>>);

impl Database {
    pub(super) fn new(db: DB) -> Database {
        Database(Some(Arc::new(db)))
    }
}

impl Deref for Database {
    type Target = DB;

    #[allow(clippy::expect_used, reason = "only drop takes it out")]
    fn deref(&self) -> &DB {
        self.0.as_deref().expect("a database is open until it is dropped")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let Some(db) = self.0.take() else { return };
        let (closed, wait) = channel::<()>();
        let close = move || {
            drop(db);
            drop(closed);
        };
        // If no thread can be started, the closure is dropped here and closes the database on this thread.
        if std::thread::Builder::new().name("close-store".into()).spawn(close).is_ok() {
            let _closed_or_late = wait.recv_timeout(FLUSH);
        }
    }
}

impl Opened {
    /// Writes the batch that `make` returns, all or nothing. Waits while writes are stalled, unless an error
    /// is the cause.
    pub(super) fn write(
        &self,
        durability: Durability,
        make: impl Fn() -> Result<WriteBatch, StoreError>,
    ) -> Result<(), StoreError> {
        let deadline = Instant::now() + STALL;
        loop {
            match self.db.write_opt(make()?, &open::write_options(durability)) {
                Err(error) if error.kind() == ErrorKind::Incomplete => {}
                written => return written.map_err(|error| self.failure(&error)),
            }
            loop {
                self.check_background()?;
                if Instant::now() > deadline {
                    let detail = format!("writes have been stalled for {} s", STALL.as_secs());
                    return Err(StoreError::Stalled { place: self.place.clone(), detail });
                }
                std::thread::sleep(PAUSE);
                if self.db_property(properties::IS_WRITE_STOPPED)? == 0 {
                    break;
                }
            }
        }
    }

    /// Flushes all column families together. Each is named, because only the named ones form a consistent
    /// state.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        self.check_background()?;
        let Some(db) = self.db.0.clone() else { return Ok(()) };
        let names: Vec<String> = self.families().into_iter().map(|family| family.name()).collect();
        let (flushed, wait) = channel();
        let flush = move || {
            let outcome = flush_named(&db, &names);
            // Released before the answer is sent, because the owner may close the database next.
            drop(db);
            let _nobody_waits = flushed.send(outcome);
        };
        let stalled = |detail: String| StoreError::Stalled { place: self.place.clone(), detail };
        let thread = std::thread::Builder::new().name("flush-store".into()).spawn(flush);
        thread.map_err(|error| StoreError::Failing {
            place: self.place.clone(),
            detail: format!("could not start the flush thread: {error}"),
        })?;
        match wait.recv_timeout(FLUSH) {
            Ok(outcome) => outcome.map_err(|error| self.failure(&error)),
            Err(RecvTimeoutError::Timeout) => {
                self.check_background()?;
                Err(stalled(format!("a flush has taken more than {} s", FLUSH.as_secs())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(stalled("the flush thread panicked".into())),
        }
    }

    /// Reports a flush or compaction that has failed in the background since the store was opened.
    pub(super) fn check_background(&self) -> Result<(), StoreError> {
        if self.db_property(properties::BACKGROUND_ERRORS)? == 0 {
            return Ok(());
        }
        // A write returns the error that stops writes; an empty write changes nothing.
        let answer = self
            .db
            .write_opt(WriteBatch::default(), &open::write_options(Durability::Changelog { partition: 0 }));
        match answer {
            Err(error) if error.kind() != ErrorKind::Incomplete => Err(self.failure(&error)),
            // Only a compaction without space still allows writes (`ErrorSeverityMap` in RocksDB's
            // error_handler.cc).
            _ => {
                let detail = "a compaction ran out of space; see the file LOG in that directory".into();
                Err(StoreError::Full { place: self.place.clone(), detail })
            }
        }
    }

    /// A property of the whole database. RocksDB counts errors in the family `default`, for all families.
    pub(super) fn db_property(&self, name: &properties::PropName) -> Result<u64, StoreError> {
        let value = self.db.property_int_value(name);
        value.map(Option::unwrap_or_default).map_err(|error| self.failure(&error))
    }
}

fn flush_named(db: &DB, names: &[String]) -> Result<(), rocksdb::Error> {
    let families: Vec<_> = names.iter().filter_map(|name| db.cf_handle(name)).collect();
    let families: Vec<&Arc<BoundColumnFamily<'_>>> = families.iter().collect();
    let mut options = FlushOptions::default();
    options.set_wait(true);
    db.flush_cfs_opt(&families, &options)
}
