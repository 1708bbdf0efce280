//! The input: a member of the group. What happens to its assignment comes out as plain values.
//!
//! A partition that is assigned stands still until it is [started](Source::start) at an offset: only its owner knows
//! where, and not before its state is restored.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, ConsumerGroupMetadata, RebalanceProtocol};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers as _, Message, Timestamp};
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientConfig, ClientContext, Offset, Statistics, TopicPartitionList, statistics};

use crate::config::{BatchLimits, StartAt};
use crate::model::EventTime;

use super::clients::{self, PATIENCE};
use super::record::Record;
use super::{faults, ids};

/// What happened to the assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    /// These are ours now, and stand still.
    Assigned(Vec<i32>),
    /// These are ours no longer.
    Revoked(Vec<i32>),
}

/// Records to be decided together.
pub(super) struct Collected {
    /// By partition, in their order.
    pub(super) records: BTreeMap<i32, Vec<Record>>,
    /// Who we were in the group when they were read.
    pub(super) membership: Arc<ConsumerGroupMetadata>,
}

/// Why the input cannot be read on: drop everything and join again.
#[derive(Debug, thiserror::Error)]
#[error("the consumer is finished: {0}")]
pub(super) struct SourceError(KafkaError);

/// The member of the group.
pub(super) struct Source {
    consumer: BaseConsumer<Watcher>,
    topic: String,
    limits: BatchLimits,
    /// Partitions whose records are taken, and the least offset that is.
    flowing: BTreeMap<i32, i64>,
    waiting: BTreeMap<i32, Vec<Record>>,
    count: usize,
    bytes: usize,
    membership: Option<Arc<ConsumerGroupMetadata>>,
    /// A partition whose offset the log does not hold; the library does not say which.
    pub(super) out_of_range: bool,
}

impl Source {
    pub(super) fn join(
        config: &ClientConfig,
        topic: &str,
        limits: BatchLimits,
    ) -> Result<Source, KafkaError> {
        let consumer: BaseConsumer<Watcher> = config.create_with_context(Watcher::default())?;
        consumer.subscribe(&[topic])?;
        Ok(Source {
            consumer,
            topic: topic.to_owned(),
            limits,
            flowing: BTreeMap::new(),
            waiting: BTreeMap::new(),
            count: 0,
            bytes: 0,
            membership: None,
            out_of_range: false,
        })
    }

    pub(super) fn topic(&self) -> &str {
        &self.topic
    }

    /// Waits so long for a first record and then, a little, for more; returns early when the assignment changes.
    pub(super) fn collect(&mut self, patience: Duration) -> Result<Vec<Happened>, SourceError> {
        let mut deadline = Instant::now() + patience;
        while self.count < self.limits.articles && self.bytes < self.limits.bytes {
            let left = clients::left_until(deadline);
            let polled = match self.consumer.poll(left) {
                Some(Ok(message)) => Some(owned(&message)),
                Some(Err(error)) => {
                    self.hear(error)?;
                    None
                }
                None if left.is_zero() => break,
                None => None,
            };
            if let Some((partition, record)) = polled
                && self.take_in(partition, record)
                && self.count == 1
            {
                deadline = Instant::now() + self.limits.linger;
            }
            let happened = self.happened();
            if !happened.is_empty() {
                return Ok(happened);
            }
        }
        faults::point("poll");
        // A poll that must not wait serves a rebalance and returns nothing. Without this look nobody heard of it until the
        // last restore was done.
        Ok(self.happened())
    }

    /// What was read, if there is anything and we are still a member.
    pub(super) fn take(&mut self) -> Option<Collected> {
        if self.count == 0 {
            return None;
        }
        let membership = self.membership()?;
        (self.count, self.bytes) = (0, 0);
        Some(Collected { records: std::mem::take(&mut self.waiting), membership })
    }

    /// Who we are in the group, as long as the assignment stays what it is.
    ///
    /// Nothing while the membership is lost: the broker would accept offsets from somebody who is in no group, over
    /// those of the group.
    pub(super) fn membership(&mut self) -> Option<Arc<ConsumerGroupMetadata>> {
        if self.membership.is_none() || faults::mutant("late-membership") {
            let membership = self.consumer.group_metadata();
            if self.consumer.assignment_lost() && !faults::mutant("late-membership") {
                return None;
            }
            self.membership = membership.map(Arc::new);
        }
        self.membership.clone()
    }

    /// Forgets who we are, to ask again: the broker did not know us under that.
    pub(super) fn refresh_membership(&mut self) {
        self.membership = None;
    }

    /// Records of this partition are taken from this offset on.
    pub(super) fn start(&mut self, partition: i32, offset: i64) -> Result<(), KafkaError> {
        self.seek(&BTreeMap::from([(partition, offset)]))?;
        self.consumer.resume(&self.list([partition]))?;
        self.flowing.insert(partition, offset);
        Ok(())
    }

