//! `samestory state …` on states that are sound, damaged, in use, unfinished, foreign or missing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use samestory_engine::fingerprint::Fingerprint;
use samestory_engine::rocksdb::{ColumnFamilyDescriptor, DB, IteratorMode, Options};
use serde_json::Value;

use super::folder::{Folder, RunOutput, story};

const COMMANDS: [&str; 7] = ["inspect", "verify", "compact", "export", "pairs", "check-corpus", "rebuild"];

/// Stories in two languages with copies, light edits, an update and a delete; the state that has processed
/// them is `state`.
fn judged(folder: &Folder, articles: usize) {
    let mut lines = String::new();
    for at in 0..articles {
        let lang = ["de", "en"][at % 2];
        let (id, text) = match at % 10 {
            6 => (format!("c{at}"), story(at - 6, "")),
            7 => (format!("e{at}"), story(at - 6, "Edited by another desk.")),
            8 => (format!("a{}", at - 8), story(at, "")),
            _ => (format!("a{at}"), story(at, "")),
        };
        let seconds = at % 60;
        lines += &format!(
            "{{\"id\":\"{id}\",\"lang\":\"{lang}\",\"text\":{text:?},\"title\":\"Of {at}\",\"fetched_at\":\"2026-03-02T06:10:{seconds:02}Z\"}}\n"
        );
    }
    lines += "{\"id\":\"a1\",\"deleted\":true}\n";
    folder.write("one.ndjson", lines.as_bytes());
    folder.run(&["file", "one.ndjson", "--state", "state", "--output", "out.ndjson", "--quiet"]);
}

/// Runs a command that must fail; returns its output.
fn refused(folder: &Folder, arguments: &[&str]) -> RunOutput {
    let (success, printed) = folder.start(arguments, b"");
    assert!(!success, "{arguments:?} should have failed: {}", printed.stdout);
    assert!(!printed.stderr.contains("panicked"), "{}", printed.stderr);
    printed
}

