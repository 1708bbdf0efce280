//! The program's commands: what they print, and how they exit.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Write, pipe};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use samestory_engine::text::language::LANGUAGES;
use serde_json::Value;

use crate::texts::demo;

fn samestory(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_samestory"));
    command.args(arguments).env_remove("SAMESTORY_CONFIG").env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// Runs a command to the end; the output never contains terminal escapes.
fn run(arguments: &[&str]) -> Output {
    let output = samestory(arguments).output().unwrap();
    for bytes in [&output.stdout, &output.stderr] {
        assert!(!bytes.contains(&0x1b), "{arguments:?} wrote terminal escapes to a pipe");
    }
    output
}

/// The output of a run that must succeed.
fn out(arguments: &[&str]) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*errors), (Some(0), ""), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&out(arguments)).unwrap()
}

/// Exit code and message of a run that must fail; such a run prints nothing to standard output.
fn failure(arguments: &[&str]) -> (i32, String) {
    let output = run(arguments);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!message.contains("panicked"), "{arguments:?}: {message}");
    (output.status.code().unwrap(), message)
}

/// A separate folder for each test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Writes the body of a demo article, the first with that id, to a file.
    fn article(&self, id: &str) -> String {
        let article = demo().into_iter().find(|article| article.id == id).unwrap();
        self.file(&format!("{id}.txt"), article.body)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If a file is still open the folder stays behind, in the build directory.
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn a_fingerprint_in_json_has_the_documented_keys() {
    let folder = Folder::new("keys");
    let print = json(&["fingerprint", "--format", "json", &folder.article("lantern-post-001")]);
    let keys: BTreeSet<&str> = print.as_object().unwrap().keys().map(String::as_str).collect();
    for key in [
        "language",
        "tokens",
        "shingles",
        "content_hash",
        "simhash64",
        "simhash128",
        "minhash",
        "numerals",
        "scheme",
        "config",
        "compat",
    ] {
        assert!(keys.contains(key), "{key} is missing");
    }
    assert_eq!(print["language"], "en");
    assert_eq!(print["scheme"], 2);
    assert_eq!(print["minhash"].as_array().unwrap().len(), 128);
    assert!(print["tokens"].as_u64().unwrap() > 200);
    let hex = |value: &Value, digits: usize| {
        let text = value.as_str().unwrap();
        let lower = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        assert!(text.len() == digits && text.chars().all(lower), "{text}");
    };
    hex(&print["content_hash"], 32);
    hex(&print["simhash64"], 16);
    hex(&print["simhash128"], 32);
    hex(&print["config"], 8);
    assert!(print["simhash128"].as_str().unwrap().ends_with(print["simhash64"].as_str().unwrap()));
    hex(&print["compat"]["simhash_fnv"], 16);
    hex(&print["compat"]["txtfp_minhash"], 2 * 1032);
    hex(&print["compat"]["txtfp_simhash"], 16);
}

#[test]
fn a_fingerprint_comes_from_a_file_or_from_standard_input() {
    let folder = Folder::new("stdin");
    let file = folder.file("ferry.txt", "The ferry was late again on Tuesday, by 12 minutes.");
    let table = out(&["fingerprint", &file]);
    // A weekday counts as a number.
    assert!(table.contains("tokens        10") && table.contains("numerals      2 distinct"), "{table}");
    assert!(!table.contains("only ever matched word for word"), "{table}");
    let brief = folder.file("brief.txt", "The ferry was late again.");
    assert!(out(&["fingerprint", &brief]).contains("only ever matched word for word"));

    for arguments in [&["fingerprint", "-"][..], &["fingerprint"]] {
        let mut child = samestory(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&fs::read(&file).unwrap()).unwrap();
        let piped = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(piped.replace("standard input", &file), table);
    }
}

#[test]
fn markup_is_derived_from_the_file_name_or_set_by_an_option() {
    let folder = Folder::new("markup");
    let page = "<b>The ferry</b> was late &amp; nobody minded";
    let content = |arguments: &[&str]| {
        json(&[&["fingerprint", "--format", "json"], arguments].concat())["content_hash"].clone()
    };
    let plain = content(&[&folder.file("plain.txt", "The ferry was late & nobody minded")]);
    assert_eq!(content(&[&folder.file("page.html", page)]), plain);
    assert_eq!(content(&["--content-type", "text/html", &folder.file("page.txt", page)]), plain);
    assert_ne!(content(&[&folder.file("page2.txt", page)]), plain);
    let (code, message) = failure(&["fingerprint", "--content-type", "image/png", "x"]);
    assert!(code == 2 && message.contains("text/html"), "{message}");
}

#[test]
fn a_declared_language_counts_only_if_it_is_trusted() {
    let folder = Folder::new("language");
    let file = folder.article("jhilmil-samachar-001");
    let language = |settings: &[&str], tag: &str| {
        let print =
            json(&[settings, &["fingerprint", "--format", "json", "--language", tag, &file]].concat());
        (
            print["language"].as_str().unwrap().to_owned(),
            print["language_source"].as_str().unwrap().to_owned(),
        )
    };
    for tag in ["hi-IN", "mr-IN", "en", &"x".repeat(4096)] {
        assert_eq!(language(&[], tag), ("hi".into(), "text".into()));
    }
    let trust_declared = ["--set", "language.trust=declared"];
    assert_eq!(language(&trust_declared, "mr-IN"), ("mr".into(), "declared".into()));
    assert_eq!(language(&trust_declared, "en"), ("hi".into(), "text".into()));
}

#[test]
fn comparing_two_texts_prints_the_verdict() {
    let folder = Folder::new("compare");
    for (old, new, verdict, match_type, related, sentence) in [
        (
            "lantern-post-002",
            "quay-weekly-001",
            "exact-duplicate",
            Some("exact"),
            None,
            "is the same text as",
        ),
        (
            "lantern-post-001",
            "tidewater-courier-001",
            "near-duplicate",
            Some("near"),
            None,
            "is a near-duplicate of",
        ),
        ("shiosai-001", "yamagiri-001", "near-duplicate", Some("near"), None, "is a near-duplicate of"),
        (
            "gaviota-001",
            "brujula-breve-001",
            "near-duplicate",
            Some("partial"),
            None,
            "lies mostly inside the other",
        ),
        ("lantern-post-003", "long-read-001", "unique", None, Some("extends"), "adds more than it repeats"),
        (
            "harbour-gazette-001",
            "harbour-gazette-002",
            "unique",
            None,
            Some("same-template"),
            "with other facts",
        ),
        ("mandi-patra-001", "mandi-patra-002", "unique", None, Some("same-template"), "with other facts"),
        ("lantern-post-001", "lantern-post-002", "unique", None, None, "is a different text from"),
        ("lantern-post-001", "gaviota-001", "unique", None, None, "are in different languages"),
    ] {
        let (a, b) = (folder.article(old), folder.article(new));
        let answer = json(&["compare", "--format", "json", &a, &b]);
        assert_eq!(answer["verdict"], verdict, "{old} {new}");
        assert_eq!(answer["match_type"].as_str(), match_type, "{old} {new}");
        assert_eq!(answer["related"].as_str(), related, "{old} {new}");
        for share in
            [&answer["similarity"], &answer["containment"]["a_in_b"], &answer["containment"]["b_in_a"]]
        {
            assert!((0.0..=1.0).contains(&share.as_f64().unwrap()), "{old} {new}: {answer}");
        }
        assert!(answer["simhash_distance"].as_u64().unwrap() <= 128);
        assert_passages_match_their_offsets(&answer, &a, &b);

        let table = out(&["compare", &a, &b]);
        let first = table.lines().next().unwrap();
        assert!(first.contains(sentence) && first.contains(&a) && first.contains(&b), "{old} {new}: {first}");
        let line = table.lines().find(|line| line.trim_start().starts_with("verdict")).unwrap();
        assert!(
            line.contains(verdict) && match_type.is_none_or(|kind| line.contains(&format!("({kind})"))),
            "{line}"
        );
    }
}

fn assert_passages_match_their_offsets(answer: &Value, a: &str, b: &str) {
    let [a, b] = [a, b].map(|file| fs::read_to_string(file).unwrap());
    let passages = answer["passages"].as_array().unwrap();
    assert_eq!(
        passages.is_empty(),
        answer["verdict"] == "unique" && answer["related"].is_null(),
        "{passages:?}"
    );
    for passage in passages {
        let part = |text: &str, side: &str| {
            let end = |n: usize| passage[side][n].as_u64().unwrap() as usize;
            text[end(0)..end(1)].to_owned()
        };
        assert_eq!(part(&b, "b"), passage["text"].as_str().unwrap());
        assert!(!part(&a, "a").is_empty());
    }
}

// Two words of seventy were changed, and `compare` called the text unique: it did not know that the phrases which the two
// share are nobody else's. `samestory file` called the same pair a near-duplicate.
#[test]
fn comparing_an_edited_copy_says_what_a_file_run_says() {
    let folder = Folder::new("compare-edited");
    let text = "The ferry between Saltmere and Gull Island will run again from Monday after six weeks of repairs, the \
                operator Northline said on Thursday. Engineers replaced both of the engines and a cracked propeller shaft \
                at the yard in Brackwater, at a cost of 2.4 million. About 900 islanders depend on the crossing, and many \
                have paid for small boats since the breakdown in September. Season tickets will be extended by 45 days.";
    let a = folder.file("a.txt", text);
    let b = folder.file("b.txt", text.replace("Thursday", "Friday evening").replace("many", "some"));
    let answer = json(&["compare", "--format", "json", &a, &b]);
    assert_eq!(
        (answer["verdict"].as_str(), answer["match_type"].as_str()),
        (Some("near-duplicate"), Some("near"))
    );
}

#[test]
fn a_text_cannot_inject_terminal_escapes() {
    let folder = Folder::new("escape");
    let text = "one two \x1b[31mthree four five\x07 six \u{9b}1mseven eight";
    let file = folder.file("escape.txt", text);
    let table = out(&["compare", &file, &file]);
    assert!(table.contains("three four five"), "{table}");
    assert!(!table.contains(|c: char| c.is_control() && c != '\n'), "{table:?}");
}

#[test]
fn an_input_that_cannot_be_read_is_named_with_the_reason() {
    let folder = Folder::new("unreadable");
    let good = folder.article("lantern-post-004");
    let missing = folder.0.join("missing.txt").to_str().unwrap().to_owned();
    let directory = folder.0.to_str().unwrap().to_owned();
    let latin1 = folder.file("latin1.txt", b"caf\xe9 au lait");
    let large = folder.file("large.txt", "word ".repeat(300_000));
    let larger = folder.file("larger.txt", "word ".repeat(900_000));
    let bomb = folder.file("bomb.txt", "\u{fdfa}".repeat(100_000));
    let deep = folder.file("deep.html", "<div>".repeat(100_000) + "deep");
    for (file, parts) in [
        (&missing, &["cannot read", "No such file"][..]),
        (&directory, &["is a directory", "name a file in it"]),
        (&latin1, &["is not UTF-8", "byte 3", "iconv"]),
        (&large, &["longer than 1048576 bytes", "text.max_bytes"]),
        (&larger, &["larger than 4194304 bytes", "text.max_raw_bytes"]),
        (&bomb, &["longer than 1048576 bytes"]),
    ] {
        for arguments in [
            &["fingerprint", file][..],
            &["fingerprint", "--format", "json", file],
            &["compare", file, &good],
            &["compare", &good, file],
        ] {
            let (code, message) = failure(arguments);
            assert_eq!(code, 1, "{message}");
            assert!(message.starts_with("samestory: ") && message.contains(file.as_str()), "{message}");
            assert_eq!(message.lines().count(), 1, "{message}");
            for part in parts {
                assert!(message.contains(part), "{part:?} is not in {message:?}");
            }
        }
    }
    assert_eq!(json(&["fingerprint", "--format", "json", &deep])["tokens"], 1);
}

#[test]
fn standard_input_cannot_be_two_texts() {
    let (code, message) = failure(&["compare", "-", "-"]);
    assert_eq!(code, 2);
    assert!(message.contains("name a file for the other"), "{message}");
    let (code, message) = failure(&["file", "-", "-"]);
    assert_eq!(code, 1);
    assert!(message.contains("- is named twice"), "{message}");
}

#[test]
fn an_empty_input_is_a_text_that_matches_nothing() {
    let folder = Folder::new("empty");
    for (name, content) in [("empty.txt", ""), ("blank.txt", " \n\t\u{a0}"), ("emoji.txt", "🎉🔥")] {
        let file = folder.file(name, content);
        let print = json(&["fingerprint", "--format", "json", &file]);
        assert_eq!((&print["tokens"], &print["language"]), (&0.into(), &"und".into()));
        assert!(out(&["fingerprint", &file]).contains("There is no text here"), "{name}");
        let answer = json(&["compare", "--format", "json", &file, &file]);
        assert_eq!((&answer["verdict"], &answer["passages"]), (&"unique".into(), &Value::Array(vec![])));
    }
}

#[test]
fn settings_that_cannot_be_used_are_refused_by_key_value_and_fix() {
    let folder = Folder::new("settings");
    let article = folder.article("lantern-post-004");
    for (name, settings, parts) in [
        (
            "unknown.toml",
            "[match]\ntreshold = 0.5\n",
            &["unknown.toml", "line 2", "`treshold`", "`threshold`"][..],
        ),
        ("table.toml", "[matching]\nthreshold = 0.5\n", &["table.toml", "`matching`", "`match`"]),
        ("share.toml", "[match]\nthreshold = 1.2\n", &["match.threshold = 1.2", "above 0 and below 1"]),
        ("nan.toml", "[match]\nthreshold = nan\n", &["match.threshold = NaN", "above 0 and below 1"]),
        (
            "lanes.toml",
            "[lsh]\nbands = 32\nrows = 5\n",
            &["lsh.bands × lsh.rows = 32 × 5", "128 lanes", "at most 128"],
        ),
        ("half.toml", "[lsh]\nrows = 5\n", &["lsh.rows = 5", "lsh.bands"]),
        ("recall.toml", "[lsh]\nrecall = 1.0\n", &["recall = 1", "between 0 and 1"]),
        ("bytes.toml", "[text]\nmax_bytes = 0\n", &["text.max_bytes = 0", "at least 1"]),
        (
            "code.toml",
            "[languages.klingon]\nthreshold = 0.5\n",
            &["languages.klingon", "samestory languages"],
        ),
        ("syntax.toml", "[match\n", &["syntax.toml", "line 1"]),
    ] {
        let file = folder.file(name, settings);
        let (code, message) = failure(&["--config", &file, "fingerprint", &article]);
        assert_eq!(code, 2, "{name}: {message}");
        for part in parts {
            assert!(message.contains(part), "{name}: {part:?} is not in {message:?}");
        }
        // The same file, named by the environment variable.
        let output = samestory(&["fingerprint", &article]).env("SAMESTORY_CONFIG", &file).output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(2), message));
    }
    let (code, message) = failure(&["--config", "nowhere/at/all.toml", "languages"]);
    assert!(code == 2 && message.contains("nowhere/at/all.toml"), "{message}");
}

