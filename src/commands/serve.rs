//! `samestory serve`: the query API over state directories that no other process has open. It only reads, and it asks no peers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use samestory::config::Config;
use samestory::serve::{self, Library};
use samestory::status::StatusBoard;
use samestory::stop::Stop;
use samestory_engine::index::{Budget, RocksReader, StoreRegistry};

use super::Failure;
use samestory::terminal::logs;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory file articles.ndjson --state state --output tagged.ndjson
  samestory serve --state state
  curl -s 127.0.0.1:9465/api/v1/articles/a1/similar

/api/v1/openapi.json lists every path. A state that another process has open is refused: stop that process first.")]
pub(super) struct Args {
    /// A state directory, or a directory of them, such as stage.state; repeatable
    #[arg(long = "state", value_name = "DIR", required = true)]
    states: Vec<PathBuf>,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    logs::start();
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let Some(listen) = config.http.query else { return Err(Failure::NothingToServe) };
    let budget = Budget::new(config.store_memory);
    let mut stores = Vec::new();
    for directory in args.states.iter().flat_map(|directory| states(directory)) {
        stores.push(RocksReader::existing(&directory, &budget)?);
        tracing::info!(state = %directory.display(), "opened");
    }
    let mut config = config.clone();
    // The states given here are everything this command serves.
    config.http.peers.clear();
    let library = Library::new(config, Arc::new(StoreRegistry::from_stores(stores)));
    let stop = Stop::default();
    let board = Arc::new(StatusBoard::new(stop.clone()));
    let address = serve::serve_queries(listen, library, board.guard("query"))?;
    tracing::info!(%address, "serving the query API");
    // Only a failure stops the command; signals end it at once.
    while !stop.wait(Duration::from_secs(3600)) {}
    Err(Failure::Died(board.failure().unwrap_or_default()))
}

/// Parts of the names of quarantined states.
const QUARANTINED: [&str; 3] = [".damaged.", ".outside-the-log.", ".too-old."];

/// The directory itself, or the states in it. A state has a file CURRENT, which RocksDB writes.
fn states(directory: &Path) -> Vec<PathBuf> {
    let is_state = |path: &PathBuf| path.join("CURRENT").is_file();
    let mut inside: Vec<PathBuf> = std::fs::read_dir(directory)
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_state).collect())
        .unwrap_or_default();
    inside.sort();
    inside.retain(|path| !QUARANTINED.iter().any(|part| path.to_string_lossy().contains(part)));
    if is_state(&directory.to_path_buf()) || inside.is_empty() {
        vec![directory.to_path_buf()]
    } else {
        inside
    }
}
