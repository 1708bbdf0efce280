//! Compares two files and shows the evidence.
//!
//! ```sh
//! cargo run -p samestory-engine --example compare -- morning.txt evening.txt
//! ```

use std::{env, fs};

use samestory_engine::{Measure, compare};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = env::args().skip(1).collect();
    let [older, newer] = files.as_slice() else {
        return Err("give two files: the older text and the newer one".into());
    };
    let comparison = compare(&fs::read_to_string(older)?, &fs::read_to_string(newer)?);
    println!("{}: confidence {:.2}", comparison.relation.as_str(), comparison.confidence.get());
    for measure in Measure::ALL {
        if let Some(share) = comparison.evidence.get(measure) {
            println!("{:>18} {share:.2}", measure.as_str());
        }
    }
    Ok(())
}
