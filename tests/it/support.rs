//! What several test modules need.

use std::path::{Path, PathBuf};

/// A file of the articles kept beside the project, or `None` where they are absent, having said so. On CI
/// (`CI=true`) their absence is a failure: a test that is always skipped proves nothing.
pub(crate) fn shared_data(file: &str) -> Option<PathBuf> {
    let directory = std::env::var_os("SAMESTORY_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from);
    let path = directory.join(file);
    if path.is_file() {
        return Some(path);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs {}; set SAMESTORY_DATA", path.display());
    eprintln!("skipped: no {} (set SAMESTORY_DATA to the directory that has it)", path.display());
    None
}
