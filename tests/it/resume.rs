//! A file run that is killed at any moment and restarted until it completes: the output equals that of an
//! undisturbed run, byte for byte.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::folder::{Folder, story};

const ARTICLES: usize = 3000;

/// Stories with copies, light edits, updates, deletes and unreadable lines, in two languages.
fn articles(folder: &Folder, name: &str, seed: usize) {
    let mut lines = String::new();
    for at in 0..ARTICLES {
        let line = match at % 11 {
            3 => format!("{{\"id\":\"c{at}\",\"text\":{:?}}}", story(seed + at - 3, "")),
            5 => {
                format!("{{\"id\":\"e{at}\",\"text\":{:?}}}", story(seed + at - 5, "Edited by another desk."))
            }
            7 => format!("{{\"id\":\"a{}\",\"text\":{:?}}}", at - 7, story(seed + at, "")),
            8 => "{broken".to_owned(),
            9 => format!("{{\"id\":\"a{}\",\"deleted\":true}}", at.saturating_sub(40)),
            _ => format!("{{\"id\":\"a{at}\",\"text\":{:?},\"n\":{at}}}", story(seed + at, "")),
        };
        lines += &line;
        lines.push('\n');
    }
    folder.write(name, lines.as_bytes());
}

fn start(folder: &Folder, state: &str, output: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_samestory"))
        .args(["file", "one.ndjson", "two.ndjson", "--quiet", "--state", state, "--output", output])
        .args(["--max-errors", "100"])
        .args(["--dead-letters", &format!("{output}.dead")])
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |data| data.len())
}

#[test]
fn a_run_killed_at_any_moment_resumes_as_if_nothing_had_happened() {
    let folder = Folder::new("resume");
    articles(&folder, "one.ndjson", 0);
    articles(&folder, "two.ndjson", ARTICLES / 2);
    assert!(start(&folder, "quiet", "quiet.ndjson").wait().unwrap().success());
    let undisturbed = fs::read(folder.path().join("quiet.ndjson")).unwrap();
    let dead = folder.read("quiet.ndjson.dead");
    assert!(undisturbed.len() > 100_000 && dead.lines().count() > 500);
    let mut chance = 0x2545_f491_4f6c_dd1d_u64;
    let mut interrupted = 0;
    for round in 0..3 {
        let (state, output) = (format!("state{round}"), format!("out{round}.ndjson"));
        let path = folder.path().join(&output);
        let mut attempts = 0;
        loop {
            let mut run = start(&folder, &state, &output);
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            // Waits for some progress, then for a moment anywhere in a batch. The last run is left to finish.
            let before = length(&path);
            attempts += 1;
            if attempts <= 12 {
                let mut waited = 0;
                while length(&path) == before && waited < 2000 && run.try_wait().unwrap().is_none() {
                    sleep(Duration::from_millis(1));
                    waited += 1;
                }
                sleep(Duration::from_micros(chance % 60_000));
                if run.try_wait().unwrap().is_none() {
                    run.kill().unwrap();
                    interrupted += 1;
                }
            }
            let status = run.wait().unwrap();
            if status.success() {
                break;
            }
            assert_eq!(status.code(), None, "it was killed, it did not fail");
        }
        assert!(fs::read(&path).unwrap() == undisturbed, "round {round} differs");
        assert!(folder.read(&format!("{output}.dead")) == dead, "the dead letters of round {round} differ");
        // Once more: nothing is left to do, and nothing is written.
        assert!(start(&folder, &state, &output).wait().unwrap().success());
        assert_eq!(length(&path), undisturbed.len() as u64);
    }
    assert!(
        interrupted >= 3,
        "only {interrupted} runs were interrupted: the machine is too fast for this test"
    );
}

#[test]
fn a_file_that_has_grown_is_continued() {
    let folder = Folder::new("grown");
    let line = |at: usize| format!("{{\"id\":\"a{at}\",\"text\":{:?}}}\n", story(at, ""));
    folder.write("one.ndjson", (line(1) + &line(2)).as_bytes());
    let run =
        || folder.run(&["file", "one.ndjson", "--state", "state", "--output", "out.ndjson", "--no-article"]);
    run();
    folder.write("one.ndjson", (line(1) + &line(2) + &line(3)).as_bytes());
    let printed = run();
    assert!(printed.stderr.contains("2 records were judged before"), "{}", printed.stderr);
    let output = folder.read("out.ndjson");
    assert_eq!(output.lines().count(), 3);
    assert!(output.lines().all(|line| line.contains("\"verdict\":\"unique\"")), "{output}");
}

#[test]
fn a_truncated_output_is_not_continued() {
    let folder = Folder::new("cut");
    folder.write("one.ndjson", format!("{{\"id\":\"a\",\"text\":{:?}}}\n", story(1, "")).as_bytes());
    let arguments = ["file", "one.ndjson", "--state", "state", "--output", "out.ndjson"];
    folder.run(&arguments);
    folder.write("out.ndjson", b"");
    let refused = folder.fail(&arguments);
    assert!(refused.contains("out.ndjson has 0 bytes, but the state recorded"), "{refused}");
    fs::remove_file(folder.path().join("out.ndjson")).unwrap();
    assert!(folder.fail(&arguments).contains("out.ndjson has 0 bytes"));
}

