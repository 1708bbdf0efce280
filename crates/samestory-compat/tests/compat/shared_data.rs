//! Locates the real articles that live beside the repository and are not part of it.

use std::env;
use std::fs;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};

/// A file of `shared/data` beside the repository, or in the directory that `SAMESTORY_DATA` names.
///
/// # Panics
///
/// If the file is missing and `CI` is `true`; otherwise a missing file is reported and the caller skips it.
fn shared_data(file: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = env::var_os("SAMESTORY_DATA").map_or_else(beside, PathBuf::from).join(file);
    if path.is_file() {
        return Some(path);
    }
    let missing = format!("{} is missing; set SAMESTORY_DATA to its directory", path.display());
    assert!(env::var("CI").as_deref() != Ok("true"), "{missing}");
    // The test harness captures `eprintln!` of passing tests, and this one passes.
    stderr().write_all(format!("skipped: {missing}\n").as_bytes()).unwrap();
    None
}

/// At least one file for each script in the shared data.
const ARTICLES: &[&str] = &[
    "ntrex_19lang.ndjson",
    "semeval22_task8.ndjson",
    "tgcontest_ru_en.ndjson",
    "univnews_ar_en_ku.ndjson",
    "wikinews_en_2020.ndjson",
    "wikinews_ja.ndjson",
    "cnews_zh.ndjson",
    "bbc_hi.ndjson",
    "l3cube_lpc_mr.ndjson",
];

/// The bodies of real articles in every script.
pub(crate) fn bodies() -> impl Iterator<Item = String> {
    ARTICLES.iter().filter_map(|file| shared_data(file)).flat_map(|path| {
        let lines = fs::read_to_string(&path).unwrap();
        assert!(!lines.is_empty(), "{} is empty", path.display());
        let body = |line: &str| {
            let article: serde_json::Value = serde_json::from_str(line).unwrap();
            article["body"].as_str().unwrap().to_owned()
        };
        lines.lines().map(body).collect::<Vec<_>>()
    })
}