fn export(folder: &Folder) -> Vec<Value> {
    let printed = folder.run(&["state", "export", "state", "--quiet"]);
    printed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn inspect(folder: &Folder) -> Value {
    serde_json::from_str(&folder.run(&["state", "inspect", "state", "--json"]).stdout).unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// Opens the database directly, bypassing the program.
fn tampered(state: &Path, tamper: impl FnOnce(&DB)) {
    let names = DB::list_cf(&Options::default(), state).unwrap();
    let families = names.iter().map(|name| ColumnFamilyDescriptor::new(name, Options::default()));
    let db = DB::open_cf_descriptors(&Options::default(), state, families).unwrap();
    tamper(&db);
}

fn rows(db: &DB, family: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let family = db.cf_handle(family).unwrap();
    db.iterator_cf(&family, IteratorMode::Start)
        .map(|row| row.map(|(key, value)| (key.into_vec(), value.into_vec())).unwrap())
        .collect()
}

/// The SST files of a column family.
fn tables(state: &Path, family: &str) -> Vec<PathBuf> {
    let mut tables = Vec::new();
    tampered(state, |db| {
        let files = db.live_files().unwrap();
        let of = files.iter().filter(|file| file.column_family_name == family);
        tables.extend(of.map(|file| state.join(file.name.trim_start_matches('/'))));
    });
    assert!(!tables.is_empty(), "{family} has no table");
    tables
}

fn flip(table: &Path) {
    let mut bytes = fs::read(table).unwrap();
    // The data is at the front of the file.
    bytes[40] ^= 0x10;
    fs::write(table, bytes).unwrap();
}

#[test]
fn a_state_is_inspected_verified_compacted_and_exported() {
    let folder = Folder::trust_declared("state-commands");
    judged(&folder, 60);
    let seen = inspect(&folder);
    assert_eq!(seen["format"]["version"], 3);
    assert_eq!(seen["format"]["scheme"], 2);
    assert_eq!(seen["format"]["changelog_partition"], Value::Null);
    assert_eq!(seen["remarks"], serde_json::json!([]));
    assert_eq!(seen["inputs"].as_array().unwrap().len(), 1);
    assert_eq!(seen["outputs"].as_array().unwrap().len(), 1);
    assert_eq!(seen["inputs"][0]["next"], 61);
    assert!(seen["inputs"][0]["name"].as_str().unwrap().ends_with("one.ndjson"));
    let documents = export(&folder);
    for language in seen["languages"].as_array().unwrap() {
        let own = |document: &&Value| document["language"] == language["language"];
        let mine: Vec<&Value> = documents.iter().filter(own).collect();
        assert_eq!(language["documents"], mine.len());
        let mut numbers: Vec<u64> =
            mine.iter().map(|document| document["number"].as_u64().unwrap()).collect();
        assert!(numbers.is_sorted() && language["next_number"].as_u64().unwrap() > numbers.pop().unwrap());
        // 15 bands, 16 samples and the content hash; a text of 120 words has all of them.
        assert_eq!(language["postings"], 32 * mine.len());
        assert!(language["clusters"].as_u64().unwrap() > 0);
        assert_eq!(language["stream_time"].as_str().unwrap().len(), "2026-03-02T06:10:59Z".len());
    }
    let edited = documents.iter().find(|document| document["id"] == "e17").unwrap();
    assert_eq!(edited["verdict"], "near-duplicate");
    assert_eq!(edited["duplicate_of"], "a11");
    let founder = documents.iter().find(|document| document["id"] == "a11").unwrap();
    let cluster = format!("{}:0:{}", founder["language"].as_str().unwrap(), founder["number"]);
    assert_eq!(edited["cluster_id"], cluster);
    assert_eq!(edited["title"], "Of 17");
    assert_eq!(edited["last_seen"], "2026-03-02T06:10:17Z");
    assert_eq!(edited["input"], serde_json::json!({"file": "one.ndjson", "line": 18}));
    assert!(documents.iter().all(|document| document["id"] != "a1"), "it was deleted");
    let updated = documents.iter().find(|document| document["id"] == "a10").unwrap();
    assert_eq!(updated["revision"], 1);

    let table = folder.run(&["state", "inspect", "state"]).stdout;
    for words in ["format 3, scheme 2", "minhash 15×4", "a log of its own", "English (en)", "one.ndjson"] {
        assert!(table.contains(words), "{words} is missing in:\n{table}");
    }
    let sound = folder.run(&["state", "verify", "state"]).stdout;
    let counts = format!("{} documents, {} postings: sound", documents.len(), 32 * documents.len());
    assert!(sound.replace(',', "").contains(&counts.replace(',', "")), "{sound}");
    let compacted = folder.run(&["state", "compact", "state"]).stdout;
    assert!(compacted.contains(" before, ") && compacted.contains(" after"), "{compacted}");
    folder.run(&["state", "verify", "state"]);
    assert_eq!(export(&folder), documents);

    folder.run(&["state", "export", "state", "--fingerprints", "--output", "documents.ndjson"]);
    for (line, document) in folder.read("documents.ndjson").lines().zip(&documents) {
        let mut with: Value = serde_json::from_str(line).unwrap();
        let hex = with.as_object_mut().unwrap().remove("fingerprint").unwrap();
        let digits: Vec<char> = hex.as_str().unwrap().chars().collect();
        let bytes = digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16));
        let print = Fingerprint::decode(&bytes.collect::<Result<Vec<u8>, _>>().unwrap()).unwrap();
        assert_eq!(format!("{:032x}", print.content), document["content_hash"].as_str().unwrap());
        assert_eq!(with, *document);
    }
}

#[test]
fn a_state_of_format_one_is_refused_by_every_command_with_a_way_out() {
    let folder = Folder::trust_declared("state-kept");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/state");
    copy(&kept.join("v1"), &folder.path().join("state"));
    for command in ["inspect", "verify", "compact", "export"] {
        let printed = refused(&folder, &["state", command, "state"]);
        assert!(
            printed.stderr.contains("format version 1")
                && printed.stderr.contains("`samestory state rebuild`"),
            "{command}: {}",
            printed.stderr
        );
    }
    let printed = refused(&folder, &["state", "rebuild", "state"]).stderr;
    assert!(
        printed.contains("format version 1") && printed.contains("restores itself from its changelog"),
        "{printed}"
    );
}