#[test]
fn settings_change_what_counts_as_the_same() {
    let folder = Folder::new("rules");
    let (a, b) = (folder.article("harbour-gazette-001"), folder.article("harbour-gazette-002"));
    let verdict = |settings: &str| {
        let file = folder.file("settings.toml", settings);
        json(&["--config", &file, "compare", "--format", "json", &a, &b])["verdict"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(verdict(""), "unique");
    assert_eq!(verdict("[match]\nmin_confidence = 0.0001"), "near-duplicate");
    assert_eq!(verdict("[languages.en]\nmin_confidence = 0.0001"), "near-duplicate");
    assert_eq!(verdict("[languages.hi]\nmin_confidence = 0.0001"), "unique");
    assert_eq!(verdict("[match]\nalgorithm = \"minhash\"\nthreshold = 0.2"), "near-duplicate");
    assert_eq!(
        verdict("[match]\nalgorithm = \"minhash\"\nthreshold = 0.9\ncontainment_threshold = 0.9"),
        "unique"
    );
    let file = folder.file("short.toml", "[text]\nmax_bytes = 100");
    let (code, message) = failure(&["--config", &file, "fingerprint", &a]);
    assert!(code == 1 && message.contains("text is longer than 100 bytes (text.max_bytes)"), "{message}");
}

#[test]
fn bands_prints_the_choice_the_curve_and_the_load() {
    let page = out(&["bands", "--threshold", "0.7", "--recall", "0.99"]);
    assert_eq!(page.lines().next(), Some("17 bands × 4 rows, 68 of 128 lanes"));
    assert!(page.contains("found at 0.7: 99.") && page.contains("(asked for 99.00 %)"), "{page}");
    assert!(page.contains('█') && page.contains('▲') && page.contains("100 %"), "{page}");
    assert!(page.contains("in a store of a million"), "{page}");
    assert!(out(&["bands", "--bands", "16", "--rows", "8", "-t", "0.5"]).contains("found at 0.5: 6.07 %"));
    for (arguments, part) in [
        (&["--threshold", "1.2"][..], "threshold = 1.2"),
        (&["--threshold", "0"], "threshold = 0"),
        (&["--recall", "1"], "recall = 1"),
        (&["--threshold", "NaN"], "threshold = NaN"),
        (&["--threshold", "0.001", "--recall", "0.9999"], "lower the recall or raise the threshold"),
        (&["--bands", "32", "--rows", "5"], "32 × 5"),
        (&["--bands", "0", "--rows", "5"], "at least 1"),
        (&["--bands", "32"], "--rows"),
        (&["--lanes", "0"], "--lanes"),
        (&["--lanes", "100000", "--bands", "300", "--rows", "300"], "--lanes"),
        (&["--lanes", "99999999999"], "--lanes"),
    ] {
        let (code, message) = failure(&[&["bands"], arguments].concat());
        assert!(code == 2 && message.contains(part), "{arguments:?}: {message}");
    }
}

#[test]
fn languages_lists_every_row() {
    let table = out(&["languages"]);
    assert_eq!(table.lines().count(), LANGUAGES.len() + 1);
    let listed = json(&["languages", "--format", "json"]);
    for (n, language) in LANGUAGES.iter().enumerate() {
        let line = table.lines().nth(n + 1).unwrap();
        assert!(line.starts_with(language.lang.code()) && line.contains(language.name), "{line}");
        assert!(line.contains(language.sample), "{line}");
        assert_eq!(listed[n]["code"], language.lang.code());
        assert_eq!(listed[n]["shingle"], language.shingle);
    }
}

#[test]
fn completions_and_help_are_complete() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = out(&["completions", shell]);
        for command in ["fingerprint", "compare", "bands", "languages"] {
            assert!(script.contains(command), "{shell} does not know {command}");
        }
    }
    let help = out(&["--help"]);
    for part in ["Examples:", "Exit codes:", "samestory compare morning.txt evening.txt", "SAMESTORY_CONFIG"]
    {
        assert!(help.contains(part), "{part} is not in\n{help}");
    }
    let version = concat!("samestory ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(out(&["-V"]), version);
    assert!(out(&["--version"]).starts_with(version));
}

#[test]
fn a_wrong_command_line_is_refused_with_a_hint() {
    for (arguments, part) in [
        (&[][..], "Usage"),
        (&["fingreprint"], "fingerprint"),
        (&["compare", "one.txt"], "<B>"),
        (&["fingerprint", "--format", "xml", "x"], "json, table"),
        (&["languages", "--colour"], "--colour"),
        (&["completions", "tcsh"], "bash"),
    ] {
        let (code, message) = failure(arguments);
        assert!(code == 2 && message.contains(part), "{arguments:?}: {message}");
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = Folder::new("pipe");
    let file = folder.article("lantern-post-001");
    for arguments in [
        &["languages"][..],
        &["languages", "--format", "json"],
        &["bands"],
        &["completions", "bash"],
        &["fingerprint", &file],
        &["fingerprint", "--format", "json", &file],
        &["compare", &file, &file],
        &["compare", "--format", "json", &file, &file],
    ] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let output = samestory(arguments).stdout(writer).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*errors), (Some(0), ""), "{arguments:?}");
    }
}
