//! The same answers without a browser, for the check that both agree: JSON pairs in, one per line, JSON answers out.

use std::io::{self, BufRead, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let (older, newer): (String, String) = serde_json::from_str(&line?)?;
        writeln!(out, "{}", samestory_wasm::compare(&older, &newer))?;
    }
    Ok(())
}
