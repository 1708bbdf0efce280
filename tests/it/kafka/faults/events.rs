//! Events other than faults of processes, disks and brokers: floods, records too large for a topic, idle
//! time, new partitions, a new generation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use samestory::config::Config;
use samestory::kafka::admin::topics;

use crate::kafka::bus::{Isolation, Record};

use super::actions::secs;
use super::coverage;
use super::process::Orders;
use super::random::Random;
use super::scene::{INSTANCES, Scene};

impl Scene {
    /// Lets the crawlers write many copies of the same boilerplate.
    pub(crate) fn flood(&mut self, random: &mut Random) {
        let copies = 200 + random.below(400);
        self.say(&format!("a flood of {copies} copies of boilerplate"));
        self.wishes.flood.fetch_add(copies, Ordering::Relaxed);
        self.ledger.done("boilerplate flood");
    }

    /// Lowers the limits of the output topics while the stage runs, and sends records that no longer fit.
    pub(crate) fn lower_limits(&mut self) {
        const FAULT: &str = "undeliverable records";
        self.ledger.drawn(FAULT);
        self.say("output topics take less for a while, and large records come");
        let names = self.config.bus.topics.clone();
        let letters = |scene: &Scene| {
            let letters = scene.broker.ends(&names.dead_letter, Isolation::Committed);
            letters.values().sum::<i64>()
        };
        let outputs = [&names.unique, &names.near_duplicate];
        outputs.iter().for_each(|topic| self.broker.set_topic(topic, "max.message.bytes", "150000"));
        let before = letters(self);
        self.wishes.large.fetch_add(3, Ordering::Relaxed);
        let deadline = Instant::now() + secs(25);
        while Instant::now() < deadline && letters(self) < before + 2 {
            self.wait(Duration::from_millis(500));
        }
        let limit = self.config.bus.topics.max_message_bytes.to_string();
        outputs.iter().for_each(|topic| self.broker.set_topic(topic, "max.message.bytes", &limit));
        if letters(self) >= before + 2 {
            self.ledger.traced(FAULT);
        }
    }

    /// Lets a worker panic at a fault point; its process ends and is started again.
    pub(crate) fn panic_at(&mut self, at: usize, point: &'static str, count: usize) {
        const FAULT: &str = "worker panics";
        self.ledger.drawn(FAULT);
        self.say(&format!("{at} panics at {point}:{count}"));
        self.kill(at);
        self.start_with(at, &Orders::default().with("SAMESTORY_PANIC_AT", format!("{point}:{count}")));
        if self.await_death(at, secs(60)) {
            self.ledger.traced(FAULT);
        }
        self.start(at);
    }

    /// Writes nothing for longer than the changelog keeps tombstones, and restarts everything. An intact
    /// state must not be taken for too old.
    pub(crate) fn idle(&mut self) {
        const FAULT: &str = "idle for longer than tombstones";
        self.ledger.drawn(FAULT);
        self.say(FAULT);
        self.wishes.paused.store(true, Ordering::Relaxed);
        self.wait(secs(1));
        let running = self.running();
        if let Err(why) = self.quiesce(secs(60)) {
            self.wrong.push(format!("not done while nothing was written: {why}"));
        }
        // A state that has not seen all of the log would be too old, and rightly so: one instance takes everything over, and
        // the others lose their disks.
        for at in 0..INSTANCES {
            self.stop(at);
            if at != running[0] {
                drop(fs::remove_dir_all(self.state(at)));
            }
        }
        self.start_and_take_over(running[0]);
        self.stop(running[0]);
        self.keep_tombstones("1000");
        self.wait(secs(3));
        let before = coverage::count(&self.logs()).0["wipes"];
        let resumed = self.start_and_take_over(running[0]);
        if coverage::count(&self.logs()).0["wipes"] > before {
            self.wrong.push("an idle partition was taken for too old".into());
        }
        if resumed {
            self.ledger.traced(FAULT);
        }
        // A process reads at its start how long tombstones are kept.
        self.keep_tombstones("86400000");
        self.stop(running[0]);
        running.iter().for_each(|&at| self.start(at));
        self.wishes.paused.store(false, Ordering::Relaxed);
    }

