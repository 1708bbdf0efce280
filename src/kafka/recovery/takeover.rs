//! The decision to take a partition over: [`decide`] compares the group's committed offset, the changelog's position
//! and the log's watermarks. It is a pure function; the roles gather the facts. If they disagree, the partition stops
//! until an operator accepts an offset or a gap by its exact numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::formats::GenerationEnd;
use samestory_engine::index::BusPosition;

use crate::kafka::admin::ids::ClusterIds;

/// A partition and an offset in it, as an operator writes them: `3:1042`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartitionOffset {
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
}

impl FromStr for PartitionOffset {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<PartitionOffset, Self::Err> {
        let numbers = text.split_once(':').and_then(|(partition, offset)| {
            Some(PartitionOffset { partition: partition.parse().ok()?, offset: offset.parse().ok()? })
        });
        let valid = numbers.filter(|at| at.partition >= 0 && at.offset >= 0);
        valid.ok_or("write PARTITION:OFFSET as the log names them, for example 3:1042")
    }
}

/// The operator's decisions about partitions whose offsets disagree. Each names the numbers that the log printed, so it
/// covers that disagreement and no later one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    /// Resume these partitions at these offsets, whatever the changelog says.
    pub offsets: BTreeSet<PartitionOffset>,
    /// Records from these offsets on are gone: resume at the first one that the topic still has.
    pub gaps: BTreeSet<PartitionOffset>,
}

impl Accept {
    fn offset(&self, partition: i32, offset: i64) -> bool {
        self.offsets.contains(&PartitionOffset { partition, offset })
    }

    fn gap(&self, partition: i32, offset: i64) -> bool {
        self.gaps.contains(&PartitionOffset { partition, offset })
    }

    /// The offset that the operator named for a partition.
    fn named(&self, partition: i32) -> Option<i64> {
        self.offsets.iter().find(|at| at.partition == partition).map(|at| at.offset)
    }
}

/// The operator's decisions, shared by all workers. Each applies once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions(Arc<Mutex<Accept>>);

impl Decisions {
    pub(crate) fn new(accept: Accept) -> Decisions {
        Decisions(Arc::new(Mutex::new(accept)))
    }

    /// The decisions that have not been applied yet.
    pub(crate) fn left(&self) -> Accept {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Removes the decisions about a partition, once the partition has resumed and committed.
    pub(crate) fn spend(&self, partition: i32) {
        let mut accept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        accept.offsets.retain(|at| at.partition != partition);
        accept.gaps.retain(|at| at.partition != partition);
    }
}

/// Repeated claims before a disagreement is final.
const CLAIMS_AGAIN: u32 = 3;
/// The pause before each repeated claim.
pub(crate) const CLAIM_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Disagreements in a row, by partition. A rebalance or a broker that has just come back can show an offset from before
/// the last commit; a disagreement that survives three more claims is for the operator to resolve.
#[derive(Debug, Default)]
pub(crate) struct Disagreed(BTreeMap<i32, u32>);

impl Disagreed {
    /// Counts one more disagreement, and returns whether it is final.
    pub(crate) fn is_final(&mut self, partition: i32) -> bool {
        let count = self.0.entry(partition).or_default();
        *count += 1;
        *count > CLAIMS_AGAIN
    }

    /// Resets the count: the partition agrees, or was revoked.
    pub(crate) fn forget(&mut self, partition: i32) {
        self.0.remove(&partition);
    }
}

/// The facts about a partition that [`decide`] needs, gathered when its state is restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TakeoverFacts {
    pub(crate) partition: i32,
    /// The group's committed offset.
    pub(crate) committed: Option<i64>,
    /// The changelog's position: the input offset up to which the state is complete.
    pub(crate) position: Option<i64>,
    /// Set if the position was written for another topic or cluster.
    pub(crate) moved: Option<Moved>,
    /// The log was truncated before the position and written again.
    pub(crate) truncated: bool,
    /// The low watermark: the first offset that the log still holds.
    pub(crate) low: i64,
    /// The high watermark.
    pub(crate) high: i64,
}

/// A position that belongs to another topic or cluster than the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Names the id that differs.
    what: &'static str,
    /// The id recorded with the position.
    before: String,
    /// The current id.
    now: String,
}

