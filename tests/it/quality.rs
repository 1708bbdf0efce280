//! Floors under what `make quality` measures, on few articles: slightly below the values of docs/quality.md.

use std::path::{Path, PathBuf};
use std::process::Command;

use samestory::config::{Config, Settings};
use samestory_eval::{Cell, Expect, Label, Options, Report, Set, run};

use crate::support::shared_data;

/// A stream made by `perturb.py`; none where Python or the articles are missing.
fn stream(name: &str, arguments: &[&str]) -> Option<PathBuf> {
    let script = shared_data("perturb.py")?;
    let inputs = ["ntrex_19lang.ndjson", "wikinews_en_2020.ndjson", "bbc_hi.ndjson"];
    let inputs: Vec<PathBuf> = inputs.into_iter().map(shared_data).collect::<Option<_>>()?;
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut python = Command::new("python3");
    python.arg(script).args(inputs).arg("-o").arg(&out).args(["--seed", "7"]).args(arguments);
    let done = python.output().expect("python3 is needed to make labelled streams");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(out)
}

fn report(path: &Path, options: Options) -> Report {
    let config = Config::try_from(Settings::default()).unwrap();
    let set = Set::read(path).unwrap();
    let outcome = run::run(&config.options(), &set, options).unwrap();
    Report::new(&[(set, outcome)])
}

/// Found as a copy of the right article, merged with anything at all, and how many there are.
fn sum(report: &Report, of: impl Fn(&Cell) -> bool) -> (f64, f64, u64) {
    let cells: Vec<_> = report.cells.iter().filter(|cell| of(cell)).map(|cell| &cell.counts).collect();
    let all: u64 = cells.iter().map(|counts| counts.of).sum();
    let found: u64 = cells.iter().map(|counts| counts.found).sum();
    let wrong: u64 = cells.iter().map(|counts| counts.wrong).sum();
    (found as f64 / all as f64, (found + wrong) as f64 / all as f64, all)
}

fn assert_floors(report: &Report) {
    let found = |kind: &str, level: &str| sum(report, |cell| cell.kind == kind && cell.level == level).0;
    let merged = |kind: &str| sum(report, |cell| cell.kind == kind).1;
    let (recall, _, copies) = sum(report, |cell| cell.expect == Expect::Dup);
    assert!(copies > 1000 && recall >= 0.99, "recall {recall} of {copies}\n{report}");
    for (kind, level, floor) in [
        ("exact", "0", 1.0),
        ("unicode", "nfd", 1.0),
        ("html", "page", 1.0),
        ("word_edit", "5", 0.99),
        ("truncate", "75", 0.99),
        ("truncate", "50", 0.95),
        ("truncate", "25", 0.9),
    ] {
        assert!(found(kind, level) >= floor, "{kind} {level}: {}\n{report}", found(kind, level));
    }
    assert_eq!(merged("original"), 0.0, "{report}");
    assert!(merged("neg_facts") <= 0.02, "{report}");
    assert!(merged("neg_template") <= 0.005, "{report}");
    let confidence = report.confidence.as_ref().unwrap();
    assert!(confidence.expected_error <= 0.05, "{report}");
}

#[test]
fn copies_are_found_and_strangers_are_not() {
    let Some(stream) = stream("quality.ndjson", &["--limit", "76", "--templates", "4"]) else { return };
    assert_floors(&report(&stream, Options::default()));
    assert_floors(&report(&stream, Options { ignore_language: true }));
}

#[test]
fn people_who_say_no_are_believed() {
    let Some(articles) = shared_data("tgcontest_ru_en.ndjson") else { return };
    let report = report(&articles, Options::default());
    let together =
        |label| report.pairs.iter().filter(|cell| cell.label == label).map(|cell| cell.together).sum::<u64>();
    assert_eq!(together(Label::Different), 0, "{report}");
    assert!(together(Label::Same) >= 12, "{report}");
}
