//! Routed records of an old generation that nobody has judged.

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

/// Partitions of a topic.
///
/// # Errors
/// It does not exist, or may not be seen: both look alike, and neither means that it is empty.
pub(crate) fn partitions(surveyor: &BaseConsumer<Quiet>, topic: &str) -> Result<i32, KafkaError> {
    let metadata = surveyor.fetch_metadata(Some(topic), PATIENCE)?;
    let found = metadata.topics().iter().find(|found| found.name() == topic);
    match found.map(|found| (found.error(), found.partitions().len())) {
        Some((None, count)) if count > 0 => Ok(i32::try_from(count).unwrap_or(i32::MAX)),
        _ => Err(KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownTopicOrPartition)),
    }
}

/// Ends of all partitions, as a client that reads uncommitted sees them.
pub(crate) fn ends(surveyor: &BaseConsumer<Quiet>, topic: &str) -> Result<BTreeMap<i32, i64>, KafkaError> {
    let end = |partition| Ok((partition, surveyor.fetch_watermarks(topic, partition, PATIENCE)?.1));
    (0..partitions(surveyor, topic)?).map(end).collect()
}

/// By partition, the first offset that is not judged. Without a committed offset that is the start of the log: too low
/// an answer only makes others wait.
pub(crate) fn judged(
    judges: &BaseConsumer<Quiet>,
    surveyor: &BaseConsumer<Quiet>,
    topic: &str,
    ends: &BTreeMap<i32, i64>,
) -> Result<BTreeMap<i32, i64>, KafkaError> {
    let mut list = TopicPartitionList::new();
    for &partition in ends.keys() {
        list.add_partition(topic, partition);
    }
    let committed = judges.committed_offsets(list, PATIENCE)?;
    let mut next = BTreeMap::new();
    for &partition in ends.keys() {
        let committed = clients::offset_in(&committed, topic, partition)?;
        let (low, _) = surveyor.fetch_watermarks(topic, partition, PATIENCE)?;
        next.insert(partition, committed.unwrap_or(low).max(low));
    }
    Ok(next)
}

/// Whether there is no record between these offsets. Offsets alone do not tell: markers of transactions have some too.
pub(crate) fn is_empty(
    judges: &BaseConsumer<Quiet>,
    topic: &str,
    from: &BTreeMap<i32, i64>,
    to: &BTreeMap<i32, i64>,
) -> Result<bool, KafkaError> {
    read(judges, topic, (from, to), Instant::now() + PATIENCE, |_| ControlFlow::Break(()))
}

/// Reads the committed records of `from..to`, and says if it came to the end of all of them. What lies in an open
/// transaction is waited for.
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
            Some(Err(error)) => tracing::debug!(%error, topic, "reading routed records"),
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

/// Gives unjudged records back: the final offset of a raw partition is lowered to its first one, so that the next
/// generation publishes it. With it come judged records between that one and the old final offset: those are
/// published twice, and counted.
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
    fn giving_back_counts_what_was_judged_in_between() {
        let mut next = BTreeMap::from([(0, 100), (1, 50), (2, 7)]);
        // Of 90 to 99 three are not judged, so seven come twice; of partition 1 nothing else was judged.
        let unjudged = BTreeSet::from([(0, 90), (0, 95), (0, 99), (1, 48), (1, 49)]);
        assert_eq!(give_back(&mut next, &unjudged), 7);
        assert_eq!(next, BTreeMap::from([(0, 90), (1, 48), (2, 7)]));
        assert_eq!(give_back(&mut next, &BTreeSet::new()), 0);
    }
}
