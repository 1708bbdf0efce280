//! The day job of a newsroom on a real broker: 25,000 items in HTML and ten languages, of which 10,000 are new and 15,000 are
//! updated or unpublished. The state holds the articles of earlier days. Everything runs on one machine, broker included.
//!
//! The items lie in the raw topic when `samestory run` starts, as they do for a job that runs once a day. The time is that from
//! the start of the process until the last verdict and the last retraction are visible to `read_committed` consumers.
//!
//! `make bench-day` prints the result and writes bench/results/day.json. ITEMS=n makes a smaller day with the same proportions.

#[path = "../broker.rs"]
mod broker;
#[path = "../stream.rs"]
#[allow(dead_code, reason = "shared with the other benchmarks")]
mod stream;
#[path = "../tongues.rs"]
#[allow(dead_code, reason = "shared with the other benchmarks")]
mod tongues;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::json;
use xxhash_rust::xxh3::xxh3_64;

use broker::{Broker, Outcome, cpu_in, cpu_of, now, stop_process};
use stream::Stream;
use tongues::{TONGUES, transliterate};

/// Words of an article that the stream invents; the pages have real ones between them.
const WORDS: usize = 200;
/// One article in this many is an edited copy of an earlier one.
const COPIES: u64 = 5;
const SITES: u64 = 200;
/// Words in a paragraph of a page.
const PARAGRAPH: usize = 60;
const DAY: i64 = 24 * 60 * 60 * 1000;
const TOPICS: [&str; 3] = ["samestory.unique", "samestory.near-duplicate", "samestory.dead-letter"];

/// Texts in the ten languages, whose words lie between the invented ones: a text of invented words alone is of no language.
const SAMPLES: [&str; 10] = [
    include_str!("../../../tests/data/language/en.txt"),
    include_str!("../../../tests/data/language/hi.txt"),
    include_str!("../../../tests/data/language/es.txt"),
    include_str!("../../../tests/data/language/bn.txt"),
    include_str!("../../../tests/data/language/ta.txt"),
    include_str!("../../../tests/data/language/fr.txt"),
    include_str!("../../../tests/data/language/te.txt"),
    include_str!("../../../tests/data/language/de.txt"),
    include_str!("../../../tests/data/language/ru.txt"),
    include_str!("../../../tests/data/language/ar.txt"),
];

fn main() -> Outcome<()> {
    let items: u64 = std::env::var("ITEMS").map_or(Ok(25_000), |written| written.parse())?;
    let program = std::env::args().nth(1).ok_or("usage: day PROGRAM")?;
    let day = Day::of(items);
    let bench = Bench { program, broker: Broker::start()?, newsroom: Newsroom::new() };
    bench.samestory(&["topics", "--create"])?;

    let yesterday = now() - DAY;
    let before: Vec<Item> = (0..day.held).map(|number| Item { number, change: Change::New }).collect();
    bench.produce(&before, yesterday)?;
    let watching = bench.watch(&before)?;
    let mut stage = bench.run()?;
    watching.join().map_err(|_| "the watcher failed")??;
    stop_process(&mut stage)?;
    eprintln!("{} articles of earlier days are in the state", day.held);

    let today: Vec<Item> = day.items().collect();
    let bytes = bench.produce(&today, now())?;
    let watching = bench.watch(&today)?;
    let broker_before = cpu_of(bench.broker.pid);
    let started = Instant::now();
    let mut stage = bench.run()?;
    let seen = watching.join().map_err(|_| "the watcher failed")??;
    let (stage_cpu, broker_cpu) = (cpu_of(stage.id()), cpu_of(bench.broker.pid) - broker_before);
    stop_process(&mut stage)?;

    let whole = seen.last.duration_since(started).as_secs_f64();
    let ready = seen.first.duration_since(started).as_secs_f64();
    let each = |seconds: f64| seconds * 1000.0 / items as f64;
    println!(
        "{items} items in HTML, {} languages, {:.1} kB each: {} new, {} updated, {} unpublished; {} articles of earlier days in \
         the state",
        TONGUES.len(),
        bytes as f64 / 1000.0 / items as f64,
        day.new,
        day.count(Change::is_update),
        day.count(|change| change == Change::Unpublished),
        day.held
    );
    println!(
        "from the start of the process to the last verdict: {whole:.1} s, {:.2} ms an item; the first verdict after {ready:.1} s",
        each(whole)
    );
    println!(
        "the system that this job comes from documents 5 to 6 minutes, 12 to 14 ms an item, on a machine of its own"
    );
    let verdicts: Vec<String> =
        seen.verdicts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
    println!(
        "verdicts: {}; {} retracted, {} dead letters",
        verdicts.join(", "),
        seen.retracted,
        seen.dead_letters
    );
    println!("language recognised as written: {} of {}", seen.right_language, seen.judged());
    println!(
        "CPU: {:.2} ms an item for the stage, {:.2} ms for the broker, {:.2} ms for this benchmark's consumer",
        each(stage_cpu),
        each(broker_cpu),
        each(seen.cpu)
    );
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    fs::create_dir_all(&results)?;
    let result = json!({
        "items": items,
        "held": day.held,
        "seconds": whole,
        "first_verdict_s": ready,
        "ms_per_item": each(whole),
        "verdicts": seen.verdicts,
        "retracted": seen.retracted,
        "dead_letters": seen.dead_letters,
        "right_language": seen.right_language,
        "stage_cpu_ms_per_item": each(stage_cpu),
        "broker_cpu_ms_per_item": each(broker_cpu),
    });
    fs::write(results.join("day.json"), serde_json::to_string_pretty(&result)?)?;
    eprintln!("written to bench/results/day.json");
    Ok(())
}

