//! The backlog of an old generation: routed records that match has not judged. `end` counts them and gives them back to
//! the next generation; `silence` waits until there are none. Offsets alone cannot show it, since markers take offsets
//! too.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::{Offset, TopicPartitionList};

use super::{position, timed_out};
use crate::kafka::client as clients;
use crate::kafka::client::{PATIENCE, Quiet};

/// The number of partitions of a topic.
///
/// # Errors
/// The topic does not exist, or this user may not see it. The two look alike, and neither means that it is empty.
pub(crate) fn partitions(surveyor: &BaseConsumer<Quiet>, topic: &str) -> Result<i32, KafkaError> {
    let metadata = surveyor.fetch_metadata(Some(topic), PATIENCE)?;
    let found = metadata.topics().iter().find(|found| found.name() == topic);
    match found.map(|found| (found.error(), found.partitions().len())) {
        Some((None, count)) if count > 0 => Ok(i32::try_from(count).unwrap_or(i32::MAX)),
        _ => Err(KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownTopicOrPartition)),
    }
}

/// The high watermarks of all partitions.
pub(crate) fn ends(surveyor: &BaseConsumer<Quiet>, topic: &str) -> Result<BTreeMap<i32, i64>, KafkaError> {
    let end = |partition| Ok((partition, surveyor.fetch_watermarks(topic, partition, PATIENCE)?.1));
    (0..partitions(surveyor, topic)?).map(end).collect()
}

/// By partition, the first offset that is not judged. Without a committed offset that is the start of the log: an
/// answer that is too low only makes callers wait.
pub(crate) fn judged(
    match_group: &BaseConsumer<Quiet>,
    surveyor: &BaseConsumer<Quiet>,
    topic: &str,
    ends: &BTreeMap<i32, i64>,
) -> Result<BTreeMap<i32, i64>, KafkaError> {
    let mut list = TopicPartitionList::new();
    for &partition in ends.keys() {
        list.add_partition(topic, partition);
    }
    let committed = match_group.committed_offsets(list, PATIENCE)?;
    let mut next = BTreeMap::new();
    for &partition in ends.keys() {
        let committed = clients::offset_in(&committed, topic, partition)?;
        let (low, _) = surveyor.fetch_watermarks(topic, partition, PATIENCE)?;
        next.insert(partition, committed.unwrap_or(low).max(low));
    }
    Ok(next)
}

/// True if there is no record between these offsets. Offsets alone cannot show it: transaction markers take some too.
pub(crate) fn is_empty(
    match_group: &BaseConsumer<Quiet>,
    topic: &str,
    from: &BTreeMap<i32, i64>,
    to: &BTreeMap<i32, i64>,
) -> Result<bool, KafkaError> {
    read(match_group, topic, (from, to), Instant::now() + PATIENCE, |_| ControlFlow::Break(()))
}

/// Reads the committed records of `from..to`, and returns whether it read all of them. It waits for open transactions.
pub(crate) fn read(
    consumer: &BaseConsumer<Quiet>,
    topic: &str,
    (from, to): (&BTreeMap<i32, i64>, &BTreeMap<i32, i64>),
    deadline: Instant,
    mut each: impl FnMut(&BorrowedMessage<'_>) -> ControlFlow<()>,
) -> Result<bool, KafkaError> {
    let mut list = TopicPartitionList::new();
    let mut left: BTreeMap<i32, i64> = BTreeMap::new();
    for (&partition, &to) in to {
        let from = from.get(&partition).copied().unwrap_or(0);
        if from < to {
            list.add_partition_offset(topic, partition, Offset::Offset(from))?;
            left.insert(partition, to);
        }
    }
    consumer.assign(&list)?;
    let mut outcome = Ok(true);
    while !left.is_empty() {
        match consumer.poll(Duration::from_millis(20)) {
            Some(Ok(message)) => {
                let partition = message.partition();
                match left.get(&partition) {
                    Some(&to) if message.offset() < to => {
                        if each(&message).is_break() {
                            outcome = Ok(false);
                            break;
                        }
                        if message.offset() + 1 >= to {
                            left.remove(&partition);
                        }
                    }
                    _ => {
                        left.remove(&partition);
                    }
                }
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                let at = position(consumer, topic, partition)?;
                left.retain(|&other, &mut to| other != partition || at < to);
            }
            Some(Err(error)) => tracing::debug!(%error, topic, "consumer error while reading routed records"),
            None => {}
        }
        if !left.is_empty() && Instant::now() > deadline {
            outcome = Err(timed_out());
            break;
        }
    }
    consumer.assign(&TopicPartitionList::new())?;
    outcome
}

/// Gives unjudged records back to the next generation: lowers the final offset of each raw partition to its first
/// unjudged record. Judged records between that one and the old final offset are published twice; returns how many.
pub(crate) fn give_back(next: &mut BTreeMap<i32, i64>, unjudged: &BTreeSet<(i32, i64)>) -> u64 {
    let mut repeats = 0;
    for (&partition, next) in next {
        let ours: Vec<i64> =
            unjudged.range((partition, i64::MIN)..(partition, *next)).map(|&(_, offset)| offset).collect();
        if let Some(&first) = ours.first() {
            repeats += u64::try_from(*next - first).unwrap_or(0) - ours.len() as u64;
            *next = first;
        }
    }
    repeats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn giving_back_counts_the_judged_records_in_between() {
        let mut next = BTreeMap::from([(0, 100), (1, 50), (2, 7)]);
        // Three of 90 to 99 are not judged, so seven appear twice; in partition 1 nothing in between was judged.
        let unjudged = BTreeSet::from([(0, 90), (0, 95), (0, 99), (1, 48), (1, 49)]);
        assert_eq!(give_back(&mut next, &unjudged), 7);
        assert_eq!(next, BTreeMap::from([(0, 90), (1, 48), (2, 7)]));
        assert_eq!(give_back(&mut next, &BTreeSet::new()), 0);
    }
}
