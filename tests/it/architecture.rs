//! Each external crate, the environment and unsafe code have one home.
//!
//! Crate borders keep Kafka, HTTP and the command line out of the engine. What they cannot say is tested here: source
//! files are read as text, with comments and literals blanked out.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A name that begins a path, or a keyword, and the path prefixes of the files that may use it.
const HOMES: &[(&str, &[&str])] = &[
    ("rdkafka", &["src/kafka"]),
    // The index has a module of that name, which it re-exports.
    ("rocksdb", &["crates/samestory-engine/src/index/rocksdb", "crates/samestory-engine/src/index/mod.rs"]),
    (
        "serde_json",
        &[
            "src/formats",
            "src/commands",
            "src/files",
            "src/report",
            "src/serve",
            "src/terminal",
            "crates/samestory-eval",
        ],
    ),
    ("ureq", &["src/formats/registry/http.rs"]),
    ("apache_avro", &["src/formats/avro"]),
    ("metrics_exporter_prometheus", &["src/metrics"]),
    ("axum", &["src/serve"]),
    ("hyper", &["src/serve"]),
    ("tokio", &["src/serve"]),
    ("rustix", &["src/metrics"]),
    ("clap", &["src/commands"]),
    ("html5gum", &["crates/samestory-engine/src/text/markup"]),
    ("pulldown_cmark", &["crates/samestory-engine/src/text/markup"]),
    (
        "std::env",
        &[
            "src/config",
            "src/commands",
            "src/terminal",
            "src/temporary.rs",
            // Unit tests look up the temporary directory.
            "crates/samestory-engine/src/index/rocksdb/maintenance/upkeep.rs",
            "crates/samestory-engine/src/deduplicator.rs",
            "crates/samestory-eval/src/homes.rs",
        ],
    ),
    (
        "unsafe",
        &[
            "crates/samestory-engine/src/fingerprint/minhash.rs",
            "crates/samestory-engine/src/text/block.rs",
            "src/kafka/admin/ids.rs",
        ],
    ),
];

/// The rules that a source file breaks, as `file:line: …`. `path` is relative to the workspace.
fn complaints(path: &str, source: &str) -> Vec<String> {
    let code = blank_comments_and_literals(source);
    let mut found = Vec::new();
    for (name, homes) in HOMES {
        if homes.iter().any(|home| path.starts_with(home)) {
            continue;
        }
        for (number, line) in code.lines().enumerate() {
            if uses(line, name) {
                found.push(format!("{path}:{}: {name} has its home in {}", number + 1, homes.join(", ")));
            }
        }
    }
    found
}

/// True if a line of code uses a name: as the beginning of a path, after `use`, or as a keyword.
fn uses(line: &str, name: &str) -> bool {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    line.match_indices(name).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        let begins = !before.ends_with(is_word) && !before.ends_with("::") && !before.ends_with('.');
        let ends = !after.starts_with(is_word);
        let imported = before.trim_end().ends_with("use") || before.trim_end().ends_with("extern crate");
        begins && ends && (name == "unsafe" || after.starts_with("::") || imported)
    })
}

/// Replaces comments, strings and characters by spaces; everything else keeps its offset.
fn blank_comments_and_literals(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        let blank = blank_here(rest, code.chars().next_back());
        let len = if blank > 0 { blank } else { rest.chars().next().map_or(1, char::len_utf8) };
        if blank > 0 {
            code.extend(rest[..blank].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        } else {
            code.push_str(&rest[..len]);
        }
        at += len;
    }
    code
}

/// Length of the comment or literal that starts here.
fn blank_here(rest: &str, before: Option<char>) -> usize {
    let until =
        |from: usize, end: &str| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return until(2, "*/");
    }
    let in_a_word = before.is_some_and(|c| c == '_' || c.is_alphanumeric());
    if let Some(raw) = rest.strip_prefix('r').filter(|_| !in_a_word) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            return until(2 + hashes, &format!("\"{}", "#".repeat(hashes)));
        }
    }
    let quoted = |quote: char| {
        let mut escaped = false;
        let end = rest.char_indices().skip(1).find(|&(_, c)| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        end.map_or(rest.len(), |(at, _)| at + 1)
    };
    if rest.starts_with('"') {
        return quoted('"');
    }
    // A quote with one character or an escape in it; otherwise it is a lifetime.
    let mut ahead = rest.chars();
    match (ahead.next(), ahead.next(), ahead.next()) {
        (Some('\''), Some('\\'), _) | (Some('\''), Some(_), Some('\'')) => quoted('\''),
        _ => 0,
    }
}

fn source_files(directory: &Path, root: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            source_files(&path, root, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/"));
        }
    }
}

#[test]
fn every_external_crate_stays_in_its_home() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = BTreeSet::new();
    for directory in ["src", "crates/samestory-engine/src", "crates/samestory-eval/src"] {
        source_files(&root.join(directory), root, &mut files);
    }
    assert!(files.contains("src/lib.rs") && files.len() > 200, "{files:?}");
    let found: Vec<String> = files
        .iter()
        .flat_map(|file| complaints(file, &fs::read_to_string(root.join(file)).unwrap()))
        .collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn a_crate_away_from_home_is_named_with_its_line() {
    for (path, source, name) in [
        ("src/files/mod.rs", "use rdkafka::message::Message;", "rdkafka"),
        ("src/kafka/turn/txn.rs", "fn open() -> rocksdb::DB { todo!() }", "rocksdb"),
        ("src/serve/mod.rs", "use rocksdb as r;", "rocksdb"),
        ("src/status.rs", "fn f() { std::env::var(\"HOME\"); }", "std::env"),
        ("src/status.rs", "fn f() { unsafe { g() } }", "unsafe"),
    ] {
        let found = complaints(path, source).concat();
        assert!(found.starts_with(&format!("{path}:1: {name} has its home in ")), "{source}: {found}");
    }
    for (path, source) in [
        ("src/kafka/turn/txn.rs", "use rdkafka::message::Message;"),
        ("src/commands/mod.rs", "let rocksdb = cfg!(feature = \"rocksdb\");"),
        (
            "src/status.rs",
            "// unsafe, rdkafka::Message\n#![deny(unsafe_code)]\nlet a = \"rdkafka::Message\";",
        ),
    ] {
        assert_eq!(complaints(path, source), [""; 0], "{source}");
    }
}
