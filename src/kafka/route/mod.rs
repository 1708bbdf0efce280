//! The `route` role: reads the raw topic, computes fingerprints and writes each article to the routed partition that is
//! the home of its language. [`Route`] decides where each raw partition resumes, [`routing`] turns raw records into
//! routed ones, and [`super::turn`] commits both in one transaction. Route keeps no state of its own: the committed
//! offset is all it has.

mod ahead;
pub(crate) mod decode;
pub(crate) mod payload;
pub(crate) mod routed;
pub(crate) mod routing;

use std::collections::BTreeMap;
use std::convert::Infallible;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;

use crate::config::Bus;
use crate::metrics;
use samestory_engine::model::{Position, TopicId};

use super::admin::ids;
use super::admin::preflight::Preflight;
use super::client::{PATIENCE, Quiet};
use super::clock::now;
use super::matching::outgoing::{Original, Writer, borrowed};
use super::recovery::generations::{FOLLOW_INTERVAL, Generations, LookError};
use super::recovery::takeover::{Decisions, Disagreement, Takeover, TakeoverFacts, decide, decide_stateless};
use super::turn::partitions::{Advanced, AssignedPartitions, Obstacle, Task};
use super::turn::record::{Outgoing, Record};
use super::turn::source::RecordSource;
use super::turn::stage::{Planning, StageRole};
use super::turn::txn::CommittedTxn;
use payload::ArticleSlice;
use routing::{RouteOutput, Routing};

/// The `route` role as a [`StageRole`].
pub(crate) struct Route {
    pub(crate) bus: Bus,
    pub(crate) routing: Routing,
    pub(crate) writer: Writer,
    pub(crate) surveyor: BaseConsumer<Quiet>,
    /// The raw positions in match's changelog.
    pub(crate) recorded: Preflight,
    pub(crate) accept: Decisions,
    pub(crate) generations: Generations,
    pub(crate) partitions: AssignedPartitions<Infallible, ()>,
    /// Where every raw partition starts, if the group has committed nothing yet. The owner of partition 0 commits them
    /// for all partitions, including those assigned to other members.
    pub(crate) first_offsets: BTreeMap<i32, i64>,
    /// Per partition: records below this offset may already have dead letters.
    pub(crate) repeats_below: BTreeMap<i32, i64>,
}

type Claimed = Advanced<Infallible, ()>;

/// The planned output of one turn.
pub(crate) struct RoutePlan {
    records: Vec<RouteOutput>,
    /// Partitions that wait for the previous generation after this turn, with the offset where they resume.
    held: Vec<(i32, i64)>,
    /// Partitions whose first offset this turn commits.
    starts: Vec<(i32, i64)>,
}

/// Where a partition without a committed offset starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstRead {
    /// After the highest raw offset in match's changelog.
    After(i64),
    /// At its beginning, whatever `input.start` says: other partitions of the topic are known, so this one is new.
    Beginning,
    /// At `input.start`, together with all other partitions: the topic has never been read.
    First,
    /// The topic has never been read, and the owner of partition 0 chooses for all. If each owner chose for itself, the
    /// slower of two would mistake its partition for a new one.
    Wait,
}

fn start(partition: i32, known: &BTreeMap<i32, i64>, others_committed: bool) -> FirstRead {
    match known.get(&partition) {
        Some(&highest) => FirstRead::After(highest),
        None if others_committed || !known.is_empty() => FirstRead::Beginning,
        None if partition == 0 => FirstRead::First,
        None => FirstRead::Wait,
    }
}

