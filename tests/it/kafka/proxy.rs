//! A network that fails as told: a TCP proxy in front of one listener of a broker. Bytes are held, delayed or lost with
//! their connection, but never lost from the middle of one that goes on: no real network does that.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use super::requests::{END_TXN, Requests};

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    Requests,
    Answers,
}

/// What the network does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    Pass,
    /// Connections are made and stay, but bytes wait: on one way, or on both (`None`).
    Stall(Option<Way>),
    /// Every piece of up to 64 KB waits this long, on both ways.
    Delay(Duration),
    /// Connections are closed as soon as they are made, and those that are open at once.
    BoundedStr,
    /// Once a connection has carried a request to end a transaction, its answers are lost, that one's first.
    LoseAnswerToEndTxn,
}

/// A proxy, until it is dropped.
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
            // The other side may have been faster.
            drop(end.shutdown(Shutdown::Both));
        }
    }
}

impl Proxy {
    /// Opens a port; the broker's listener is to be advertised there (`--listener NAME=PORT`). Nobody gets through
    /// before [`Proxy::connect`].
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

    /// Says where the listener really is.
    pub(crate) fn connect(&self, listener: &str) {
        self.network.state.lock().unwrap().broker = Some(listener.to_owned());
    }

    /// Changes what the network does, to open connections too. Those that have lost an answer end with that mode.
    pub(crate) fn set(&self, mode: Mode) {
        let mut state = self.network.state.lock().unwrap();
        state.mode = mode;
        state.open.retain(|connection| {
            let ends = mode == Mode::BoundedStr || *connection.deaf.lock().unwrap();
            if ends {
                connection.close();
            }
            !ends
        });
        self.network.changed.notify_all();
    }

    /// Ends all connections there are; new ones are welcome.
    pub(crate) fn reset(&self) {
        let mut state = self.network.state.lock().unwrap();
        state.open.drain(..).for_each(|connection| connection.close());
        self.network.changed.notify_all();
    }

    /// How many requests to end a transaction went through without their answer: a test that lost none tested nothing.
    pub(crate) fn lost(&self) -> u32 {
        self.network.lost.load(Ordering::SeqCst)
    }

    /// How many connections were made so far.
    pub(crate) fn made(&self) -> u32 {
        self.network.made.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.network.state.lock().unwrap().over = true;
        self.reset();
        // Wakes the thread that accepts.
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
        if state.mode == Mode::BoundedStr {
            continue;
        }
        // A broker that is down closes the door: so does this.
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

/// Carries bytes one way until either side closes.
fn carry(way: Way, connection: &Arc<Connection>, network: &Network) {
    let (mut from, mut to) = match way {
        Way::Requests => (&connection.client, &connection.broker),
        Way::Answers => (&connection.broker, &connection.client),
    };
    let mut piece = vec![0; 65_536];
    // Followed in every mode: a request can only be told from the bytes of one if none was missed.
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
                // Before the request goes out, so that the answer cannot slip through.
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

/// Waits while the network stalls; `None` when the connection was ended meanwhile.
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