#[test]
fn a_flipped_byte_is_found_and_damaged_bands_are_rebuilt() {
    let folder = Folder::trust_declared("state-flipped");
    judged(&folder, 200);
    // The postings of the newest documents are in memory; now they are on disk.
    folder.run(&["state", "compact", "state"]);
    let state = folder.path().join("state");
    let documents = export(&folder);
    let damaged = [tables(&state, "bands:de"), tables(&state, "bands:en")].concat();
    damaged.iter().for_each(|table| flip(table));
    let printed = refused(&folder, &["state", "verify", "state"]);
    for table in &damaged {
        let name = table.file_name().unwrap().to_str().unwrap();
        assert!(printed.stdout.contains(name), "{name} is not named in:\n{}", printed.stdout);
    }
    assert!(printed.stdout.contains("checksum mismatch"), "{}", printed.stdout);
    assert!(printed.stderr.contains("`samestory state rebuild --force state`"), "{}", printed.stderr);
    folder.run(&["state", "rebuild", "--force", "state"]);
    folder.run(&["state", "verify", "state"]);
    assert_eq!(export(&folder), documents);
}

#[test]
fn damaged_documents_are_named_and_nothing_is_dropped() {
    let folder = Folder::trust_declared("state-documents");
    judged(&folder, 200);
    folder.run(&["state", "compact", "state"]);
    let state = folder.path().join("state");
    let table = tables(&state, "docs:en").remove(0);
    flip(&table);
    let printed = refused(&folder, &["state", "verify", "state"]);
    assert!(printed.stdout.contains(table.file_name().unwrap().to_str().unwrap()), "{}", printed.stdout);
    assert!(printed.stdout.contains("bands:en: not compared with its documents"), "{}", printed.stdout);
    assert!(!printed.stdout.contains("bands:de"), "{}", printed.stdout);
    for words in ["run `samestory file` over the same files", "one.ndjson"] {
        assert!(printed.stderr.contains(words), "{}", printed.stderr);
    }
    folder.write("other.toml", b"[lsh]\nbands = 16\nrows = 8\n");
    for arguments in [&["--force"][..], &["--config", "other.toml"]] {
        let printed = refused(&folder, &[&["state", "rebuild", "state"], arguments].concat());
        assert!(
            printed.stderr.contains("is damaged") && printed.stderr.contains("was left as it is"),
            "{}",
            printed.stderr
        );
        assert!(printed.stderr.contains("run `samestory file` over the same files"), "{}", printed.stderr);
    }
    let mut postings = 0;
    tampered(&state, |db| postings = rows(db, "bands:en").len());
    assert!(postings > 0, "the bands were dropped, and cannot be rebuilt");
    assert!(refused(&folder, &["state", "export", "state"]).stderr.contains("is damaged"));
    // A truncated SST file is detected when it is opened.
    fs::write(&table, b"short").unwrap();
    for command in COMMANDS {
        let printed = refused(&folder, &["state", command, "state"]);
        let name = table.file_name().unwrap().to_str().unwrap();
        assert!(
            format!("{}{}", printed.stdout, printed.stderr).contains(name),
            "{command}: {}",
            printed.stderr
        );
    }
}

