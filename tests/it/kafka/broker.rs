//! A broker for tests, by way of `dev/kafka`. It never outlives the test process, not even one that is killed: a watcher
//! that is nobody's child ends it and removes its directory.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

static STARTED: AtomicU32 = AtomicU32::new(0);

/// One running broker with its directory, or a cluster of several.
pub(crate) struct Broker {
    dir: PathBuf,
    bootstrap: String,
    nodes: usize,
}

/// The broker that most tests use together: they keep apart by the names of their topics.
pub(crate) fn shared() -> &'static Broker {
    static SHARED: OnceLock<Broker> = OnceLock::new();
    SHARED.get_or_init(|| Broker::start(&SHORT_SESSIONS))
}

/// The broker that tests hurt, one after the other; each leaves it running. After a test that failed there is a new one.
pub(crate) fn hurt() -> MutexGuard<'static, Broker> {
    static HURT: OnceLock<Mutex<Broker>> = OnceLock::new();
    // After a crash the controller keeps the dead broker's place for as long as its session.
    let options = ["--set", "message.max.bytes=2000000", "--set", "broker.session.timeout.ms=4000"];
    let start = move || Broker::start(&options);
    let hurt = HURT.get_or_init(|| Mutex::new(start()));
    hurt.lock().unwrap_or_else(|failed| {
        hurt.clear_poison();
        let mut broker = failed.into_inner();
        *broker = start();
        broker
    })
}

/// The password of the user `stage` of [`secure`].
pub(crate) const PASSWORD: &str = "open sesame please";

/// The broker with TLS, passwords and ACLs, and the users `stage` and `would_join`.
pub(crate) fn secure() -> &'static Broker {
    static SECURE: OnceLock<Broker> = OnceLock::new();
    let user = format!("stage:{PASSWORD}");
    SECURE.get_or_init(|| Broker::start(&["--secure", "--user", &user, "--user", "guest:guest"]))
}

/// Where the broker assigns partitions (KIP-848), it also says how long a member may be silent: not 45 seconds.
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

/// Runs `dev/kafka`, and gives back what it printed.
///
/// # Panics
///
/// When it fails, with what it said: a test without its broker is a failed test.
pub(crate) fn dev_kafka(arguments: &[&str]) -> String {
    let (success, said) = try_dev_kafka(arguments);
    assert!(success, "dev/kafka {arguments:?}: {said}");
    said
}

/// Runs `dev/kafka`: did it succeed, and what did it print?
pub(crate) fn try_dev_kafka(arguments: &[&str]) -> (bool, String) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("dev/kafka");
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).trim().to_owned())
}

impl Broker {
    /// A broker of the test's own, to be hurt. Options as `dev/kafka start` takes them.
    pub(crate) fn start(options: &[&str]) -> Broker {
        Broker::start_with_pid(process::id(), options)
    }

    /// A broker that is to go when the process `pid` does.
    pub(crate) fn start_with_pid(pid: u32, options: &[&str]) -> Broker {
        let name = format!("samestory-{}-kafka-{}", process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let mut broker = Broker { dir: env::temp_dir().join(name), bootstrap: String::new(), nodes: 1 };
        let pid = pid.to_string();
        let watched = ["start", broker.dir.to_str().unwrap(), "--with-pid", &pid, "--discard"];
        // Tests are over before Java's optimiser pays.
        let quick = ["--java", "-XX:TieredStopAtLevel=1"];
        // Articles of tests are older than a broker keeps records by default.
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

    /// Where the broker keeps everything.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the listener of `--listener NAME=PORT` really is: what a proxy connects to.
    pub(crate) fn listener(&self, name: &str) -> String {
        self.file(&format!("listener.{name}"))
    }

    /// Brokers of the cluster.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes
    }

    /// Runs `dev/kafka` for one node of a cluster, counted from 1: kill, start, stop, pause or resume.
    pub(crate) fn node(&self, node: usize, verb: &str) {
        dev_kafka(&[verb, self.dir.join(format!("node{node}")).to_str().unwrap()]);
    }

    /// How often the brokers have logged this text.
    pub(crate) fn logged(&self, text: &str) -> usize {
        let logs: Vec<PathBuf> = match self.nodes {
            1 => vec![self.dir.join("kafka.log")],
            nodes => (1..=nodes).map(|node| self.dir.join(format!("node{node}/kafka.log"))).collect(),
        };
        logs.iter().map(|log| fs::read_to_string(log).unwrap_or_default().matches(text).count()).sum()
    }

    /// One of the files `dev/kafka` leaves in the directory.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(name)).unwrap().trim().to_owned()
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&self) {
        self.command("kill");
    }

    /// Brings it back after [`Broker::kill`], with the same data and ports; returns when it answers.
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
        // It may be dead already. Should this fail, the watcher does it at the end of the process.
        try_dev_kafka(&["kill", self.dir.to_str().unwrap()]);
        drop(fs::remove_dir_all(&self.dir));
    }
}
