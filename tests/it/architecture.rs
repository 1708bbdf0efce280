//! Enforces the import table: data flows one way, and each external crate is used in one place only.
//!
//! Source files are read as text. Comments and literals are blanked out first; then every path that starts at
//! the crate root (`crate::…`, or `super::…` that climbs there) is looked up in the table.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Which module may import which. Every module must be listed.
const MODULES: &[(&str, Imports)] = &[
    ("listed", Only(&[])),
    ("terminal", Only(&[])),
    ("model", Only(&[])),
    ("event", Only(&["model"])),
    ("text", Only(&["model"])),
    ("fingerprint", Only(&["text", "model"])),
    ("lsh", Only(&["fingerprint"])),
    // A language is decoded by its code, which needs the table in `text`.
    ("temporary", Only(&[])),
    ("store", Only(&["model", "text", "fingerprint", "lsh"])),
    ("detect", Only(&["model", "event", "text", "fingerprint", "lsh", "store"])),
    ("health", Only(&[])),
    ("metrics", Only(&["health"])),
    ("schemas", Only(&[])),
    // The config holds the engine's own types.
    ("config", Only(&["model", "event", "text", "fingerprint", "lsh", "store", "detect"])),
    ("registry", Only(&["model", "event", "config", "schemas"])),
    ("stream", Only(STREAM)),
    ("local", Only(AROUND_DETECT)),
    ("http", Only(AROUND_DETECT)),
    ("eval", Only(AROUND_DETECT)),
    ("cli", Anything),
    ("main", Anything),
    ("lib", Anything),
];

/// `stream`, `local`, `http` and `eval` are siblings and do not import each other.
const AROUND_DETECT: &[&str] = &[
    "model",
    "event",
    "text",
    "fingerprint",
    "lsh",
    "store",
    "detect",
    "config",
    "health",
    "metrics",
    "terminal",
    "temporary",
];

/// Only the Kafka modules use a schema registry.
const STREAM: &[&str] = &[
    "model",
    "event",
    "text",
    "fingerprint",
    "lsh",
    "store",
    "detect",
    "config",
    "health",
    "metrics",
    "schemas",
    "registry",
    "temporary",
];

/// An external crate, and the path prefixes that may use it.
const HOMES: &[(&str, &[&str])] = &[
    ("rdkafka", &["src/stream"]),
    ("rocksdb", &["src/store/rocks"]),
    (
        "serde_json",
        &[
            "src/event",
            "src/cli",
            "src/local",
            "src/http",
            "src/eval",
            "src/registry",
            "src/schemas",
            "src/terminal.rs",
        ],
    ),
    ("ureq", &["src/registry/http.rs"]),
    ("apache_avro", &["src/event"]),
    ("metrics_exporter_prometheus", &["src/metrics"]),
    ("axum", &["src/http"]),
    ("hyper", &["src/http"]),
    ("tokio", &["src/http"]),
    ("rustix", &["src/metrics"]),
    ("html5gum", &["src/text/markup"]),
    ("pulldown_cmark", &["src/text/markup"]),
    // Unit tests look up the temporary directory.
    ("std::env", &["src/config", "src/cli", "src/store/rocks/upkeep.rs", "src/temporary.rs"]),
    ("unsafe", &["src/fingerprint/minhash.rs", "src/text/block.rs", "src/stream/ids.rs"]),
];

#[derive(Clone, Copy)]
enum Imports {
    Only(&'static [&'static str]),
    Anything,
}
use Imports::{Anything, Only};

impl Imports {
    fn allow(self, module: &str) -> bool {
        match self {
            Only(names) => names.contains(&module),
            Anything => true,
        }
    }
}

/// The violations in one source file, as `file:line: …`. `path` is relative to the package.
fn violations(path: &str, source: &str) -> Vec<String> {
    let modules = module_path(path);
    let Some(&(module, imports)) = MODULES.iter().find(|(name, _)| modules.first().copied() == Some(name))
    else {
        return vec![format!(
            "{path}:1: no such module in the import table; add it and decide who may import it"
        )];
    };
    let code = blank_comments_and_literals(source);
    let tokens = tokens(&code);
    let at = |token: &Token<'_>| format!("{path}:{}", 1 + code[..token.start].matches('\n').count());
    let mut found = Vec::new();
    // Files at the crate root have depth 0, `src/lsh.rs` has 1, inline modules are deeper.
    let depth = if matches!(module, "lib" | "main") { 0 } else { modules.len() };
    for (token, name) in from_the_root(&tokens, depth) {
        if name == "*" {
            found.push(format!("{}: {module} may not import everything; name what it uses", at(token)));
        } else if name != module && !imports.allow(name) {
            found.push(format!("{}: {module} may not import {name}", at(token)));
        }
    }
    for (outsider, homes) in HOMES {
        if homes.iter().any(|home| path.starts_with(home)) {
            continue;
        }
        let (first, second) = outsider.split_once("::").map_or((*outsider, None), |(a, b)| (a, Some(b)));
        for (n, token) in tokens.iter().enumerate().filter(|(_, token)| token.text == first) {
            // A crate name starts a path or follows `use`; a variable may have the same name.
            let before = n.checked_sub(1).map_or("", |before| tokens[before].text);
            let after = tokens.get(n + 1).map_or("", |after| after.text);
            let used = first == "unsafe" || after == "::" || matches!(before, "use" | "crate");
            let named = |second: &str| heads(&tokens[n + 1..]).iter().any(|head| head.text == second);
            if used && second.is_none_or(named) {
                found.push(format!("{}: {outsider} has its home in {}", at(token), homes.join(", ")));
            }
        }
    }
    found
}

