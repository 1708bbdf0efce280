//! `samestory run`: starts logging, the HTTP endpoints and the stage, and stops it on SIGTERM or SIGINT. A shutdown that takes
//! longer than `stage.shutdown` ends the process; committed work is never lost by that.

use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use samestory::accuracy::Judged;
use samestory::config::Config;
use samestory::kafka::{self, Accept, PartitionOffset, Role};
use samestory::metrics::{self, Scrape};
use samestory::serve::{self, Library};
use samestory::status::StatusBoard;
use samestory::stop::Stop;
use samestory_engine::index::StoreRegistry;
use samestory_engine::model::Lang;

use super::Failure;
use samestory::terminal::logs;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory run --config samestory.toml              route and match in one process
  samestory run --role route                         only the stateless role
  samestory run --role match --workers 4             only the role with state
  SAMESTORY_INSTANCE=pod-1 samestory run             a second process needs its own name

The topics must exist: `samestory topics --create` creates them. SIGTERM and Ctrl-C finish the open transactions and exit; a
second signal exits at once. Health, readiness and metrics are served at http.listen (127.0.0.1:9464): /healthz, /readyz,
/metrics. The query API is served at http.query (127.0.0.1:9465): /api/v1/openapi.json; http.peers lists the other processes.")]
pub(super) struct Args {
    /// Run only one role of mode "routed"
    #[arg(long, value_enum)]
    role: Option<RoleName>,
    /// Threads per role [default: stage.workers]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
    /// Resume this partition at this offset although the changelog disagrees; the log names both. Repeatable; applies once
    #[arg(long, value_name = "PARTITION:OFFSET")]
    accept_offsets: Vec<PartitionOffset>,
    /// Resume after records that are gone from the topic, the first of which has this offset. Repeatable; applies once
    #[arg(long, value_name = "PARTITION:OFFSET")]
    accept_gap: Vec<PartitionOffset>,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleName {
    /// Sends each raw article to the home of its language
    Route,
    /// Judges articles and keeps the state
    Match,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    logs::start();
    let mut config = config.clone();
    config.bus.workers = args.workers.unwrap_or(config.bus.workers);
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let stop = Stop::default();
    stop.on_signals()?;
    watch_shutdown(stop.clone(), config.bus.shutdown);
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
    let board = Arc::new(StatusBoard::new(stop.clone()));
    let registry = Arc::new(StoreRegistry::default());
    let keeps_state = !matches!(role, Some(Role::Route));
    // A route process judges nothing.
    let judged = if keeps_state { Judged::open(&config)? } else { None };
    if let Some(listen) = config.http.listen {
        let state = keeps_state.then(|| config.bus.state.clone());
        let scrape = Scrape::new(metrics::start()?, Arc::clone(&board), state);
        let address = serve::serve_ops(listen, Arc::clone(&board), scrape)?;
        tracing::info!(%address, "serving /healthz, /readyz and /metrics");
    }
    if let Some(judged) = judged {
        judged.watch(stop.clone(), Arc::clone(&board))?;
    }
    if let Some(listen) = config.http.query.filter(|_| keeps_state) {
        let library = Library::new(config.clone(), Arc::clone(&registry));
        let address = serve::serve_queries(listen, library, board.guard("query"))?;
        tracing::info!(%address, "serving the query API");
    }
    Ok(kafka::run(&config, role, accept, &stop, &board, &registry)?)
}

/// Ends the process if the shutdown takes too long: a client that hangs while it leaves its group must not block it, and
/// everything that is committed is safe.
fn watch_shutdown(stop: Stop, deadline: Duration) {
    std::thread::spawn(move || {
        while !stop.wait(Duration::from_secs(3600)) {}
        std::thread::sleep(deadline);
        tracing::error!("shutdown took longer than stage.shutdown; exiting now, nothing is lost");
        std::process::exit(1);
    });
}
