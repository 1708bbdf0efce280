//! Deletes state on disk that no assigned partition uses: stores of partitions that moved away, and quarantined copies.
//!
//! A directory is deleted once nothing was written to it for as long as the changelog keeps tombstones. After that time
//! the store would be rebuilt from zero anyway, and it still holds articles that were deleted meanwhile. Until then the
//! newest quarantined copy of each partition is kept. A store of an assigned partition, or one that another process has
//! open, is never touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::status::Guard;
use crate::stop::Stop;
use samestory_engine::index::{StoreError, destroy};

use super::restore::Cause;
use crate::kafka::faults::{Constant, FAULTS, Faults};

/// Time between two sweeps.
const INTERVAL: Duration = Duration::from_secs(60);

/// The partitions assigned to a process, shared by its workers and the thread that deletes unused state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holdings(Arc<Mutex<Partitions>>);

#[derive(Debug, Default)]
struct Partitions {
    assigned: BTreeSet<i32>,
    deleting: BTreeSet<i32>,
}

impl Holdings {
    fn lock(&self) -> MutexGuard<'_, Partitions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn assigned(&self, partition: i32) {
        self.lock().assigned.insert(partition);
    }

    pub(crate) fn revoked(&self, partition: i32) {
        self.lock().assigned.remove(&partition);
    }

    /// True if the store of this partition is being deleted; a new owner waits for that.
    pub(crate) fn is_deleting(&self, partition: i32) -> bool {
        self.lock().deleting.contains(&partition)
    }

    /// True if the store may be deleted. If so, no worker opens it until [`Holdings::deleted`].
    fn may_delete(&self, partition: i32) -> bool {
        let mut partitions = self.lock();
        let free = !partitions.assigned.contains(&partition);
        if free {
            partitions.deleting.insert(partition);
        }
        free
    }

    fn deleted(&self, partition: i32) {
        self.lock().deleting.remove(&partition);
    }
}

/// The contents of a directory below `stage.state`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum StateDirectory {
    Store { partition: i32 },
    Quarantined { partition: i32 },
}

/// Parses a directory name: `<changelog>-3` is a store, `<changelog>-3.damaged.1` a quarantined copy. `None` for names
/// that this program does not give.
fn parse_name(name: &str, changelog: &str) -> Option<StateDirectory> {
    let rest = name.strip_prefix(changelog)?.strip_prefix('-')?;
    let number = |text: &str| -> Option<i32> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
    };
    match rest.split_once('.') {
        None => Some(StateDirectory::Store { partition: number(rest)? }),
        Some((partition, copy)) => {
            let (cause, nth) = copy.split_once('.')?;
            number(nth)?;
            Cause::ALL.iter().find(|known| known.as_str() == cause)?;
            Some(StateDirectory::Quarantined { partition: number(partition)? })
        }
    }
}

/// When anything in a directory was last written.
fn last_written(directory: &Path) -> Option<SystemTime> {
    let files = fs::read_dir(directory).ok()?;
    let written = |path: &Path| fs::symlink_metadata(path).and_then(|metadata| metadata.modified()).ok();
    let newest = files.filter_map(|file| written(&file.ok()?.path())).max();
    newest.max(written(directory).filter(|_| newest.is_none()))
}

/// The directories to delete, each with the reason.
fn leftovers(
    state: &Path,
    changelog: &str,
    horizon: Duration,
    now: SystemTime,
) -> Vec<(StateDirectory, PathBuf, &'static str)> {
    let Ok(entries) = fs::read_dir(state) else { return Vec::new() };
    let mut delete = Vec::new();
    let mut copies: BTreeMap<i32, Vec<(SystemTime, PathBuf)>> = BTreeMap::new();
    for entry in entries.filter_map(Result::ok) {
        // Symbolic links are not ours: this program creates none.
        let Ok(true) = entry.file_type().map(|file_type| file_type.is_dir()) else { continue };
        let directory = entry.file_name().to_str().and_then(|name| parse_name(name, changelog));
        let Some(directory) = directory else { continue };
        let Some(written) = last_written(&entry.path()) else { continue };
        let old = now.duration_since(written).is_ok_and(|age| age > horizon);
        match directory {
            directory if old => {
                delete.push((directory, entry.path(), "older than the changelog keeps tombstones"));
            }
            StateDirectory::Quarantined { partition } => {
                copies.entry(partition).or_default().push((written, entry.path()));
            }
            StateDirectory::Store { .. } => {}
        }
    }
    for (partition, mut copies) in copies {
        copies.sort();
        copies.pop();
        let older = copies.into_iter().map(|(_, path)| path);
        let reason = "a newer quarantined copy exists";
        delete.extend(older.map(|path| (StateDirectory::Quarantined { partition }, path, reason)));
    }
    delete
}

