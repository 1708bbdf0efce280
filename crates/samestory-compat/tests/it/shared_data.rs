//! Finds the real articles that lie beside the repository and are not part of it.

use std::env;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};

/// A file of `shared/data` beside the repository, or of the directory that `SAMESTORY_DATA` names.
///
/// # Panics
///
/// If the file is missing and `CI` is `true`; otherwise a missing file is reported and the caller skips it.
pub(crate) fn shared_data(file: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = env::var_os("SAMESTORY_DATA").map_or_else(beside, PathBuf::from).join(file);
    if path.is_file() {
        return Some(path);
    }
    let missing = format!("{} is missing; set SAMESTORY_DATA to its directory", path.display());
    assert!(env::var("CI").as_deref() != Ok("true"), "{missing}");
    // The test harness captures `eprintln!` of a test that passes, and this one passes.
    stderr().write_all(format!("skipped: {missing}\n").as_bytes()).unwrap();
    None
}