/// Compares the topics and the cluster recorded with a position with the current ones. Ids unknown to either side are
/// not compared.
pub(crate) fn moved(position: &BusPosition, topic: &str, here: &ClusterIds) -> Option<Moved> {
    let moved = |what, before: &dyn fmt::Display, now: &dyn fmt::Display| {
        Some(Moved { what, before: before.to_string(), now: now.to_string() })
    };
    if position.topic.as_str() != topic {
        return moved("input topic", &position.topic, &topic);
    }
    match (&position.cluster, &here.cluster) {
        (Some(before), Some(now)) if before != now => return moved("cluster id", before, now),
        _ => {}
    }
    match (&position.topic_id, &here.input) {
        (Some(before), Some(now)) if before != now => return moved("topic id of the input", before, now),
        _ => {}
    }
    match (&position.changelog, &here.changelog) {
        (Some(before), Some(now)) if before != now => moved("topic id of the changelog", before, now),
        _ => None,
    }
}

/// How to take a partition over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Takeover {
    /// The partition was never read: choose the first offset and commit it.
    Begin,
    /// Resume at this offset.
    Resume(i64),
    /// Resume at this offset, as the operator accepted; `lost` records are skipped.
    Accepted { from: i64, lost: i64 },
    /// The operator has to decide.
    Stop(Disagreement),
}

/// Why a partition stops until the operator decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Disagreement {
    /// The group's committed offset differs from the changelog's position.
    Offsets { partition: i32, committed: i64, position: Option<i64> },
    /// The topic has deleted records that were not read.
    Gap { partition: i32, next: i64, low: i64 },
    /// The log ends before the committed offset.
    Shorter { partition: i32, next: i64, high: i64 },
    /// The position belongs to another topic or cluster.
    Moved { partition: i32, moved: Moved, position: Option<i64>, resume: i64 },
    /// The log was truncated before the committed offset and written again.
    Truncated { partition: i32, next: i64 },
    /// This generation has ended, and the next one publishes.
    Ended(Box<GenerationEnd>),
}

/// The remedy that always works.
const NEW_GENERATION: &str = "or rebuild the state from the raw topic: start a new generation with the next number in stage.generation";

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Disagreement::Offsets { partition, committed, position } => {
                write!(f, "the group's offset is {committed}, ")?;
                match position {
                    Some(position) => write!(f, "but the changelog's position is {position}")?,
                    None => write!(f, "but the changelog has no position")?,
                }
                write!(
                    f,
                    "; set the group's offset back, start once with --accept-offsets {partition}:{committed} to resume there with the state as it is, {NEW_GENERATION}"
                )
            }
            Disagreement::Gap { partition, next, low } => write!(
                f,
                "the next record is {next}, but the topic begins at {low}: {} records are gone; start once with --accept-gap {partition}:{next} to resume at {low} without them",
                low - next
            ),
            Disagreement::Ended(end) => write!(
                f,
                "generation {} has ended ({}, at offsets {:?}) and publishes nothing more; start the next generation, with a higher stage.generation",
                end.generation, end.ended_at, end.next
            ),
            Disagreement::Shorter { partition, next, high } => write!(
                f,
                "the next record is {next}, but the topic ends at {high}: it was truncated, and judged records are gone; set the group's offset to OFFSET and start once with --accept-offsets {partition}:OFFSET, {NEW_GENERATION}"
            ),
            Disagreement::Moved { partition, moved: Moved { what, before, now }, position, resume } => {
                write!(f, "the position ")?;
                if let Some(position) = position {
                    write!(f, "{position} ")?;
                }
                write!(
                    f,
                    "was written with {what} {before}, but it is {now} now: the topic was deleted and created again, or this is another topic or cluster; start once with --accept-offsets {partition}:{resume} to resume there with the state as it is, {NEW_GENERATION}"
                )
            }
            Disagreement::Truncated { partition, next } => write!(
                f,
                "the log was truncated before offset {next} and written again (its leader epoch shows it): some records before {next} were never judged; set the group's offset back to OFFSET and start once with --accept-offsets {partition}:OFFSET (without setting it back: {partition}:{next}), {NEW_GENERATION}"
            ),
        }
    }
}

