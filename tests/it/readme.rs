//! README's first screen: its commands are run, and what it shows is what they print.

use std::fs;
use std::path::Path;

use super::folder::Folder;

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
