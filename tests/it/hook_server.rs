//! An HTTP server for tests of the webhook, on a real socket: it answers as it is told and keeps what it was sent.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How the server treats one request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Treatment {
    /// Answers with this status.
    Status(u16),
    /// Refuses with 422 if the body contains this, else accepts.
    RefuseIf(&'static str),
    /// Reads the request and never answers.
    Stall,
    /// Answers with bytes that are not HTTP.
    Garbage,
    /// Closes the connection in the middle of the answer's head.
    Break,
}

/// One request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// A listening server; its threads end with the process.
pub(crate) struct HookServer {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Received>>>,
    plan: Arc<Mutex<VecDeque<Treatment>>>,
}

impl HookServer {
    /// Treats requests as planned, one after the other, and every later one like the last.
    pub(crate) fn start(plan: &[Treatment]) -> HookServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let plan = Arc::new(Mutex::new(VecDeque::from(plan.to_vec())));
        let (keeps, plans) = (Arc::clone(&received), Arc::clone(&plan));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (keeps, plans) = (Arc::clone(&keeps), Arc::clone(&plans));
                thread::spawn(move || drop(serve(stream, &keeps, &plans)));
            }
        });
        HookServer { url, received, plan }
    }

    /// Replaces the plan.
    pub(crate) fn plan(&self, plan: &[Treatment]) {
        *self.plan.lock().unwrap() = VecDeque::from(plan.to_vec());
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits until what arrived satisfies a condition.
    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        let deadline = Instant::now() + Duration::from_secs(90);
        loop {
            let received = self.received();
            if holds(&received) {
                return received;
            }
            assert!(Instant::now() < deadline, "{what}: {} requests arrived: {received:?}", received.len());
            thread::sleep(Duration::from_millis(50));
        }
    }
}

fn serve(
    stream: TcpStream,
    received: &Mutex<Vec<Received>>,
    plan: &Mutex<VecDeque<Treatment>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let (mut headers, mut line) = (Vec::new(), String::new());
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().unwrap())];
        reader.read_exact(&mut body)?;
        let body = String::from_utf8(body).unwrap();
        received.lock().unwrap().push(Received { headers, body: body.clone() });
        let treatment = {
            let mut plan = plan.lock().unwrap();
            if plan.len() > 1 { plan.pop_front() } else { plan.front().copied() }
        };
        let status = match treatment.unwrap_or(Treatment::Status(200)) {
            Treatment::Status(status) => status,
            Treatment::RefuseIf(text) => {
                if body.contains(text) {
                    422
                } else {
                    200
                }
            }
            Treatment::Stall => {
                thread::sleep(Duration::from_secs(600));
                return Ok(());
            }
            Treatment::Garbage => {
                return stream.write_all(b"\x00\xffSSH-2.0-not a web server\r\n\r\n");
            }
            Treatment::Break => return stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le"),
        };
        let answer = "the answer";
        write!(
            stream,
            "HTTP/1.1 {status} Told\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: {}\r\n\r\n{answer}",
            answer.len()
        )?;
    }
}
