//! `samestory file --dead-letters` keeps what cannot be judged, with its position, the reason and the
//! original content.

use serde_json::{Value, json};

use super::folder::{Folder, story};

fn letters(folder: &Folder) -> Vec<Value> {
    folder.read("dead.ndjson").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn file(folder: &Folder, inputs: &[&str], more: &[&str]) {
    let arguments =
        [&["file"], inputs, &["--quiet", "--max-errors", "100", "--dead-letters", "dead.ndjson"], more]
            .concat();
    // Some of these runs can judge nothing, and exit with 1.
    let (_, printed) = folder.start(&arguments, b"");
    assert!(!printed.stderr.contains("cannot "), "{}", printed.stderr);
}

#[test]
fn every_line_that_cannot_be_judged_is_kept_verbatim() {
    let folder = Folder::new("dead-lines");
    let good = format!("{{\"id\":\"a\",\"text\":{:?}}}", story(1, ""));
    let long = format!("{{\"id\":\"b\",\"text\":\"{}\"}}", "word ".repeat(500));
    let endless = "x".repeat(20_000);
    let mut lines: Vec<Vec<u8>> =
        [&good, "  {broken, \"she said", "{\"text\":\"no id\"}", "{\"id\":7}", "[1]", &long, &endless]
            .map(|line| line.as_bytes().to_vec())
            .to_vec();
    // With a letter in UTF-8, so that the other byte is damage and not an encoding.
    lines.push(b"{\"id\":\"\xc3\xa9\xff\"}".to_vec());
    folder.write("one.ndjson", &lines.join(&b'\n'));
    folder.write("small.toml", b"[text]\nmax_bytes = 2000\nmax_raw_bytes = 4000\n");
    file(&folder, &["one.ndjson"], &["--config", "small.toml", "--output", "out.ndjson"]);
    assert_eq!(folder.read("out.ndjson").lines().count(), 1);
    let letters = letters(&folder);
    let reported: Vec<Value> =
        letters.iter().map(|letter| json!([letter["line"], letter["reason"]])).collect();
    assert_eq!(
        reported,
        [
            json!([2, "undecodable"]),
            json!([3, "no-id"]),
            json!([4, "no-body"]),
            json!([5, "wrong-type"]),
            json!([6, "too-large"]),
            json!([7, "too-large"]),
            json!([8, "undecodable"]),
        ]
    );
    for (letter, line) in letters.iter().zip(&lines[1..]) {
        assert_eq!(letter["file"], "one.ndjson");
        assert!(!letter["message"].as_str().unwrap().is_empty());
        match letter["line"].as_u64().unwrap() {
            // Longer than the read limit.
            7 => assert_eq!(letter["original"], Value::Null),
            // Not text, so its bytes are kept.
            8 => {
                let hex: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(letter["original_hex"], hex);
                assert_eq!(letter.get("original"), None);
            }
            _ => assert_eq!(letter["original"], String::from_utf8_lossy(line).as_ref()),
        }
    }
    let keys: Vec<&String> = letters[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["file", "line", "reason", "message", "original"]);
}

#[test]
fn rows_and_elements_are_kept_verbatim_too() {
    let folder = Folder::new("dead-rows");
    let table = "id,text\n1,\"a text, quoted\"\n2,\"two\nlines\",more\n3,\"an \"\"odd\"\" one\",,\n";
    folder.write("t.csv", table.as_bytes());
    file(&folder, &["t.csv"], &["--output", "out.ndjson"]);
    let kept: Vec<Value> =
        letters(&folder).into_iter().map(|letter| json!([letter["line"], letter["original"]])).collect();
    assert_eq!(kept, [json!([3, "2,\"two\nlines\",more"]), json!([5, "3,\"an \"\"odd\"\" one\",,"])]);
    folder.write("a.json", b"[\n  {\"id\": \"x\",\n   \"n\": 1},\n  {\"id\": \"y\", \"text\": \"good\"}\n]");
    file(&folder, &["a.json"], &["--output", "out.ndjson"]);
    let [letter] = &letters(&folder)[..] else { panic!("one letter") };
    assert_eq!(letter["original"], "{\"id\": \"x\",\n   \"n\": 1}");
}

#[test]
fn without_dead_letters_the_file_is_empty_and_never_an_input_or_the_output() {
    let folder = Folder::new("dead-none");
    folder.write("one.ndjson", format!("{{\"id\":\"a\",\"text\":{:?}}}\n", story(1, "")).as_bytes());
    folder.write("dead.ndjson", b"of yesterday");
    file(&folder, &["one.ndjson"], &["--output", "out.ndjson"]);
    assert_eq!(folder.read("dead.ndjson"), "");
    let refusal = folder.fail(&["file", "one.ndjson", "--dead-letters", "./one.ndjson"]);
    assert!(refusal.contains("and the input one.ndjson are the same file"), "{refusal}");
    assert!(folder.read("one.ndjson").contains("\"a\""));
    let refusal =
        folder.fail(&["file", "one.ndjson", "--output", "new.ndjson", "--dead-letters", "./new.ndjson"]);
    assert!(refusal.contains("and --output new.ndjson are the same file"), "{refusal}");
}

/// A record that panicked a parser ended the run with a backtrace, and the lines after it got no verdicts.
#[cfg(feature = "faults")]
#[test]
fn a_line_that_panics_a_parser_is_kept_and_the_next_is_judged() {
    let folder = Folder::new("dead-panic");
    let line = |id: &str, text: &str| format!("{{\"id\":\"{id}\",\"text\":{text:?}}}\n");
    let poison = line("b", samestory::formats::PANIC_MARKER);
    let lines = [line("a", &story(1, "")), poison.clone(), line("c", &story(2, ""))].concat();
    folder.write("one.ndjson", lines.as_bytes());
    file(&folder, &["one.ndjson"], &["--output", "out.ndjson"]);
    assert_eq!(folder.read("out.ndjson").lines().count(), 2);
    let letters = letters(&folder);
    assert_eq!(letters.len(), 1);
    assert_eq!((&letters[0]["line"], &letters[0]["reason"]), (&json!(2), &json!("parser-panicked")));
    assert_eq!(letters[0]["original"], poison.trim_end());
}

// Any producer could replace or delete any article, because an id was accepted from any source.
#[test]
fn an_id_of_another_source_is_a_dead_letter_and_changes_nothing() {
    let folder = Folder::new("not-owner");
    let (text, other) = (story(1, ""), story(2, ""));
    let lines = [
        json!({"id": "a.example/1", "host": "A.Example", "body": text}),
        json!({"id": "https://a.example/2", "url": "https://a.example/2", "body": other}),
        json!({"id": "a.example/1", "host": "b.example", "body": "Taken over."}),
        json!({"id": "a.example/1", "url": "https://b.example/", "deleted": true}),
        json!({"id": "a.example/1", "deleted": true}),
        json!({"id": "a.example/3", "host": "www.a.example", "body": "A subdomain is another source."}),
        json!({"id": "a.example/4", "host": " ", "body": "An empty source owns nothing."}),
        json!({"id": "b.example/1", "host": "b.example", "body": text}),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    folder.write("one.ndjson", lines.as_bytes());
    let more = ["--output", "out.ndjson"];
    file(&folder, &["one.ndjson"], &[&["--set", "input.owner=host"], &more[..]].concat());
    let found = letters(&folder);
    let reported: Vec<Value> = found.iter().map(|letter| json!([letter["line"], letter["reason"]])).collect();
    assert_eq!(reported, (3..=7).map(|line| json!([line, "not-owner"])).collect::<Vec<_>>());
    assert!(found[0]["message"].as_str().unwrap().contains("as in \"b.example/…\""), "{}", found[0]);
    assert!(found[2]["message"].as_str().unwrap().contains("send a host or a url"), "{}", found[2]);
    // The first article is unchanged.
    let copy: Value = serde_json::from_str(folder.read("out.ndjson").lines().last().unwrap()).unwrap();
    assert_eq!((&copy["id"], &copy["duplicate_of"]), (&json!("b.example/1"), &json!("a.example/1")));
    // Files have no headers, so with a header as owner nobody owns anything.
    file(&folder, &["one.ndjson"], &["--set", "input.owner=header:source", "--output", "none.ndjson"]);
    let reasons = letters(&folder).into_iter().map(|letter| letter["reason"].clone());
    assert_eq!(reasons.collect::<Vec<_>>(), vec![json!("not-owner"); 8]);
}