#[test]
fn every_inconsistent_row_is_named() {
    let folder = Folder::trust_declared("state-rows");
    judged(&folder, 60);
    folder.run(&["state", "compact", "state"]);
    let state = folder.path().join("state");
    let mut gone = 0;
    tampered(&state, |db| {
        let handle = |name: &str| db.cf_handle(name).unwrap();
        // A document whose postings stay, and one whose postings no longer count.
        let documents = rows(db, "docs:en");
        let number = |at: usize| u64::from_be_bytes(documents[at].0[..].try_into().unwrap());
        gone = number(documents.len() / 2);
        db.delete_cf(&handle("docs:en"), gone.to_be_bytes()).unwrap();
        let mut removed = [0; 513];
        removed[0] = 1;
        removed[1 + number(0) as usize / 8] = 1 << (number(0) % 8);
        let key = [&b"removed\x02en"[..], &[0; 8]].concat();
        db.put_cf(&handle("meta"), key, removed).unwrap();
        // Rows of another document, and of one that does not exist.
        let ids = rows(db, "ids");
        db.put_cf(&handle("ids"), &ids[0].0, &ids[2].1).unwrap();
        db.delete_cf(&handle("ids"), &ids[4].0).unwrap();
        db.put_cf(&handle("ids"), b"\x00\x03xyz\x02en", 4661u64.to_be_bytes()).unwrap();
        let expiry = rows(db, "expiry");
        db.delete_cf(&handle("expiry"), &expiry[0].0).unwrap();
        let mut member = rows(db, "clusters").pop().unwrap().0;
        db.delete_cf(&handle("clusters"), &member).unwrap();
        let end = member.len() - 8;
        member[end..].copy_from_slice(&4662u64.to_be_bytes());
        db.put_cf(&handle("clusters"), &member, []).unwrap();
        let documents = rows(db, "docs:de");
        db.put_cf(&handle("docs:de"), 9999u64.to_be_bytes(), &documents[0].1).unwrap();
        db.put_cf(&handle("meta"), b"scribble", b"?").unwrap();
    });
    let found = refused(&folder, &["state", "verify", "state"]).stdout;
    let names = format!(" names document {gone}, which does not exist");
    for words in [
        "bands:en: document ",
        " has no posting in ",
        &names,
        " points to document ",
        ", but belongs to document ",
        " is missing; it belongs to document ",
        "ids: id \"xyz\" (en) points to document 4661, which does not exist",
        "expiry: document ",
        " ms, has no row",
        " does not list document ",
        " lists document 4662, which does not exist",
        "docs:de: key \\x00\\x00\\x00\\x00\\x00\\x00\\'\\x0f: invalid value: a number that is not its key",
        "meta: key scribble: invalid value: a row of this name",
        "meta: position: the next de document would get number ",
    ] {
        assert!(found.contains(words), "{words:?} is not in:\n{found}");
    }
    assert!(!found.contains("bands:de"), "{found}");
}

#[test]
fn a_rebuild_killed_in_the_middle_starts_over() {
    let folder = Folder::trust_declared("state-killed");
    judged(&folder, 6000);
    let documents = export(&folder);
    folder.write("new.toml", b"[lsh]\nbands = 42\nrows = 3\n");
    let rebuild = ["--config", "new.toml", "state", "rebuild", "state"];
    let more =
        "{\"id\":\"z1\",\"lang\":\"en\",\"text\":".to_owned() + &format!("{:?}}}\n", story(101, "And more."));
    folder.write("two.ndjson", more.as_bytes());
    let file = ["--config", "new.toml", "file", "two.ndjson", "--state", "state", "--no-article"];
    for progress in ["bands of state", "de: "] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_samestory"))
            .args(rebuild)
            .current_dir(folder.path())
            .env_remove("SAMESTORY_CONFIG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with(progress)), "it never printed {progress:?}");
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success(), "it completed before it was killed after {progress:?}");
        if progress == "de: " {
            assert!(inspect(&folder)["format"]["rebanding"].as_bool().unwrap());
        }
        let refusal = folder.fail(&file);
        assert!(refusal.contains("`samestory state rebuild`"), "{refusal}");
    }
    let printed = refused(&folder, &["state", "verify", "state"]);
    assert!(printed.stdout.contains("a rebuild of the bands was interrupted"), "{}", printed.stdout);
    assert!(printed.stderr.contains("`samestory state rebuild state`"), "{}", printed.stderr);
    let done = folder.run(&rebuild).stderr;
    assert!(done.contains("en: ") && done.contains("state state: done"), "{done}");
    folder.run(&["state", "verify", "state"]);
    assert_eq!(export(&folder), documents);
    let verdict: Value = serde_json::from_str(folder.run(&file).stdout.trim()).unwrap();
    assert_eq!((&verdict["verdict"], &verdict["duplicate_of"]), (&"near-duplicate".into(), &"a101".into()));
    assert!(folder.run(&rebuild).stderr.contains("nothing to do"));
}

