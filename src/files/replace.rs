//! Atomic file replacement: the content is written to a temporary name beside the target and renamed at the
//! end.
//!
//! Pipes and devices cannot be renamed over and are written as streams. A run that fails leaves the existing
//! file unchanged.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::paths;

/// Names tried for the partial file, in case earlier runs left theirs behind.
const TRIES: usize = 1000;

/// The new content of a file, under a temporary name until it is complete.
#[derive(Debug)]
pub(super) struct Replacement {
    target: PathBuf,
    partial: PathBuf,
    file: File,
    /// The partial file holds data that is worth keeping after a failure.
    written: bool,
    renamed: bool,
}

impl Replacement {
    /// Creates the partial file beside the target. A symbolic link to the target stays a link.
    pub(super) fn create(path: &Path) -> io::Result<Replacement> {
        let target = paths::follow(path);
        // Check the target itself: write permission on the directory alone would let us replace a read-only
        // file.
        let permissions = match OpenOptions::new().write(true).open(&target) {
            Ok(existing) => Some(existing.metadata()?.permissions()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let (partial, file) = create_partial(&target)?;
        let replacement = Replacement { target, partial, file, written: false, renamed: false };
        if let Some(permissions) = permissions
            && replacement.file.metadata()?.permissions() != permissions
        {
            replacement.file.set_permissions(permissions)?;
        }
        Ok(replacement)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written |= !bytes.is_empty();
        self.file.write_all(bytes)
    }

    /// The temporary name.
    pub(super) fn partial(&self) -> &Path {
        &self.partial
    }

    /// Renames the file to its target. It is synced first, so a crash cannot leave an empty file under the
    /// target name.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.file.sync_data()?;
        fs::rename(&self.partial, &self.target)?;
        self.renamed = true;
        Ok(())
    }

    /// Keeps an unfinished file under its temporary name if it holds any data, and returns that name.
    pub(super) fn keep(mut self) -> Option<PathBuf> {
        let keep = self.written;
        self.renamed = keep;
        keep.then(|| self.partial.clone())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.renamed {
            // A leftover partial file is harmless, so a failed removal is ignored.
            let _removed = fs::remove_file(&self.partial);
        }
    }
}

/// Creates a partial file under a free name; files that other runs left behind are not touched.
fn create_partial(target: &Path) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    let options = for_output(options.write(true).create_new(true));
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for attempt in 0..TRIES {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".partial-{}", std::process::id() as usize + attempt));
        let path = PathBuf::from(name);
        match options.open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Sets the mode of a new output file to 0640 on Unix: it holds articles, so only its owner and group may
/// read it.
pub fn for_output(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o640);
    options
}

/// A file that is written in one go at the end of a run, such as the HTML report.
#[derive(Debug)]
pub struct WholeFile(Destination);

#[derive(Debug)]
enum Destination {
    Replaced(Replacement),
    /// A pipe, a device or a file descriptor. It is opened only when there is content, so that no reader sees
    /// an early end of file.
    Stream(PathBuf),
}

impl WholeFile {
    /// Checks that the file can be written, without changing it yet.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn create(path: &Path) -> io::Result<WholeFile> {
        if is_stream(path) {
            return Ok(WholeFile(Destination::Stream(path.to_owned())));
        }
        Ok(WholeFile(Destination::Replaced(Replacement::create(path)?)))
    }

    /// Replaces the file's content.
    ///
    /// # Errors
    /// The write fails; the previous content is unchanged.
    pub fn write(self, content: &[u8]) -> io::Result<()> {
        match self.0 {
            Destination::Stream(path) => open_stream(&path)?.write_all(content),
            Destination::Replaced(mut replacement) => {
                replacement.write(content)?;
                replacement.finish()
            }
        }
    }
}

/// True if a path cannot be renamed over: a pipe, a device, or a file descriptor of this process.
pub(super) fn is_stream(path: &Path) -> bool {
    paths::is_descriptor(path) || fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}

/// Opens a stream for appending, so that a redirected file is not truncated.
pub(super) fn open_stream(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}
