//! Faults of a broker cluster: leaders and coordinators fail over, replicas fall out of sync, brokers restart
//! in turn. The trace of each fault comes from the cluster itself.

use std::time::{Duration, Instant};

use super::actions::secs;
use super::random::Random;
use super::scene::Scene;

/// A killed broker loses its session after nine seconds; then another one leads.
const FAILED_OVER: Duration = Duration::from_secs(30);

/// The role of the broker that is taken down.
#[derive(Clone, Copy, Debug)]
enum Lost {
    Leader,
    GroupCoordinator,
    TransactionCoordinator,
}

impl Lost {
    fn name(self) -> &'static str {
        match self {
            Lost::Leader => "leader fails over",
            Lost::GroupCoordinator => "group coordinator fails over",
            Lost::TransactionCoordinator => "transaction coordinator fails over",
        }
    }
}

impl Scene {
    /// Takes down the broker that leads or coordinates, by SIGKILL or gracefully, and starts it again once
    /// another one has taken over.
    pub(crate) fn fail_over(&mut self, random: &mut Random) {
        let lost = *random.pick(&[Lost::Leader, Lost::GroupCoordinator, Lost::TransactionCoordinator]);
        let (killed, partition) = (random.below(3) > 0, random.below(3) as i32);
        let topics = [&self.config.bus.topics.changelog, &self.config.bus.topics.unique];
        let topic = (*random.pick(&topics)).clone();
        let role = if self.settings.direct { "direct" } else { "match" };
        let group = self.groups().last().unwrap().0.clone();
        let generation = self.config.bus.generation;
        let infix = if generation > 1 { format!("-g{generation}") } else { String::new() };
        let id = format!("faults{infix}-{role}-{}-0", random.pick(&self.running()));
        let whose = |scene: &Scene| match lost {
            Lost::Leader => scene.broker.leader(&topic, partition % 2),
            Lost::GroupCoordinator => scene.broker.group_coordinator(&group),
            Lost::TransactionCoordinator => scene.broker.transaction_coordinator(&id),
        };
        self.ledger.drawn(lost.name());
        let Some(node) = whose(self) else { return };
        self.say(&format!("{} (node {node}, {})", lost.name(), if killed { "killed" } else { "stopped" }));
        self.broker.node(node, if killed { "kill" } else { "stop" });
        let deadline = Instant::now() + FAILED_OVER;
        while Instant::now() < deadline {
            self.wait(Duration::from_millis(500));
            if whose(self).is_some_and(|other| other != node) {
                self.ledger.traced(lost.name());
                break;
            }
        }
        // The stage works with two of three brokers.
        self.wait(random.span(1000, 5000));
        self.broker.node(node, "start");
    }

    /// Stops one replica while `min.insync.replicas` is 3, so that nothing can be written to these topics.
    pub(crate) fn lose_replicas(&mut self, random: &mut Random) {
        const FAULT: &str = "replicas in sync below the minimum";
        let node = 1 + random.below(3);
        self.ledger.drawn(FAULT);
        self.say(&format!("{FAULT} (node {node})"));
        let names = &self.config.bus.topics;
        let topics = [names.changelog.clone(), names.unique.clone()];
        let refused = || self.broker.logged("NotEnoughReplicas");
        let before = refused();
        topics.iter().for_each(|topic| self.broker.set_topic(topic, "min.insync.replicas", "3"));
        self.broker.node(node, "stop");
        self.wait(random.span(4000, 12_000));
        self.broker.node(node, "start");
        topics.iter().for_each(|topic| self.broker.set_topic(topic, "min.insync.replicas", "2"));
        if self.broker.logged("NotEnoughReplicas") > before {
            self.ledger.traced(FAULT);
        }
    }

    /// Restarts every broker gracefully, one after the other.
    pub(crate) fn rolling_restart(&mut self) {
        self.say("rolling restart of the brokers");
        for node in 1..=self.broker.nodes() {
            self.broker.node(node, "stop");
            self.wait(secs(1));
            self.broker.node(node, "start");
            self.wait(secs(2));
        }
        self.ledger.done("rolling restart");
    }

    /// Freezes one broker of the cluster.
    pub(crate) fn pause_node(&mut self, random: &mut Random) {
        let (node, time) = (1 + random.below(3), random.span(3000, 15_000));
        self.say(&format!("freeze node {node} for {time:?}"));
        self.broker.node(node, "pause");
        self.wait(time);
        self.broker.node(node, "resume");
        self.ledger.done("broker frozen");
    }
}