#[test]
fn a_state_of_another_scheme_is_left_alone_and_the_ways_out_are_named() {
    let folder = Folder::trust_declared("state-scheme");
    judged(&folder, 30);
    let state = folder.path().join("state");
    tampered(&state, |db| {
        let meta = db.cf_handle("meta").unwrap();
        let mut format = db.get_cf(&meta, "format").unwrap().unwrap();
        format[1] = 9;
        db.put_cf(&meta, "format", format).unwrap();
    });
    let seen = inspect(&folder);
    assert_eq!(seen["format"]["scheme"], 9);
    assert!(seen["remarks"][0].as_str().unwrap().contains("scheme 2"), "{seen}");
    for arguments in [&["state", "rebuild", "state"][..], &["state", "rebuild", "state", "--force"]] {
        let printed = refused(&folder, arguments).stderr;
        assert!(printed.contains("scheme 9, and this program has 2"), "{printed}");
        assert!(printed.contains("was left as it is") && printed.contains("one.ndjson"), "{printed}");
        assert!(!printed.contains("a state on the bus"), "{printed}");
    }
    tampered(&state, |db| {
        let meta = db.cf_handle("meta").unwrap();
        let mut format = db.get_cf(&meta, "format").unwrap().unwrap();
        assert_eq!(format[2], 0, "its bands are still trusted");
        format[0] = 7;
        db.put_cf(&meta, "format", format).unwrap();
    });
    for command in COMMANDS {
        let printed = refused(&folder, &["state", command, "state"]).stderr;
        assert!(printed.contains("format version 7"), "{command}: {printed}");
    }
    // An unreadable version does not tell whose state it is, so both ways out are named.
    let printed = refused(&folder, &["state", "rebuild", "state"]).stderr;
    assert!(
        printed.contains("a state of `samestory file`") && printed.contains("a state on the bus"),
        "{printed}"
    );
}

#[test]
fn a_state_in_use_is_refused_by_every_command() {
    let folder = Folder::trust_declared("state-in-use");
    judged(&folder, 10);
    let mut first = Command::new(env!("CARGO_BIN_EXE_samestory"))
        .args(["file", "-", "--state", "state", "--output", "held.ndjson"])
        .current_dir(folder.path())
        // The settings that the state was built with: others are refused.
        .env("SAMESTORY__LANGUAGE__TRUST", "declared")
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !folder.path().join("held.ndjson").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let printed = COMMANDS.map(|command| refused(&folder, &["state", command, "state"]).stderr);
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
    for printed in printed {
        assert!(printed.contains("state state is in use by another process"), "{printed}");
    }
    folder.run(&["state", "verify", "state"]);
}

