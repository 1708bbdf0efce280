//! HTTP. Health, readiness and metrics of the stage on one port; questions to the state (`query`) on another.
//!
//! - `/healthz`: the process is there and none of its threads has died; never depends on Kafka
//! - `/readyz`: it does its work, or why it does not
//! - `/metrics`: for Prometheus
//!
//! Nothing here can hold the stage up: it reads what workers have reported. A client that is slow, silent or many is
//! bounded ([`serve`]).

mod connections;
mod problem;
mod query;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::metrics::Scrape;
use crate::status::StatusBoard;

pub use query::{Library, serve_queries};

/// The port cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// It cannot be had.
    #[error(
        "{setting} = {listen}: cannot listen there; another process may, so give each its own, or write off"
    )]
    Listen {
        /// Which setting says so.
        setting: &'static str,
        /// Where.
        listen: SocketAddr,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// There is no thread or no runtime for it.
    #[error("cannot serve HTTP")]
    Thread(#[source] io::Error),
}

#[derive(Clone)]
struct Ops {
    board: Arc<StatusBoard>,
    scrape: Scrape,
}

/// Serves health, readiness and metrics until the process ends; says where.
///
/// # Errors
/// The port cannot be had: better to know now than on Monday.
pub fn serve_ops(
    listen: SocketAddr,
    board: Arc<StatusBoard>,
    scrape: Scrape,
) -> Result<SocketAddr, HttpError> {
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(Ops { board: Arc::clone(&board), scrape: scrape.clone() });
    // Nothing here waits for anything: a connection that is still is one that its client does not use.
    let longest = Duration::ZERO;
    connections::start("http.listen", listen, router, longest, board.guard("http"), move || scrape.upkeep())
}

async fn healthz(State(ops): State<Ops>) -> Response {
    match ops.board.failure() {
        None => json(StatusCode::OK, &serde_json::json!({ "alive": true })),
        Some(why) => {
            json(StatusCode::INTERNAL_SERVER_ERROR, &serde_json::json!({ "alive": false, "reason": why }))
        }
    }
}

async fn readyz(State(ops): State<Ops>) -> Response {
    let reasons = ops.board.reasons();
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json(status, &serde_json::json!({ "ready": reasons.is_empty(), "reasons": reasons }))
}

async fn metrics(State(ops): State<Ops>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], ops.scrape.text()).into_response()
}

fn json(status: StatusCode, value: &serde_json::Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, format!("{value}\n")).into_response()
}
