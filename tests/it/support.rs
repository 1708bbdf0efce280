//! Finds the articles that lie beside the repository. They are not part of it, so a test must say when it
//! goes without them, and must not go without them where everything is supposed to be tested.

use std::env;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};

/// A file of `../shared/data`, or of the directory `SAMESTORY_DATA` names.
///
/// Says on standard error when there is none.
///
/// # Panics
///
/// When there is none and `CI` is `true`.
pub(crate) fn shared_data(file: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let path = env::var_os("SAMESTORY_DATA").map_or_else(beside, PathBuf::from).join(file);
    if path.is_file() {
        return Some(path);
    }
    let missing =
        format!("{} is not there; set SAMESTORY_DATA to the directory that holds it", path.display());
    assert!(env::var("CI").as_deref() != Ok("true"), "{missing}");
    // The test harness hides what `eprintln!` prints in a test that passes, and this one will pass.
    stderr().write_all(format!("skipped: {missing}\n").as_bytes()).unwrap();
    None
}
