//! The whole corpus: millions of synthetic stories in ten languages through one store on disk, as the stage would take
//! them in a backfill. Prints rate, memory and disk for every million, and draws them as an SVG.
//!
//! `ARTICLES` in the environment makes a smaller corpus. Nothing expires.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use samestory::config::{Config, Settings};
use samestory_engine::engine::{Batch, Incoming, Item};
use samestory_engine::index::{Budget, Durability, Rocks, RocksOptions, Store};
use samestory_engine::model::{BoundedStr, RawArticle};
use samestory_engine::{ArticleId, Deduplicator, EventTime, Options, Position};
use serde_json::{Value, json};

use crate::contenders::Outcome;
use crate::feed::{Feed, Prepare};
use crate::store::{bytes, rounded, status};
use crate::stream::Stream;
use crate::tongues::{TONGUES, of_article, transliterate};

const ARTICLES: u64 = 15_800_000;
/// Articles per batch, as in the Kafka stage.
const BATCH: usize = 2000;
const WORDS: usize = 300;
/// One article in this many is a near-duplicate.
const COPIES: u64 = 20;
/// Lookups that are timed one by one after the store is opened again.
const LOOK_UPS: u64 = 1000;
const AHEAD: Durability = Durability::Changelog { partition: 0 };

/// A row of the table.
struct Row {
    articles: u64,
    per_second: f64,
    anonymous_mb: f64,
    mapped_mb: f64,
    disk_gb: f64,
    kib_each: f64,
}

pub fn run() -> Outcome<Vec<Value>> {
    let total: u64 = std::env::var("ARTICLES").map_or(Ok(ARTICLES), |written| written.parse())?;
    let kept = std::env::var_os("STATE").map(PathBuf::from);
    let place = std::env::temp_dir().join(format!("samestory-corpus-{}", std::process::id()));
    let directory = kept.clone().unwrap_or_else(|| place.clone());
    let outcome = fill(&directory, total);
    if kept.is_none() {
        drop(std::fs::remove_dir_all(&place));
    }
    outcome
}

fn options() -> Outcome<Options> {
    let mut settings = Settings::default();
    settings.matching.retention = Some("forever".to_owned());
    // Invented words are of no language.
    settings.language.trust = Some("declared".to_owned());
    Ok(Config::try_from(settings)?.options())
}

fn prepare(dedup: &Deduplicator<Rocks>) -> Prepare<Item> {
    let preparer = dedup.preparer();
    Arc::new(move |n, text| {
        let time = Some(EventTime::from_millis(1_500_000_000_000 + 20_000 * n as i64));
        let article = RawArticle {
            id: ArticleId::new(&format!("story-{n:08}")).expect("short"),
            title: Some(text.chars().take(60).collect()),
            body: text.to_owned(),
            url: Some(format!("https://site-{}.example/story-{n:08}", n % 7)),
            host: None,
            language: Some(TONGUES[of_article(n).0].code.to_owned()),
            content_type: Some("text/plain".to_owned()),
            published_at: time,
            fetched_at: time,
        };
        let position = Position::Topic { topic: BoundedStr::new("articles"), partition: 0, offset: n as i64 };
        let incoming = match preparer.prepare(&article, &position) {
            Ok(prepared) => Incoming::Article(Box::new(prepared)),
            Err(letter) => Incoming::DeadLetter(letter),
        };
        Item { position, time, log_time: None, incoming }
    })
}

fn open(directory: &Path) -> Outcome<Deduplicator<Rocks>> {
    let options = options()?;
    let store =
        Rocks::open(directory, &RocksOptions::new(options.schemes.clone(), AHEAD, Budget::default()))?;
    Ok(Deduplicator::with_store(options, store))
}

