//! Where it happens: a broker of the run's own, three instances of the program, each behind a network of its own, and
//! crawlers that go on writing whatever happens to them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use samestory::config::Config;
use samestory::stream::topics;

use crate::kafka::broker::Broker;
use crate::kafka::bus::{self, Deliveries, Isolation, Offsets, Record, Row, Writer, block_on};
use crate::kafka::proxy::Proxy;

use super::articles::{Articles, Fate, LANGUAGES, PARTITIONS};
use super::coverage;
use super::process::{Orders, Process};

/// How many instances there can be.
pub(crate) const INSTANCES: usize = 3;
/// Within this time after the last fault everything must be done.
pub(crate) const HEALED: Duration = Duration::from_secs(60);
const ROUTE: &str = "faults.route";
const MATCH: &str = "faults.match";
const DIRECT: &str = "faults.direct";

/// What differs between scenes.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) seed: u64,
    /// Articles come by language, and there is one stage.
    pub(crate) direct: bool,
    /// Records a minute.
    pub(crate) pace: u64,
    pub(crate) transaction_timeout: &'static str,
    /// What every process is ordered.
    pub(crate) orders: Orders,
}

impl Settings {
    pub(crate) fn new(seed: u64) -> Settings {
        let orders = Orders::default()
            .with("SAMESTORY_FLUSH_MS", 1500)
            .with("SAMESTORY_WRITE_BUFFER", 64 << 10)
            .with("SAMESTORY_MANY", 300);
        Settings { seed, direct: false, pace: 2400, transaction_timeout: "8s", orders }
    }
}

/// A record as it was fed, and what must become of it.
pub(crate) struct Fed {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) record: Record,
    pub(crate) fate: Fate,
}

pub(crate) struct Scene {
    pub(crate) settings: Settings,
    pub(crate) broker: Broker,
    pub(crate) proxies: Vec<Proxy>,
    pub(crate) config: Config,
    pub(crate) fed: Arc<Mutex<Vec<Fed>>>,
    processes: Vec<Option<Process>>,
    /// What each instance was last started as.
    roles: [Option<&'static str>; INSTANCES],
    dir: PathBuf,
    feeder: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
    /// What should not have happened.
    pub(crate) wrong: Vec<String>,
    /// Route's committed offsets were deleted: it may route again, and write dead letters again.
    pub(crate) lost_offsets: bool,
    began: Instant,
}

impl Scene {
    pub(crate) fn new(settings: Settings) -> Scene {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("samestory-{}-faults-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(dir.join("logs")).unwrap();
        let proxies: Vec<Proxy> = (0..INSTANCES).map(|_| Proxy::new()).collect();
        let listeners: Vec<String> =
            proxies.iter().enumerate().map(|(at, proxy)| format!("I{at}={}", proxy.port())).collect();
        let mut options: Vec<&str> = listeners.iter().flat_map(|listener| ["--listener", listener]).collect();
        // Compaction that keeps up with a test, so that state is restored from logs with holes.
        for property in ["log.cleaner.backoff.ms=1000", "message.max.bytes=8000000"] {
            options.extend(["--set", property]);
        }
        let broker = Broker::start(&options);
        for (at, proxy) in proxies.iter().enumerate() {
            proxy.connect(&broker.listener(&format!("I{at}")));
        }
        let partitions = if settings.direct { PARTITIONS } else { 4 };
        let raw = broker.create_topic(
            "raw",
            i32::try_from(partitions).unwrap(),
            &[("max.message.bytes", "8000000")],
        );
        let changelog = broker.create_topic("changelog", 3, &changelog_settings("86400000"));
        for (at, proxy) in proxies.iter().enumerate() {
            let text = config_text(&settings, &dir, at, &proxy.bootstrap(), (&raw, &changelog));
            fs::write(dir.join(format!("{at}.toml")), text).unwrap();
        }
        let config = Config::load(Some(&dir.join("0.toml"))).unwrap();
        topics::create(&config.bus).unwrap();
        let processes = (0..INSTANCES).map(|_| None).collect();
        let (fed, wrong) = (Arc::default(), Vec::new());
        let began = Instant::now();
        Scene {
            settings,
            broker,
            proxies,
            config,
            fed,
            processes,
            roles: [None; INSTANCES],
            dir,
            feeder: None,
            wrong,
            lost_offsets: false,
            began,
        }
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// The state directory of an instance.
    pub(crate) fn state(&self, at: usize) -> PathBuf {
        self.dir.join(format!("state-{at}"))
    }

    /// The directory of a partition's state.
    pub(crate) fn partition_state(&self, at: usize, partition: i32) -> PathBuf {
        self.state(at).join(format!("{}-{partition}", self.config.bus.topics.changelog))
    }

    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Says what is done, with the time since the beginning.
    pub(crate) fn say(&self, what: &str) {
        eprintln!("  {:6.1}s  {what}", self.began.elapsed().as_secs_f64());
    }

    // ---- the crawlers

    /// Crawlers begin to write.
    pub(crate) fn feed(&mut self) {
        let (stop, fed) = (Arc::new(AtomicBool::new(false)), Arc::clone(&self.fed));
        let stopped = Arc::clone(&stop);
        let mut articles = Articles::new(self.settings.seed, three_days_ago(), self.settings.direct);
        let topic = self.config.bus.topics.raw.clone();
        let writer: Writer = self
            .broker
            .client()
            .set("enable.idempotence", "true")
            .set("linger.ms", "5")
            .set("message.max.bytes", "8000000")
            .create_with_context(Deliveries::default())
            .unwrap();
        let pause = Duration::from_millis(60_000 * 10 / self.settings.pace);
        let feeder = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let made: Vec<(Record, Fate)> = (0..10).map(|_| articles.next()).collect();
                let records: Vec<Record> = made.iter().map(|(record, _)| record.clone()).collect();
                let places = bus::send(&writer, &topic, &records);
                let mut fed = fed.lock().unwrap();
                for ((record, fate), place) in made.into_iter().zip(places) {
                    let (partition, offset) = place.unwrap();
                    fed.push(Fed { partition, offset, record, fate });
                }
                drop(fed);
                thread::sleep(pause);
            }
        });
        self.feeder = Some((stop, feeder));
    }

