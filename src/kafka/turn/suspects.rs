//! Finds the record that the broker refuses. The worker retries a refused batch in halves; a record that is refused
//! alone becomes a dead letter, and if that is refused too, a smaller dead letter.
//!
//! A refused batch is a range of offsets in each of its partitions. Until every such range is committed, a turn takes
//! records from the first range only, so that new records of other partitions cannot prolong the search forever.

use std::collections::{BTreeMap, VecDeque};

use rdkafka::error::KafkaError;

use super::record::{Copied, Fate, Record};

/// The search for refused records.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    ranges: VecDeque<SuspectRange>,
    /// The most records to try in one transaction.
    most: usize,
    /// By partition and offset, records that were refused alone, and the dead letter to try next.
    condemned: BTreeMap<(i32, i64), Fate>,
    /// True if the topic limits were read since the last commit.
    pub(crate) limits_read: bool,
    /// The broker refused the smallest dead letter, and readiness reports that.
    pub(crate) blocked: bool,
}

/// The part of a refused batch in one partition, up to offset `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SuspectRange {
    partition: i32,
    last: i64,
}

impl Suspects {
    /// Keeps in `records` those to plan now and returns the rest. Without suspects it keeps all of them.
    pub(crate) fn narrow(&mut self, records: &mut BTreeMap<i32, Vec<Record>>) -> BTreeMap<i32, Vec<Record>> {
        let mut rest = BTreeMap::new();
        while let Some(range) = self.ranges.front().copied() {
            let Some(own) = records.get(&range.partition).filter(|own| !own.is_empty()) else {
                return std::mem::take(records);
            };
            let within = own.iter().take_while(|record| record.offset <= range.last).count();
            if within == 0 {
                // Compaction or retention has deleted them.
                self.ranges.pop_front();
                continue;
            }
            let mut own = records.remove(&range.partition).unwrap_or_default();
            let later = own.split_off(within.min(self.most.max(1)));
            rest = std::mem::take(records);
            if !later.is_empty() {
                rest.insert(range.partition, later);
            }
            records.insert(range.partition, own);
            break;
        }
        for (&partition, records) in records {
            for record in records {
                if let Some(fate) = self.condemned.get(&(partition, record.offset)) {
                    record.fate = Some(fate.clone());
                }
            }
        }
        rest
    }

    /// A batch of several records was refused: try half as many next.
    pub(crate) fn refused(&mut self, lasts: BTreeMap<i32, i64>, count: usize) {
        if self.ranges.is_empty() {
            self.ranges =
                lasts.into_iter().map(|(partition, last)| SuspectRange { partition, last }).collect();
        }
        self.most = count.div_ceil(2);
    }

    /// A record was refused alone. Returns how much of it the next dead letter copies, or `None` if the smallest one
    /// has been refused.
    pub(crate) fn condemn(&mut self, partition: i32, offset: i64, error: &KafkaError) -> Option<Copied> {
        let previous = self.condemned.get(&(partition, offset));
        let copy = match previous {
            Some(Fate::Undeliverable { copy, .. }) => copy.smaller()?,
            _ => Copied::Whole,
        };
        let why = match previous {
            Some(Fate::Undeliverable { why, .. }) => why.clone(),
            _ => format!("refused by the broker: {error}"),
        };
        self.condemned.insert((partition, offset), Fate::Undeliverable { why, copy });
        Some(copy)
    }

    /// Everything before these offsets is committed. Returns whether the worker was blocked before.
    pub(crate) fn committed(&mut self, next: &BTreeMap<i32, i64>) -> bool {
        self.limits_read = false;
        self.most = self.most.saturating_mul(2);
        let done = |partition: i32, offset: i64| next.get(&partition).is_some_and(|&next| offset < next);
        self.condemned.retain(|&(partition, offset), _| !done(partition, offset));
        self.ranges.retain(|range| !done(range.partition, range.last));
        std::mem::take(&mut self.blocked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::error::RDKafkaErrorCode;

    const REFUSED: KafkaError = KafkaError::MessageProduction(RDKafkaErrorCode::MessageSizeTooLarge);

    /// Partition and offset of a record.
    type At = (i32, i64);

    /// Simulates a worker whose broker refuses every transaction that holds a record of `bad`, unless as a dead letter.
    /// `sizes` has the records of each partition. Returns the judged records, the dead letters, and the aborts.
    fn simulate(sizes: &[At], bad: &[At]) -> (Vec<At>, Vec<At>, usize) {
        let mut next: BTreeMap<i32, i64> = sizes.iter().map(|&(partition, _)| (partition, 0)).collect();
        let (mut suspects, mut judged, mut dead, mut aborts) =
            (Suspects::default(), Vec::new(), Vec::new(), 0);
        for _ in 0..10_000 {
            let mut records: BTreeMap<i32, Vec<Record>> = sizes
                .iter()
                .map(|&(partition, size)| {
                    let record = |offset| Record { offset, ..Record::default() };
                    (partition, (next[&partition]..size).map(record).collect())
                })
                .filter(|(_, records): &(i32, Vec<Record>)| !records.is_empty())
                .collect();
            if records.is_empty() {
                break;
            }
            suspects.narrow(&mut records);
            assert!(!records.is_empty());
            let all: Vec<(i32, &Record)> = records
                .iter()
                .flat_map(|(&at, records)| records.iter().map(move |record| (at, record)))
                .collect();
            let lasts =
                records.iter().map(|(&at, records)| (at, records[records.len() - 1].offset)).collect();
            let refused =
                all.iter().any(|(at, record)| record.fate.is_none() && bad.contains(&(*at, record.offset)));
            match (refused, all.len()) {
                (true, 1) => {
                    aborts += 1;
                    assert_eq!(suspects.condemn(all[0].0, all[0].1.offset, &REFUSED), Some(Copied::Whole));
                }
                (true, count) => {
                    aborts += 1;
                    suspects.refused(lasts, count);
                }
                (false, _) => {
                    for (at, record) in &all {
                        let out = if record.fate.is_some() { &mut dead } else { &mut judged };
                        out.push((*at, record.offset));
                        next.insert(*at, record.offset + 1);
                    }
                    suspects.committed(&next);
                }
            }
        }
        judged.sort_unstable();
        (judged, dead, aborts)
    }

    #[test]
    fn only_refused_records_become_dead_letters_and_the_search_is_short() {
        let bad = [(0, 17), (1, 0), (1, 1999)];
        let (judged, dead, aborts) = simulate(&[(0, 2000), (1, 2000)], &bad);
        assert_eq!(dead, bad);
        assert_eq!(judged.len(), 4000 - bad.len());
        assert!(aborts < 60, "{aborts} aborts");
        assert_eq!(simulate(&[(0, 1)], &[(0, 0)]).1, [(0, 0)]);
        let (judged, dead, _) = simulate(&[(0, 7)], &[(0, 2), (0, 3), (0, 4)]);
        assert_eq!((judged.len(), dead.len()), (4, 3));
    }

    #[test]
    fn a_refused_dead_letter_shrinks_until_nothing_is_left() {
        let mut suspects = Suspects::default();
        let copies = [Some(Copied::Whole), Some(Copied::WithoutValue), Some(Copied::Nothing), None, None];
        for copy in copies {
            assert_eq!(suspects.condemn(0, 5, &REFUSED), copy);
        }
    }
}
