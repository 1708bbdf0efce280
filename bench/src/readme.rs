//! README's table of speeds, made from the results of earlier benchmarks, so that no figure is copied by hand.
//!
//! [`update`] replaces the text between two markers in README. The table has rows only for results that exist.
//! The integration tests include this file, so it uses no other module.

use std::error::Error;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use samestory::files::thousands;
use serde_json::Value;

pub(crate) const BEGIN: &str = "<!-- speed: make bench-readme -->\n";
pub(crate) const END: &str = "<!-- end of speed -->\n";
pub(crate) const HEAD: &str = "\
| | articles | articles/s | CPU µs each | memory, MB | disk, KiB each | p99, ms |
|---|---:|---:|---:|---:|---:|---|
";

/// The stores of the benchmark and the command that fills them to a size.
const STORES: &[&str] = &[
    "samestory in memory",
    "samestory in RocksDB, changelog in Kafka",
    "samestory in RocksDB, own WAL",
    "txtfp and its index in memory",
    "gaoya and its index in memory",
];
const SIZES: &[(u64, &str)] =
    &[(10_000, "make bench"), (100_000, "make bench"), (1_000_000, "make bench FULL=1")];

/// Writes the table into README. Returns what it lacks, and the commands that measure that. Results are not
/// committed, so the machine that runs this is the one that measured.
pub(crate) fn update(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let results = Results::read(&root.join("bench/results"))?;
    let cores = std::thread::available_parallelism()?.get();
    let table = results.table(cores).ok_or("bench/results has no results: run make bench first")?;
    let readme = root.join("README.md");
    fs::write(&readme, replaced(&fs::read_to_string(&readme)?, &table)?)?;
    Ok(results.missing())
}

/// README with another table.
fn replaced(readme: &str, table: &str) -> Result<String, String> {
    let parts: Vec<&str> = readme.split(BEGIN).collect();
    if let [before, rest] = parts[..]
        && let [_, after] = rest.split(END).collect::<Vec<_>>()[..]
    {
        return Ok(format!("{before}{BEGIN}{table}{END}{after}"));
    }
    Err(format!(
        "README.md needs the lines {:?} and {:?}, in this order and once each",
        BEGIN.trim(),
        END.trim()
    ))
}

/// The rows of `bench/results`; none from a file that does not exist.
struct Results {
    latest: Vec<Value>,
    kafka: Vec<Value>,
    corpus: Vec<Value>,
}

impl Results {
    fn read(directory: &Path) -> Result<Results, Box<dyn Error>> {
        let read = |name: &str| -> Result<Vec<Value>, Box<dyn Error>> {
            match fs::read(directory.join(name)) {
                Ok(json) => Ok(serde_json::from_slice(&json).map_err(|error| format!("{name}: {error}"))?),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
                Err(error) => Err(format!("{name}: {error}").into()),
            }
        };
        Ok(Results { latest: read("latest.json")?, kafka: read("kafka.json")?, corpus: read("corpus.json")? })
    }

