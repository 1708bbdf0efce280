//! The stateless stage: raw article → fingerprint → the partition where its language lives.

pub(crate) mod decode;
pub(crate) mod payload;
pub(crate) mod routed;
pub(crate) mod routing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;

use crate::config::Bus;
use crate::metrics;
use crate::status::PartitionState;
use samestory_engine::model::{Position, TopicId};

use super::admin::ids;
use super::admin::preflight::Preflight;
use super::client::{PATIENCE, Quiet};
use super::matching::outgoing::{Original, Writer};
use super::recovery::generations::{FOLLOW_INTERVAL, Generations, LookError};
use super::recovery::restore::now;
use super::recovery::takeover::{
    CLAIM_AGAIN_AFTER, Decisions, Disagreed, Disagreement, Takeover, TakeoverFacts, decide, decide_stateless,
};
use super::turn::faults;
use super::turn::record::{Outgoing, Record};
use super::turn::source::Source;
use super::turn::stage::{Planning, Stage};
use super::turn::txn::CommittedTxn;
use payload::ArticleSlice;
use routing::{RouteOutput, Routing};

/// The stateless stage.
pub(crate) struct Route {
    pub(crate) bus: Bus,
    pub(crate) routing: Routing,
    pub(crate) writer: Writer,
    pub(crate) surveyor: BaseConsumer<Quiet>,
    /// The raw positions that match knows.
    pub(crate) recorded: Preflight,
    pub(crate) accept: Decisions,
    pub(crate) disagreed: Disagreed,
    pub(crate) generations: Generations,
    pub(crate) tasks: BTreeMap<i32, Task>,
    /// First offsets of partitions that we may not have, for a group that has read nothing yet. They are committed
    /// together with that of partition 0.
    pub(crate) first_offsets: BTreeMap<i32, i64>,
    /// By partition: dead letters of records below this offset may have been written before.
    pub(crate) repeats_below: BTreeMap<i32, i64>,
    /// When the raw topic's id was last compared.
    pub(crate) compared: Instant,
}

/// One partition's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Its offset is asked for.
    Claiming {
        not_before: Instant,
    },
    /// Its first offset is committed before its first record is read: a restart or a rebalance must not choose another.
    Starting {
        next: i64,
    },
    Running,
    /// Waits for the generation before, and goes on from here.
    Held {
        not_before: Instant,
        next: i64,
    },
    /// Somebody has to decide.
    Stopped,
}

/// What goes out for a batch.
pub(crate) struct Routed {
    records: Vec<RouteOutput>,
    /// Partitions that wait for the generation before when this is done, and where they go on.
    held: Vec<(i32, i64)>,
    /// Partitions whose first offset this commits.
    starts: Vec<(i32, i64)>,
}

/// Where a partition without a committed offset starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// Behind the highest raw offset that match knows.
    After(i64),
    /// At its beginning, whatever `input.start` says: other partitions of the topic are known, so this one is new.
    Beginning,
    /// Nobody has read the topic: at `input.start`, and all other partitions with it.
    First,
    /// Nobody has read the topic, and the owner of partition 0 chooses. If each owner chose for itself, the slower of
    /// two would take its partition for a new one.
    Wait,
}

fn start(partition: i32, known: &BTreeMap<i32, i64>, others_committed: bool) -> Start {
    match known.get(&partition) {
        Some(&highest) => Start::After(highest),
        None if others_committed || !known.is_empty() => Start::Beginning,
        None if partition == 0 => Start::First,
        None => Start::Wait,
    }
}

