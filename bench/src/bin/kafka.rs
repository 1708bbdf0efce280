//! Benchmarks the stage on a real broker, next to its upper limit: a bare exactly-once pipe that copies the
//! same records unchanged, also with librdkafka. Everything runs on one machine, broker included.
//!
//! `make bench-kafka` prints one table and writes bench/results/kafka.json. ARTICLES=n sets the number of
//! articles.

#[path = "../broker.rs"]
mod broker;
#[path = "../stream.rs"]
#[allow(dead_code, reason = "shared with the other benchmark")]
mod stream;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::util::Timeout;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde_json::json;

use broker::{Broker, Outcome, cpu_in, cpu_of, now, stop_process};

fn main() -> Outcome<()> {
    let count: u64 = std::env::var("ARTICLES").ok().and_then(|text| text.parse().ok()).unwrap_or(60_000);
    let program = std::env::args().nth(1).ok_or("usage: kafka PROGRAM")?;
    let bench = Bench::start(&program, count)?;
    let mut rows = Vec::new();
    let mut best: Option<Row> = None;
    for size in [500, 1000, 2000] {
        let row = bench.pipe(size)?;
        eprintln!("pipe, {size} records per transaction: {:.0} articles/s", row.rate);
        if best.as_ref().is_none_or(|best| row.rate > best.rate) {
            best = Some(row);
        }
    }
    let pipe = best.ok_or("no pipe")?;
    let limit = pipe.rate;
    rows.push(pipe);
    for mode in ["direct", "routed"] {
        rows.push(bench.stage(mode)?);
    }
    println!(
        "{:<8} {:>12} {:>8} {:>12} {:>12} {:>18} {:>18} {:>12}",
        "row",
        "articles/s",
        "of pipe",
        "broker s/k",
        "stage s/k",
        "p50/p99 ms 200/s",
        "p50/p99 ms busy",
        "restore/s"
    );
    for row in &rows {
        let pair =
            |pair: Option<(f64, f64)>| pair.map_or("-".into(), |(p50, p99)| format!("{p50:.0} / {p99:.0}"));
        println!(
            "{:<8} {:>12.0} {:>8.2} {:>12.3} {:>12.3} {:>18} {:>18} {:>12}",
            row.name,
            row.rate,
            row.rate / limit,
            row.broker_cpu,
            row.stage_cpu,
            pair(row.calm),
            pair(row.busy),
            row.restore.map_or("-".into(), |rate| format!("{rate:.0}")),
        );
    }
    for row in rows.iter().filter(|row| !row.threads.is_empty()) {
        let threads: Vec<String> =
            row.threads.iter().map(|(part, cpu)| format!("{part} {:.1}", cpu * 1000.0)).collect();
        println!("{}: µs of CPU an article: {}", row.name, threads.join(", "));
    }
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    fs::create_dir_all(&results)?;
    let rows: Vec<_> = rows.iter().map(Row::json).collect();
    fs::write(results.join("kafka.json"), serde_json::to_string_pretty(&rows)?)?;
    eprintln!("written to bench/results/kafka.json");
    Ok(())
}

/// The measurements of one pipeline: the bare pipe, or the stage in one mode.
struct Row {
    name: &'static str,
    /// Articles copied or judged for the rate.
    articles: u64,
    rate: f64,
    /// CPU seconds per thousand articles.
    broker_cpu: f64,
    stage_cpu: f64,
    /// The stage's, by what the threads do.
    threads: BTreeMap<&'static str, f64>,
    /// Milliseconds from produced to visible (p50, p99) at 200 articles per second, and at 70 % of the
    /// maximum rate.
    calm: Option<(f64, f64)>,
    busy: Option<(f64, f64)>,
    /// Articles restored from the changelog per second.
    restore: Option<f64>,
}

impl Row {
    fn json(&self) -> serde_json::Value {
        json!({
            "name": self.name,
            "articles": self.articles,
            "articles_per_s": self.rate,
            "broker_cpu_s_per_1000": self.broker_cpu,
            "stage_cpu_s_per_1000": self.stage_cpu,
            "stage_cpu_s_per_1000_by_thread": self.threads,
            "p50_ms_at_200_per_s": self.calm.map(|pair| pair.0),
            "p99_ms_at_200_per_s": self.calm.map(|pair| pair.1),
            "p50_ms_busy": self.busy.map(|pair| pair.0),
            "p99_ms_busy": self.busy.map(|pair| pair.1),
            "restored_articles_per_s": self.restore,
        })
    }
}

struct Bench {
    program: String,
    broker: Broker,
    count: u64,
    articles: Arc<stream::Stream>,
}

