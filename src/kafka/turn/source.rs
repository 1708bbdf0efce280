//! The worker's input: a member of the consumer group, which collects batches and reports assignment changes as values.
//!
//! An assigned partition stays paused until it is [started](RecordSource::start) at an offset: only the role knows the
//! offset, and only after it has restored the partition's state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerGroupMetadata};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers as _, Message, Timestamp};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::config::{BatchLimits, StartAt};
use samestory_engine::model::EventTime;

use super::record::{Fate, Record};
use super::unreadable::{Fetching, Jam, ReadErrors, is_read_error};
pub(crate) use super::watcher::AssignmentChange;
use super::watcher::Watcher;
use crate::kafka::admin::ids;
use crate::kafka::client as clients;
use crate::kafka::client::PATIENCE;
use crate::kafka::faults::{FAULTS, Faults, Mutant, Point};

/// A batch to plan.
pub(crate) struct Collected {
    /// By partition, in offset order.
    pub(crate) records: BTreeMap<i32, Vec<Record>>,
    /// The group membership under which the records were read.
    pub(crate) membership: Arc<ConsumerGroupMetadata>,
}

/// Takes records up to the limits: of each partition its share, and at least one.
fn first_batch(waiting: &mut BTreeMap<i32, Vec<Record>>, limits: &BatchLimits) -> BTreeMap<i32, Vec<Record>> {
    let all: usize = waiting.values().map(Vec::len).sum();
    let all_bytes: usize = waiting.values().flatten().map(Record::bytes).sum();
    if all <= limits.articles && all_bytes <= limits.bytes {
        return std::mem::take(waiting);
    }
    let mut batch = BTreeMap::new();
    for (&partition, records) in waiting.iter_mut() {
        let (most, mut room) = (
            (limits.articles.saturating_mul(records.len())).div_ceil(all.max(1)),
            limits.bytes.saturating_mul(records.iter().map(Record::bytes).sum::<usize>()) / all_bytes.max(1),
        );
        let fits = |record: &&Record| {
            let bytes = record.bytes();
            let fits = bytes <= room;
            room = room.saturating_sub(bytes);
            fits
        };
        let taken = records.iter().take(most).take_while(fits).count().max(1).min(records.len());
        let rest = records.split_off(taken);
        batch.insert(partition, std::mem::replace(records, rest));
    }
    waiting.retain(|_, records| !records.is_empty());
    batch
}

/// A rebalance follows a lost assignment within a poll or two. If none has come after this time, the worker restarts.
const LOST: Duration = Duration::from_secs(60);

/// The consumer failed for good: drop everything and join again.
#[derive(Debug, thiserror::Error)]
#[error("the consumer failed: {0}")]
pub(crate) struct RecordSourceError(KafkaError);

/// A consumer group member.
pub(crate) struct RecordSource {
    consumer: BaseConsumer<Watcher>,
    topic: String,
    limits: BatchLimits,
    /// Started partitions, each with the lowest offset that is still accepted.
    flowing: BTreeMap<i32, i64>,
    waiting: BTreeMap<i32, Vec<Record>>,
    count: usize,
    bytes: usize,
    membership: Option<Arc<ConsumerGroupMetadata>>,
    /// When the assignment was lost, until a rebalance follows.
    lost_since: Option<Instant>,
    /// Some partition reads at an offset that the log does not hold; librdkafka does not say which.
    pub(crate) out_of_range: bool,
    /// By partition, the committed offset, as far as this member knows.
    done: BTreeMap<i32, i64>,
    /// Longer values are not copied: they become dead letters whatever they contain.
    longest: usize,
    read_errors: ReadErrors,
    /// Read errors since [`RecordSource::take_error_count`].
    error_count: u64,
    /// True if an operator has paused the role, so that no partition is fetched.
    held: bool,
}

