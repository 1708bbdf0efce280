//! Measures rows of work on texts, and prints them as a table.

use std::time::{Duration, Instant};

use crate::texts::Set;

/// One thing to measure. `work` returns a value that depends on the text, so that the compiler cannot remove
/// it.
pub struct Row {
    pub name: String,
    pub work: Box<dyn Fn(&str) -> u64>,
}

pub struct Measured {
    pub name: String,
    pub articles_per_s: f64,
    pub mb_per_s: f64,
}

const ROUNDS: usize = 7;
/// A round repeats the texts until this much time has passed.
const ROUND: Duration = Duration::from_millis(120);

pub fn measure(rows: &[Row], set: &Set) -> Vec<Measured> {
    let mut best = vec![f64::INFINITY; rows.len()];
    for _ in 0..ROUNDS {
        for (row, best) in rows.iter().zip(&mut best) {
            let start = Instant::now();
            let (mut articles, mut sum) = (0u32, 0u64);
            'round: loop {
                for text in &set.texts {
                    sum = sum.wrapping_add((row.work)(std::hint::black_box(text)));
                    articles += 1;
                    if articles.is_multiple_of(64) && start.elapsed() > ROUND {
                        break 'round;
                    }
                }
            }
            std::hint::black_box(sum);
            *best = best.min(start.elapsed().as_secs_f64() / f64::from(articles));
        }
    }
    let bytes = set.bytes() as f64 / set.texts.len() as f64;
    rows.iter()
        .zip(best)
        .map(|(row, seconds)| Measured {
            name: row.name.clone(),
            articles_per_s: 1.0 / seconds,
            mb_per_s: bytes / seconds / 1e6,
        })
        .collect()
}

pub fn print(rows: &[Measured]) {
    println!("{:<44} {:>12} {:>10} {:>10}", "", "articles/s", "MB/s", "µs each");
    for row in rows {
        let micros = 1e6 / row.articles_per_s;
        println!("{:<44} {:>12.0} {:>10.1} {:>10.2}", row.name, row.articles_per_s, row.mb_per_s, micros);
    }
}

pub fn json(rows: &[Measured]) -> serde_json::Value {
    rows.iter()
        .map(|row| {
            serde_json::json!({
                "name": row.name,
                "articles_per_s": row.articles_per_s.round(),
                "mb_per_s": (row.mb_per_s * 10.0).round() / 10.0,
            })
        })
        .collect()
}
