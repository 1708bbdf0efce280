//! An HTTP client for tests that sends raw bytes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Sends bytes and returns the status and the body; `None` if the connection was closed instead.
pub(crate) fn ask(address: &str, request: &[u8]) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // The server may answer before the request is complete.
    let _sent = stream.write_all(request);
    let mut answer = Vec::new();
    let _closed = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// Sends a GET request.
pub(crate) fn get(address: &str, path: &str) -> Option<(u16, String)> {
    ask(address, format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").as_bytes())
}

/// Sends a POST request.
pub(crate) fn post(address: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    ask(address, [head.as_bytes(), body.as_bytes()].concat().as_slice())
}
