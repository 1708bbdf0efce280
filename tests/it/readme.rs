//! README's first screen: its commands are run, and what it shows is what they print. And its table of speeds.

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

/// The text between the markers of the table of speeds.
fn between_markers(readme: &str) -> &str {
    let (_, rest) = readme.split_once(speed::BEGIN).expect("README marks where the table begins");
    rest.split_once(speed::END).expect("README marks where the table ends").0
}

#[test]
fn the_table_of_speeds_has_the_form_that_the_command_writes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let (conditions, table) = between_markers(&readme).split_once("\n\n").unwrap();
    assert!(conditions.contains(" cores") && conditions.ends_with("compare rows as ratios."), "{conditions}");
    let rows = table.strip_prefix(speed::HEAD).expect("the head is the command's");
    let cells_of_head = speed::HEAD.lines().next().unwrap().matches('|').count();
    assert!(!rows.is_empty());
    for row in rows.lines() {
        assert!(row.starts_with("| ") && row.ends_with(" |") && !row.contains("|  |"), "{row}");
        assert_eq!(row.matches('|').count(), cells_of_head, "{row}");
    }
}

/// A folder as the command expects it: README, and the results of some benchmarks.
fn folder_with_results(name: &str, readme: &str, results: &[(&str, Value)]) -> Folder {
    let folder = Folder::new(name);
    fs::create_dir_all(folder.path().join("bench/results")).unwrap();
    folder.write("README.md", readme.as_bytes());
    for (file, rows) in results {
        folder.write(&format!("bench/results/{file}.json"), rows.to_string().as_bytes());
    }
    folder
}

fn readme_with_table(table: &str) -> String {
    format!("# Title\n\n{}{table}{}\nText.\n", speed::BEGIN, speed::END)
}