#[test]
fn state_in_use_is_refused_not_waited_for() {
    let folder = Folder::new("in-use");
    let mut first = Command::new(env!("CARGO_BIN_EXE_samestory"))
        .args(["file", "-", "--state", "state", "--output", "out.ndjson"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !folder.path().join("out.ndjson").exists() {
        sleep(Duration::from_millis(5));
    }
    folder.write("one.ndjson", b"");
    let refused = folder.fail(&["file", "one.ndjson", "--state", "state"]);
    drop(first.stdin.take());
    first.wait().unwrap();
    assert!(refused.contains("in use by another process"), "{refused}");
}

/// A crawler was writing a line while the file was read: half of it became a dead letter, and the next run
/// skipped the complete line as already judged. Each line is judged once, when it is complete.
#[test]
fn an_unfinished_line_waits_for_its_end() {
    let line = |at: usize| format!("{{\"id\":\"a{at}\",\"text\":{:?}}}", story(at, ""));
    let row = |at: usize| format!("r{at},{}", story(at, ""));
    let array = |last: &str| format!("[{},\n{},\n{last}", line(0), line(1));
    let first = [line(0), line(1)].join("\n") + "\n";
    let table = format!("id,text\n{}\n{}\n", row(0), row(1));
    let (half, half_row) = (&line(2)[..line(2).len() / 2], &row(2)[..row(2).len() / 2]);
    let cases = [
        ("lines.ndjson", first.clone() + half, format!("{first}{}\n", line(2))),
        ("table.csv", table.clone() + half_row, format!("{table}{}\n", row(2))),
        ("array.json", array(half), array(&(line(2) + "]"))),
    ];
    for (name, growing, grown) in cases {
        let folder = Folder::new(&format!("unfinished-{name}"));
        let output = ["--output", "out.ndjson", "--dead-letters", "dead.ndjson"];
        let run = || {
            folder.run(&[&["file", name, "--state", "state", "--no-article"], &output[..]].concat()).stderr
        };
        folder.write(name, growing.as_bytes());
        let printed = run();
        assert!(
            printed.contains(":3: the last line has no end yet") || name == "table.csv",
            "{name}: {printed}"
        );
        assert!(printed.contains("the last line has no end yet"), "{name}: {printed}");
        assert_eq!(folder.read("out.ndjson").lines().count(), 2, "{name}");
        folder.write(name, grown.as_bytes());
        let printed = run();
        assert!(!printed.contains("has no end yet"), "{name}: {printed}");
        assert_eq!(folder.read("out.ndjson").lines().count(), 3, "{name}: {printed}");
        assert_eq!(folder.read("dead.ndjson"), "", "{name}");
        run();
        assert_eq!(folder.read("out.ndjson").lines().count(), 3, "{name}");
    }
}

/// An article is complete at its last bracket: such a line does not wait for a line end that may never come.
#[test]
fn a_complete_article_without_a_line_end_is_judged_at_once() {
    let folder = Folder::new("whole-last-line");
    let line = |at: usize| format!("{{\"id\":\"a{at}\",\"text\":{:?}}}", story(at, ""));
    let run = || folder.run(&["file", "in.ndjson", "--state", "state", "--output", "out.ndjson"]);
    folder.write("in.ndjson", format!("{}\n{}", line(0), line(1)).as_bytes());
    run();
    assert_eq!(folder.read("out.ndjson").lines().count(), 2);
    folder.write("in.ndjson", format!("{}\n{}\n{}", line(0), line(1), line(2)).as_bytes());
    run();
    let output = folder.read("out.ndjson");
    assert_eq!(output.lines().count(), 3);
    assert!(output.lines().all(|line| line.contains("\"verdict\":\"unique\"")), "{output}");
}

#[test]
fn a_state_continues_with_the_pairs_it_started_with() {
    let folder = Folder::new("state-pairs");
    let line = |at: usize| format!("{{\"id\":\"a{at}\",\"text\":{:?}}}\n", story(at, ""));
    folder.write("in.ndjson", line(0).as_bytes());
    folder.write("pairs.tsv", b"a0\ta1\tsame\n");
    folder.write("others.tsv", b"a0\ta2\tsame\n");
    let with = ["file", "in.ndjson", "--state", "state", "--output", "out.ndjson", "--pairs"];
    folder.run(&[&with[..], &["pairs.tsv"]].concat());
    folder.write("in.ndjson", (line(0) + &line(1)).as_bytes());
    let refused = folder.fail(&[&with[..], &["others.tsv"]].concat());
    assert!(refused.contains("built with other --pairs (1 pair)"), "{refused}");
    let refused = folder.fail(&with[..6]);
    assert!(refused.contains("built with other --pairs"), "{refused}");
    folder.run(&[&with[..], &["pairs.tsv"]].concat());
    assert!(folder.read("out.ndjson").lines().nth(1).unwrap().contains("\"match_type\":\"reviewed\""));
}