impl Route {
    /// Finds out where a partition is read from. An offset comes with a partition that is ready.
    fn claim(&mut self, partition: i32, source: &Source) -> Result<(Task, Option<i64>), LookError> {
        if partition == 0 {
            self.first_offsets.clear();
        }
        let committed = source.committed(partition)?;
        // After the offset: an end that is being written is waited for there.
        if let Some(end) = self.generations.claim(&self.surveyor)? {
            tracing::error!(partition, "stopped: {}", Disagreement::Ended(Box::new(end)));
            return Ok((Task::Stopped, None));
        }
        let (low, high) = self.surveyor.fetch_watermarks(source.topic(), partition, PATIENCE)?;
        let id = self.ask_topic_id()?;
        if let Some(known) = self.other_topic(id)? {
            tracing::error!(partition, "stopped: {}", recreated(source.topic(), id, known));
            return Ok((Task::Stopped, None));
        }
        self.routing.topic_id = id;
        if committed.is_some() {
            return Ok(match decide_stateless(partition, committed, (low, high), &self.accept.left()) {
                Takeover::Resume(next) => {
                    self.disagreed.forget(partition);
                    tracing::info!(partition, next, "going on");
                    (Task::Running, Some(next))
                }
                Takeover::Accepted { from, lost } => {
                    tracing::warn!(partition, from, lost, "going on as the operator has said");
                    // Committed first, so that the decision has been applied before anything is read.
                    (Task::Starting { next: from }, None)
                }
                Takeover::Stop(disagreement) => (self.disagree(partition, &disagreement), None),
                Takeover::Begin => (Task::Claiming { not_before: Instant::now() }, None),
            });
        }
        let partitions = self.raw_partitions(source.topic())?;
        let others_committed = source.any_committed((0..partitions).filter(|&other| other != partition))?;
        let known = self.recorded.raw_offsets(self.routing.topic_id)?;
        let next = match start(partition, &known, others_committed) {
            Start::After(highest) => {
                let known = TakeoverFacts {
                    partition,
                    committed: None,
                    position: Some(highest + 1),
                    moved: None,
                    truncated: false,
                    low,
                    high,
                };
                let next = match decide(known, &self.accept.left()) {
                    Takeover::Resume(next) => next,
                    Takeover::Accepted { from, lost } => {
                        tracing::warn!(partition, from, lost, "going on as the operator has said");
                        from
                    }
                    Takeover::Stop(disagreement) => {
                        return Ok((self.disagree(partition, &disagreement), None));
                    }
                    Takeover::Begin => return Ok((Task::Claiming { not_before: Instant::now() }, None)),
                };
                tracing::warn!(
                    partition,
                    next,
                    "no committed offset; resuming after the highest raw offset that match knows. Articles are not judged twice; dead letters may be written again"
                );
                self.repeats_below.insert(partition, high);
                next
            }
            Start::Beginning => {
                tracing::warn!(
                    topic = source.topic(),
                    partition,
                    next = low,
                    "a raw partition not seen before; starting at its beginning"
                );
                low
            }
            Start::First => {
                let at = |partition| {
                    let ends = self.surveyor.fetch_watermarks(source.topic(), partition, PATIENCE)?;
                    Ok((partition, source.first_offset(partition, self.bus.start, ends)?))
                };
                let first = (0..partitions).map(at).collect::<Result<BTreeMap<i32, i64>, KafkaError>>()?;
                tracing::info!(?first, "nobody has read the raw topic yet; starting at input.start");
                let next = first.get(&partition).copied().unwrap_or(low);
                self.first_offsets = first;
                next
            }
            Start::Wait => {
                tracing::debug!(
                    partition,
                    "waiting for the owner of partition 0 to commit the first offsets"
                );
                return Ok((Task::Claiming { not_before: Instant::now() + AGAIN }, None));
            }
        };
        Ok((Task::Starting { next }, None))
    }

    /// A partition that does not agree is claimed again a few times before it stops.
    fn disagree(&mut self, partition: i32, disagreement: &Disagreement) -> Task {
        if self.disagreed.is_final(partition) {
            tracing::error!(partition, "stopped: {disagreement}");
            return Task::Stopped;
        }
        tracing::warn!(partition, "claiming again: {disagreement}");
        Task::Claiming { not_before: Instant::now() + CLAIM_AGAIN_AFTER }
    }

    /// How many partitions the raw topic has now.
    fn raw_partitions(&self, topic: &str) -> Result<i32, KafkaError> {
        let metadata = self.surveyor.fetch_metadata(Some(topic), PATIENCE)?;
        let count = metadata.topics().iter().map(|topic| topic.partitions().len()).max().unwrap_or(0);
        Ok(i32::try_from(count).unwrap_or(i32::MAX))
    }

    fn ask_topic_id(&self) -> Result<TopicId, KafkaError> {
        let id = ids::topic_id(self.surveyor.client(), &self.bus.topics.raw, PATIENCE)?;
        Ok(id.unwrap_or(TopicId::UNKNOWN))
    }

    /// The id of another raw topic, of the same name, that this process has read or that match has judged articles of.
    fn other_topic(&mut self, id: TopicId) -> Result<Option<TopicId>, KafkaError> {
        if id == TopicId::UNKNOWN {
            return Ok(None);
        }
        let mut known = self.recorded.topics()?;
        known.insert(self.routing.topic_id);
        Ok(known.into_iter().find(|known| known.differs_from(id)))
    }