/// `src/text/language/table.rs` becomes text, language, table; a folder's `mod.rs` is the folder itself.
fn module_path(path: &str) -> Vec<&str> {
    let path = path.strip_prefix("src/").unwrap_or(path);
    let path = path.strip_suffix(".rs").unwrap_or(path);
    path.strip_suffix("/mod").unwrap_or(path).split('/').collect()
}

#[derive(Clone, Copy)]
struct Token<'a> {
    start: usize,
    text: &'a str,
}

/// Splits code into names, `::`, and single characters.
fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(first) = code[start..].chars().next() {
        let word = |c: char| c == '_' || c.is_alphanumeric();
        let rest = &code[start..];
        let len = if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            tokens.push(Token { start, text: &rest[..len] });
        }
        start += len;
    }
    tokens
}

/// The first segments after a path's root: `::a` has a, `::{a::b, c}` has a and c.
fn heads<'a>(after: &[Token<'a>]) -> Vec<Token<'a>> {
    match after {
        [colons, open, inside @ ..] if colons.text == "::" && open.text == "{" => {
            let mut heads = Vec::new();
            let (mut open, mut fresh) = (1, true);
            for token in inside {
                match token.text {
                    "{" => open += 1,
                    "}" => open -= 1,
                    "," if open == 1 => fresh = true,
                    _ if fresh => {
                        heads.push(*token);
                        fresh = false;
                    }
                    _ => {}
                }
                if open == 0 {
                    break;
                }
            }
            heads
        }
        [colons, head, ..] if colons.text == "::" => vec![*head],
        _ => Vec::new(),
    }
}

/// Every path that starts at the crate root, with its first segment.
fn from_the_root<'t, 'a>(tokens: &'t [Token<'a>], depth: usize) -> Vec<(&'t Token<'a>, &'a str)> {
    let mut found = Vec::new();
    // For every open brace, whether it belongs to a module.
    let mut braces = Vec::new();
    for (n, token) in tokens.iter().enumerate() {
        let before = |back: usize| n.checked_sub(back).map_or("", |at| tokens[at].text);
        let climbed = |supers: usize| supers == depth + braces.iter().filter(|module| **module).count();
        match token.text {
            "{" => braces.push(before(2) == "mod"),
            "}" => {
                braces.pop();
            }
            "crate" => found.extend(heads(&tokens[n + 1..]).iter().map(|head| (token, head.text))),
            "super" if before(1) != "::" => {
                let supers = 1 + tokens[n + 1..]
                    .chunks_exact(2)
                    .take_while(|pair| pair[0].text == "::" && pair[1].text == "super")
                    .count();
                if climbed(supers) {
                    let rest = &tokens[n + 2 * supers - 1..];
                    found.extend(heads(rest).iter().map(|head| (token, head.text)));
                }
            }
            _ => {}
        }
    }
    found
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

fn source_files(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            source_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap();
            found.insert(relative.to_str().unwrap().replace('\\', "/"));
        }
    }
}

#[test]
fn every_source_file_follows_the_import_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = BTreeSet::new();
    source_files(&root.join("src"), &mut files);
    assert!(files.contains("src/lib.rs") && files.len() > 20, "{files:?}");
    let found: Vec<String> = files
        .iter()
        .flat_map(|file| violations(file, &fs::read_to_string(root.join(file)).unwrap()))
        .collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn the_table_names_modules_that_come_before() {
    // With a cycle, no order of the rows could place every import above its user.
    let mut above = BTreeSet::new();
    for (module, imports) in MODULES {
        if let Only(names) = imports {
            for name in *names {
                assert!(above.contains(name), "{module} imports {name}, which stands below it");
            }
        }
        assert!(above.insert(module), "{module} has two rows");
    }
}