    /// Starts an instance that is alone, and waits until it goes on with every partition. Whether it did.
    fn start_and_take_over(&mut self, at: usize) -> bool {
        let raw = usize::try_from(self.wishes.partitions.load(Ordering::Relaxed)).unwrap();
        let all = if self.settings.direct { raw } else { raw + 3 };
        let resumed = |scene: &Scene| scene.logged(at, "\"resuming\"");
        let (before, deadline) = (resumed(self), Instant::now() + secs(60));
        self.start(at);
        while resumed(self) < before + all && Instant::now() < deadline {
            self.wait(Duration::from_millis(200));
        }
        resumed(self) >= before + all
    }

    /// The schema registry is frozen while an instance starts.
    pub(crate) fn freeze_registry(&mut self, at: usize, random: &mut Random) {
        const FAULT: &str = "registry frozen";
        self.ledger.drawn(FAULT);
        self.say(FAULT);
        let Some(registry) = &self.registry else { return };
        registry.pause();
        let before = self.logged(at, "the schema registry");
        self.kill_and_start(at);
        self.wait(random.span(6000, 12_000));
        if let Some(registry) = &self.registry {
            registry.resume();
        }
        if self.logged(at, "the schema registry") > before {
            self.ledger.traced(FAULT);
        }
    }

    /// Adds a partition to the raw topic.
    pub(crate) fn add_partition(&mut self) {
        let partitions = self.wishes.partitions.load(Ordering::Relaxed) + 1;
        self.say(&format!("the raw topic has {partitions} partitions now"));
        self.broker.add_partitions(&self.config.bus.topics.raw, usize::try_from(partitions).unwrap());
        self.wait(secs(1));
        self.wishes.partitions.store(partitions, Ordering::Relaxed);
        self.ledger.drawn("partitions added");
    }

    /// After everything else: the raw topic is deleted and created again under the running stage. Every partition stops by
    /// name, and nothing of the new topic is judged. Where articles come by language, the operator can let them be read.
    pub(crate) fn recreate_input(&mut self) {
        const FAULT: &str = "input created again";
        const RECORDS: usize = 60;
        self.ledger.drawn(FAULT);
        self.say(FAULT);
        let names = self.config.bus.topics.clone();
        let partitions = self.wishes.partitions.load(Ordering::Relaxed);
        let resumed = self.logged(0, "\"resuming\"");
        self.start_with(0, &Orders::default().with("SAMESTORY_COMPARE_MS", 200));
        let deadline = Instant::now() + secs(60);
        while Instant::now() < deadline && self.logged(0, "\"resuming\"") < resumed + partitions as usize {
            self.wait(Duration::from_millis(200));
        }
        self.broker.delete_topic(&names.raw);
        self.broker.create_named(&names.raw, partitions, &[("max.message.bytes", "8000000")]);
        let deadline = Instant::now() + secs(60);
        while Instant::now() < deadline && self.stopped_by_name(0).len() < partitions as usize {
            self.wait(Duration::from_millis(200));
        }
        let stopped = self.stopped_by_name(0);
        if stopped.len() < partitions as usize {
            self.wrong.push(format!("an input created again stopped only {stopped:?} of {partitions}"));
            return;
        }
        let record = |n: usize| {
            let value = format!(
                "{{\"id\":\"again-{n}\",\"language\":\"en\",\"body\":\"the {n}th of the new topic\"}}"
            );
            let partition = Some(n as i32 % partitions);
            Record { partition, ..Record::new(&format!("again-{n}"), &value) }
        };
        self.broker.produce(&names.raw, &(0..RECORDS).map(record).collect::<Vec<_>>());
        let judged = |scene: &Scene| {
            let rows = [&names.unique, &names.near_duplicate, &names.dead_letter].into_iter();
            let rows = rows.flat_map(|topic| scene.broker.read(topic, Isolation::Committed));
            let new = rows.filter(|row| row.key.as_deref().is_some_and(|key| key.starts_with(b"again-")));
            let ids: Vec<_> = new.map(|row| row.key).collect();
            (ids.len(), ids.into_iter().collect::<BTreeSet<_>>().len())
        };
        self.wait(secs(3));
        if judged(self) != (0, 0) {
            self.wrong.push("records of an input created again were judged".into());
        }
        self.stop(0);
        if self.settings.direct {
            let accept =
                |(partition, offset)| ["--accept-offsets".to_owned(), format!("{partition}:{offset}")];
            let arguments: Vec<String> = stopped.into_iter().flat_map(accept).collect();
            self.start_with(0, &Orders { arguments, ..Orders::default() });
            let deadline = Instant::now() + secs(60);
            while Instant::now() < deadline && judged(self).0 < RECORDS {
                self.wait(Duration::from_millis(500));
            }
            if judged(self) != (RECORDS, RECORDS) {
                let found = judged(self);
                self.wrong.push(format!("{found:?} outputs and ids for {RECORDS} records of the new topic"));
            }
            self.stop(0);
        }
        self.ledger.traced(FAULT);
    }