    /// Whether a dead letter may have been written before the committed offset was lost.
    fn may_repeat(&self, position: &Position) -> bool {
        let Position::Topic { partition, offset, .. } = position else { return false };
        self.repeats_below.get(partition).is_some_and(|below| offset < below)
    }
}

/// How often the raw topic's id is compared. librdkafka reads on from the same offset in a topic that was deleted and
/// created again, if that is long enough.
const COMPARE: Duration = Duration::from_secs(10);

/// How long a partition that cannot be claimed yet waits until it is asked for again.
const AGAIN: Duration = Duration::from_millis(200);

/// Why nothing is read from a topic that was deleted and created again.
pub(crate) fn recreated(topic: &str, ours: TopicId, known: TopicId) -> String {
    format!(
        "topic {topic} has the id {ours}, but the state was made from one with the id {known}: it was deleted and created again, so offsets of the old one mean nothing in it; set topics.raw back to the old topic, or start a new generation with the next number in stage.generation, which builds its state from the new topic"
    )
}

impl Stage for Route {
    type Planned = Routed;

    fn assigned(&mut self, partition: i32) {
        self.tasks.insert(partition, Task::Claiming { not_before: Instant::now() });
    }

    fn revoked(&mut self, partition: i32) {
        self.tasks.remove(&partition);
        self.disagreed.forget(partition);
        self.repeats_below.remove(&partition);
        if partition == 0 {
            self.first_offsets.clear();
        }
    }

    fn advance(&mut self, source: &Source) -> Vec<(i32, i64)> {
        let mut ready = Vec::new();
        for (&partition, task) in &mut self.tasks {
            if let Task::Held { not_before, next } = *task
                && not_before <= Instant::now()
            {
                ready.push((partition, next));
                *task = Task::Running;
            }
        }
        let claiming = self.tasks.iter().filter(|(_, task)| match task {
            Task::Claiming { not_before } => *not_before <= Instant::now(),
            Task::Starting { .. } | Task::Running | Task::Held { .. } | Task::Stopped => false,
        });
        let claiming: Vec<i32> = claiming.map(|(&partition, _)| partition).collect();
        for partition in claiming {
            let (task, from) = self.claim(partition, source).unwrap_or_else(|error| match error {
                LookError::Away(error) => {
                    tracing::debug!(%error, partition, "taking over; it is tried again");
                    (Task::Claiming { not_before: Instant::now() + AGAIN }, None)
                }
                foreign => {
                    tracing::error!(partition, "stopped: {foreign}");
                    (Task::Stopped, None)
                }
            });
            self.tasks.insert(partition, task);
            ready.extend(from.map(|from| (partition, from)));
        }
        ready
    }

    fn standing(&self) -> Vec<(i32, PartitionState)> {
        let standing = |task: &Task| match task {
            Task::Claiming { .. } | Task::Starting { .. } => PartitionState::TakingOver,
            Task::Running | Task::Held { .. } => PartitionState::Running(Arc::default()),
            Task::Stopped => PartitionState::Stopped,
        };
        self.tasks.iter().map(|(&partition, task)| (partition, standing(task))).collect()
    }

    fn is_taking_over(&self) -> bool {
        self.tasks.values().any(|task| match task {
            Task::Claiming { not_before } => *not_before <= Instant::now(),
            Task::Starting { .. } | Task::Running | Task::Held { .. } | Task::Stopped => false,
        })
    }

    fn has_pending_commit(&self) -> bool {
        self.tasks.values().any(|task| matches!(task, Task::Starting { .. }))
    }

    fn gather(&mut self, records: &BTreeMap<i32, Vec<Record>>) -> Result<(), String> {
        self.routing.decoder.gather(records.values().flatten())
    }

