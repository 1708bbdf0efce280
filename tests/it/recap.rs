//! `examples/recap.py` on the files of a run.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::folder::{Folder, story};

#[test]
fn a_recap_of_files_has_one_article_per_story() {
    let folder = Folder::trust_declared("recap");
    let mut lines = String::new();
    for (id, number) in [("a1", 1), ("b1", 2), ("a2", 1), ("c1", 3), ("a3", 1), ("b2", 2)] {
        let title = format!("Of {id}");
        let article = json!({"id": id, "lang": "en", "title": title, "host": "news.example", "text": story(number, "")});
        lines += &format!("{article}\n");
    }
    folder.write("articles.ndjson", lines.as_bytes());
    folder.run(&[
        "file",
        "articles.ndjson",
        "--clusters",
        "clusters.ndjson",
        "--output",
        "tagged.ndjson",
        "--quiet",
    ]);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/recap.py");
    let recap = |arguments: &[&str]| {
        let output = Command::new("python3")
            .arg(&example)
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let files = ["--clusters", "clusters.ndjson", "--tagged", "tagged.ndjson"];
    let result: Value = serde_json::from_str(&recap(&[&files[..], &["--json"]].concat())).unwrap();
    assert_eq!(result["stats"], json!({"total": 6, "unique": 3, "duplicate": 3}));
    let stories = result["stories"].as_array().unwrap();
    let ids: Vec<&str> = stories.iter().map(|story| story["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a1", "b1"]);
    let mut duplicates: Vec<&str> = stories[0]["duplicates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|duplicate| duplicate["id"].as_str().unwrap())
        .collect();
    duplicates.sort_unstable();
    assert_eq!(duplicates, ["a2", "a3"]);
    let text = recap(&files);
    assert!(text.starts_with("6 articles: 3 unique, 3 duplicates\n\nOf a1  (3 articles)\n"), "{text}");
}
