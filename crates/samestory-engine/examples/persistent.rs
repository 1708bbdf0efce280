//! Keeps an index in a directory between runs (feature `rocksdb`). Each argument is a file with one article.
//!
//! ```sh
//! cargo run -p samestory-engine --features rocksdb --example persistent -- state article1.txt article2.txt
//! ```

#[cfg(not(feature = "rocksdb"))]
fn main() {
    eprintln!(
        "an index on disk needs the feature: cargo run -p samestory-engine --features rocksdb --example persistent"
    );
}

#[cfg(feature = "rocksdb")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::{env, fs};

    use samestory_engine::{Article, Deduplicator, Options};

    let mut arguments = env::args().skip(1);
    let directory = arguments.next().ok_or("give a directory for the index, then files")?;
    let mut dedup = Deduplicator::open(directory, Options::default().min_confidence(0.7))?;
    for file in arguments {
        let verdict = dedup.insert(Article::new(file.as_str(), fs::read_to_string(&file)?))?;
        println!("{file}: {}", verdict.kind.as_str());
    }
    Ok(())
}
