//! README's table of speeds, made from `bench/results/*.json`, so that no figure is copied by hand.
//!
//! `make bench-readme` replaces what stands between the two markers in README. Every file of results has its
//! conditions beside it; the table names them, because figures of a busy machine or of an older
//! version mean something else.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Where the table begins and ends.
pub(crate) const BEGIN: &str = "<!-- speed: written by make bench-readme -->\n";
pub(crate) const END: &str = "<!-- end of speed -->\n";

const HEAD: &str = "\
| | articles | articles/s | µs on the judging thread | µs on all cores | p50, p99 ms | KiB each | resident MB |
|---|---:|---:|---:|---:|---:|---:|---:|
";

/// Writes the table into README.
#[allow(dead_code, reason = "the benchmark's; the tests only make tables")]
pub(crate) fn update(root: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let results = root.join("bench/results");
    let read = |name: &str| -> Result<Value, Box<dyn std::error::Error>> {
        match fs::read_to_string(results.join(name)) {
            Ok(text) => Ok(serde_json::from_str(&text)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Value::Null),
            Err(error) => Err(error.into()),
        }
    };
    let files = ["latest.json", "corpus.json", "kafka.json"];
    let [latest, corpus, kafka] = files.map(read);
    let text = section(&latest?, &corpus?, &kafka?, &read("conditions.json")?)?;
    let readme = root.join("README.md");
    let updated = replaced(&fs::read_to_string(&readme)?, &text)?;
    fs::write(&readme, updated)?;
    Ok(())
}

/// README with another table.
pub(crate) fn replaced(readme: &str, section: &str) -> Result<String, String> {
    let missing = || format!("README.md needs the lines {:?} and {:?}, once each", BEGIN.trim(), END.trim());
    let (before, rest) = readme.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    if after.contains(BEGIN) || after.contains(END) {
        return Err(missing());
    }
    Ok(format!("{before}{BEGIN}{section}{END}{after}"))
}

/// The conditions and the table. Results that are missing have no rows; without any there is no table.
pub(crate) fn section(
    latest: &Value,
    corpus: &Value,
    kafka: &Value,
    conditions: &Value,
) -> Result<String, String> {
    let mut rows = Vec::new();
    rows.extend(all(latest).filter(|row| row["contender"].is_string()).map(store_row));
    rows.extend(all(corpus).rfind(|row| row["articles_per_s"].is_number()).map(corpus_row));
    rows.extend(all(latest).filter(|row| name(row).starts_with("restore ")).map(|row| {
        line(
            name(row).split(", ").next().unwrap_or_default(),
            row,
            [number(&row["articles"]), number(&row["articles_per_s"]), String::new(), number(&row["cpu_us"])],
        )
    }));
    rows.extend(all(kafka).flat_map(bus_rows));
    if rows.is_empty() {
        return Err("no results in bench/results: run make bench and make bench-kafka first".into());
    }
    let parts = [
        ("make bench", "latest", latest),
        ("make bench-corpus", "corpus", corpus),
        ("make bench-kafka", "kafka", kafka),
    ];
    let told = parts.iter().filter(|(.., results)| all(results).next().is_some());
    let told: Vec<String> =
        told.map(|(command, part, _)| told_conditions(command, &conditions[part])).collect();
    Ok(format!("{}\n\n{HEAD}{}", told.join("\n"), rows.concat()))
}

fn all(results: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    results.as_array().into_iter().flatten()
}

fn name(row: &Value) -> &str {
    row["name"].as_str().unwrap_or_default()
}

/// What must be known to compare the figures with others.
fn told_conditions(command: &str, conditions: &Value) -> String {
    let text = |key: &str| conditions[key].as_str().unwrap_or("unknown").to_owned();
    let (cores, others) = (number(&conditions["cores"]), conditions["others"].as_f64());
    let quiet = match others {
        Some(others) if others < 0.05 => "otherwise idle".to_owned(),
        Some(others) => {
            format!("other programs took {:.0} % of them: compare rows with each other only", others * 100.0)
        }
        None => "load unknown".to_owned(),
    };
    format!("`{command}` at commit {}, {cores} cores of {} ({quiet}).", text("commit"), text("cpu"))
}

fn line(title: &str, row: &Value, [articles, rate, own, all]: [String; 4]) -> String {
    let keys = [("look_up_p50_ms", "look_up_p99_ms"), ("p50_ms_at_200_per_s", "p99_ms_at_200_per_s")];
    let times = keys.iter().find(|(p50, _)| row[p50].is_number());
    let times = times.map(|(p50, p99)| format!("{}, {}", number(&row[p50]), number(&row[p99])));
    let memory = if row["resident_mb"].is_number() { &row["resident_mb"] } else { &row["anonymous_mb"] };
    let cells =
        [articles, rate, own, all, times.unwrap_or_default(), number(&row["disk_kib"]), number(memory)];
    let cells = cells.map(|cell| if cell.is_empty() { "–".to_owned() } else { cell });
    format!("| {title} | {} |\n", cells.join(" | "))
}

fn store_row(row: &Value) -> String {
    let title = row["contender"].as_str().unwrap_or_default();
    let cells = ["articles", "articles_per_s", "own_cpu_us", "cpu_us"].map(|key| number(&row[key]));
    line(title, row, cells)
}

fn corpus_row(row: &Value) -> String {
    let cells = [number(&row["articles"]), number(&row["articles_per_s"]), String::new(), String::new()];
    line("ten languages in RocksDB, the last million", row, cells)
}

/// The stage, or the bare pipe; and its restore.
fn bus_rows(row: &Value) -> Vec<String> {
    let title = match name(row) {
        "pipe" => "on the bus: a bare exactly-once pipe",
        "direct" => "on the bus: `direct`",
        "routed" => "on the bus: `routed`",
        other => other,
    };
    // Seconds per thousand.
    let cpu = row["stage_cpu_s_per_1000"].as_f64().map_or(String::new(), |seconds| grouped(seconds * 1000.0));
    let mut rows = vec![line(
        title,
        row,
        [number(&row["articles"]), number(&row["articles_per_s"]), String::new(), cpu],
    )];
    if let Some(rate) = row["restored_articles_per_s"].as_f64() {
        let cells = [number(&row["articles"]), grouped(rate), String::new(), String::new()];
        rows.push(line(&format!("{title}, restored from the changelog"), &Value::Null, cells));
    }
    rows
}

/// A number with as many digits as mean something; empty if there is none.
fn number(value: &Value) -> String {
    value.as_f64().map_or(String::new(), grouped)
}

fn grouped(value: f64) -> String {
    match value {
        value if value >= 100.0 => {
            let digits = format!("{value:.0}");
            let from_end = |at: usize| digits.len() - at;
            let with_commas =
                digits.char_indices().map(|(at, digit)| match at > 0 && from_end(at) % 3 == 0 {
                    true => format!(",{digit}"),
                    false => digit.to_string(),
                });
            with_commas.collect()
        }
        value if value >= 10.0 => format!("{value:.0}"),
        value if value.fract() == 0.0 => format!("{value}"),
        value if value >= 1.0 => format!("{}", (value * 100.0).round() / 100.0),
        value => format!("{}", (value * 1000.0).round() / 1000.0),
    }
}