    fn plan(&mut self, records: BTreeMap<i32, Vec<Record>>) -> Planning<Routed> {
        let (mut held, mut halted, clock) = (Vec::new(), Vec::new(), now());
        let starts = self.tasks.iter().filter_map(|(&partition, task)| match task {
            Task::Starting { next } => Some((partition, *next)),
            Task::Claiming { .. } | Task::Running | Task::Held { .. } | Task::Stopped => None,
        });
        let starts: Vec<(i32, i64)> = starts.collect();
        let mut next: BTreeMap<i32, i64> = starts.iter().copied().collect();
        if starts.iter().any(|&(partition, _)| partition == 0) {
            next.extend(&self.first_offsets);
        }
        let mut outbox = self.routing.outbox();
        for (partition, mut records) in records {
            let admitted = self.generations.admit(partition, &mut records, &self.surveyor);
            let silent = records.first().is_some_and(|first| first.offset < admitted.suppress_below);
            match (records.last(), admitted.waits) {
                (Some(last), Some(_)) => held.push((partition, last.offset + 1)),
                (None, Some(from)) => {
                    halted.push(partition);
                    self.tasks.insert(
                        partition,
                        Task::Held { not_before: Instant::now() + FOLLOW_INTERVAL, next: from },
                    );
                }
                (_, None) => {}
            }
            if let Some(last) = records.last() {
                next.insert(partition, last.offset + 1);
            }
            outbox.set_silent(silent);
            self.routing.route(partition, records, clock, &mut outbox);
        }
        let records = outbox.finish();
        self.routing.decoder.settle();
        Planning { planned: Routed { records, held, starts }, next, halted }
    }

    fn outgoing<'a>(&'a self, routed: &'a Routed) -> Vec<Outgoing<'a>> {
        let outgoing = |send: &'a RouteOutput| match send {
            RouteOutput::To { partition, key, value, headers, time } => Outgoing {
                topic: &self.bus.topics.routed,
                partition: Some(*partition),
                key: Some(key.clone()),
                value: Some(value.clone()),
                headers: headers.clone(),
                time: *time,
            },
            RouteOutput::Dead { letter, record } => {
                self.writer.dead_letter(letter, Original { record, placed: ArticleSlice::WHOLE })
            }
        };
        routed.records.iter().map(outgoing).collect()
    }

    fn apply(&mut self, routed: Routed, _: &CommittedTxn) -> Vec<i32> {
        for send in &routed.records {
            if let RouteOutput::Dead { letter, .. } = send {
                metrics::dead_letters(letter.reason.as_str(), 1);
                metrics::repeated("route", u64::from(self.may_repeat(&letter.position)));
            }
        }
        for &(partition, next) in &routed.starts {
            if partition == 0 {
                self.first_offsets.clear();
            }
            self.accept.spend(partition);
            self.disagreed.forget(partition);
            self.tasks.insert(partition, Task::Held { not_before: Instant::now(), next });
        }
        for &(partition, next) in &routed.held {
            self.tasks.insert(partition, Task::Held { not_before: Instant::now() + FOLLOW_INTERVAL, next });
        }
        routed.held.into_iter().map(|(partition, _)| partition).collect()
    }

    fn out_of_range(&mut self) -> Vec<i32> {
        let running: Vec<i32> = self.tasks.keys().copied().collect();
        running.iter().for_each(|&partition| self.assigned(partition));
        running
    }

    fn upkeep(&mut self) -> Vec<i32> {
        let often = Duration::from_millis(faults::number("SAMESTORY_COMPARE_MS", COMPARE.as_millis() as u64));
        if self.compared.elapsed() < often || !self.tasks.values().any(|task| *task == Task::Running) {
            return Vec::new();
        }
        self.compared = Instant::now();
        match self.ask_topic_id() {
            Ok(id) if id.differs_from(self.routing.topic_id) => {
                tracing::error!(
                    "the raw topic was deleted and created again; its partitions are taken over again"
                );
                self.out_of_range()
            }
            Ok(_) => Vec::new(),
            Err(error) => {
                tracing::debug!(%error, "comparing topic ids; it is tried again");
                Vec::new()
            }
        }
    }

    fn close(&mut self) {
        self.tasks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_without_a_committed_offset_starts_where_nothing_is_lost() {
        let known = BTreeMap::from([(0, 41), (2, 7)]);
        assert_eq!(start(2, &known, true), Start::After(7));
        assert_eq!(start(1, &known, false), Start::Beginning, "others were read, so it is new");
        assert_eq!(start(3, &BTreeMap::new(), true), Start::Beginning, "others have offsets");
        assert_eq!(start(0, &BTreeMap::new(), false), Start::First);
        assert_eq!(start(1, &BTreeMap::new(), false), Start::Wait, "one member chooses for all");
    }

    #[test]
    fn a_topic_created_again_is_refused_by_both_ids() {
        let (ours, known) = (TopicId::from_halves(1, 1), TopicId::from_halves(2, 2));
        let said = recreated("articles.raw", ours, known);
        for part in ["articles.raw", &ours.to_string(), &known.to_string(), "stage.generation"] {
            assert!(said.contains(part), "{said}");
        }
    }
}
