//! `samestory produce`: sends the records of files to a topic, keyed and timestamped as a crawler would. Records that are not
//! articles are sent unchanged, because dealing with them is the stage's task.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use samestory::config::Config;
use samestory::files;
use samestory::files::{InputSpec, Source};
use samestory::formats::fields::DecodeFailure;
use samestory::formats::{Event, json};
use samestory::kafka::tools::produce::Sender;
use samestory_engine::text;
use samestory_engine::text::Options;
use samestory_engine::text::markup::ContentType;

use super::Failure;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory produce history/*.ndjson.gz             to the raw topic, keyed by article id
  samestory produce articles.csv --topic crawl.test --rate 200
  samestory produce articles.ndjson --key language  for mode \"direct\"

A record's timestamp is the article's fetched_at, if it has one. Lines that are not articles are sent unchanged; the stage turns
them into dead letters.")]
pub(super) struct Args {
    /// NDJSON, a JSON array, CSV or TSV with a header, plain or compressed (gz, zst); - for standard input
    #[arg(required = true, value_name = "FILES")]
    files: Vec<PathBuf>,
    /// Topic to send to [default: topics.raw]
    #[arg(long)]
    topic: Option<String>,
    /// Key of the records
    #[arg(long, value_enum, default_value = "id")]
    key: Key,
    /// The most records per second
    #[arg(long, value_name = "N")]
    rate: Option<u32>,
    /// Repeat the files until stopped; not possible with standard input
    #[arg(long)]
    repeat: bool,
    /// Print no summary
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Key {
    /// The article's id
    Id,
    /// The home of the article's language, for mode direct
    Language,
    /// No key
    None,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    if args.repeat && args.files.iter().any(|file| file == Path::new("-")) {
        return Err(Failure::OnlyOnce);
    }
    let topic = args.topic.as_deref().unwrap_or(&config.bus.topics.raw);
    let sender = Sender::new(&config.bus, topic)?;
    let sources = args.files.iter().map(|path| Source::new(path)).collect();
    let reading = InputSpec::new(sources, config.fields.clone(), config.owner.clone(), config.max_record());
    let (start, mut too_large) = (Instant::now(), 0_u64);
    let (sent, failed) = (Cell::new(0_u64), RefCell::new(Ok(())));
    let pace = args.rate.map(|rate| Duration::from_secs_f64(1.0 / f64::from(rate.max(1))));
    let mut send = |content: Result<Vec<u8>, DecodeFailure>| {
        let Ok(bytes) = content else {
            too_large += 1;
            return true;
        };
        if let Some(pace) = pace {
            let due = start + pace.mul_f64(sent.get() as f64);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        let event = json::JsonRecord::parse(&bytes)
            .and_then(|record| json::decode(&record, &config.fields, || None))
            .ok();
        let (key, time) = match &event {
            Some(Event::Article(article) | Event::Bodiless(article, _)) => {
                (key(args.key, article, &config.text), article.fetched_at)
            }
            Some(Event::Delete(id)) => ((args.key == Key::Id).then(|| id.to_string()), None),
            None => (None, None),
        };
        drop(failed.replace(sender.send(key.as_deref().map(str::as_bytes), Some(&bytes), time)));
        sent.set(sent.get() + 1);
        failed.borrow().is_ok()
    };
    loop {
        let before = sent.get();
        files::each_record(&reading, &mut send)?;
        failed.replace(Ok(()))?;
        // Files without records would be read in an endless loop.
        if !args.repeat || sent.get() == before {
            break;
        }
    }
    let sent = sent.get();
    sender.finish()?;
    if !args.quiet {
        let seconds = start.elapsed().as_secs_f64();
        eprintln!("{sent} records sent to {topic} in {seconds:.1} s");
        if too_large > 0 {
            eprintln!("{too_large} records exceed the limit of {} bytes and were not sent", reading.limit);
        }
    }
    Ok(())
}

fn key(key: Key, article: &samestory_engine::model::RawArticle, options: &Options) -> Option<String> {
    match key {
        Key::Id => Some(article.id.to_string()),
        Key::None => None,
        Key::Language => {
            let content_type = article.content_type.as_deref().and_then(ContentType::parse);
            let text = text::prepare(&article.body, content_type, article.language.as_deref(), options);
            Some(text.map_or("und", |text| text.language.home.code()).to_owned())
        }
    }
}
