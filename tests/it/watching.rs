//! From the program to a person: Prometheus scrapes it, an alert fires, Alertmanager sends it, Slack receives
//! it. Everything is real except Slack and the waiting times. `make test-deploy` runs it and fetches the
//! tools.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(90);

/// A process that ends with the test.
struct Process(Child);

impl Process {
    fn start(program: &Path, arguments: &[&str], log: &Path) -> Process {
        let log = fs::File::create(log).unwrap();
        let mut command = Command::new(program);
        command.args(arguments).stdout(log.try_clone().unwrap()).stderr(log).stdin(Stdio::null());
        Process(command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display())))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn tool(name: &str) -> PathBuf {
    let tools = std::env::var_os("SAMESTORY_TOOLS").expect("SAMESTORY_TOOLS: run `make test-deploy`");
    PathBuf::from(tools).join("bin").join(name)
}

/// A port that is currently free.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// An incoming webhook on loopback, which passes on what it receives.
fn slack() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (send, receive) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let body = take(stream.unwrap());
            if send.send(body).is_err() {
                return;
            }
        }
    });
    (format!("http://{address}/services/T/B/X"), receive)
}

fn take(stream: TcpStream) -> String {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (&stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").unwrap();
    String::from_utf8(body).unwrap()
}

#[test]
#[ignore = "needs Prometheus and Alertmanager: make test-deploy"]
fn a_stage_that_is_not_ready_alerts_a_person() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = std::env::temp_dir().join(format!("samestory-watching-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (url, messages) = slack();
    // The program with an unreachable broker: it is alive but not ready.
    let settings = file(
        "samestory.toml",
        "[http]\nlisten = \"127.0.0.1:0\"\nquery = \"off\"\n[kafka]\n\"bootstrap.servers\" = \"127.0.0.1:9\"\n",
    );
    let log = dir.join("samestory.log");
    let program = Path::new(env!("CARGO_BIN_EXE_samestory"));
    let _stage = Process::start(program, &["--config", &settings, "run"], &log);
    let deadline = Instant::now() + PATIENCE;
    let address = loop {
        let printed = fs::read_to_string(&log).unwrap();
        if let Some(line) = printed.lines().find(|line| line.contains("serving /healthz")) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            break line["address"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < deadline, "{printed}");
        thread::sleep(Duration::from_millis(50));
    };
    // The rules and the example as they are, but without waiting a quarter of an hour.
    let rules = fs::read_to_string(root.join("helm/samestory/rules/samestory.yaml")).unwrap();
    let rules = file("rules.yml", &rules.replace("for: 15m", "for: 1s"));
    let secret = file("slack-url", &url);
    let example = fs::read_to_string(root.join("examples/alertmanager.yml")).unwrap();
    let example = example.replace("/etc/alertmanager/slack-url", &secret);
    let alertmanager = file("alertmanager.yml", &example.replace("group_wait: 30s", "group_wait: 1s"));
    let (watcher, sender) = (port(), port());
    let prometheus = file(
        "prometheus.yml",
        &format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [{rules}]\nalerting:\n  \
             alertmanagers: [{{ static_configs: [{{ targets: [\"127.0.0.1:{sender}\"] }}] }}]\nscrape_configs:\n  \
             - {{ job_name: samestory, static_configs: [{{ targets: [\"{address}\"] }}] }}\n"
        ),
    );
    let data = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let _sender = Process::start(
        &tool("alertmanager"),
        &[
            &format!("--config.file={alertmanager}"),
            &format!("--storage.path={}", data("alertmanager")),
            &format!("--web.listen-address=127.0.0.1:{sender}"),
            "--cluster.listen-address=",
        ],
        &dir.join("alertmanager.log"),
    );
    let _watcher = Process::start(
        &tool("prometheus"),
        &[
            &format!("--config.file={prometheus}"),
            &format!("--storage.tsdb.path={}", data("prometheus")),
            &format!("--web.listen-address=127.0.0.1:{watcher}"),
        ],
        &dir.join("prometheus.log"),
    );
    // Another alert may come first: a disk that others fill makes SamestoryDiskFilling fire.
    let deadline = Instant::now() + PATIENCE;
    let message = loop {
        let message = messages.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        let message = message.unwrap_or_else(|_| {
            let log = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
            panic!("no alert arrived; {} {}", log("prometheus.log"), log("alertmanager.log"))
        });
        if message.contains("FIRING SamestoryNotReady") {
            break message;
        }
    };
    for part in [&address, "docs/runbook.md#samestorynotready", "#news-pipeline"] {
        assert!(message.contains(part), "no {part:?} in {message}");
    }
    drop(fs::remove_dir_all(&dir));
}
