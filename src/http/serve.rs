//! Connections: how many, for how long, and what happens to those that ask for more.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::health::Guard;

use super::HttpError;

/// Connections that are served at the same time; more are closed at once. Prometheus and a probe need two.
const CONNECTIONS: usize = 128;
/// How long the head of a request may take, the wait for the next one on a kept connection included.
const HEAD: Duration = Duration::from_secs(10);
/// How long a connection lives at most: scrapers open another one.
const LIFE: Duration = Duration::from_secs(300);
/// How much of a head is read.
const BUFFER: usize = 16 << 10;
/// Threads that read state for those who ask; the stage needs the processors more.
const READERS: usize = 4;
/// How often `now_and_then` is called.
const INTERVAL: Duration = Duration::from_secs(5);

/// Serves a router from a thread of its own; says where it listens.
pub(super) fn start(
    setting: &'static str,
    listen: SocketAddr,
    router: Router,
    guard: Guard,
    now_and_then: impl Fn() + Send + 'static,
) -> Result<SocketAddr, HttpError> {
    let refused = |error| HttpError::Listen { setting, listen, error };
    let listener = TcpListener::bind(listen).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(READERS)
        .enable_all()
        .build()
        .map_err(HttpError::Thread)?;
    let serve = move || {
        let _guard = guard;
        runtime.block_on(async move {
            tokio::spawn(async move {
                let mut interval = tokio::time::interval(INTERVAL);
                loop {
                    interval.tick().await;
                    now_and_then();
                }
            });
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => accept(listener, router).await,
                Err(error) => tracing::error!(%error, "HTTP is not served"),
            }
        });
    };
    std::thread::Builder::new().name("http".into()).spawn(serve).map_err(HttpError::Thread)?;
    Ok(address)
}

async fn accept(listener: tokio::net::TcpListener, router: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Where no place is left the connection is dropped, which closes it.
                if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
                    tokio::spawn(converse(stream, router.clone(), place));
                }
            }
            // Too many open files, as a rule: others need a moment to give some back.
            Err(error) => {
                tracing::debug!(%error, "HTTP: a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn converse(stream: TcpStream, router: Router, place: OwnedSemaphorePermit) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // Whatever a client does wrong is its own affair.
    let _ended = tokio::time::timeout(LIFE, connection).await;
    drop(place);
}
