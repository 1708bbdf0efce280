//! Runs an HTTP server with bounded connections: their number, lifetime, header time and write time are
//! limited.
//!
//! A connection whose client does not read its response is closed after [`WRITE_TIMEOUT`]. When all slots are
//! in use, the connection that has been idle longest is closed, so sockets that never read cannot lock out a
//! probe.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::Sleep;

use crate::status::Guard;

use super::HttpError;

/// Concurrent connections. Prometheus and a probe need two.
const CONNECTIONS: usize = 128;
/// How long a write may be blocked because the client does not read.
const WRITE_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 5_000 });
/// How long request headers may take to arrive, including the idle time before the next request on a
/// keep-alive connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest lifetime of a connection; scrapers simply reconnect.
const MAX_LIFETIME: Duration = Duration::from_secs(300);
/// The largest request head.
const HEADER_BYTES: usize = 16 << 10;
/// Blocking threads that read state for queries. Few, because the stage needs the CPU more.
const READERS: usize = 4;
/// How often `upkeep` is called.
const INTERVAL: Duration = Duration::from_secs(5);

/// Serves a router from its own thread, and returns the address it listens on. A response takes at most
/// `longest`: a connection that has been idle for longer may be closed in favour of a new one.
pub(super) fn start(
    setting: &'static str,
    listen: SocketAddr,
    router: Router,
    longest: Duration,
    guard: Guard,
    upkeep: impl Fn() + Send + 'static,
) -> Result<SocketAddr, HttpError> {
    let cannot_listen = |error| HttpError::Listen { setting, listen, error };
    let listener = TcpListener::bind(listen).map_err(cannot_listen)?;
    listener.set_nonblocking(true).map_err(cannot_listen)?;
    let address = listener.local_addr().map_err(cannot_listen)?;
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
                    upkeep();
                }
            });
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => accept(listener, router, longest).await,
                Err(error) => tracing::error!(%error, "cannot serve HTTP"),
            }
        });
    };
    std::thread::Builder::new().name("http".into()).spawn(serve).map_err(HttpError::Thread)?;
    Ok(address)
}

async fn accept(listener: tokio::net::TcpListener, router: Router, longest: Duration) {
    let connections = Connections::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Without a free slot the stream is dropped, which closes the connection.
                if connections.make_room(longest) {
                    connections.serve(stream, router.clone());
                }
            }
            // Usually too many open files: wait for some to be closed.
            Err(error) => {
                tracing::debug!(%error, "cannot accept an HTTP connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// The open connections.
#[derive(Clone, Default)]
struct Connections(Arc<Mutex<OpenConnections>>);

#[derive(Default)]
struct OpenConnections {
    next: u64,
    connections: HashMap<u64, Connection>,
}

struct Connection {
    task: AbortHandle,
    last_active: Arc<Mutex<Instant>>,
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if there is a slot for one more connection; closes the one idle longest if necessary.
    fn make_room(&self, longest: Duration) -> bool {
        let mut open = self.open();
        if open.connections.len() < CONNECTIONS {
            return true;
        }
        let last_active =
            |connection: &Connection| *connection.last_active.lock().unwrap_or_else(PoisonError::into_inner);
        let idlest = open.connections.iter().map(|(&id, connection)| (last_active(connection), id)).min();
        let expendable = idlest.filter(|(since, _)| since.elapsed() >= longest);
        let closed = expendable.and_then(|(_, id)| open.connections.remove(&id));
        closed.map(|connection| connection.task.abort()).is_some()
    }

    fn serve(&self, stream: TcpStream, router: Router) {
        let mut open = self.open();
        let id = open.next;
        open.next += 1;
        let last_active = Arc::new(Mutex::new(Instant::now()));
        let stream = TimedStream { stream, last_active: Arc::clone(&last_active), write_timeout: None };
        let slot = Slot { id, connections: self.clone() };
        let task = tokio::spawn(serve_connection(stream, router, slot)).abort_handle();
        open.connections.insert(id, Connection { task, last_active });
    }
}

/// A connection's slot, released on drop, however the connection ends.
struct Slot {
    id: u64,
    connections: Connections,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connections.open().connections.remove(&self.id);
    }
}

async fn serve_connection(stream: TimedStream, router: Router, _slot: Slot) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // Protocol errors and timeouts of a client are not worth a log line.
    let _ended = tokio::time::timeout(MAX_LIFETIME, connection).await;
}

