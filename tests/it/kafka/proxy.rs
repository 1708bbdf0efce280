//! A TCP proxy in front of one listener of a broker that fails on demand. Bytes are held back, delayed, or lost
//! together with their connection, but never lost in the middle of a connection that lives on: no real network does
//! that.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use super::requests::{END_TXN, Requests};

/// The direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    Requests,
    Answers,
}

/// How the proxy treats connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    Pass,
    /// Connections stay open, but bytes wait: in one direction, or in both (`None`).
    Stall(Option<Way>),
    /// Every chunk of up to 64 KB is delayed by this long, in both directions.
    Delay(Duration),
    /// All connections are closed, new ones as soon as they are accepted.
    Cut,
    /// Once a connection has carried an EndTxn request, all its responses are lost, starting with the response to that
    /// request.
    LoseAnswerToEndTxn,
}

/// A running proxy; it stops when it is dropped.
pub(crate) struct Proxy {
    port: u16,
    network: Arc<Network>,
}

struct Network {
    state: Mutex<State>,
    changed: Condvar,
    lost: AtomicU32,
    made: AtomicU32,
}

struct State {
    mode: Mode,
    broker: Option<String>,
    open: Vec<Arc<Connection>>,
    over: bool,
}

struct Connection {
    client: TcpStream,
    broker: TcpStream,
    deaf: Mutex<bool>,
}

impl Connection {
    fn close(&self) {
        for end in [&self.client, &self.broker] {
            // The peer may have closed it already.
            drop(end.shutdown(Shutdown::Both));
        }
    }
}

impl Proxy {
    /// Opens a port that the broker must advertise (`--listener NAME=PORT`). Nothing is forwarded before
    /// [`Proxy::connect`].
    pub(crate) fn new() -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = State { mode: Mode::Pass, broker: None, open: Vec::new(), over: false };
        let (lost, made) = (AtomicU32::new(0), AtomicU32::new(0));
        let network = Arc::new(Network { state: Mutex::new(state), changed: Condvar::new(), lost, made });
        let accepting = Arc::clone(&network);
        thread::spawn(move || accept(&listener, &accepting));
        Proxy { port, network }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// `host:port` for the client.
    pub(crate) fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Sets the real address of the broker's listener.
    pub(crate) fn connect(&self, listener: &str) {
        self.network.state.lock().unwrap().broker = Some(listener.to_owned());
    }

    /// Changes the mode, for open connections too. Connections that have lost a response are closed.
    pub(crate) fn set(&self, mode: Mode) {
        let mut state = self.network.state.lock().unwrap();
        state.mode = mode;
        state.open.retain(|connection| {
            let ends = mode == Mode::Cut || *connection.deaf.lock().unwrap();
            if ends {
                connection.close();
            }
            !ends
        });
        self.network.changed.notify_all();
    }

    /// Closes all open connections; new ones are accepted.
    pub(crate) fn reset(&self) {
        let mut state = self.network.state.lock().unwrap();
        state.open.drain(..).for_each(|connection| connection.close());
        self.network.changed.notify_all();
    }

    /// Number of EndTxn requests whose response was lost. A test that lost none has tested nothing.
    pub(crate) fn lost(&self) -> u32 {
        self.network.lost.load(Ordering::SeqCst)
    }

    /// Number of connections accepted so far.
    pub(crate) fn made(&self) -> u32 {
        self.network.made.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.network.state.lock().unwrap().over = true;
        self.reset();
        // Wake the accepting thread.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

fn accept(listener: &TcpListener, network: &Arc<Network>) {
    for client in listener.incoming() {
        let Ok(client) = client else { continue };
        let mut state = network.state.lock().unwrap();
        if state.over {
            return;
        }
        if state.mode == Mode::Cut {
            continue;
        }
        // If the broker is down, the connection is refused here too.
        let Some(Ok(broker)) = state.broker.as_ref().map(TcpStream::connect) else { continue };
        client.set_nodelay(true).unwrap();
        broker.set_nodelay(true).unwrap();
        let connection = Arc::new(Connection { client, broker, deaf: Mutex::new(false) });
        state.open.push(Arc::clone(&connection));
        network.made.fetch_add(1, Ordering::SeqCst);
        for way in [Way::Requests, Way::Answers] {
            let (connection, network) = (Arc::clone(&connection), Arc::clone(network));
            thread::spawn(move || {
                carry(way, &connection, &network);
                connection.close();
                network.state.lock().unwrap().open.retain(|open| !Arc::ptr_eq(open, &connection));
            });
        }
    }
}

/// Forwards bytes in one direction until either side closes.
fn carry(way: Way, connection: &Arc<Connection>, network: &Network) {
    let (mut from, mut to) = match way {
        Way::Requests => (&connection.client, &connection.broker),
        Way::Answers => (&connection.broker, &connection.client),
    };
    let mut piece = vec![0; 65_536];
    // Requests are parsed in every mode: their boundaries are known only if no byte was missed.
    let mut requests = Requests::default();
    loop {
        let length = match from.read(&mut piece) {
            Ok(0) => return,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
            Ok(length) => length,
        };
        let Some(mode) = pass(way, connection, network) else { return };
        if let Mode::Delay(time) = mode {
            thread::sleep(time);
        }
        let mut deaf = connection.deaf.lock().unwrap();
        if way == Way::Requests {
            let ends = requests.feed(&piece[..length]).iter().filter(|key| **key == END_TXN).count();
            if ends > 0 && mode == Mode::LoseAnswerToEndTxn {
                // Set before the request is forwarded, so that the response cannot slip through.
                *deaf = true;
                network.lost.fetch_add(u32::try_from(ends).unwrap(), Ordering::SeqCst);
            }
        }
        let lost = *deaf && way == Way::Answers;
        drop(deaf);
        if !lost && to.write_all(&piece[..length]).is_err() {
            return;
        }
    }
}

/// Waits while the proxy stalls; `None` if the connection was closed meanwhile.
fn pass(way: Way, connection: &Arc<Connection>, network: &Network) -> Option<Mode> {
    let mut state = network.state.lock().unwrap();
    loop {
        if !state.open.iter().any(|open| Arc::ptr_eq(open, connection)) {
            return None;
        }
        match state.mode {
            Mode::Stall(stalled) if stalled.is_none_or(|stalled| stalled == way) => {}
            mode => return Some(mode),
        }
        state = network.changed.wait(state).unwrap();
    }
}
