//! Runs the program for a test, with topics and state of its own. [`Bench`] holds the settings, and [`Running`] is a
//! process that never outlives the test.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::broker::Broker;
use super::bus::{Isolation, Record, Row};

/// Most time that the program may take for anything on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// A set of topics, a settings file and a directory for one test.
pub(crate) struct Bench<'b> {
    pub(crate) broker: &'b Broker,
    pub(crate) prefix: String,
    pub(crate) dir: PathBuf,
    settings: String,
}

impl<'b> Bench<'b> {
    /// Creates topics named after the test with `samestory topics --create`. `stage` holds lines for the `[stage]`
    /// table, `rest` further tables.
    pub(crate) fn new(broker: &'b Broker, name: &str, stage: &str, rest: &str) -> Bench<'b> {
        let bench = Bench::without_topics(broker, name, stage, rest);
        let (status, printed) = bench.samestory(&["topics", "--create"]);
        assert!(status.success(), "{printed}");
        bench
    }

    pub(crate) fn without_topics(broker: &'b Broker, name: &str, stage: &str, rest: &str) -> Bench<'b> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("{name}-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(format!("samestory-{prefix}"));
        fs::create_dir_all(&dir).unwrap();
        let mut bench = Bench { broker, prefix, dir, settings: String::new() };
        bench.write(stage, rest);
        bench
    }

    /// Replaces the settings.
    pub(crate) fn write(&mut self, stage: &str, rest: &str) {
        let (prefix, state) = (&self.prefix, self.dir.join("state"));
        let partitions = if rest.contains("[topics]") { "" } else { "[topics]\npartitions = 2\n" };
        let topics = format!(
            "raw = \"{prefix}.raw\"\nrouted = \"{prefix}.routed\"\nunique = \"{prefix}.unique\"\nnear_duplicate = \
             \"{prefix}.near\"\ntagged = \"{prefix}.tagged\"\nclusters = \"{prefix}.clusters\"\nchangelog = \
             \"{prefix}.changelog\"\ndead_letter = \"{prefix}.dead\"\ngenerations = \
             \"{prefix}.generations\"\n"
        );
        let kafka = if rest.contains("[kafka]") { "" } else { "[kafka]\n" };
        // With the `consumer` protocol the broker sets the session timeout.
        let session = if stage.contains("\"consumer\"") { "" } else { "\"session.timeout.ms\" = 6000\n" };
        // The generated words belong to no language, so the declared one counts.
        self.settings = format!(
            "[language]\ntrust = \"declared\"\n[http]\nlisten = \"127.0.0.1:0\"\nquery = \"127.0.0.1:0\"\n[stage]\napp = \"{prefix}\"\nstate = {state:?}\n{stage}\n{partitions}{}\n{kafka}\"bootstrap.servers\" = \
             \"{}\"\n{session}",
            match rest.split_once("[topics]\n") {
                Some((before, after)) => format!("{before}[topics]\n{topics}{after}"),
                None => format!("{topics}{rest}"),
            },
            self.broker.bootstrap(),
        );
        fs::write(self.config(), &self.settings).unwrap();
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.dir.join("samestory.toml")
    }

    pub(crate) fn topic(&self, name: &str) -> String {
        format!("{}.{name}", self.prefix)
    }

    /// Runs a command to its end. Returns its status and its output.
    pub(crate) fn samestory(&self, arguments: &[&str]) -> (ExitStatus, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_samestory"))
            .arg("--config")
            .arg(self.config())
            .args(arguments)
            .output()
            .unwrap();
        let printed = [output.stdout, output.stderr].concat();
        (output.status, String::from_utf8_lossy(&printed).into_owned())
    }

    /// Starts `samestory run`.
    pub(crate) fn run(&self, arguments: &[&str]) -> Running {
        self.run_with(arguments, &[])
    }

    pub(crate) fn run_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Running {
        self.start(&[&["run"], arguments].concat(), environment)
    }

    /// Starts any command; its standard error is its log.
    pub(crate) fn start(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_samestory"));
        command.arg("--config").arg(self.config()).args(arguments);
        command.envs(environment.iter().copied());
        self.started(command)
    }

    /// Starts one of several processes, with its own instance name and state.
    pub(crate) fn run_as(&self, instance: &str, arguments: &[&str]) -> Running {
        self.run_as_with(instance, arguments, &[])
    }

    pub(crate) fn run_as_with(
        &self,
        instance: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Running {
        let config = self.dir.join(format!("{instance}.toml"));
        let (state, own) = (self.dir.join("state"), self.dir.join(format!("state-{instance}")));
        let text = self.settings.replace(&format!("state = {state:?}"), &format!("state = {own:?}"));
        fs::write(&config, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_samestory"));
        command.arg("--config").arg(config).arg("run").args(arguments).env("SAMESTORY_INSTANCE", instance);
        command.envs(environment.iter().copied());
        self.started(command)
    }

    /// Starts a process that ignores a signal.
    pub(crate) fn run_without_signal(&self, signal: &str, environment: &[(&str, &str)]) -> Running {
        let mut command = Command::new("sh");
        let script = format!("trap '' {signal}; exec \"$0\" \"$@\"");
        command
            .args(["-c", &script, env!("CARGO_BIN_EXE_samestory"), "--config"])
            .arg(self.config())
            .arg("run");
        command.envs(environment.iter().copied());
        self.started(command)
    }

    fn started(&self, mut command: Command) -> Running {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let log = self.dir.join(format!("log-{}", RUNS.fetch_add(1, Ordering::Relaxed)));
        command.stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap());
        Running { child: command.spawn().unwrap(), log }
    }

    pub(crate) fn produce(&self, records: &[Record]) -> Vec<(i32, i64)> {
        self.broker.produce(&self.topic("raw"), records)
    }

    /// The committed records of a topic.
    pub(crate) fn read(&self, name: &str) -> Vec<Row> {
        let ends = self.broker.ends(&self.topic(name), Isolation::Committed);
        self.broker.read_to(&self.topic(name), Isolation::Committed, &ends)
    }

    /// Waits until these topics together hold this many records.
    pub(crate) fn wait_for(&self, names: &[&str], count: usize, running: &Running) -> Vec<Row> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let rows: Vec<Row> = names.iter().flat_map(|name| self.read(name)).collect();
            if rows.len() >= count {
                return rows;
            }
            let late = Instant::now() > deadline;
            assert!(!late, "{} of {count} records on {names:?}; {}", rows.len(), running.log());
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        if !thread::panicking() {
            drop(fs::remove_dir_all(&self.dir));
        }
    }
}

/// A running `samestory run`, killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        read(&self.log)
    }

