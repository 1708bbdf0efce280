//! The generation before this one: how far it has come, and whether it has ended.
//!
//! What changes fingerprints needs state made anew. A new generation has groups, internal topics and state of its own. It
//! reads the raw topic from the beginning and says nothing about what the one before it has said: all that lies below
//! that one's offsets. It never overtakes it. Once the one before has ended, and all that it routed is judged, its
//! offsets are final: from there on the new one speaks.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

use crate::config::{Bus, Mode};

use super::clients::{self, PATIENCE, Quiet, Role};
use super::record::Record;

/// How often it is asked while it goes on, and how long a partition waits for it until it is looked at again.
pub(super) const OFTEN: Duration = Duration::from_millis(500);

/// The generation before this one.
pub(super) struct Predecessor {
    topic: String,
    /// Asks for the offsets of who reads the raw topic.
    reads: BaseConsumer<Quiet>,
    /// Asks for those of who judges what was routed, where that is somebody else.
    judges: Option<(BaseConsumer<Quiet>, String)>,
    group: String,
    known: BTreeMap<i32, Said>,
    ended: bool,
    asked: Option<Instant>,
    told: bool,
}

/// What the one before has said about a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    /// All below this.
    until: i64,
    when: Instant,
    /// And nothing will follow.
    last: bool,
}

/// Which of a partition's records are taken now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Admitted {
    /// Below this nothing is said.
    pub(super) silent_below: i64,
    /// Where it goes on when it has waited; nothing where it need not.
    pub(super) waits: Option<i64>,
}

/// Leaves the records that are taken now. Silent ones and others never come together.
pub(super) fn admit(
    predecessor: &mut Option<Predecessor>,
    partition: i32,
    records: &mut Vec<Record>,
) -> Admitted {
    let all = Admitted { silent_below: i64::MIN, waits: None };
    let Some(predecessor) = predecessor.as_mut().filter(|_| !records.is_empty()) else { return all };
    let (silent_below, count) = predecessor.admitted(partition, records).unwrap_or_else(|error| {
        tracing::debug!(%error, partition, "asking the generation before; it is tried again");
        (i64::MIN, 0)
    });
    let waits = records.get(count).map(|record| record.offset);
    records.truncate(count);
    Admitted { silent_below, waits }
}

impl Predecessor {
    /// Nothing in the first generation.
    pub(super) fn find(bus: &Bus, name: &str) -> Result<Option<Predecessor>, KafkaError> {
        let Some(before) = bus.generation.checked_sub(1).filter(|&before| before > 0) else {
            return Ok(None);
        };
        let (reader, judge) = match bus.mode {
            Mode::Direct => (Role::Direct, None),
            Mode::Routed => (Role::Route, Some(Role::Match)),
        };
        let ask = |role| {
            let mut config = clients::surveyor(bus, &format!("{name}-predecessor"));
            // An offset in a transaction that is not decided is waited for.
            config
                .set("group.id", clients::group_of(bus, before, role))
                .set("isolation.level", "read_committed");
            config.set("enable.partition.eof", "true");
            config.create_with_context(Quiet)
        };
        let judges =
            judge.map(|role| Ok::<_, KafkaError>((ask(role)?, bus.topics.routed_of(before)))).transpose()?;
        Ok(Some(Predecessor {
            topic: bus.topics.raw.clone(),
            reads: ask(reader)?,
            judges,
            group: clients::group_of(bus, before, reader),
            known: BTreeMap::new(),
            ended: false,
            asked: None,
            told: false,
        }))
    }

    /// Below which offset nothing is said, and how many of these records are taken, from the first.
    fn admitted(&mut self, partition: i32, records: &[Record]) -> Result<(i64, usize), KafkaError> {
        let said = self.said(partition)?;
        let silent = records.partition_point(|record| record.offset < said.until);
        let all_silent = silent == records.len();
        let count = if all_silent || silent == 0 && said.last { records.len() } else { silent };
        Ok((said.until, count))
    }

    fn said(&mut self, partition: i32) -> Result<Said, KafkaError> {
        if let Some(said) = self.known.get(&partition)
            && (said.last || said.when.elapsed() < OFTEN)
        {
            return Ok(*said);
        }
        // In this order: whoever has ended commits no more.
        let last = self.has_ended()?;
        let mut list = TopicPartitionList::new();
        list.add_partition(&self.topic, partition);
        let answer = self.reads.committed_offsets(list, PATIENCE)?;
        let until = clients::offset_in(&answer, &self.topic, partition)?.unwrap_or(0);
        let said = Said { until, when: Instant::now(), last };
        if last {
            tracing::info!(partition, until, "the generation before has ended; from here on this one speaks");
        }
        self.known.insert(partition, said);
        Ok(said)
    }

    fn has_ended(&mut self) -> Result<bool, KafkaError> {
        if self.ended || self.asked.is_some_and(|asked| asked.elapsed() < OFTEN) {
            return Ok(self.ended);
        }
        self.asked = Some(Instant::now());
        let groups = self.reads.fetch_group_list(Some(&self.group), PATIENCE)?;
        let alive = groups.groups().iter().any(|group| !group.members().is_empty());
        if alive {
            return Ok(false);
        }
        if let Some((judges, topic)) = &self.judges
            && let Some(partition) = unjudged(judges, topic)?
        {
            if !std::mem::replace(&mut self.told, true) {
                tracing::warn!(
                    topic,
                    partition,
                    "the generation before has ended, but has routed articles that it has not judged; start it once more with --role match until it has"
                );
            }
            return Ok(false);
        }
        self.ended = true;
        Ok(true)
    }
}

/// A partition with records behind the group's offset, if there is one.
fn unjudged(judges: &BaseConsumer<Quiet>, topic: &str) -> Result<Option<i32>, KafkaError> {
    let metadata = judges.fetch_metadata(Some(topic), PATIENCE)?;
    let partitions: Vec<i32> = metadata
        .topics()
        .iter()
        .flat_map(|topic| topic.partitions().iter().map(rdkafka::metadata::MetadataPartition::id))
        .collect();
    if partitions.is_empty() {
        return Ok(None);
    }
    let mut list = TopicPartitionList::new();
    for &partition in &partitions {
        list.add_partition(topic, partition);
    }
    let committed = judges.committed_offsets(list, PATIENCE)?;
    let mut list = TopicPartitionList::new();
    for &partition in &partitions {
        let (low, _) = judges.fetch_watermarks(topic, partition, PATIENCE)?;
        let next = clients::offset_in(&committed, topic, partition)?.unwrap_or(low).max(low);
        list.add_partition_offset(topic, partition, Offset::Offset(next))?;
    }
    judges.assign(&list)?;
    let mut ends = 0;
    let deadline = Instant::now() + PATIENCE;
    let found = loop {
        match judges.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => break Some(message.partition()),
            Some(Err(KafkaError::PartitionEOF(_))) => ends += 1,
            Some(Err(error)) => return Err(error),
            None => {}
        }
        if ends == partitions.len() {
            break None;
        }
        if Instant::now() > deadline {
            // Not known is not ended.
            break Some(partitions[0]);
        }
    };
    judges.assign(&TopicPartitionList::new())?;
    Ok(found)
}
