//! A file that appears complete or not at all: it is written under another name beside the target and renamed at the end. A run
//! that fails leaves the file that was there before as it was.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::place;

/// Names that earlier runs left behind before one is free.
const TRIES: usize = 1000;

/// The new content of a file, under another name until it is complete.
#[derive(Debug)]
pub(super) struct Replacement {
    target: PathBuf,
    partial: PathBuf,
    file: File,
    /// Whether the partial file is worth keeping.
    written: bool,
    renamed: bool,
}

impl Replacement {
    /// Creates the partial file beside the target. A link to the target stays a link.
    pub(super) fn create(path: &Path) -> io::Result<Replacement> {
        let target = place::follow(path);
        // Asks whether the target may be written: the directory's rights alone would let us replace a protected file.
        let permissions = match OpenOptions::new().write(true).open(&target) {
            Ok(existing) => Some(existing.metadata()?.permissions()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let (partial, file) = partial(&target)?;
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

    /// Puts the file in its place. It is on the disk before it gets the name.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.file.sync_data()?;
        fs::rename(&self.partial, &self.target)?;
        self.renamed = true;
        Ok(())
    }

    /// Leaves an unfinished file under its other name, if it holds anything.
    pub(super) fn keep(mut self) -> Option<PathBuf> {
        let keep = self.written;
        self.renamed = keep;
        keep.then(|| self.partial.clone())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.renamed {
            // It was never finished; if it cannot be removed either, it is a file too many and no harm.
            let _removed = fs::remove_file(&self.partial);
        }
    }
}

/// A new file with a name of its own; what other runs left behind is not touched.
fn partial(target: &Path) -> io::Result<(PathBuf, File)> {
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

/// A file that is made with these options is its owner's, and its group may read it: it holds articles.
pub fn for_output(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o640);
    options
}

/// A file that is written at once, at the end of a run.
#[derive(Debug)]
pub struct WholeFile(Way);

#[derive(Debug)]
enum Way {
    Replaced(Replacement),
    /// A pipe, a device, an open file: written when its time has come, so that no reader sees it end before.
    Stream(PathBuf),
}

impl WholeFile {
    /// Finds out now whether the file can be written, and changes nothing yet.
    ///
    /// # Errors
    /// It cannot.
    pub fn create(path: &Path) -> io::Result<WholeFile> {
        if is_stream(path) {
            return Ok(WholeFile(Way::Stream(path.to_owned())));
        }
        Ok(WholeFile(Way::Replaced(Replacement::create(path)?)))
    }

    /// Writes all of it, in place of what was there.
    ///
    /// # Errors
    /// It cannot be written; what was there is as it was.
    pub fn write(self, content: &[u8]) -> io::Result<()> {
        match self.0 {
            Way::Stream(path) => open_stream(&path)?.write_all(content),
            Way::Replaced(mut replacement) => {
                replacement.write(content)?;
                replacement.finish()
            }
        }
    }
}

/// Something that cannot be replaced by another file: a pipe, a device, an open file of this process.
pub(super) fn is_stream(path: &Path) -> bool {
    place::is_descriptor(path) || fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}

/// Opens a stream; nothing of a redirected file is cut off.
pub(super) fn open_stream(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}