impl Route {
    /// Decides where a partition resumes. The offset is set once the partition can be read.
    fn look_up(&mut self, partition: i32, source: &RecordSource) -> Result<Claimed, LookError> {
        if partition == 0 {
            self.first_offsets.clear();
        }
        let committed = source.committed(partition)?;
        // After the offset: fetching it waits for a generation-end record that is still in an open transaction.
        if let Some(end) = self.generations.claim(&self.surveyor)? {
            tracing::error!(partition, "stopped: {}", Disagreement::Ended(Box::new(end)));
            return Ok(Task::Stopped.into());
        }
        let (low, high) = self.surveyor.fetch_watermarks(source.topic(), partition, PATIENCE)?;
        let id = self.raw_topic_id()?;
        if let Some(known) = self.other_topic(id)? {
            tracing::error!(partition, "stopped: {}", recreated(source.topic(), id, known));
            return Ok(Task::Stopped.into());
        }
        self.routing.topic_id = id;
        if committed.is_some() {
            return Ok(match decide_stateless(partition, committed, (low, high), &self.accept.left()) {
                Takeover::Resume(next) => {
                    self.partitions.agrees(partition);
                    tracing::info!(partition, next, "resuming");
                    Advanced::resumes((), next)
                }
                Takeover::Accepted { from, lost } => {
                    tracing::warn!(partition, from, lost, "resuming as the operator decided");
                    // The offset is committed before anything is read, so the decision cannot apply twice.
                    Advanced::commits_first((), from)
                }
                Takeover::Stop(disagreement) => self.partitions.disagrees(partition, &disagreement).into(),
                Takeover::Begin => Task::claim_now().into(),
            });
        }
        let partitions = self.raw_partitions(source.topic())?;
        let others_committed = source.any_committed((0..partitions).filter(|&other| other != partition))?;
        let known = self.recorded.raw_offsets(self.routing.topic_id)?;
        let next = match start(partition, &known, others_committed) {
            FirstRead::After(highest) => {
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
                        tracing::warn!(partition, from, lost, "resuming as the operator decided");
                        from
                    }
                    Takeover::Stop(disagreement) => {
                        return Ok(self.partitions.disagrees(partition, &disagreement).into());
                    }
                    Takeover::Begin => return Ok(Task::claim_now().into()),
                };
                tracing::warn!(
                    partition,
                    next,
                    "no committed offset; resuming after the highest raw offset that match has judged. No article is judged twice, but dead letters may be written again"
                );
                self.repeats_below.insert(partition, high);
                next
            }
            FirstRead::Beginning => {
                tracing::warn!(
                    topic = source.topic(),
                    partition,
                    next = low,
                    "a raw partition not seen before; starting at its beginning"
                );
                low
            }
            FirstRead::First => {
                let at = |partition| {
                    let ends = self.surveyor.fetch_watermarks(source.topic(), partition, PATIENCE)?;
                    Ok((partition, source.first_offset(partition, self.bus.start, ends)?))
                };
                let first = (0..partitions).map(at).collect::<Result<BTreeMap<i32, i64>, KafkaError>>()?;
                tracing::info!(?first, "the raw topic has not been read before; starting at input.start");
                let next = first.get(&partition).copied().unwrap_or(low);
                self.first_offsets = first;
                next
            }
            FirstRead::Wait => {
                tracing::debug!(
                    partition,
                    "waiting for the owner of partition 0 to commit the first offsets"
                );
                return Ok(Task::claim_after(self.bus.retry.takeover).into());
            }
        };
        Ok(Advanced::commits_first((), next))
    }

    /// The current number of raw partitions.
    fn raw_partitions(&self, topic: &str) -> Result<i32, KafkaError> {
        let metadata = self.surveyor.fetch_metadata(Some(topic), PATIENCE)?;
        let count = metadata.topics().iter().map(|topic| topic.partitions().len()).max().unwrap_or(0);
        Ok(i32::try_from(count).unwrap_or(i32::MAX))
    }

    fn raw_topic_id(&self) -> Result<TopicId, KafkaError> {
        let id = ids::topic_id(self.surveyor.client(), &self.bus.topics.raw, PATIENCE)?;
        Ok(id.unwrap_or(TopicId::UNKNOWN))
    }

    /// The id of a deleted raw topic of the same name, if this process has read it or match has judged articles from it.
    fn other_topic(&mut self, id: TopicId) -> Result<Option<TopicId>, KafkaError> {
        if id == TopicId::UNKNOWN {
            return Ok(None);
        }
        let mut known = self.recorded.topics()?;
        known.insert(self.routing.topic_id);
        Ok(known.into_iter().find(|known| known.differs_from(id)))
    }

    /// True if this dead letter may already have been written, before the committed offset was lost.
    fn may_repeat(&self, position: &Position) -> bool {
        let Position::Topic { partition, offset, .. } = position else { return false };
        self.repeats_below.get(partition).is_some_and(|below| offset < below)
    }
}

/// The reason for stopping at a recreated topic, and the ways out.
pub(crate) fn recreated(topic: &str, ours: TopicId, known: TopicId) -> String {
    format!(
        "topic {topic} has the id {ours}, but the state was built from a topic with the id {known}: the topic was deleted and created again, so offsets of the old one are meaningless in it; set topics.raw back to the old topic, or start a new generation with the next number in stage.generation, which builds its state from the new topic"
    )
}

impl StageRole for Route {
    type Preparing = Infallible;
    type Running = ();
    type Planned = RoutePlan;

    fn partitions(&self) -> &AssignedPartitions<Infallible, ()> {
        &self.partitions
    }

    fn partitions_mut(&mut self) -> &mut AssignedPartitions<Infallible, ()> {
        &mut self.partitions
    }

