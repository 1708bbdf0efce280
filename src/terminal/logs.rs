//! Logs on standard error: lines for people on a terminal, JSON for machines otherwise; and not the same line for ever.

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
    let flood = LogLimit::default();
    let people = std::io::stderr().is_terminal();
    let subscriber = subscriber(level.unwrap_or(LevelFilter::INFO), people, flood.clone(), std::io::stderr);
    // Whoever started logging before us has a reason to.
    if subscriber.try_init().is_err() {
        return;
    }
    // A panic is a line of the log like any other: in JSON, and bounded when every record causes one.
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
    // A flood that has ended says nothing more by itself. Without this thread it is left out all the same, only uncounted.
    let _spawned = std::thread::Builder::new().name("logs".into()).spawn(move || {
        loop {
            std::thread::sleep(PERIOD / 12);
            say_what_was_left_out(&flood, Instant::now());
        }
    });
}

/// Lines say what articles say, which must not be obeyed by the terminal that shows them.
struct Safe<W>(W);

impl<'w, W: MakeWriter<'w>> MakeWriter<'w> for Safe<W> {
    type Writer = Escaped<W::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        Escaped::new(self.0.make_writer())
    }
}

/// Once for each reason whose period is over.
pub(crate) fn say_what_was_left_out(flood: &LogLimit, now: Instant) {
    for left_out in flood.over(now) {
        tracing::warn!(
            left_out = left_out.lines,
            "said too often, so lines like this were left out: {}",
            left_out.said
        );
    }
}

pub(crate) fn subscriber<W>(
    level: LevelFilter,
    people: bool,
    flood: LogLimit,
    writer: W,
) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    // A log that cannot be written (its disk is full, its reader is gone) must not end a worker: the library would say so
    // on the same standard error, and panic.
    let lines = fmt::layer().log_internal_errors(false).with_writer(Safe(writer)).with_target(false);
    let lines = match people {
        true => lines.boxed(),
        false => lines.json().flatten_event(true).with_ansi(false).boxed(),
    };
    registry().with(level).with(flood).with(lines)
}