#[test]
fn the_table_of_speeds_shows_every_result() {
    let latest = json!([
        { "name": "samestory fingerprint en", "articles_per_s": 81_000.0, "mb_per_s": 180.0 },
        { "name": "gaoya and its index in memory, 10000", "contender": "gaoya and its index in memory", "articles": 10_000,
          "articles_per_s": 28_512.0, "cpu_us": 60.0, "look_up_p99_ms": 0.0084, "disk_kib": null, "resident_mb": 89.0 },
        { "name": "samestory in RocksDB, own WAL, 1000000", "contender": "samestory in RocksDB, own WAL", "articles": 1_000_000,
          "articles_per_s": 12_105.0, "cpu_us": 128.4, "look_up_p99_ms": 0.2395, "disk_kib": 1.092, "resident_mb": 1213.0 },
        { "name": "restore from nothing, 100000", "articles": 100_000, "articles_per_s": 18_400.0, "cpu_us": 80.0 },
        { "name": "check, 1000000, idle", "question": "check", "articles": 1_000_000, "working": false, "p99_ms": 1.11,
          "articles_per_s": null, "articles_per_s_alone": 8000.0 },
        { "name": "check, 1000000, working", "question": "check", "articles": 1_000_000, "working": true, "p99_ms": 12.34,
          "articles_per_s": 6000.0, "articles_per_s_alone": 8000.0 },
    ]);
    let kafka = json!([
        { "name": "pipe", "articles": 60_000, "articles_per_s": 30_638.7, "broker_cpu_s_per_1000": 0.0087, "stage_cpu_s_per_1000": 0.0288,
          "p99_ms_at_200_per_s": 40.0, "p99_ms_busy": 656.0, "restored_articles_per_s": null },
        // As written before these rows had `articles`.
        { "name": "direct", "articles_per_s": 7264.1, "broker_cpu_s_per_1000": 0.0226, "stage_cpu_s_per_1000": 0.1289,
          "p99_ms_at_200_per_s": 66.0, "p99_ms_busy": 1483.0, "restored_articles_per_s": 17_410.8 },
    ]);
    let corpus = json!([
        { "name": "corpus, 987500", "articles": 987_500, "articles_per_s": 20_000.0, "anonymous_mb": 300.0, "mapped_mb": 500.0, "disk_kib": 1.2 },
        { "name": "corpus, 15800000", "articles": 15_800_000, "articles_per_s": 9000.0, "anonymous_mb": 912.0, "mapped_mb": 3456.0, "disk_kib": 1.234 },
        { "name": "corpus restarted, 15800000", "articles": 15_800_000, "open_s": 3.21, "first_verdict_s": 3.46, "look_up_p99_ms": 4.567 },
    ]);
    let results = [("latest", latest), ("kafka", kafka), ("corpus", corpus)];
    let folder = folder_with_results("speed-all", &readme_with_table("An old table.\n"), &results);
    let missing = speed::update(folder.path()).unwrap();

    let expected = [
        "| gaoya and its index in memory | 10,000 | 28,500 | 60 | 89 | – | lookup 0.0084 |",
        "| samestory in RocksDB, own WAL | 1,000,000 | 12,100 | 128 | 1,210 | 1.1 | lookup 0.24 |",
        "| bus: bare exactly-once pipe | 60,000 | 30,600 | 29, broker 8.7 | – | – | 40 at 200/s, 656 at 70 % load |",
        "| bus: `direct` | – | 7,260 (0.24 of the pipe) | 129, broker 23 | – | – | 66 at 200/s, 1,480 at 70 % load |",
        "| bus: store of `direct` restored from its changelog | – | 17,400 | – | – | – | – |",
        "| ten languages in RocksDB | 15,800,000 | 9,000 | – | 912, mapped 3,460 | 1.2 | – |",
        "| the same, opened again: first verdict after 3.5 s | 15,800,000 | – | – | – | – | lookup 4.6 |",
        "| query `check` while RocksDB is filled | 1,000,000 | 6,000 (0.75 of the rate without queries) | – | – | – | 12 |",
    ];
    let cores = std::thread::available_parallelism().unwrap();
    let conditions = format!(
        "{cores} cores, 10,000 to 15,800,000 articles. Every figure is of one run: compare rows as ratios."
    );
    let table = format!("{conditions}\n\n{}{}\n", speed::HEAD, expected.join("\n"));
    assert_eq!(folder.read("README.md"), readme_with_table(&table));
    // Sizes and stores that were not measured, and nothing else.
    assert_eq!(missing.len(), 3, "{missing:?}");
    assert!(missing[0].starts_with("check and insert at 10,000 articles (samestory in memory; "));
    assert!(!missing[0].contains("gaoya") && missing[2].ends_with(": make bench FULL=1"), "{missing:?}");
}

#[test]
fn parts_without_results_are_left_out_of_the_table_and_named() {
    let kafka = json!([{ "name": "pipe", "articles_per_s": 30_638.7 }]);
    let folder = folder_with_results("speed-part", &readme_with_table(""), &[("kafka", kafka)]);
    let missing = speed::update(folder.path()).unwrap();
    let readme = folder.read("README.md");
    assert_eq!(between_markers(&readme).lines().count(), 5, "{readme}");
    for command in ["make bench", "make bench FULL=1", "make bench-corpus"] {
        assert!(missing.iter().any(|part| part.ends_with(&format!(": {command}"))), "{command}: {missing:?}");
    }
    assert!(!missing.iter().any(|part| part.contains("make bench-kafka")), "{missing:?}");
}

#[test]
fn without_results_or_markers_readme_stays_as_it_is() {
    let table = "The table of an earlier run.\n";
    let whole = readme_with_table(table);
    let kafka = [("kafka", json!([{ "name": "pipe", "articles": 60_000, "articles_per_s": 30_638.7 }]))];
    let cases = [
        ("no-results", whole.clone(), &[][..]),
        ("no-markers", "# Title\n".to_owned(), &kafka),
        ("two-tables", whole.repeat(2), &kafka),
        ("end-first", format!("{}{}", speed::END, speed::BEGIN), &kafka),
    ];
    for (name, readme, results) in cases {
        let folder = folder_with_results(&format!("speed-{name}"), &readme, results);
        assert!(speed::update(folder.path()).is_err(), "{name}");
        assert_eq!(folder.read("README.md"), readme, "{name}");
    }
}
