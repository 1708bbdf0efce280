//! The real program as a child process: started with injected faults, stopped, frozen, killed. It never
//! outlives a test that fails nor, where `setpriv` is installed, one that is killed.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// A running program.
pub(crate) struct Process {
    child: Child,
}

/// The role of a process, and the environment variables that inject faults into it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Orders {
    pub(crate) role: Option<&'static str>,
    pub(crate) variables: Vec<(&'static str, String)>,
    /// More of its command line.
    pub(crate) arguments: Vec<String>,
}

impl Orders {
    pub(crate) fn with(mut self, variable: &'static str, value: impl ToString) -> Orders {
        self.variables.push((variable, value.to_string()));
        self
    }
}

impl Process {
    /// Starts `samestory run` with its log appended to `log`.
    pub(crate) fn start(config: &Path, log: &Path, instance: &str, orders: &Orders) -> Process {
        let log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        let program = env!("CARGO_BIN_EXE_samestory");
        let mut command = if has_setpriv() {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL", program]);
            command
        } else {
            Command::new(program)
        };
        command.args(["run", "--config"]).arg(config).env("SAMESTORY_INSTANCE", instance);
        command.args(orders.role.iter().flat_map(|role| ["--role", role])).args(&orders.arguments);
        command.envs(orders.variables.iter().map(|(key, value)| (key, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Process { child: command.spawn().unwrap() }
    }

    /// The exit status, if the process has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for the process to end.
    pub(crate) fn await_end(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            match self.ended() {
                None if Instant::now() < deadline => thread::sleep(Duration::from_millis(20)),
                ended => return ended,
            }
        }
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, SIGSTOP or SIGCONT by name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success(), "kill {name}");
    }

    /// Waits until the process has frozen itself at the injected fault point.
    pub(crate) fn await_frozen(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let path = PathBuf::from(format!("/proc/{}/stat", self.child.id()));
        while Instant::now() < deadline && self.ended().is_none() {
            let stat = fs::read_to_string(&path).unwrap_or_default();
            if stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')) {
                return true;
            }
            thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn has_setpriv() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        let status = Command::new("setpriv").arg("--version").stdout(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    })
}
