//! Prints one table from one run: articles and megabytes a second for every step, beside peers and limits.
//!
//! Rounds of all rows are interleaved and the best round of each counts, so that a busy machine shifts all rows
//! alike. Compare rows of one run with each other; seconds of different runs say little.

mod harness;
mod rows;
mod texts;

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rows = Vec::new();
    for set in texts::sets()? {
        eprintln!(
            "{}: {} articles, {} words each on average",
            set.language,
            set.texts.len(),
            set.mean_words()
        );
        rows.extend(harness::measure(&rows::rows(&set), &set));
    }
    harness::print(&rows);
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    std::fs::create_dir_all(&results)?;
    let file = results.join("latest.json");
    std::fs::write(&file, serde_json::to_string_pretty(&harness::json(&rows))?)?;
    eprintln!("written to bench/results/latest.json");
    Ok(())
}