    /// The conditions and the table, or nothing without results.
    fn table(&self, cores: usize) -> Option<String> {
        let rows: Vec<Row> =
            [self.stores(), self.bus(), self.corpus(), self.queries()].into_iter().flatten().collect();
        let sizes = || rows.iter().filter_map(|row| row.articles);
        let sizes = sizes().min().zip(sizes().max()).map_or(String::new(), |(least, most)| {
            format!(", {} to {} articles", thousands(least), thousands(most))
        });
        let lines: String = rows.iter().map(Row::line).collect();
        (!rows.is_empty()).then(|| {
            format!(
                "{cores} cores{sizes}. Every figure is of one run: compare rows as ratios.\n\n{HEAD}{lines}"
            )
        })
    }

    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for (size, command) in SIZES {
            let measured = |store: &&str| {
                self.latest.iter().any(|row| row["contender"] == **store && row["articles"] == *size)
            };
            let absent: Vec<&str> = STORES.iter().copied().filter(|store| !measured(store)).collect();
            let which = match absent.len() {
                0 => continue,
                all if all == STORES.len() => String::new(),
                _ => format!(" ({})", absent.join("; ")),
            };
            missing.push(format!("check and insert at {} articles{which}: {command}", thousands(*size)));
        }
        for (rows, part) in [
            (self.bus(), "the bus: make bench-kafka"),
            (self.corpus(), "the corpus: make bench-corpus"),
            // `make bench-query` would replace the stores by the queries.
            (self.queries(), "queries while the store is filled: make bench, or make bench FULL=1"),
        ] {
            if rows.is_empty() {
                missing.push(part.to_owned());
            }
        }
        missing
    }

    fn stores(&self) -> Vec<Row> {
        let stores = self.latest.iter().filter_map(|row| Some((row["contender"].as_str()?, row)));
        stores
            .map(|(store, row)| Row {
                cpu: cell([("", number(row, "cpu_us"), "")]),
                memory: cell([("", number(row, "resident_mb"), "")]),
                p99: cell([("lookup ", number(row, "look_up_p99_ms"), "")]),
                ..Row::of(store, row)
            })
            .collect()
    }

    /// The bare pipe, the stage in each mode, and the restore of its store.
    fn bus(&self) -> Vec<Row> {
        let pipe = self.kafka.iter().find(|row| row["name"] == "pipe");
        let limit = pipe.and_then(|pipe| number(pipe, "articles_per_s"));
        let mut rows = Vec::new();
        for row in &self.kafka {
            let name = row["name"].as_str().unwrap_or_default();
            let title =
                if name == "pipe" { "bus: bare exactly-once pipe" } else { &format!("bus: `{name}`") };
            let micros = |key| number(row, key).map(|seconds_per_1000| seconds_per_1000 * 1000.0);
            let base = Row::of(title, row);
            rows.push(Row {
                rate: base.rate
                    + &share(number(row, "articles_per_s"), limit.filter(|_| name != "pipe"), "of the pipe"),
                cpu: cell([
                    ("", micros("stage_cpu_s_per_1000"), ""),
                    ("broker ", micros("broker_cpu_s_per_1000"), ""),
                ]),
                p99: cell([
                    ("", number(row, "p99_ms_at_200_per_s"), " at 200/s"),
                    ("", number(row, "p99_ms_busy"), " at 70 % load"),
                ]),
                ..base
            });
            if let Some(rate) = number(row, "restored_articles_per_s") {
                let articles = row["articles"].as_u64();
                let title = format!("bus: store of `{name}` restored from its changelog");
                rows.push(Row { title, articles, rate: figure(rate), ..Row::default() });
            }
        }
        rows
    }

    /// The full store, and the same store opened again.
    fn corpus(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        if let Some(row) = self.corpus.iter().rfind(|row| row["articles_per_s"].is_number()) {
            rows.push(Row {
                memory: cell([
                    ("", number(row, "anonymous_mb"), ""),
                    ("mapped ", number(row, "mapped_mb"), ""),
                ]),
                ..Row::of("ten languages in RocksDB", row)
            });
        }
        if let Some((row, seconds)) =
            self.corpus.iter().find_map(|row| Some((row, number(row, "first_verdict_s")?)))
        {
            let title = format!("the same, opened again: first verdict after {} s", figure(seconds));
            rows.push(Row {
                p99: cell([("lookup ", number(row, "look_up_p99_ms"), "")]),
                ..Row::of(&title, row)
            });
        }
        rows
    }

    /// Queries over HTTP while the store is filled.
    fn queries(&self) -> Vec<Row> {
        let queries = self.latest.iter().filter(|row| row["working"] == true);
        queries
            .filter_map(|row| Some((row["question"].as_str()?, row)))
            .map(|(question, row)| {
                let base = Row::of(&format!("query `{question}` while RocksDB is filled"), row);
                let alone = number(row, "articles_per_s_alone");
                Row {
                    rate: base.rate
                        + &share(number(row, "articles_per_s"), alone, "of the rate without queries"),
                    p99: cell([("", number(row, "p99_ms"), "")]),
                    ..base
                }
            })
            .collect()
    }
}

/// A line of the table. An empty cell was not measured.
#[derive(Default)]
struct Row {
    title: String,
    articles: Option<u64>,
    rate: String,
    cpu: String,
    memory: String,
    disk: String,
    p99: String,
}

impl Row {
    /// The cells that have the same key in all results.
    fn of(title: &str, row: &Value) -> Row {
        Row {
            title: title.to_owned(),
            articles: row["articles"].as_u64(),
            rate: cell([("", number(row, "articles_per_s"), "")]),
            disk: cell([("", number(row, "disk_kib"), "")]),
            ..Row::default()
        }
    }

    fn line(&self) -> String {
        let articles = self.articles.map(thousands).unwrap_or_default();
        let cells = [&articles, &self.rate, &self.cpu, &self.memory, &self.disk, &self.p99];
        let cells = cells.map(|cell| if cell.is_empty() { "–" } else { cell });
        format!("| {} | {} |\n", self.title, cells.join(" | "))
    }
}

fn number(row: &Value, key: &str) -> Option<f64> {
    row[key].as_f64()
}

/// The figures that exist, each with its words before and after.
fn cell<const N: usize>(figures: [(&str, Option<f64>, &str); N]) -> String {
    let written = figures
        .iter()
        .filter_map(|(before, value, after)| value.map(|value| format!("{before}{}{after}", figure(value))));
    written.collect::<Vec<_>>().join(", ")
}

fn share(rate: Option<f64>, of: Option<f64>, words: &str) -> String {
    rate.zip(of).map(|(rate, of)| format!(" ({:.2} {words})", rate / of)).unwrap_or_default()
}

/// Three significant digits from a hundred on, and two below: runs differ by more than that.
fn figure(value: f64) -> String {
    let digits = if value < 100.0 { 1 } else { 2 };
    match format!("{value:.digits$e}").parse::<f64>() {
        Ok(rounded) if rounded >= 1000.0 => thousands(rounded as u64),
        Ok(rounded) => rounded.to_string(),
        Err(_) => value.to_string(),
    }
}
