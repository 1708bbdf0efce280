//! Files and directories of unit tests: one name for each test and process, below the system's directory for such things.

use std::path::PathBuf;

/// A path that no other test uses.
pub(crate) fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("samestory-{}-{name}", std::process::id()))
}