    /// Partitions that stopped because their input is another topic of the same name, each with the offset that the operator
    /// would accept.
    fn stopped_by_name(&self, at: usize) -> BTreeMap<i64, String> {
        let log = fs::read_to_string(self.logs().join(format!("{at}.log"))).unwrap_or_default();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let named = |said: serde_json::Value| {
            let message = said["message"].as_str()?;
            let is_named =
                message.contains("topic id of the input") || message.contains("deleted and created again");
            let partition =
                said["partition"].as_i64().filter(|_| message.starts_with("stopped: ") && is_named)?;
            let offset = message
                .split_once(&format!("--accept-offsets {partition}:"))
                .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect());
            Some((partition, offset.unwrap_or_default()))
        };
        lines.filter_map(named).collect()
    }

    /// How often an instance has logged this.
    pub(crate) fn logged(&self, at: usize, text: &str) -> usize {
        let log = fs::read_to_string(self.logs().join(format!("{at}.log"))).unwrap_or_default();
        log.matches(text).count()
    }

    /// Starts a new generation, which builds its state beside the old one; then kills the old one's processes
    /// and ends it. `generation end` is killed once, too. From then on the new generation publishes.
    pub(crate) fn switch_generation(&mut self, random: &mut Random) {
        const FAULT: &str = "generation switch";
        self.ledger.drawn(FAULT);
        self.say(FAULT);
        let old = self.running();
        for at in 0..INSTANCES {
            let text = fs::read_to_string(self.settings_file(at)).unwrap();
            let next = text.replace("generation = 1\n", "generation = 2\n");
            fs::write(self.settings_file(at), next).unwrap();
        }
        let next = Config::load(Some(&self.settings_file(0))).unwrap();
        topics::create(&next.bus).unwrap();
        let keeper = self.keep(&next);
        // The new generation follows while the old one publishes. The old one must judge all routed records
        // before it ends.
        let new = (0..INSTANCES).find(|at| !old.contains(at)).unwrap_or(0);
        self.stop(new);
        self.start(new);
        self.wait(random.span(3000, 8000));
        self.wishes.paused.store(true, Ordering::Relaxed);
        self.wait(secs(1));
        if let Err(why) = self.quiesce(secs(90)) {
            self.wrong.push(format!("the old generation is not done: {why}"));
        }
        old.iter().filter(|&&at| at != new).for_each(|&at| self.kill(at));
        self.take_over(next, keeper);
        self.keep_tombstones("86400000");
        self.wishes.paused.store(false, Ordering::Relaxed);
        let end = |scene: &Scene| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_samestory"));
            command.arg("--config").arg(scene.settings_file(0)).args(["generation", "end"]);
            command.spawn().unwrap()
        };
        let mut ending = end(self);
        self.wait(random.span(200, 9000));
        drop(ending.kill());
        ending.wait().unwrap();
        let (mut ending, deadline) = (end(self), Instant::now() + secs(120));
        let ended = loop {
            match ending.try_wait().unwrap() {
                None if Instant::now() < deadline => self.wait(Duration::from_millis(200)),
                ended => break ended,
            }
        };
        match ended {
            Some(status) if status.success() => self.ledger.traced(FAULT),
            status => {
                drop(ending.kill());
                drop(ending.wait());
                self.wrong.push(format!("generation end: {status:?}"));
            }
        }
        old.iter().filter(|&&at| at != new).for_each(|&at| self.start(at));
    }
}