    /// Crawlers stop.
    pub(crate) fn stop_feeding(&mut self) {
        if let Some((stop, feeder)) = self.feeder.take() {
            stop.store(true, Ordering::Relaxed);
            feeder.join().unwrap();
        }
    }

    pub(crate) fn fed(&self) -> usize {
        self.fed.lock().unwrap().len()
    }

    /// Time goes by, and crawlers write.
    pub(crate) fn wait(&mut self, time: Duration) {
        thread::sleep(time);
        self.look_after();
    }

    // ---- the processes

    pub(crate) fn runs(&self, at: usize) -> bool {
        self.processes[at].is_some()
    }

    pub(crate) fn running(&self) -> Vec<usize> {
        (0..INSTANCES).filter(|&at| self.runs(at)).collect()
    }

    pub(crate) fn start(&mut self, at: usize) {
        self.start_with(at, &Orders::default());
    }

    /// Starts an instance with orders besides those that all have.
    pub(crate) fn start_with(&mut self, at: usize, orders: &Orders) {
        assert!(!self.runs(at), "instance {at} runs already");
        let mut all = self.settings.orders.clone();
        all.variables.extend(orders.variables.clone());
        all.role = orders.role;
        self.roles[at] = orders.role;
        let (config, log) = (self.dir.join(format!("{at}.toml")), self.logs().join(format!("{at}.log")));
        self.processes[at] = Some(Process::start(&config, &log, &at.to_string(), &all));
    }

    pub(crate) fn process(&mut self, at: usize) -> &mut Process {
        self.processes[at].as_mut().unwrap()
    }

    pub(crate) fn kill(&mut self, at: usize) {
        if let Some(mut process) = self.processes[at].take() {
            process.kill();
        }
    }

