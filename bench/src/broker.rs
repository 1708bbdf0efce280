//! A broker of its own for a benchmark, and the processes that run beside it.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use rdkafka::ClientConfig;

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// A running broker, stopped and removed with its directory when it is dropped.
pub struct Broker {
    /// For everything that the benchmark writes.
    pub directory: PathBuf,
    pub bootstrap: String,
    pub pid: u32,
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _stopped = dev_kafka(&["stop", &self.directory.join("kafka").display().to_string()]);
        let _removed = fs::remove_dir_all(&self.directory);
    }
}

impl Broker {
    pub fn start() -> Outcome<Broker> {
        let directory = std::env::temp_dir().join(format!("samestory-bench-{}", std::process::id()));
        let kafka = directory.join("kafka");
        fs::create_dir_all(&directory)?;
        let pid = std::process::id().to_string();
        dev_kafka(&["start", &kafka.display().to_string(), "--with-pid", &pid])?;
        let read = |name: &str| fs::read_to_string(kafka.join(name)).map(|text| text.trim().to_owned());
        Ok(Broker { bootstrap: read("bootstrap")?, pid: read("pid")?.parse()?, directory })
    }

    pub fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap);
        config
    }
}

fn dev_kafka(arguments: &[&str]) -> Outcome<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dev/kafka");
    let status = Command::new(script).args(arguments).stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("dev/kafka {arguments:?} failed").into()) }
}

/// Sends SIGTERM and waits until the process has ended.
pub fn stop_process(child: &mut Child) -> Outcome<()> {
    Command::new("kill").arg(child.id().to_string()).status()?;
    child.wait()?;
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "records of a benchmark carry the time of this machine")]
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// CPU seconds of a process so far.
pub fn cpu_of(pid: u32) -> f64 {
    cpu_in(&fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default())
}

/// CPU seconds in the text of a file `stat`.
pub fn cpu_in(stat: &str) -> f64 {
    const TICKS: f64 = 100.0;
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let fields: Vec<&str> = after_name.split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS
}