/// What happens to an article.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    New,
    /// The page is published again with the same text.
    Touched,
    /// One word in three hundred is corrected.
    Corrected,
    /// A paragraph is added in front.
    Extended,
    Unpublished,
}

impl Change {
    fn is_update(self) -> bool {
        matches!(self, Change::Touched | Change::Corrected | Change::Extended)
    }
}

/// One item of a day.
#[derive(Clone, Copy)]
struct Item {
    /// The number of the article.
    number: u64,
    change: Change,
}

/// How many items of which kind a day has.
struct Day {
    /// Articles of earlier days: each is updated or unpublished.
    held: u64,
    new: u64,
}

impl Day {
    fn of(items: u64) -> Day {
        let new = items * 2 / 5;
        Day { held: items - new, new }
    }

    /// New and changed articles as they mix over the day.
    fn items(&self) -> impl Iterator<Item = Item> {
        let (total, held, new) = (self.held + self.new, self.held, self.new);
        // A prime visits every item once, unless it divides their number.
        let step = [7919, 7927].into_iter().find(|step| !total.is_multiple_of(*step)).unwrap_or(1);
        (0..total).map(move |at| match at * step % total {
            drawn if drawn < new => Item { number: held + drawn, change: Change::New },
            drawn => Item { number: drawn - new, change: Day::change(drawn - new) },
        })
    }

    /// A fifth of the changed articles is unpublished. The number decides the language too, so it is divided first.
    fn change(number: u64) -> Change {
        match number / TONGUES.len() as u64 % 5 {
            0 => Change::Unpublished,
            1 => Change::Touched,
            2 | 3 => Change::Corrected,
            _ => Change::Extended,
        }
    }

    fn count(&self, of: impl Fn(Change) -> bool) -> usize {
        (0..self.held).filter(|&number| of(Day::change(number))).count()
    }
}

/// Writes the articles.
struct Newsroom {
    stream: Stream,
    samples: Vec<Vec<&'static str>>,
}

impl Newsroom {
    fn new() -> Newsroom {
        let samples = SAMPLES.iter().map(|sample| sample.split_whitespace().collect()).collect();
        Newsroom { stream: Stream::with(WORDS, COPIES), samples }
    }

    fn tongue(number: u64) -> usize {
        (number % TONGUES.len() as u64) as usize
    }

    fn id(number: u64) -> String {
        format!("{}-{number}", TONGUES[Newsroom::tongue(number)].code)
    }