    /// No more records of this partition are taken, and those that wait are given up.
    pub(super) fn halt(&mut self, partition: i32) {
        self.give_up(partition);
        if self.flowing.remove(&partition).is_some()
            && let Err(error) = self.consumer.pause(&self.list([partition]))
        {
            // What it delivers all the same is not taken.
            tracing::debug!(%error, partition, "pause");
        }
    }

    /// Reads from here again: what was collected did not commit.
    pub(super) fn rewind(&mut self, to: &BTreeMap<i32, i64>) -> Result<(), KafkaError> {
        if faults::mutant("no-seek") {
            return Ok(());
        }
        let waiting: Vec<i32> = self.waiting.keys().copied().collect();
        waiting.into_iter().for_each(|partition| self.give_up(partition));
        self.seek(to)?;
        self.flowing.extend(to.iter().map(|(&partition, &offset)| (partition, offset)));
        Ok(())
    }

    fn seek(&self, to: &BTreeMap<i32, i64>) -> Result<(), KafkaError> {
        let mut list = TopicPartitionList::with_capacity(to.len());
        for (&partition, &offset) in to {
            list.add_partition_offset(&self.topic, partition, Offset::Offset(offset))?;
        }
        let done = self.consumer.seek_partitions(list, PATIENCE)?;
        done.elements().iter().try_for_each(|element| element.error())
    }

    /// The group's offset of a partition. Waits while a predecessor's transaction is undecided.
    pub(super) fn committed(&self, partition: i32) -> Result<Option<i64>, KafkaError> {
        let answer = self.consumer.committed_offsets(self.list([partition]), PATIENCE)?;
        clients::offset_in(&answer, &self.topic, partition)
    }

    /// Whether the group has an offset of any of these partitions.
    pub(super) fn any_committed(&self, partitions: impl Iterator<Item = i32>) -> Result<bool, KafkaError> {
        let list = self.list(partitions);
        if list.count() == 0 {
            return Ok(false);
        }
        let answer = self.consumer.committed_offsets(list, PATIENCE)?;
        let elements = answer.elements();
        elements.iter().try_for_each(|element| element.error())?;
        Ok(elements.iter().any(|element| matches!(element.offset(), Offset::Offset(_))))
    }

    /// Where a partition that nobody has read yet is read from; its log goes from `low` to `high`.
    pub(super) fn first_offset(
        &self,
        partition: i32,
        start: StartAt,
        (low, high): (i64, i64),
    ) -> Result<i64, KafkaError> {
        Ok(match start {
            StartAt::Earliest => low,
            StartAt::Latest => high,
            StartAt::Time(time) => {
                clients::offset_at(&self.consumer, &self.topic, partition, time)?.unwrap_or(high)
            }
        })
    }

    /// By partition, records that wait to be read, as far as it is known.
    pub(super) fn lags(&self) -> BTreeMap<i32, i64> {
        let known = self.consumer.context().known();
        let ours = known.lags.iter().filter(|(partition, _)| self.flowing.contains_key(partition));
        ours.map(|(&partition, &lag)| (partition, lag)).collect()
    }

    /// Whether no broker answers.
    pub(super) fn is_away(&self) -> bool {
        self.consumer.context().known().away
    }

    /// Leaves the group.
    pub(super) fn leave(&mut self, deadline: Instant) {
        self.consumer.unsubscribe();
        while Instant::now() < deadline {
            if self.consumer.assignment().is_ok_and(|list| list.count() == 0) {
                return;
            }
            drop(self.consumer.poll(Duration::from_millis(20)));
        }
    }

    fn take_in(&mut self, partition: i32, record: Record) -> bool {
        // Strangers: from before a seek, a pause, or an assignment.
        match self.flowing.get_mut(&partition) {
            Some(least) if record.offset >= *least => *least = record.offset + 1,
            _ => return false,
        }
        self.count += 1;
        self.bytes += record.bytes();
        self.waiting.entry(partition).or_default().push(record);
        true
    }

    fn give_up(&mut self, partition: i32) {
        for record in self.waiting.remove(&partition).unwrap_or_default() {
            self.count -= 1;
            self.bytes -= record.bytes();
        }
    }

    fn happened(&mut self) -> Vec<Happened> {
        let happened = std::mem::take(&mut *self.consumer.context().happened());
        for event in &happened {
            self.membership = None;
            if let Happened::Revoked(partitions) = event {
                for partition in partitions {
                    self.give_up(*partition);
                    self.flowing.remove(partition);
                }
            }
        }
        happened
    }

