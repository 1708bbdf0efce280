//! `samestory serve`: the query API over states that nobody works on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use samestory::config::Config;
use samestory::serve as http;
use samestory::serve::Library;
use samestory::status::StatusBoard;
use samestory_engine::index::{Budget, RocksReader, StoreRegistry};

use super::Failure;
use samestory::terminal::logs;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory file articles.ndjson --state state --output tagged.ndjson
  samestory serve --state state
  curl -s 127.0.0.1:9465/api/v1/articles/a1/similar

Every path is in /api/v1/openapi.json. A state that another process works on is refused: stop that one first.")]
pub(super) struct Args {
    /// A state directory, or one that holds several (those of a stage's partitions); may be repeated
    #[arg(long = "state", value_name = "DIR", required = true)]
    states: Vec<PathBuf>,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    logs::start();
    let Some(listen) = config.http.query else { return Err(Failure::NothingToServe) };
    let budget = Budget::default();
    let mut stores = Vec::new();
    for directory in args.states.iter().flat_map(|directory| states(directory)) {
        stores.push(RocksReader::existing(&directory, &budget)?);
        tracing::info!(state = %directory.display(), "opened");
    }
    let mut config = config.clone();
    // What is opened here is all there is.
    config.http.peers.clear();
    let library = Library::new(config, Arc::new(StoreRegistry::from_stores(stores)));
    let board = Arc::new(StatusBoard::new(Arc::default()));
    let address = http::serve_queries(listen, library, board.guard("query"))?;
    tracing::info!(%address, "serving the query API");
    loop {
        std::thread::sleep(Duration::from_millis(200));
        if let Some(why) = board.failure() {
            return Err(Failure::Died(why));
        }
    }
}

/// In the names of states that were set aside.
const ASIDE: [&str; 3] = [".damaged.", ".outside-the-log.", ".too-old."];

/// The directory itself, or the states in it: each has a file that RocksDB calls CURRENT.
fn states(directory: &Path) -> Vec<PathBuf> {
    let is_state = |path: &PathBuf| path.join("CURRENT").is_file();
    let mut inside: Vec<PathBuf> = std::fs::read_dir(directory)
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_state).collect())
        .unwrap_or_default();
    inside.sort();
    // What was set aside is not looked at.
    inside.retain(|path| !ASIDE.iter().any(|cause| path.to_string_lossy().contains(cause)));
    if is_state(&directory.to_path_buf()) || inside.is_empty() {
        vec![directory.to_path_buf()]
    } else {
        inside
    }
}