    /// The words of an article. A real word follows each invented one and depends on it alone, so that a copy has the same.
    fn words(&self, number: u64) -> Vec<String> {
        let tongue = Newsroom::tongue(number);
        let (letters, sample) = (TONGUES[tongue].letters, &self.samples[tongue]);
        let mut text = String::new();
        self.stream.write(number / TONGUES.len() as u64, &mut text);
        let words = text.split_whitespace().flat_map(|word| {
            let real = sample[(xxh3_64(word.as_bytes()) % sample.len() as u64) as usize];
            [if letters.is_empty() { word.to_owned() } else { transliterate(word, letters) }, real.to_owned()]
        });
        words.collect()
    }

    /// The article as a page of its site, with everything that such a page has around the text.
    fn page(&self, Item { number, change }: Item) -> (String, String) {
        let mut words = self.words(number);
        match change {
            Change::Corrected => words.iter_mut().skip(37).step_by(300).for_each(|word| word.push('x')),
            Change::Extended => {
                // Of an article that nobody else has.
                let more = self.words(number + (1 << 32) / 10 * 10);
                words.splice(0..0, more.into_iter().take(PARAGRAPH));
            }
            Change::New | Change::Touched | Change::Unpublished => {}
        }
        let title = words[40..words.len().min(50)].join(" ");
        let host = number % SITES;
        let code = TONGUES[Newsroom::tongue(number)].code;
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"{code}\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>.a{{margin:0}}</style>\
             \n<script>window.site={{id:{host},page:{number}}};document.write('<p>not text</p>')</script></head>\n<body class=\"site-{host}\">\n<nav><ul>"
        );
        for at in 0..12 {
            // Writing to a string cannot fail.
            let _ = write!(page, "<li><a href=\"/section/{at}\">Section {host}.{at}</a></li>");
        }
        let _ = write!(page, "</ul></nav>\n<article>\n<h1>{title}</h1>\n");
        for (at, paragraph) in words.chunks(PARAGRAPH).enumerate() {
            let _ = writeln!(page, "<p>{}</p>", paragraph.join(" "));
            if at == 2 {
                let _ = writeln!(page, "<div class=\"ad\" hidden>Advertisement {}</div>", number % 17);
            }
        }
        let _ = write!(
            page,
            "</article>\n<footer><p>&copy; Site {host} &middot; <a href=\"/terms\">Terms</a></p></footer>\n</body></html>\n"
        );
        (title, page)
    }
}

struct Bench {
    program: String,
    broker: Broker,
    newsroom: Newsroom,
}

impl Bench {
    /// The defaults, but for names and addresses.
    fn settings(&self) -> Outcome<PathBuf> {
        let file = self.broker.directory.join("samestory.toml");
        let text = format!(
            "[http]\nlisten = \"127.0.0.1:0\"\nquery = \"127.0.0.1:0\"\n[stage]\nstate = {:?}\n[topics]\nraw = \"day.raw\"\n\
             [kafka]\n\"bootstrap.servers\" = \"{}\"\n",
            self.broker.directory.join("state"),
            self.broker.bootstrap
        );
        fs::write(&file, text)?;
        Ok(file)
    }

    fn samestory(&self, arguments: &[&str]) -> Outcome<()> {
        let mut command = Command::new(&self.program);
        let status =
            command.arg("--config").arg(self.settings()?).args(arguments).stdout(Stdio::null()).status()?;
        if status.success() { Ok(()) } else { Err(format!("samestory {arguments:?} failed").into()) }
    }

    fn run(&self) -> Outcome<Child> {
        let log = fs::File::create(self.broker.directory.join("log"))?;
        Ok(Command::new(&self.program)
            .arg("--config")
            .arg(self.settings()?)
            .arg("run")
            .stderr(log)
            .spawn()?)
    }

    /// Writes items with this timestamp to the raw topic, and returns the bytes of their values.
    fn produce(&self, items: &[Item], time: i64) -> Outcome<u64> {
        let mut config = self.broker.client();
        let producer: BaseProducer =
            config.set("linger.ms", "20").set("compression.type", "lz4").set("acks", "1").create()?;
        let mut bytes = 0;
        for &item in items {
            let id = Newsroom::id(item.number);
            let value = (item.change != Change::Unpublished).then(|| {
                let (title, body) = self.newsroom.page(item);
                let url = format!("https://site-{}.example/{id}", item.number % SITES);
                json!({"id": id, "title": title, "url": url, "content_type": "text/html", "body": body})
                    .to_string()
            });
            bytes += value.as_ref().map_or(0, |value| value.len() as u64);
            loop {
                let mut record = BaseRecord::<str, str>::to("day.raw").key(&id).timestamp(time);
                record.payload = value.as_deref();
                match producer.send(record) {
                    Ok(()) => break,
                    Err(_) => producer.poll(Duration::from_millis(5)),
                };
            }
            producer.poll(Duration::ZERO);
        }
        producer.flush(Duration::from_secs(60))?;
        Ok(bytes)
    }

