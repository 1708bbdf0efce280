//! A file run in trouble: no space, no write permission, Ctrl-C. It reports the problem, loses nothing, and
//! resumes when run again.

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::folder::{Folder, story};

const ARTICLES: usize = 5000;

/// Stories with copies, edits and broken lines, plus `besides` bytes per line that make the output outgrow
/// the state.
fn articles(folder: &Folder, besides: usize) {
    let mut lines = String::new();
    for at in 0..ARTICLES {
        let (number, end) = if at % 5 == 4 { (at - 4, "Edited by another desk.") } else { (at, "") };
        let besides = "x".repeat(besides);
        lines += &format!("{{\"id\":\"a{at}\",\"text\":{:?},\"x\":\"{besides}\"}}\n", story(number, end));
        if at % 100 == 99 {
            lines += "{broken\n";
        }
    }
    folder.write("one.ndjson", lines.as_bytes());
}

fn arguments<'a>(state: &'a str, output: &'a str, dead: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let common =
        ["file", "one.ndjson", "--quiet", "--state", state, "--output", output, "--dead-letters", dead];
    [&common, more].concat()
}

fn undisturbed(folder: &Folder, more: &[&str]) -> [Vec<u8>; 2] {
    folder.run(&arguments("quiet", "quiet.ndjson", "quiet.dead", more));
    ["quiet.ndjson", "quiet.dead"].map(|name| fs::read(folder.path().join(name)).unwrap())
}

/// Runs with a maximum file size of `blocks` blocks of 512 bytes. Writing more is an error, as on a full
/// disk, instead of the default signal.
fn with_little_space(folder: &Folder, blocks: u32, more: &[&str]) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_samestory")])
        .args(arguments("state", "out.ndjson", "out.dead", more))
        .current_dir(folder.path())
        .env_remove("SAMESTORY_CONFIG")
        .output()
        .unwrap()
}

fn assert_resumes_after(folder: &Folder, blocks: u32, more: &[&str], message: &str) {
    let undisturbed = undisturbed(folder, more);
    let mut failures = 0;
    for _ in 0..2 {
        let full = with_little_space(folder, blocks, more);
        let printed = String::from_utf8_lossy(&full.stderr);
        // The second attempt may have room enough, because the state starts a new WAL.
        if full.status.success() {
            break;
        }
        failures += 1;
        assert_eq!(full.status.code(), Some(1), "{printed}");
        assert!(printed.contains(message) && !printed.contains("panicked"), "{printed}");
        // Nothing was lost, and everything present is complete.
        folder.run(&["state", "verify", "state"]);
    }
    assert!(failures > 0, "no run ran out of space");
    let seen = folder.run(&["state", "inspect", "state", "--json"]).stdout;
    let seen: serde_json::Value = serde_json::from_str(&seen).unwrap();
    assert!(seen["inputs"][0]["next"].as_u64().unwrap() > 0, "nothing was kept: {seen}");
    folder.run(&arguments("state", "out.ndjson", "out.dead", more));
    for (name, undisturbed) in ["out.ndjson", "out.dead"].into_iter().zip(undisturbed) {
        assert!(fs::read(folder.path().join(name)).unwrap() == undisturbed, "{name} differs");
    }
    folder.run(&["state", "verify", "state"]);
}

#[test]
fn a_state_without_space_stops_the_run_and_resumes_later() {
    let folder = Folder::new("full-state");
    articles(&folder, 0);
    assert_resumes_after(&folder, 2_000, &["--no-article"], "no space left for state state");
}

#[test]
fn an_output_without_space_stops_the_run_and_resumes_later() {
    let folder = Folder::new("full-output");
    articles(&folder, 4000);
    assert_resumes_after(&folder, 20_000, &[], "cannot write out.ndjson");
}

#[test]
fn an_unwritable_state_is_reported_before_anything_is_done() {
    let folder = Folder::new("unwritable");
    folder.write("one.ndjson", format!("{{\"id\":\"a\",\"text\":{:?}}}\n", story(1, "")).as_bytes());
    let mut states = vec!["one.ndjson/state".to_owned(), "/proc/no/state".to_owned()];
    let locked = folder.path().join("locked");
    fs::create_dir(&locked).unwrap();
    let mut permissions = fs::metadata(&locked).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&locked, permissions).unwrap();
    // Root may write anywhere.
    if fs::write(locked.join("probe"), "").is_err() {
        states.push("locked/state".to_owned());
    }
    for state in states {
        let printed = folder.fail(&["file", "one.ndjson", "--state", &state, "--output", "out.ndjson"]);
        assert!(printed.contains(&format!("state {state} cannot be used")), "{printed}");
        assert!(!folder.path().join("out.ndjson").exists(), "{state}");
    }
}

fn start(folder: &Folder, state: &str, output: &str, dead: &str) -> Child {
    // SIGINT may be ignored if the tests run in the background.
    Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_samestory")])
        .args(arguments(state, output, dead, &[]))
        .current_dir(folder.path())
        .env_remove("SAMESTORY_CONFIG")
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn an_interrupted_run_resumes_as_if_nothing_had_happened() {
    let folder = Folder::new("interrupted");
    articles(&folder, 0);
    let undisturbed = undisturbed(&folder, &[]);
    let output = folder.path().join("out.ndjson");
    let length = || fs::metadata(&output).map_or(0, |data| data.len());
    let mut interrupted = 0;
    for attempt in 0..4 {
        let mut run = start(&folder, "state", "out.ndjson", "out.dead");
        let before = length();
        while length() == before && run.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(7 * attempt));
        let pid = run.id().to_string();
        if run.try_wait().unwrap().is_none() {
            assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        }
        let status = run.wait().unwrap();
        interrupted += u32::from(!status.success());
    }
    assert!(interrupted > 0, "every run completed before it was interrupted");
    assert!(start(&folder, "state", "out.ndjson", "out.dead").wait().unwrap().success());
    for (name, undisturbed) in ["out.ndjson", "out.dead"].into_iter().zip(undisturbed) {
        assert!(fs::read(folder.path().join(name)).unwrap() == undisturbed, "{name} differs");
    }
}
