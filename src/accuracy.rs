//! Measures the verdicts of the stage's settings on articles that people have judged (`metrics.judged`), for `/metrics`.
//!
//! [`Judged::open`] reads the file when the process starts, so that a wrong path stops it at once. [`Judged::watch`] then judges
//! the articles in memory, in a thread of its own, and again whenever a file changes: no article of the bus waits for it or sees
//! it. `samestory eval` shows the same numbers in detail.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use samestory_engine::{Options as EngineOptions, StoreError};
use samestory_eval::{LabelledError, Report, RunOptions, Set, run};

use crate::config::Config;
use crate::status::{Measured, StatusBoard};
use crate::stop::Stop;

/// The most bytes of articles and pairs: a few thousand articles, which one core judges in seconds. More belongs to
/// `samestory eval`.
const MAX_BYTES: u64 = 16 << 20;
/// How often the files are looked at.
const INTERVAL: Duration = Duration::from_secs(5);

/// Why the judged articles cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JudgedError {
    /// The file cannot be read.
    #[error("metrics.judged = {}: cannot read the file", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The files are too large to be judged beside the stage.
    #[error(
        "metrics.judged = {}: {bytes} bytes with the pairs beside it, at most {MAX_BYTES} are judged beside the stage; measure more with `samestory eval`",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Bytes of all its files.
        bytes: u64,
    },
    /// A line is malformed, or there are no labels.
    #[error("metrics.judged: {0}")]
    Malformed(LabelledError),
    /// The articles could not be judged; a bug, because the index is in memory.
    #[error("metrics.judged: {0}")]
    Store(StoreError),
}

/// The files as they were when they were read: a change of any shows here.
#[derive(Clone, Debug, PartialEq)]
struct Version(Vec<(PathBuf, u64, Option<SystemTime>)>);

/// The file of judged articles.
#[derive(Debug)]
pub struct Judged {
    path: PathBuf,
    options: EngineOptions,
    /// As last looked at; `None` if that failed.
    version: Option<Version>,
    /// What was read at the start and is not measured yet.
    set: Option<Set>,
}

impl Judged {
    /// Reads the file of `metrics.judged`, if it is set.
    ///
    /// # Errors
    /// The file is missing, too large or malformed; the error names the setting.
    pub fn open(config: &Config) -> Result<Option<Judged>, JudgedError> {
        let Some(path) = config.judged.clone() else { return Ok(None) };
        let mut judged = Judged { path, options: config.options(), version: None, set: None };
        let version = judged.look()?;
        judged.set = Some(judged.read(&version)?);
        judged.version = Some(version);
        Ok(Some(judged))
    }

    /// Measures now and after every change of a file, until the process stops.
    ///
    /// # Errors
    /// The operating system refused a thread.
    pub fn watch(mut self, stop: Stop, board: Arc<StatusBoard>) -> io::Result<()> {
        let watch = move || {
            if let Some(set) = self.set.take() {
                self.report(self.measure(&set), &board);
            }
            while !stop.wait(INTERVAL) {
                if let Some(measured) = self.again() {
                    self.report(measured, &board);
                }
            }
        };
        thread::Builder::new().name("judged".into()).spawn(watch).map(drop)
    }

    /// The accuracy after a change of the files; `None` if nothing has changed.
    fn again(&mut self) -> Option<Result<Measured, JudgedError>> {
        let looked = self.look();
        let known = std::mem::replace(&mut self.version, looked.as_ref().ok().cloned());
        match looked {
            Ok(version) if known.as_ref() == Some(&version) => None,
            Ok(version) => Some(self.read(&version).and_then(|set| self.measure(&set))),
            // It is said once.
            Err(error) => known.is_some().then_some(Err(error)),
        }
    }

    fn look(&self) -> Result<Version, JudgedError> {
        let look = |path: PathBuf| {
            let about = fs::metadata(&path)?;
            Ok((path, about.len(), about.modified().ok()))
        };
        let looked: io::Result<Vec<_>> = Set::files(&self.path).into_iter().map(look).collect();
        looked.map(Version).map_err(|error| JudgedError::Unreadable { path: self.path.clone(), error })
    }

    fn read(&self, Version(files): &Version) -> Result<Set, JudgedError> {
        let bytes = files.iter().map(|(_, bytes, _)| bytes).sum();
        if bytes > MAX_BYTES {
            return Err(JudgedError::TooLarge { path: self.path.clone(), bytes });
        }
        Set::read(&self.path).map_err(|error| match error {
            LabelledError::Unreadable { path, error } => JudgedError::Unreadable { path, error },
            error => JudgedError::Malformed(error),
        })
    }

    fn measure(&self, set: &Set) -> Result<Measured, JudgedError> {
        let run = run::run(&self.options, set, RunOptions::default()).map_err(JudgedError::Store)?;
        let report = Report::new(&[(set.clone(), run)]);
        Ok(Measured { pairs: report.accuracy_of_pairs(), articles: report.accuracy_of_articles() })
    }

