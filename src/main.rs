//! The `samestory` binary: runs the command, prints an error with its causes on one line, and sets the exit code.

mod commands;

use std::error::Error;
use std::process::ExitCode;

/// Serves C++ too, because RocksDB makes most of the allocations.
#[cfg(feature = "rocksdb")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    samestory::terminal::report_panics();
    match commands::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) if failure.is_an_answer() => ExitCode::from(failure.exit_code()),
        Err(failure) => {
            eprintln!("samestory: {}", samestory::terminal::escaped(&chain(&failure)));
            ExitCode::from(failure.exit_code())
        }
    }
}

/// The error and its causes on one line, outermost first.
fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
