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
use samestory_engine::model::EventTime;

use super::faults;
use super::record::{Fate, Record};
use super::unreadable::{Fetching, Jam, ReadErrors, is_read_error};
use crate::kafka::admin::ids;
use crate::kafka::client as clients;
use crate::kafka::client::PATIENCE;

/// What happened to the assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    /// These are ours now, and stand still.
    Assigned(Vec<i32>),
    /// These are ours no longer.
    Revoked(Vec<i32>),
}

/// Records to be decided together.
pub(crate) struct Collected {
    /// By partition, in their order.
    pub(crate) records: BTreeMap<i32, Vec<Record>>,
    /// Who we were in the group when they were read.
    pub(crate) membership: Arc<ConsumerGroupMetadata>,
}

/// A rebalance follows a lost assignment within a poll or two. Without one for so long the consumer is replaced.
const LOST: Duration = Duration::from_secs(60);

/// Why the input cannot be read on: drop everything and join again.
#[derive(Debug, thiserror::Error)]
#[error("the consumer is finished: {0}")]
pub(crate) struct SourceError(KafkaError);

/// The member of the group.
pub(crate) struct Source {
    consumer: BaseConsumer<Watcher>,
    topic: String,
    limits: BatchLimits,
    /// Partitions whose records are taken, and the least offset that is.
    flowing: BTreeMap<i32, i64>,
    waiting: BTreeMap<i32, Vec<Record>>,
    count: usize,
    bytes: usize,
    membership: Option<Arc<ConsumerGroupMetadata>>,
    /// Since when the assignment is lost and no rebalance has followed.
    lost_since: Option<Instant>,
    /// A partition whose offset the log does not hold; the library does not say which.
    pub(crate) out_of_range: bool,
    /// By partition, the offset up to which records are committed, as far as this member knows.
    done: BTreeMap<i32, i64>,
    /// Longer values are not copied: whatever they say, they are too large.
    longest: usize,
    read_errors: ReadErrors,
    /// How often a read error was reported since it was last asked for.
    errors_heard: u64,
}

