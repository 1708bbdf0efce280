//! The set-up of a run: one broker or a cluster of three, three instances of the program, each behind its own
//! network proxies, and crawlers that keep writing throughout.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use samestory::config::Config;
use samestory::kafka::admin::topics;

use crate::kafka::broker::{Broker, SHORT_SESSIONS};
use crate::kafka::bus::{self, Deliveries, Isolation, Offsets, Record, Row, Writer, block_on};
use crate::kafka::registry::Registry;

use super::articles::{Articles, Fate, LANGUAGES, PARTITIONS, SCHEMA};
use super::bystanders::{Keeper, Pulse, Readers};
use super::coverage::{self, Ledger};
use super::network::Network;
use super::process::{Orders, Process};
use super::random::Random;

/// The number of instances.
pub(crate) const INSTANCES: usize = 3;
/// All records must be processed within this time after the last fault.
pub(crate) const HEALED: Duration = Duration::from_secs(60);
const ROUTE: &str = "faults.route";
const MATCH: &str = "faults.match";
const DIRECT: &str = "faults.direct";

/// A partition with lag must make progress within this time, whatever happens to the others: the longest
/// faults take fifteen seconds, two of them may coincide, and then sessions and transactions have to time
/// out.
pub(crate) const ALIVE: Duration = Duration::from_secs(90);
/// With static membership or broker-side assignment (KIP-848), the broker may refuse a restarted process
/// until the session of the killed one has ended.
const SESSION: Duration = Duration::from_secs(6);

/// The instance whose clock may be ahead, and how far: less than the margin in the age of a state that is too old, a tenth
/// of the time for which the changelog keeps tombstones.
pub(crate) const SKEWED: usize = 1;
/// See [`SKEWED`].
pub(crate) const AHEAD: Duration = Duration::from_secs(3600);

/// The differences between scenes.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) seed: u64,
    /// Direct mode: the raw topic is partitioned by language, and there is a single stage.
    pub(crate) direct: bool,
    /// Records per minute.
    pub(crate) pace: u64,
    pub(crate) transaction_timeout: &'static str,
    /// Brokers of the cluster.
    pub(crate) nodes: usize,
    /// The broker assigns partitions (KIP-848).
    pub(crate) broker_assigns: bool,
    pub(crate) static_membership: bool,
    /// Batches of 2,000 articles, the default, instead of 40.
    pub(crate) default_batches: bool,
    pub(crate) workers: u16,
    /// Routed records are deleted once match has committed them.
    pub(crate) purge: bool,
    /// Clients query the HTTP API.
    pub(crate) readers: bool,
    /// Crawlers with clocks that run ahead, and records that make a parser panic.
    pub(crate) wild: bool,
    /// Some articles are Avro, and there is a schema registry.
    pub(crate) avro: bool,
    /// The clock of one pod is ahead.
    pub(crate) skewed: bool,
    /// Settings of every process.
    pub(crate) orders: Orders,
}

impl Settings {
    pub(crate) fn new(seed: u64) -> Settings {
        let orders = Orders::default()
            .with("SAMESTORY_FLUSH_MS", 1500)
            .with("SAMESTORY_WRITE_BUFFER", 64 << 10)
            .with("SAMESTORY_MANY", 300);
        Settings {
            seed,
            direct: false,
            pace: 2400,
            transaction_timeout: "8s",
            nodes: 1,
            broker_assigns: false,
            static_membership: false,
            default_batches: false,
            workers: 1,
            purge: false,
            readers: false,
            wild: false,
            avro: false,
            skewed: false,
            orders,
        }
    }

    /// The settings of a long run, drawn from its seed.
    pub(crate) fn drawn(seed: u64, direct: bool) -> Settings {
        let mut random = Random::new(seed ^ 0x5E77 ^ (u64::from(direct) << 40));
        let mut one_in = |chances: usize| random.below(chances) == 0;
        let settings = Settings {
            direct,
            nodes: if one_in(4) { 1 } else { 3 },
            broker_assigns: one_in(2),
            static_membership: one_in(3),
            default_batches: one_in(2),
            workers: if one_in(2) { 2 } else { 1 },
            purge: !direct && one_in(2),
            readers: one_in(2),
            avro: one_in(2),
            skewed: one_in(2),
            wild: true,
            ..Settings::new(seed)
        };
        // Purge several times during a run.
        let orders = settings.orders.clone().with("SAMESTORY_PURGE_MS", 5000);
        Settings { orders, ..settings }
    }

