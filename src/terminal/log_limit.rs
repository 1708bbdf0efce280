//! One thing that goes wrong a thousand times a second is said a few times and then counted: a log that is full of it hides
//! everything else, and fills a disk.
//!
//! A reason is the place in the code that speaks, together with whom it speaks of (a partition, a worker, a topic). Of each,
//! [`MOST`] lines a [`PERIOD`] are let through. How many were left out is said once, when the period is over.

use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber, callsite};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Lines of one reason that are let through in a period.
pub(crate) const MOST: u64 = 10;
/// How long a period is, from the first line on.
pub(crate) const PERIOD: Duration = Duration::from_secs(60);
/// Reasons that are told apart; what comes beyond shares that of its place in the code.
const REASONS: usize = 4096;
/// Fields that say of whom a line speaks. All have few values; an article's id is none of them.
const WHOM: [&str; 6] = ["partition", "worker", "topic", "subject", "facility", "reason"];
/// The field of our own lines, which are never left out.
const OURS: &str = "left_out";

type Reason = (callsite::Identifier, String);

#[derive(Debug)]
struct Window {
    began: Instant,
    lines: u64,
    /// What the first line of the period said.
    first: String,
}

/// Lines that were not written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub lines: u64,
    pub said: String,
}

/// Counts lines by reason. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogLimit(Arc<Mutex<HashMap<Reason, Window>>>);

impl LogLimit {
    fn admits(&self, place: callsite::Identifier, line: Line, now: Instant) -> bool {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reason = (place, line.whom);
        if windows.len() >= REASONS && !windows.contains_key(&reason) {
            reason.1.clear();
        }
        let window =
            windows.entry(reason).or_insert_with(|| Window { began: now, lines: 0, first: line.said });
        window.lines += 1;
        window.lines <= MOST
    }

    /// Ends the periods that are over, and says what was left out in them.
    pub(crate) fn over(&self, now: Instant) -> Vec<LeftOut> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left_out = Vec::new();
        windows.retain(|_, window| {
            let goes_on = now.saturating_duration_since(window.began) < PERIOD;
            if !goes_on && window.lines > MOST {
                left_out
                    .push(LeftOut { lines: window.lines - MOST, said: std::mem::take(&mut window.first) });
            }
            goes_on
        });
        left_out
    }
}

impl<S: Subscriber> Layer<S> for LogLimit {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        // Who asks for every detail gets it.
        if *event.metadata().level() > Level::INFO {
            return true;
        }
        let mut line = Line::default();
        event.record(&mut line);
        line.ours || self.admits(event.metadata().callsite(), line, Instant::now())
    }
}

/// What a line says, and of whom.
#[derive(Default)]
struct Line {
    whom: String,
    said: String,
    ours: bool,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _written = match field.name() {
            "message" => write!(self.said, "{value:?}"),
            OURS => {
                self.ours = true;
                Ok(())
            }
            name if WHOM.contains(&name) => write!(self.whom, "{name}={value:?} "),
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

    /// Where the lines go.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines of the log that the program itself would write, as JSON or for people.
    fn log(json: bool, speak: impl FnOnce(&LogLimit)) -> Vec<String> {
        let (written, flood) = (Written::default(), LogLimit::default());
        let writer = written.clone();
        let subscriber = logs::subscriber(LevelFilter::DEBUG, !json, flood.clone(), move || writer.clone());
        tracing::subscriber::with_default(subscriber, || speak(&flood));
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    fn registry_is_away(times: usize) {
        for attempt in 0..times {
            tracing::warn!(attempt, "the registry is away");
        }
    }

    // A dead letter's message quotes the article: its escape sequences and direction marks were written to the log as they were.
    #[test]
    fn what_an_article_says_is_not_obeyed_by_a_terminal() {
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
    fn a_flood_is_a_few_lines_and_then_a_number() {
        for json in [true, false] {
            let lines = log(json, |flood| {
                registry_is_away(5000);
                tracing::error!("something else");
                assert_eq!(flood.over(Instant::now()), [], "the period is not over");
                logs::say_what_was_left_out(flood, Instant::now() + PERIOD);
                registry_is_away(3);
                logs::say_what_was_left_out(flood, Instant::now() + PERIOD);
            });
            let with = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
            // Ten, what was left out, and three in the next period, of which nothing was.
            assert_eq!(with("the registry is away"), MOST as usize + 1 + 3, "{lines:#?}");
            assert_eq!((with("4990"), with("something else")), (1, 1), "{lines:#?}");
        }
    }

    #[test]
    fn partitions_are_told_apart_and_details_are_not_counted() {
        let lines = log(true, |flood| {
            for partition in 0..64 {
                for _ in 0..20 {
                    tracing::error!(partition, "stopped");
                }
            }
            for number in 0..500 {
                tracing::debug!(number, "a detail");
            }
            // Each is said, however many there are.
            logs::say_what_was_left_out(flood, Instant::now() + PERIOD);
        });
        let with = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
        assert_eq!((with("\"a detail\""), with("\"stopped\"")), (500, 64 * MOST as usize));
        assert_eq!(with("\"left_out\":10"), 64);
    }

    #[test]
    fn however_many_reasons_there_are_memory_is_bounded() {
        let lines = log(true, |counted| {
            for partition in 0..3 * REASONS {
                tracing::warn!(partition, "going on");
            }
            assert!(counted.0.lock().unwrap().len() <= REASONS + 1);
            assert_eq!(counted.over(Instant::now() + PERIOD).len(), 1);
            assert!(counted.0.lock().unwrap().is_empty());
        });
        assert_eq!(lines.len(), REASONS + MOST as usize);
    }
}
