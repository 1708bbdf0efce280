//! Background threads of a run: one records what is purged, one measures how long partitions stall, some
//! query the HTTP API. None of them disturbs the stage, and none fails while a broker is down.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::kafka::bus::{Offsets, Row, row};

/// A background thread that stops when it is dropped.
struct BackgroundThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BackgroundThread {
    fn start(work: impl Fn(&AtomicBool) + Send + 'static) -> BackgroundThread {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        BackgroundThread { stop, thread: Some(thread::spawn(move || work(&stopped))) }
    }
}

impl Drop for BackgroundThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn reader(client: &ClientConfig, group: &str) -> BaseConsumer {
    let mut config = client.clone();
    config
        .set("group.id", group)
        .set("isolation.level", "read_committed")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("auto.offset.reset", "error")
        .set("reconnect.backoff.max.ms", "500")
        .set("fetch.wait.max.ms", "50");
    config.create().unwrap()
}

/// Reads a topic while it is being purged, and keeps the records.
pub(crate) struct Keeper {
    rows: Arc<Mutex<Vec<Row>>>,
    next: Arc<Mutex<Offsets>>,
    errors: Arc<Mutex<Vec<String>>>,
    _thread: BackgroundThread,
}

impl Keeper {
    pub(crate) fn start(client: &ClientConfig, topic: &str, partitions: i32) -> Keeper {
        let reader = reader(client, "keeper");
        let mut list = TopicPartitionList::new();
        for partition in 0..partitions {
            list.add_partition_offset(topic, partition, Offset::Offset(0)).unwrap();
        }
        reader.assign(&list).unwrap();
        let rows = Arc::new(Mutex::new(Vec::new()));
        let (next, errors) = (Arc::new(Mutex::new(Offsets::new())), Arc::new(Mutex::new(Vec::new())));
        let (kept, at, failed) = (Arc::clone(&rows), Arc::clone(&next), Arc::clone(&errors));
        let thread = BackgroundThread::start(move |stop| {
            while !stop.load(Ordering::Relaxed) {
                match reader.poll(Duration::from_millis(100)) {
                    Some(Ok(message)) => {
                        let row = row(&message);
                        at.lock().unwrap().insert(row.partition, row.offset + 1);
                        kept.lock().unwrap().push(row);
                    }
                    // Transaction markers occupy offsets too; the position moves past them with this event.
                    Some(Err(KafkaError::PartitionEOF(_))) => {
                        for element in reader.position().unwrap().elements() {
                            if let Offset::Offset(offset) = element.offset() {
                                at.lock().unwrap().insert(element.partition(), offset);
                            }
                        }
                    }
                    Some(Err(KafkaError::MessageConsumption(code)))
                        if code == rdkafka::error::RDKafkaErrorCode::AutoOffsetReset =>
                    {
                        failed.lock().unwrap().push(format!("the keeper missed records: {code}"));
                    }
                    Some(Err(_)) | None => {}
                }
            }
        });
        Keeper { rows, next, errors, _thread: thread }
    }

    /// All records up to these end offsets, sorted by partition and offset; an error if some were missed.
    pub(crate) fn rows(&self, ends: &Offsets) -> Result<Vec<Row>, String> {
        let deadline = Instant::now() + Duration::from_secs(30);
        let behind = || {
            let next = self.next.lock().unwrap();
            ends.iter().any(|(partition, end)| *end > 0 && next.get(partition).is_none_or(|next| next < end))
        };
        while behind() {
            if Instant::now() > deadline {
                return Err(format!(
                    "void: the keeper is at {:?}, not at {ends:?}",
                    self.next.lock().unwrap()
                ));
            }
            thread::sleep(Duration::from_millis(50));
        }
        if let Some(error) = self.errors.lock().unwrap().first() {
            return Err(format!("void: {error}"));
        }
        let mut rows = self.rows.lock().unwrap().clone();
        rows.sort_by_key(|row| (row.partition, row.offset));
        rows.dedup_by_key(|row| (row.partition, row.offset));
        Ok(rows)
    }
}

/// The longest stall of each partition of a group while it had something to read.
type Stalls = BTreeMap<(String, i32), Duration>;

/// Measures whether the stage makes progress during faults.
pub(crate) struct Pulse {
    groups: Arc<Mutex<Vec<(String, String)>>>,
    stalls: Arc<Mutex<Stalls>>,
    _thread: BackgroundThread,
}