/// Decides how to take a partition with state over.
pub(crate) fn decide(facts: TakeoverFacts, accept: &Accept) -> Takeover {
    let TakeoverFacts { partition, committed, position, moved, truncated, low, high } = facts;
    let held = |offset: i64| (low..=high).contains(&offset);
    let accepted = |offset: i64| accept.offset(partition, offset) && held(offset);
    if let Some(moved) = moved {
        // If the group has no offset in the new topic, only the operator can name one.
        let resume = committed.or(accept.named(partition)).unwrap_or(low);
        return match accepted(resume) {
            true => Takeover::Accepted { from: resume, lost: 0 },
            false => {
                let resume = committed.unwrap_or(low);
                Takeover::Stop(Disagreement::Moved { partition, moved, position, resume })
            }
        };
    }
    let next = match (committed, position) {
        (None, None) => return Takeover::Begin,
        (None, Some(position)) => position,
        (Some(committed), Some(position)) if committed == position => position,
        (Some(committed), _) if accepted(committed) => {
            return Takeover::Accepted { from: committed, lost: 0 };
        }
        (Some(committed), position) => {
            return Takeover::Stop(Disagreement::Offsets { partition, committed, position });
        }
    };
    match next {
        next if next < low && accept.gap(partition, next) => {
            Takeover::Accepted { from: low, lost: low - next }
        }
        next if next < low => Takeover::Stop(Disagreement::Gap { partition, next, low }),
        next if next > high => Takeover::Stop(Disagreement::Shorter { partition, next, high }),
        next if truncated && accepted(next) => Takeover::Accepted { from: next, lost: 0 },
        next if truncated => Takeover::Stop(Disagreement::Truncated { partition, next }),
        next => Takeover::Resume(next),
    }
}

