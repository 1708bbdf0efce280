//! A real schema registry for tests, started by `dev/registry`. Like the broker, it never outlives the test process.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A running registry with its directory.
pub(crate) struct Registry {
    dir: PathBuf,
    /// The Confluent-compatible URL.
    pub(crate) url: String,
}

/// The registry that most tests share; each uses topic names of its own.
pub(crate) fn shared() -> &'static Registry {
    static SHARED: OnceLock<Registry> = OnceLock::new();
    SHARED.get_or_init(Registry::start)
}

impl Registry {
    /// Starts a registry for one test.
    pub(crate) fn start() -> Registry {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("samestory-{}-registry-{}", process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let mut registry = Registry { dir: env::temp_dir().join(name), url: String::new() };
        registry.command("start", &["--with-pid", &process::id().to_string(), "--discard"]);
        registry.url = fs::read_to_string(registry.dir.join("url")).unwrap().trim().to_owned();
        registry
    }

    pub(crate) fn pause(&self) {
        self.command("pause", &[]);
    }

    pub(crate) fn resume(&self) {
        self.command("resume", &[]);
    }

    fn command(&self, verb: &str, options: &[&str]) {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("dev/registry");
        let output = Command::new(program).arg(verb).arg(&self.dir).args(options).output().unwrap();
        assert!(output.status.success(), "dev/registry {verb}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Registers a schema as a crawler's own tools would, without our client.
    pub(crate) fn register(&self, subject: &str, schema: &str) -> u32 {
        let body = serde_json::json!({ "schema": schema }).to_string();
        let answer = self.ask("POST", &format!("/subjects/{subject}/versions"), &body);
        u32::try_from(answer["id"].as_u64().unwrap_or_else(|| panic!("{answer}"))).unwrap()
    }

    /// Sends a request and returns the JSON of the response.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> serde_json::Value {
        use std::io::{Read, Write};
        let address = self.url.trim_start_matches("http://");
        let (host, base) = address.split_once('/').unwrap();
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        write!(
            stream,
            "{method} /{base}{path} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/vnd.schemaregistry.v1+json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("dev/registry");
        drop(Command::new(program).arg("kill").arg(&self.dir).output());
        drop(fs::remove_dir_all(&self.dir));
    }
}