/// Deletes unused state, and returns the deleted directories.
fn sweep(
    state: &Path,
    changelog: &str,
    horizon: Duration,
    now: SystemTime,
    holdings: &Holdings,
) -> Vec<PathBuf> {
    let mut gone = Vec::new();
    for (directory, path, why) in leftovers(state, changelog, horizon, now) {
        let deleted = match directory {
            StateDirectory::Store { partition } if !holdings.may_delete(partition) => continue,
            StateDirectory::Store { partition } => {
                let deleted = destroy(&path);
                holdings.deleted(partition);
                deleted
            }
            StateDirectory::Quarantined { .. } => destroy(&path),
        };
        let directory = path.display();
        match deleted {
            Ok(()) => {
                tracing::info!(%directory, why, "unused state deleted");
                gone.push(path);
            }
            // Another process shares `stage.state` and has the store open.
            Err(StoreError::InUse { .. }) => {}
            Err(error) => tracing::warn!(%directory, %error, "unused state cannot be deleted, retrying"),
        }
    }
    gone
}

/// Starts the thread that deletes unused state periodically until the process is to stop.
pub(crate) fn start(
    state: PathBuf,
    changelog: String,
    horizon: Duration,
    holdings: Holdings,
    stop: Stop,
    guard: Guard,
) -> std::io::Result<()> {
    let interval = Duration::from_millis(FAULTS.value(Constant::SweepInterval, INTERVAL.as_millis() as u64));
    let work = move || {
        let _guard = guard;
        while !stop.wait(interval) {
            sweep(&state, &changelog, horizon, now(), &holdings);
        }
    };
    std::thread::Builder::new().name("leftovers".into()).spawn(work).map(drop)
}

#[allow(
    clippy::disallowed_methods,
    reason = "compared with modification times of files, which use this clock"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HORIZON: Duration = Duration::from_secs(24 * 3600);

    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Dir {
            let dir = crate::temporary::temporary(name);
            drop(fs::remove_dir_all(&dir));
            fs::create_dir_all(&dir).unwrap();
            Dir(dir)
        }

        /// Creates a directory whose only file was written `hours` ago.
        fn state(&self, name: &str, hours: u64) {
            fs::create_dir(self.0.join(name)).unwrap();
            let file = fs::File::create(self.0.join(name).join("000001.sst")).unwrap();
            file.set_modified(now() - Duration::from_secs(hours * 3600)).unwrap();
        }

        fn names(&self) -> Vec<String> {
            let names = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<String> =
                names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }

        fn sweep(&self, holdings: &Holdings) {
            sweep(&self.0, "log", HORIZON, now(), holdings);
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    // Nothing was ever deleted: volumes filled up with stores of partitions that had moved away, and an erased article
    // stayed in them and in quarantined copies.
    #[test]
    fn a_directory_not_written_to_since_the_horizon_is_deleted() {
        let dir = Dir::new("leftovers");
        dir.state("log-0", 30);
        dir.state("log-1", 30);
        dir.state("log-2", 20);
        dir.state("log-3.damaged.1", 30);
        let holdings = Holdings::default();
        holdings.assigned(0);
        dir.sweep(&holdings);
        assert_eq!(dir.names(), ["log-0", "log-2"]);
        assert!(!holdings.is_deleting(1), "its next owner may open it");
        // Partition 0 moves away and is no longer written to.
        holdings.revoked(0);
        dir.sweep(&holdings);
        assert_eq!(dir.names(), ["log-2"]);
    }

    #[test]
    fn the_newest_quarantined_copy_of_a_partition_is_kept() {
        let dir = Dir::new("quarantined");
        for (name, hours) in
            [("log-3.damaged.1", 5), ("log-3.too-old.1", 2), ("log-3.damaged.2", 3), ("log-4.damaged.1", 9)]
        {
            dir.state(name, hours);
        }
        dir.sweep(&Holdings::default());
        assert_eq!(dir.names(), ["log-3.too-old.1", "log-4.damaged.1"]);
    }

    #[test]
    fn only_directories_with_our_names_are_deleted() {
        let dir = Dir::new("strangers");
        let strangers = [
            "log-",
            "log-+1",
            "log-1.backup.1",
            "log-1.damaged",
            "log-1.damaged.x",
            "log-1x",
            "log.g2-1",
            "lost+found",
            "other-1",
        ];
        strangers.iter().for_each(|name| dir.state(name, 1000));
        fs::write(dir.0.join("log-1"), "a file").unwrap();
        std::os::unix::fs::symlink("other-1", dir.0.join("log-2")).unwrap();
        let before = dir.names();
        dir.sweep(&Holdings::default());
        assert_eq!(dir.names(), before);
    }
}