#[test]
fn anything_but_a_state_is_refused_and_left_alone() {
    let folder = Folder::trust_declared("state-none");
    folder.write("file.txt", b"hello");
    for name in ["empty", "strangers", "database"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    folder.write("strangers/notes.txt", b"hello");
    drop(DB::open_default(folder.path().join("database")).unwrap());
    let expected = [
        ("missing", "there is no such directory"),
        ("file.txt", "it is not a directory"),
        ("empty", "there is no state in it"),
        ("strangers", "there is no state in it"),
        ("database", "it holds the database of another program"),
    ];
    let listing = || {
        let names = ["", "empty", "strangers", "database"].map(|name| {
            let entries = fs::read_dir(folder.path().join(name)).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names.join(" ")
        });
        names.join("; ")
    };
    let before = listing();
    for command in COMMANDS {
        for (name, why) in expected {
            let printed = refused(&folder, &["state", command, name]).stderr;
            assert!(printed.contains(&format!("state {name} cannot be used: {why}")), "{command}: {printed}");
        }
    }
    assert_eq!(listing(), before);
}

#[test]
fn every_command_has_help_with_examples() {
    let folder = Folder::trust_declared("state-help");
    let help = folder.run(&["state", "--help"]).stdout;
    for command in COMMANDS {
        assert!(help.contains(&format!("samestory state {command}")) || command == "rebuild", "{help}");
        let own = folder.run(&["state", command, "--help"]).stdout;
        assert!(own.contains("<DIR>") && own.contains("Example"), "{own}");
    }
    assert!(help.contains("samestory --config new.toml state rebuild state/"), "{help}");
}

#[test]
fn a_state_is_exported_as_a_table_of_fingerprints() {
    let folder = Folder::new("state-export-csv");
    let article = serde_json::json!({
        "id": "a,\"1\"",
        "text": "The council said on Monday that the old bridge over the harbour will be closed for repairs until June.",
        "fetched_at": "2026-03-02T06:10:00Z",
    });
    folder.write("one.ndjson", article.to_string().as_bytes());
    folder.run(&["file", "one.ndjson", "--state", "state", "--output", "out.ndjson", "--quiet"]);
    let csv = folder.run(&["state", "export", "state", "--format", "csv", "--quiet"]).stdout;
    let mut lines = csv.lines();
    let header = "article_id,simhash,minhash_signature,computed_at,language,content_hash,cluster_id";
    assert_eq!(lines.next(), Some(header));
    let row = lines.next().unwrap().strip_prefix("\"a,\"\"1\"\"\",").expect("the id is quoted");
    let fields: Vec<&str> = row.split(',').collect();
    let exported = &export(&folder)[0];
    assert_eq!((fields[0].len(), fields[1].len()), (16, 512));
    assert_eq!((fields[2], fields[3]), ("2026-03-02T06:10:00Z", "en"));
    assert_eq!(exported["content_hash"], fields[4]);
    assert_eq!(exported["cluster_id"], fields[5]);
    assert_eq!(lines.next(), None);
    let refused = refused(&folder, &["state", "export", "state", "--format", "csv", "--fingerprints"]);
    assert!(refused.stderr.contains("--fingerprints"), "{}", refused.stderr);
}

/// A copy and an edited copy, in a state that has processed them.
fn copies(folder: &Folder) {
    const MORE: &str = "Edited by another desk after the harbour master spoke to us on Monday.";
    let articles =
        [("a0", 0, ""), ("b1", 1, ""), ("a0-copy", 0, ""), ("b1-edited", 1, MORE), ("alone", 2, "")];
    let lines = articles.map(|(id, number, end)| {
        serde_json::json!({"id": id, "lang": "en", "text": story(number, end)}).to_string()
    });
    folder.write("copies.ndjson", lines.join("\n").as_bytes());
    folder.run(&["file", "copies.ndjson", "--state", "state", "--output", "out.ndjson", "--quiet"]);
}

#[test]
fn pairs_above_a_line_are_listed_and_an_interrupted_listing_goes_on() {
    let folder = Folder::trust_declared("state-pairs");
    copies(&folder);
    let list = |more: &[&str]| {
        let printed = folder.run(&[&["state", "pairs", "state", "--quiet"], more].concat()).stdout;
        let names = |line: &str| {
            let pair: Value = serde_json::from_str(line).unwrap();
            ["older", "newer"].map(|name| pair[name].as_str().unwrap().to_owned())
        };
        (printed.lines().map(names).collect::<Vec<_>>(), printed)
    };
    let (pairs, all) = list(&[]);
    assert_eq!(pairs, [["a0", "a0-copy"], ["b1", "b1-edited"]]);
    assert_eq!(list(&["--min-similarity", "1"]).0, [["a0", "a0-copy"]]);
    // Cut anywhere, the listing goes on to the same bytes.
    for cut in [0, 1, all.len() / 3, all.len() / 2, all.len() - 1, all.len()] {
        folder.write("pairs.ndjson", &all.as_bytes()[..cut]);
        list(&["--output", "pairs.ndjson", "--resume"]);
        assert_eq!(folder.read("pairs.ndjson"), all, "cut at {cut}");
    }
    folder.write("pairs.ndjson", b"precious\n");
    let foreign = refused(&folder, &["state", "pairs", "state", "--output", "pairs.ndjson", "--resume"]);
    assert!(foreign.stderr.contains("not a list of pairs"), "{}", foreign.stderr);
    assert_eq!(folder.read("pairs.ndjson"), "precious\n");
}

#[test]
fn a_corpus_is_judged_again() {
    let folder = Folder::trust_declared("state-corpus");
    copies(&folder);
    let findings = |settings: &[&str]| -> Vec<Value> {
        let printed = folder.run(&[settings, &["state", "check-corpus", "state", "--quiet"]].concat()).stdout;
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    assert_eq!(findings(&[]), Vec::<Value>::new());
    // Under a stricter line the edited copy is unique, and the copy stays one.
    let strict = ["match.algorithm=minhash", "match.threshold=0.99", "match.containment_threshold=0.999"]
        .map(|set| ["--set", set]);
    let strict = findings(strict.as_flattened());
    let [differs] = strict.as_slice() else { panic!("{strict:?}") };
    let fields = ["finding", "id", "stored", "today", "other"].map(|name| differs[name].as_str().unwrap());
    assert_eq!(fields, ["verdict-would-differ", "b1-edited", "near-duplicate", "unique", "b1"]);
    // A bucket may hold one document, so those of the copies are hot.
    let hot = findings(&["--set", "lsh.max_bucket=1"]);
    assert!(hot.iter().any(|finding| finding["finding"] == "hot-bucket"), "{hot:?}");
}