    /// The time within which all records must be processed after the last fault.
    pub(crate) fn healed(&self) -> Duration {
        if self.broker_assigns || self.static_membership { HEALED + SESSION } else { HEALED }
    }
}

/// Requests to the crawlers in addition to their normal records.
#[derive(Default)]
pub(crate) struct Wishes {
    pub(crate) paused: AtomicBool,
    pub(crate) flood: AtomicUsize,
    pub(crate) large: AtomicUsize,
    /// Partitions of the raw topic.
    pub(crate) partitions: AtomicI32,
}

/// A record as it was fed, and the outcome it must have.
pub(crate) struct Fed {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) record: Record,
    pub(crate) fate: Fate,
}

pub(crate) struct Scene {
    pub(crate) settings: Settings,
    pub(crate) broker: Broker,
    pub(crate) registry: Option<Registry>,
    pub(crate) networks: Vec<Network>,
    pub(crate) config: Config,
    pub(crate) fed: Arc<Mutex<Vec<Fed>>>,
    processes: Vec<Option<Process>>,
    /// The role with which each instance was last started.
    roles: [Option<&'static str>; INSTANCES],
    dir: PathBuf,
    feeder: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
    pub(crate) wishes: Arc<Wishes>,
    /// Records of the routed topic, kept while it is purged.
    keeper: Option<Keeper>,
    /// The previous generation, after a switch.
    before: Option<(Config, Option<Keeper>)>,
    pub(crate) pulse: Option<Pulse>,
    pub(crate) readers: Option<Readers>,
    pub(crate) ledger: Ledger,
    /// Errors noticed during the run.
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
        let networks: Vec<Network> = (0..INSTANCES).map(|at| Network::new(at, settings.nodes)).collect();
        let listeners: Vec<String> = networks.iter().map(Network::listener).collect();
        let mut options: Vec<&str> = listeners.iter().flat_map(|listener| ["--listener", listener]).collect();
        options.extend(SHORT_SESSIONS);
        let nodes = settings.nodes.to_string();
        options.extend(["--nodes", &nodes]);
        // Log compaction that keeps up with a test, so that restores read a compacted changelog.
        for property in ["log.cleaner.backoff.ms=1000", "message.max.bytes=8000000"] {
            options.extend(["--set", property]);
        }
        let broker = Broker::start(&options);
        networks.iter().for_each(|network| network.connect(&broker));
        let partitions = if settings.direct { PARTITIONS } else { 4 };
        let durable = ("min.insync.replicas", in_sync(settings.nodes));
        let raw = broker.create_topic(
            "raw",
            i32::try_from(partitions).unwrap(),
            &[("max.message.bytes", "8000000"), durable],
        );
        let compacted = [&changelog_settings("86400000")[..], &[durable]].concat();
        let changelog = broker.create_topic("changelog", 3, &compacted);
        let registry = settings.avro.then(Registry::start);
        for (at, network) in networks.iter().enumerate() {
            let mut text = config_text(&settings, &dir, at, &network.bootstrap(), (&raw, &changelog));
            if let Some(registry) = &registry {
                text += &format!("[registry]\nurl = {:?}\ntimeout = \"2s\"\n", registry.url);
            }
            fs::write(dir.join(format!("{at}.toml")), text).unwrap();
        }
        let config = Config::load(Some(&dir.join("0.toml"))).unwrap();
        topics::create(&config.bus).unwrap();
        let processes = (0..INSTANCES).map(|_| None).collect();
        let (fed, wrong) = (Arc::default(), Vec::new());
        let began = Instant::now();
        let wishes = Arc::new(Wishes::default());
        wishes.partitions.store(i32::try_from(partitions).unwrap(), Ordering::Relaxed);
        let keeper = settings.purge.then(|| Keeper::start(&broker.client(), &config.bus.topics.routed, 3));
        Scene {
            settings,
            broker,
            registry,
            networks,
            config,
            fed,
            processes,
            roles: [None; INSTANCES],
            dir,
            feeder: None,
            wishes,
            keeper,
            before: None,
            pulse: None,
            readers: None,
            ledger: Ledger::default(),
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

    /// Prints what is being done, with the time since the start.
    pub(crate) fn say(&self, what: &str) {
        eprintln!("  {:6.1}s  {what}", self.began.elapsed().as_secs_f64());
    }

    // ---- the crawlers

    /// Starts the crawlers.
    pub(crate) fn feed(&mut self) {
        let (stop, fed) = (Arc::new(AtomicBool::new(false)), Arc::clone(&self.fed));
        let stopped = Arc::clone(&stop);
        let Settings { seed, direct, wild, .. } = self.settings;
        // Not under the subject of the topic: the paths of deletes are not in it.
        let schema = self.registry.as_ref().map(|registry| registry.register("crawlers-value", SCHEMA));
        let mut articles = Articles::new(seed, three_days_ago(), direct, wild, schema);
        let wishes = Arc::clone(&self.wishes);
        let topic = self.config.bus.topics.raw.clone();
        let writer: Writer = self
            .broker
            .client()
            .set("enable.idempotence", "true")
            .set("linger.ms", "5")
            .set("topic.metadata.refresh.interval.ms", "1000")
            .set("message.max.bytes", "8000000")
            .create_with_context(Deliveries::default())
            .unwrap();
        let pause = Duration::from_millis(60_000 * 10 / self.settings.pace);
        let feeder = thread::spawn(move || {
            // Keep all versions of an article in one raw partition, even after partitions are added:
            // otherwise their order would be undefined.
            let mut homes: BTreeMap<Vec<u8>, i32> = BTreeMap::new();
            while !stopped.load(Ordering::Relaxed) {
                if wishes.paused.load(Ordering::Relaxed) {
                    thread::sleep(pause);
                    continue;
                }
                let mut made: Vec<(Record, Fate)> = (0..10).map(|_| articles.next()).collect();
                made.extend((0..take(&wishes.flood, 100)).map(|_| articles.flood()));
                made.extend((0..take(&wishes.large, 1)).map(|_| articles.large()));
                if wild && !direct {
                    let partitions = wishes.partitions.load(Ordering::Relaxed);
                    for (record, _) in &mut made {
                        let next = i32::try_from(homes.len()).unwrap() % partitions;
                        record.partition =
                            record.key.as_ref().map(|key| *homes.entry(key.clone()).or_insert(next));
                    }
                }
                let records: Vec<Record> = made.iter().map(|(record, _)| record.clone()).collect();
                let positions = bus::send(&writer, &topic, &records);
                let mut fed = fed.lock().unwrap();
                for ((record, fate), position) in made.into_iter().zip(positions) {
                    let (partition, offset) = position.unwrap();
                    fed.push(Fed { partition, offset, record, fate });
                }
                drop(fed);
                thread::sleep(pause);
            }
        });
        self.feeder = Some((stop, feeder));
        if self.settings.wild {
            self.pulse = Some(Pulse::start(&self.broker.client(), self.groups()));
        }
        if self.settings.readers {
            let fed = Arc::clone(&self.fed);
            let id = move |number: u64| {
                let fed = fed.lock().unwrap();
                let recent = fed.len().min(400);
                let at = fed.len().checked_sub(1 + number as usize % recent.max(1))?;
                String::from_utf8(fed.get(at)?.record.key.clone()?).ok()
            };
            self.readers = Some(Readers::start(&self.logs(), id));
        }
    }

    /// The active consumer groups, each with the topic that it reads.
    pub(crate) fn groups(&self) -> Vec<(String, String)> {
        let names = &self.config.bus.topics;
        let group = |role: &str| match self.config.bus.generation {
            1 => format!("faults.{role}"),
            generation => format!("faults.g{generation}.{role}"),
        };
        match self.settings.direct {
            true => vec![(group("direct"), names.raw.clone())],
            false => vec![(group("route"), names.raw.clone()), (group("match"), names.routed.clone())],
        }
    }

    /// Stops the crawlers.
    pub(crate) fn stop_feeding(&mut self) {
        if let Some((stop, feeder)) = self.feeder.take() {
            stop.store(true, Ordering::Relaxed);
            feeder.join().unwrap();
        }
    }

    pub(crate) fn fed(&self) -> usize {
        self.fed.lock().unwrap().len()
    }

    /// Sleeps while crawlers write, then checks on the processes.
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

    /// Starts an instance with its own orders in addition to those of all instances.
    pub(crate) fn start_with(&mut self, at: usize, orders: &Orders) {
        assert!(!self.runs(at), "instance {at} runs already");
        let mut all = self.settings.orders.clone();
        all.variables.extend(orders.variables.clone());
        (all.role, all.arguments) = (orders.role, orders.arguments.clone());
        self.roles[at] = orders.role;
        if at == SKEWED && self.settings.skewed {
            all = all.with("SAMESTORY_CLOCK_AHEAD_MS", AHEAD.as_millis());
        }
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

    /// Stops an instance with SIGTERM, and expects a clean exit.
    pub(crate) fn stop(&mut self, at: usize) {
        let Some(mut process) = self.processes[at].take() else { return };
        process.signal("TERM");
        match process.await_end(Duration::from_secs(30)) {
            Some(status) if status.success() => {}
            Some(status) => self.wrong.push(format!("instance {at}, asked to stop, ended with {status}")),
            None => self.wrong.push(format!("instance {at} does not stop")),
        }
    }

    /// Waits for an instance to die at its fault point; returns whether it did.
    pub(crate) fn await_death(&mut self, at: usize, patience: Duration) -> bool {
        let Some(mut process) = self.processes[at].take() else { return false };
        let died = process.await_end(patience).is_some();
        if !died {
            process.kill();
        }
        died
    }

    /// Restarts processes that ended by themselves, as an orchestrator would, and records an error unless
    /// there is an excuse.
    pub(crate) fn look_after(&mut self) {
        for at in 0..INSTANCES {
            let Some(status) = self.processes[at].as_mut().and_then(Process::ended) else { continue };
            match self.excuse(at) {
                Some(excuse) => {
                    self.say(&format!("{at} ended: {excuse}"));
                    self.ledger.excused(excuse);
                }
                None => self.wrong.push(format!("instance {at} ended by itself: {status}")),
            }
            self.processes[at] = None;
            self.start_with(at, &Orders { role: self.roles[at], ..Orders::default() });
        }
    }

    /// Known ways in which librdkafka ends a process through no fault of ours; it is restarted and resumes.
    fn excuse(&self, at: usize) -> Option<&'static str> {
        let log = fs::read_to_string(self.logs().join(format!("{at}.log"))).unwrap();
        let last: Vec<&str> = log.lines().rev().take(8).collect();
        let says = |text: &str| last.iter().any(|line| line.to_lowercase().contains(text));
        // Fixed in librdkafka 2.15 (5541).
        if self.settings.broker_assigns && says("invalid request") {
            return Some("fatal INVALID_REQUEST");
        }
        // Happens until the session of the killed process has ended.
        (self.settings.static_membership && says("unreleased")).then_some("UNRELEASED_INSTANCE_ID")
    }

    // ---- the end

    /// Waits until every record is processed and no transaction is open.
    pub(crate) fn quiesce(&mut self, patience: Duration) -> Result<(), String> {
        let deadline = Instant::now() + patience;
        let (raw, routed) = (self.config.bus.topics.raw.clone(), self.config.bus.topics.routed.clone());
        let ends = self.broker.ends(&raw, Isolation::Uncommitted);
        let groups = self.groups();
        let reader = groups[0].0.clone();
        self.until(deadline, |scene| same(&reader, &scene.broker.committed(&reader, &raw), &ends))?;
        self.until(deadline, Scene::is_settled)?;
        if self.settings.direct {
            return Ok(());
        }
        let group = groups[1].0.clone();
        // Match writes relocation notices to the topic that it reads, so compare again after it has caught
        // up.
        self.until(deadline, |scene| {
            let last = next_of(&scene.routed()?);
            same(&group, &scene.broker.committed(&group, &routed), &last)?;
            same("notices", &next_of(&scene.routed()?), &last)
        })?;
        self.until(deadline, Scene::is_settled)
    }

    /// All records that were ever on the routed topic.
    pub(crate) fn routed(&self) -> Result<Vec<Row>, String> {
        self.routed_of(&self.config, self.keeper.as_ref())
    }

    /// The settings of the previous generation, and all records that were ever on its routed topic.
    pub(crate) fn generation_before(&self) -> Option<(&Config, Result<Vec<Row>, String>)> {
        let (config, keeper) = self.before.as_ref()?;
        Some((config, self.routed_of(config, keeper.as_ref())))
    }

    fn routed_of(&self, config: &Config, keeper: Option<&Keeper>) -> Result<Vec<Row>, String> {
        let routed = &config.bus.topics.routed;
        match keeper {
            _ if self.settings.direct => Ok(self.broker.read(&config.bus.topics.raw, Isolation::Committed)),
            Some(keeper) => keeper.rows(&self.broker.ends(routed, Isolation::Uncommitted)),
            None => Ok(self.broker.read(routed, Isolation::Committed)),
        }
    }

    pub(crate) fn has_switched(&self) -> bool {
        self.before.is_some()
    }

    /// Starts to record the routed topic of the next generation, before that generation starts.
    pub(crate) fn keep(&self, next: &Config) -> Option<Keeper> {
        let routed = &next.bus.topics.routed;
        self.settings.purge.then(|| Keeper::start(&self.broker.client(), routed, 3))
    }

    /// Makes the next generation the current one.
    pub(crate) fn take_over(&mut self, next: Config, keeper: Option<Keeper>) {
        let keeper = std::mem::replace(&mut self.keeper, keeper);
        self.before = Some((std::mem::replace(&mut self.config, next), keeper));
        if let Some(pulse) = &self.pulse {
            pulse.watch(self.groups());
        }
    }

    /// True if the log of any instance contains this text.
    pub(crate) fn logs_say(&self, text: &str) -> bool {
        (0..INSTANCES).any(|at| self.logged(at, text) > 0)
    }

    /// True if an instance was ever started.
    pub(crate) fn has_run(&self, at: usize) -> bool {
        self.logs().join(format!("{at}.log")).exists()
    }

    /// The settings of an instance.
    pub(crate) fn settings_file(&self, at: usize) -> PathBuf {
        self.dir.join(format!("{at}.toml"))
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

    /// Waits until one process reads all partitions; records an error if that does not happen.
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

    /// Waits until there are more revocations than `before`.
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
            // Read the last stable offset first: it only grows, so equality with a later high watermark is
            // conclusive.
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
        alter = alter.set("min.insync.replicas", in_sync(self.settings.nodes));
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

/// Takes up to `most` from a requested number.
fn take(wish: &AtomicUsize, most: usize) -> usize {
    let some = wish.load(Ordering::Relaxed).min(most);
    wish.fetch_sub(some, Ordering::Relaxed);
    some
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

/// `min.insync.replicas` for this number of brokers.
fn in_sync(nodes: usize) -> &'static str {
    if nodes > 1 { "2" } else { "1" }
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
    let protocol = if settings.broker_assigns { "consumer" } else { "classic" };
    let Settings { static_membership, workers, purge, .. } = settings;
    let batch = if settings.default_batches { "" } else { "max_articles = 40\nlinger_ms = 30" };
    // With KIP-848 the broker determines the session timeout.
    let session = match settings.broker_assigns {
        true => "",
        false => "\"session.timeout.ms\" = \"6000\"\n\"heartbeat.interval.ms\" = \"500\"",
    };
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
generation = 1
state = "{}"
languages = {languages:?}
transaction_timeout = "{timeout}"
group_protocol = "{protocol}"
static_membership = {static_membership}
workers = {workers}
purge = {purge}
[topics]
raw = "{raw}"
changelog = "{changelog}"
partitions = 3
output_partitions = 2
[batch]
{batch}
[kafka]
"bootstrap.servers" = "{bootstrap}"
"broker.address.family" = "v4"
"topic.metadata.refresh.interval.ms" = "5000"
"max.poll.interval.ms" = "60000"
{session}
"#,
        state.display()
    )
}
