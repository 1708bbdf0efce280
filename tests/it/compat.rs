//! `samestory compat …`: what other systems compute, from the command line.

use std::process::Command;

use serde_json::{Value, json};

use crate::folder::Folder;

const FOX: &str = "The quick brown fox jumps over the lazy dog";

/// Standard output of a run that must succeed, and standard error.
fn compat(folder: &Folder, arguments: &[&str]) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_samestory"));
    let output = command
        .arg("compat")
        .args(arguments)
        .current_dir(folder.path())
        .env_remove("SAMESTORY_CONFIG")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, errors) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{arguments:?}: {errors}");
    (out, errors)
}

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn groups_have_the_originals_field_names_and_take_hashes_or_bodies() {
    let folder = Folder::new("compat-group");
    let articles = [
        json!({"id": "a", "simHash": "aaaaaaaaaaaaaaaa", "publishedAt": "2026-03-01T08:00:00Z"}),
        json!({"id": "b", "simHash": "aaaaaaaaaaaaaaab", "publishedAt": "2026-03-02"}),
        json!({"id": "c", "body": FOX, "publishedAt": 1_772_323_200_000_i64}),
        json!({"id": "d", "body": FOX.to_uppercase(), "published_at": "2026-02-01"}),
        json!({"id": "e", "simHash": "aaaaaaaaaaaaaabf"}),
    ];
    folder.write("articles.ndjson", (articles.map(|article| article.to_string()).join("\n")).as_bytes());
    let (out, errors) = compat(&folder, &["group", "articles.ndjson", "--threshold", "3"]);
    assert_eq!(errors, "");
    let expected = json!([
        {"id": "cluster-1", "centerArticleId": "b", "memberIds": ["b", "a", "e"], "averageDistance": 1.5},
        {"id": "cluster-2", "centerArticleId": "c", "memberIds": ["c", "d"], "averageDistance": 0.0},
    ]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), expected);
    let (out, _) = compat(&folder, &["group", "articles.ndjson", "--threshold", "1"]);
    let groups: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(groups.as_array().unwrap().len(), 3);
}

#[test]
fn every_hash_has_its_known_value() {
    let folder = Folder::new("compat-hashes");
    folder.write("a.ndjson", (json!({"id": "a", "body": "hello2"}).to_string()).as_bytes());
    folder.write("fox.ndjson", (json!({"id": "fox", "body": FOX}).to_string()).as_bytes());
    let one = |arguments: &[&str]| lines(&compat(&folder, arguments).0).remove(0);
    assert_eq!(one(&["simhash", "a.ndjson"])["simHash"], "a9bcb8cca21f87db");
    let txtfp = one(&["simhash", "fox.ndjson", "--kind", "txtfp"]);
    assert_eq!((&txtfp["simHash"], &txtfp["algorithm"]), (&json!("ce0e315a6cc6f940"), &json!("simhash-b64")));

    let signature = |arguments: &[&str]| {
        let line = one(&[&["minhash", "fox.ndjson"], arguments].concat());
        let signature = line["minHash"].as_str().unwrap().to_owned();
        (signature.len() / 2, signature)
    };
    assert_eq!(signature(&[]).0, 512);
    let (bytes, txtfp) = signature(&["--kind", "txtfp"]);
    // Schema 1, then lane 0 = 0x7356d04baffd6060, little-endian.
    assert!(bytes == 1032 && txtfp.starts_with("01000000000000006060fdaf4bd05673"), "{txtfp}");
    assert_eq!(signature(&["--kind", "txtfp", "--lanes", "64"]).0, 520);
    assert_eq!(signature(&["--kind", "txtfp", "--lanes", "256"]).0, 2056);
    assert_ne!(signature(&["--kind", "txtfp", "--family", "murmur3"]).1, txtfp);
    assert_ne!(signature(&["--kind", "txtfp", "--tokenizer", "grapheme-uax29"]).1, txtfp);
    assert_eq!(signature(&["--kind", "characters"]).0, 1032);

    let tlsh = one(&["tlsh", "fox.ndjson"]);
    assert_eq!(tlsh["tlsh"], Value::Null);
    assert_eq!(tlsh["error"], "TLSH needs at least 50 bytes, got 43");
}

