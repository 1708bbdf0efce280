//! Logs on standard error: lines for people on a terminal, JSON for machines otherwise.

use std::io::IsTerminal;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

/// Starts logging. `SAMESTORY_LOG` is a level: error, warn, info (default), debug, trace.
pub(super) fn start() {
    let level = std::env::var("SAMESTORY_LOG").ok().and_then(|level| level.parse().ok());
    let level: LevelFilter = level.unwrap_or(LevelFilter::INFO);
    // A log that cannot be written (its disk is full, its reader is gone) must not end a worker: the library would say so
    // on the same standard error, and panic.
    let builder = fmt().log_internal_errors(false);
    let builder = builder.with_max_level(level).with_writer(std::io::stderr).with_target(false);
    // Whoever started logging before us has a reason to.
    let _started = match std::io::stderr().is_terminal() {
        true => builder.try_init(),
        false => builder.json().flatten_event(true).with_ansi(false).try_init(),
    };
}
