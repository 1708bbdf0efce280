//! Tests of a store on a disk that is full and later has space again. They need the right to mount and are
//! skipped without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::maintenance::upkeep::tests::{document, temporary};
use super::{Rocks, RocksOptions, check_room};
use crate::fingerprint::LANES;
use crate::index::{
    Budget, Change, Durability, IndexScheme, IndexSchemes, SimHashBands, Store, StoreError, View,
};
use crate::lsh::Banding;
use crate::model::{DocumentNumber, Lang};

/// A small tmpfs, unmounted when it is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(name: &str, bytes: u64) -> Option<SmallDisk> {
        let at = temporary(name);
        fs::create_dir_all(&at).unwrap();
        let options = format!("size={bytes}");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "samestory-test"]).arg(&at).output();
        if mount.is_ok_and(|output| output.status.success()) {
            return Some(SmallDisk(at));
        }
        println!("mounting a small disk needs root; skipped");
        drop(fs::remove_dir(&at));
        None
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Fills the disk, leaving this many bytes.
    fn fill(&self, left: usize) {
        let mut filler = vec![7; 64 << 20];
        while fs::write(self.filler(), &filler).is_err() {
            filler.truncate(filler.len() - (256 << 10));
        }
        filler.truncate(filler.len() - left);
        fs::write(self.filler(), &filler).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
        drop(fs::remove_dir(&self.0));
    }
}

/// Each write fills a memtable of 16 KiB several times over, so that writes stall while earlier ones are
/// flushed.
fn options() -> RocksOptions {
    let minhash = Banding::new(32, 4, LANES).ok();
    let posting = IndexScheme { minhash, simhash: SimHashBands::None, samples: 2, shortest: 1 };
    let (durability, budget) = (Durability::Changelog { partition: 0 }, Budget::new(8 << 20));
    // Postings are frozen all the time, too.
    RocksOptions {
        write_buffer: 16 << 10,
        postings_in_memory: 1000,
        ..RocksOptions::new(IndexSchemes::new(posting), durability, budget)
    }
}

/// Applies documents from a number on until the store refuses one. Returns the error and the first number
/// that is missing.
fn apply_until_full(directory: &Path, from: u64) -> (StoreError, u64) {
    let mut store = Rocks::open(directory, &options()).unwrap();
    let attestor = store.attestor().unwrap();
    for first in (from..).step_by(40) {
        let documents: Vec<Change> = (first..first + 40).map(document).collect();
        if let Err(error) = store.apply_changes(&documents, &attestor.attest(first + 40)) {
            return (error, first);
        }
    }
    unreachable!("a small disk is full in the end")
}

// A write that RocksDB had stalled waited, silently and forever, for a flush that had failed: it would have
// resumed only when a whole memtable of 48 MB was free. The worker sat in `DBImpl::DelayWrite` and no longer
// polled Kafka.
#[test]
fn a_write_on_a_full_disk_fails_and_never_waits_for_space() {
    for round in 0..6 {
        let Some(disk) = SmallDisk::mount(&format!("full-{round}"), 24 << 20) else { return };
        let directory = disk.0.join("state");
        disk.fill((1 << 20) + round * (150 << 10));
        let (refused, wait) = channel();
        let place = directory.clone();
        std::thread::spawn(move || refused.send(apply_until_full(&place, 0)));
        let refused = wait.recv_timeout(Duration::from_secs(40));
        let (error, missing) = refused.expect("the write hangs");
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
        fs::remove_file(disk.filler()).unwrap();
        assert_eq!(check_room(&directory), Ok(()));
        // Nothing is wiped: a whole number of batches is there, and the log has the rest.
        let mut store = Rocks::open(&directory, &options()).unwrap();
        let attestor = store.attestor().unwrap();
        let next = store.changelog_next().unwrap().unwrap_or(0);
        assert!(next <= missing && next.is_multiple_of(40), "{next} of {missing}");
        for first in (next..missing + 40).step_by(40) {
            let documents: Vec<Change> = (first..first + 40).map(document).collect();
            store.apply_changes(&documents, &attestor.attest(first + 40)).unwrap();
        }
        store.flush().unwrap();
        assert!(store.document(Lang::UND, DocumentNumber(missing)).unwrap().is_some());
    }
}

#[test]
fn a_disk_without_a_mebibyte_has_no_room() {
    let Some(disk) = SmallDisk::mount("room", 4 << 20) else { return };
    let directory = disk.0.join("state");
    assert_eq!(check_room(&directory), Ok(()));
    disk.fill(300 << 10);
    assert!(matches!(check_room(&directory), Err(StoreError::Full { .. })));
    fs::remove_file(disk.filler()).unwrap();
    assert_eq!(check_room(&directory), Ok(()));
    assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 0, "the probe is removed");
}
