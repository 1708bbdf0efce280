//! docs/origins.md: every test and file that it names exists, and every row is complete.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(directory: &Path, found: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// The texts between back quotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn every_test_and_file_that_the_table_names_exists() {
    let page = fs::read_to_string(root().join("docs/origins.md")).unwrap();
    let mut code = String::new();
    for directory in ["src", "tests/it", "crates", "examples"] {
        sources(&root().join(directory), &mut code);
    }
    let mut rows = 0;
    for line in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| requirement")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [requirement, home, shown, held] = cells[..] else { panic!("four columns: {line}") };
        assert!(!requirement.is_empty() && !home.is_empty() && !shown.is_empty(), "{line}");
        rows += 1;
        let files = quoted(home).chain(quoted(shown)).flat_map(str::split_whitespace);
        for file in files.filter(|word| word.contains('/') && !word.contains(['=', '<', ':'])) {
            let is_ours = ["src/", "crates/", "examples/", "docs/", "dev/", "tests/"];
            if is_ours.iter().any(|start| file.starts_with(start)) {
                assert!(root().join(file).exists(), "{file} does not exist: {line}");
            }
        }
        if home.starts_with("missing") {
            assert_eq!(held, "–", "a missing part is held by nothing: {line}");
            continue;
        }
        assert!(quoted(held).next().is_some(), "a test is named: {line}");
        for test in quoted(held) {
            let name = test.rsplit("::").next().unwrap();
            let exists = code.contains(&format!("fn {name}(")) || root().join(name).exists();
            assert!(exists, "{test} does not exist: {line}");
        }
    }
    assert!(rows > 40, "{rows} rows");
}
