//! Where a name leads: symbolic links followed, devices and inodes compared. Two names are the same file if the system says so,
//! whatever their spelling.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

/// Links that are followed; Linux stops at the same number.
const LINKS: usize = 40;

/// A file, as the system tells it from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It exists.
    File(Id),
    /// It does not exist yet: its directory, and the name it gets there.
    New(Id, OsString),
}

impl Place {
    /// None where two names cannot harm each other (a terminal, `/dev/null`, a socket) or lead nowhere; opening it tells why.
    pub(super) fn of(path: &Path) -> Option<Place> {
        match fs::metadata(path) {
            Ok(data) => Place::of_open(&data, path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let path = follow(path);
                let directory = parent(&path);
                let data = fs::metadata(directory).ok()?;
                Some(Place::New(Id::of(&data, directory)?, path.file_name()?.to_owned()))
            }
            Err(_) => None,
        }
    }

    fn of_open(data: &Metadata, path: &Path) -> Option<Place> {
        (!is_shared_device(data)).then(|| Id::of(data, path).map(Place::File)).flatten()
    }

    /// What standard input was redirected from.
    pub(super) fn of_stdin() -> Option<Place> {
        #[cfg(unix)]
        return Place::of_descriptor(std::os::fd::AsFd::as_fd(&io::stdin()));
        #[cfg(not(unix))]
        None
    }

    /// Where standard output was redirected to.
    pub(super) fn of_stdout() -> Option<Place> {
        #[cfg(unix)]
        return Place::of_descriptor(std::os::fd::AsFd::as_fd(&io::stdout()));
        #[cfg(not(unix))]
        None
    }

    #[cfg(unix)]
    fn of_descriptor(descriptor: std::os::fd::BorrowedFd<'_>) -> Option<Place> {
        let copy = fs::File::from(descriptor.try_clone_to_owned().ok()?);
        Place::of_open(&copy.metadata().ok()?, Path::new(""))
    }
}

/// Device and inode.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id(u64, u64);

#[cfg(unix)]
impl Id {
    fn of(data: &Metadata, _path: &Path) -> Option<Id> {
        use std::os::unix::fs::MetadataExt;
        Some(Id(data.dev(), data.ino()))
    }
}

/// The path without links: elsewhere the standard library has no better.
#[cfg(not(unix))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Id(PathBuf);

#[cfg(not(unix))]
impl Id {
    fn of(_data: &Metadata, path: &Path) -> Option<Id> {
        path.canonicalize().ok().map(Id)
    }
}

/// The file or directory that exists under this name.
pub(super) fn id(path: &Path) -> Option<Id> {
    Id::of(&fs::metadata(path).ok()?, path)
}

/// Many programs read and write these at once, and mean to.
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

/// The directory that a name stands in.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Follows symbolic links to the last one, which need not lead to anything that exists.
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

/// The path without links, also of a file that does not exist yet.
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

/// An open file of this process by its number (`/dev/stdout`, `/dev/fd/3`): whoever opened it chose where it goes.
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