    /// Consumes what is new on the output topics until every item has its verdict, its retraction or its dead letter.
    fn watch(&self, items: &[Item]) -> Outcome<thread::JoinHandle<Result<Seen, String>>> {
        let unpublished = items.iter().filter(|item| item.change == Change::Unpublished);
        let mut unpublished: BTreeSet<String> = unpublished.map(|item| Newsroom::id(item.number)).collect();
        let articles = (items.len() - unpublished.len()) as u64;
        let mut config = self.broker.client();
        let consumer: BaseConsumer = config
            .set("group.id", "watch")
            .set("isolation.level", "read_committed")
            .set("enable.auto.commit", "false")
            .set("fetch.wait.max.ms", "10")
            .create()?;
        let mut list = TopicPartitionList::new();
        for topic in TOPICS {
            let metadata = consumer.fetch_metadata(Some(topic), Duration::from_secs(10))?;
            for partition in metadata.topics()[0].partitions().iter().map(|partition| partition.id()) {
                let (_, high) = consumer.fetch_watermarks(topic, partition, Duration::from_secs(10))?;
                list.add_partition_offset(topic, partition, Offset::Offset(high))?;
            }
        }
        consumer.assign(&list)?;
        Ok(thread::spawn(move || {
            let (mut seen, mut last) = (Seen::new(), Instant::now());
            while seen.judged() + seen.dead_letters < articles || !unpublished.is_empty() {
                let Some(message) = consumer.poll(Duration::from_millis(100)) else {
                    if last.elapsed() > Duration::from_secs(120) {
                        let (judged, left) = (seen.judged(), unpublished.len());
                        return Err(format!(
                            "nothing for two minutes: {judged} of {articles} verdicts, {left} retractions missing"
                        ));
                    }
                    continue;
                };
                let message = message.map_err(|error| error.to_string())?;
                last = Instant::now();
                if seen.count == 0 {
                    seen.first = last;
                }
                (seen.last, seen.count) = (last, seen.count + 1);
                let id = String::from_utf8_lossy(message.key().unwrap_or_default()).into_owned();
                let header = |name: &str| {
                    let header = message.headers()?.iter().find(|header| header.key == name)?;
                    Some(String::from_utf8_lossy(header.value?).into_owned())
                };
                if message.topic() == TOPICS[2] {
                    seen.dead_letters += 1;
                } else if message.payload().is_none() {
                    seen.retracted += u64::from(unpublished.remove(&id));
                } else {
                    let verdict = header("samestory-verdict").unwrap_or_default();
                    *seen.verdicts.entry(verdict).or_insert(0) += 1;
                    let language = header("samestory-language").unwrap_or_default();
                    seen.right_language += u64::from(id.starts_with(&format!("{language}-")));
                }
            }
            seen.cpu = cpu_in(&fs::read_to_string("/proc/thread-self/stat").unwrap_or_default());
            Ok(seen)
        }))
    }
}

/// What became visible.
struct Seen {
    count: u64,
    first: Instant,
    last: Instant,
    verdicts: BTreeMap<String, u64>,
    /// Unpublished articles that were retracted.
    retracted: u64,
    dead_letters: u64,
    /// Verdicts in the language that the article was written in.
    right_language: u64,
    /// CPU seconds of the thread that consumed.
    cpu: f64,
}

impl Seen {
    fn new() -> Seen {
        let now = Instant::now();
        let verdicts = BTreeMap::new();
        Seen {
            count: 0,
            first: now,
            last: now,
            verdicts,
            retracted: 0,
            dead_letters: 0,
            right_language: 0,
            cpu: 0.0,
        }
    }

    fn judged(&self) -> u64 {
        self.verdicts.values().sum()
    }
}