#[test]
fn a_forbidden_import_is_named_with_its_line() {
    let refused = |path, source| violations(path, source).join("\n");
    assert_eq!(
        refused("src/lsh.rs", "use std::fmt;\n\nuse crate::store::View;\n"),
        "src/lsh.rs:3: lsh may not import store"
    );
    assert_eq!(
        refused("src/text/shingle.rs", "use crate::{model::Lang, lsh::{Banding, BandKey}, detect};"),
        "src/text/shingle.rs:1: text may not import lsh\nsrc/text/shingle.rs:1: text may not import detect"
    );
    assert_eq!(
        refused("src/http/page.rs", "fn page() {\n    crate::stream::turn()\n}"),
        "src/http/page.rs:2: http may not import stream"
    );
    assert_eq!(
        refused("src/model.rs", "pub use crate::*;"),
        "src/model.rs:1: model may not import everything; name what it uses"
    );
}

#[test]
fn a_super_path_to_the_root_is_an_import() {
    assert_eq!(violations("src/lsh.rs", "use super::store;"), ["src/lsh.rs:1: lsh may not import store"]);
    assert_eq!(
        violations("src/text/language/mod.rs", "\nuse super::super::{model, store::View};"),
        ["src/text/language/mod.rs:2: text may not import store"]
    );
    assert_eq!(
        violations("src/lsh.rs", "mod tests { fn f() {} use super::super::store; }"),
        ["src/lsh.rs:1: lsh may not import store"]
    );
    let inside = "mod tests {\n    use super::*;\n    fn f() { mod deep { use super::super::store; } }\n}";
    assert_eq!(violations("src/lsh.rs", inside), [""; 0]);
    assert_eq!(
        violations("src/text/chars.rs", "mod class { pub(in super::super) const A: u8 = 0; }"),
        [""; 0]
    );
}

#[test]
fn an_unknown_module_is_refused() {
    for path in ["src/utils.rs", "src/utils/mod.rs", "src/helpers/rocks.rs"] {
        assert!(violations(path, "").concat().contains("no such module"), "{path}");
    }
}

#[test]
fn an_external_crate_outside_its_modules_is_refused() {
    for (path, source, outsider) in [
        ("src/detect/plan.rs", "use rdkafka::message::Message;", "rdkafka"),
        ("src/store/memory.rs", "fn open() -> rocksdb::DB { todo!() }", "rocksdb"),
        ("src/store/memory.rs", "use rocksdb as r;", "rocksdb"),
        ("src/store/memory.rs", "extern crate rocksdb;", "rocksdb"),
        ("src/fingerprint/mod.rs", "use serde_json::json;", "serde_json"),
        ("src/text/normalize.rs", "use html5gum::Tokenizer;", "html5gum"),
        ("src/cli/input.rs", "use pulldown_cmark::Parser;", "pulldown_cmark"),
        ("src/detect/mod.rs", "fn f() { std::env::var(\"HOME\"); }", "std::env"),
        ("src/detect/mod.rs", "use std::{collections::BTreeMap, env};", "std::env"),
        ("src/fingerprint/simhash.rs", "fn f() { unsafe { g() } }", "unsafe"),
    ] {
        let found = violations(path, source).concat();
        assert!(found.starts_with(&format!("{path}:1: {outsider} has its home in ")), "{source}: {found}");
    }
    for (path, source) in [
        ("src/stream/txn.rs", "use rdkafka::message::Message;"),
        ("src/store/rocks.rs", "use rocksdb::DB;"),
        ("src/cli/mod.rs", "let rocksdb = cfg!(feature = \"rocksdb\");"),
        ("src/store/rocks/open.rs", "use rocksdb::DB;"),
        ("src/fingerprint/minhash.rs", "fn f() { unsafe { g() } }"),
        ("src/lsh.rs", "#![deny(unsafe_code)]\nconst ROOT: &str = env!(\"CARGO_MANIFEST_DIR\");"),
    ] {
        assert_eq!(violations(path, source), [""; 0], "{source}");
    }
}

#[test]
fn comments_and_literals_are_not_imports() {
    let source = r##"
        //! [`crate::store`] and unsafe and serde_json
        /* crate::store /**/
        const A: &str = "crate::store \" crate::store";
        const B: &str = r#"crate::store " unsafe"#;
        const C: [char; 3] = ['"', '\'', '\\'];
        fn f<'a>(x: &'a str) -> &'a str { x }
        use crate::fingerprint::LANES;
    "##;
    assert_eq!(violations("src/lsh.rs", source), [""; 0]);
    let after = format!("{source}use crate::store;");
    assert_eq!(violations("src/lsh.rs", &after), ["src/lsh.rs:9: lsh may not import store"]);
}
