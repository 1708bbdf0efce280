//! File identity and path resolution: symbolic links are followed, devices and inodes compared.
//!
//! [`super::clash`] uses it to detect two names of one file, [`super::replace`] and [`super::output_file`] to
//! find the real target. Two names are the same file if the operating system says so, whatever their
//! spelling.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

/// Symbolic links followed before giving up; Linux has the same limit.
const LINKS: usize = 40;

/// The identity of a file that exists or is about to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileId {
    Existing(NodeId),
    /// A file that does not exist yet: its directory, and its name there.
    New(NodeId, OsString),
}

impl FileId {
    /// The identity of the file at `path`. None for targets that are safe to share (a terminal, `/dev/null`,
    /// a socket), and for paths that cannot be resolved: opening them reports the error.
    pub(super) fn of_path(path: &Path) -> Option<FileId> {
        match fs::metadata(path) {
            Ok(data) => FileId::of_metadata(&data, path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let path = follow(path);
                let directory = parent(&path);
                let data = fs::metadata(directory).ok()?;
                Some(FileId::New(NodeId::new(&data, directory)?, path.file_name()?.to_owned()))
            }
            Err(_) => None,
        }
    }

    fn of_metadata(data: &Metadata, path: &Path) -> Option<FileId> {
        (!is_shared_device(data)).then(|| NodeId::new(data, path).map(FileId::Existing)).flatten()
    }

    /// The file that standard input is redirected from.
    pub(super) fn of_stdin() -> Option<FileId> {
        #[cfg(unix)]
        return FileId::of_descriptor(std::os::fd::AsFd::as_fd(&io::stdin()));
        #[cfg(not(unix))]
        None
    }

    /// The file that standard output is redirected to.
    pub(super) fn of_stdout() -> Option<FileId> {
        #[cfg(unix)]
        return FileId::of_descriptor(std::os::fd::AsFd::as_fd(&io::stdout()));
        #[cfg(not(unix))]
        None
    }

    #[cfg(unix)]
    fn of_descriptor(descriptor: std::os::fd::BorrowedFd<'_>) -> Option<FileId> {
        let copy = fs::File::from(descriptor.try_clone_to_owned().ok()?);
        FileId::of_metadata(&copy.metadata().ok()?, Path::new(""))
    }
}

/// Device and inode.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(u64, u64);

#[cfg(unix)]
impl NodeId {
    fn new(data: &Metadata, _path: &Path) -> Option<NodeId> {
        use std::os::unix::fs::MetadataExt;
        Some(NodeId(data.dev(), data.ino()))
    }
}

/// The canonicalised path: outside Unix the standard library offers no stable file id.
#[cfg(not(unix))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeId(PathBuf);

#[cfg(not(unix))]
impl NodeId {
    fn new(_data: &Metadata, path: &Path) -> Option<NodeId> {
        path.canonicalize().ok().map(NodeId)
    }
}

/// The node id of an existing file or directory.
pub(super) fn node_id(path: &Path) -> Option<NodeId> {
    NodeId::new(&fs::metadata(path).ok()?, path)
}

/// Devices and sockets that programs share on purpose.
fn is_shared_device(data: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        data.file_type().is_char_device() || data.file_type().is_socket()
    }
    #[cfg(not(unix))]
    {
        let _ = data;
        false
    }
}

/// The directory of a path; `.` for a bare file name.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Follows symbolic links to their final target, which need not exist.
pub(super) fn follow(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        match fs::read_link(&path) {
            Ok(link) => path = parent(&path).join(link),
            Err(_) => break,
        }
    }
    path
}

/// The absolute path without symbolic links; works for a file that does not exist yet.
pub(super) fn absolute(path: &Path) -> PathBuf {
    let path = follow(path);
    let mut missing = Vec::new();
    let mut existing = path.as_path();
    loop {
        let here = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
        if let Ok(mut found) = here.canonicalize() {
            found.extend(missing.iter().rev());
            return found;
        }
        match (existing.parent(), existing.components().next_back()) {
            (Some(parent), Some(Component::Normal(name))) => {
                missing.push(name);
                existing = parent;
            }
            _ => return std::path::absolute(&path).unwrap_or(path),
        }
    }
}

/// True if a path names an open file descriptor of this process (`/dev/stdout`, `/dev/fd/3`), which can only
/// be written as a stream.
pub(super) fn is_descriptor(path: &Path) -> bool {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        let Ok(directory) = parent(&path).canonicalize() else { return false };
        let is_proc =
            directory.starts_with("/proc") && directory.file_name().is_some_and(|name| name == "fd");
        if is_proc || directory == Path::new("/dev/fd") {
            return true;
        }
        match fs::read_link(&path) {
            Ok(link) => path = directory.join(link),
            Err(_) => return false,
        }
    }
    false
}
