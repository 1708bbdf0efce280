//! Taking a partition over: the group's offset and the changelog's position must agree, or somebody has to decide.

use std::fmt;

use crate::event::GenerationEnd;
use crate::store::BusPosition;

use super::ids::Here;

/// What the operator has said about partitions that do not agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    /// Believe the group's offsets.
    pub offsets: bool,
    /// Go on behind records that are gone.
    pub gap: bool,
}

/// What is known of a partition when its state is restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The group's offset.
    pub(super) committed: Option<i64>,
    /// What the changelog says has been judged.
    pub(super) position: Option<i64>,
    /// The position was written in another topic or cluster than there is now.
    pub(super) moved: Option<Moved>,
    /// The log no longer holds the record before the position: it was cut there and written again.
    pub(super) truncated: bool,
    /// The first record that the log still holds.
    pub(super) low: i64,
    /// Where the log ends.
    pub(super) high: i64,
}

/// A position that does not belong to the topics as they are now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    /// What differs.
    what: &'static str,
    /// As recorded with the position.
    before: String,
    /// As it is now.
    now: String,
}

/// Compares where a position was written with what is there now. What either side does not know is not compared.
pub(super) fn moved(position: &BusPosition, topic: &str, here: &Here) -> Option<Moved> {
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

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Takeover {
    /// Nobody has read it yet: begin, and write that down.
    Begin,
    /// Go on from here.
    Resume(i64),
    /// Go on from here, as the operator has said; so many records are lost.
    Accepted { from: i64, lost: i64 },
    /// Somebody has to decide.
    Stop(Disagreement),
}

/// Why a partition stands still until somebody decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Disagreement {
    /// The group says one thing, the changelog another.
    Offsets { committed: i64, position: Option<i64> },
    /// Records that were not read are gone.
    Gap { next: i64, low: i64 },
    /// The log ends before what was read.
    Shorter { next: i64, high: i64 },
    /// The position belongs to another topic or cluster.
    Moved { moved: Moved, position: Option<i64> },
    /// The log was cut before what was read, and written again.
    Truncated { next: i64 },
    /// The next generation publishes.
    Ended(Box<GenerationEnd>),
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Disagreement::Offsets { committed, position } => {
                write!(f, "the group's offset is {committed}, ")?;
                match position {
                    Some(position) => write!(f, "but the changelog's position is {position}")?,
                    None => write!(f, "but the changelog has no position")?,
                }
                write!(
                    f,
                    "; set the offset back, start with --accept-offsets to go on from {committed} with the state as it is, or make the state anew with `samestory state rebuild`"
                )
            }
            Disagreement::Gap { next, low } => write!(
                f,
                "the next record is {next}, but the topic begins at {low}: {} records are gone; start with --accept-gap to go on from {low} without them",
                low - next
            ),
            Disagreement::Ended(end) => write!(
                f,
                "generation {} has ended ({}, at offsets {:?}) and publishes nothing more; start the next one, with a higher stage.generation",
                end.generation, end.ended_at, end.next
            ),
            Disagreement::Shorter { next, high } => write!(
                f,
                "the next record is {next}, but the topic ends at {high}: it was truncated, records that were judged are gone; start with --accept-offsets after setting the group's offset, or rebuild the state with `samestory state rebuild`"
            ),
            Disagreement::Moved { moved: Moved { what, before, now }, position } => {
                write!(f, "the position ")?;
                if let Some(position) = position {
                    write!(f, "{position} ")?;
                }
                write!(
                    f,
                    "was written with {what} {before}, but it is {now} now: the topic was deleted and created again, or this is another topic or cluster; start with --accept-offsets to go on here with the state as it is (from the group's offset, or from input.start where it has none), or rebuild the state with `samestory state rebuild`"
                )
            }
            Disagreement::Truncated { next } => write!(
                f,
                "the log was truncated before offset {next} and written again (its leader epoch says so): records before {next} were never judged; set the group's offset back and start with --accept-offsets, or rebuild the state with `samestory state rebuild`"
            ),
        }
    }
}

/// Decides.
pub(super) fn decide(known: Known, accept: Accept) -> Takeover {
    let Known { committed, position, moved, truncated, low, high } = known;
    if let Some(moved) = moved {
        return match committed {
            Some(committed) if accept.offsets && (low..=high).contains(&committed) => {
                Takeover::Accepted { from: committed, lost: 0 }
            }
            None if accept.offsets => Takeover::Begin,
            _ => Takeover::Stop(Disagreement::Moved { moved, position }),
        };
    }
    let next = match (committed, position) {
        (None, None) => return Takeover::Begin,
        (None, Some(position)) => position,
        (Some(committed), Some(position)) if committed == position => position,
        (Some(committed), _) if accept.offsets && (low..=high).contains(&committed) => {
            return Takeover::Accepted { from: committed, lost: 0 };
        }
        (Some(committed), position) => {
            return Takeover::Stop(Disagreement::Offsets { committed, position });
        }
    };
    match next {
        next if next < low && accept.gap => Takeover::Accepted { from: low, lost: low - next },
        next if next < low => Takeover::Stop(Disagreement::Gap { next, low }),
        next if next > high => Takeover::Stop(Disagreement::Shorter { next, high }),
        next if truncated && accept.offsets => Takeover::Accepted { from: next, lost: 0 },
        next if truncated => Takeover::Stop(Disagreement::Truncated { next }),
        next => Takeover::Resume(next),
    }
}

