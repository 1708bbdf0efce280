//! Connections: how many, for how long, and what happens to those that ask for more.
//!
//! A client that does not take what it asked for is given up after [`WRITE`]. Where all places are taken, the connection
//! on which nothing has moved for longest makes room: sockets that never read cannot keep a probe out.

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

/// Connections that are served at the same time. Prometheus and a probe need two.
const CONNECTIONS: usize = 128;
/// How long a client may leave a full socket unread.
const WRITE: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 5_000 });
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

/// Serves a router from a thread of its own; says where it listens. An answer takes `longest` at most: a connection on which
/// nothing has moved for longer may be closed for another one.
pub(super) fn start(
    setting: &'static str,
    listen: SocketAddr,
    router: Router,
    longest: Duration,
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
                Ok(listener) => accept(listener, router, longest).await,
                Err(error) => tracing::error!(%error, "HTTP is not served"),
            }
        });
    };
    std::thread::Builder::new().name("http".into()).spawn(serve).map_err(HttpError::Thread)?;
    Ok(address)
}

async fn accept(listener: tokio::net::TcpListener, router: Router, longest: Duration) {
    let places = Places::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Where no place is left the connection is dropped, which closes it.
                if places.make_room(longest) {
                    places.serve(stream, router.clone());
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

/// The connections that are served.
#[derive(Clone, Default)]
struct Places(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    next: u64,
    connections: HashMap<u64, Connection>,
}

struct Connection {
    task: AbortHandle,
    moved: Arc<Mutex<Instant>>,
}

impl Places {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a place for one more, if need be that of the connection that has been still for longest.
    fn make_room(&self, longest: Duration) -> bool {
        let mut open = self.open();
        if open.connections.len() < CONNECTIONS {
            return true;
        }
        let moved =
            |connection: &Connection| *connection.moved.lock().unwrap_or_else(PoisonError::into_inner);
        let still = open.connections.iter().map(|(&id, connection)| (moved(connection), id)).min();
        let still = still.filter(|(since, _)| since.elapsed() >= longest);
        let closed = still.and_then(|(_, id)| open.connections.remove(&id));
        closed.map(|connection| connection.task.abort()).is_some()
    }

    fn serve(&self, stream: TcpStream, router: Router) {
        let mut open = self.open();
        let id = open.next;
        open.next += 1;
        let moved = Arc::new(Mutex::new(Instant::now()));
        let stream = Paced { stream, moved: Arc::clone(&moved), stalled: None };
        let place = Place { id, places: self.clone() };
        let task = tokio::spawn(converse(stream, router, place)).abort_handle();
        open.connections.insert(id, Connection { task, moved });
    }
}

/// A place in [`Places`], given back when the connection ends, however it ends.
struct Place {
    id: u64,
    places: Places,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.open().connections.remove(&self.id);
    }
}

async fn converse(stream: Paced, router: Router, _place: Place) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // Whatever a client does wrong is its own affair.
    let _ended = tokio::time::timeout(LIFE, connection).await;
}

/// A stream that notes when bytes last moved, and fails a write that waits for longer than [`WRITE`].
struct Paced {
    stream: TcpStream,
    moved: Arc<Mutex<Instant>>,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Paced {
    fn moved(&self) {
        *self.moved.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn written(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            self.moved();
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITE)));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.moved();
        }
        read
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.written(context, written)
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

    /// More than a socket buffers.
    const LARGE: usize = 16 << 20;

    /// A large answer at `/large` and a word at `/healthz`.
    fn served(longest: Duration) -> SocketAddr {
        let large = Bytes::from(vec![b'x'; LARGE]);
        let router = Router::new()
            .route("/large", get(async move || large.clone()))
            .route("/healthz", get(async || "alive"));
        let guard = Arc::new(StatusBoard::new(Arc::default())).guard("http");
        start("http.listen", "127.0.0.1:0".parse().unwrap(), router, longest, guard, || {}).unwrap()
    }

    fn ask(address: SocketAddr, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        stream
    }

    fn answer(mut stream: TcpStream) -> Vec<u8> {
        let mut answer = Vec::new();
        // A connection that is closed in the middle of an answer may end with an error.
        let _ended = stream.read_to_end(&mut answer);
        answer
    }

    // 128 sockets that never read held every place until their five minutes were over: probes were closed at once, and a
    // kubelet would have killed the pod.
    #[test]
    fn sockets_that_never_read_do_not_keep_a_probe_out() {
        let address = served(Duration::ZERO);
        let _silent: Vec<TcpStream> = (0..CONNECTIONS + 10).map(|_| ask(address, "/large")).collect();
        for _ in 0..10 {
            let asked = Instant::now();
            let answer = answer(ask(address, "/healthz"));
            assert!(answer.ends_with(b"alive"), "{}", String::from_utf8_lossy(&answer));
            assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        }
    }

    #[test]
    fn a_client_that_does_not_take_its_answer_is_given_up() {
        let address = served(Duration::from_secs(60));
        let silent: Vec<TcpStream> = (0..CONNECTIONS).map(|_| ask(address, "/large")).collect();
        // Each client has its time for a write, also on a slow machine. Then all places are free again, although nobody may
        // be closed for another.
        std::thread::sleep(WRITE * 10);
        let patience = Instant::now() + Duration::from_secs(60);
        while !answer(ask(address, "/healthz")).ends_with(b"alive") {
            assert!(Instant::now() < patience, "a silent client keeps its place");
            std::thread::sleep(WRITE);
        }
        let taken = silent.into_iter().map(|stream| answer(stream).len());
        assert!(taken.min() < Some(LARGE), "nobody was given up");
    }

    #[test]
    fn whoever_is_being_answered_is_not_closed_for_another() {
        let places = Places::default();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for id in 0..CONNECTIONS as u64 {
            let task = runtime.spawn(std::future::pending::<()>()).abort_handle();
            let moved = Arc::new(Mutex::new(Instant::now()));
            places.open().connections.insert(id, Connection { task, moved });
        }
        assert!(!places.make_room(Duration::from_secs(60)));
        assert!(places.make_room(Duration::ZERO));
        assert_eq!(places.open().connections.len(), CONNECTIONS - 1);
    }
}