fn fill(directory: &Path, total: u64) -> Outcome<Vec<Value>> {
    let stream = Arc::new(Stream::with(WORDS, COPIES));
    let write = {
        let stream = Arc::clone(&stream);
        move |n: u64, text: &mut String| {
            let (tongue, own) = of_article(n);
            stream.write(own, text);
            let letters = TONGUES[tongue].letters;
            if !letters.is_empty() {
                *text = transliterate(text, letters);
            }
        }
    };
    let mut dedup = open(directory)?;
    let attestor = dedup.store_mut().attestor().ok_or("the store follows a changelog")?;
    let prepare = prepare(&dedup);
    let mut feed = Feed::spawn(&prepare, 0, total, write.clone());
    let step = (total / 16).clamp(1, 1_000_000);
    let (mut held, mut rows, mut since, mut from) = (0, Vec::new(), Instant::now(), 0);
    let started = Instant::now();
    println!(
        "{:>12} {:>11} {:>13} {:>10} {:>9} {:>9}",
        "articles", "articles/s", "anonymous MB", "mapped MB", "disk GB", "KiB each"
    );
    while held < total {
        let items = feed.take(BATCH);
        held += items.len() as u64;
        let (_, write_set) = dedup.plan(Batch { items, ..Batch::default() })?;
        dedup.store_mut().apply(write_set, &attestor.attest(held))?;
        if held - from >= step || held == total {
            let disk = bytes(directory)? as f64;
            let row = Row {
                articles: held,
                per_second: (held - from) as f64 / since.elapsed().as_secs_f64(),
                anonymous_mb: status("RssAnon:").unwrap_or(0.0) * 1024.0 / 1e6,
                mapped_mb: status("RssFile:").unwrap_or(0.0) * 1024.0 / 1e6,
                disk_gb: disk / 1e9,
                kib_each: disk / 1024.0 / held as f64,
            };
            println!(
                "{:>12} {:>11.0} {:>13.0} {:>10.0} {:>9.2} {:>9.3}",
                row.articles, row.per_second, row.anonymous_mb, row.mapped_mb, row.disk_gb, row.kib_each
            );
            rows.push(row);
            (since, from) = (Instant::now(), held);
        }
    }
    let filled = started.elapsed();
    dedup.store_mut().flush()?;
    drop(dedup);
    let (opening, first, p99) = restart(directory, total, &prepare, &write)?;
    println!(
        "filled in {:.0} s; opened again in {:.1} s, first verdict after {:.1} s; one look-up in a hundred takes more than {:.2} ms",
        filled.as_secs_f64(),
        opening.as_secs_f64(),
        first.as_secs_f64(),
        p99 * 1e3
    );
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    std::fs::create_dir_all(&results)?;
    let picture = results.join("corpus.svg");
    std::fs::write(&picture, svg(&rows))?;
    eprintln!("drawn in {}", picture.display());
    let rows = rows.iter().map(|row| {
        json!({
            "name": format!("corpus, {}", row.articles),
            "articles": row.articles,
            "articles_per_s": row.per_second.round(),
            "anonymous_mb": row.anonymous_mb.round(),
            "mapped_mb": row.mapped_mb.round(),
            "disk_kib": rounded(row.kib_each, 3),
        })
    });
    let restarted = json!({
        "name": format!("corpus restarted, {total}"),
        "articles": total,
        "open_s": rounded(opening.as_secs_f64(), 2),
        "first_verdict_s": rounded(first.as_secs_f64(), 2),
        "look_up_p99_ms": rounded(p99 * 1e3, 3),
    });
    Ok(rows.chain([restarted]).collect())
}

/// Opens the store again, and asks it for verdicts: the time to open it, to the first verdict, and the p99 of more.
fn restart(
    directory: &Path,
    total: u64,
    prepare: &Prepare<Item>,
    write: &(impl Fn(u64, &mut String) + Clone + Send + 'static),
) -> Outcome<(Duration, Duration, f64)> {
    let articles = Feed::spawn(prepare, total, total + LOOK_UPS, write.clone()).take(LOOK_UPS as usize);
    let started = Instant::now();
    let dedup = open(directory)?;
    let opening = started.elapsed();
    let (mut first, mut waits) = (None, Vec::new());
    for article in &articles {
        let Incoming::Article(article) = &article.incoming else { continue };
        let before = Instant::now();
        std::hint::black_box(dedup.judge(article)?);
        waits.push(before.elapsed().as_secs_f64());
        first.get_or_insert_with(|| started.elapsed());
    }
    waits.sort_unstable_by(f64::total_cmp);
    let p99 = waits.get(waits.len().saturating_sub(1) * 99 / 100).copied().unwrap_or(0.0);
    Ok((opening, first.unwrap_or(opening), p99))
}

/// The title of a curve, and its value in a row.
type Curve = (&'static str, fn(&Row) -> f64);

/// Three curves over the number of articles.
fn svg(rows: &[Row]) -> String {
    const WIDTH: f64 = 720.0;
    const HEIGHT: f64 = 150.0;
    let curves: [Curve; 3] = [
        ("articles per second", |row| row.per_second),
        ("anonymous memory, MB", |row| row.anonymous_mb),
        ("disk, GB", |row| row.disk_gb),
    ];
    let last = rows.last().map_or(1.0, |row| row.articles as f64);
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" font-size=\"12\">\n",
        WIDTH + 80.0,
        (HEIGHT + 40.0) * curves.len() as f64 + 20.0
    );
    for (at, (title, value)) in curves.iter().enumerate() {
        let top = at as f64 * (HEIGHT + 40.0) + 30.0;
        let most = rows.iter().map(value).fold(1e-9, f64::max);
        let points: Vec<String> = rows
            .iter()
            .map(|row| {
                let (x, y) = (row.articles as f64 / last * WIDTH, HEIGHT * (1.0 - value(row) / most));
                format!("{:.1},{:.1}", 60.0 + x, top + y)
            })
            .collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            picture,
            "<text x=\"60\" y=\"{}\">{title}</text>\n<text x=\"4\" y=\"{}\">{most:.0}</text>\n\
             <path d=\"M60 {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#999\"/>\n\
             <polyline points=\"{}\" fill=\"none\" stroke=\"#06c\" stroke-width=\"2\"/>",
            top - 8.0,
            top + 10.0,
            points.join(" "),
            bottom = top + HEIGHT,
            right = 60.0 + WIDTH,
        );
    }
    let _ = writeln!(
        picture,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{last:.0} articles</text>\n</svg>",
        60.0 + WIDTH,
        (HEIGHT + 40.0) * curves.len() as f64 + 14.0
    );
    picture
}
