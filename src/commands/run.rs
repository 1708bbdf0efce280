//! `samestory run`: the stage on the bus.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use samestory::config::Config;
use samestory::kafka as stream;
use samestory::kafka::{Accept, PartitionOffset, Role};
use samestory::metrics::{self, Scrape};
use samestory::serve as http;
use samestory::serve::Library;
use samestory::status::StatusBoard;
use samestory_engine::index::StoreRegistry;
use samestory_engine::model::Lang;

use super::Failure;
use samestory::terminal::logs;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory run --config samestory.toml              route and match in one process
  samestory run --role route                         the stateless stage alone
  samestory run --role match --workers 4             the stage with state alone
  SAMESTORY_INSTANCE=pod-1 samestory run             a second process needs its own name

The topics must exist: `samestory topics --create` makes them. A stop (SIGTERM, Ctrl-C) finishes what is open.
Health, readiness and metrics are served at http.listen (127.0.0.1:9464): /healthz, /readyz, /metrics. Questions about
articles are answered at http.query (127.0.0.1:9465): /api/v1/openapi.json; http.peers names the other processes.")]
pub(super) struct Args {
    /// Run one stage of mode "routed" alone
    #[arg(long, value_enum)]
    role: Option<RoleName>,
    /// Threads of each role, instead of stage.workers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
    /// Resume this partition at this offset although the changelog disagrees; the log names both. Repeatable, applies once
    #[arg(long, value_name = "PARTITION:OFFSET")]
    accept_offsets: Vec<PartitionOffset>,
    /// Resume behind records that are gone from the topic, of which this is the first. Repeatable, applies once
    #[arg(long, value_name = "PARTITION:OFFSET")]
    accept_gap: Vec<PartitionOffset>,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleName {
    /// Raw article → the partition where its language lives
    Route,
    /// Look-up → verdict → state
    Match,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    logs::start();
    let mut config = config.clone();
    config.bus.workers = args.workers.unwrap_or(config.bus.workers);
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        // The second one does not wait for anything.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    watch_shutdown(Arc::clone(&stop), config.bus.shutdown);
    let (bands, rows) = (config.banding.bands(), config.banding.rows());
    let threshold = config.rules(Lang::UND).threshold;
    let bands_find = (config.banding.collision(threshold) * 1000.0).round() / 1000.0;
    let (mode, workers) = (format!("{:?}", config.bus.mode).to_lowercase(), config.bus.workers);
    tracing::info!(
        mode,
        workers,
        app = config.bus.app,
        instance = config.bus.instance,
        bands,
        rows,
        threshold,
        bands_find,
        "starting"
    );
    let role = args.role.map(|role| match role {
        RoleName::Route => Role::Route,
        RoleName::Match => Role::Match,
    });
    let accept = Accept {
        offsets: args.accept_offsets.iter().copied().collect(),
        gaps: args.accept_gap.iter().copied().collect(),
    };
    let board = Arc::new(StatusBoard::new(Arc::clone(&stop)));
    let shelf = Arc::new(StoreRegistry::default());
    let keeps_state = !matches!(role, Some(Role::Route));
    if let Some(listen) = config.http.listen {
        let state = keeps_state.then(|| config.bus.state.clone());
        let scrape = Scrape::new(metrics::start()?, Arc::clone(&board), state);
        let address = http::serve_ops(listen, Arc::clone(&board), scrape)?;
        tracing::info!(%address, "serving /healthz, /readyz and /metrics");
    }
    if let Some(listen) = config.http.query.filter(|_| keeps_state) {
        let library = Library::new(config.clone(), Arc::clone(&shelf));
        let address = http::serve_queries(listen, library, board.guard("query"))?;
        tracing::info!(%address, "serving the query API");
    }
    Ok(stream::run(&config, role, accept, &stop, &board, &shelf)?)
}

/// A client that hangs while it leaves must not keep the process: what is committed is right already.
fn watch_shutdown(stop: Arc<AtomicBool>, deadline: Duration) {
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(deadline);
        tracing::error!("the stop took longer than stage.shutdown; ending all the same, nothing is lost");
        std::process::exit(1);
    });
}
