//! Logging to standard error: readable lines on a terminal, JSON otherwise. Every line is escaped for the
//! terminal and rate-limited (`log_limit`).

use std::io::IsTerminal;
use std::time::Instant;

use super::Escaped;
use tracing::Subscriber;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, registry};

use super::log_limit::{LogLimit, PERIOD};

/// Starts logging. `SAMESTORY_LOG` is a level: error, warn, info (default), debug, trace.
pub fn start() {
    let level = std::env::var("SAMESTORY_LOG").ok().and_then(|level| level.parse().ok());
    let limit = LogLimit::default();
    let terminal = std::io::stderr().is_terminal();
    let subscriber = subscriber(level.unwrap_or(LevelFilter::INFO), terminal, limit.clone(), std::io::stderr);
    // A subscriber that is already installed stays.
    if subscriber.try_init().is_err() {
        return;
    }
    // Log a panic like any other line: as JSON, and rate-limited in case every record causes one.
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let location = panic.location().map(ToString::to_string);
        tracing::error!(
            thread = thread.name(),
            location,
            "panic: {}",
            panic.payload_as_str().unwrap_or("no message")
        );
    }));
    // Reports suppressed lines even after the flood has ended. If the thread cannot start, only the counts
    // are missing.
    let _spawned = std::thread::Builder::new().name("logs".into()).spawn(move || {
        loop {
            std::thread::sleep(PERIOD / 12);
            report_suppressed(&limit, Instant::now());
        }
    });
}

/// Escapes every line: log lines quote articles, whose control characters must not reach the terminal.
struct Safe<W>(W);

impl<'w, W: MakeWriter<'w>> MakeWriter<'w> for Safe<W> {
    type Writer = Escaped<W::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        Escaped::new(self.0.make_writer())
    }
}

/// Writes one summary line for each group that was limited in a period that is over.
pub(crate) fn report_suppressed(limit: &LogLimit, now: Instant) {
    for suppressed in limit.close_periods(now) {
        tracing::warn!(left_out = suppressed.lines, "repeated log lines suppressed: {}", suppressed.message);
    }
}

pub(crate) fn subscriber<W>(
    level: LevelFilter,
    terminal: bool,
    limit: LogLimit,
    writer: W,
) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    // A log that cannot be written (full disk, closed pipe) must not end a worker: by default
    // tracing-subscriber reports the error to the same standard error, which panics.
    let lines = fmt::layer().log_internal_errors(false).with_writer(Safe(writer)).with_target(false);
    let lines = match terminal {
        true => lines.boxed(),
        false => lines.json().flatten_event(true).with_ansi(false).boxed(),
    };
    registry().with(level).with(limit).with(lines)
}
