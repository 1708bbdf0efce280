//! Reads one text per line from standard input and says what each repeats.
//!
//! ```sh
//! cargo run -p samestory-engine --example stream < texts.txt
//! ```

use std::io::{self, BufRead};

use samestory_engine::{Article, Deduplicator, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut dedup = Deduplicator::in_memory(Options::default());
    for (number, line) in io::stdin().lock().lines().enumerate() {
        let verdict = dedup.insert(Article::new(format!("line {}", number + 1), line?))?;
        match &verdict.duplicate_of {
            Some(earlier) => {
                println!("{} repeats {earlier} (confidence {:.2})", verdict.id, verdict.confidence.get())
            }
            None => println!("{} is new", verdict.id),
        }
    }
    Ok(())
}