/// Decides for route, which has no state: only the group's committed offset counts.
pub(crate) fn decide_stateless(
    partition: i32,
    committed: Option<i64>,
    (low, high): (i64, i64),
    accept: &Accept,
) -> Takeover {
    let position = committed;
    decide(TakeoverFacts { partition, committed, position, moved: None, truncated: false, low, high }, accept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use samestory_engine::index::TopicName;
    use samestory_engine::model::TopicId;

    fn no() -> Accept {
        Accept::default()
    }

    fn offset(at: &str) -> Accept {
        Accept { offsets: [at.parse().unwrap()].into(), ..Accept::default() }
    }

    fn gap(at: &str) -> Accept {
        Accept { gaps: [at.parse().unwrap()].into(), ..Accept::default() }
    }

    fn known(committed: Option<i64>, position: Option<i64>) -> TakeoverFacts {
        TakeoverFacts { partition: 3, committed, position, moved: None, truncated: false, low: 10, high: 100 }
    }

    #[test]
    fn every_combination_of_offset_and_position_is_decided() {
        let partition = 3;
        assert_eq!(decide(known(None, None), &no()), Takeover::Begin);
        assert_eq!(decide(known(None, Some(17)), &no()), Takeover::Resume(17));
        assert_eq!(decide(known(Some(17), Some(17)), &no()), Takeover::Resume(17));
        for position in [None, Some(16), Some(18)] {
            let disagreement = Disagreement::Offsets { partition, committed: 17, position };
            assert_eq!(decide(known(Some(17), position), &no()), Takeover::Stop(disagreement));
            let accepted = Takeover::Accepted { from: 17, lost: 0 };
            assert_eq!(decide(known(Some(17), position), &offset("3:17")), accepted);
        }
        let stop = Disagreement::Gap { partition, next: 7, low: 10 };
        assert_eq!(decide(known(Some(7), Some(7)), &no()), Takeover::Stop(stop.clone()));
        assert_eq!(decide(known(None, Some(7)), &no()), Takeover::Stop(stop));
        let accepted = Takeover::Accepted { from: 10, lost: 3 };
        assert_eq!(decide(known(Some(7), Some(7)), &gap("3:7")), accepted);
        let shorter = Disagreement::Shorter { partition, next: 101, high: 100 };
        assert_eq!(decide(known(Some(101), Some(101)), &no()), Takeover::Stop(shorter));
        assert_eq!(decide(known(Some(100), Some(100)), &no()), Takeover::Resume(100));
    }

    // --accept-offsets used to cover every partition and to stay in force: left in the arguments of a pod, it accepted
    // a disagreement months later, and records were lost silently.
    #[test]
    fn a_decision_is_about_one_partition_and_one_offset_and_applies_once() {
        let disagrees = || known(Some(17), Some(16));
        for other in ["2:17", "3:18", "3:16"] {
            assert!(matches!(decide(disagrees(), &offset(other)), Takeover::Stop(_)), "{other}");
            assert!(matches!(decide(known(Some(7), Some(7)), &gap(other)), Takeover::Stop(_)), "{other}");
        }
        let both: Accept =
            Accept { offsets: ["3:17", "4:9"].map(|at| at.parse().unwrap()).into(), ..Accept::default() };
        let decisions = Decisions::new(both);
        let shared = decisions.clone();
        assert!(matches!(decide(disagrees(), &shared.left()), Takeover::Accepted { from: 17, lost: 0 }));
        decisions.spend(3);
        assert!(matches!(decide(disagrees(), &shared.left()), Takeover::Stop(_)));
        assert_eq!(shared.left(), offset("4:9"));
        for wrong in ["3", "3:", ":17", "-1:17", "3:-1", "3:x", "all"] {
            assert!(wrong.parse::<PartitionOffset>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_disagreement_is_final_after_three_more_claims() {
        let mut disagreed = Disagreed::default();
        assert_eq!([0; 4].map(|_| disagreed.is_final(3)), [false, false, false, true]);
        assert!(!disagreed.is_final(4), "each partition counts for itself");
        disagreed.forget(3);
        assert!(!disagreed.is_final(3));
    }

    // An input topic was deleted and created again. The old position was a bare number, so the first records of the new
    // topic were skipped silently.
    #[test]
    fn a_position_of_another_topic_is_never_used_and_both_ids_are_named() {
        let written = BusPosition {
            application: TopicName::new("app"),
            cluster: Some(TopicName::new("cluster-a")),
            changelog: Some(TopicId::from_halves(0, 1)),
            topic: TopicName::new("articles"),
            topic_id: Some(TopicId::from_halves(0, 2)),
            partition: 0,
            next: 17,
            leader_epoch: None,
        };
        let same = ClusterIds {
            cluster: written.cluster.clone(),
            changelog: written.changelog,
            input: written.topic_id,
        };
        assert_eq!(moved(&written, "articles", &same), None);
        // An id that the broker does not report proves nothing.
        assert_eq!(
            moved(&written, "articles", &ClusterIds { cluster: None, changelog: None, input: None }),
            None
        );
        let others = [
            ClusterIds { cluster: Some(TopicName::new("cluster-b")), ..same.clone() },
            ClusterIds { changelog: Some(TopicId::from_halves(0, 3)), ..same.clone() },
            ClusterIds { input: Some(TopicId::from_halves(0, 3)), ..same.clone() },
        ];
        let mut found: Vec<Moved> =
            others.iter().map(|here| moved(&written, "articles", here).unwrap()).collect();
        found.extend(moved(&written, "renamed", &same));
        assert_eq!(found.len(), 4);
        for moved in found {
            let Moved { what, before, now } = moved.clone();
            // Equal numbers on both sides prove nothing.
            let known =
                |committed| TakeoverFacts { moved: Some(moved.clone()), ..known(committed, Some(17)) };
            let Takeover::Stop(stopped) = decide(known(Some(17)), &no()) else { panic!("{what}") };
            let message = stopped.to_string();
            for part in [what, &before, &now, "17", "--accept-offsets 3:17", "stage.generation"] {
                assert!(message.contains(part), "{message}");
            }
            let accepted = |from| Takeover::Accepted { from, lost: 0 };
            assert_eq!(decide(known(Some(20)), &offset("3:20")), accepted(20));
            // The group has no offset: any accepted offset is taken, and the message proposes the start of the topic.
            assert_eq!(decide(known(None), &offset("3:10")), accepted(10));
            assert_eq!(decide(known(None), &offset("3:64")), accepted(64));
            let Takeover::Stop(stopped) = decide(known(None), &no()) else { panic!("{what}") };
            assert!(stopped.to_string().contains("--accept-offsets 3:10 "), "{stopped}");
            assert!(matches!(decide(known(Some(101)), &offset("3:101")), Takeover::Stop(_)));
        }
    }

    #[test]
    fn a_log_that_was_truncated_and_written_again_stops_the_partition() {
        let truncated = TakeoverFacts { truncated: true, ..known(Some(17), Some(17)) };
        let stop = Disagreement::Truncated { partition: 3, next: 17 };
        assert_eq!(decide(truncated.clone(), &no()), Takeover::Stop(stop));
        assert_eq!(decide(truncated, &offset("3:17")), Takeover::Accepted { from: 17, lost: 0 });
    }

    #[test]
    fn without_state_only_the_committed_offset_counts() {
        assert_eq!(decide_stateless(0, None, (0, 5), &no()), Takeover::Begin);
        assert_eq!(decide_stateless(0, Some(3), (0, 5), &no()), Takeover::Resume(3));
        let gap = decide_stateless(0, Some(3), (4, 5), &no());
        assert!(matches!(gap, Takeover::Stop(Disagreement::Gap { .. })));
    }

    #[test]
    fn a_disagreement_names_both_numbers_and_the_remedies() {
        let message = Disagreement::Offsets { partition: 2, committed: 5, position: Some(9) }.to_string();
        for part in ["5", "9", "--accept-offsets 2:5 ", "stage.generation"] {
            assert!(message.contains(part), "{message}");
        }
        let message = Disagreement::Gap { partition: 2, next: 7, low: 10 }.to_string();
        assert!(message.contains("--accept-gap 2:7 "), "{message}");
    }
}
