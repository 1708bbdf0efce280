//! `samestory file` never destroys one of its own files, and a failed run leaves its outputs unchanged.
//!
//! These commands each destroyed a file and exited with code 0, because names were compared instead of files:
//! `--html IN`, `--output` as a hard link of the input, `file - -o IN < IN`, `-o STATE/CURRENT`, `-o
//! settings.toml` and `-o a --html a`.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::folder::{Folder, story, verdicts};

const INPUT: &str = "in.ndjson";

/// A folder with an input, a settings file, and a state that has processed the input.
fn prepared_folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    let lines: String =
        (0..3).map(|at| format!("{{\"id\":\"a{at}\",\"body\":{:?}}}\n", story(at, ""))).collect();
    folder.write(INPUT, lines.as_bytes());
    folder.write("settings.toml", b"[match]\nthreshold = 0.6\n");
    folder.run(&["file", INPUT, "--state", "state", "--output", "known.ndjson", "--quiet"]);
    folder
}

fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_samestory"));
    command.args(arguments).current_dir(folder.path()).env_remove("SAMESTORY_CONFIG").stdin(Stdio::null());
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every file below a directory with its content, and links with their targets.
fn snapshot(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            all.insert(path.clone(), fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
        } else if path.is_dir() {
            all.extend(snapshot(&path));
        } else {
            all.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    all
}

/// Runs a command that must be refused with these names, and must change nothing.
fn refused(folder: &Folder, mut command: Command, names: [&str; 2]) {
    let before = snapshot(folder.path());
    let output = command.output().unwrap();
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{command:?}: {printed}");
    for name in names {
        assert!(printed.contains(name), "{command:?}: no {name:?} in {printed}");
    }
    let after = snapshot(folder.path());
    let changed = before.keys().chain(after.keys()).filter(|at| before.get(*at) != after.get(*at));
    let changed: Vec<_> = changed.collect();
    assert!(changed.is_empty(), "{command:?} changed {changed:?}");
}

#[test]
fn a_file_that_the_run_needs_is_never_written_over() {
    let folder = prepared_folder("clashes");
    let root = folder.path();
    fs::hard_link(root.join(INPUT), root.join("hard")).unwrap();
    fs::hard_link(root.join("state/CURRENT"), root.join("current")).unwrap();
    symlink(INPUT, root.join("soft")).unwrap();
    fs::create_dir(root.join("dir")).unwrap();
    symlink("dir", root.join("link")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    symlink("state", root.join("state-link")).unwrap();
    let input = "the input in.ndjson";
    let cases: &[(&[&str], [&str; 2])] = &[
        (&["--html", INPUT], ["--html in.ndjson", input]),
        (&["-o", "dir/../in.ndjson"], ["--output dir/../in.ndjson", input]),
        (&["-o", "hard"], ["--output hard", input]),
        (&["--html", "soft"], ["--html soft", input]),
        (&["--dead-letters", "hard"], ["--dead-letters hard", input]),
        (
            &["--config", "settings.toml", "-o", "settings.toml"],
            ["--output settings.toml", "the settings file settings.toml"],
        ),
        (&["-o", "a", "--html", "a"], ["--html a", "--output a"]),
        (&["-o", "a", "--html", "./a"], ["--html ./a", "--output a"]),
        (&["-o", "a", "--dead-letters", "dir/../a"], ["--dead-letters dir/../a", "--output a"]),
        (&["-o", "dir/a", "--html", "link/a"], ["--html link/a", "--output dir/a"]),
        (&["-o", "nowhere", "--html", "dangling"], ["--html dangling", "--output nowhere"]),
        (
            &["--state", "state", "-o", "state/CURRENT"],
            ["--output state/CURRENT", "the state directory state"],
        ),
        (
            &["--state", "state", "-o", "state/new.ndjson"],
            ["--output state/new.ndjson", "the state directory state"],
        ),
        (
            &["--state", "state", "--html", "state-link/page"],
            ["--html state-link/page", "the state directory state"],
        ),
        (&["--state", "state", "--html", "current"], ["--html current", "the state's file state/CURRENT"]),
        (&["--state", "other", "-o", "other"], ["--output other", "the state directory other"]),
        (&["--state", "other/deep", "-o", "other"], ["--output other", "the state directory other/deep"]),
    ];
    for (arguments, names) in cases {
        refused(&folder, command(&folder, &[&["file", INPUT], *arguments].concat()), *names);
    }
    // The settings file named by the environment variable.
    let mut by_variable = command(&folder, &["file", INPUT, "--html", "settings.toml"]);
    by_variable.env("SAMESTORY_CONFIG", "./settings.toml");
    refused(&folder, by_variable, ["--html settings.toml", "the settings file ./settings.toml"]);
    // Standard input and output, redirected by the shell.
    for (from, name) in [("-", "standard input"), ("/dev/stdin", "the input /dev/stdin")] {
        let mut redirected = command(&folder, &["file", from, "-o", INPUT]);
        redirected.stdin(File::open(root.join(INPUT)).unwrap());
        refused(&folder, redirected, ["--output in.ndjson", name]);
    }
    let append = || OpenOptions::new().append(true).open(root.join(INPUT)).unwrap();
    let mut appended = command(&folder, &["file", INPUT]);
    appended.stdout(append());
    refused(&folder, appended, ["standard output", input]);
    let mut page = command(&folder, &["file", "settings.toml", "--html", "hard"]);
    page.stdout(append());
    refused(&folder, page, ["--html hard", "standard output"]);
}

#[test]
fn a_run_that_fails_leaves_its_outputs_as_they_were() {
    let folder = prepared_folder("failing");
    let lines: String =
        (0..3000).map(|at| format!("{{\"id\":\"{at}\",\"body\":{:?}}}\nbroken\n", story(at, ""))).collect();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(lines.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    folder.write("damaged.gz", &packed[..packed.len() * 2 / 3]);
    let outputs = ["out", "dead", "page"];
    outputs.iter().for_each(|name| folder.write(name, b"of yesterday"));
    let arguments =
        ["file", "damaged.gz", "--quiet", "-o", "out", "--dead-letters", "dead", "--html", "page"];
    let output = command(&folder, &arguments).output().unwrap();
    let printed = stderr(&output);
    assert!(!output.status.success() && printed.contains("cannot read damaged.gz past line"), "{printed}");
    for name in outputs {
        assert_eq!(folder.read(name), "of yesterday", "{name}");
    }
    // The lines so far are kept under another name, which is printed; nothing of the report remains.
    let left: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let partial = |of: &str| left.iter().find(|name| name.starts_with(&format!("{of}.partial-"))).cloned();
    for name in ["out", "dead"] {
        let partial = partial(name).unwrap_or_else(|| panic!("no partial {name} in {left:?}"));
        assert!(printed.contains(&partial), "{printed}");
        assert!(folder.read(&partial).lines().count() > 100);
    }
    assert_eq!(partial("page"), None);
    // A run that cannot start leaves nothing behind.
    folder.fail(&["file", "missing", "-o", "new", "--html", "newer"]);
    folder.fail(&["file", INPUT, "-o", "new", "--html", "no/such/page"]);
    assert!(
        !fs::read_dir(folder.path()).unwrap().any(|entry| entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with("new"))
    );
}

// State directories and outputs used to be world-readable, whatever the articles contained.
#[test]
fn files_with_articles_are_not_world_readable() {
    let folder = prepared_folder("private");
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
    folder.run(&[
        "file",
        INPUT,
        "--state",
        "new/state",
        "-o",
        "kept",
        "--html",
        "page",
        "--dead-letters",
        "dead",
    ]);
    folder.run(&["file", INPUT, "-o", "replaced"]);
    folder.run(&["state", "export", "new/state", "-o", "exported"]);
    assert_eq!(["new", "new/state"].map(mode), [0o700; 2]);
    // A stricter umask of the user applies.
    for name in ["kept", "page", "dead", "replaced", "exported"] {
        assert_eq!(mode(name) & !0o640, 0, "{name} is {:o}", mode(name));
    }
}

#[test]
fn a_finished_file_replaces_the_old_one_and_keeps_links_and_permissions() {
    let folder = prepared_folder("replaced");
    let target = folder.path().join("out");
    folder.write("out", b"of yesterday");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    symlink("out", folder.path().join("latest")).unwrap();
    folder.run(&["file", INPUT, "-o", "latest", "--html", "page"]);
    assert_eq!(verdicts(&folder.read("out")).len(), 3);
    assert!(folder.path().join("latest").is_symlink());
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(folder.read("page").contains("<body>"));
    assert!(!snapshot(folder.path()).keys().any(|path| path.to_string_lossy().contains(".partial-")));
}

#[test]
fn pipes_devices_and_open_files_are_written_directly() {
    let folder = prepared_folder("streams");
    let state = ["--state", "streams-state"];
    for more in [&[][..], &state, &state] {
        folder.run(&[&["file", INPUT, "-o", "/dev/null", "--dead-letters", "/dev/null"], more].concat());
    }
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || {
            let mut text = String::new();
            File::open(fifo).unwrap().read_to_string(&mut text).unwrap();
            text
        }
    });
    folder.run(&["file", INPUT, "-o", "fifo"]);
    assert_eq!(verdicts(&reader.join().unwrap()).len(), 3);
    // >> keeps the existing content; /dev/stdout is that file and is not replaced.
    folder.write("log", b"{\"id\":\"before\"}\n");
    for target in [["-o", "/dev/stdout"], ["-o", "/dev/fd/1"]] {
        let mut appended = command(&folder, &["file", INPUT]);
        appended
            .args(target)
            .stdout(OpenOptions::new().append(true).open(folder.path().join("log")).unwrap());
        assert!(appended.status().unwrap().success());
    }
    let found = verdicts(&folder.read("log"));
    assert_eq!((found.len(), found[0].as_str()), (7, "before - -"));
}

#[test]
fn a_state_only_continues_files_that_it_wrote() {
    let folder = prepared_folder("foreign");
    folder.write("out", b"of somebody else\n");
    let arguments = ["file", INPUT, "--state", "fresh", "-o", "out"];
    let printed = folder.fail(&arguments);
    assert!(printed.contains("out exists, and this state did not write it"), "{printed}");
    assert_eq!(folder.read("out"), "of somebody else\n");
    fs::remove_file(folder.path().join("out")).unwrap();
    folder.run(&arguments);
    // A different file under the same name, longer than the state expects.
    let ours = folder.read("out");
    let other = ours.replace("a0", "b0") + &ours;
    folder.write("out", other.as_bytes());
    let printed = folder.fail(&arguments);
    assert!(printed.contains("out exists, and this state did not write it"), "{printed}");
    assert_eq!(folder.read("out"), other);
    // Lines beyond what the state knows come from a run that was killed: they are written again.
    folder.write("out", (ours.clone() + "{\"id\":\"half").as_bytes());
    folder.run(&arguments);
    assert_eq!(folder.read("out"), ours);
}
