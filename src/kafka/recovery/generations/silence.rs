//! The silent phase of a new generation: it follows the old generation and publishes nothing that the old one
//! publishes.
//!
//! Until the old generation has a generation-end record, records below its committed offset are processed silently and
//! all others wait, so the new generation never overtakes the old one. Without a committed offset (never written, or
//! expired) the partition waits. In mode `routed` the boundary follows what match has judged and not what route has
//! read, because `generation end --accept-repeats` may give unjudged articles back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;

use crate::config::{Bus, Mode};
use crate::formats::GenerationEnd;

use super::{EndLog, LookError, backlog, offsets_of};
use crate::kafka::admin::ids;
use crate::kafka::client::{self as clients, PATIENCE, Quiet, Role};
use crate::kafka::turn::record::Record;
use crate::status::StatusBoard;

/// Time between two requests for the old generation's progress, and how long a waiting partition pauses.
pub(crate) const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Which of a partition's records are processed now, and which are silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Admitted {
    /// Records below this offset are not published.
    pub(crate) suppress_below: i64,
    /// The first record that has to wait, where reading resumes later.
    pub(crate) waits: Option<i64>,
}

impl Admitted {
    /// All records are processed and published.
    pub(crate) const ALL: Admitted = Admitted { suppress_below: i64::MIN, waits: None };
}

/// The offset up to which the old generation has published a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Boundary {
    /// Not known: process nothing.
    Unknown,
    /// At least up to here, and it may still publish more: process only what is below.
    Moving(i64),
    /// Exactly up to here: publish the rest.
    Final(i64),
}

impl Boundary {
    /// The offset below which nothing is published, and how many of `offsets` to process.
    fn admits(self, offsets: &[i64]) -> (i64, usize) {
        let below = |until: i64| offsets.partition_point(|&offset| offset < until);
        match self {
            Boundary::Unknown => (i64::MIN, 0),
            Boundary::Moving(until) => (until, below(until)),
            Boundary::Final(until) => match below(until) {
                0 => (until, offsets.len()),
                silent => (until, silent),
            },
        }
    }
}

/// Tracks the old generation while the new one is silent.
pub(crate) struct Earlier {
    generation: u32,
    raw: String,
    /// A client for the offsets of the group that reads the raw topic.
    reader: BaseConsumer<Quiet>,
    /// In mode `routed`: the routed topic, and a client for the offsets of the match group.
    match_group: Option<(String, BaseConsumer<Quiet>)>,
    end: Option<GenerationEnd>,
    /// The id of the raw topic, as of the last claim.
    raw_id: Option<String>,
    /// By partition, the offset below which everything is published; nothing where the group has none.
    known: BTreeMap<i32, Option<i64>>,
    /// Partitions of which this worker has had records.
    wanted: BTreeSet<i32>,
    barrier: Option<Barrier>,
    asked: Option<Instant>,
    /// Messages that were logged already: the silent phase may last for days.
    logged: BTreeSet<&'static str>,
    /// The worker, and where it reports how far it has followed.
    worker: String,
    board: Arc<StatusBoard>,
}

/// Raw offsets that count as published once match has judged everything that was routed by the time they were read.
struct Barrier {
    next: BTreeMap<i32, Option<i64>>,
    routed: BTreeMap<i32, i64>,
}

impl Earlier {
    /// `old` has the settings of the generation before.
    pub(crate) fn new(old: &Bus, worker: &str, board: &Arc<StatusBoard>) -> Result<Earlier, KafkaError> {
        let name = format!("{worker}-follow");
        let (reader_role, match_group) = match old.mode {
            Mode::Direct => (Role::Direct, None),
            Mode::Routed => {
                let match_group = offsets_of(old, Role::Match, &name)?;
                (Role::Route, Some((old.topics.routed.clone(), match_group)))
            }
        };
        Ok(Earlier {
            generation: old.generation,
            raw: old.topics.raw.clone(),
            reader: offsets_of(old, reader_role, &name)?,
            match_group,
            end: None,
            raw_id: None,
            known: BTreeMap::new(),
            wanted: BTreeSet::new(),
            barrier: None,
            asked: None,
            logged: BTreeSet::new(),
            worker: worker.to_owned(),
            board: Arc::clone(board),
        })
    }

    /// A partition is claimed, perhaps of another topic than before.
    pub(super) fn claim(
        &mut self,
        ends: &BTreeMap<u32, GenerationEnd>,
        surveyor: &BaseConsumer<Quiet>,
    ) -> Result<(), KafkaError> {
        let id = ids::topic_id(surveyor.client(), &self.raw, PATIENCE)?;
        self.raw_id = id.map(|id| id.to_string());
        self.learn(ends);
        if self.end.as_ref().is_some_and(|end| end.is_of_another(self.raw_id.as_deref())) {
            self.log_once("another topic", |generation| tracing::warn!(generation, "the raw topic was created again since the old generation ended; everything in it is published"));
        }
        Ok(())
    }

    /// Takes its end from the records, if it is there. An end is written once, so it is never asked for again.
    fn learn(&mut self, ends: &BTreeMap<u32, GenerationEnd>) {
        if self.end.is_none()
            && let Some(end) = ends.get(&self.generation)
        {
            let (generation, ended_at) = (self.generation, &end.ended_at);
            tracing::info!(generation, ended_at, next = ?end.next, "the old generation has ended; publishing from its final offsets on");
            self.end = Some(end.clone());
        }
    }