    /// Asks it to stop, and expects that it does so in good order.
    pub(crate) fn stop(&mut self, at: usize) {
        let Some(mut process) = self.processes[at].take() else { return };
        process.signal("TERM");
        match process.await_end(Duration::from_secs(30)) {
            Some(status) if status.success() => {}
            Some(status) => self.wrong.push(format!("instance {at}, asked to stop, ended with {status}")),
            None => self.wrong.push(format!("instance {at} does not stop")),
        }
    }

    /// Waits for the end that it was ordered; whether it came.
    pub(crate) fn await_death(&mut self, at: usize, patience: Duration) -> bool {
        let Some(mut process) = self.processes[at].take() else { return false };
        let died = process.await_end(patience).is_some();
        if !died {
            process.kill();
        }
        died
    }

    /// Nobody ends without being told to; whoever does is started again, as an operator's machinery would.
    pub(crate) fn look_after(&mut self) {
        for at in 0..INSTANCES {
            let Some(status) = self.processes[at].as_mut().and_then(Process::ended) else { continue };
            self.wrong.push(format!("instance {at} ended by itself: {status}"));
            self.processes[at] = None;
            self.start_with(at, &Orders { role: self.roles[at], ..Orders::default() });
        }
    }

    // ---- the end

    /// Waits until every record is done with, and no transaction is open.
    pub(crate) fn quiesce(&mut self, patience: Duration) -> Result<(), String> {
        let deadline = Instant::now() + patience;
        let (raw, routed) = (self.config.bus.topics.raw.clone(), self.config.bus.topics.routed.clone());
        let ends = self.broker.ends(&raw, Isolation::Uncommitted);
        if self.settings.direct {
            self.until(deadline, |scene| same("direct", &scene.broker.committed(DIRECT, &raw), &ends))?;
            return self.until(deadline, Scene::is_settled);
        }
        self.until(deadline, |scene| same("route", &scene.broker.committed(ROUTE, &raw), &ends))?;
        self.until(deadline, Scene::is_settled)?;
        // Match writes relocation notices to the topic that it reads: it is done when what it has judged by then is all.
        self.until(deadline, |scene| {
            let last = next_of(&scene.broker.read(&routed, Isolation::Committed));
            same("match", &scene.broker.committed(MATCH, &routed), &last)?;
            same("notices", &next_of(&scene.broker.read(&routed, Isolation::Committed)), &last)
        })?;
        self.until(deadline, Scene::is_settled)
    }

    fn until(
        &mut self,
        deadline: Instant,
        mut done: impl FnMut(&mut Scene) -> Result<(), String>,
    ) -> Result<(), String> {
        while let Err(why) = done(self) {
            if Instant::now() > deadline {
                return Err(why);
            }
            self.wait(Duration::from_millis(250));
        }
        Ok(())
    }

    /// Waits until one process reads everything, or says why that is not so.
    pub(crate) fn await_alone(&mut self) {
        let groups: &[&str] = if self.settings.direct { &[DIRECT] } else { &[ROUTE, MATCH] };
        let alone = |scene: &mut Scene| {
            let members: Vec<_> = groups.iter().map(|group| scene.broker.members(group)).collect();
            match members.iter().all(|&members| members == Some(1)) {
                true => Ok(()),
                false => Err(format!("void: members {members:?}, not one of each")),
            }
        };
        let alone = self.until(Instant::now() + HEALED, alone);
        self.wrong.extend(alone.err());
    }

    /// Waits until somebody has given up a partition once more than `before`.
    pub(crate) fn await_revocation(&mut self, before: usize) {
        let more = |scene: &mut Scene| match scene.revocations() > before {
            true => Ok(()),
            false => Err("void: nobody gave up a partition".into()),
        };
        let more = self.until(Instant::now() + HEALED, more);
        self.wrong.extend(more.err());
    }

    pub(crate) fn revocations(&self) -> usize {
        coverage::count(&self.logs()).0["revocations"]
    }

    fn is_settled(&mut self) -> Result<(), String> {
        for topic in self.topics() {
            // In this order: what is settled only grows.
            let settled = self.broker.ends(&topic, Isolation::Committed);
            same(
                &format!("open transaction on {topic}"),
                &settled,
                &self.broker.ends(&topic, Isolation::Uncommitted),
            )?;
        }
        Ok(())
    }