impl Bench {
    fn start(program: &str, count: u64) -> Outcome<Bench> {
        let bench = Bench {
            program: program.to_owned(),
            broker: Broker::start()?,
            count,
            articles: Arc::new(stream::Stream::new()),
        };
        bench.samestory("direct", &["topics", "--create"])?;
        bench.samestory("routed", &["topics", "--create"])?;
        let started = Instant::now();
        bench.produce("bench.raw", 0..count, None)?;
        eprintln!("produced {count} articles to bench.raw in {:.1} s", started.elapsed().as_secs_f64());
        Ok(bench)
    }

    fn client(&self) -> ClientConfig {
        self.broker.client()
    }

    /// Uses one partition of English raw articles, so that direct, routed and the pipe have the same input.
    fn settings(&self, mode: &str) -> Outcome<PathBuf> {
        let file = self.broker.directory.join(format!("{mode}.toml"));
        let state = self.broker.directory.join(format!("{mode}-state"));
        let text = format!(
            r#"[http]
listen = "127.0.0.1:0"
query = "127.0.0.1:0"
[stage]
mode = "{mode}"
app = "{mode}"
state = "{state}"
[match]
retention = "forever"
[topics]
raw = "bench.raw"
routed = "{mode}.routed"
unique = "{mode}.unique"
near_duplicate = "{mode}.near"
clusters = "{mode}.clusters"
changelog = "{mode}.changelog"
dead_letter = "{mode}.dead"
generations = "{mode}.generations"
partitions = 1
output_partitions = 1
[kafka]
"bootstrap.servers" = "{bootstrap}"
"#,
            state = state.display(),
            bootstrap = self.broker.bootstrap
        );
        fs::write(&file, text)?;
        Ok(file)
    }

    fn samestory(&self, mode: &str, arguments: &[&str]) -> Outcome<()> {
        let settings = self.settings(mode)?;
        let status = Command::new(&self.program)
            .arg("--config")
            .arg(settings)
            .args(arguments)
            .stdout(Stdio::null())
            .status()?;
        if status.success() { Ok(()) } else { Err(format!("samestory {arguments:?} failed").into()) }
    }