#[test]
fn duplicates_are_those_of_the_recap_worker() {
    let folder = Folder::new("compat-duplicates");
    let articles =
        [("doc1", FOX), ("doc2", FOX), ("doc3", "Parliament passed the budget after eleven hours")]
            .map(|(id, body)| json!({"id": id, "body": body}).to_string());
    folder.write("articles.ndjson", (articles.join("\n") + "\nnot an article\n").as_bytes());
    let (out, errors) = compat(&folder, &["duplicates", "articles.ndjson"]);
    let expected = [
        json!({"doc_id": "doc1", "is_duplicate": false, "original_doc_id": null, "similarity": 0.0}),
        json!({"doc_id": "doc2", "is_duplicate": true, "original_doc_id": "doc1", "similarity": 1.0}),
        json!({"doc_id": "doc3", "is_duplicate": false, "original_doc_id": null, "similarity": 0.0}),
    ];
    assert_eq!(lines(&out), expected);
    assert!(errors.starts_with("1 records were skipped"), "{errors}");
}

#[test]
fn measuring_reports_every_kind() {
    let folder = Folder::new("compat-measure");
    let body =
        |n: usize| (0..80).map(|word| format!("w{}", word * (n + 3) % 97)).collect::<Vec<_>>().join(" ");
    let articles: Vec<String> =
        (0..30).map(|n| json!({"id": format!("a{n}"), "body": body(n)}).to_string()).collect();
    folder.write("articles.ndjson", (articles.join("\n")).as_bytes());
    let (out, _) = compat(&folder, &["measure", "articles.ndjson", "--limit", "20", "--format", "json"]);
    let measured: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(measured["texts"], 20);
    let kinds: Vec<&str> =
        measured["minhash"].as_array().unwrap().iter().map(|row| row["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["samestory", "fnv", "txtfp", "characters"]);
    assert_eq!(measured["labelled"], Value::Null);
    let (table, _) = compat(&folder, &["measure", "articles.ndjson"]);
    assert!(table.starts_with("30 texts\n") && table.contains("| 16 bits |"), "{table}");
}

#[test]
fn names_and_numbers_that_do_not_fit_are_refused() {
    let folder = Folder::new("compat-refused");
    folder.write("a.ndjson", (json!({"id": "a", "body": FOX}).to_string()).as_bytes());
    folder.write("bad.ndjson", b"nothing here\n");
    for (arguments, code, why) in [
        (
            &["minhash", "a.ndjson", "--kind", "txtfp", "--tokenizer", "words"][..],
            2,
            "\"words\" is not a tokeniser",
        ),
        (&["duplicates", "a.ndjson", "--threshold", "1"], 2, "between 0 and 1"),
        (&["group", "a.ndjson", "--threshold", "65"], 2, "65"),
        (&["simhash", "bad.ndjson"], 1, "no record could be judged"),
        (&["simhash", "missing.ndjson"], 1, "cannot read missing.ndjson"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_samestory"));
        let output = command.arg("compat").args(arguments).current_dir(folder.path()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && errors.contains(why), "{arguments:?}: {errors}");
    }
}

#[test]
fn compare_and_fingerprint_show_tlsh() {
    let folder = Folder::new("compat-tlsh");
    let text =
        "The ferry was late again on Tuesday, by 12 minutes, and nobody minded very much, the master said.";
    folder.write("a.txt", text.as_bytes());
    folder.write("b.txt", text.to_uppercase().as_bytes());
    folder.write("short.txt", b"Too short.");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_samestory"));
        let output = command.args(arguments).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let value = |arguments: &[&str]| serde_json::from_str::<Value>(&run(arguments)).unwrap();
    let digest = &value(&["fingerprint", "a.txt", "--format", "json"])["compat"]["tlsh"];
    assert!(digest.as_str().unwrap().starts_with("T1"), "{digest}");
    assert!(run(&["fingerprint", "a.txt"]).contains(digest.as_str().unwrap()));
    let same = value(&["compare", "a.txt", "b.txt", "--format", "json"]);
    assert_eq!(same["tlsh"], json!({"distance": 0, "band": "0", "meaning": "identical"}));
    assert!(run(&["compare", "a.txt", "b.txt"]).contains("distance 0, identical (0)"));
    // A short text has no digest, and that is no failure.
    let why = "TLSH needs at least 50 bytes, got 10";
    assert_eq!(value(&["compare", "a.txt", "short.txt", "--format", "json"])["tlsh"]["error"], why);
    assert!(run(&["fingerprint", "short.txt"]).contains(why));
}
