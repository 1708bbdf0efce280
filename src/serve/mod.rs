//! HTTP servers: health, readiness and metrics on one port, the query API (`query`) on another.
//!
//! - `/healthz`: the process runs and none of its threads has died; never depends on Kafka
//! - `/readyz`: the stage is working, or the reasons why it is not
//! - `/metrics`: for Prometheus
//!
//! Handlers read only what workers have reported to the status board, so they cannot block the stage. Slow,
//! idle and numerous clients are bounded (`connections`).

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

/// Why an HTTP port cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address cannot be bound.
    #[error(
        "{setting} = {listen}: cannot listen on this address; if another process uses it, choose another port, or set off"
    )]
    Listen {
        /// The setting that holds the address.
        setting: &'static str,
        /// The address.
        listen: SocketAddr,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The server thread or its runtime cannot be started.
    #[error("cannot serve HTTP")]
    Thread(#[source] io::Error),
}

#[derive(Clone)]
struct Ops {
    board: Arc<StatusBoard>,
    scrape: Scrape,
}

/// Serves health, readiness and metrics until the process ends, and returns the address.
///
/// # Errors
/// The port cannot be served.
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
    // These handlers never wait, so an idle connection is one that its client does not use.
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
    let mut answer = serde_json::json!({ "ready": reasons.is_empty(), "reasons": reasons });
    // Neither makes the stage unready: a rolling update would wait for a pod that an operator has paused.
    if let Some(pause) = ops.board.pause() {
        answer["paused"] = serde_json::json!(pause);
    }
    if let Some(following) = ops.board.following() {
        answer["follows"] = serde_json::json!(following);
    }
    json(status, &answer)
}

async fn metrics(State(ops): State<Ops>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], ops.scrape.text()).into_response()
}

fn json(status: StatusCode, value: &impl serde::Serialize) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    match serde_json::to_string(value) {
        Ok(text) => (status, headers, text + "\n").into_response(),
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written as JSON");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