    fn produce(&self, topic: &str, numbers: std::ops::Range<u64>, rate: Option<f64>) -> Outcome<()> {
        let producer: BaseProducer = self
            .client()
            .set("linger.ms", if rate.is_some() { "0" } else { "20" })
            .set("compression.type", "lz4")
            .set("acks", "1")
            .create()?;
        let (started, first) = (Instant::now(), numbers.start);
        let mut text = String::new();
        for number in numbers {
            if let Some(rate) = rate {
                let due = started + Duration::from_secs_f64((number - first) as f64 / rate);
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            self.articles.write(number, &mut text);
            let id = format!("article-{number}");
            let host = number % 200;
            let article = json!({
                "id": id, "language": "en", "title": format!("Article {number}"),
                "url": format!("https://site-{host}.example/{number}"), "body": text,
            });
            let value = article.to_string();
            loop {
                let record = BaseRecord::to(topic).partition(0).key(&id).payload(&value).timestamp(now());
                match producer.send(record) {
                    Ok(()) => break,
                    Err(_) => producer.poll(Duration::from_millis(5)),
                }
            }
            producer.poll(Duration::ZERO);
        }
        producer.flush(Duration::from_secs(60))?;
        Ok(())
    }

    /// Records on the raw topic, including those that earlier latency measurements added.
    fn raw_records(&self) -> Outcome<u64> {
        let consumer: BaseConsumer = self.client().set("group.id", "ask").create()?;
        let (_, high) = consumer.fetch_watermarks("bench.raw", 0, Duration::from_secs(10))?;
        Ok(u64::try_from(high)?)
    }

    /// Consumes new records of the topics until `count` are visible, and records when the first and the last
    /// came and the latency of each.
    fn watch(&self, topics: &[String], count: u64) -> Outcome<thread::JoinHandle<Visible>> {
        let consumer: BaseConsumer = self
            .client()
            .set("group.id", "watch")
            .set("isolation.level", "read_committed")
            .set("enable.auto.commit", "false")
            .set("fetch.wait.max.ms", "10")
            .set("fetch.error.backoff.ms", "5")
            .create()?;
        let mut list = TopicPartitionList::new();
        for topic in topics {
            let (_, high) = consumer.fetch_watermarks(topic, 0, Duration::from_secs(10))?;
            list.add_partition_offset(topic, 0, Offset::Offset(high))?;
        }
        consumer.assign(&list)?;
        Ok(thread::spawn(move || {
            let mut seen = Visible::default();
            let mut last_record = Instant::now();
            while seen.count < count && last_record.elapsed() < Duration::from_secs(60) {
                let Some(Ok(message)) = consumer.poll(Duration::from_millis(100)) else { continue };
                last_record = Instant::now();
                seen.latencies.push((now() - message.timestamp().to_millis().unwrap_or_default()) as f64);
                seen.first.get_or_insert((last_record, cpu()));
                seen.last = Some(last_record);
                seen.count += 1;
            }
            seen
        }))
    }

    /// Measures the bare pipe, which copies records unchanged in transactions of `size` records.
    fn pipe(&self, size: usize) -> Outcome<Row> {
        let group = format!("pipe-{size}");
        let topic = format!("pipe.{size}");
        let admin: rdkafka::admin::AdminClient<rdkafka::client::DefaultClientContext> =
            self.client().create()?;
        let new = rdkafka::admin::NewTopic::new(&topic, 1, rdkafka::admin::TopicReplication::Fixed(1));
        futures_executor::block_on(admin.create_topics([&new], &rdkafka::admin::AdminOptions::new()))?;
        thread::sleep(Duration::from_millis(500));
        let stop = Arc::new(AtomicBool::new(false));
        let held = self.raw_records()?;
        let watching = self.watch(std::slice::from_ref(&topic), held)?;
        let before = (cpu_of(self.broker.pid), cpu_of(std::process::id()));
        let mut pipe = Pipe::open(self, &group, &topic, size)?;
        let (piped, stopped) = (topic.clone(), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if let Err(error) = pipe.turn(&piped) {
                    eprintln!("pipe: {error}");
                    return;
                }
            }
        });
        let seen = watching.join().map_err(|_| "the watcher failed")?;
        let rate = seen.rate()?;
        let k = held as f64 / 1000.0;
        let (broker_cpu, stage_cpu) =
            ((cpu_of(self.broker.pid) - before.0) / k, (cpu_of(std::process::id()) - before.1) / k);
        let calm = self.latency(std::slice::from_ref(&topic), 200.0, 3000)?;
        let busy = self.latency(&[topic], rate * 0.7, (rate * 0.7 * 5.0) as u64)?;
        stop.store(true, Ordering::Relaxed);
        thread.join().map_err(|_| "the pipe failed")?;
        Ok(Row {
            name: "pipe",
            articles: held,
            rate,
            broker_cpu,
            stage_cpu,
            threads: BTreeMap::new(),
            calm: Some(calm),
            busy: Some(busy),
            restore: None,
        })
    }

    fn stage(&self, mode: &'static str) -> Outcome<Row> {
        let topics = [format!("{mode}.unique"), format!("{mode}.near")];
        let held = self.raw_records()?;
        let watching = self.watch(&topics, held)?;
        let before = cpu_of(self.broker.pid);
        let mut stage = self.run(mode)?;
        let seen = watching.join().map_err(|_| "the watcher failed")?;
        let rate = seen.rate()?;
        let k = held as f64 / 1000.0;
        let (broker_cpu, stage_cpu) = ((cpu_of(self.broker.pid) - before) / k, cpu_of(stage.id()) / k);
        let threads = cpu_by_thread(stage.id()).into_iter().map(|(part, cpu)| (part, cpu / k)).collect();
        eprintln!("{mode}: {rate:.0} articles/s");
        let calm = self.latency(&topics, 200.0, 3000)?;
        let busy = self.latency(&topics, rate * 0.7, (rate * 0.7 * 5.0) as u64)?;
        stop_process(&mut stage)?;
        fs::remove_dir_all(self.broker.directory.join(format!("{mode}-state")))?;
        let mut stage = self.run(mode)?;
        let restore = self.restore_seconds(mode);
        stop_process(&mut stage)?;
        Ok(Row {
            name: mode,
            articles: held,
            rate,
            broker_cpu,
            stage_cpu,
            threads,
            calm: Some(calm),
            busy: Some(busy),
            restore: restore.map(|seconds| (held as f64) / seconds),
        })
    }

    fn run(&self, mode: &str) -> Outcome<Child> {
        let log = fs::File::create(self.broker.directory.join(format!("{mode}.log")))?;
        let child = Command::new(&self.program)
            .arg("--config")
            .arg(self.settings(mode)?)
            .arg("run")
            .stderr(log)
            .spawn()?;
        Ok(child)
    }

    /// Waits until the log reports the restore, and returns its duration.
    fn restore_seconds(&self, mode: &str) -> Option<f64> {
        for _ in 0..1200 {
            let log =
                fs::read_to_string(self.broker.directory.join(format!("{mode}.log"))).unwrap_or_default();
            let line = log.lines().find(|line| line.contains("\"restored\""));
            if let Some(line) = line {
                let value: serde_json::Value = serde_json::from_str(line).ok()?;
                return value["seconds"].as_f64();
            }
            thread::sleep(Duration::from_millis(100));
        }
        None
    }

    /// Produces `count` articles at `rate` per second; returns the p50 and p99 latency until they are
    /// visible, in milliseconds.
    fn latency(&self, topics: &[String], rate: f64, count: u64) -> Outcome<(f64, f64)> {
        let watching = self.watch(topics, count)?;
        let first = self.count + now() as u64 % 1_000_000_000 * 1000;
        self.produce("bench.raw", first..first + count, Some(rate))?;
        let mut seen = watching.join().map_err(|_| "the watcher failed")?;
        seen.latencies.sort_by(f64::total_cmp);
        let at = |share: f64| {
            seen.latencies.get((seen.latencies.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN)
        };
        Ok((at(0.5), at(0.99)))
    }
}

