//! The counts of a run over files, which the command prints and the HTML report shows.

use std::collections::BTreeMap;

use samestory_engine::model::{DeadLetterReason, Flag, Verdict};
use samestory_engine::model::{Lang, VerdictKind};

/// The counts of a run over files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Verdicts by language.
    pub languages: BTreeMap<Lang, Counts>,
    /// Records that could not be judged, by reason.
    pub dead_letters: BTreeMap<DeadLetterReason, u64>,
    /// Delete records.
    pub deletes: u64,
    /// Articles that had no id and were named by file and line.
    pub named_by_line: u64,
    /// Records skipped because an earlier run on the same state judged them.
    pub judged_before: u64,
    /// Verdicts that `--pairs` decided or changed.
    pub reviewed: u64,
    /// Articles removed from the index because their retention passed.
    pub expired: u64,
    /// Articles that were already past their retention: judged, but not indexed.
    pub arrived_expired: u64,
    /// Verdicts written to the output; fewer than were given if `--only` filters them.
    pub written: u64,
}

/// Verdict counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Unique articles.
    pub unique: u64,
    /// Near-duplicates.
    pub near: u64,
    /// Exact duplicates.
    pub exact: u64,
    /// Articles flagged for review, whatever their verdict.
    pub review: u64,
}

impl Counts {
    /// Articles judged.
    pub fn articles(&self) -> u64 {
        self.unique + self.near + self.exact
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.unique += other.unique;
        self.near += other.near;
        self.exact += other.exact;
        self.review += other.review;
    }
}

impl Summary {
    pub(super) fn count(&mut self, tagged: &Verdict) {
        let counts = self.languages.entry(tagged.language).or_default();
        match tagged.kind {
            VerdictKind::Unique => counts.unique += 1,
            VerdictKind::NearDuplicate => counts.near += 1,
            VerdictKind::ExactDuplicate => counts.exact += 1,
        }
        counts.review += u64::from(tagged.flags.contains(&Flag::Review));
    }

    /// The counts over all languages.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.languages.values().for_each(|&counts| total += counts);
        total
    }

    /// Dead letters over all reasons.
    pub fn dead(&self) -> u64 {
        self.dead_letters.values().sum()
    }
}

/// A number with thousands separators: 12345678 → 12,345,678.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn digits_are_grouped_in_threes() {
        let numbers = [0, 999, 1000, 12_345_678].map(thousands);
        assert_eq!(numbers, ["0", "999", "1,000", "12,345,678"]);
    }
}