    fn revoked(&mut self, partition: i32) {
        self.partitions.revoked(partition);
        self.repeats_below.remove(&partition);
        if partition == 0 {
            self.first_offsets.clear();
        }
    }

    fn claim(&mut self, partition: i32, _: Obstacle, source: &RecordSource) -> Claimed {
        self.look_up(partition, source).unwrap_or_else(|error| match error {
            LookError::Away(error) => {
                tracing::debug!(%error, partition, "takeover failed, retrying");
                Task::claim_after(self.bus.retry.takeover).into()
            }
            foreign => {
                tracing::error!(partition, "stopped: {foreign}");
                Task::Stopped.into()
            }
        })
    }

    fn prepare(&mut self, _: i32, nothing: Infallible, _: &RecordSource) -> Claimed {
        match nothing {}
    }

    fn gather(&mut self, records: &BTreeMap<i32, Vec<Record>>) -> Result<(), String> {
        self.routing.decoder.load_schemas(records.values().flatten())
    }

    fn decode_ahead(&self, waiting: &BTreeMap<i32, Vec<Record>>) {
        self.routing.decode_ahead(waiting);
    }

    fn plan(&mut self, records: BTreeMap<i32, Vec<Record>>) -> Planning<RoutePlan> {
        let (mut held, mut halted, clock) = (Vec::new(), Vec::new(), now());
        let starts: Vec<(i32, i64)> = self.partitions.unpublished_positions().collect();
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
                    self.partitions.hold(partition, FOLLOW_INTERVAL, from);
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
        self.routing.decoder.evict_schemas();
        Planning { planned: RoutePlan { records, held, starts }, next, halted }
    }

    fn outgoing<'a>(&'a self, plan: &'a RoutePlan) -> Vec<Outgoing<'a>> {
        let outgoing = |send: &'a RouteOutput| match send {
            RouteOutput::Routed { partition, key, value, headers, time } => Outgoing {
                topic: &self.bus.topics.routed,
                partition: Some(*partition),
                key: Some(key.into()),
                value: Some(value.into()),
                headers: headers.iter().map(borrowed).collect(),
                time: *time,
            },
            RouteOutput::DeadLetter { letter, record } => {
                self.writer.dead_letter(letter, Original { record, slice: ArticleSlice::WHOLE })
            }
        };
        plan.records.iter().map(outgoing).collect()
    }

    fn apply(&mut self, plan: RoutePlan, _: &CommittedTxn) -> Vec<i32> {
        for send in &plan.records {
            if let RouteOutput::DeadLetter { letter, .. } = send {
                metrics::dead_letters(letter.reason.as_str(), 1);
                metrics::repeated("route", u64::from(self.may_repeat(&letter.position)));
            }
        }
        for &(partition, _) in &plan.starts {
            if partition == 0 {
                self.first_offsets.clear();
            }
            self.accept.spend(partition);
            self.partitions.agrees(partition);
            if let Some(running) = self.partitions.running_mut(partition) {
                running.committed();
            }
        }
        for &(partition, next) in &plan.held {
            self.partitions.hold(partition, FOLLOW_INTERVAL, next);
        }
        plan.held.into_iter().map(|(partition, _)| partition).collect()
    }

    fn upkeep(&mut self) -> Vec<i32> {
        if !self.partitions.is_topic_check_due() {
            return Vec::new();
        }
        match self.raw_topic_id() {
            Ok(id) if id.differs_from(self.routing.topic_id) => {
                tracing::error!("the raw topic was deleted and created again; claiming its partitions again");
                self.out_of_range()
            }
            Ok(_) => Vec::new(),
            Err(error) => {
                tracing::debug!(%error, "topic id unavailable, retrying");
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_without_a_committed_offset_starts_where_nothing_is_lost() {
        let known = BTreeMap::from([(0, 41), (2, 7)]);
        assert_eq!(start(2, &known, true), FirstRead::After(7));
        assert_eq!(start(1, &known, false), FirstRead::Beginning, "others were read, so it is new");
        assert_eq!(start(3, &BTreeMap::new(), true), FirstRead::Beginning, "others have offsets");
        assert_eq!(start(0, &BTreeMap::new(), false), FirstRead::First);
        assert_eq!(start(1, &BTreeMap::new(), false), FirstRead::Wait, "one member chooses for all");
    }

    #[test]
    fn a_recreated_topic_is_refused_and_both_ids_are_named() {
        let (ours, known) = (TopicId::from_halves(1, 1), TopicId::from_halves(2, 2));
        let message = recreated("articles.raw", ours, known);
        for part in ["articles.raw", &ours.to_string(), &known.to_string(), "stage.generation"] {
            assert!(message.contains(part), "{message}");
        }
    }
}