impl RecordSource {
    pub(crate) fn join(
        config: &ClientConfig,
        topic: &str,
        limits: BatchLimits,
        longest: usize,
    ) -> Result<RecordSource, KafkaError> {
        let consumer: BaseConsumer<Watcher> = config.create_with_context(Watcher::default())?;
        consumer.subscribe(&[topic])?;
        Ok(RecordSource {
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
            error_count: 0,
            held: false,
        })
    }

    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }

    /// Waits up to `patience` for a first record, then for more until the batch is full or has lingered. Returns early
    /// when the assignment changes.
    pub(crate) fn collect(&mut self, patience: Duration) -> Result<Vec<AssignmentChange>, RecordSourceError> {
        // What waits already has waited for a turn.
        let mut deadline = Instant::now() + if self.count > 0 { Duration::ZERO } else { patience };
        if self.lost_since.is_some_and(|since| since.elapsed() > LOST) {
            return Err(RecordSourceError(KafkaError::MessageConsumption(RDKafkaErrorCode::AssignmentLost)));
        }
        if self.is_full() && FAULTS.has(Mutant::NoPollWhenFull) {
            return Ok(Vec::new());
        }
        // At least one poll, even if the batch is full: only `poll` delivers rebalances, and a consumer that does not
        // poll is removed from the group.
        loop {
            let left = if self.has_batch() { Duration::ZERO } else { clients::left_until(deadline) };
            let polled = match self.consumer.poll(left) {
                Some(Ok(message)) => Some(owned(&message, self.longest)),
                Some(Err(error)) => {
                    self.note_error(error)?;
                    None
                }
                None if left.is_zero() => break,
                None => None,
            };
            if let Some((partition, record)) = polled
                && self.accept(partition, record)
                && self.count == 1
            {
                deadline = Instant::now() + self.limits.linger;
            }
            let changes = self.take_changes();
            if !changes.is_empty() {
                return Ok(changes);
            }
            if self.is_full() {
                FAULTS.reach(Point::FullBatch);
                break;
            }
        }
        FAULTS.reach(Point::Poll);
        // A non-blocking poll can serve a rebalance and return nothing. Without this check the rebalance went unnoticed
        // until the last restore was done.
        Ok(self.take_changes())
    }

    fn has_batch(&self) -> bool {
        self.count >= self.limits.articles || self.bytes >= self.limits.bytes
    }

    /// True if a batch and the one after it have been collected.
    fn is_full(&self) -> bool {
        self.count >= self.limits.articles.saturating_mul(2)
            || self.bytes >= self.limits.bytes.saturating_mul(2)
    }

    /// The records that follow the batch that was taken last.
    pub(crate) fn waiting(&self) -> &BTreeMap<i32, Vec<Record>> {
        &self.waiting
    }

    /// The next batch, if there is one and the membership still holds.
    pub(crate) fn take(&mut self) -> Option<Collected> {
        if self.count == 0 {
            return None;
        }
        let Some(membership) = self.membership() else {
            if !FAULTS.has(Mutant::NoPollWhenFull) {
                self.drop_batch();
            }
            return None;
        };
        let records = first_batch(&mut self.waiting, &self.limits);
        self.count -= records.values().map(Vec::len).sum::<usize>();
        self.bytes -= records.values().flatten().map(Record::bytes).sum::<usize>();
        Some(Collected { records, membership })
    }

    /// Puts back records that were taken but not planned. The next batch begins with them.
    pub(crate) fn put_back(&mut self, records: BTreeMap<i32, Vec<Record>>) {
        for (partition, records) in records {
            self.count += records.len();
            self.bytes += records.iter().map(Record::bytes).sum::<usize>();
            self.waiting.entry(partition).or_default().splice(..0, records);
        }
    }

    /// The group membership to commit under. It is cached until the assignment changes.
    ///
    /// `None` while the membership is lost: the broker accepts offsets from a client without a membership, and they
    /// would overwrite the group's.
    pub(crate) fn membership(&mut self) -> Option<Arc<ConsumerGroupMetadata>> {
        if self.membership.is_none() || FAULTS.has(Mutant::LateMembership) {
            let membership = self.consumer.group_metadata();
            if self.consumer.assignment_lost() && !FAULTS.has(Mutant::LateMembership) {
                return None;
            }
            self.membership = membership.map(Arc::new);
        }
        self.membership.clone()
    }

    /// The membership to commit a batch under: the one that it was read in, and not that of the moment.
    pub(crate) fn membership_for_commit(
        &mut self,
        captured: Arc<ConsumerGroupMetadata>,
    ) -> Arc<ConsumerGroupMetadata> {
        match FAULTS.has(Mutant::LateMembership) {
            true => self.membership().unwrap_or(captured),
            false => captured,
        }
    }

    /// Drops the cached membership, because the broker may have refused it.
    pub(crate) fn refresh_membership(&mut self) {
        self.membership = None;
    }

    /// Starts reading an assigned partition at an offset.
    pub(crate) fn start(&mut self, partition: i32, offset: i64) -> Result<(), KafkaError> {
        self.seek(&BTreeMap::from([(partition, offset)]))?;
        if !self.held {
            self.consumer.resume(&self.list([partition]))?;
        }
        self.flowing.insert(partition, offset);
        self.done.insert(partition, offset);
        Ok(())
    }

    /// Notes the offsets that were committed.
    pub(crate) fn committed_to(&mut self, next: &BTreeMap<i32, i64>) {
        for (partition, done) in &mut self.done {
            *done = next.get(partition).copied().unwrap_or(*done);
        }
    }

    /// Partitions that are stuck at an unreadable batch.
    pub(crate) fn jams(&mut self) -> Vec<Jam> {
        let flowing = &self.flowing;
        let fetching: BTreeMap<i32, Fetching> = {
            let latest = self.consumer.context().statistics();
            let ours = latest.fetching.iter().filter(|(partition, _)| flowing.contains_key(partition));
            ours.map(|(&partition, &fetching)| (partition, fetching)).collect()
        };
        let mut jams = self.read_errors.jams(&fetching, Instant::now());
        jams.retain(|jam| !self.waiting.contains_key(&jam.partition));
        jams
    }

    /// The last read error that librdkafka reported.
    pub(crate) fn last_read_error(&self) -> &str {
        self.read_errors.last_error()
    }

    /// Read errors since the last call.
    pub(crate) fn take_error_count(&mut self) -> u64 {
        std::mem::take(&mut self.error_count)
    }

    /// Resumes a partition at `next`, after an unreadable batch. A record with the batch's last offset replaces it.
    pub(crate) fn skip(&mut self, jam: Jam, next: i64) -> Result<(), KafkaError> {
        let Jam { partition, offset: first, .. } = jam;
        self.seek(&BTreeMap::from([(partition, next)]))?;
        let why = self.read_errors.last_error().to_owned();
        let fate = Some(Fate::Unreadable { first, why });
        self.accept(partition, Record { offset: next - 1, fate, ..Record::default() });
        Ok(())
    }

    /// Stops fetching all partitions, or fetches them again. Records that were collected and not judged are read again.
    pub(crate) fn hold(&mut self, held: bool) -> Result<(), KafkaError> {
        if self.held == held {
            return Ok(());
        }
        let flowing = self.list(self.flowing.keys().copied());
        match held {
            true => {
                self.consumer.pause(&flowing)?;
                if self.count > 0 {
                    self.rewind(&BTreeMap::new())?;
                }
            }
            false => self.consumer.resume(&flowing)?,
        }
        self.held = held;
        Ok(())
    }

    /// Stops reading a partition and drops its collected records.
    pub(crate) fn halt(&mut self, partition: i32) {
        self.drop_records(partition);
        if self.flowing.remove(&partition).is_some()
            && let Err(error) = self.consumer.pause(&self.list([partition]))
        {
            // Harmless: `accept` ignores its records.
            tracing::debug!(%error, partition, "cannot pause a halted partition");
        }
    }

    /// Seeks back to these offsets, because the batch did not commit.
    pub(crate) fn rewind(&mut self, to: &BTreeMap<i32, i64>) -> Result<(), KafkaError> {
        if FAULTS.has(Mutant::NoSeek) {
            return Ok(());
        }
        let mut to = to.clone();
        for (partition, records) in std::mem::take(&mut self.waiting) {
            // Records that were put back either follow the rewound ones and are read again, or need their own seek.
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

    /// The group's committed offset of a partition. Waits while a transaction of the previous owner is open.
    pub(crate) fn committed(&self, partition: i32) -> Result<Option<i64>, KafkaError> {
        let answer = self.consumer.committed_offsets(self.list([partition]), PATIENCE)?;
        clients::offset_in(&answer, &self.topic, partition)
    }

    /// True if the group has a committed offset for any of these partitions.
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

    /// The first offset to read of a partition without a committed offset, whose log spans `low` to `high`.
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

    /// By partition, the records that are not committed yet, including unreadable ones. Partitions without statistics
    /// are left out.
    pub(crate) fn lags(&self) -> BTreeMap<i32, i64> {
        let latest = self.consumer.context().statistics();
        let lag = |(&partition, &done): (&i32, &i64)| {
            let Fetching { end, polled, .. } = *latest.fetching.get(&partition)?;
            // Markers and aborted records take offsets too. Once everything accepted is committed, the offsets that
            // were polled past do not count as lag.
            let all_committed = self.flowing.get(&partition).is_some_and(|&least| least <= done);
            let passed = if all_committed { done.max(polled) } else { done };
            (end >= 0).then(|| (partition, (end - passed).max(0)))
        };
        self.done.iter().filter_map(lag).collect()
    }

    /// True if no broker is reachable.
    pub(crate) fn is_away(&self) -> bool {
        self.consumer.context().statistics().away
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

    fn accept(&mut self, partition: i32, record: Record) -> bool {
        // Ignores stale records that were fetched before a seek, a pause or an assignment.
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

    fn drop_records(&mut self, partition: i32) {
        for record in self.waiting.remove(&partition).unwrap_or_default() {
            self.count -= 1;
            self.bytes -= record.bytes();
        }
    }

    /// The assignment under which the batch was read is lost, so the batch must not be committed. No record is accepted
    /// until the partitions are assigned again: the next one would leave a gap.
    fn drop_batch(&mut self) {
        tracing::warn!(topic = self.topic, records = self.count, "assignment lost; dropping the batch");
        self.waiting.clear();
        (self.count, self.bytes) = (0, 0);
        self.flowing.clear();
        self.lost_since.get_or_insert_with(Instant::now);
    }

    fn take_changes(&mut self) -> Vec<AssignmentChange> {
        let changes = std::mem::take(&mut *self.consumer.context().changes());
        for change in &changes {
            self.membership = None;
            self.lost_since = None;
            if let AssignmentChange::Revoked(partitions) = change {
                for partition in partitions {
                    self.drop_records(*partition);
                    self.flowing.remove(partition);
                    self.done.remove(partition);
                }
            }
        }
        changes
    }

    fn note_error(&mut self, error: KafkaError) -> Result<(), RecordSourceError> {
        match error {
            KafkaError::MessageConsumptionFatal(_) => return Err(RecordSourceError(error)),
            KafkaError::MessageConsumption(
                RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange,
            ) => self.out_of_range = true,
            error => {
                if is_read_error(&error) {
                    self.error_count += 1;
                    self.read_errors.reported(&error, Instant::now());
                }
                self.consumer.context().log_once(&error);
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

/// Copies a message. A value longer than `longest` is not copied: a decompressed bomb would take its gigabyte twice.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn records(offsets: std::ops::Range<i64>, bytes: usize) -> Vec<Record> {
        let record = |offset| Record { offset, value: Some(vec![0; bytes]), ..Record::default() };
        offsets.map(record).collect()
    }

    fn offsets(batch: &BTreeMap<i32, Vec<Record>>) -> Vec<(i32, Vec<i64>)> {
        let offsets = |records: &Vec<Record>| records.iter().map(|record| record.offset).collect();
        batch.iter().map(|(&partition, records)| (partition, offsets(records))).collect()
    }

    #[test]
    fn a_batch_takes_of_each_partition_its_share_and_leaves_the_rest_in_order() {
        let limits = BatchLimits { articles: 6, bytes: 1 << 20, linger: Duration::ZERO };
        let all =
            || BTreeMap::from([(0, records(10..18, 5)), (3, records(40..41, 5)), (4, records(7..10, 5))]);
        let mut waiting = all();
        let (first, second) = (first_batch(&mut waiting, &limits), first_batch(&mut waiting, &limits));
        assert_eq!(offsets(&first), [(0, (10..14).collect()), (3, vec![40]), (4, vec![7, 8])]);
        assert_eq!(offsets(&second), [(0, (14..18).collect()), (4, vec![9])]);
        assert!(waiting.is_empty());
        let few = BatchLimits { articles: 12, ..limits };
        let mut waiting = all();
        assert_eq!(first_batch(&mut waiting, &few), all());
    }

    #[test]
    fn a_batch_keeps_to_its_bytes_but_takes_a_record_that_is_larger() {
        let limits = BatchLimits { articles: 100, bytes: 1000, linger: Duration::ZERO };
        let mut waiting = BTreeMap::from([(0, records(0..20, 100)), (1, records(0..2, 5000))]);
        let mut batches = Vec::new();
        while !waiting.is_empty() {
            let batch = first_batch(&mut waiting, &limits);
            let small: usize = batch.get(&0).into_iter().flatten().map(Record::bytes).sum();
            assert!(small <= limits.bytes, "{small} bytes");
            batches.push(batch);
        }
        assert_eq!(batches.iter().flat_map(|batch| batch.get(&1)).map(Vec::len).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(batches.iter().flat_map(|batch| batch.get(&0)).map(Vec::len).sum::<usize>(), 20);
    }
}