    pub(crate) fn admit(
        &mut self,
        partition: i32,
        records: &mut Vec<Record>,
        ends: &mut EndLog,
        surveyor: &BaseConsumer<Quiet>,
    ) -> Admitted {
        let offsets: Vec<i64> = records.iter().map(|record| record.offset).collect();
        let Some(&last) = offsets.last() else { return Admitted::ALL };
        let boundary = self.boundary(partition, last, ends, surveyor).unwrap_or_else(|error| {
            self.log_once("away", |generation| tracing::warn!(partition, generation, %error, "cannot read the old generation's progress; waiting and publishing nothing"));
            Boundary::Unknown
        });
        let caught_up = match boundary {
            Boundary::Unknown => Some(false),
            Boundary::Moving(until) => Some(last >= until),
            Boundary::Final(_) => None,
        };
        self.board.follows(&self.worker, self.generation, partition, caught_up);
        let (suppress_below, count) = boundary.admits(&offsets);
        records.truncate(count);
        Admitted { suppress_below, waits: offsets.get(count).copied() }
    }

    fn boundary(
        &mut self,
        partition: i32,
        last: i64,
        ends: &mut EndLog,
        surveyor: &BaseConsumer<Quiet>,
    ) -> Result<Boundary, LookError> {
        self.wanted.insert(partition);
        let known = self.known.get(&partition).copied().flatten();
        // Far below the old generation there is no need to ask.
        let warming = known.is_some_and(|known| last < known);
        let asked_lately = self.asked.is_some_and(|asked| asked.elapsed() < FOLLOW_INTERVAL);
        if self.end.is_none() && !warming && !asked_lately {
            self.asked = Some(Instant::now());
            self.learn(ends.look(surveyor)?);
            if self.end.is_none() {
                self.follow(surveyor)?;
            }
        }
        if let Some(end) = &self.end {
            return Ok(Boundary::Final(end.next(partition, self.raw_id.as_deref())));
        }
        Ok(match self.known.get(&partition) {
            Some(Some(until)) => {
                let until = *until;
                if last >= until {
                    self.log_once("caught-up", |generation| tracing::info!(partition, until, generation, "caught up with the old generation, which has not ended: following it and publishing nothing. Once its processes are stopped, run `samestory generation end`"));
                }
                Boundary::Moving(until)
            }
            Some(None) => {
                self.log_once("unknown", |generation| tracing::warn!(partition, generation, "the old generation has no committed offset for this partition (it has not read it, or the offset has expired), and it has not ended: waiting and publishing nothing. Start the old generation once more, or run `samestory generation end`"));
                Boundary::Unknown
            }
            None => Boundary::Unknown,
        })
    }

    /// Reads how far the old generation has published.
    fn follow(&mut self, surveyor: &BaseConsumer<Quiet>) -> Result<(), KafkaError> {
        let Some((topic, match_group)) = &self.match_group else {
            let next = self.committed()?;
            self.advance(next);
            return Ok(());
        };
        let barrier = match self.barrier.take() {
            Some(barrier) => barrier,
            // The order matters: every record routed for these offsets lies below watermarks that are read later.
            None => Barrier { next: self.committed()?, routed: backlog::ends(surveyor, topic)? },
        };
        let judged = backlog::judged(match_group, surveyor, topic, &barrier.routed)
            .and_then(|judged| backlog::is_empty(match_group, topic, &judged, &barrier.routed));
        match judged {
            Ok(true) => self.advance(barrier.next),
            Ok(false) => self.barrier = Some(barrier),
            Err(error) => {
                self.barrier = Some(barrier);
                return Err(error);
            }
        }
        Ok(())
    }

    fn advance(&mut self, next: BTreeMap<i32, Option<i64>>) {
        for (partition, next) in next {
            let known = self.known.entry(partition).or_default();
            *known = (*known).max(next);
        }
    }

    fn committed(&self) -> Result<BTreeMap<i32, Option<i64>>, KafkaError> {
        let mut list = TopicPartitionList::new();
        for &partition in &self.wanted {
            list.add_partition(&self.raw, partition);
        }
        let answer = self.reader.committed_offsets(list, PATIENCE)?;
        let next = |&partition| Ok((partition, clients::offset_in(&answer, &self.raw, partition)?));
        self.wanted.iter().map(next).collect()
    }

    fn log_once(&mut self, what: &'static str, log: impl FnOnce(u32)) {
        if self.logged.insert(what) {
            log(self.generation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_generation_never_overtakes_and_never_mixes_silent_records_with_others() {
        let offsets = [10, 11, 13, 14];
        assert_eq!(Boundary::Unknown.admits(&offsets), (i64::MIN, 0));
        assert_eq!(Boundary::Moving(9).admits(&offsets), (9, 0));
        assert_eq!(Boundary::Moving(13).admits(&offsets), (13, 2));
        assert_eq!(Boundary::Moving(99).admits(&offsets), (99, 4));
        assert_eq!(Boundary::Final(10).admits(&offsets), (10, 4));
        assert_eq!(Boundary::Final(13).admits(&offsets), (13, 2));
        assert_eq!(Boundary::Final(99).admits(&offsets), (99, 4));
    }
}