impl Pulse {
    /// Watches consumer groups, each with the topic that it reads.
    pub(crate) fn start(client: &ClientConfig, groups: Vec<(String, String)>) -> Pulse {
        let groups = Arc::new(Mutex::new(groups));
        let stalls = Arc::new(Mutex::new(Stalls::new()));
        let (client, watched, found) = (client.clone(), Arc::clone(&groups), Arc::clone(&stalls));
        let thread = BackgroundThread::start(move |stop| {
            let mut readers: BTreeMap<String, BaseConsumer> = BTreeMap::new();
            // By group and partition: the committed offset, and since when it has not changed.
            let mut since: BTreeMap<(String, i32), (i64, Instant)> = BTreeMap::new();
            while !stop.load(Ordering::Relaxed) {
                let groups = watched.lock().unwrap().clone();
                for (group, topic) in groups {
                    let reader = readers.entry(group.clone()).or_insert_with(|| reader(&client, &group));
                    // Without an answer from the broker the stall continues.
                    let Ok(lags) = lags(reader, &topic) else { continue };
                    for (partition, (committed, lag)) in lags {
                        let key = (group.clone(), partition);
                        let now = Instant::now();
                        let held = since.entry(key.clone()).or_insert((committed, now));
                        if held.0 != committed || lag == 0 {
                            *held = (committed, now);
                        }
                        let mut found = found.lock().unwrap();
                        let longest = found.entry(key).or_default();
                        *longest = held.1.elapsed().max(*longest);
                    }
                }
                thread::sleep(Duration::from_secs(1));
            }
        });
        Pulse { groups, stalls, _thread: thread }
    }

    /// Switches to other groups.
    pub(crate) fn watch(&self, groups: Vec<(String, String)>) {
        *self.groups.lock().unwrap() = groups;
    }

    /// The partition with the longest stall.
    pub(crate) fn longest(&self) -> Option<((String, i32), Duration)> {
        let stalls = self.stalls.lock().unwrap();
        stalls.iter().max_by_key(|(_, stall)| **stall).map(|(key, stall)| (key.clone(), *stall))
    }
}

/// By partition: the committed offset and the lag.
fn lags(reader: &BaseConsumer, topic: &str) -> Result<BTreeMap<i32, (i64, i64)>, KafkaError> {
    let patience = Duration::from_secs(2);
    let metadata = reader.fetch_metadata(Some(topic), patience)?;
    let partitions = metadata.topics().first().map_or(0, |topic| topic.partitions().len());
    let mut list = TopicPartitionList::new();
    list.add_partition_range(topic, 0, i32::try_from(partitions).unwrap() - 1);
    let mut lags = BTreeMap::new();
    for element in reader.committed_offsets(list, patience)?.elements() {
        let (low, high) = reader.fetch_watermarks(topic, element.partition(), patience)?;
        let committed = element.offset().to_raw().filter(|offset| *offset >= 0).unwrap_or(low);
        // The offset after the last record is a transaction marker.
        let lag = if high - committed > 1 { high - committed } else { 0 };
        lags.insert(element.partition(), (committed, lag));
    }
    Ok(lags)
}

/// Clients that query the API during a run.
pub(crate) struct Readers {
    answers: Arc<AtomicUsize>,
    wrong: Arc<Mutex<Vec<String>>>,
    _thread: Vec<BackgroundThread>,
}

impl Readers {
    /// Queries the instances that log into this directory for articles with these ids.
    pub(crate) fn start(
        logs: &Path,
        ids: impl Fn(u64) -> Option<String> + Send + Clone + 'static,
    ) -> Readers {
        let answers = Arc::new(AtomicUsize::new(0));
        let wrong = Arc::new(Mutex::new(Vec::new()));
        let one = |number: u64| {
            let (logs, ids) = (logs.to_owned(), ids.clone());
            let (answers, wrong) = (Arc::clone(&answers), Arc::clone(&wrong));
            BackgroundThread::start(move |stop| {
                let mut asked = number;
                while !stop.load(Ordering::Relaxed) {
                    let addresses = addresses(&logs);
                    // Read the logs again from time to time: a restarted instance has another port.
                    for _ in 0..20 {
                        for address in &addresses {
                            let Some(id) = ids(asked) else { continue };
                            asked += 7;
                            let path = match asked % 3 {
                                0 => format!("/api/v1/articles/{id}"),
                                1 => format!("/api/v1/articles/{id}/similar"),
                                _ => format!("/api/v1/articles/{id}/fingerprint"),
                            };
                            let Some(status) = status_of(address, &path) else { continue };
                            if ![200, 404, 503].contains(&status) {
                                wrong.lock().unwrap().push(format!("{path}: {status}"));
                            }
                            answers.fetch_add(usize::from(status == 200), Ordering::Relaxed);
                        }
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                        thread::sleep(Duration::from_millis(100));
                    }
                }
            })
        };
        let thread = (0..2).map(one).collect();
        Readers { answers, wrong, _thread: thread }
    }

    /// The number of successful answers.
    pub(crate) fn answers(&self) -> usize {
        self.answers.load(Ordering::Relaxed)
    }

    /// Answers with an unexpected status.
    pub(crate) fn wrong(&self) -> Vec<String> {
        self.wrong.lock().unwrap().clone()
    }
}

/// The status of the response; none from a process that has ended or is frozen.
fn status_of(address: &str, path: &str) -> Option<u16> {
    let patience = Duration::from_secs(2);
    let mut stream = TcpStream::connect_timeout(&address.parse().ok()?, patience).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
}

/// The addresses of the query APIs, from the latest log line of each instance.
fn addresses(logs: &Path) -> Vec<String> {
    let logs: Vec<PathBuf> =
        fs::read_dir(logs).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
    let address = |log: &PathBuf| {
        let text = fs::read_to_string(log).ok()?;
        let line = text.lines().rfind(|line| line.contains("serving the query API"))?;
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(line["address"].as_str()?.to_owned())
    };
    logs.iter().filter_map(address).collect()
}