impl Source {
    pub(crate) fn join(
        config: &ClientConfig,
        topic: &str,
        limits: BatchLimits,
        longest: usize,
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
            lost_since: None,
            out_of_range: false,
            done: BTreeMap::new(),
            longest,
            read_errors: ReadErrors::default(),
            errors_heard: 0,
        })
    }

    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }

    /// Waits so long for a first record and then, a little, for more; returns early when the assignment changes.
    pub(crate) fn collect(&mut self, patience: Duration) -> Result<Vec<Happened>, SourceError> {
        let mut deadline = Instant::now() + patience;
        if self.lost_since.is_some_and(|since| since.elapsed() > LOST) {
            return Err(SourceError(KafkaError::MessageConsumption(RDKafkaErrorCode::AssignmentLost)));
        }
        if self.is_full() && faults::mutant("no-poll-when-full") {
            return Ok(Vec::new());
        }
        // At least one poll, also while the batch is full: only `poll` delivers rebalances, and a consumer that does not
        // poll leaves the group.
        loop {
            let left = if self.is_full() { Duration::ZERO } else { clients::left_until(deadline) };
            let polled = match self.consumer.poll(left) {
                Some(Ok(message)) => Some(owned(&message, self.longest)),
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
            if self.is_full() {
                faults::point("full-batch");
                break;
            }
        }
        faults::point("poll");
        // A poll that must not wait serves a rebalance and returns nothing. Without this look nobody heard of it until the
        // last restore was done.
        Ok(self.happened())
    }

    fn is_full(&self) -> bool {
        self.count >= self.limits.articles || self.bytes >= self.limits.bytes
    }

    /// What was read, if there is anything and we are still a member.
    pub(crate) fn take(&mut self) -> Option<Collected> {
        if self.count == 0 {
            return None;
        }
        let Some(membership) = self.membership() else {
            if !faults::mutant("no-poll-when-full") {
                self.give_all_up();
            }
            return None;
        };
        (self.count, self.bytes) = (0, 0);
        Some(Collected { records: std::mem::take(&mut self.waiting), membership })
    }

    /// Gives records back that were taken and are not decided yet. They come out again before any others.
    pub(crate) fn put_back(&mut self, records: BTreeMap<i32, Vec<Record>>) {
        for (partition, records) in records {
            self.count += records.len();
            self.bytes += records.iter().map(Record::bytes).sum::<usize>();
            self.waiting.entry(partition).or_default().splice(..0, records);
        }
    }

    /// Who we are in the group, as long as the assignment stays what it is.
    ///
    /// Nothing while the membership is lost: the broker would accept offsets from somebody who is in no group, over
    /// those of the group.
    pub(crate) fn membership(&mut self) -> Option<Arc<ConsumerGroupMetadata>> {
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
    pub(crate) fn refresh_membership(&mut self) {
        self.membership = None;
    }

    /// Records of this partition are taken from this offset on.
    pub(crate) fn start(&mut self, partition: i32, offset: i64) -> Result<(), KafkaError> {
        self.seek(&BTreeMap::from([(partition, offset)]))?;
        self.consumer.resume(&self.list([partition]))?;
        self.flowing.insert(partition, offset);
        self.done.insert(partition, offset);
        Ok(())
    }

    /// Records before these offsets are committed.
    pub(crate) fn committed_to(&mut self, next: &BTreeMap<i32, i64>) {
        for (partition, done) in &mut self.done {
            *done = next.get(partition).copied().unwrap_or(*done);
        }
    }

    /// Partitions that cannot be read on, and the error that was reported last.
    pub(crate) fn jams(&mut self) -> Vec<Jam> {
        let flowing = &self.flowing;
        let fetching: BTreeMap<i32, Fetching> = {
            let known = self.consumer.context().known();
            let ours = known.fetching.iter().filter(|(partition, _)| flowing.contains_key(partition));
            ours.map(|(&partition, &of)| (partition, of)).collect()
        };
        let mut jams = self.read_errors.jams(&fetching, Instant::now());
        jams.retain(|jam| !self.waiting.contains_key(&jam.partition));
        jams
    }

    /// The read error that was reported last.
    pub(crate) fn why_unread(&self) -> &str {
        self.read_errors.why()
    }

    /// How many read errors were reported since this was last asked.
    pub(crate) fn take_errors_heard(&mut self) -> u64 {
        std::mem::take(&mut self.errors_heard)
    }

    /// Reads a partition on behind a batch that cannot be read. A record stands for the batch, and its last offset.
    pub(crate) fn skip(&mut self, jam: Jam, next: i64) -> Result<(), KafkaError> {
        let Jam { partition, offset: first, .. } = jam;
        self.seek(&BTreeMap::from([(partition, next)]))?;
        let why = self.read_errors.why().to_owned();
        let fate = Some(Fate::Unreadable { first, why });
        self.take_in(partition, Record { offset: next - 1, fate, ..Record::default() });
        Ok(())
    }

    /// No more records of this partition are taken, and those that wait are given up.
    pub(crate) fn halt(&mut self, partition: i32) {
        self.give_up(partition);
        if self.flowing.remove(&partition).is_some()
            && let Err(error) = self.consumer.pause(&self.list([partition]))
        {
            // What it delivers all the same is not taken.
            tracing::debug!(%error, partition, "pause");
        }
    }

    /// Reads from here again: what was collected did not commit.
    pub(crate) fn rewind(&mut self, to: &BTreeMap<i32, i64>) -> Result<(), KafkaError> {
        if faults::mutant("no-seek") {
            return Ok(());
        }
        let mut to = to.clone();
        for (partition, records) in std::mem::take(&mut self.waiting) {
            // What was put back is behind what is read again, or in another partition.
            if let (Some(first), false) = (records.first(), to.contains_key(&partition)) {
                to.insert(partition, first.offset);
            }
        }
        (self.count, self.bytes) = (0, 0);
        self.seek(&to)?;
        self.flowing.extend(to);
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
    pub(crate) fn committed(&self, partition: i32) -> Result<Option<i64>, KafkaError> {
        let answer = self.consumer.committed_offsets(self.list([partition]), PATIENCE)?;
        clients::offset_in(&answer, &self.topic, partition)
    }

    /// Whether the group has an offset of any of these partitions.
    pub(crate) fn any_committed(&self, partitions: impl Iterator<Item = i32>) -> Result<bool, KafkaError> {
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
    pub(crate) fn first_offset(
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

    /// By partition, records that are not committed yet, as far as it is known: also while they cannot be read.
    pub(crate) fn lags(&self) -> BTreeMap<i32, i64> {
        let known = self.consumer.context().known();
        let lag = |(&partition, &done): (&i32, &i64)| {
            let Fetching { end, polled, .. } = *known.fetching.get(&partition)?;
            // Markers and aborted records take offsets too. Where all that was taken is committed, those that were polled
            // past are no lag.
            let all_committed = self.flowing.get(&partition).is_some_and(|&least| least <= done);
            let passed = if all_committed { done.max(polled) } else { done };
            (end >= 0).then(|| (partition, (end - passed).max(0)))
        };
        self.done.iter().filter_map(lag).collect()
    }

    /// Whether no broker answers.
    pub(crate) fn is_away(&self) -> bool {
        self.consumer.context().known().away
    }

    /// Leaves the group.
    pub(crate) fn leave(&mut self, deadline: Instant) {
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
        if record.fate.is_none() {
            self.read_errors.read(partition);
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

    /// The assignment that the batch was read in is lost, so nobody may commit it. Nothing more is taken until the
    /// partitions are assigned again: the next record would leave a gap.
    fn give_all_up(&mut self) {
        tracing::warn!(topic = self.topic, records = self.count, "assignment lost; dropping the batch");
        self.waiting.clear();
        (self.count, self.bytes) = (0, 0);
        self.flowing.clear();
        self.lost_since.get_or_insert_with(Instant::now);
    }

    fn happened(&mut self) -> Vec<Happened> {
        let happened = std::mem::take(&mut *self.consumer.context().happened());
        for event in &happened {
            self.membership = None;
            self.lost_since = None;
            if let Happened::Revoked(partitions) = event {
                for partition in partitions {
                    self.give_up(*partition);
                    self.flowing.remove(partition);
                    self.done.remove(partition);
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
            error => {
                if is_read_error(&error) {
                    self.errors_heard += 1;
                    self.read_errors.heard(&error, Instant::now());
                }
                self.consumer.context().say_once(&error);
            }
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

/// Copies a message. A value longer than `longest` is not copied: a compression bomb of a gigabyte would take another one.
pub(crate) fn owned(message: &BorrowedMessage<'_>, longest: usize) -> (i32, Record) {
    let headers = message.headers().map_or_else(Vec::new, |headers| {
        let owned = |header: rdkafka::message::Header<'_, &[u8]>| {
            (header.key.to_owned(), header.value.map(<[u8]>::to_vec))
        };
        headers.iter().map(owned).collect()
    });
    let bytes = message.payload().map_or(0, <[u8]>::len);
    let record = Record {
        offset: message.offset(),
        leader_epoch: ids::leader_epoch(message),
        time: message.timestamp().to_millis().map(EventTime::from_millis),
        log_time: match message.timestamp() {
            Timestamp::LogAppendTime(millis) => Some(EventTime::from_millis(millis)),
            Timestamp::CreateTime(_) | Timestamp::NotAvailable => None,
        },
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().filter(|_| bytes <= longest).map(<[u8]>::to_vec),
        headers,
        headers_dropped: 0,
        fate: (bytes > longest).then_some(Fate::Oversized { bytes, most: longest }),
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
pub(crate) struct Watcher {
    happened: Mutex<Vec<Happened>>,
    said: Mutex<BTreeMap<String, Instant>>,
    known: Mutex<Known>,
}

/// What the library's statistics say.
#[derive(Default)]
struct Known {
    fetching: BTreeMap<i32, Fetching>,
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
        // Readers of committed records get as far as the last stable offset. Below zero nothing is known.
        let fetching = |of: &statistics::Partition| Fetching {
            next: of.next_offset,
            polled: of.app_offset,
            end: of.ls_offset,
        };
        known.fetching = partitions.map(|of| (of.partition, fetching(of))).collect();
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
