//! Rate limit for log lines: an error that repeats a thousand times a second must not hide everything else or
//! fill a disk.
//!
//! A tracing layer groups lines by their call site and subject (a partition, a worker, a topic), and lets
//! [`MAX_LINES`] lines of each group through per [`PERIOD`]. `logs` then writes one line with the number of
//! suppressed ones.

use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber, callsite};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Lines per group and period.
pub(crate) const MAX_LINES: u64 = 10;
/// The length of a period, from its first line.
pub(crate) const PERIOD: Duration = Duration::from_secs(60);
/// Groups kept in memory. Beyond that, new lines are grouped by call site alone.
const GROUPS: usize = 4096;
/// Fields that name the subject of a line. All have few values; an article's id is not among them.
const SUBJECT_FIELDS: [&str; 6] = ["partition", "worker", "topic", "subject", "facility", "reason"];
/// The field that marks the summary lines, which are never suppressed.
const SUMMARY_FIELD: &str = "left_out";

type LineGroup = (callsite::Identifier, String);

#[derive(Debug)]
struct Window {
    started: Instant,
    lines: u64,
    /// The message of the first line.
    first: String,
}

/// The suppressed lines of one group in one period.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Suppressed {
    pub lines: u64,
    pub message: String,
}

/// Counts lines by group. Clones share their counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogLimit(Arc<Mutex<HashMap<LineGroup, Window>>>);

impl LogLimit {
    fn admits(&self, call_site: callsite::Identifier, line: Line, now: Instant) -> bool {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut group = (call_site, line.subject);
        if windows.len() >= GROUPS && !windows.contains_key(&group) {
            group.1.clear();
        }
        let window =
            windows.entry(group).or_insert_with(|| Window { started: now, lines: 0, first: line.message });
        window.lines += 1;
        window.lines <= MAX_LINES
    }

    /// Closes the periods that are over, and returns what was suppressed in them.
    pub(crate) fn close_periods(&self, now: Instant) -> Vec<Suppressed> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut suppressed = Vec::new();
        windows.retain(|_, window| {
            let open = now.saturating_duration_since(window.started) < PERIOD;
            if !open && window.lines > MAX_LINES {
                let (lines, message) = (window.lines - MAX_LINES, std::mem::take(&mut window.first));
                suppressed.push(Suppressed { lines, message });
            }
            open
        });
        suppressed
    }
}

impl<S: Subscriber> Layer<S> for LogLimit {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        // Debug and trace lines are never limited.
        if *event.metadata().level() > Level::INFO {
            return true;
        }
        let mut line = Line::default();
        event.record(&mut line);
        line.is_summary || self.admits(event.metadata().callsite(), line, Instant::now())
    }
}

/// The message and the subject of a line.
#[derive(Default)]
struct Line {
    subject: String,
    message: String,
    is_summary: bool,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _written = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            SUMMARY_FIELD => {
                self.is_summary = true;
                Ok(())
            }
            name if SUBJECT_FIELDS.contains(&name) => write!(self.subject, "{name}={value:?} "),
            _ => Ok(()),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use tracing_subscriber::filter::LevelFilter;

    use super::super::logs;
    use super::*;

    /// Captures the log.
    #[derive(Clone, Default)]
    struct Capture(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Capture {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Runs `emit` and returns the log lines it produces, as JSON or in the terminal format.
    fn log(json: bool, emit: impl FnOnce(&LogLimit)) -> Vec<String> {
        let (written, limit) = (Capture::default(), LogLimit::default());
        let writer = written.clone();
        let subscriber = logs::subscriber(LevelFilter::DEBUG, !json, limit.clone(), move || writer.clone());
        tracing::subscriber::with_default(subscriber, || emit(&limit));
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    fn log_repeatedly(times: usize) {
        for attempt in 0..times {
            tracing::warn!(attempt, "schema registry unreachable");
        }
    }

    // A dead letter's message quotes the article, and its escape sequences and bidi marks used to reach the
    // log unchanged.
    #[test]
    fn escape_sequences_of_an_article_do_not_reach_the_terminal() {
        for json in [true, false] {
            let lines = log(json, |_| {
                tracing::error!(title = "\u{202e}evil\u{9b}2J", "field \u{2066}x\u{1b}]0;y\u{7} is missing");
            });
            let [line] = &lines[..] else { panic!("{lines:?}") };
            assert!(line.contains("evil") && line.contains("is missing"), "{line}");
            let own = line.replace("\u{1b}[", "");
            assert!(!own.contains(|c: char| c.is_control() || "\u{202e}\u{2066}".contains(c)), "{line:?}");
            assert!(!line.contains("\u{1b}]"), "{line:?}");
        }
    }

    #[test]
    fn repeated_lines_are_suppressed_and_counted() {
        for json in [true, false] {
            let lines = log(json, |limit| {
                log_repeatedly(5000);
                tracing::error!("something else");
                assert_eq!(limit.close_periods(Instant::now()), [], "the period is not over");
                logs::report_suppressed(limit, Instant::now() + PERIOD);
                log_repeatedly(3);
                logs::report_suppressed(limit, Instant::now() + PERIOD);
            });
            let with = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
            // Ten lines, the summary, and three lines of the next period, which suppressed none.
            assert_eq!(with("schema registry unreachable"), MAX_LINES as usize + 1 + 3, "{lines:#?}");
            // Only in the summary: a line written at 20:46:15.274990 has these digits in its time.
            let summaries = || lines.iter().filter(|line| line.contains("lines suppressed"));
            assert_eq!(summaries().filter(|line| line.contains("4990")).count(), 1, "{lines:#?}");
            assert_eq!(with("something else"), 1, "{lines:#?}");
        }
    }

    #[test]
    fn partitions_are_limited_separately_and_debug_lines_not_at_all() {
        let lines = log(true, |limit| {
            for partition in 0..64 {
                for _ in 0..20 {
                    tracing::error!(partition, "stopped");
                }
            }
            for number in 0..500 {
                tracing::debug!(number, "a detail");
            }
            // Every group gets its summary.
            logs::report_suppressed(limit, Instant::now() + PERIOD);
        });
        let with = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
        assert_eq!((with("\"a detail\""), with("\"stopped\"")), (500, 64 * MAX_LINES as usize));
        assert_eq!(with("\"left_out\":10"), 64);
    }

    #[test]
    fn memory_is_bounded_for_any_number_of_groups() {
        let lines = log(true, |limit| {
            for partition in 0..3 * GROUPS {
                tracing::warn!(partition, "retrying");
            }
            assert!(limit.0.lock().unwrap().len() <= GROUPS + 1);
            assert_eq!(limit.close_periods(Instant::now() + PERIOD).len(), 1);
            assert!(limit.0.lock().unwrap().is_empty());
        });
        assert_eq!(lines.len(), GROUPS + MAX_LINES as usize);
    }
}
