//! `samestory plan`: `docs/operations.md` shows its output word for word, and it refuses what it cannot plan
//! for.

use std::process::{Command, Output};

use serde_json::Value;

fn plan(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_samestory"));
    command.env_remove("SAMESTORY_CONFIG").arg("plan").args(arguments).output().unwrap()
}

fn out(arguments: &[&str]) -> String {
    let output = plan(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const EXAMPLE: [&str; 4] = ["--articles", "500000", "--languages", "en=60,hi=25,bn=15"];

#[test]
fn the_document_shows_the_output() {
    let printed = out(&EXAMPLE);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operations.md");
    let document = std::fs::read_to_string(path).unwrap();
    let begins = format!("```text\n$ samestory plan {}\n", EXAMPLE.join(" "));
    let (before, rest) = document.split_once(&begins).expect("docs/operations.md has the example");
    let (shown, after) = rest.split_once("```").unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, format!("{before}{begins}{printed}```{after}")).unwrap();
    } else {
        assert_eq!(shown, printed, "run UPDATE_GOLDEN=1 cargo test --release plan::");
    }
}

#[test]
fn programs_get_the_same_numbers() {
    let planned: Value = serde_json::from_str(&out(&[&EXAMPLE[..], &["--json"]].concat())).unwrap();
    let number = |key: &str| planned["sizes"][key].as_f64().unwrap();
    assert_eq!(number("remembered_articles"), 3_500_000.0, "match.retention is seven days");
    assert_eq!(number("state_bytes"), 3_500_000.0 * 2048.0);
    assert_eq!((number("match_replicas"), number("partitions")), (3.0, 4.0));
    assert_eq!(planned["needs"]["languages"][0][0], "en");
    assert!((number("busiest_partition") - 0.6).abs() < 1e-9);
    // Two partitions for three languages: two replicas, and hi and bn do not share one with en.
    let planned: Value =
        serde_json::from_str(&out(&[&EXAMPLE[..], &["--partitions", "2", "--json"]].concat())).unwrap();
    assert_eq!(planned["sizes"]["match_replicas"], 2);
    assert!((planned["sizes"]["busiest_partition"].as_f64().unwrap() - 0.75).abs() < 1e-9, "{planned}");
}

// Filters, indexes and decoded documents were outside the stores' memory budget, and the plan had one number for all of it,
// however many partitions a process held: four busy partitions took 120 MB more than planned. Now one budget holds them, and
// only what grows with the articles comes on top.
#[test]
fn memory_outside_the_budget_is_reported_and_grows_with_the_articles() {
    let memory = |articles: &str, budget: usize, more: &[&str]| -> (f64, f64) {
        let set = format!("store.memory={budget}");
        let arguments = [&["--articles", articles, "--days", "10", "--json", "--set", &set], more].concat();
        let planned: Value = serde_json::from_str(&out(&arguments)).unwrap();
        let number = |key: &str| planned["sizes"][key].as_f64().unwrap();
        let replica = number("memory_bytes_of_each_replica");
        let outside = number("memory_bytes_of_each_replica_outside_the_budget");
        assert_eq!(outside, replica - budget as f64);
        (number("memory_bytes_of_one_process"), outside)
    };
    let default = samestory_engine::index::BUDGET_BYTES;
    let (one, outside) = memory("100000", default, &[]);
    assert!((one - 704e6).abs() < 1e6, "a million in one partition: {one}");
    assert!((outside - 167e6).abs() < 1e6, "{outside}");
    let (four, _) = memory("100000", default, &["--languages", "en=1,hi=1,bn=1,ja=1"]);
    assert!((four - one).abs() < 1e6, "the partitions of a process share the budget: {four}");
    let (small, outside) = memory("100000", 64 << 20, &[]);
    assert!(small < one - 400e6 && outside > 167e6, "{small}, {outside}: the filters do not fit any more");
    let (all, _) = memory("1580000", default, &[]);
    assert!((1.0e9..1.4e9).contains(&all), "15.8 million in one language: {all}");
    let shown = out(&EXAMPLE);
    assert!(shown.contains("of that, outside the budget"), "{shown}");
}

#[test]
fn the_number_of_days_defaults_to_the_settings() {
    let days = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_samestory"));
        let output = command.env_remove("SAMESTORY_CONFIG").args(arguments).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let ask = ["plan", "--articles", "1000"];
    assert!(
        days(&[&["--set", "match.retention=12h"], &ask[..]].concat())
            .contains("for 0.5 days: 500 remembered")
    );
    let forever = days(&[&["--set", "match.retention=forever"], &ask[..]].concat());
    assert!(forever.contains("say with --days"), "{forever}");
    let given = days(&[&["--set", "match.retention=forever"], &ask[..], &["--days", "30"]].concat());
    assert!(given.contains("30,000 remembered"), "{given}");
}

#[test]
fn an_impossible_plan_is_refused_by_name() {
    for (arguments, part) in [
        (&["--articles", "0"][..], "--articles 0: a day has"),
        (&["--articles", "NaN"], "--articles NaN"),
        (&["--articles", "many"], "invalid value 'many'"),
        (&["--articles", "5", "--days", "-1"], "unexpected argument"),
        (&["--articles", "5", "--days", "0"], "--days 0: plan for"),
        (&["--articles", "5", "--duplicates", "20"], "--duplicates 20: a fraction"),
        (&["--articles", "5", "--peak", "0.5"], "--peak 0.5: the busiest hour"),
        (&["--articles", "5", "--bytes", "inf"], "--bytes inf"),
        (&["--articles", "5", "--partitions", "0"], "--partitions"),
        (&["--articles", "5", "--languages", "en"], "--languages en: write codes and shares"),
        (&["--articles", "5", "--languages", "en=x"], "--languages en=x"),
        (&["--articles", "5", "--languages", "en=-3,hi=4"], "--languages en=-3"),
        (&["--articles", "5", "--languages", "en=1,en=2"], "en is listed twice"),
        (&["--articles", "5", "--languages", "klingon=1"], "klingon is not a language"),
        (&[], "--articles"),
    ] {
        let output = plan(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(part) && output.stdout.is_empty(), "{arguments:?}: {message}");
    }
}

#[test]
fn too_much_load_for_one_worker_is_reported() {
    let busy = out(&["--articles", "100000000", "--languages", "en=9,hi=1"]);
    assert!(busy.contains("A language cannot be split"), "{busy}");
    assert!(!out(&EXAMPLE).contains("cannot be split"));
}
