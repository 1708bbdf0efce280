//! Taking a partition over: the group's offset and the changelog's position must agree, or somebody has to decide.

use std::fmt;

/// What the operator has said about partitions that do not agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    /// Believe the group's offsets.
    pub offsets: bool,
    /// Go on behind records that are gone.
    pub gap: bool,
}

/// What is known of a partition when its state is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The group's offset.
    pub(super) committed: Option<i64>,
    /// What the changelog says has been judged.
    pub(super) position: Option<i64>,
    /// The first record that the log still holds.
    pub(super) low: i64,
    /// Where the log ends.
    pub(super) high: i64,
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
            Disagreement::Shorter { next, high } => write!(
                f,
                "the next record is {next}, but the topic ends at {high}: it was made anew or cut; start with --accept-offsets after setting the group's offset, or rebuild the state"
            ),
        }
    }
}

/// Decides.
pub(super) fn decide(known: Known, accept: Accept) -> Takeover {
    let Known { committed, position, low, high } = known;
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
        next => Takeover::Resume(next),
    }
}

/// Decides for a stage without state: it has the group's offset and nothing else.
pub(super) fn decide_stateless(committed: Option<i64>, low: i64, high: i64, accept: Accept) -> Takeover {
    decide(Known { committed, position: committed, low, high }, accept)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO: Accept = Accept { offsets: false, gap: false };

    fn known(committed: Option<i64>, position: Option<i64>) -> Known {
        Known { committed, position, low: 10, high: 100 }
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
