//! README's first screen: its commands are run, and what it shows is what they print.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::folder::Folder;

#[path = "../../bench/src/readme.rs"]
mod speed;

/// The code blocks of a language on the first screen, before the second heading of its level.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let screen = text.split("\n## On your own articles").next().unwrap();
    let start = format!("```{language}\n");
    screen.split(start.as_str()).skip(1).map(|block| block.split("\n```").next().unwrap()).collect()
}

#[test]
fn the_first_screen_shows_what_its_commands_print() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let folder = Folder::new("readme");
    fs::create_dir(folder.path().join("demo")).unwrap();
    fs::copy(root.join("demo/articles.ndjson"), folder.path().join("demo/articles.ndjson")).unwrap();
    let commands: Vec<&str> = blocks(&readme, "sh")
        .into_iter()
        .flat_map(str::lines)
        .filter(|line| line.starts_with("samestory "))
        .collect();
    assert!(!commands.is_empty(), "the first screen has commands");
    let mut printed = String::new();
    for command in commands {
        let command = command.split(" #").next().unwrap().trim();
        let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
        let run = folder.run(&arguments);
        printed += &run.stdout;
        printed += &run.stderr;
    }
    // Times differ from run to run.
    let shown = blocks(&readme, "text");
    let lines = shown.iter().flat_map(|block| block.lines()).filter(|line| !line.contains(" a second)"));
    let lines: Vec<&str> = lines.filter(|line| !line.contains("──→")).collect();
    assert!(lines.len() > 5, "the first screen shows a result");
    for line in lines {
        assert!(
            printed.lines().any(|print| print == line),
            "README shows {line:?}, but the program printed\n{printed}"
        );
    }
    // Every file that it names is there, or was just written.
    for name in ["make demo", "make install", "docs/report.png"] {
        assert!(readme.contains(name), "{name}");
    }
    assert!(root.join("docs/report.png").is_file() && folder.path().join("report.html").is_file());
}

#[test]
fn the_badges_are_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let badges: Vec<&str> = readme.lines().filter(|line| line.contains("img.shields.io")).collect();
    let [licence, rust, kafka] = badges[..] else { panic!("each badge needs a check here: {badges:?}") };
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let of_manifest = |key: &str| {
        let line = manifest.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
        line.split('"').nth(1).unwrap().to_owned()
    };
    let name = of_manifest("license");
    assert!(licence.contains(&format!("Licence: {name}]")) && licence.contains(&name.replace('-', "--")));
    let oldest = of_manifest("rust-version");
    assert!(rust.contains(&format!("Rust: {oldest} or later]")) && rust.contains(&format!("Rust-{oldest}_")));
    // The versions that `make test-brokers` runs, and that operations.md lists as tried.
    let makefile = fs::read_to_string(root.join("Makefile")).unwrap();
    let versions = makefile.lines().find_map(|line| line.strip_prefix("BROKERS := ")).unwrap();
    let operations = fs::read_to_string(root.join("docs/operations.md")).unwrap();
    for version in versions.split(' ') {
        assert!(operations.contains(&format!("| Apache Kafka {version} |")), "operations.md: {version}");
    }
    let versions = versions.replace(' ', "_and_");
    assert!(kafka.contains(&format!("Kafka-{versions}-")) && kafka.contains(&versions.replace('_', " ")));
}

#[test]
fn readme_has_one_place_for_the_table_of_speeds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let updated = speed::replaced(&readme, "figures\n").unwrap();
    assert!(updated.contains(&format!("{}figures\n{}", speed::BEGIN, speed::END)));
    assert!(speed::replaced("no markers", "figures").is_err());
    assert!(speed::replaced(&format!("{readme}{readme}"), "figures").is_err());
}

#[test]
fn the_table_of_speeds_shows_what_was_measured_and_where() {
    let latest = json!([
        { "name": "MinHash, English", "articles_per_s": 31_415, "mb_per_s": 70.1 },
        {
            "name": "samestory in RocksDB, changelog in Kafka, 100000", "contender": "samestory in RocksDB, changelog in Kafka",
            "articles": 100_000, "articles_per_s": 15_100, "own_cpu_us": 36.6, "cpu_us": 108.2, "look_up_p50_ms": 0.0412,
            "look_up_p99_ms": 0.2, "disk_kib": 1.19, "resident_mb": 242,
        },
        { "name": "restore from nothing, 100000", "articles": 100_000, "articles_per_s": 18_400, "cpu_us": 80 },
    ]);
    let kafka = json!([
        { "name": "direct", "articles": 40_000, "articles_per_s": 3600.4, "stage_cpu_s_per_1000": 0.35, "p50_ms_at_200_per_s": 29,
          "p99_ms_at_200_per_s": 58.4, "restored_articles_per_s": 15_300.2 },
    ]);
    let conditions = json!({
        "latest": { "commit": "abc1234", "cores": 2, "cpu": "Some CPU", "others": 0.01 },
        "kafka": { "commit": "abc1234-dirty", "cores": 2, "cpu": "Some CPU", "others": 0.42 },
    });
    let section = speed::section(&latest, &Value::Null, &kafka, &conditions).unwrap();
    let lines: Vec<&str> = section.lines().collect();
    let expected = [
        "`make bench` at commit abc1234, 2 cores of Some CPU (otherwise idle).",
        "`make bench-kafka` at commit abc1234-dirty, 2 cores of Some CPU (other programs took 42 % of them: compare rows with each other only).",
        "",
        "| | articles | articles/s | µs on the judging thread | µs on all cores | p50, p99 ms | KiB each | resident MB |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        "| samestory in RocksDB, changelog in Kafka | 100,000 | 15,100 | 37 | 108 | 0.041, 0.2 | 1.19 | 242 |",
        "| restore from nothing | 100,000 | 18,400 | – | 80 | – | – | – |",
        "| on the bus: `direct` | 40,000 | 3,600 | – | 350 | 29, 58 | – | – |",
        "| on the bus: `direct`, restored from the changelog | 40,000 | 15,300 | – | – | – | – | – |",
    ];
    assert_eq!(lines, expected);
    // Otherwise an empty folder of results would empty the table.
    assert!(speed::section(&Value::Null, &Value::Null, &Value::Null, &conditions).is_err());
}