#[derive(Default)]
struct Visible {
    count: u64,
    first: Option<(Instant, f64)>,
    last: Option<Instant>,
    latencies: Vec<f64>,
}

impl Visible {
    /// Records per second from the first to the last, so that startup does not count.
    fn rate(&self) -> Outcome<f64> {
        let (Some((first, _)), Some(last)) = (self.first, self.last) else {
            return Err("no record became visible".into());
        };
        Ok(self.count as f64 / last.duration_since(first).as_secs_f64().max(0.001))
    }
}

/// A bare exactly-once pipe.
struct Pipe {
    consumer: BaseConsumer,
    producer: BaseProducer,
    size: usize,
}

impl Pipe {
    fn open(bench: &Bench, group: &str, id: &str, size: usize) -> Outcome<Pipe> {
        let consumer: BaseConsumer = bench
            .client()
            .set("group.id", group)
            .set("enable.auto.commit", "false")
            .set("isolation.level", "read_committed")
            .set("auto.offset.reset", "earliest")
            .set("fetch.wait.max.ms", "100")
            .create()?;
        consumer.subscribe(&["bench.raw"])?;
        let producer: BaseProducer = bench
            .client()
            .set("transactional.id", id)
            .set("retry.backoff.ms", "1")
            .set("retry.backoff.max.ms", "50")
            .set("linger.ms", "2")
            .set("batch.size", "1000000")
            .set("compression.type", "lz4")
            .create()?;
        producer.init_transactions(Duration::from_secs(30))?;
        Ok(Pipe { consumer, producer, size })
    }

    fn turn(&mut self, topic: &str) -> Outcome<()> {
        let mut batch = Vec::new();
        let mut deadline = Instant::now() + Duration::from_millis(100);
        while batch.len() < self.size {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Duration::from_millis(left.as_micros().div_ceil(1000) as u64);
            match self.consumer.poll(left) {
                Some(Ok(message)) => {
                    if batch.is_empty() {
                        deadline = Instant::now() + Duration::from_millis(20);
                    }
                    batch.push(message.detach());
                }
                Some(Err(error)) => return Err(error.into()),
                None if left.is_zero() => break,
                None => {}
            }
        }
        let Some(last) = batch.last() else { return Ok(()) };
        let membership = self.consumer.group_metadata().ok_or("no group")?;
        self.producer.begin_transaction()?;
        for message in &batch {
            let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic);
            record.key = message.key();
            record.payload = message.payload();
            record.timestamp = message.timestamp().to_millis();
            while let Err((_, back)) = self.producer.send(record) {
                self.producer.poll(Duration::from_millis(1));
                record = back;
            }
        }
        // librdkafka rounds timeouts down to whole milliseconds, so a shorter wait returns at once; polling
        // in a busy loop would take CPU from the broker.
        while self.producer.in_flight_count() > 0 {
            self.producer.poll(Duration::ZERO);
            thread::sleep(Duration::from_micros(200));
        }
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(last.topic(), last.partition(), Offset::Offset(last.offset() + 1))?;
        self.producer.send_offsets_to_transaction(&list, &membership, Duration::from_secs(10))?;
        self.producer.commit_transaction(Timeout::Never)?;
        Ok(())
    }
}

fn cpu() -> f64 {
    cpu_of(std::process::id())
}

/// CPU seconds of the stage so far, by what its threads do. Threads that live for one batch are gone: what they took is the
/// difference to the whole process.
fn cpu_by_thread(pid: u32) -> BTreeMap<&'static str, f64> {
    let mut parts = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let name = stat.split_once('(').map_or("", |(_, rest)| rest);
        let part = match name {
            name if name.starts_with("decode-") => "decode, text, fingerprint",
            name if name.starts_with("rdk:") => "fetch and send (librdkafka)",
            name if name.starts_with("rocksdb:") => "flush and compaction",
            // Named after their clients: application, role, instance and number.
            name if ["-direct-", "-match-", "-route-"].iter().any(|role| name.contains(role)) => {
                "turn: judge, encode, commit, apply"
            }
            _ => "other",
        };
        *parts.entry(part).or_default() += cpu_in(&stat);
    }
    let known: f64 = parts.values().sum();
    parts.insert("read ahead, filters, caches", (cpu_of(pid) - known).max(0.0));
    parts
}