    /// A file that cannot be judged any more has no accuracy: an old one would hide that.
    fn report(&self, measured: Result<Measured, JudgedError>, board: &StatusBoard) {
        let measured = measured.unwrap_or_else(|error| {
            tracing::error!(
                "accuracy not measured: {error}; correct the file, it is read again when it changes"
            );
            Measured::default()
        });
        for (judged, accuracy) in [("pairs", measured.pairs), ("articles", measured.articles)] {
            if let Some(accuracy) = accuracy {
                let (precision, recall) = (accuracy.precision.share, accuracy.recall.share);
                tracing::info!(judged, labels = accuracy.labels, precision, recall, "accuracy measured");
            }
        }
        board.measured(measured);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::temporary::temporary;

    const TEXT: &str = "The council has decided that the old bridge over the river will be closed from May, and that the \
                        new one will not be open before the end of the year, because the steel for it comes late.";
    const OTHER: &str = "Four boats left the harbour on Monday morning with food and blankets for the islands in the \
                         north, where the storm of last week has destroyed most of the houses and both of the wells.";

    fn config(path: &std::path::Path, more: &str) -> Config {
        let text = format!("[metrics]\njudged = {path:?}\n{more}");
        Config::try_from(toml::from_str::<Settings>(&text).unwrap()).unwrap()
    }

    fn directory(name: &str) -> PathBuf {
        let directory = temporary(name);
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn articles() -> String {
        let line =
            |id: &str, body: &str| format!("{{\"id\": \"{id}\", \"lang\": \"en\", \"body\": \"{body}\"}}\n");
        line("a", TEXT) + &line("b", TEXT) + &line("c", OTHER)
    }

    fn rates(measured: &Measured) -> (u64, Option<f64>, Option<f64>) {
        let pairs = measured.pairs.unwrap();
        (pairs.labels, pairs.precision.share, pairs.recall.share)
    }

    #[test]
    fn accuracy_follows_the_labels_in_the_files() {
        let directory = directory("judged");
        let (path, pairs) = (directory.join("mine.ndjson"), directory.join("mine.pairs.tsv"));
        fs::write(&path, articles()).unwrap();
        fs::write(&pairs, "id1\tid2\tlabel\na\tb\tsame\na\tc\tdifferent\n").unwrap();
        let mut judged = Judged::open(&config(&path, "")).unwrap().unwrap();
        let set = judged.set.take().unwrap();
        assert_eq!(rates(&judged.measure(&set).unwrap()), (2, Some(1.0), Some(1.0)));
        assert!(judged.again().is_none(), "nothing has changed");
        // People change their minds: now a copy is called different, and one that was missed the same.
        fs::write(&pairs, "id1\tid2\tlabel\na\tb\tdifferent\nb\tc\tsame\na\tc\tsame\n").unwrap();
        assert_eq!(rates(&judged.again().unwrap().unwrap()), (3, Some(0.0), Some(0.0)));
        fs::write(&pairs, "id1\tid2\tlabel\na\tb\tperhaps\n").unwrap();
        let refused = judged.again().unwrap().unwrap_err().to_string();
        assert!(refused.contains("metrics.judged") && refused.contains("mine.pairs.tsv:2"), "{refused}");
        assert!(judged.again().is_none(), "it is said once");
        fs::remove_file(&path).unwrap();
        assert!(matches!(judged.again(), Some(Err(JudgedError::Unreadable { .. }))));
        assert!(judged.again().is_none());
        fs::write(&path, articles()).unwrap();
        fs::write(&pairs, "id1\tid2\tlabel\na\tb\tsame\n").unwrap();
        assert_eq!(rates(&judged.again().unwrap().unwrap()), (1, Some(1.0), Some(1.0)));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn accuracy_is_that_of_the_settings_of_the_stage() {
        let directory = directory("judged-settings");
        let path = directory.join("mine.ndjson");
        let half: String =
            TEXT.split(' ').take(20).chain(OTHER.split(' ').take(16)).collect::<Vec<_>>().join(" ");
        fs::write(&path, articles().replace(OTHER, &half)).unwrap();
        fs::write(directory.join("mine.pairs.tsv"), "id1\tid2\tlabel\na\tc\tsame\n").unwrap();
        let recall = |more: &str| {
            let mut judged = Judged::open(&config(&path, more)).unwrap().unwrap();
            let set = judged.set.take().unwrap();
            judged.measure(&set).unwrap().pairs.unwrap().recall.share
        };
        let minhash = "[match]\nalgorithm = \"minhash\"\n";
        assert_eq!(recall(&format!("{minhash}threshold = 0.9\ncontainment_threshold = 0.95")), Some(0.0));
        assert_eq!(
            recall(&format!("{minhash}threshold = 0.1\ncontainment_threshold = 0.3\n[lsh]\nrecall = 0.999")),
            Some(1.0)
        );
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_judged_stops_the_start_and_names_the_setting() {
        let directory = directory("judged-wrong");
        let path = directory.join("mine.ndjson");
        let refusal = || {
            let error = Judged::open(&config(&path, "")).unwrap_err();
            (error.to_string(), matches!(error, JudgedError::TooLarge { .. }))
        };
        assert!(refusal().0.contains("metrics.judged = ") && refusal().0.contains("mine.ndjson"));
        fs::write(&path, articles()).unwrap();
        assert!(
            refusal().0.contains("metrics.judged") && refusal().0.contains("no labels"),
            "{}",
            refusal().0
        );
        // Sparse: the limit applies before anything is read.
        fs::File::create(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert!(refusal().1, "{}", refusal().0);
        assert!(Judged::open(&Config::try_from(Settings::default()).unwrap()).unwrap().is_none());
        fs::remove_dir_all(directory).unwrap();
    }
}