    fn topics(&self) -> Vec<String> {
        let names = &self.config.bus.topics;
        let routed = (!self.settings.direct).then_some(&names.routed);
        let inner = [&names.raw, &names.changelog, &names.dead_letter];
        let outputs = [&names.unique, &names.near_duplicate, &names.clusters];
        inner.into_iter().chain(routed).chain(outputs).cloned().collect()
    }

    /// Deletes route's committed offsets, as a broker does when a group has been empty for too long.
    pub(crate) fn lose_offsets_of_route(&mut self) {
        self.say("the committed offsets of route are lost");
        self.broker.delete_group(ROUTE);
        self.lost_offsets = true;
    }

    /// Changes how long the changelog keeps tombstones.
    pub(crate) fn keep_tombstones(&self, millis: &str) {
        let admin: AdminClient<DefaultClientContext> = self.broker.client().create().unwrap();
        let resource = ResourceSpecifier::Topic(&self.config.bus.topics.changelog);
        let mut alter = AlterConfig::new(resource);
        let settings = changelog_settings(millis);
        for (key, value) in &settings {
            alter = alter.set(key, value);
        }
        let altered = block_on(admin.alter_configs([&alter], &AdminOptions::new())).unwrap();
        assert!(altered.iter().all(Result::is_ok), "{altered:?}");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.processes.clear();
        if let Some((stop, _)) = &self.feeder {
            stop.store(true, Ordering::Relaxed);
        }
        if thread::panicking() || std::env::var_os("SAMESTORY_KEEP").is_some() {
            eprintln!("logs and state are kept in {}", self.dir.display());
        } else {
            drop(fs::remove_dir_all(&self.dir));
        }
    }
}

fn same(what: &str, found: &Offsets, wanted: &Offsets) -> Result<(), String> {
    let wanted: Offsets = wanted.iter().filter(|(_, end)| **end > 0).map(|(&at, &end)| (at, end)).collect();
    let found: Offsets = found.iter().filter(|(_, end)| **end > 0).map(|(&at, &end)| (at, end)).collect();
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found:?}, not {wanted:?}")) }
}

/// By partition, the offset after the last record.
fn next_of(rows: &[Row]) -> Offsets {
    rows.iter().map(|row| (row.partition, row.offset + 1)).collect()
}

fn changelog_settings(tombstones: &str) -> [(&'static str, &str); 7] {
    [
        ("cleanup.policy", "compact"),
        ("message.timestamp.type", "LogAppendTime"),
        ("max.message.bytes", "4194304"),
        ("segment.ms", "4000"),
        ("min.cleanable.dirty.ratio", "0.01"),
        ("max.compaction.lag.ms", "4000"),
        ("delete.retention.ms", tombstones),
    ]
}

#[allow(clippy::disallowed_methods, reason = "a broker deletes by its own clock")]
fn three_days_ago() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap() - 3 * 24 * 3600 * 1000
}

fn config_text(
    settings: &Settings,
    dir: &Path,
    at: usize,
    bootstrap: &str,
    (raw, changelog): (&str, &str),
) -> String {
    let languages: Vec<&str> = LANGUAGES.iter().map(|(code, _)| *code).collect();
    let (state, timeout) = (dir.join(format!("state-{at}")), settings.transaction_timeout);
    let mode = if settings.direct { "direct" } else { "routed" };
    format!(
        r#"
[http]
listen = "127.0.0.1:0"
query = "127.0.0.1:0"
[match]
retention = "10m"
[input.fields]
deleted = "removed"
[language]
trust = "declared"
[stage]
app = "faults"
mode = "{mode}"
state = "{}"
languages = {languages:?}
transaction_timeout = "{timeout}"
purge = false
[topics]
raw = "{raw}"
changelog = "{changelog}"
partitions = 3
output_partitions = 2
[batch]
max_articles = 40
linger_ms = 30
[kafka]
"bootstrap.servers" = "{bootstrap}"
"broker.address.family" = "v4"
"session.timeout.ms" = "6000"
"heartbeat.interval.ms" = "500"
"max.poll.interval.ms" = "60000"
"#,
        state.display()
    )
}
