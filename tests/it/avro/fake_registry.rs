//! A scripted schema registry, for trouble that a real one does not make on demand.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A scripted answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
    /// Delay before the answer.
    pub(crate) delay: Duration,
    /// Delay between two bytes of the body.
    pub(crate) drip: Duration,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Reply {
        let (headers, delay, drip) = (String::new(), Duration::ZERO, Duration::ZERO);
        Reply { status, headers, body: body.into(), delay, drip }
    }

    /// A schema, in the registry's format.
    pub(crate) fn schema(schema: &str) -> Reply {
        Reply::new(200, serde_json::json!({ "schema": schema }).to_string())
    }

    /// The registry's own answer for an unknown schema.
    pub(crate) fn no_schema() -> Reply {
        Reply::new(404, r#"{"error_code":40403,"message":"Schema not found"}"#)
    }
}

type Manner = Box<dyn Fn(&str) -> Reply + Send>;

/// A scripted schema registry.
pub(crate) struct FakeRegistry {
    pub(crate) url: String,
    manner: Arc<Mutex<Manner>>,
    asked: Arc<Mutex<Vec<String>>>,
    ended: Arc<AtomicBool>,
}

impl FakeRegistry {
    pub(crate) fn new(manner: impl Fn(&str) -> Reply + Send + 'static) -> FakeRegistry {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let manner: Arc<Mutex<Manner>> = Arc::new(Mutex::new(Box::new(manner)));
        let (asked, ended) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let fake_registry = FakeRegistry {
            url,
            manner: Arc::clone(&manner),
            asked: Arc::clone(&asked),
            ended: Arc::clone(&ended),
        };
        thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                let (manner, asked) = (Arc::clone(&manner), Arc::clone(&asked));
                thread::spawn(move || stream.map(|stream| serve(stream, &manner, &asked)));
            }
        });
        fake_registry
    }

    /// Changes the script from now on.
    pub(crate) fn behave(&self, manner: impl Fn(&str) -> Reply + Send + 'static) {
        *self.manner.lock().unwrap() = Box::new(manner);
    }

    /// The requests so far: the request line, then the headers, in lower case.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for FakeRegistry {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.url.trim_start_matches("http://")));
    }
}

fn serve(mut stream: TcpStream, manner: &Mutex<Manner>, asked: &Mutex<Vec<String>>) {
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => request.push(byte[0]),
            _ => return,
        }
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let length =
        request.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    if stream.read_exact(&mut body).is_err() {
        return;
    }
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    asked.lock().unwrap().push(request);
    let reply = manner.lock().unwrap()(&path);
    thread::sleep(reply.delay);
    let head = format!(
        "HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n",
        reply.status,
        reply.body.len(),
        reply.headers
    );
    if stream.write_all(head.as_bytes()).is_err() {
        return;
    }
    if reply.drip.is_zero() {
        drop(stream.write_all(reply.body.as_bytes()));
        return;
    }
    for byte in reply.body.bytes() {
        thread::sleep(reply.drip);
        if stream.write_all(&[byte]).is_err() {
            return;
        }
    }
}