/// Decides for a stage without state: it has the group's offset and nothing else.
pub(super) fn decide_stateless(committed: Option<i64>, low: i64, high: i64, accept: Accept) -> Takeover {
    decide(Known { committed, position: committed, moved: None, truncated: false, low, high }, accept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TopicId;
    use crate::store::TopicName;

    const NO: Accept = Accept { offsets: false, gap: false };

    fn known(committed: Option<i64>, position: Option<i64>) -> Known {
        Known { committed, position, moved: None, truncated: false, low: 10, high: 100 }
    }

    #[test]
    fn every_row_of_the_table() {
        assert_eq!(decide(known(None, None), NO), Takeover::Begin);
        assert_eq!(decide(known(None, Some(17)), NO), Takeover::Resume(17));
        assert_eq!(decide(known(Some(17), Some(17)), NO), Takeover::Resume(17));
        for position in [None, Some(16), Some(18)] {
            let disagreement = Disagreement::Offsets { committed: 17, position };
            assert_eq!(decide(known(Some(17), position), NO), Takeover::Stop(disagreement));
            let accept = Accept { offsets: true, gap: false };
            assert_eq!(decide(known(Some(17), position), accept), Takeover::Accepted { from: 17, lost: 0 });
        }
        let gap = Disagreement::Gap { next: 7, low: 10 };
        assert_eq!(decide(known(Some(7), Some(7)), NO), Takeover::Stop(gap.clone()));
        assert_eq!(decide(known(None, Some(7)), NO), Takeover::Stop(gap));
        let accept = Accept { offsets: false, gap: true };
        assert_eq!(decide(known(Some(7), Some(7)), accept), Takeover::Accepted { from: 10, lost: 3 });
        let shorter = Disagreement::Shorter { next: 101, high: 100 };
        assert_eq!(decide(known(Some(101), Some(101)), NO), Takeover::Stop(shorter));
        assert_eq!(decide(known(Some(100), Some(100)), NO), Takeover::Resume(100));
    }

    /// An input topic was deleted and created again: the old position was a bare number, and the first records of the
    /// new topic were skipped without a word.
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
        let same =
            Here { cluster: written.cluster.clone(), changelog: written.changelog, input: written.topic_id };
        assert_eq!(moved(&written, "articles", &same), None);
        // What a broker does not say is no proof.
        assert_eq!(moved(&written, "articles", &Here { cluster: None, changelog: None, input: None }), None);
        let others = [
            Here { cluster: Some(TopicName::new("cluster-b")), ..same.clone() },
            Here { changelog: Some(TopicId::from_halves(0, 3)), ..same.clone() },
            Here { input: Some(TopicId::from_halves(0, 3)), ..same.clone() },
        ];
        let mut found: Vec<Moved> =
            others.iter().map(|here| moved(&written, "articles", here).unwrap()).collect();
        found.extend(moved(&written, "renamed", &same));
        assert_eq!(found.len(), 4);
        let accept = Accept { offsets: true, gap: false };
        for moved in found {
            let Moved { what, before, now } = moved.clone();
            // The same number on both sides proves nothing.
            let known = |committed| Known { moved: Some(moved.clone()), ..known(committed, Some(17)) };
            let Takeover::Stop(stopped) = decide(known(Some(17)), NO) else { panic!("{what}") };
            let said = stopped.to_string();
            for part in [what, &before, &now, "17", "--accept-offsets", "state rebuild"] {
                assert!(said.contains(part), "{said}");
            }
            assert_eq!(decide(known(Some(20)), accept), Takeover::Accepted { from: 20, lost: 0 });
            assert_eq!(decide(known(None), accept), Takeover::Begin);
            assert!(matches!(decide(known(Some(101)), accept), Takeover::Stop(_)));
        }
    }

    #[test]
    fn a_log_that_was_cut_and_written_again_stops_the_partition() {
        let truncated = Known { truncated: true, ..known(Some(17), Some(17)) };
        assert_eq!(decide(truncated.clone(), NO), Takeover::Stop(Disagreement::Truncated { next: 17 }));
        let accept = Accept { offsets: true, gap: false };
        assert_eq!(decide(truncated, accept), Takeover::Accepted { from: 17, lost: 0 });
    }

    #[test]
    fn without_state_the_groups_offset_is_all_there_is() {
        assert_eq!(decide_stateless(None, 0, 5, NO), Takeover::Begin);
        assert_eq!(decide_stateless(Some(3), 0, 5, NO), Takeover::Resume(3));
        assert!(matches!(decide_stateless(Some(3), 4, 5, NO), Takeover::Stop(Disagreement::Gap { .. })));
    }

    #[test]
    fn a_disagreement_names_both_numbers_and_the_ways_out() {
        let said = Disagreement::Offsets { committed: 5, position: Some(9) }.to_string();
        for part in ["5", "9", "--accept-offsets", "state rebuild"] {
            assert!(said.contains(part), "{said}");
        }
        assert!(Disagreement::Gap { next: 7, low: 10 }.to_string().contains("--accept-gap"));
    }
}
