//! A broker for tests, started by `dev/kafka`. It never outlives the test process, even if that is killed: a detached
//! watcher kills the broker and removes its directory.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

static STARTED: AtomicU32 = AtomicU32::new(0);

/// A running broker or cluster, with its directory.
pub(crate) struct Broker {
    dir: PathBuf,
    bootstrap: String,
    nodes: usize,
}

/// The broker that most tests share; each uses topic names of its own.
pub(crate) fn shared() -> &'static Broker {
    static SHARED: OnceLock<Broker> = OnceLock::new();
    SHARED.get_or_init(|| Broker::start(&SHORT_SESSIONS))
}

/// A broker for tests that damage it, one at a time. Each leaves it running; after a failed test a new one is started.
pub(crate) fn breakable() -> MutexGuard<'static, Broker> {
    static BREAKABLE: OnceLock<Mutex<Broker>> = OnceLock::new();
    // After a crash the controller keeps the dead broker registered until its session times out.
    let options = ["--set", "message.max.bytes=2000000", "--set", "broker.session.timeout.ms=4000"];
    let start = move || Broker::start(&options);
    let broker = BREAKABLE.get_or_init(|| Mutex::new(start()));
    broker.lock().unwrap_or_else(|failed| {
        broker.clear_poison();
        let mut broker = failed.into_inner();
        *broker = start();
        broker
    })
}

/// The password of the user `stage` on the [`secure`] broker.
pub(crate) const PASSWORD: &str = "open sesame please";

/// The broker with TLS, SCRAM and ACLs, and the users `stage` and `guest`.
pub(crate) fn secure() -> &'static Broker {
    static SECURE: OnceLock<Broker> = OnceLock::new();
    let user = format!("stage:{PASSWORD}");
    SECURE.get_or_init(|| Broker::start(&["--secure", "--user", &user, "--user", "guest:guest"]))
}

/// Broker settings that shorten the session timeout of the `consumer` protocol (KIP-848) from 45 seconds; clients
/// cannot set it.
pub(crate) const SHORT_SESSIONS: [&str; 8] = [
    "--set",
    "group.consumer.min.session.timeout.ms=6000",
    "--set",
    "group.consumer.session.timeout.ms=6000",
    "--set",
    "group.consumer.min.heartbeat.interval.ms=500",
    "--set",
    "group.consumer.heartbeat.interval.ms=500",
];

/// Runs `dev/kafka` and returns its output.
///
/// # Panics
///
/// If it fails, with its output: a test without its broker fails.
pub(crate) fn dev_kafka(arguments: &[&str]) -> String {
    let (success, printed) = try_dev_kafka(arguments);
    assert!(success, "dev/kafka {arguments:?}: {printed}");
    printed
}

/// Runs `dev/kafka`. Returns whether it succeeded, and its output.
pub(crate) fn try_dev_kafka(arguments: &[&str]) -> (bool, String) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("dev/kafka");
    let output = Command::new(program).args(arguments).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&printed).trim().to_owned())
}

impl Broker {
    /// Starts a broker for one test. The options are those of `dev/kafka start`.
    pub(crate) fn start(options: &[&str]) -> Broker {
        Broker::start_with_pid(process::id(), options)
    }

    /// Starts a broker that ends with the process `pid`.
    pub(crate) fn start_with_pid(pid: u32, options: &[&str]) -> Broker {
        let name = format!("samestory-{}-kafka-{}", process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let mut broker = Broker { dir: env::temp_dir().join(name), bootstrap: String::new(), nodes: 1 };
        let pid = pid.to_string();
        let watched = ["start", broker.dir.to_str().unwrap(), "--with-pid", &pid, "--discard"];
        // Tests are too short for the optimising compiler to pay off.
        let quick = ["--java", "-XX:TieredStopAtLevel=1"];
        // The articles of tests are older than the default retention.
        let keeping = ["--set", "log.retention.ms=-1"];
        dev_kafka(&[&watched[..], &quick, &keeping, options].concat());
        broker.bootstrap = broker.file("bootstrap");
        broker.nodes = broker.bootstrap.split(',').count();
        broker
    }

    /// `host:port` of the plain listener.
    pub(crate) fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// The broker's directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The real address of the listener `--listener NAME=PORT`, for a proxy to connect to.
    pub(crate) fn listener(&self, name: &str) -> String {
        self.file(&format!("listener.{name}"))
    }

    /// Number of brokers in the cluster.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes
    }

    /// Runs `dev/kafka` for one node of a cluster, counted from 1: kill, start, stop, pause or resume.
    pub(crate) fn node(&self, node: usize, verb: &str) {
        dev_kafka(&[verb, self.dir.join(format!("node{node}")).to_str().unwrap()]);
    }

    /// Number of occurrences of a text in the brokers' logs.
    pub(crate) fn logged(&self, text: &str) -> usize {
        let logs: Vec<PathBuf> = match self.nodes {
            1 => vec![self.dir.join("kafka.log")],
            nodes => (1..=nodes).map(|node| self.dir.join(format!("node{node}/kafka.log"))).collect(),
        };
        logs.iter().map(|log| fs::read_to_string(log).unwrap_or_default().matches(text).count()).sum()
    }

    /// The content of a file that `dev/kafka` writes into the directory.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(name)).unwrap().trim().to_owned()
    }

    /// Kills the broker.
    pub(crate) fn kill(&self) {
        self.command("kill");
    }

    /// Restarts the broker after [`Broker::kill`] with the same data and ports; returns when it answers.
    pub(crate) fn restart(&self) {
        self.command("start");
    }

    /// Freezes it: connections stay open, nothing is answered.
    pub(crate) fn pause(&self) {
        self.command("pause");
    }

    /// Lets it go on after [`Broker::pause`].
    pub(crate) fn resume(&self) {
        self.command("resume");
    }

    /// Runs one of Kafka's own tools (a Java class) against the broker.
    pub(crate) fn tool(&self, class: &str, arguments: &[&str]) -> String {
        dev_kafka(&[&["tool", self.dir.to_str().unwrap(), class], arguments].concat())
    }

    fn command(&self, verb: &str) {
        dev_kafka(&[verb, self.dir.to_str().unwrap()]);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // The broker may be dead already. If this fails, the watcher cleans up at the end of the process.
        try_dev_kafka(&["kill", self.dir.to_str().unwrap()]);
        drop(fs::remove_dir_all(&self.dir));
    }
}
