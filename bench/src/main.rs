//! The benchmark: articles and megabytes per second of every step, next to peer libraries and upper limits.
//!
//! The rounds of all rows are interleaved, and the best round of each counts, so that a busy machine affects
//! all rows alike. Compare rows within one run; times of different runs are not comparable.
//!
//! `samestory-bench [full] [steps | store [CONTENDER…] | restore | copies | query]` runs everything, or only
//! the steps, the stores, the restore of a changelog, copies of one text, or queries. `full` fills the stores
//! to a million articles.
//!
//! `samestory-bench corpus` fills one store with 15.8 million stories in ten languages, or with `ARTICLES`.
//!
//! `samestory-bench readme` writes README's table of speeds from the results of earlier runs.
//!
//! `samestory-bench contender NAME [full] [in DIRECTORY] [SIZE…]` runs one contender in this process and
//! prints a line of JSON per size. A store in a given directory is kept, and a later run continues to fill
//! it.

#[cfg(feature = "disk")]
mod boilerplate;
#[cfg(feature = "disk")]
mod codecs;
mod contenders;
#[cfg(feature = "disk")]
mod corpus;
mod feed;
mod harness;
#[cfg(feature = "disk")]
mod query;
mod readme;
#[cfg(feature = "disk")]
mod restore;
mod rows;
mod store;
mod stream;
mod texts;
#[cfg(feature = "disk")]
mod tongues;

use std::path::Path;

/// The same allocator as the product.
#[cfg(feature = "disk")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "contender") {
        let name = words.get(1).ok_or("which contender?")?;
        let mut rest = words[2..].iter().map(String::as_str).peekable();
        let full = rest.next_if_eq(&"full").is_some();
        let kept = rest.next_if_eq(&"in").and_then(|_| rest.next()).map(Path::new);
        let sizes = rest.map(str::parse).collect::<Result<Vec<u64>, _>>()?;
        let default_sizes = if full { store::FULL } else { store::QUICK };
        return store::contend(name, if sizes.is_empty() { default_sizes } else { &sizes }, kept);
    }
    if words.first().is_some_and(|word| word == "readme") {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for part in readme::update(&root)? {
            eprintln!("not measured: {part}");
        }
        eprintln!("written to README.md");
        return Ok(());
    }
    #[cfg(feature = "disk")]
    if words.first().is_some_and(|word| word == "corpus") {
        let rows = corpus::run()?;
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
        std::fs::write(results.join("corpus.json"), serde_json::to_string_pretty(&rows)?)?;
        return Ok(());
    }
    let full = words.first().is_some_and(|word| word == "full");
    if full {
        words.remove(0);
    }
    let part = words.first().map(String::as_str);
    let mut steps = Vec::new();
    if part.is_none_or(|part| part == "steps") {
        for set in texts::sets()? {
            eprintln!(
                "{}: {} articles, {} words each on average",
                set.language,
                set.texts.len(),
                set.mean_words()
            );
            steps.extend(harness::measure(&rows::rows(&set), &set));
            #[cfg(feature = "disk")]
            steps.extend(harness::measure(&codecs::rows(&set)?, &set));
        }
        harness::print(&steps);
    }
    let mut stores = Vec::new();
    if part.is_none_or(|part| part == "store") {
        stores = store::rows(full, words.get(1..).unwrap_or_default())?;
        store::print(&stores);
    }
    #[cfg(feature = "disk")]
    if part.is_none_or(|part| part == "restore") {
        let restored = restore::rows(if full { 500_000 } else { 100_000 })?;
        restore::print(&restored);
        stores.extend(restored);
    }
    #[cfg(feature = "disk")]
    if part.is_none_or(|part| part == "copies") {
        let copies = boilerplate::rows(full)?;
        boilerplate::print(&copies);
        stores.extend(copies);
    }
    #[cfg(feature = "disk")]
    if part.is_none_or(|part| part == "query") {
        let questions = query::rows(full)?;
        query::print(&questions);
        stores.extend(questions);
    }
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    std::fs::create_dir_all(&results)?;
    let mut all = harness::json(&steps);
    if let serde_json::Value::Array(all) = &mut all {
        all.extend(stores);
    }
    std::fs::write(results.join("latest.json"), serde_json::to_string_pretty(&all)?)?;
    eprintln!("written to bench/results/latest.json");
    Ok(())
}