    fn hear(&mut self, error: KafkaError) -> Result<(), SourceError> {
        match error {
            KafkaError::MessageConsumptionFatal(_) => return Err(SourceError(error)),
            KafkaError::MessageConsumption(
                RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange,
            ) => self.out_of_range = true,
            error => self.consumer.context().say_once(&error),
        }
        Ok(())
    }

    fn list(&self, partitions: impl IntoIterator<Item = i32>) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for partition in partitions {
            list.add_partition(&self.topic, partition);
        }
        list
    }
}

pub(super) fn owned(message: &BorrowedMessage<'_>) -> (i32, Record) {
    let headers = message.headers().map_or_else(Vec::new, |headers| {
        let owned = |header: rdkafka::message::Header<'_, &[u8]>| {
            (header.key.to_owned(), header.value.map(<[u8]>::to_vec))
        };
        headers.iter().map(owned).collect()
    });
    let record = Record {
        offset: message.offset(),
        leader_epoch: ids::leader_epoch(message),
        time: message.timestamp().to_millis().map(EventTime::from_millis),
        log_time: match message.timestamp() {
            Timestamp::LogAppendTime(millis) => Some(EventTime::from_millis(millis)),
            Timestamp::CreateTime(_) | Timestamp::NotAvailable => None,
        },
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers,
    };
    (message.partition(), record)
}

fn topic_of(list: &TopicPartitionList, partition: i32) -> String {
    let elements = list.elements();
    let element = elements.iter().find(|element| element.partition() == partition);
    element.map(|element| element.topic().to_owned()).unwrap_or_default()
}

/// Runs inside `poll`, when no transaction is open: so there is nothing to undo, and it has only to take notes.
#[derive(Default)]
pub(super) struct Watcher {
    happened: Mutex<Vec<Happened>>,
    said: Mutex<BTreeMap<String, Instant>>,
    known: Mutex<Known>,
}

/// What the library's statistics say.
#[derive(Default)]
struct Known {
    lags: BTreeMap<i32, i64>,
    away: bool,
}

impl Watcher {
    fn happened(&self) -> std::sync::MutexGuard<'_, Vec<Happened>> {
        self.happened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A broker that is away is worth a line in five minutes, not one a second.
    fn say_once(&self, error: &KafkaError) {
        const AGAIN: Duration = Duration::from_secs(300);
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.retain(|_, when| when.elapsed() < AGAIN);
        if said.insert(error.to_string(), Instant::now()).is_none() {
            tracing::warn!(%error, "reading; it is tried again");
        }
    }
}

impl ClientContext for Watcher {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        clients::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, _reason: &str) {
        self.say_once(&error);
    }

    fn stats(&self, statistics: Statistics) {
        let mut known = self.known();
        known.away = !statistics.brokers.values().any(|broker| broker.state == "UP");
        let partitions = statistics.topics.values().flat_map(|topic| topic.partitions.values());
        // Readers of committed records get as far as the last stable offset. Below nought nothing is known.
        let lag = |of: &statistics::Partition| {
            (of.ls_offset >= 0 && of.app_offset >= 0).then(|| of.ls_offset - of.app_offset)
        };
        known.lags = partitions.filter_map(|of| Some((of.partition, lag(of)?.max(0)))).collect();
    }
}

impl ConsumerContext for Watcher {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, event: RDKafkaRespErr, list: &mut TopicPartitionList) {
        let cooperative = matches!(consumer.rebalance_protocol(), RebalanceProtocol::Cooperative);
        let partitions: Vec<i32> = list.elements().iter().map(|element| element.partition()).collect();
        let (happened, result) = match event {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => {
                // At the first record there is, and standing still: the owner says where when it knows. It must be a
                // number. The library looks a name such as "end" up, and if the partition is paused meanwhile, looks
                // again half a second later and goes there, whatever place it has been sent to by then.
                let mut away = false;
                let result = partitions.iter().try_for_each(|&partition| {
                    let topic = topic_of(list, partition);
                    let found = (!away).then(|| consumer.fetch_watermarks(&topic, partition, PATIENCE));
                    let low = found.and_then(Result::ok).map(|(low, _)| low);
                    away |= low.is_none();
                    list.set_partition_offset(&topic, partition, Offset::Offset(low.unwrap_or(0)))
                });
                let result = result.and_then(|()| match cooperative {
                    true => consumer.incremental_assign(list),
                    false => consumer.assign(list),
                });
                (Happened::Assigned(partitions), result.and_then(|()| consumer.pause(list)))
            }
            _ => {
                faults::point("revoke");
                let result = match cooperative {
                    true => consumer.incremental_unassign(list),
                    false => consumer.unassign(),
                };
                (Happened::Revoked(partitions), result)
            }
        };
        if let Err(error) = result {
            tracing::error!(%error, ?happened, "the assignment could not be taken up");
        }
        self.happened().push(happened);
    }
}
