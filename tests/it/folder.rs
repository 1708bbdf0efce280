//! A directory with files of articles, and the program run in it: shared by the tests of `samestory file`.

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A directory that is deleted with its test.
pub(crate) struct Folder(PathBuf, Vec<(&'static str, &'static str)>);

pub(crate) struct RunOutput {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = env::temp_dir().join(format!("samestory-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path, Vec::new())
    }

    /// A folder whose program trusts declared languages, for stories of invented words.
    pub(crate) fn trust_declared(name: &str) -> Folder {
        Folder(Folder::new(name).into_path(), vec![("SAMESTORY__LANGUAGE__TRUST", "declared")])
    }

    /// The directory, which then outlives this value.
    fn into_path(self) -> PathBuf {
        let path = self.0.clone();
        std::mem::forget(self);
        path
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }

    pub(crate) fn start(&self, arguments: &[&str], input: &[u8]) -> (bool, RunOutput) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_samestory"))
            .args(arguments)
            .current_dir(&self.0)
            .env_remove("SAMESTORY_CONFIG")
            .envs(self.1.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&input).is_ok());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), RunOutput { stdout: text(output.stdout), stderr: text(output.stderr) })
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> RunOutput {
        self.pipe(arguments, b"")
    }

    pub(crate) fn pipe(&self, arguments: &[&str], input: &[u8]) -> RunOutput {
        let (success, printed) = self.start(arguments, input);
        assert!(success, "{arguments:?}: {}", printed.stderr);
        printed
    }

    /// The error output of a run that must fail.
    pub(crate) fn fail(&self, arguments: &[&str]) -> String {
        let (success, printed) = self.start(arguments, b"");
        assert!(!success, "{arguments:?} should have failed");
        printed.stderr
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A different text for every number.
pub(crate) fn story(number: usize, end: &str) -> String {
    let mut chance = number as u64 + 1;
    let mut words = Vec::new();
    for _ in 0..120 {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = chance >> 40;
        words.push(format!(
            "{}{}",
            ["lan", "ber", "to", "mi", "ser"][word as usize % 5],
            ["ra", "dun", "kel", "vis"][word as usize / 5 % 4].to_owned()
                + &"aeiou"[word as usize / 20 % 5..][..1]
                + ["st", "nd", "r", "m"][word as usize / 100 % 4]
        ));
    }
    format!("{} {end}", words.join(" "))
}

/// The id, verdict and best match of each line.
pub(crate) fn verdicts(ndjson: &str) -> Vec<String> {
    let line = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| value[name].as_str().unwrap_or("-").to_owned();
        format!("{} {} {}", text("id"), text("verdict"), text("duplicate_of"))
    };
    ndjson.lines().map(line).collect()
}
