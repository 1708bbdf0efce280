//! Locates the articles beside the repository. They are not part of it, so a test must report that it skips them, and
//! must not skip them in CI.

use std::env;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};

/// A file of `../shared/data`, or of the directory that `SAMESTORY_DATA` names.
///
/// Reports a missing file on standard error.
///
/// # Panics
///
/// If the file is missing and `CI` is `true`.
pub(crate) fn shared_data(file: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let path = env::var_os("SAMESTORY_DATA").map_or_else(beside, PathBuf::from).join(file);
    if path.is_file() {
        return Some(path);
    }
    let missing =
        format!("{} is not there; set SAMESTORY_DATA to the directory that holds it", path.display());
    assert!(env::var("CI").as_deref() != Ok("true"), "{missing}");
    // The test harness captures `eprintln!` of passing tests, and this one passes.
    stderr().write_all(format!("skipped: {missing}\n").as_bytes()).unwrap();
    None
}