/// A stream that records when bytes last moved, and fails a write that blocks for longer than
/// [`WRITE_TIMEOUT`].
struct TimedStream {
    stream: TcpStream,
    last_active: Arc<Mutex<Instant>>,
    write_timeout: Option<Pin<Box<Sleep>>>,
}

impl TimedStream {
    fn record_activity(&self) {
        *self.last_active.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn check_write(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.write_timeout = None;
            self.record_activity();
            return written;
        }
        let timeout = self.write_timeout.get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITE_TIMEOUT)));
        timeout.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.record_activity();
        }
        read
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_write(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.check_write(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use axum::body::Bytes;
    use axum::routing::get;

    use super::*;
    use crate::status::StatusBoard;

    /// More than the socket buffers hold.
    const LARGE: usize = 16 << 20;

    /// Serves a large response at `/large` and a short one at `/healthz`.
    fn start_server(longest: Duration) -> SocketAddr {
        let large = Bytes::from(vec![b'x'; LARGE]);
        let router = Router::new()
            .route("/large", get(async move || large.clone()))
            .route("/healthz", get(async || "alive"));
        let guard = Arc::new(StatusBoard::new(Default::default())).guard("http");
        start("http.listen", "127.0.0.1:0".parse().unwrap(), router, longest, guard, || {}).unwrap()
    }

    fn send_request(address: SocketAddr, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        stream
    }

    fn response(mut stream: TcpStream) -> Vec<u8> {
        let mut response = Vec::new();
        // A connection that is closed in the middle of a response may end with an error.
        let _ended = stream.read_to_end(&mut response);
        response
    }

    // 128 sockets that never read held every slot until their five minutes were over: probes were closed at
    // once, and a kubelet would have killed the pod.
    #[test]
    fn sockets_that_never_read_do_not_lock_out_a_probe() {
        let address = start_server(Duration::ZERO);
        let _idle: Vec<TcpStream> = (0..CONNECTIONS + 10).map(|_| send_request(address, "/large")).collect();
        for _ in 0..10 {
            let sent = Instant::now();
            let response = response(send_request(address, "/healthz"));
            assert!(response.ends_with(b"alive"), "{}", String::from_utf8_lossy(&response));
            assert!(sent.elapsed() < Duration::from_secs(5), "{:?}", sent.elapsed());
        }
    }

    #[test]
    fn a_client_that_does_not_read_its_response_is_disconnected() {
        let address = start_server(Duration::from_secs(60));
        let idle: Vec<TcpStream> = (0..CONNECTIONS).map(|_| send_request(address, "/large")).collect();
        // Every write times out by then, even on a slow machine. All slots are free again, although `longest`
        // lets no connection be closed in favour of another.
        std::thread::sleep(WRITE_TIMEOUT * 10);
        let deadline = Instant::now() + Duration::from_secs(60);
        while !response(send_request(address, "/healthz")).ends_with(b"alive") {
            assert!(Instant::now() < deadline, "an idle client keeps its slot");
            std::thread::sleep(WRITE_TIMEOUT);
        }
        let received = idle.into_iter().map(|stream| response(stream).len());
        assert!(received.min() < Some(LARGE), "no client was disconnected");
    }

    #[test]
    fn a_connection_in_use_is_not_closed_for_another() {
        let connections = Connections::default();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for id in 0..CONNECTIONS as u64 {
            let task = runtime.spawn(std::future::pending::<()>()).abort_handle();
            let last_active = Arc::new(Mutex::new(Instant::now()));
            connections.open().connections.insert(id, Connection { task, last_active });
        }
        assert!(!connections.make_room(Duration::from_secs(60)));
        assert!(connections.make_room(Duration::ZERO));
        assert_eq!(connections.open().connections.len(), CONNECTIONS - 1);
    }
}