    /// Waits until the log contains this text, and returns the log.
    pub(crate) fn wait_for_log(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let printed = self.log();
            if printed.contains(text) {
                return printed;
            }
            assert!(Instant::now() < deadline, "it does not say {text:?}: {printed}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// The address of its health and metrics endpoints.
    pub(crate) fn address(&mut self) -> String {
        let printed = self.wait_for_log("serving /healthz");
        let line = printed.lines().find(|line| line.contains("serving /healthz")).unwrap();
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["address"].as_str().unwrap().to_owned()
    }

    /// The address of its query API.
    pub(crate) fn query(&mut self) -> String {
        let printed = self.wait_for_log("serving the query API");
        let line = printed.lines().find(|line| line.contains("serving the query API")).unwrap();
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["address"].as_str().unwrap().to_owned()
    }

    /// Waits until the process ends by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Sends SIGTERM and waits until the process has ended.
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn read(path: &Path) -> String {
    let mut text = String::new();
    fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)).unwrap();
    text
}

impl Row {
    /// The value of one of our headers, named without its prefix.
    pub(crate) fn our_header(&self, name: &str) -> Option<String> {
        let name = format!("samestory-{name}");
        let found = self.headers.iter().find(|(key, _)| *key == name)?;
        Some(String::from_utf8(found.1.clone().unwrap()).unwrap())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(key, _)| key == name)?.1.as_deref()
    }

    pub(crate) fn id(&self) -> String {
        String::from_utf8(self.key.clone().unwrap()).unwrap()
    }

    /// True for the generation-end record of an application: its key ends in a number. The generations topic also holds
    /// the stage's notes.
    pub(crate) fn is_generation_end(&self, app: &str) -> bool {
        let id = self.id();
        id.rsplit_once('/').is_some_and(|(of, number)| of == app && number.parse::<u32>().is_ok())
    }
}
